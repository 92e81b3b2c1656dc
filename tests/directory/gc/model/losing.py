"""The manifest of an earlier version is lost, or a listing lacks it, while a collection looks (G29).

The version names the file `f`, and has a transaction file, as the versions beside it, unless its table has none. The
name of that file is known by the row, unless the transaction was rebased. It has a row, and a tag or not. A client's
clean-up removes `f` and the transaction file, then the manifest, and no version that has a tag; it may end at any step,
and has given up the version by then. A manifest that is lost is put back from a backup at any time.
"""

from collections.abc import Iterator
from typing import NamedTuple

RULES = ("asked by key", "lost by its files", "files asked by key", "files of its kind", "lost by its name")


class State(NamedTuple):
    """What is there, how often a manifest may be lost or a listing be short, and what the collection has found.

    `listed` and `read`: whether the listing of the collection had the transaction file, and whether it read the
    manifest.
    """

    tag: bool = False
    recorded: bool = True
    rebased: bool = False
    manifest: str = "there"
    file: str = "there"
    transaction: str = "there"
    faults: int = 1
    collector: str = "begins"
    listed: bool = False
    read: bool = False
    runs: int = 2


class Model:
    """The steps and invariants with some of the rules."""

    def __init__(self, rules: frozenset[str]) -> None:
        self.rules = rules

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """Every step that some process can do."""
        if state.manifest == "there" and state.faults:
            yield "the manifest is lost", state._replace(manifest="lost", faults=state.faults - 1)
        if state.manifest == "lost":
            yield "the manifest is put back", state._replace(manifest="there")
        if not state.tag and state.manifest == "there":
            yield from self._clean_up(state)
        match state.collector:
            case "begins" if state.runs:
                listed = state.transaction == "there" and state.recorded
                found = state._replace(collector="looked", listed=listed, read=state.manifest == "there")
                yield "collector: lists and reads", found
                if state.faults and found.read:
                    lacking = found._replace(read=False, listed=False, faults=state.faults - 1)
                    yield "collector: its listing lacks both", lacking
            case "looked" if state.read or "asked by key" not in self.rules:
                yield "collector: judges", self._judged(state)
            case "looked":
                yield "collector: asks for the manifest", self._judged(state._replace(read=state.manifest == "there"))
            case "removes":
                if state.file == "there":
                    yield "collector: removes f", state._replace(file="collected")
                if state.transaction == "there":
                    yield "collector: removes the transaction file", state._replace(transaction="collected")
                yield "collector: ends", state._replace(collector="begins", runs=state.runs - 1)

    def _clean_up(self, state: State) -> Iterator[tuple[str, State]]:
        """A client's clean-up, as long as the manifest stands: what it named was read before."""
        if state.file == "there":
            yield "clean-up: removes f", state._replace(file="cleaned")
        if state.transaction == "there":
            yield "clean-up: removes the transaction file", state._replace(transaction="cleaned")
        if "cleaned" in state.file and "cleaned" in state.transaction:
            yield "clean-up: removes the manifest", state._replace(manifest="cleaned")

    def _judged(self, state: State) -> State:
        """The state once the collection knows whether the files may go."""
        named = state.tag and "lost by its name" in self.rules
        is_there = state.transaction == "there" and state.recorded
        listed = state.listed and "lost by its files" in self.rules
        asked = is_there and not state.rebased and "files asked by key" in self.rules
        unknown = not state.recorded and "files of its kind" in self.rules
        is_kept = state.read or named or listed or asked or unknown
        done = state._replace(collector="begins", runs=state.runs - 1)
        return done if is_kept else state._replace(collector="removes")

    def problems(self, state: State) -> Iterator[str]:
        """The violated invariants of a state."""
        given_up = state.transaction == "cleaned"
        if not given_up and state.file == "collected":
            yield "a version whose manifest is lost or not listed names a removed file"
