"""The checker: a pure function of what clients were told and of what the catalog holds.

What is held:

* a transaction that was acknowledged is in all of its tables, from one catalog version on, once; one that was
  rejected is in none; one whose outcome is unknown is in all or in none (*lost*, *torn*, *visible*, *doubled*);
* rows go only by a deletion that was asked for, and do not come back (*lost*, *revived*);
* a counter grows by one with each transaction that increments it (*lost*);
* the order of the catalog is the order in time: what began after an acknowledgement comes later, and reads see it
  (*reordered*, *stale*); and numbers are what clients were told (*misnumbered*);
* what was read is what that version holds, of one catalog version (*misread*);
* what a serializable transaction read is unchanged where it was committed (*skewed*).

Documented exceptions, which are no anomalies:

* A commit by path may take the number of a version that the catalog has just committed, before it has its place. It
  is then set aside and committed again behind the head: its number in the end is another than its writer was told,
  and what follows it in time may come before it. Such a commit has to be there, whole and once, like any other.
* A catalog version holds a commit by path only once it is adopted. A read at a catalog version may be without one
  that was acknowledged; a read that asks for the newest version of its table may not.
* A transaction that only read a table may be committed beside a commit by path to it which is not adopted: it comes
  before that one in the order of the catalog.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from tests.histories.history import Effect, Event, Row, Walk

Kind = Literal[
    "lost", "torn", "visible", "doubled", "revived", "reordered", "stale", "misnumbered", "misread", "skewed"
]


@dataclass(frozen=True, slots=True)
class Anomaly:
    """Something that must not be."""

    kind: Kind
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


@dataclass(frozen=True, slots=True)
class Placed:
    """A transaction with the versions that hold it: of each table the first and the last one, and of the catalog."""

    event: Event
    first: Mapping[str, int]
    last: Mapping[str, int]
    catalog_version: int

    @property
    def moved(self) -> bool:
        """Whether it is a commit by path that was set aside and committed again."""
        return self.event.by_path and self.event.versions != self.last


def check(events: Sequence[Event], walk: Walk) -> list[Anomaly]:
    """All anomalies of a history."""
    replay = _Replay(events)
    for table, states in walk.states.items():
        replay.follow(table, states)
    placed, found = _place(events, replay.applied, walk)
    anomalies = replay.anomalies + found
    anomalies += _check_order(events, placed)
    anomalies += _check_reads(events, placed, walk)
    anomalies += _check_serializable(placed, walk)
    return anomalies


Applied = dict[str, dict[Effect, int]]
"""By transaction, the version of the table that each of its effects is first in."""


class _Replay:
    """Explains every version by the effects that lead to it from the one below."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.applied: Applied = defaultdict(dict)
        self.anomalies: list[Anomaly] = []
        self._planned = {(event.name, effect) for event in events for effect in event.effects}
        self._deleting = {effect: name for name, effect in self._planned if effect.deed == "delete"}

    def follow(self, table: str, states: Mapping[int, tuple[Row, ...]]) -> None:
        """All versions of a table."""
        gone: set[str] = set()
        for (below, before), (version, after) in pairwise(sorted(states.items())):
            if version != below + 1:
                self._found("lost", table, version, f"follows {below}")
            for key in sorted(_twice(after) - _twice(before)):
                self._found("doubled", table, version, f"{key} is there twice")
            old, new = ({row[0]: row for row in rows} for rows in (before, after))
            for key in sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key)):
                if key in gone:
                    self._found("revived", table, version, f"{key} is back, which was deleted")
                self._explain(table, version, key, old.get(key), new.get(key))
            gone |= old.keys() - new.keys()

    def _explain(self, table: str, version: int, key: str, old: Row | None, new: Row | None) -> None:
        """One row is another than in the version below."""
        if new is None:
            effect = Effect(table, "delete", key)
            name = self._deleting.get(effect)
            if name is None:
                self._found("lost", table, version, f"{old} is gone, and no operation deletes it")
            else:
                self._apply(name, effect, version)
        elif old is None:
            self._apply(new[1], Effect(table, "insert", key), version)
        else:
            self._apply(new[1], Effect(table, "increment", key), version)
            if new[2] != old[2] + 1:
                self._found("lost", table, version, f"{old} became {new}: it is to grow by one")

    def _apply(self, name: str, effect: Effect, version: int) -> None:
        if (name, effect) not in self._planned:
            self._found("revived", effect.table, version, f"{name} has no {effect.deed} of {effect.key}")
        elif effect in self.applied[name]:
            text = f"{name} {effect.deed}s {effect.key} again, as in version {self.applied[name][effect]}"
            self._found("doubled", effect.table, version, text)
        else:
            self.applied[name][effect] = version

    def _found(self, kind: Kind, table: str, version: int, text: str) -> None:
        self.anomalies.append(Anomaly(kind, f"{table}@{version}: {text}"))


def _twice(rows: Sequence[Row]) -> set[str]:
    return {one[0] for one, other in pairwise(rows) if one[0] == other[0]}


