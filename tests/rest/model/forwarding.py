"""A change is handed by one server to another that may be held, lost, or gone, and committed once.

A client sends a change to server B, which hands it to the process that it takes for the committer A: at once, or after
an attempt of its own that lost its slot. Every message may be lost or arrive at any later time. B commits the change
itself whenever it gives up waiting, and may die. A client that gave the change a key sends it to A as well whenever it
gives up waiting for B; without one, the change has a key from the moment that it is handed on. The address of A may
belong to a server of another root, or to another program, by the time that something arrives there. Another server
commits in between. What the change needs may be missing at first, so that it is refused.
"""

from collections.abc import Iterator
from typing import NamedTuple

RULES = (
    "key",
    "before a commit",
    "after a lost slot",
    "lost for certain",
    "for a process",
    "by the process",
    "once",
    "verdicts only",
    "not refused",
)

CHANGE, NAMELESS, OTHER = "change", "change without a key", "another"


class Work(NamedTuple):
    """A server's work on a change. It has `seen` so many versions of the catalog, and `knows` the key.

    The `first` work of B is done before the change is handed on.
    """

    at: str = ""
    seen: int = 0
    knows: bool = True
    first: bool = False

    @property
    def entry(self) -> str:
        """What a commit adds to the catalog."""
        return CHANGE if self.knows else NAMELESS


class State(NamedTuple):
    """The catalog, the messages that are on their way, and what each process is doing.

    `handed` is A's work on what B handed to it, `sent` its work on what the client sent, `own` that of B, and `late` a
    put of B's that it waits for no more. `keyed`: the client gave a key. `address` is who has the address of A.
    `client` is what the client was told. `lacking`: the change is refused for now. `handed_on`: it may arrive at A.
    """

    keyed: bool = True
    lacking: bool = False

    catalog: tuple[str, ...] = ()
    elsewhere: bool = False
    address: str = "A"
    client: str = ""
    request: bool = False
    answer: str = ""
    handed: Work = Work()
    sent: Work = Work()
    own: Work = Work()
    late: Work = Work()
    dead: bool = False
    returned: bool = False
    handed_on: bool = False
    others: int = 1


class Model:
    """The steps and invariants with some of the rules."""

    def __init__(self, rules: frozenset[str]) -> None:
        self.rules = rules

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """Every step that some process or the network can do."""
        if state.lacking:
            yield "another client makes what is missing", state._replace(lacking=False)
        if state.others:
            yield "another server commits", state._replace(catalog=(*state.catalog, OTHER), others=state.others - 1)
        if state.address == "A":
            for owner in ("another root", "another program"):
                yield f"the address goes to {owner}", state._replace(address=owner)
        if state.late.at:
            arrived = (*state.catalog, state.late.entry) if len(state.catalog) == state.late.seen else state.catalog
            yield "the late put of B arrives", state._replace(late=Work(), catalog=arrived)
        if state.keyed and not state.client and not state.sent.at:
            yield "the client asks A as well", state._replace(sent=self._begin(state))
        yield from self._network(state)
        yield from self._server_b(state)
        for name in ("handed", "sent"):
            yield from self._commit(name, state)

    def _network(self, state: State) -> Iterator[tuple[str, State]]:
        if state.request:
            gone = state._replace(request=False)
            yield "the request is lost", gone
            match state.address:
                case "A":
                    yield "A: takes the request", gone._replace(handed=self._begin(state))
                    yield "A: refuses by a limit of its own", gone._replace(answer="limit")
                    if "once" not in self.rules:
                        yield "A: hands it back", gone._replace(returned=True)
                case "another root" if "for a process" in self.rules:
                    yield "the other server refuses the request", gone._replace(answer="limit")
                case "another root":
                    yield "the other server commits", gone._replace(elsewhere=True, answer="committed")
                case _:
                    yield "the other program answers", gone._replace(answer="nonsense")
        if state.answer:
            yield "the answer is lost", state._replace(answer="")

    def _server_b(self, state: State) -> Iterator[tuple[str, State]]:
        if state.dead:
            return
        if not state.own.at:
            yield "B: hands the change on", self._handed_on(state)
            own = self._begin(state)
            yield "B: begins", state._replace(own=own._replace(knows=own.knows and state.keyed, first=True))
        elif state.own.at == "put" and state.own.first and "lost for certain" not in self.rules:
            yield "B: hands the change on beside its put", self._handed_on(state)._replace(late=state.own)
        elif state.own.at == "waiting":
            if state.answer and self._is_verdict(state.answer):
                told = state.client or state.answer
                yield "B: passes the answer on", state._replace(client=told, answer="", own=Work("done"))
            yield "B: commits itself", state._replace(answer="", own=self._begin(state))
        yield from self._commit("own", state)
        late = state.own if state.own.at == "put" else state.late
        yield "B: dies", state._replace(dead=True, own=Work("done"), late=late)

    def _handed_on(self, state: State) -> State:
        return state._replace(request=True, handed_on=True, own=Work("waiting"))

    def _is_verdict(self, answer: str) -> bool:
        rule = {"nonsense": "by the process", "limit": "verdicts only"}.get(answer)
        return rule not in self.rules

    def _begin(self, state: State) -> Work:
        return Work("look" if "before a commit" in self.rules else "plan", len(state.catalog), "key" in self.rules)

    def _commit(self, name: str, state: State) -> Iterator[tuple[str, State]]:
        work: Work = getattr(state, name)
        match work.at:
            case "look" if work.knows and CHANGE in state.catalog[: work.seen]:
                yield f"{name}: finds the key", self._decided(name, state)
            case "look" | "plan" if state.lacking:
                yield f"{name}: refuses", self._decided(name, state, "refused")
            case "look" | "plan":
                yield f"{name}: plans", state._replace(**{name: work._replace(at="put")})
            case "put" if len(state.catalog) == work.seen:
                yield f"{name}: commits", self._decided(name, state._replace(catalog=(*state.catalog, work.entry)))
            case "put":
                again = work._replace(at="look" if "after a lost slot" in self.rules else "plan")
                yield f"{name}: loses the slot", state._replace(**{name: again._replace(seen=len(state.catalog))})
                if work.first:
                    yield "B: loses the slot and hands the change on", self._handed_on(state)

    def _decided(self, name: str, state: State, verdict: str = "committed") -> State:
        state = state._replace(**{name: Work("done")})
        if name == "handed":
            return state._replace(answer=verdict) if state.own.at == "waiting" else state
        if name == "own" and verdict == "refused" and state.handed_on and "not refused" in self.rules:
            verdict = "unknown"
        return state._replace(client=state.client or verdict)

    def problems(self, state: State) -> Iterator[str]:
        """The violated invariants of a state."""
        if state.catalog.count(CHANGE) + state.catalog.count(NAMELESS) > 1:
            yield "a change is committed twice"
        if state.elsewhere:
            yield "a change is committed to another root"
        if state.client == "committed" and not {CHANGE, NAMELESS} & {*state.catalog}:
            yield "an answer without a commit"
        if state.client == "refused" and not state.sent.at and {CHANGE, NAMELESS} & {*state.catalog}:
            yield "a change that was refused is committed"
        if state.client == "nonsense":
            yield "the answer of another program is passed on"
        if state.client == "limit":
            yield "a change is refused by limits of another server"
        if state.returned:
            yield "a change goes back and forth"
