"""A stock client of the catalog rebases a deletion over a version that was moved to quarantine (P16).

A batch deletes the row `first` in version 1. A writer by path takes its name with a file of its own, which does not
have that, and may have the row `path` deleted. The client deletes rows of the same fragment, and looks for the newest
version among the names on storage: its deletion file has the deleted rows of what stands there, and names it as read by
its number. Another batch deletes the row `batch` as version 2; over that the client is rebased again. A server repairs
the name, and judges what the client sends.
"""

from collections.abc import Iterator
from typing import NamedTuple

RULES = (
    "promoted before planning",
    "the version that the file names",
    "versions below that",
    "all of the head",
    "the writer's own if there is no other row",
)
BATCH, PATH = "batch", "path writer"
_NONE: frozenset[str] = frozenset()
_FIRST, _THEIRS = frozenset({"first"}), frozenset({"path"})
_CLIENT = (frozenset({"own"}), frozenset({"own", "path"}), _THEIRS)


class State(NamedTuple):
    """What stands under the name of version 1, and the deleted rows of the fragment.

    `theirs` are those of the writer's version, `head` those of the newest one of the catalog, `meant` those that its
    committed transactions deleted. `own` are the client's rows, `file` those of its deletion file, `read` the version
    that this names, `dirty` whether it was made over the writer's version.
    """

    flipped: bool = False
    name: str = ""
    theirs: frozenset[str] = _NONE
    copied: bool = False
    version: int = 0
    head: frozenset[str] = _NONE
    meant: frozenset[str] = _NONE
    own: frozenset[str] = _NONE
    file: frozenset[str] = _NONE
    read: int = 0
    dirty: bool = False
    outcome: str = ""


class Model:
    """The steps and invariants with some of the rules."""

    def __init__(self, rules: frozenset[str]) -> None:
        self.rules = rules

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """Every step that some process can do."""
        if not state.name:
            yield "writer: commits version 1", state._replace(name=PATH)
            yield "writer: commits version 1, a deletion", state._replace(name=PATH, theirs=_THEIRS)
        if not state.flipped:
            yield "batch: flips version 1", state._replace(flipped=True, version=1, head=_FIRST, meant=_FIRST)
            return
        if not state.name:
            yield "server: promotes", state._replace(name=BATCH)
        if state.name == PATH:
            if not state.copied:
                yield "repair: copies the file", state._replace(copied=True)
            else:
                yield "repair: replaces the file", state._replace(name=BATCH)
        if state.name == BATCH and state.version == 1:
            rows = frozenset({"batch"})
            yield (
                "batch: deletes a row as version 2",
                state._replace(version=2, head=state.head | rows, meant=state.meant | rows),
            )
        yield from self._client(state)

    def _client(self, state: State) -> Iterator[tuple[str, State]]:
        if state.name and not state.read:
            found = state.theirs if state.name == PATH else _FIRST
            for own in _CLIENT:
                if own - found:
                    after = state._replace(own=own - found, file=own | found, read=1, dirty=state.name == PATH)
                    yield f"client: deletes {' and '.join(sorted(own))} over version 1", after
        if state.read == 1 and state.version == 2 and not state.outcome:
            yield "client: is rebased over version 2", state._replace(file=state.file | state.head, read=2)
        may_plan = state.name == BATCH or "promoted before planning" not in self.rules
        if state.read and state.read == state.version and not state.outcome and may_plan:
            if self._is_refused(state):
                yield "server: refuses", state._replace(outcome="refused")
            else:
                after = state._replace(head=state.file, meant=state.meant | state.own, outcome="committed")
                yield "server: commits", after

    def _is_refused(self, state: State) -> bool:
        looks = "the version that the file names" if state.read == 1 else "versions below that"
        quarantined = state.copied and state.name == BATCH
        if not quarantined or looks not in self.rules:
            return False
        if state.head - state.file and "all of the head" in self.rules:
            return True
        if not state.theirs or not state.file - state.head >= state.theirs:
            return False
        return state.file != state.head | _THEIRS or "the writer's own if there is no other row" not in self.rules

    def problems(self, state: State) -> Iterator[str]:
        """The violated invariants of a state."""
        if state.head - state.meant:
            yield "rows are gone that no transaction of the table deleted"
        if state.meant - state.head:
            yield "deleted rows are back"
        if state.outcome == "refused" and not state.dirty and state.own == _THEIRS:
            yield "what was kept aside cannot be done again"
