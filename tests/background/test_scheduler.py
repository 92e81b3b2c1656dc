"""Jobs run again and again, end when they are told to, and hold up neither each other nor the end of the process."""

from __future__ import annotations

import gc
import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from lance_core.errors import StorageError
from namespace_server.background import scheduler as scheduler_module
from namespace_server.background.scheduler import JobResult, Scheduler

HOUR = 3_600.0


@dataclass
class Counted:
    """A job that counts its runs, and does `work` in each."""

    name: str = "counted"
    pause: float = 0.001
    at_both_ends: bool = False
    work: Callable[[threading.Event], JobResult] = lambda _: JobResult.DONE
    runs: int = 0
    ran: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def delay(self) -> float:
        return self.pause

    def run(self, stopping: threading.Event) -> JobResult:
        self.runs += 1
        try:
            return self.work(stopping)
        finally:
            self.ran.release()

    def await_runs(self, count: int) -> None:
        for _ in range(count):
            assert self.ran.acquire(timeout=30)


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    made = Scheduler()
    yield made
    made.stop()


def test_a_job_runs_again_and_again_until_the_stop(scheduler: Scheduler) -> None:
    job = Counted()
    scheduler.start(job)
    scheduler.start(job)
    job.await_runs(3)
    scheduler.stop()
    runs = job.runs
    scheduler.start(job)
    scheduler.start(Counted("late"))
    assert [thread for thread in threading.enumerate() if thread.name in {"counted", "late"}] == []
    assert job.runs == runs
    state = scheduler.states()["counted"]
    assert (state.runs, state.failures, state.began_at) == (runs, 0, None)
    assert state.ended_at is not None
    assert abs(state.ended_at - time.time()) < 60


def test_a_stop_ends_a_job_that_waits_and_lets_one_run_a_last_time(scheduler: Scheduler) -> None:
    last: list[bool] = []

    def note(stopping: threading.Event) -> JobResult:
        last.append(stopping.is_set())
        return JobResult.DONE

    waiting, eager = Counted("waiting", HOUR), Counted("eager", HOUR, at_both_ends=True, work=note)
    scheduler.start(waiting)
    scheduler.start(eager)
    eager.await_runs(1)
    began = time.monotonic()
    scheduler.stop()
    assert time.monotonic() - began < 10
    assert (waiting.runs, last) == (0, [False, True])


def test_a_job_is_told_to_end_without_a_wait(scheduler: Scheduler) -> None:
    """The run that is under way sees it; the other job goes on."""

    def until_told(stopping: threading.Event) -> JobResult:
        assert stopping.wait(30)
        return JobResult.DONE

    told, other = Counted("told", work=until_told), Counted("other")
    scheduler.start(told)
    scheduler.start(other)
    while not told.runs:
        time.sleep(0.001)
    scheduler.stop_soon("told")
    scheduler.stop_soon("none of this name")
    told.await_runs(1)
    before = other.runs
    other.await_runs(before + 2)
    assert told.runs == 1


def test_a_failure_is_logged_and_counted_and_the_next_run_comes(
    scheduler: Scheduler, caplog: pytest.LogCaptureFixture
) -> None:
    failures: list[Exception] = [StorageError("no such bucket"), RuntimeError("broken")]

    def fail(_: threading.Event) -> JobResult:
        if failures:
            raise failures.pop(0)
        return JobResult.IDLE

    job = Counted(work=fail)
    scheduler.start(job)
    job.await_runs(4)
    scheduler.stop()
    assert [(record.getMessage(), record.exc_info is not None) for record in caplog.records] == [
        ("counted: no such bucket", False),
        ("counted failed", True),
    ]
    state = scheduler.states()["counted"]
    assert (state.runs, state.failures) == (2, 2)  # runs without anything to do are not counted


def test_what_fails_when_its_ground_is_closed_is_no_error(
    scheduler: Scheduler, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(stopping: threading.Event) -> JobResult:
        stopping.wait(30)
        raise RuntimeError("cannot schedule new futures after shutdown")

    job = Counted(work=fail)
    scheduler.start(job)
    while not job.runs:
        time.sleep(0.001)
    with caplog.at_level(logging.WARNING):
        scheduler.stop()
    assert not caplog.records


def test_a_job_that_hangs_holds_up_no_other_and_no_stop_for_ever(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(scheduler_module, "_PATIENCE", 0.2)
    release = threading.Event()

    def hang(_: threading.Event) -> JobResult:
        release.wait(60)
        return JobResult.DONE

    hanging, other = Counted("hanging", work=hang), Counted("other")
    scheduler.start(hanging)
    scheduler.start(other)
    other.await_runs(3)
    assert scheduler.states()["hanging"].began_at is not None
    began = time.monotonic()
    scheduler.stop()
    assert time.monotonic() - began < 10
    assert caplog.messages == ["hanging: did not end within 0.2 s, and is left behind"]
    [thread] = [thread for thread in threading.enumerate() if thread.name == "hanging"]
    assert thread.daemon
    release.set()
    thread.join(30)
    assert hanging.runs == 1


def test_a_job_that_is_over_runs_once_it_is_started_again(scheduler: Scheduler) -> None:
    job = Counted(work=lambda _: JobResult.OVER)
    scheduler.start(job)
    job.await_runs(1)
    while [thread for thread in threading.enumerate() if thread.name == "counted"]:
        time.sleep(0.001)
    assert job.runs == 1
    scheduler.start(job)
    job.await_runs(1)
    assert job.runs == 2


def test_servers_that_start_together_do_not_meet_each_time() -> None:
    waits = [scheduler_module._spread(10.0) for _ in range(100)]
    assert len(set(waits)) > 10
    assert min(waits) >= 10
    assert max(waits) <= 11


def test_a_dropped_scheduler_ends_its_jobs() -> None:
    made = Scheduler()
    made.start(Counted("dropped", HOUR))
    [thread] = [thread for thread in threading.enumerate() if thread.name == "dropped"]
    del made
    gc.collect()
    thread.join(10)
    assert not thread.is_alive()


def test_what_fails_because_the_process_ends_is_not_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_: threading.Event) -> JobResult:
        raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    monkeypatch.setattr(scheduler_module, "_is_exiting", lambda: True)
    assert not scheduler_module._RunningJob(Counted(work=refuse)).run()
    assert not caplog.records
