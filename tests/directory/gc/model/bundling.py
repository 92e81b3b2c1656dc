"""Two batches of one flip have their staged manifests in one object (N5, M2); the table of the second may be dropped.

Two servers promote, close records and remove the bundle, each held between any two steps; the first has the manifests
in memory until it dies. A collector removes an old bundle that no open record names. The flip may be held before it.
"""

from collections.abc import Iterator
from typing import NamedTuple

RULES = ("all closed", "dropped stays open", "open records", "horizon flip first")

Pair = tuple[bool, bool]


class Server(NamedTuple):
    """What a server saw and did: records that were open, versions that it saw promoted, records open after its flip."""

    phase: str = "idle"
    seen: Pair = (False, False)
    promoted: Pair = (False, False)
    after: Pair = (False, False)


class State(NamedTuple):
    """The flip, the bundle, canonical names and open records of the two batches, and the processes."""

    flip: str = "staged"
    after_flip: bool = False
    bundle: bool = True
    canonical: Pair = (False, False)
    open: Pair = (False, False)
    dropped: bool = False
    drops: int = 1
    memory: bool = True
    servers: tuple[Server, Server] = (Server(), Server())
    collector: str = "idle"
    crashes: int = 1


class Model:
    """The steps and invariants with some of the rules."""

    def __init__(self, rules: frozenset[str]) -> None:
        self.rules = rules

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """Every step that some process can do."""
        if state.flip == "staged":
            lost = state.after_flip
            yield "flip", state._replace(flip="lost" if lost else "committed", open=(not lost, not lost))
        yield from self._collect(state)
        if state.flip != "committed":
            return
        if state.open[1] and not state.dropped and state.drops:
            yield "the second table is dropped", state._replace(dropped=True, drops=0)
        if state.dropped:
            yield "the second table comes back", state._replace(dropped=False)
        for number, server in enumerate(state.servers):
            for step, following, now in self._serve(state, number, server):
                servers = (following, state.servers[1]) if number == 0 else (state.servers[0], following)
                yield f"server {number}: {step}", now._replace(servers=servers)
            if state.crashes and (server.phase != "idle" or (number == 0 and state.memory)):
                servers = (Server(), state.servers[1]) if number == 0 else (state.servers[0], Server())
                memory = state.memory and number != 0
                yield f"server {number}: dies", state._replace(servers=servers, memory=memory, crashes=0)

    def _serve(self, state: State, number: int, server: Server) -> Iterator[tuple[str, Server, State]]:
        if server.phase == "idle" and any(state.open):
            yield "looks", Server("looked", state.open), state
        if server.phase == "looked":
            for each in (0, 1):
                if server.seen[each] and not server.promoted[each] and not (each and state.dropped):
                    has_bytes = state.canonical[each] or state.bundle or (number == 0 and state.memory)
                    if has_bytes:
                        following = server._replace(promoted=_with(server.promoted, each))
                        yield f"promotes {each}", following, state._replace(canonical=_with(state.canonical, each))
            closable = [each for each in (0, 1) if server.seen[each] and self._may_close(state, server, each)]
            if closable:
                left = (state.open[0] and 0 not in closable, state.open[1] and 1 not in closable)
                closed = server._replace(phase="closed", after=left)
                yield "closes what is promoted", closed, state._replace(open=left)
        if server.phase == "closed":
            if "all closed" not in self.rules or not any(server.after):
                yield "removes the bundle", Server(), state._replace(bundle=False)
            else:
                yield "leaves the bundle", Server(), state

    def _may_close(self, state: State, server: Server, each: int) -> bool:
        if each and state.dropped:
            return state.canonical[1] or "dropped stays open" not in self.rules
        return server.promoted[each]

    def _collect(self, state: State) -> Iterator[tuple[str, State]]:
        if state.collector == "idle":
            yield (
                "collector: moves the horizon",
                state._replace(collector="moved", after_flip="horizon flip first" in self.rules),
            )
        if state.collector == "moved":
            unnamed = not any(state.open) or "open records" not in self.rules
            yield "collector: plans", state._replace(collector="planned" if unnamed and state.bundle else "done")
        if state.collector == "planned":
            yield "collector: removes the bundle", state._replace(bundle=False, collector="done")

    def problems(self, state: State) -> Iterator[str]:
        """The violated invariants of a state."""
        if state.flip == "committed" and not state.bundle and not all(state.canonical):
            yield "a committed version has no manifest under any name"


def _with(pair: Pair, at: int) -> Pair:
    return (True, pair[1]) if at == 0 else (pair[0], True)
