"""A writer that knows no catalog goes on from a version that was moved to quarantine (P12).

A batch flips version 1, with fragment 1. The writer takes the name of version 1 with a file of its own, whose fragment
1 has other rows, and later deletes fragment 1 by the handle that it holds; or it opens the table again first, and means
the batch's. Where another writer has put a version 2 on the quarantined file, pylance rebases the deletion over that,
and names version 2 as the one that was read. A server repairs the name, adopts or quarantines what stands above it, and
commits again what is in quarantine. It may die between any two steps: each of them goes by what is on storage alone.
"""

from collections.abc import Iterator
from typing import NamedTuple

RULES = (
    "copy, then replace",
    "other readings",
    "by files",
    "one reading",
    "found above a taken name",
    "versions below the number",
    "none above its own group",
)
BATCH, PATH = "batch", "path writer"


class State(NamedTuple):
    """What stands under the two names, what the catalog has, and what is in quarantine.

    `read` is what the writer has read as version 1, `meant` whose fragment it deletes. `delete` tells where its second
    version is, `certain` whether quarantine tells that it was built on the writer's own file, `rebased` whether it
    names a version 2, which was built on that file, as read.
    """

    flipped: bool = False
    name: str = ""
    copied: bool = False
    fragments: tuple[tuple[int, str], ...] = ()
    again: bool = False
    read: str = ""
    meant: str = ""
    delete: str = ""
    certain: bool = False
    rebased: bool = False
    removed: str = ""


class Model:
    """The steps and invariants with some of the rules."""

    def __init__(self, rules: frozenset[str]) -> None:
        self.rules = rules

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """Every step that some process can do."""
        if not state.flipped:
            after = state._replace(flipped=True, fragments=((1, BATCH),))
            yield "batch: flips", after
            if state.delete == "stands" and "none above its own group" not in self.rules:
                yield "batch: flips, and another one of its group adopts the deletion", _without(after, (1, BATCH))
        yield from self._writer(state)
        if state.flipped and not state.name:
            yield "server: promotes", state._replace(name=BATCH)
        if state.flipped and state.name == PATH:
            yield from self._repair(state)
        if state.flipped and state.name == BATCH:
            yield from self._above(state)
            yield from self._commit_again(state)

    def _writer(self, state: State) -> Iterator[tuple[str, State]]:
        if not state.name and not state.read:
            yield "writer: commits version 1", state._replace(name=PATH, read=PATH)
        if state.name == BATCH and state.read != BATCH and not state.meant:
            yield "writer: opens the table", state._replace(read=BATCH)
        if state.read and not state.meant:
            yield "writer: deletes fragment 1", state._replace(meant=state.read, delete="stands")
            if state.copied:
                after = state._replace(meant=state.read, delete="stands", rebased=True)
                yield "writer: deletes fragment 1, over a version 2 on its own file", after

    def _repair(self, state: State) -> Iterator[tuple[str, State]]:
        if state.delete == "stands":
            yield "repair: moves what stands above", state._replace(delete="aside", certain=True)
        if not state.copied:
            yield "repair: copies the file", state._replace(copied=True)
        if state.copied or "copy, then replace" not in self.rules:
            yield "repair: replaces the file", state._replace(name=BATCH)

    def _above(self, state: State) -> Iterator[tuple[str, State]]:
        if state.delete != "stands":
            return
        if state.copied and "other readings" in self.rules:
            certain = "found above a taken name" not in self.rules
            yield "server: moves the deletion", state._replace(delete="aside", certain=certain)
        else:
            yield "server: adopts the deletion", _without(state, (1, BATCH))

    def _commit_again(self, state: State) -> Iterator[tuple[str, State]]:
        if state.copied and not state.again:
            number = 1 + max((number for number, _ in state.fragments), default=1)
            fragments = (*state.fragments, (number, PATH))
            yield "server: commits version 1 of the writer again", state._replace(fragments=fragments, again=True)
        if state.delete == "aside" and state.again:
            is_seen = not state.rebased or "versions below the number" in self.rules
            if not state.certain and is_seen and "one reading" in self.rules:
                yield "server: reports the deletion", state._replace(delete="reported")
                return
            owner = PATH if "by files" in self.rules else BATCH
            found = next((each for each in state.fragments if each[1] == owner), None)
            if found is not None:
                yield "server: commits the deletion again", _without(state, found)

    def problems(self, state: State) -> Iterator[str]:
        """The violated invariants of a state."""
        if state.removed and state.removed != state.meant:
            yield f"rows of the {state.removed} are gone, which nothing deleted"


def _without(state: State, fragment: tuple[int, str]) -> State:
    left = tuple(each for each in state.fragments if each != fragment)
    return state._replace(fragments=left, delete="committed", removed=fragment[1])
