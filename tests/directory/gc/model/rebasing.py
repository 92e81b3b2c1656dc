"""A slow transaction is rebased over versions of its table, one of which expires (G11, G18).

It read version 1, and deletes a row of the file `f`. Version 2 is a compaction that removes `f`, version 3 is
unrelated.
"""

from collections.abc import Iterator
from typing import NamedTuple

RULES = ("missing version", "read versions")


class State(NamedTuple):
    """The versions that are rows, whether the transaction is registered, and what became of it."""

    rows: frozenset[int] = frozenset({1})
    registered: bool = True
    outcome: str = ""


class Model:
    """The steps and invariants with some of the rules."""

    def __init__(self, rules: frozenset[str]) -> None:
        self.rules = rules

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """Every step that some process can do."""
        head = max(state.rows)
        if head < 3:
            kind = "a compaction removes f" if head == 1 else "an unrelated change"
            yield f"version {head + 1}: {kind}", state._replace(rows=state.rows | {head + 1})
        if not (state.registered and "read versions" in self.rules):
            for version in sorted(state.rows - {1, head}):
                yield f"version {version} expires", state._replace(rows=state.rows - {version})
        if state.registered:
            yield "the time of the job is over", state._replace(registered=False)
        if not state.outcome:
            outcome = self._outcome(state.rows, head)
            if outcome == "refused" and state.registered:
                outcome = "refused though registered"
            yield f"commit: {outcome}", state._replace(outcome=outcome)

    def _outcome(self, rows: frozenset[int], head: int) -> str:
        if "missing version" in self.rules and not set(range(2, head + 1)) <= rows:
            return "refused"
        if 2 in rows:
            return "conflict"
        return "committed" if head == 1 else "committed without effect"

    def problems(self, state: State) -> Iterator[str]:
        """The violated invariants of a state."""
        if state.outcome == "committed without effect":
            yield "a committed delete has no effect"
        if state.outcome == "refused though registered":
            yield "a registered job is refused"
