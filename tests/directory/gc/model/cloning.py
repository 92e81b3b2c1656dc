"""A table is cloned through the catalog while the version that it is cloned from expires (G17, G19).

Version 1 of the source has the file `f`, and its later versions do not. The clone names `f` by a base path.
"""

from collections.abc import Iterator
from typing import NamedTuple

RULES = ("live source", "needs of others")


class Version(NamedTuple):
    """The content of a catalog version: is version 1 of the source a row, is the clone registered."""

    source: bool = True
    clone: bool = False


class State(NamedTuple):
    """The versions of the catalog, whether `f` is there, the server that clones, and the collector."""

    versions: tuple[Version, ...] = (Version(),)
    file: bool = True
    server: str = "begins"
    collector: str = "begins"
    base: int = 0
    horizon_flip: int = 0


class Model:
    """The steps and invariants with some of the rules."""

    def __init__(self, rules: frozenset[str]) -> None:
        self.rules = rules

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """Every step that some process can do."""
        newest = state.versions[-1]
        match state.server:
            case "begins" if not state.file:
                yield "server: finds no f, refuses", state._replace(server="done")
            case "begins":
                yield "server: finds f", state._replace(server="plans")
            case "plans" if "live source" in self.rules and not newest.source:
                yield "server: the source is no row, refuses", state._replace(server="done")
            case "plans":
                yield "server: plans the clone", state._replace(server="flips", base=len(state.versions))
            case "flips" if state.base < len(state.versions):
                yield "server: loses the flip", state._replace(server="plans")
            case "flips":
                flipped = (*state.versions, newest._replace(clone=True))
                yield "server: wins the flip", state._replace(server="done", versions=flipped)
        match state.collector:
            case "begins":
                after_flip = (*state.versions, newest._replace(source=False))
                yield (
                    "collector: horizon flip, expires version 1",
                    state._replace(collector="marks", versions=after_flip, horizon_flip=len(after_flip)),
                )
            case "marks":
                needed = "needs of others" in self.rules and state.versions[state.horizon_flip - 1].clone
                yield "collector: marks", state._replace(collector="done" if needed else "removes")
            case "removes":
                yield "collector: removes f", state._replace(collector="done", file=False)

    def problems(self, state: State) -> Iterator[str]:
        """The violated invariants of a state."""
        if state.versions[-1].clone and not state.file:
            yield "a clone names a removed file"
