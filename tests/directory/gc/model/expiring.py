"""A version of a table expires while a server makes a tag of it (G17, B1).

A tag is a file that is written first and confirmed by a flip. The version goes by its row, its manifest later. Two runs
of a collector are held between any two steps, and may die.
"""

from collections.abc import Iterator
from typing import NamedTuple

RULES = ("confirmed", "looked again", "record")


class State(NamedTuple):
    """The version, the tag, and the runs.

    `row` and `record` are in the catalog: the record says that the row was removed by a run. The version of the tag is
    `found` by a server, then the tag is `written`, then `answered` or `refused`.
    """

    row: bool = True
    record: bool = False
    manifest: bool = True
    tag: str = ""
    runs: tuple[str, ...] = ("begins", "begins")
    crashes: int = 1


class Model:
    """The steps and invariants with some of the rules."""

    def __init__(self, rules: frozenset[str]) -> None:
        self.rules = rules

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """Every step that some process can do."""
        if not state.tag and state.row:
            yield "server: finds the version", state._replace(tag="found")
        if state.tag == "found":
            yield "server: writes the tag", state._replace(tag="written")
        if state.tag == "written":
            answered = state.row or "confirmed" not in self.rules
            tag = "answered" if answered else "refused"
            yield f"server: the flip of the tag, {tag}", state._replace(tag=tag)
        for index, run in enumerate(state.runs):
            for name, after, changed in self._run(run, state):
                runs = (*state.runs[:index], after, *state.runs[index + 1 :])
                yield f"run {index}: {name}", changed._replace(runs=runs)
            if state.crashes and run not in {"begins", "done"}:
                runs = (*state.runs[:index], "done", *state.runs[index + 1 :])
                yield f"run {index}: dies", state._replace(runs=runs, crashes=0)

    def _run(self, run: str, state: State) -> Iterator[tuple[str, str, State]]:
        named = state.tag in {"written", "answered"}
        match run:
            case "begins":
                yield "finds no tag" if not named else "finds a tag", "judges" if named else "expires", state
            case "expires" if state.row:
                record = "record" in self.rules
                yield "the flip that removes the row", "looks", state._replace(row=False, record=record)
            case "expires" | "judges":
                yield "leaves the row", "looks", state
            case "looks" if state.record or ("record" not in self.rules and not state.row):
                back = named and "looked again" in self.rules
                yield "finds a tag again" if back else "finds no tag again", "returns" if back else "concludes", state
            case "looks":
                yield "finds no record", "sweeps", state
            case "returns":
                ended = state.record or "record" not in self.rules
                yield "the flip that puts the row back", "done", state._replace(row=state.row or ended, record=False)
            case "concludes":
                yield "the flip that ends the record", "sweeps", state._replace(record=False)
            case "sweeps" if not state.row and not state.record:
                yield "removes the manifest", "done", state._replace(manifest=False)

    def problems(self, state: State) -> Iterator[str]:
        """The violated invariants of a state."""
        if state.tag != "answered":
            return
        if not state.manifest:
            yield "the manifest of a tagged version is removed"
        if not state.row and not state.record and not {"looks", "returns"}.intersection(state.runs):
            yield "a tagged version is no row of the catalog"
