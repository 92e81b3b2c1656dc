"""Staging jobs of a graph write, side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait

from spark_catalog.errors import StagingFailed
from spark_catalog.results import StagedTable
from spark_catalog.table_write import Staged, TableWrite


class StagingJobs:
    """Threads that run staging jobs, `parallelism` at a time. `progress` is called in these threads."""

    def __init__(self, parallelism: int, progress: Callable[[StagedTable], None] | None) -> None:
        self._pool = ThreadPoolExecutor(max(1, parallelism), thread_name_prefix="graph-write")
        self._progress = progress

    def submit(self, write: TableWrite, job: Callable[[], Staged]) -> None:
        """Start a job and add it to the jobs of the table."""

        def run() -> Staged:
            staged = job()
            if self._progress is not None:
                name, files = write.target.name, len(staged.files)
                self._progress(StagedTable(name, write.change, staged.rows, files, staged.seconds))
            return staged

        write.jobs.append(self._pool.submit(run))

    def close(self) -> None:
        """End the threads when their jobs are done."""
        self._pool.shutdown()


def await_jobs(writes: Iterable[TableWrite]) -> None:
    """Wait for all jobs. Raises `StagingFailed` if any failed."""
    jobs = {job: write for write in writes for job in write.jobs}
    wait(jobs)
    failures = {write.target.name: error for job, write in jobs.items() if (error := job.exception()) is not None}
    if failures:
        raise StagingFailed(failures) from next(iter(failures.values()))


def cancel_jobs(writes: Iterable[TableWrite]) -> None:
    """Cancel the jobs that have not started, and wait for the others."""
    jobs = [job for write in writes for job in write.jobs]
    for job in jobs:
        job.cancel()
    wait(jobs)
