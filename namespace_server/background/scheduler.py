"""Jobs that a process repeats in the background: when they run, how they end, what they report.

One rule for all jobs:

* Each job has a thread of its own, so one that hangs holds up no other.
* Between two runs it waits for `BackgroundJob.delay()` seconds and up to a tenth more, at random: servers that were
  started together do not all meet at the store. While it waits its thread holds no reference to the job, and ends
  with it.
* What a run raises is logged, and the next run comes. What a run logs itself, and knows to have failed, it returns.
* `stop_soon` has no further run begin, and sets the event that each run is given; a run looks at it between its steps.
  `stop` waits for that, for at most `_PATIENCE` seconds in all: a job that hangs is named in the log, and left behind
  in its daemon thread. So a run must bear that the process ends anywhere in it.
* `states` says of each job how often it ran and failed, when it ended last, and since when it has been running.
"""

from __future__ import annotations

import logging
import random
import threading
import time
import weakref
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from typing import Final, Protocol

from lance_namespace.errors import LanceNamespaceError

from lance_core.errors import LanceCoreError
from namespace_server.observability.observation import JobState

_log = logging.getLogger(__name__)

_PATIENCE: Final = 30.0
"""Seconds that all jobs together are given to end."""
_JITTER: Final = 0.1


class JobResult(Enum):
    """The result of a run. Only the first two are counted."""

    DONE = "done"
    FAILED = "failed"
    """The run has logged why."""
    IDLE = "idle"
    """There was nothing to do."""
    OVER = "over"
    """The job is not to run again, unless it is started again."""


class BackgroundJob(Protocol):
    """Work that is done again and again."""

    @property
    def name(self) -> str:
        """A word or two, for the log and the metrics."""
        ...

    @property
    def at_both_ends(self) -> bool:
        """Whether it also runs when it is started, and a last time when it is stopped. Else it waits first."""
        ...

    def delay(self) -> float:
        """Seconds until the next run."""
        ...

    def run(self, stopping: threading.Event) -> JobResult:
        """Do the work. Ends soon once `stopping` is set; in a last run it is set from the beginning.

        May raise anything.
        """
        ...


class Scheduler:
    """Runs jobs until it is stopped, or dropped. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tasks: dict[str, _RunningJob] = {}
        self._is_stopped = False

    def start(self, job: BackgroundJob) -> None:
        """Run a job from now on. Costs next to nothing if it runs already; does nothing after `stop`."""
        task = self._tasks.get(job.name)
        if task is not None and not task.is_over:
            return
        with self._lock:
            task = self._tasks.get(job.name)
            if not self._is_stopped and (task is None or task.is_over):
                task = self._tasks[job.name] = _RunningJob(job)
                task.thread.start()

    def stop_soon(self, name: str) -> None:
        """Have a job end, if it runs. Does not wait for it."""
        if name in self._tasks:
            self._tasks[name].stopping.set()

    def stop(self) -> None:
        """End all jobs. Returns once they have ended, or after half a minute."""
        with self._lock:
            self._is_stopped = True
            tasks = list(self._tasks.values())
        for task in tasks:
            task.stopping.set()
        deadline = time.monotonic() + _PATIENCE
        for task in tasks:
            task.thread.join(max(0.0, deadline - time.monotonic()))
            if task.thread.is_alive():
                _log.error("%s: did not end within %g s, and is left behind", task.job.name, _PATIENCE)

    def states(self) -> Mapping[str, JobState]:
        """The state of each job that was started, by its name."""
        return {name: task.state for name, task in list(self._tasks.items())}


class _RunningJob:
    """A job, its thread, and what became of it."""

    def __init__(self, job: BackgroundJob) -> None:
        self.job = job
        self.stopping = threading.Event()
        self.is_over = False
        self.state = JobState()
        name = job.name.replace(" ", "-")
        self.thread = threading.Thread(target=_run, args=(weakref.ref(self), self.stopping), name=name, daemon=True)
        weakref.finalize(self, self.stopping.set)

    def run(self) -> bool:
        """Run the job once. Whether it is to run again."""
        self.state = replace(self.state, began_at=time.time())
        try:
            result = self.job.run(self.stopping)
        except Exception as error:  # noqa: BLE001 - the next run comes
            if _is_exiting():  # executors take no more work by then
                return False
            self._log(error)
            result = JobResult.FAILED
        state = replace(self.state, began_at=None)
        if result in {JobResult.DONE, JobResult.FAILED}:
            has_failed = result is JobResult.FAILED
            state = replace(state, runs=state.runs + 1, failures=state.failures + has_failed, ended_at=time.time())
        self.state = state
        self.is_over = result is JobResult.OVER
        return not self.is_over

    def _log(self, error: Exception) -> None:
        if isinstance(error, LanceCoreError | LanceNamespaceError | OSError):
            _log.warning("%s: %s", self.job.name, error)
        elif self.stopping.is_set() and not self.job.at_both_ends:  # what it works with is being closed
            _log.info("%s: ended: %s", self.job.name, error)
        else:
            _log.exception("%s failed", self.job.name)


def _run(reference: weakref.ref[_RunningJob], stopping: threading.Event) -> None:
    """The thread of a job."""
    is_first = True
    while not _is_exiting():
        task = reference()
        if task is None:
            return
        is_last = stopping.is_set()
        if is_last and not task.job.at_both_ends:
            return
        if (not is_first or task.job.at_both_ends) and (not task.run() or is_last):
            return
        is_first = False
        delay = _spread(task.job.delay())
        del task
        stopping.wait(delay)


def _spread(delay: float) -> float:
    return delay * random.uniform(1.0, 1.0 + _JITTER)  # noqa: S311 - no secret


def _is_exiting() -> bool:
    return not threading.main_thread().is_alive()
