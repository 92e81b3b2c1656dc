"""One check of a root: the order of the probes, the clean-up, and the report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from operator import itemgetter
from typing import Final, TypeVar

from lance_core.errors import StorageError
from lance_core.storage.port import ObjectStore
from namespace_server.directory.root_check.catalog import look_at_catalog
from namespace_server.directory.root_check.exclusive_writes import check_exclusion, check_replacement
from namespace_server.directory.root_check.probes import (
    check_access,
    check_conditional_delete,
    check_copy,
    check_listing,
    check_place,
    check_reads,
)
from namespace_server.directory.root_check.report import RootFinding, RootReport, told_by
from namespace_server.directory.root_check.speed import Timing, clock_offset, measure
from namespace_server.directory.root_check.workspace import Workspace
from namespace_server.observability.observation import Progress, no_progress

T = TypeVar("T")

_LARGEST_OFFSET: Final = 5.0
"""Seconds."""

_PROBES: Final = {
    "conditional writes": check_exclusion,
    "replacements": check_replacement,
    "reads": check_reads,
    "listings": check_listing,
    "conditional deletes": check_conditional_delete,
    "copies": check_copy,
}


@dataclass(slots=True)
class RootCheck:
    """Checks whether `store` can be the root of a catalog.

    Writes small objects in a new directory below `_staging/`, and removes them at the end, also after an error or an
    interrupt. Reads the newest manifest of a catalog that is there, and nothing else. Servers may go on. About 100
    requests in sequence and 500 in all.

    Attributes:
        store: The root.
        progress: Called with the name of each check.
        now: Returns the time.
        slow: The median time of requests in seconds from which they are a finding.
    """

    store: ObjectStore
    progress: Progress = no_progress
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    slow: float = 0.5
    _findings: list[RootFinding] = field(default_factory=list, init=False)

    def check(self) -> RootReport:
        """The report. Raises nothing but interrupts: a store that fails is a finding."""
        self._findings = list(check_place(self.store))
        if self._findings:
            return RootReport(self.store.uri, checked=False, findings=tuple(self._findings))
        work = Workspace(self.store)
        try:
            report = self._look(work)
        finally:
            left = work.clear()
        if left and all(finding.code != "unreachable" for finding in self._findings):
            text = f"expected that all objects of the check are removed; below {work.directory} {len(left)} stayed"
            self._findings.append(RootFinding("left-behind", text))
        return replace(report, findings=tuple(self._findings))

    def _look(self, work: Workspace) -> RootReport:
        """The report, without the findings."""
        store = self.store
        report = RootReport(store.uri, checked=True, findings=())
        self._probe("permissions", partial(check_access, store, work))
        if any(finding.fails for finding in self._findings):
            return report
        for what, probe in _PROBES.items():
            self._probe(what, partial(probe, store, work))
        timings: Mapping[str, Timing] = {}
        if not any(finding.fails for finding in self._findings):
            timings = self._attempt("times of requests", partial(measure, store, work)) or {}
        offset = self._attempt("clocks", partial(clock_offset, store, work.key("clock"), self.now))
        found = self._attempt("the catalog", partial(look_at_catalog, store))
        catalog, findings = found or (None, [])
        self._findings += [*findings, *self._slow(timings), *_apart(offset)]
        return replace(report, timings=timings, clock_offset=offset, catalog=catalog)

    def _probe(self, what: str, probe: Callable[[], Iterable[RootFinding]]) -> None:
        self._findings += self._attempt(what, lambda: list(probe())) or []

    def _attempt(self, what: str, look: Callable[[], T]) -> T | None:
        """The result of a look; None, and a finding, where the store fails."""
        self.progress(what)
        try:
            return look()
        except StorageError as error:
            text = f"{what}: expected an answer of the store, found {told_by(error)}"
            self._findings.append(RootFinding("check-failed", text))
            return None

    def _slow(self, timings: Mapping[str, Timing]) -> Iterator[RootFinding]:
        slow = {name: timing.median for name, timing in timings.items() if timing.median > self.slow}
        if slow:
            name, seconds = max(slow.items(), key=itemgetter(1))
            yield RootFinding("slow", f"expected requests of at most {self.slow} s, found {seconds:.2f} s for {name}")


def _apart(offset: float | None) -> Iterator[RootFinding]:
    if offset is not None and abs(offset) > _LARGEST_OFFSET:
        side = "ahead of" if offset > 0 else "behind"
        text = f"expected at most {_LARGEST_OFFSET:.0f} s between the clocks, found the store's {abs(offset):,.0f} s"
        yield RootFinding("clock-off", f"{text} {side} this machine's")
