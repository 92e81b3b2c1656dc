"""A job registers an intent, writes a file, and commits late; its lease ends; collectors come between (G4, G11, G12).

The horizon is always now. The job may write before it is registered, and its registration and its commit are held
between plan and put. The batch ends the intent in its flip.
"""

from collections.abc import Iterator
from typing import NamedTuple

RULES = ("since", "renewed since", "held", "effective", "lease by flip")
_END_OF_TIME = 2


class Intent(NamedTuple):
    """The row of an intent: from when on the location is kept, and whether its time is over."""

    since: int
    is_over: bool = False


class Catalog(NamedTuple):
    """What the newest version of the catalog says. `number` grows with each flip."""

    number: int = 1
    horizon: int = 0
    intent: Intent | None = None
    committed: bool = False


class Sent(NamedTuple):
    """A flip that is on its way: the snapshot that it was planned on, and what it makes of it."""

    base: int
    made: Catalog


class Collector(NamedTuple):
    """A run: what it does next, and before which date files go."""

    doing: str = "idle"
    cutoff: int = 0
    sent: Sent | None = None


class State(NamedTuple):
    """One moment. `written` is the date of the job's file, `found` the one that its commit saw."""

    now: int = 0
    catalog: Catalog = Catalog()
    asked: int = 2
    registration: Sent | None = None
    written: int | None = None
    removed: bool = False
    found: int | None = None
    commit: Sent | None = None
    refused: str = ""
    collectors: tuple[Collector, ...] = (Collector(), Collector())


class Model:
    """The steps and invariants with some of the rules."""

    def __init__(self, rules: frozenset[str]) -> None:
        self.rules = rules

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """Every step that some process can do."""
        if state.now < _END_OF_TIME:
            yield "a second passes", state._replace(now=state.now + 1)
        intent = state.catalog.intent
        if intent is not None and not intent.is_over:
            over = state.catalog._replace(intent=intent._replace(is_over=True))
            yield "the time of the intent is over", state._replace(catalog=over)
        yield from self._job_steps(state)
        for index, collector in enumerate(state.collectors):
            yield from self._collector_steps(state, index, collector)

    def problems(self, state: State) -> Iterator[str]:
        """The violated invariants of a state."""
        catalog = state.catalog
        if catalog.committed and state.removed:
            yield "an acknowledged batch names a removed file"
        if state.refused == "registered":
            yield "a registered job is refused"
        if state.removed and not catalog.committed and _is_kept(catalog.intent, state.written):
            yield "a file of a registered job is removed"

    def effective(self, catalog: Catalog) -> int:
        """The horizon of the location by this version."""
        return catalog.horizon if catalog.intent is None else min(catalog.horizon, catalog.intent.since)

    def _job_steps(self, state: State) -> Iterator[tuple[str, State]]:
        catalog = state.catalog
        if state.asked and state.registration is None and not catalog.committed:
            sent = Sent(catalog.number, self._registered(catalog))
            yield "job: sends its registration", state._replace(asked=state.asked - 1, registration=sent)
        if state.registration is not None:
            base, made = state.registration
            if base == catalog.number:
                yield "job: is registered", state._replace(registration=None, catalog=made)
            elif catalog.committed:
                yield "job: is done, and does not register", state._replace(registration=None)
            else:
                again = Sent(catalog.number, self._planned_again(made, catalog))
                yield "job: its registration is planned again", state._replace(registration=again)
        if state.written is None:
            yield "job: writes its file", state._replace(written=state.now)
        elif state.found is None and not state.removed and not state.refused:
            yield "job: sees its file", state._replace(found=state.written)
        if state.found is not None and not catalog.committed and not state.refused:
            if state.commit is None:
                yield "job: plans its batch", self._planned(state, state.found)
            elif state.commit.base == catalog.number:
                yield "job: commits", state._replace(commit=None, catalog=state.commit.made)
            else:
                yield "job: its flip is lost", state._replace(commit=None)

    def _registered(self, catalog: Catalog) -> Catalog:
        since = catalog.horizon if "since" in self.rules else 0
        before = catalog.intent
        if before is not None:
            since = min(since, before.since) if "renewed since" in self.rules else 0
        return catalog._replace(number=catalog.number + 1, intent=Intent(since))

    def _planned_again(self, made: Catalog, catalog: Catalog) -> Catalog:
        """On a newer snapshot; without the rule the intent begins when the job asked."""
        if "since" in self.rules:
            return self._registered(catalog)
        return catalog._replace(number=catalog.number + 1, intent=made.intent)

    def _planned(self, state: State, found: int) -> State:
        catalog = state.catalog
        horizon = self.effective(catalog) if "effective" in self.rules else catalog.horizon
        if found < horizon:
            return state._replace(refused="registered" if _is_kept(catalog.intent, found) else "too old")
        made = catalog._replace(number=catalog.number + 1, intent=None, committed=True)
        return state._replace(commit=Sent(catalog.number, made))

    def _collector_steps(self, state: State, index: int, collector: Collector) -> Iterator[tuple[str, State]]:
        name, catalog = f"collector {index}", state.catalog

        def becomes(**changes: object) -> State:
            after = collector._replace(**changes)  # type: ignore[arg-type]
            return state._replace(
                collectors=tuple(after if at == index else each for at, each in enumerate(state.collectors))
            )

        if collector.doing == "idle":
            yield (
                f"{name}: plans its horizon flip",
                becomes(doing="moving the horizon", sent=Sent(catalog.number, self._horizon_flip(state))),
            )
        if collector.doing == "moving the horizon" and collector.sent is not None:
            base, made = collector.sent
            if base != catalog.number:
                yield (
                    f"{name}: plans its horizon flip again",
                    becomes(sent=Sent(catalog.number, self._horizon_flip(state))),
                )
            else:
                after = becomes(doing="moved", cutoff=self._cutoff(made), sent=None)
                yield f"{name}: horizon flip", after._replace(catalog=made)
        if collector.doing == "moved":
            listed = state.written is not None and state.written < collector.cutoff and not state.removed
            yield f"{name}: lists", becomes(doing="listed" if listed else "done")
        if collector.doing == "listed":
            yield f"{name}: reads what is named", becomes(doing="done" if catalog.committed else "removing")
        if collector.doing == "removing":
            yield f"{name}: removes", becomes(doing="done")._replace(removed=True)

    def _horizon_flip(self, state: State) -> Catalog:
        catalog, intent = state.catalog, state.catalog.intent
        ends = "lease by flip" in self.rules and intent is not None and intent.is_over
        return Catalog(catalog.number + 1, max(catalog.horizon, state.now), None if ends else intent, catalog.committed)

    def _cutoff(self, after_flip: Catalog) -> int:
        """Before which date files go, by the version of the horizon flip; without the rule it compares clocks."""
        is_over = "lease by flip" not in self.rules and after_flip.intent is not None and after_flip.intent.is_over
        return after_flip.horizon if "held" not in self.rules or is_over else self.effective(after_flip)


def _is_kept(intent: Intent | None, written: int | None) -> bool:
    return intent is not None and written is not None and written >= intent.since
