"""A writer that knows no catalog commits by path while a collector runs; a server adopts its version (G5).

The writer writes the file `f`, and its manifest at any later time. No flip tells the collector of it. Here clocks
matter: the store dates files in ticks, and the grace time is two of them.
"""

from collections.abc import Iterator
from typing import NamedTuple

RULES = ("list, then read", "pace")
GRACE, LAST = 2, 7


class State(NamedTuple):
    """The clock, when the file and its manifest were written, and what the run has found of `f`."""

    clock: int = 0
    file: int | None = None
    manifest: int | None = None
    adopted: bool = False
    run: str = "begins"
    time: int = 0
    is_old: bool = False
    is_named: bool = False


class Model:
    """The steps and invariants with some of the rules."""

    def __init__(self, rules: frozenset[str]) -> None:
        self.rules = rules

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """Every step that some process can do."""
        if state.clock < LAST:
            yield f"the clock shows {state.clock + 1}", state._replace(clock=state.clock + 1)
        if state.file is None:
            yield "writer: writes f", state._replace(file=state.clock)
        elif state.manifest is None:
            yield "writer: commits by path", state._replace(manifest=state.clock)
        elif not state.adopted and ("pace" not in self.rules or state.manifest - state.file <= GRACE):
            yield "server: adopts the version", state._replace(adopted=True)
        yield from self._run(state)

    def _run(self, state: State) -> Iterator[tuple[str, State]]:
        is_named = state.manifest is not None
        reads_last = "list, then read" in self.rules
        match state.run:
            case "begins" if not reads_last:
                yield "run: reads manifests", state._replace(run="has read", is_named=is_named)
            case "begins" | "has read":
                yield "run: takes the time", state._replace(run="lists", time=state.clock)
            case "lists":
                is_old = state.file is not None and state.file < state.time - GRACE
                yield "run: lists files", state._replace(run="reads" if reads_last else "removes", is_old=is_old)
            case "reads":
                yield "run: reads manifests", state._replace(run="removes", is_named=is_named)
            case "removes":
                does = "removes f" if state.is_old and not state.is_named else "leaves f"
                yield f"run: {does}", state._replace(run=does)

    def problems(self, state: State) -> Iterator[str]:
        """The violated invariants of a state."""
        if state.adopted and state.run == "removes f":
            yield "an adopted version names a removed file"
