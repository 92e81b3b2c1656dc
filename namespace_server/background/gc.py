"""Garbage collections of a catalog, each in a process of its own.

It reads the manifests of each table that changed and parses them, which would hold the interpreter of the
server. Its process can be ended at any moment: the next one goes on.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, cast

from lance_core.storage.port import ObjectStore
from namespace_server.background.periods import Periods
from namespace_server.background.scheduler import JobResult
from namespace_server.directory.gc.report import REASONS
from namespace_server.directory.model.root_layout import GC_PERIODS
from namespace_server.observability.observation import SILENT, GarbageCount, GarbageReason, GcRun, Observer
from namespace_server.read_only import NEVER_READ_ONLY

_log = logging.getLogger(__name__)

_LOOK: Final = 600.0
"""Seconds from the start of a server to its first look whether a garbage collection is due, and between two looks."""
_PAUSE: Final = 0.25
"""Seconds between two looks whether a garbage collection under way is to end."""
_LAST_SECONDS: Final = 10.0
"""Seconds that a garbage collection is given to end after SIGTERM; then it is killed."""
NICENESS: Final = 19
"""Of the process of a garbage collection: it gets the processor time that others leave."""
_LAST_WORDS: Final = 2_000


@dataclass(slots=True)
class GarbageCollection:
    """A job that collects garbage once in each period of `interval` seconds, in one of the servers on a root.

    Attributes:
        store: The root of the catalog.
        interval: Length of a period, by the machine's clock.
        arguments: The arguments of the command `gc`.
        environment: Its environment variables, over those of this process. Secrets belong here.
        look: Seconds between two looks whether one is due, and to the first one.
        observer: Gets the result of each garbage collection that ends.
        paused: Whether none is to run now. One that is under way is ended.
    """

    store: ObjectStore
    interval: int
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    look: float = _LOOK
    observer: Observer = SILENT
    paused: Callable[[], bool] = NEVER_READ_ONLY.is_on
    name: ClassVar[str] = "gc"
    at_both_ends: ClassVar[bool] = False
    _periods: Periods = field(init=False)

    def __post_init__(self) -> None:
        self._periods = Periods(self.store, GC_PERIODS, self.interval)

    def delay(self) -> float:
        """See `BackgroundJob`."""
        return self.look

    def run(self, stopping: threading.Event) -> JobResult:
        """Collect, if a period has begun in which no server does; see `BackgroundJob`."""
        if self.paused() or not self._periods.claim():
            return JobResult.IDLE
        return self.collect(stopping)

    def collect(self, stopping: threading.Event) -> JobResult:
        """Collect garbage now, and log the result."""
        began = time.monotonic()
        command = [sys.executable, "-m", "namespace_server", "gc", "--changed", "--json", *self.arguments]
        process = subprocess.Popen(  # noqa: S603 - no shell; the arguments are the server's own settings
            command,
            env=os.environ | dict(self.environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)
        ended = self._await(process, stopping)
        if ended is None:
            return JobResult.IDLE
        output, errors = ended
        report = _parsed(output)
        if report is None:
            _log.warning("gc failed with status %d: %s", process.returncode, errors[-_LAST_WORDS:].strip())
            self.observer.garbage_collection(GcRun(None, time.monotonic() - began))
            return JobResult.FAILED
        self._log_report(report, time.monotonic() - began)
        return JobResult.DONE

    def _log_report(self, report: Mapping[str, Any], seconds: float) -> None:
        removed = {reason: found["files"] for reason, found in report["removed"].items()}
        size = sum(found["size"] for found in report["removed"].values())
        _log.info("gc: removed %s; %d bytes; complete: %s", removed or "nothing", size, report["complete"])
        for location, problem in report["not_judged"].items():
            _log.warning("gc: the table at %s was not judged: %s", location, problem)
        if report["refused"]:
            path, problem = next(iter(report["refused"].items()))
            _log.warning("gc: %d objects were not removed, the first is %s: %s", len(report["refused"]), path, problem)
        young = GarbageCount(report["too_young"]["files"], report["too_young"]["size"])
        self.observer.garbage_collection(
            GcRun(report["complete"], seconds, _by_reason(report["removed"]), young, len(report["not_judged"]))
        )

    def _await(self, process: subprocess.Popen[str], stopping: threading.Event) -> tuple[str, str] | None:
        """Output and errors of a garbage collection; None if it was ended because none is to run now."""
        while True:
            try:
                return process.communicate(timeout=_PAUSE)
            except subprocess.TimeoutExpired:
                if not stopping.is_set() and not self.paused():
                    continue
            if not stopping.is_set():
                _log.info("gc: ended, the server is read-only; the next one goes on")
            process.terminate()
            try:
                process.communicate(timeout=_LAST_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
            return None


def _by_reason(removed: Mapping[str, Mapping[str, int]]) -> dict[GarbageReason, GarbageCount]:
    """What a report says was removed, by the words of metrics."""
    found: dict[GarbageReason, GarbageCount] = {}
    for text, total in removed.items():
        reason = REASONS.get(text, "other")
        before = found.get(reason, GarbageCount())
        found[reason] = GarbageCount(before.files + total["files"], before.size + total["size"])
    return found


def _parsed(output: str) -> dict[str, Any] | None:
    """The report of a garbage collection; None if its process died before it was written as a whole."""
    try:
        return cast("dict[str, Any]", json.loads(output))
    except ValueError:
        return None
