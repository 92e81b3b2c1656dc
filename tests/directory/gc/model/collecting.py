"""One table, servers, a slow writer and collectors, one storage call at a time.

Version 1 of the table has the file `a`; version 2 overwrote it with `b`. Every file is dated by the number of files
that were written before it. A horizon is always now: the grace time is zero, so no clock is trusted.
"""

from collections.abc import Iterator
from typing import NamedTuple

RULES = ("horizon flip", "order", "fresh", "live", "kept", "pins", "plan pins", "copy", "claim", "newest")
NEEDS = {"write": "k", "restore": "a", "fresh write": "z"}


class Version(NamedTuple):
    """The content of one catalog version."""

    rows: tuple[tuple[int, frozenset[str]], ...]
    horizon: int
    oldest: int
    pins: frozenset[int]
    batches: frozenset[str]


class Server(NamedTuple):
    """What a server does: `idle`, `planned`, `sent` or `lost`; the base is a catalog version, found a file's date."""

    doing: str = "idle"
    request: str = ""
    base: int = 0
    found: int | None = None
    sent: Version | None = None


class Collector(NamedTuple):
    """What a collector does: `idle`, `marked`, `moved` or `sweeping`, with what it decided."""

    runs: int
    doing: str = "idle"
    horizon_flip: int = 0
    oldest: int = 0
    expires: bool = False
    files: frozenset[str] = frozenset()


class State(NamedTuple):
    """Storage and all processes. `versions` never shrinks: the first `removed` of them are not on storage any more."""

    versions: tuple[Version, ...]
    removed: int
    copies: frozenset[int]
    files: frozenset[tuple[str, int]]
    clock: int
    servers: tuple[Server, ...]
    in_flight: frozenset[tuple[int, Version]]
    requests: frozenset[str]
    writer: str
    collectors: tuple[Collector, ...]
    answered: frozenset[str]
    crashes: int


Steps = Iterator[tuple[str, State]]


