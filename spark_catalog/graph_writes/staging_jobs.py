"""Staging jobs of a graph write, side by side."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context

from namespace_client.tracing import span
from spark_catalog.errors import StagingFailed
from spark_catalog.graph_writes.results import Change, StagedTable
from spark_catalog.graph_writes.table_calls import Staged, TableCalls


class StagingJobs:
    """Threads that run staging jobs, `parallelism` at a time, in order. `progress` is called in these threads.

    A job is part of the trace of the thread that submits it.
    """

    def __init__(self, parallelism: int, progress: Callable[[StagedTable], None] | None) -> None:
        self._pool = ThreadPoolExecutor(max(1, parallelism), thread_name_prefix="graph-write")
        self._progress = progress

    def submit(self, name: str, change: Change, job: Callable[[], tuple[Staged, ...]]) -> Future[tuple[Staged, ...]]:
        """Start a job for a table."""

        def run() -> tuple[Staged, ...]:
            with span(f"stage {change}"):
                staged = job()
            if self._progress is not None:
                rows, files = staged[-1].rows, sum(len(part.files) for part in staged)
                self._progress(StagedTable(name, change, rows, files, sum(part.seconds for part in staged)))
            return staged

        return self._pool.submit(copy_context().run, run)

    def close(self) -> None:
        """End the threads when their jobs are done."""
        self._pool.shutdown()


def await_jobs(writes: Collection[TableCalls]) -> None:
    """Wait for all jobs. Raises `StagingFailed` if any failed, with the first failure of each table."""
    jobs = [(write.name, call.job) for write in writes for call in write.calls]
    wait([job for _, job in jobs])
    failures: dict[str, BaseException] = {}
    for name, job in jobs:
        error = job.exception()
        if error is not None:
            failures.setdefault(name, error)
    if failures:
        raise StagingFailed(failures) from next(iter(failures.values()))


def cancel_jobs(writes: Iterable[TableCalls]) -> None:
    """Cancel the jobs that have not started, and wait for the others."""
    jobs = [call.job for write in writes for call in write.calls]
    for job in reversed(jobs):
        job.cancel()
    wait(jobs)
