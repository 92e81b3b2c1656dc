"""Versions of `__manifest` are removed while servers flip: the slot of a removed version is free again (G6 to G9).

The content of a version is its lineage: the batches that led to it. So an acknowledged batch is lost if the newest
version does not have it. A clean-up is ours, which claims and goes upward, or that of a stock client, in any order.

With a clock, what a flip published may be promoted before the flip is proved to be the newest version. A clean-up then
leaves what was committed in the same second.
"""

from collections.abc import Iterator
from typing import NamedTuple

RULES = ("won is newest", "followed is newest", "records tell", "same second")

Lineage = tuple[str, ...]


class Server(NamedTuple):
    """A server: the version that it knows, what it does, and the batch that it commits.

    The phases of a flip are `planned`, `doubt` (its answer was lost), `won`, and `superseded` (its version is to be
    removed, since it is in no history). A listing was `fresh` if the second in which it began is not over.
    """

    known: Lineage = ("v1",)
    phase: str = "idle"
    batch: str = ""
    fresh: bool = False


class State(NamedTuple):
    """What is stored, and what the processes know.

    `late` are puts without an answer that may still arrive. `stock` says whose clean-up it is; `bound` is the lowest
    version that it leaves. With a `clock`, `young` are the numbers that were put in this second, and `promoted` the
    lineages of flips of which something was promoted.
    """

    stock: bool = False
    clock: bool = False
    batches: int = 3
    crashes: int = 0
    lost_answers: int = 0
    slots: frozenset[tuple[int, Lineage]] = frozenset({(1, ("v1",))})
    late: frozenset[tuple[int, Lineage]] = frozenset()
    bound: int = 1
    servers: tuple[Server, ...] = (Server(), Server(), Server())
    acknowledged: frozenset[str] = frozenset()
    young: frozenset[int] = frozenset()
    promoted: frozenset[Lineage] = frozenset()