class Model:
    """The steps and invariants with some of the rules."""

    def __init__(self, rules: frozenset[str]) -> None:
        self.rules = rules

    def steps(self, state: State) -> Steps:
        """Every step that some process can do."""
        yield from _writer_steps(state)
        for index, server in enumerate(state.servers):
            yield from self._server_steps(state, index, server)
        for slot, version in state.in_flight:
            yield from self._arrivals(state, slot, version)
        for index, collector in enumerate(state.collectors):
            yield from self._collector_steps(state, index, collector)

    def problems(self, state: State) -> Iterator[str]:
        """The violated invariants of a state."""
        newest = state.versions[-1]
        names = {name for name, _ in state.files}
        for number in {*range(newest.oldest, len(state.versions) + 1), *newest.pins}:
            if any(not files <= names for _, files in state.versions[number - 1].rows):
                yield "a kept catalog version names a removed file"
            if number <= state.removed and number not in state.copies:
                yield "a kept catalog version is missing"
        if not state.answered <= newest.batches:
            yield "an acknowledged batch is lost"
        if _is_quiet(state):
            yield from self._after_two_runs(state)

    def _server_steps(self, state: State, index: int, server: Server) -> Steps:
        name = f"server {index}"
        if server.doing == "idle":
            for request in sorted(state.requests):
                found = dict(state.files).get(NEEDS.get(request, ""), None)
                planned = Server("planned", request, len(state.versions), found)
                rest = state._replace(requests=state.requests - {request})
                yield f"{name}: {request}: snapshot {len(state.versions)}", _server(rest, index, planned)
            return
        if server.doing == "planned":
            yield self._send(state, index, server)
        if server.doing == "lost":
            again = Server("planned", server.request, len(state.versions), server.found)
            yield f"{name}: plans {server.request} again", _server(state, index, again)
        if state.crashes:
            crashed = state._replace(crashes=state.crashes - 1)
            yield f"{name}: dies", _server(_ended(crashed, server.request), index, Server())

    def _send(self, state: State, index: int, server: Server) -> tuple[str, State]:
        base = state.versions[server.base - 1]
        if server.request in base.batches:
            done = _ended(state, server.request, answered=True)
            return f"server {index}: {server.request} has a record", _server(done, index, Server())
        version = self.plan(base, server.request, server.found)
        if version is None:
            return f"server {index}: refuses {server.request}", _server(_ended(state, server.request), index, Server())
        sent = server._replace(doing="sent", sent=version)
        flying = state._replace(in_flight=state.in_flight | {(server.base + 1, version)})
        return f"server {index}: sends version {server.base + 1}", _server(flying, index, sent)

    def plan(self, base: Version, request: str, found: int | None) -> Version | None:
        """The version that a batch makes of its base, or None if it is refused."""
        batches = base.batches | {request}
        if request == "pin":
            if "plan pins" in self.rules and base.oldest > 1:
                return None
            return base._replace(pins=base.pins | {1}, batches=batches)
        if found is None:
            return None
        if request == "restore":
            if "live" in self.rules and base.rows[0][0] != 1:
                return None
            files = frozenset("a")
        else:
            if "fresh" in self.rules and found < base.horizon:
                return None
            files = base.rows[-1][1] | {NEEDS[request]}
        return base._replace(rows=(*base.rows, (base.rows[-1][0] + 1, files)), batches=batches)

    def _arrivals(self, state: State, slot: int, version: Version) -> Steps:
        landed = state._replace(in_flight=state.in_flight - {(slot, version)})
        wins = slot == len(state.versions) + 1
        if wins:
            landed = landed._replace(versions=(*state.versions, version))
        # The number of a removed version is free: a put there succeeds. A listing shows that it is not the newest (G7).
        believed = wins or (slot <= state.removed and "newest" not in self.rules)
        for index, server in enumerate(state.servers):
            if server.doing == "sent" and (server.base + 1, server.sent) == (slot, version):
                if believed:
                    answer, after = Server(), _ended(landed, server.request, answered=True)
                else:
                    answer, after = Server("lost", server.request, 0, server.found), landed
                yield f"store: version {slot} {'won' if believed else 'lost'}", _server(after, index, answer)
                return
        yield f"store: a late put of version {slot}", landed

    def _collector_steps(self, state: State, index: int, collector: Collector) -> Steps:
        name = f"collector {index}"
        newest = state.versions[-1]
        if collector.doing == "idle" and collector.runs:
            if copies := {pin for pin in newest.pins if pin > state.removed} - state.copies:
                yield f"{name}: copies pinned versions", state._replace(copies=state.copies | copies)
            yield from self._moves_of_horizon(state, index, collector)
        if collector.doing == "marked":
            oldest = max(collector.oldest, newest.oldest)
            if any(pin < oldest and pin not in state.copies for pin in newest.pins):
                oldest = newest.oldest
            after_flip = self._with_horizon_flip(state, oldest, collector.expires)
            horizon = after_flip.versions[-1].horizon
            files = frozenset(f for f, date in state.files if date < horizon and f in collector.files)
            sweeping = collector._replace(doing="sweeping", oldest=oldest, files=files)
            yield f"{name}: horizon flip after the mark", _collector(after_flip, index, sweeping)
        if collector.doing == "moved":
            needed = self._needed(state.versions[: collector.horizon_flip], collector.oldest)
            horizon = state.versions[collector.horizon_flip - 1].horizon
            files = frozenset(f for f, date in state.files if date < horizon and f not in needed)
            sweeping = collector._replace(doing="sweeping", files=files)
            yield f"{name}: lists and marks", _collector(state, index, sweeping)
        if collector.doing == "sweeping":
            yield from self._sweeps(state, index, collector)

    def _moves_of_horizon(self, state: State, index: int, collector: Collector) -> Steps:
        name = f"collector {index}"
        newest = state.versions[-1]
        after = len(state.versions) + 1
        for oldest in sorted({newest.oldest, after}):
            if "copy" in self.rules and any(pin < oldest and pin not in state.copies for pin in newest.pins):
                continue
            for expires in (False, True) if len(newest.rows) > 1 and newest.rows[0][0] == 1 else (False,):
                does = f"keeps from {oldest}{', expires version 1' if expires else ''}"
                run = Collector(collector.runs - 1, "moved", after, oldest, expires)
                if {"horizon flip", "order"} <= self.rules:
                    after_flip = self._with_horizon_flip(state, oldest, expires)
                    yield f"{name}: horizon flip {after}: {does}", _collector(after_flip, index, run)
                    continue
                needed = self._needed(state.versions, min(oldest, len(state.versions)))
                files = frozenset(f for f, _ in state.files if f not in needed)
                if "horizon flip" in self.rules:
                    marked = run._replace(doing="marked", oldest=min(oldest, len(state.versions)), files=files)
                    yield f"{name}: marks: {does}", _collector(state, index, marked)
                elif not expires and oldest == newest.oldest:
                    sweeping = run._replace(doing="sweeping", files=files)
                    yield f"{name}: marks without a horizon flip", _collector(state, index, sweeping)

    def _with_horizon_flip(self, state: State, oldest: int, expires: bool) -> State:
        newest = state.versions[-1]
        rows = newest.rows[1:] if expires and newest.rows[0][0] == 1 and len(newest.rows) > 1 else newest.rows
        claimed = oldest if "claim" in self.rules else newest.oldest
        horizon_flip = newest._replace(rows=rows, horizon=state.clock, oldest=claimed)
        return state._replace(versions=(*state.versions, horizon_flip))

    def _needed(self, versions: tuple[Version, ...], oldest: int) -> frozenset[str]:
        roots = set(range(oldest, len(versions) + 1)) if "kept" in self.rules else {len(versions)}
        if "pins" in self.rules:
            roots |= versions[-1].pins
        return frozenset(name for root in roots for _, files in versions[root - 1].rows for name in files)

    def _sweeps(self, state: State, index: int, collector: Collector) -> Steps:
        name = f"collector {index}"
        idle = _collector(state, index, Collector(collector.runs))
        there = sorted(collector.files & {file for file, _ in state.files})
        if state.removed < collector.oldest - 1:
            removed = state._replace(removed=collector.oldest - 1)
            yield f"{name}: removes catalog versions below {collector.oldest}", removed
        elif not there:
            yield f"{name}: done", idle
        if there:
            left = frozenset(file for file in state.files if file[0] != there[0])
            yield f"{name}: removes {there[0]}", state._replace(files=left)
        if state.crashes:
            yield f"{name}: dies", idle._replace(crashes=state.crashes - 1)

    def _after_two_runs(self, state: State) -> Iterator[str]:
        """Pins end and two runs follow: exactly what is needed is left, and a fresh batch commits."""
        unpinned = state.versions[-1]._replace(pins=frozenset())
        state = state._replace(versions=(*state.versions[:-1], unpinned), crashes=0)
        for _ in range(2):
            state = state._replace(collectors=(Collector(1),))
            while state.collectors[0] != Collector(0):
                # The last step is the one with the highest oldest version that expires most.
                *_, (_, state) = self._collector_steps(state, 0, state.collectors[0])
        newest = state.versions[-1]
        if {name for name, _ in state.files} != {name for _, files in newest.rows for name in files}:
            yield "garbage is left after two runs"
        if state.removed < newest.oldest - 1:
            yield "catalog versions are left after two runs"
        if self.plan(newest, "fresh write", state.clock) is None:
            yield "a fresh batch is refused"