def _place(events: Sequence[Event], applied: Applied, walk: Walk) -> tuple[list[Placed], list[Anomaly]]:
    """Find the catalog version of each transaction, and compare what is there with what was told."""
    numbers = sorted(walk.pins)
    placed: list[Placed] = []
    anomalies: list[Anomaly] = []

    def first_pin(table: str, version: int) -> int:
        position = bisect_left(numbers, version, key=lambda number: walk.pins[number].get(table, 0))
        return numbers[position] if position < len(numbers) else numbers[-1] + 1

    for event in events:
        if not event.effects:
            continue
        there = applied.get(event.name, {})
        missing = sorted(set(event.effects) - there.keys())
        told = f"{event.name} ({event.outcome})"
        if event.outcome == "rejected" and there:
            anomalies.append(Anomaly("visible", f"{told}: {_places(there)}"))
        if missing and (there or event.outcome == "committed"):
            kind: Kind = "torn" if there else "lost"
            anomalies.append(Anomaly(kind, f"{told}: there is {_places(there) or 'nothing'}, not {missing}"))
        if not there:
            continue
        tables = {effect.table for effect in there}
        last = {table: max(v for effect, v in there.items() if effect.table == table) for table in tables}
        pins = {table: first_pin(table, version) for table, version in last.items()}
        if len(set(pins.values())) > 1:
            anomalies.append(Anomaly("torn", f"{told}: its tables are in the catalog versions {pins}"))
        first = {table: min(v for effect, v in there.items() if effect.table == table) for table in tables}
        one = Placed(event, first, last, max(pins.values()))
        placed.append(one)
        anomalies += _check_numbers(one)
    return placed, anomalies


def _places(there: Mapping[Effect, int]) -> str:
    return ", ".join(f"{effect.deed} {effect.key} in {effect.table}@{version}" for effect, version in there.items())


def _check_numbers(placed: Placed) -> Iterator[Anomaly]:
    event = placed.event
    if event.outcome != "committed" or event.by_path:
        return
    if event.catalog_version is not None and event.catalog_version != placed.catalog_version:
        text = f"was told catalog version {event.catalog_version}, is in {placed.catalog_version}"
        yield Anomaly("misnumbered", f"{event.name} {text}")
    for table, version in event.versions.items():
        if placed.last.get(table, version) != version:
            yield Anomaly("misnumbered", f"{event.name} was told {table}@{version}, is in {placed.last[table]}")


def _check_order(events: Sequence[Event], placed: Sequence[Placed]) -> Iterator[Anomaly]:
    """What began after an acknowledgement comes after it: in the catalog, and in each table."""
    chains: dict[str, list[tuple[Placed, int, int]]] = defaultdict(list)
    for one in placed:
        if not one.event.by_path:
            chains["the catalog"].append((one, one.catalog_version, one.catalog_version))
        for table, version in one.last.items():
            chains[table].append((one, one.first[table], version))
    for chain, members in chains.items():
        known = [member for member in members if member[0].event.outcome == "committed" and not member[0].moved]
        known.sort(key=lambda member: member[0].event.ended)
        newest: tuple[Placed, int, int] | None = None
        position = 0
        for one, first, _ in sorted(members, key=lambda member: member[0].event.begun):
            while position < len(known) and known[position][0].event.ended < one.event.begun:
                if newest is None or known[position][2] > newest[2]:
                    newest = known[position]
                position += 1
            if newest is not None and first <= newest[2]:
                text = f"in {first} of {chain}, {newest[0].event.name}, acknowledged before it began, in {newest[2]}"
                yield Anomaly("reordered", f"{one.event.name} is {text}")


def _check_reads(events: Sequence[Event], placed: Sequence[Placed], walk: Walk) -> Iterator[Anomaly]:
    acknowledged = [one for one in placed if one.event.outcome == "committed"]
    for event in events:
        if event.read_at is None and not event.reads:
            continue
        pins = {} if event.read_at is None else walk.pins.get(event.read_at, {})
        for table, version in event.reads.items():
            if pins and pins.get(table) != version:
                text = f"{table}@{version} at catalog version {event.read_at}, which holds {pins.get(table)}"
                yield Anomaly("misread", f"{event.name} read {text}")
        for table, rows in event.rows.items():
            version = event.reads.get(table, pins.get(table, 0))
            held = walk.states[table].get(version, ())
            if rows != held:
                text = f"{sorted(set(rows) - set(held))[:3]} too much, {sorted(set(held) - set(rows))[:3]} missing"
                yield Anomaly("misread", f"{event.name} read {table}@{version}: {text}")
        for one in acknowledged:
            if one.event.ended >= event.begun:
                continue
            if event.read_at is not None and not one.event.by_path and one.catalog_version > event.read_at:
                text = f"{one.event.name} was acknowledged before, in {one.catalog_version}"
                yield Anomaly("stale", f"{event.name} read at catalog version {event.read_at}; {text}")
                break
            late = [t for t, v in event.reads.items() if event.at_heads and not one.moved and one.last.get(t, 0) > v]
            if late:
                text = f"{one.event.name} was acknowledged before, in {one.last[late[0]]}"
                yield Anomaly("stale", f"{event.name} read {late[0]}@{event.reads[late[0]]}; {text}")
                break


def _check_serializable(placed: Sequence[Placed], walk: Walk) -> Iterator[Anomaly]:
    """What was read is what the catalog held up to the commit. Of one flip two may not have read below the other."""
    together: dict[int, list[Placed]] = defaultdict(list)
    for one in placed:
        if not one.event.serializable:
            continue
        for table, version in one.event.reads.items():
            base = one.first[table] - 1 if table in one.first else walk.pins[one.catalog_version - 1].get(table)
            if base != version:
                text = f"read {table}@{version}, was committed in {one.catalog_version} on {table}@{base}"
                yield Anomaly("skewed", f"{one.event.name} {text}")
        for other in together[one.catalog_version]:
            if _overlooks(one, other) and _overlooks(other, one):
                yield Anomaly("skewed", f"{one.event.name} and {other.event.name} overlook each other")
        together[one.catalog_version].append(one)


def _overlooks(one: Placed, other: Placed) -> bool:
    return any(version < other.last.get(table, 0) for table, version in one.event.reads.items())
