"""A branch is deleted and made again while a collector is held that removes its old manifest (G23, G27).

The manifests of both branches have one name. A removal on a condition is not one step on a directory.
"""

from collections.abc import Iterator
from typing import NamedTuple

RULES = ("compare", "rename first")


class State(NamedTuple):
    """What stands under the name and beside it: `old`, `new` or nothing."""

    name: str = "old"
    aside: str = ""
    branch: str = "deleted"
    collector: str = "listed"
    crashes: int = 1


class Model:
    """The steps and invariants with some of the rules."""

    def __init__(self, rules: frozenset[str]) -> None:
        self.rules = rules

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """Every step that some process can do."""
        if state.branch == "deleted":
            yield "branch: made again by a flip", state._replace(branch="flipped")
        if state.branch == "flipped":
            yield "branch: promoted and answered", state._replace(branch="answered", name="new")
        if state.collector == "listed":
            if "compare" not in self.rules:
                yield "collector: removes what has the name", state._replace(name="", collector="done")
            elif "rename first" in self.rules:
                yield "collector: renames", state._replace(name="", aside=state.name, collector="renamed")
            else:
                yield "collector: compares", state._replace(collector="same" if state.name == "old" else "done")
        if state.collector == "same":
            yield "collector: removes the name", state._replace(name="", collector="done")
        if state.collector == "renamed":
            back = state.name or (state.aside if state.aside == "new" else "")
            yield "collector: compares, removes or puts back", state._replace(name=back, aside="", collector="done")
            if state.crashes:
                yield "collector: dies, a sweep finds the renamed file", state._replace(crashes=0)

    def problems(self, state: State) -> Iterator[str]:
        """The violated invariants of a state."""
        if state.branch == "answered" and state.collector == "done" and state.name != "new":
            yield "the manifest of an acknowledged commit is removed"
