"""The life of a graph write: it begins, runs the staging jobs of its calls, checks the graph, and commits once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from dataclasses import replace
from datetime import timedelta
from types import TracebackType
from typing import Self

import pyarrow as pa
from pyspark.sql import SparkSession

from namespace_client.http import CatalogServer
from namespace_client.staged_transaction import INTENT_AFTER, Isolation, StagedTransaction
from namespace_client.tracing import span
from spark_catalog.errors import InvalidWrite, ServerUnreachable, StagingFailed, WriteRejected
from spark_catalog.graph import Graph
from spark_catalog.graph_writes.calls.columns import MergedSchema
from spark_catalog.graph_writes.checks import Level, run_checks
from spark_catalog.graph_writes.graph_tables import GraphTables
from spark_catalog.graph_writes.results import (
    Change,
    GraphPreview,
    GraphTableResult,
    GraphWriteResult,
    Phase,
    PreviewedTable,
    StagedTable,
)
from spark_catalog.graph_writes.table_calls import Job, Staged, TableCall, TableCalls
from spark_catalog.tasks.staging import DRIVER_BYTES, FILE_BYTES, FILE_ROWS, StageTarget, discard_files
from table_data import staging


class GraphWriteLifecycle:
    """A write without calls; `GraphWrite` adds them, and describes the arguments. One thread at a time may call it."""

    def __init__(
        self,
        spark: SparkSession,
        server: CatalogServer | str,
        *,
        namespace: Sequence[str],
        graph: Graph | None = None,
        message: str | None = None,
        check: Level = "batch",
        isolation: Isolation = "snapshot",
        storage_options: Mapping[str, str] | None = None,
        parallelism: int = 4,
        progress: Callable[[StagedTable], None] | None = None,
        phases: Callable[[Phase], None] | None = None,
        max_rows_per_file: int = FILE_ROWS,
        target_file_bytes: int = FILE_BYTES,
        driver_bytes: int = DRIVER_BYTES,
        intent_after: timedelta | None = INTENT_AFTER,
    ) -> None:
        self._spark = spark
        self._check = check
        self._parallelism = parallelism
        self._progress = progress
        self._phases = phases
        self._driver_bytes = driver_bytes
        connection = server if isinstance(server, CatalogServer) else CatalogServer(server)
        self._own_server = None if connection is server else connection
        settings = StageTarget(
            "",
            "",
            pa.schema([]),
            storage_options=dict(storage_options or {}),
            max_rows_per_file=max_rows_per_file,
            max_bytes_per_file=target_file_bytes,
        )
        self._tables = GraphTables(
            connection,
            namespace=namespace,
            graph=graph,
            target=settings,
            message=message,
            isolation=isolation,
            intent_after=intent_after,
        )
        self._transaction = self._tables.transaction
        self._lock = threading.Lock()
        self._jobs: StagingJobs | None = None
        self._span = ExitStack()
        self._started = 0.0
        self._milliseconds: dict[str, float] = {}
        self._sent = False
        self._result: GraphWriteResult | None = None

    # -- the block

    def __enter__(self) -> Self:
        self._transaction.__enter__()
        self._span.enter_context(span("graph write"))
        self._started = time.perf_counter()
        self._jobs = StagingJobs(self._parallelism, self._progress)
        self._enter_phase("stage")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is not None:
                self._discard(error)
            else:
                self._finish()
        except BaseException as failure:
            self._span.__exit__(type(failure), failure, failure.__traceback__)
            raise
        else:
            self._span.__exit__(kind, error, trace)
        finally:
            self._close()

    @property
    def result(self) -> GraphWriteResult:
        """The committed write. Raises `InvalidWrite` before the commit, and if there was none."""
        if self._result is None:
            raise InvalidWrite("this write has not been published")
        return self._result

    @property
    def idempotency_key(self) -> str:
        """The key of the batch, the same for every time that it is sent."""
        return self._transaction.idempotency_key

    @property
    def transaction(self) -> StagedTransaction:
        """The transaction that commits the write. Operations staged with it inside the block are part of the batch."""
        return self._transaction

    def resend(self) -> GraphWriteResult:
        """Send the same batch again under the same key after `WriteUnknown`. The server applies it at most once.

        Nothing is deleted even if the server refuses this request, since an earlier one may still commit.

        Returns:
            The committed write.

        Raises:
            InvalidWrite: There is no batch of unknown outcome.
            WriteRejected: The server refused this request.
            WriteUnknown: The outcome is still unknown.
            ServerUnreachable: This request was not sent.
        """
        if not self._sent or self._result is not None:
            raise InvalidWrite("nothing to send again")
        self._publish(self._transaction.resend)
        self._conclude()
        self._close()
        return self.result

    def preview(self) -> GraphPreview:
        """Wait for all jobs so far and check the graph, without committing. More calls may follow.

        Returns:
            The tables as the write would leave them, and the checks that passed.

        Raises:
            InvalidWrite: The write is not inside of its block.
            StagingFailed: A staging job failed.
            GraphCheckFailed: Keys or end points break a rule of the graph.
        """
        with self._lock:
            self._require_jobs()
        checks, _ = self._apply_and_check()
        tables = {
            name: PreviewedTable(
                name,
                tuple(call.text for call in write.calls),
                write.rows,
                write.row_count,
                len(write.files),
                write.changes.state.version,
            )
            for name, write in self._tables.writes.items()
        }
        return GraphPreview(tables, checks)

    # -- one call

    def _require_jobs(self) -> StagingJobs:
        if self._jobs is None:
            raise InvalidWrite("rows are staged inside the `with` block of a GraphWrite")
        return self._jobs

    def _start(
        self,
        write: TableCalls,
        change: Change,
        text: str,
        job: Job,
        *,
        merged: MergedSchema | None = None,
        replacement: StageTarget | None = None,
        reads: bool = False,
        loses_rows: bool = False,
    ) -> TableCall:
        """Start the staging job of a call.

        Args:
            write: The table.
            change: Change that the call makes.
            text: The call, for results and conflicts.
            job: What the job does, given where rows are staged.
            merged: Schema of the table with columns that the call adds.
            replacement: Where and how the rows of the whole table are staged.
            reads: Whether the job depends on the calls before it.
            loses_rows: Whether keys of the table may go.
        """
        before = len(write.calls)
        schema = merged.schema if merged is not None else write.schema
        filled = merged.filled if merged is not None else ()
        added = merged.added if merged is not None else ()
        ready = None if reads or added else replacement or write.append_target

        def run() -> tuple[Staged, ...]:
            if ready is not None:
                return job(replace(ready, filled=filled))
            write.apply(before)
            if added:
                self._add_columns(write, added)
            return job(replace(write.head_target(schema), filled=filled))

        call = TableCall(
            change,
            text,
            self._require_jobs().submit(write.name, change, run),
            replacement.schema if replacement is not None else schema,
            loses_rows=loses_rows,
        )
        write.calls.append(call)
        if replacement is not None:
            write.append_target = replacement
        elif added:
            write.append_target = None
        self._tables.writes[write.name] = write
        return call

    def _add_columns(self, write: TableCalls, added: Sequence[pa.Field]) -> None:
        """Add columns of nulls, for which no file is written."""
        manifest = write.changes.require_head().manifest
        operation = staging.stage_columns(write.changes.dataset(), manifest, pa.schema(added), None)
        self._tables.transaction.apply(write.changes, operation, f"add {', '.join(item.name for item in added)}")

    # -- leaving the block

    def _apply_and_check(self) -> tuple[tuple[str, ...], list[str]]:
        """Wait for all jobs and check the graph.

        Returns the checks that passed, and the names of the existing tables that were written or read.
        """
        await_jobs(self._tables.writes.values())
        for write in self._tables.writes.values():
            write.apply()
        self._milliseconds["stage"] = (time.perf_counter() - self._started) * 1000
        with self._timed("check"):
            checks, read = self._tables.plan_checks(self._check)
            run_checks(self._spark, checks, parallelism=self._parallelism)
        return tuple(f"{check.table}: {check.rule}" for check in checks), read

    def _finish(self) -> None:
        try:
            _, read = self._apply_and_check()
            for name in read:
                self._transaction.mark_read(self._tables.id(name))
        except BaseException as error:
            self._discard(error)
            raise
        self._sent = True
        try:
            self._publish(self._transaction.commit)
        except (WriteRejected, ServerUnreachable) as error:  # after other errors the batch may have committed
            self._sent = False
            self._discard(error)
            raise
        self._conclude()

    def _publish(self, send: Callable[[], object]) -> None:
        with self._timed("publish"):
            send()

    def _conclude(self) -> None:
        """Make the result of a committed batch, and remove the files that it does not name."""
        committed = self._transaction.result
        changed = {table.id: table for table in committed.tables}
        tables = {}
        left: list[str] = []
        for name, write in self._tables.writes.items():
            table = changed.get(self._tables.id(name))
            version = table.version if table is not None else write.changes.state.version
            tables[name] = GraphTableResult(
                name,
                write.calls[0].change,
                version,
                write.rows,
                table.rebased if table is not None else False,
                write.new,
                tuple(call.text for call in write.calls),
                len(write.files),
                write.seconds * 1000,
            )
            left += _remove(write, write.superseded_files(), never_published=False)
        self._result = GraphWriteResult(
            committed.transaction_id, committed.catalog_version, tables, dict(self._milliseconds), tuple(left)
        )

    @contextmanager
    def _timed(self, phase: Phase) -> Iterator[None]:
        self._enter_phase(phase)
        started = time.perf_counter()
        try:
            with span(phase):
                yield
        finally:
            self._milliseconds[phase] = (time.perf_counter() - started) * 1000

    def _enter_phase(self, phase: Phase) -> None:
        if self._phases is not None:
            self._phases(phase)

    def _discard(self, error: BaseException) -> None:
        """End the intent, and delete the files of the jobs that succeeded. What is left is noted on `error`.

        The files of failed task attempts are not known: the note names their directory and the command that lists them.
        """
        cancel_jobs(self._tables.writes.values())
        self._transaction.abandon()
        for name, write in self._tables.writes.items():
            kept = _remove(write, write.files, never_published=write.new)
            for file in kept:
                error.add_note(f"could not delete staged file {file}")
            if kept or write.had_failing_tasks:
                # A table that the write was to create is in no catalog, so that the command does not find it by name.
                option = "" if write.new else f" --table '{'$'.join(self._tables.id(name))}'"
                error.add_note(
                    f"{name}: files that are in no version may be left below {write.target.uri}; "
                    f"`lance-namespace gc ROOT --dry-run{option}` lists them"
                )

    def _close(self) -> None:
        """End the threads, and close the own connections unless `resend` may need them."""
        if self._jobs is not None:
            self._jobs.close()
            self._jobs = None
        if self._own_server is not None and (self._result is not None or not self._sent):
            self._own_server.close()


def _remove(write: TableCalls, files: Sequence[str], *, never_published: bool) -> list[str]:
    if not files and not never_published:
        return []
    target = write.target
    return discard_files(target.uri, tuple(files), target.storage_options, never_published=never_published)


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
