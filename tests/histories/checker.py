"""The checker: a pure function of what clients were told and of what the catalog holds.

What is held:

* a transaction that was acknowledged is in all of its tables, from one catalog version on, once; one that was
  rejected is in none; one whose outcome is unknown is in all or in none (*lost*, *torn*, *visible*, *doubled*);
* rows go only by a deletion that was asked for, and do not come back (*lost*, *revived*);
* a counter grows by one with each transaction that increments it (*lost*);
* a request that is repeated under its key is answered as before (*misanswered*);
* the order of the catalog is the order in time: what began after a version was acknowledged, or read, comes later, and
  reads see that version (*reordered*, *stale*); and numbers are what clients were told (*misnumbered*);
* a version of a table is the work of one transaction, and those of one transaction follow each other (*torn*);
* every version is in the catalog from some catalog version on (*lost*);
* what was read is what that version holds, of one catalog version (*misread*);
* what a serializable transaction read is unchanged where it was committed (*skewed*).

Documented exceptions, which are no anomalies:

* A commit by path may take the number of a version that the catalog has just committed, before it has its place. It
  is then quarantined and committed again behind the head. It is not there meanwhile, its number in the end may be
  another than its writer was told, and what follows it in time may come before it. Such a commit has to be there,
  whole and once, like any other; or the catalog has to report that it is not.
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
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Literal

from tests.histories.history import Effect, Event, Row, Walk

Kind = Literal[
    "lost",
    "torn",
    "visible",
    "doubled",
    "revived",
    "reordered",
    "stale",
    "misnumbered",
    "misanswered",
    "misread",
    "skewed",
]

CATALOG = "the catalog"
"""The name of the chain of catalog versions, beside the names of tables."""


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
    again: bool = False

    @property
    def moved(self) -> bool:
        """Whether it is a commit by path that was quarantined and committed again, under whatever number."""
        return self.event.by_path and (self.again or self.event.versions != self.last)


def check(events: Sequence[Event], walk: Walk) -> list[Anomaly]:
    """All anomalies of a history."""
    replay = _Replay(events)
    for table, states in walk.states.items():
        replay.follow(table, states)
    placed, found = _place(events, replay, walk)
    anomalies = [*_check_walk(walk), *replay.anomalies, *found]
    anomalies += [
        Anomaly("misanswered", f"{event.name} again: {told}") for event in events for told in event.answered_otherwise
    ]
    told = _tell(events, placed, walk)
    anomalies += _check_order(placed, told)
    anomalies += _check_recency(events, told, walk)
    anomalies += _check_reads(events, walk)
    anomalies += _check_serializable(placed, walk)
    return anomalies


def _check_walk(walk: Walk) -> Iterator[Anomaly]:
    """All versions of the tables are in the catalog, and no catalog version goes back behind the one below it."""
    for (below, before), (number, pins) in pairwise(sorted(walk.pins.items())):
        for table, version in before.items():
            if pins.get(table, 0) < version:
                yield Anomaly("lost", f"{table}@{version} of catalog version {below}: {number} has {pins.get(table)}")
    newest = walk.pins[max(walk.pins)]
    for table, states in walk.states.items():
        if (min(states), max(states)) != (1, newest.get(table)):
            text = f"has versions {min(states)} to {max(states)}, the catalog has 1 to {newest.get(table)}"
            yield Anomaly("lost", f"{table} {text}")


class _Replay:
    """Explains every version by the effects that lead to it from the one below.

    `applied`: by transaction, the version of the table that each of its effects is first in. `writers`: by table and
    version, the transaction that made it.
    """

    def __init__(self, events: Sequence[Event]) -> None:
        self.applied: dict[str, dict[Effect, int]] = defaultdict(dict)
        self.writers: dict[tuple[str, int], str] = {}
        self.anomalies: list[Anomaly] = []
        self._planned = {(event.name, effect) for event in events for effect in event.effects}
        self._deleting = {effect: name for name, effect in self._planned if effect.action == "delete"}

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
            if new[2] != 0:
                self._found("lost", table, version, f"{new} was inserted with 0")
        else:
            self._apply(new[1], Effect(table, "increment", key), version)
            if new[2] != old[2] + 1:
                self._found("lost", table, version, f"{old} became {new}: it is to grow by one")

    def _apply(self, name: str, effect: Effect, version: int) -> None:
        if (writer := self.writers.setdefault((effect.table, version), name)) != name:
            self._found("torn", effect.table, version, f"there are changes of {writer} and of {name}")
        if (name, effect) not in self._planned:
            self._found("revived", effect.table, version, f"{name} has no {effect.action} of {effect.key}")
        elif effect in self.applied[name]:
            text = f"{name} {effect.action}s {effect.key} again, as in version {self.applied[name][effect]}"
            self._found("doubled", effect.table, version, text)
        else:
            self.applied[name][effect] = version

    def _found(self, kind: Kind, table: str, version: int, text: str) -> None:
        self.anomalies.append(Anomaly(kind, f"{table}@{version}: {text}"))


def _twice(rows: Sequence[Row]) -> set[str]:
    return {one[0] for one, other in pairwise(rows) if one[0] == other[0]}


def _place(events: Sequence[Event], replay: _Replay, walk: Walk) -> tuple[list[Placed], list[Anomaly]]:
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
        there = replay.applied.get(event.name, {})
        missing = sorted(set(event.effects) - there.keys())
        told = f"{event.name} ({event.outcome})"
        if event.by_path and not walk.aside.isdisjoint({event.name, *event.effects}):
            if there:
                text = f"{told}: {_places(there)}, and it is reported as not there"
                anomalies.append(Anomaly("misanswered", text))
            else:
                continue
        if event.outcome == "rejected" and there:
            anomalies.append(Anomaly("visible", f"{told}: {_places(there)}"))
        if missing and (there or event.outcome == "committed"):
            kind: Kind = "torn" if there else "lost"
            anomalies.append(Anomaly(kind, f"{told}: there is {_places(there) or 'nothing'}, not {missing}"))
        if not there:
            continue
        made = {(effect.table, version) for effect, version in there.items()}
        pins = {place: first_pin(*place) for place in sorted(made)}
        if len(set(pins.values())) > 1:
            anomalies.append(Anomaly("torn", f"{told}: its versions are in the catalog versions {pins}"))
        last = dict(sorted(made))
        first = dict(sorted(made, reverse=True))
        again = not walk.again.isdisjoint({event.name, *event.effects})
        one = Placed(event, first, last, max(pins.values()), again)
        placed.append(one)
        anomalies += _check_numbers(one)
        anomalies += _check_chain(one, replay.writers)
    return placed, anomalies


def _places(there: Mapping[Effect, int]) -> str:
    return ", ".join(f"{effect.action} {effect.key} in {effect.table}@{version}" for effect, version in there.items())


def _check_chain(placed: Placed, writers: Mapping[tuple[str, int], str]) -> Iterator[Anomaly]:
    """The versions that a transaction made of one table follow each other."""
    for table, first in placed.first.items():
        names = {writers.get((table, version)) for version in range(first, placed.last[table] + 1)}
        if others := names - {None, placed.event.name}:
            yield Anomaly("torn", f"{placed.event.name}: between its versions of {table} are those of {others}")


def _check_numbers(placed: Placed) -> Iterator[Anomaly]:
    event = placed.event
    if event.read_at is not None and event.read_at >= placed.catalog_version:
        yield Anomaly("reordered", f"{event.name} is in {placed.catalog_version}, it has read {event.read_at}")
    if event.outcome != "committed" or event.by_path:
        return
    if event.catalog_version is not None and event.catalog_version != placed.catalog_version:
        text = f"was told catalog version {event.catalog_version}, is in {placed.catalog_version}"
        yield Anomaly("misnumbered", f"{event.name} {text}")
    for table, version in event.versions.items():
        if placed.last.get(table, version) != version:
            yield Anomaly("misnumbered", f"{event.name} was told {table}@{version}, is in {placed.last[table]}")


class _Told:
    """The versions of a chain that clients were told of, by the time that they were told. No other may be older."""

    def __init__(self) -> None:
        self._told: list[tuple[float, int, str]] = []

    def add(self, event: Event, version: int) -> None:
        self._told.append((event.ended, version, event.name))

    def sort(self) -> None:
        """To be called between the last `add` and the first `before`."""
        self._told.sort()
        newest = (0, "")
        for position, (ended, version, name) in enumerate(self._told):
            newest = max(newest, (version, name))
            self._told[position] = (ended, *newest)

    def before(self, event: Event) -> tuple[int, str]:
        """The newest version that was told before the event began, and to which event; 0 if there is none."""
        position = bisect_left(self._told, event.begun, key=lambda told: told[0])
        return self._told[position - 1][1:] if position else (0, "")


def _tell(events: Sequence[Event], placed: Sequence[Placed], walk: Walk) -> Mapping[str, _Told]:
    """What clients were told: of the catalog (`CATALOG`), and of each table."""
    told = {chain: _Told() for chain in (CATALOG, *walk.states)}
    for one in placed:
        if one.event.outcome == "committed" and not one.moved:
            if not one.event.by_path:
                told[CATALOG].add(one.event, one.catalog_version)
            for table, version in one.last.items():
                told[table].add(one.event, version)
    for event in events:
        if event.read_at is not None:
            told[CATALOG].add(event, event.read_at)
        for table, version in _versions_read(event, walk).items():
            told[table].add(event, version)
    for chain in told.values():
        chain.sort()
    return told


def _check_order(placed: Sequence[Placed], told: Mapping[str, _Told]) -> Iterator[Anomaly]:
    """A transaction that begins after a version was told comes after that: in the catalog, and in each table."""
    for one in placed:
        places = dict(one.first) if one.event.by_path else {**one.first, CATALOG: one.catalog_version}
        for chain, place in places.items():
            version, name = told[chain].before(one.event)
            if place <= version:
                text = f"is in version {place} of {chain}, {name} was told of {version} before it began"
                yield Anomaly("reordered", f"{one.event.name} {text}")


def _check_recency(events: Sequence[Event], told: Mapping[str, _Told], walk: Walk) -> Iterator[Anomaly]:
    """A read that begins after a version was told does not read an earlier one, unless it asked for it."""
    for event in events:
        reads = dict(_versions_read(event, walk)) if event.at_heads else {}
        if event.read_at is not None:
            reads[CATALOG] = event.read_at
        for chain, read in reads.items():
            version, name = told[chain].before(event)
            if read < version:
                text = f"read version {read} of {chain}, {name} was told of {version} before it began"
                yield Anomaly("stale", f"{event.name} {text}")


def _versions_read(event: Event, walk: Walk) -> Mapping[str, int]:
    """The versions of the tables that an event read, as it was told, or as its catalog version says."""
    pins = {} if event.read_at is None else walk.pins.get(event.read_at, {})
    return {**{table: pins[table] for table in event.rows if table in pins}, **event.reads}


def _check_reads(events: Sequence[Event], walk: Walk) -> Iterator[Anomaly]:
    """What was read is what its versions hold, and these are of one catalog version."""
    for event in events:
        pins = {} if event.read_at is None else walk.pins.get(event.read_at)
        if pins is None:
            yield Anomaly("misread", f"{event.name} read at catalog version {event.read_at}, which is not there")
            continue
        for table, version in event.reads.items():
            if event.read_at is not None and pins.get(table) != version:
                text = f"{table}@{version} at catalog version {event.read_at}, which holds {pins.get(table)}"
                yield Anomaly("misread", f"{event.name} read {text}")
        for table, rows in event.rows.items():
            version = _versions_read(event, walk).get(table, 0)
            held = walk.states[table].get(version, ())
            if rows != held:
                text = f"{sorted(set(rows) - set(held))[:3]} too much, {sorted(set(held) - set(rows))[:3]} missing"
                yield Anomaly("misread", f"{event.name} read {table}@{version}: {text}")


def _check_serializable(placed: Sequence[Placed], walk: Walk) -> Iterator[Anomaly]:
    """What was read is what the catalog held up to the commit. Those of one flip have an order in which that is so."""
    together: dict[int, list[Placed]] = defaultdict(list)
    for one in placed:
        if not one.event.serializable:
            continue
        together[one.catalog_version].append(one)
        for table, version in one.event.reads.items():
            base = one.first[table] - 1 if table in one.first else walk.pins[one.catalog_version - 1].get(table)
            if base != version:
                text = f"read {table}@{version}, was committed in {one.catalog_version} on {table}@{base}"
                yield Anomaly("skewed", f"{one.event.name} {text}")
    for group in together.values():
        before = {
            other.event.name: {one.event.name for one in group if one is not other and _overlooks(one, other)}
            for other in group
        }
        try:
            TopologicalSorter(before).prepare()
        except CycleError as error:
            yield Anomaly("skewed", f"each overlooks the next one: {error.args[1]}")


def _overlooks(one: Placed, other: Placed) -> bool:
    return any(version < other.last.get(table, 0) for table, version in one.event.reads.items())
