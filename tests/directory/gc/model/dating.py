"""The end of a lease, as a pin, counts from the store's dates of catalog versions (G30).

A writer whose clock is behind sets a lease for a time, in a version of the catalog. A run lists the versions, takes the
time, and moves the horizon; then the lowest version that it listed goes, never the newest. The store may date one
version wrongly, before others. The window of a dropped table begins in the same way.
"""

from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

RULES = ("dates of the store", "set after the list", "dates that go back", "dated once")
LASTS, BEHIND, LAST = 2, 4, 6
"""For how long the lease is set, how far the clock of its writer is behind, and the last time."""


class Lease(NamedTuple):
    """When it was set in truth, in which version, and its end as its row has it; `dated` by the store."""

    set_at: int
    version: int
    until: int
    dated: bool = False


class State(NamedTuple):
    """The clock, the dates of the versions that are there by number, the lease, and what the run knows.

    `met` is the time of the horizon flip that dated the lease.
    """

    clock: int = BEHIND - 2
    dates: tuple[tuple[int, int], ...] = ((1, BEHIND - 2),)
    jumps: int = 1
    lease: Lease | None = None
    met: int | None = None
    run: str = "begins"
    listed: tuple[tuple[int, int], ...] = ()
    time: int = 0
    early: bool = False
    late: bool = False


class Model:
    """The steps and invariants with some of the rules."""

    def __init__(self, rules: frozenset[str]) -> None:
        self.rules = rules

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """Every step that some process can do."""
        if state.clock < LAST:
            yield f"the clock shows {state.clock + 1}", state._replace(clock=state.clock + 1)
        if state.dates[-1][0] < 4:
            number = state.dates[-1][0] + 1
            for date in {state.clock, 0} if state.jumps else {state.clock}:
                after = state._replace(dates=(*state.dates, (number, date)), jumps=state.jumps - (date != state.clock))
                yield f"a commit, dated {date}", after
                if state.lease is None and state.met is None:
                    lease = Lease(state.clock, number, state.clock - BEHIND + LASTS)
                    yield f"the lease is set, dated {date}", after._replace(lease=lease)
        yield from self._run(state)

    def _run(self, state: State) -> Iterator[tuple[str, State]]:
        match state.run:
            case "begins":
                yield "run: lists the versions", state._replace(run="listed", listed=state.dates)
            case "listed":
                yield "run: takes the time", state._replace(run="horizon flips", time=state.clock)
            case "horizon flips":
                yield "run: moves the horizon", self._with_horizon_flip(state)._replace(run="moved")
            case "moved":
                goes = state.listed[0] if len(state.listed) > 1 else None
                left = tuple(each for each in state.dates if each != goes)
                name = "run: ends" if goes is None else "run: the lowest version goes"
                yield name, state._replace(run="begins", dates=left, listed=())

    def _with_horizon_flip(self, state: State) -> State:
        """The state after a horizon flip, which dates the lease and ends it if its time is over."""
        lease = state.lease
        if lease is None:
            return state
        met = state.met
        if "dates of the store" in self.rules and not (lease.dated and "dated once" in self.rules):
            is_listed = lease.version <= state.listed[-1][0]
            lease = lease._replace(until=self._latest(state, lease.version) + LASTS, dated=is_listed)
            met = state.time if is_listed and met is None else met
        if lease.until < state.time:
            return state._replace(lease=None, met=met, early=state.time < lease.set_at + LASTS)
        return state._replace(lease=lease, met=met, late=met is not None and lease.until > met + LASTS)

    def _latest(self, state: State, version: int) -> int:
        """The latest time at which a version may have been written, by the versions that were listed."""
        highest = accumulate((date for _, date in state.listed), max)
        goes_back = "dates that go back" not in self.rules
        for (number, date), high in zip(state.listed, highest, strict=True):
            if number >= version and (goes_back or date == high):
                return min(date, state.time)
        return state.time if "set after the list" in self.rules else min(state.listed[-1][1], state.time)

    def problems(self, state: State) -> Iterator[str]:
        """The violated invariants of a state."""
        if state.early:
            yield "a lease ends before its time"
        if state.late:
            yield "a lease is lengthened by each run"
