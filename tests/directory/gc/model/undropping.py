"""A drop and an undrop beside purges, and beside a horizon flip that moves L past the version before the drop."""

from collections.abc import Iterator
from typing import NamedTuple

RULES = ("claimed purge", "copy of D - 1", "own flip", "location once")


class Version(NamedTuple):
    """A catalog version: the table is `live`, `dropped` or `purging`; `before` are its rows in version D - 1."""

    table: str = "live"
    rows: frozenset[str] = frozenset("d")
    before: frozenset[str] = frozenset()


class State(NamedTuple):
    """`history` is False once D - 1 was removed. The undrop holds its snapshot's number and the rows that it read."""

    versions: tuple[Version, ...] = (Version(),)
    files: frozenset[str] = frozenset("d")
    history: bool = True
    copied: bool = False
    undrop: tuple[int, frozenset[str]] | str = "waits"
    declared: bool = False
    purge: tuple[str, ...] = ("idle", "idle")
    expiry: str = "idle"
    answered: frozenset[str] = frozenset("d")
    changes: int = 3


Steps = Iterator[tuple[str, State]]


class Model:
    """The steps and invariants with some of the rules."""

    def __init__(self, rules: frozenset[str]) -> None:
        self.rules = rules

    def steps(self, state: State) -> Steps:
        """Every step that some process can do."""
        yield from self._changes(state)
        yield from self._undrops(state)
        yield from self._expires(state)
        for index, doing in enumerate(state.purge):
            yield from self._purges(state, index, doing)

    def problems(self, state: State) -> Iterator[str]:
        """The violated invariants of a state."""
        newest = state.versions[-1]
        if newest.table == "live" and not newest.rows <= state.files:
            yield "a live table names removed files"
        if (
            newest.table == "live"
            and state.undrop == "done"
            and not state.declared
            and not state.answered <= newest.rows
        ):
            yield "undrop loses an acknowledged version"
        if newest.table == "dropped" and not state.history and not state.copied:
            yield "the catalog version before a drop is missing"
        if newest.table == "purging" and state.purge == ("done", "done") and state.files:
            yield "files of a purged table are left"

    def _changes(self, state: State) -> Steps:
        newest = state.versions[-1]
        if newest.table == "live" and state.changes and state.undrop != "done":
            dropped = Version("dropped", frozenset(), newest.rows)
            yield "drop", _flip(state, dropped)._replace(changes=state.changes - 1)
            written = state._replace(
                files=state.files | {"x"}, answered=state.answered | {"x"}, changes=state.changes - 1
            )
            appended = newest._replace(rows=newest.rows | {"x"})
            yield "append x", _flip(written, appended)
            if "own flip" not in self.rules:
                yield "append x and drop in one flip", _flip(written, dropped)
        if newest.table != "live" and not state.declared and "location once" not in self.rules:
            written = state._replace(files=state.files | {"y"}, declared=True)
            yield "declare at the same location", _flip(written, Version(rows=frozenset("y")))

    def _undrops(self, state: State) -> Steps:
        newest, number = state.versions[-1], len(state.versions)
        if state.undrop == "waits" and newest.table == "dropped" and (state.history or state.copied):
            yield f"undrop: reads D - 1 on {number}", state._replace(undrop=(number, newest.before))
        if isinstance(state.undrop, tuple):
            base, rows = state.undrop
            if base == number:
                yield "undrop: flip", _flip(state, Version(rows=rows))._replace(undrop="done")
            elif newest.table == "dropped":
                yield "undrop: lost, planned again", state._replace(undrop=(number, newest.before))
            else:
                yield "undrop: refused", state._replace(undrop="refused")

    def _expires(self, state: State) -> Steps:
        newest = state.versions[-1]
        if state.expiry == "idle" and newest.table == "dropped" and not state.copied and state.history:
            yield "collector: copies D - 1", state._replace(copied=True)
        if state.expiry == "idle" and newest.table != "live" and (state.copied or "copy of D - 1" not in self.rules):
            yield "collector: horizon flip moves L past D - 1", _flip(state, newest)._replace(expiry="moved")
        if state.expiry == "moved":
            yield "collector: removes D - 1", state._replace(expiry="done", history=False)

    def _purges(self, state: State, index: int, doing: str) -> Steps:
        newest = state.versions[-1]
        name = f"purge {index}"

        def now(does: str) -> State:
            return state._replace(purge=(*state.purge[:index], does, *state.purge[index + 1 :]))

        if doing == "idle" and newest.table == "dropped":
            yield f"{name}: the time is over", now("claims" if "claimed purge" in self.rules else "removes")
        if doing == "claims":
            if newest.table == "dropped":
                yield f"{name}: claims", _flip(now("removes"), newest._replace(table="purging"))
            else:
                yield f"{name}: looks", now("removes" if newest.table == "purging" else "done")
        if doing == "removes" and state.files:
            first = min(state.files)
            yield f"{name}: lists and removes {first}", state._replace(files=state.files - {first})
        if doing == "removes" and not state.files:
            yield f"{name}: ends", now("done")


def _flip(state: State, version: Version) -> State:
    return state._replace(versions=(*state.versions, version))