def initial(requests: str, *, writer: bool, collectors: int, runs: int, crashes: int, servers: int = 2) -> State:
    """Two catalog versions, nothing has begun yet."""
    first = Version(((1, frozenset("a")),), 0, 1, frozenset(), frozenset())
    second = first._replace(rows=(*first.rows, (2, frozenset("b"))))
    return State(
        versions=(first, second),
        removed=0,
        copies=frozenset(),
        files=frozenset({("a", 0), ("b", 1)}),
        clock=2,
        servers=(Server(),) * servers,
        in_flight=frozenset(),
        requests=frozenset(requests.split()),
        writer="starts" if writer else "done",
        collectors=(Collector(runs),) * collectors,
        answered=frozenset(),
        crashes=crashes,
    )


def _writer_steps(state: State) -> Steps:
    if state.writer == "starts":
        files = state.files | {("k", state.clock)}
        yield "writer: writes k", state._replace(writer="wrote", files=files, clock=state.clock + 1)
    if state.writer == "wrote":
        yield "writer: commits", state._replace(writer="waits", requests=state.requests | {"write"})


def _server(state: State, index: int, server: Server) -> State:
    # Servers are alike: their order does not matter.
    servers = sorted((*state.servers[:index], server, *state.servers[index + 1 :]), key=repr)
    return state._replace(servers=tuple(servers))


def _collector(state: State, index: int, collector: Collector) -> State:
    return state._replace(collectors=(*state.collectors[:index], collector, *state.collectors[index + 1 :]))


def _ended(state: State, request: str, *, answered: bool = False) -> State:
    if answered:
        state = state._replace(answered=state.answered | {request})
    return state._replace(writer="done") if request == "write" else state


def _is_quiet(state: State) -> bool:
    idle = all(server.doing == "idle" for server in state.servers)
    idle &= all(collector.doing == "idle" for collector in state.collectors)
    busy = state.in_flight or state.requests or state.writer != "done"
    return idle and not busy