class Model:
    """The steps and invariants with some of the rules."""

    def __init__(self, rules: frozenset[str]) -> None:
        self.rules = rules

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """Every step that some process can do."""
        for index, server in enumerate(state.servers):
            if server in state.servers[:index]:
                continue  # the same as another one
            for name, after in self._server(state, index, server):
                yield f"server {index}: {name}", after
        for number, lineage in sorted(state.late):
            rest = state._replace(late=state.late - {(number, lineage)})
            if _at(state, number) is None:
                yield f"put {number} arrives late", _put(rest, number, lineage)
            else:
                yield f"put {number} arrives late and finds another", rest
        newest = _newest(state)[0]
        if state.bound < newest:
            yield f"clean-up: leaves {newest} and above", state._replace(bound=newest)
        below = sorted(slot for slot in state.slots if slot[0] < state.bound and slot[0] not in state.young)
        for slot in below if state.stock else below[:1]:
            yield f"clean-up: removes {slot[0]}", state._replace(slots=state.slots - {slot})
        later = tuple(sorted(each if each.phase == "won" else each._replace(fresh=False) for each in state.servers))
        if state.young or later != state.servers:
            yield "a second is over", state._replace(servers=later, young=frozenset())

    def _server(self, state: State, index: int, server: Server) -> Iterator[tuple[str, State]]:
        if server.phase == "idle":
            yield from self._idle(state, index, server)
            return
        if state.crashes:
            again = _with(state, index, _listed(state))
            yield "dies, begins again", again._replace(crashes=state.crashes - 1)
        match server.phase:
            case "planned":
                yield from self._put(state, index, server)
            case "doubt":
                yield from self._look(state, index, server)
            case "won":
                yield from self._answer(state, index, server)
            case "superseded":
                number = len(server.known) + 1
                left = frozenset(slot for slot in state.slots if slot[0] != number)
                yield f"removes {number}, lists", _again(state, index, server)._replace(slots=left)

    def _idle(self, state: State, index: int, server: Server) -> Iterator[tuple[str, State]]:
        number, newest = len(server.known) + 1, _newest(state)[1]
        following = _at(state, number)
        if following is not None:
            proved = following == newest and _at(state, number - 1) == server.known
            seen = following if proved or "followed is newest" not in self.rules else newest
            yield f"follows to {len(seen)}", _with(state, index, server._replace(known=seen))
        if server.known != newest or (state.clock and not server.fresh):
            yield "lists", _with(state, index, _listed(state))
        if state.batches:
            begun = _with(state, index, server._replace(phase="planned", batch=f"b{state.batches}"))
            yield f"plans b{state.batches} on {number - 1}", begun._replace(batches=state.batches - 1)

    def _put(self, state: State, index: int, server: Server) -> Iterator[tuple[str, State]]:
        number = len(server.known) + 1
        if _at(state, number) is not None:
            yield f"finds {number} taken, lists", _again(state, index, server)
            return
        mine = (*server.known, server.batch)
        yield f"puts {number}", _put(_with(state, index, server._replace(phase="won")), number, mine)
        if state.lost_answers:
            lost = _with(state, index, server._replace(phase="doubt"))._replace(lost_answers=state.lost_answers - 1)
            yield f"puts {number}, the answer is lost", _put(lost, number, mine)
            yield f"puts {number}, no answer yet", lost._replace(late=state.late | {(number, mine)})

    def _look(self, state: State, index: int, server: Server) -> Iterator[tuple[str, State]]:
        number = len(server.known) + 1
        mine = (*server.known, server.batch)
        won = _with(state, index, server._replace(phase="won"))
        found = _at(state, number)
        if found is None:
            yield f"puts {number} again", _put(won, number, mine)
        elif found == mine:
            yield f"finds its {number}", won
        elif "records tell" in self.rules:
            yield f"finds another {number}, lists", _again(state, index, server)
        else:
            yield f"finds another {number}", _with(state, index, _listed(state, "planned", server.batch))

    def _answer(self, state: State, index: int, server: Server) -> Iterator[tuple[str, State]]:
        mine, newest = (*server.known, server.batch), _newest(state)[1]
        if state.clock and mine not in state.promoted and (server.fresh or "same second" not in self.rules):
            yield f"promotes {server.batch}", state._replace(promoted=state.promoted | {mine})
        if mine == newest or server.batch in newest or "won is newest" not in self.rules:
            known = newest if server.batch in newest else mine
            done = _with(state, index, Server(known, fresh=state.clock))
            acknowledged = state.acknowledged | {server.batch}
            yield f"answers {server.batch}", done._replace(acknowledged=acknowledged, promoted=state.promoted - {mine})
        else:
            superseded = _with(state, index, server._replace(phase="superseded"))
            yield f"lists, {len(mine)} is in no history", superseded

    def problems(self, state: State) -> Iterator[str]:
        """The violated invariants of a state."""
        newest = _newest(state)[1]
        if state.acknowledged - set(newest):
            yield "an acknowledged batch is lost"
        if len(set(newest)) < len(newest):
            yield "a batch is committed twice"
        if any(lineage != newest[: len(lineage)] for lineage in state.promoted):
            yield "a version that is in no history is promoted"
        if any(server.phase == "idle" and server.known != newest[: len(server.known)] for server in state.servers):
            yield "a server believes a version that was never committed"


def _at(state: State, number: int) -> Lineage | None:
    return next((lineage for each, lineage in state.slots if each == number), None)


def _newest(state: State) -> tuple[int, Lineage]:
    return max(state.slots, default=(0, ()))


def _with(state: State, index: int, changed: Server) -> State:
    """The servers are alike, so their order does not matter."""
    return state._replace(servers=tuple(sorted((*state.servers[:index], changed, *state.servers[index + 1 :]))))


def _put(state: State, number: int, lineage: Lineage) -> State:
    young = state.young | {number} if state.clock else state.young
    return state._replace(slots=state.slots | {(number, lineage)}, young=young)


def _listed(state: State, phase: str = "idle", batch: str = "") -> Server:
    return Server(_newest(state)[1], phase, batch, state.clock)


def _again(state: State, index: int, server: Server) -> State:
    """Plan the batch of a server again on the newest version; it is in there, if its record is."""
    if server.batch in _newest(state)[1]:
        decided = _with(state, index, _listed(state))
        return decided._replace(acknowledged=state.acknowledged | {server.batch})
    return _with(state, index, _listed(state, "planned", server.batch))
