"""GraphWrite: many tables, staged by Spark and committed in one batch."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from types import TracebackType
from typing import Literal, Self, TypeAlias

import pyarrow as pa
from pyroaring import BitMap64
from pyspark.sql import DataFrame, SparkSession

from namespace_client.http import CatalogServer
from namespace_client.staged_transaction import Isolation, StagedTransaction
from spark_catalog.changes.columns import MergedSchema, merge_schemas
from spark_catalog.changes.deletes import stage_deletes, stage_row_deletes
from spark_catalog.changes.keys import keys_at, rows_with_keys
from spark_catalog.changes.merges import MergeRules, NotMatched, stage_merge
from spark_catalog.changes.replacing import stage_replacement
from spark_catalog.checks import Level, run_checks
from spark_catalog.errors import InvalidWrite, ServerUnreachable, WriteRejected
from spark_catalog.graph import Edge, Graph, Node
from spark_catalog.jobs import StagingJobs, await_jobs, cancel_jobs
from spark_catalog.read import read_pinned
from spark_catalog.results import (
    Change,
    GraphPreview,
    GraphTableResult,
    GraphWriteResult,
    Phase,
    PreviewedTable,
    StagedTable,
)
from spark_catalog.staging import (
    DRIVER_BYTES,
    FILE_BYTES,
    FILE_ROWS,
    StageTarget,
    check_columns,
    discard_files,
    stage,
)
from spark_catalog.table_write import Call, Job, Staged, TableWrite, row_count
from spark_catalog.tables.types import arrow_schema
from spark_catalog.written_tables import WrittenTables, check_required, new_schema
from table_data import staging

SchemaOption: TypeAlias = pa.Schema | Literal["merge"] | None


class GraphWrite:
    """One atomic write to many tables of a namespace.

    Each call starts a Spark job that stages data files. Leaving the block waits for the jobs, checks the rules of the
    graph, and commits all tables in one batch: a reader sees all of the write or nothing. A table that is not in the
    catalog is created by the same batch. Several calls on one table are applied in order.

    If the block or a job raises, a check fails, or the server refuses the batch, nothing becomes visible and the
    staged files of successful jobs are deleted. Files of failed task attempts stay until garbage collection. If the
    outcome is unknown, nothing is deleted and `resend` sends the same batch again.

    A `StagedTransaction` composes, commits and resends the batch. Its driver process reads manifests from storage, so
    a root in a bucket needs the extra of that store (`s3`, `gcs` or `azure`).

    Example:
        ```python
        with GraphWrite(spark, "http://127.0.0.1:2333", namespace=["social"], graph=graph) as tx:
            tx.append("person", people)
            tx.append("knows", friendships)
        print(tx.result.catalog_version)
        ```

    Args:
        spark: Session that runs the staging jobs.
        server: Connections to a server, or its URL.
        namespace: Namespace of the tables.
        graph: Declarations of the tables by name. Without it the declarations stored with existing tables are used.
        message: Text that is stored with the batch and in the transaction of every table.
        check: Rules that are checked: "none", "batch" or "full", see `checks.check_write`.
        isolation: With "snapshot" the server rebases the write over concurrent commits, which conflict only if both
            changed the same rows. With "serializable" any change of a table that was read or written is a conflict.
        storage_options: Options of Lance for the object store of the tables.
        parallelism: Number of staging jobs and of checks that run at the same time.
        progress: Function that is called for each finished staging job.
        phases: Function that is called when a phase begins: "stage", "check", "publish".
        max_rows_per_file: Upper bound of the rows of a data file.
        target_file_bytes: Size at which a data file is ended, and that a task gets at least if there are many
            partitions.
        driver_bytes: Upper bound of the rows of one call, in memory, that the driver takes from small partitions. It
            writes them to one file, and merges such rows by itself. With 0 the tasks write and merge all rows.

    Raises:
        InvalidWrite: A call contradicts the table, the graph or another call; or `isolation` has another value.
        StagingFailed: On leaving the block: a staging job failed.
        GraphCheckFailed: On leaving the block: keys or end points break a rule of the graph.
        GraphConflict: On leaving the block: another commit is in the way.
        WriteRejected: On leaving the block: the server refused the batch for another reason.
        WriteUnknown: On leaving the block: the outcome is unknown.
        ServerUnreachable: The server does not respond. A batch that ends so was never sent.
    """

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
        self._tables = WrittenTables(
            connection, namespace=namespace, graph=graph, target=settings, message=message, isolation=isolation
        )
        self._transaction = self._tables.transaction
        self._lock = threading.Lock()
        self._jobs: StagingJobs | None = None
        self._started = 0.0
        self._milliseconds: dict[str, float] = {}
        self._sent = False
        self._result: GraphWriteResult | None = None

    # -- the block

    def __enter__(self) -> Self:
        self._transaction.__enter__()
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
        checks, _ = self._settle_and_check()
        tables = {
            name: PreviewedTable(
                name,
                tuple(call.text for call in write.calls),
                write.rows,
                row_count(write.changes.head),
                len(write.files),
                write.changes.state.version,
            )
            for name, write in self._tables.writes.items()
        }
        return GraphPreview(tables, checks)

    # -- the calls inside the block

    def append(self, table: str, df: DataFrame, *, schema: SchemaOption = None) -> None:
        """Add rows.

        Args:
            table: Name of the table.
            df: Rows, with the columns of the table in any order.
            schema: Schema of a table that has no version yet, by default made from the DataFrame. "merge": columns that
                the table lacks are added to it, and nullable columns that the rows lack are null.

        Raises:
            InvalidWrite: The columns do not fit, or a schema is given for a table that has one.
        """
        with self._lock:
            self._require_jobs()
            write = self._tables.find_or_declare(table, df, _given(schema), replaces=False)
            merged = _merged(write, df, schema)

            def job(target: StageTarget) -> tuple[Staged, ...]:
                return (stage(df, target, driver_bytes=self._driver_bytes),)

            self._start(write, "append", "append", job, merged=merged)

    def overwrite(
        self, table: str, df: DataFrame, *, where: str | None = None, schema: pa.Schema | None = None
    ) -> None:
        """Replace all rows and the schema, or the rows that match a predicate.

        Args:
            table: Name of the table.
            df: Rows.
            where: SQL filter expression of Lance. Only the rows that match are replaced, the schema stays, and all new
                rows must match, too.
            schema: Schema of the table, by default made from the DataFrame. Not together with `where`.

        Raises:
            InvalidWrite: The columns do not fit the schema or the declared graph, or the predicate does not fit the
                table.
        """
        if where is not None and schema is not None:
            raise InvalidWrite(f"{table}: a schema is for an overwrite of all rows, found where={where!r}")
        with self._lock:
            self._require_jobs()
            write = self._tables.find_or_declare(table, df, schema, replaces=True)
            if where is not None:
                self._overwrite_where(write, df, where)
                return
            made = schema or new_schema(df, write.declared)
            check_required(table, write.declared, made)
            check_columns(table, df.columns, made)
            exists = write.changes.state.version is not None
            target = replace(write.target, schema=made, read_version=None, overwrites=exists)

            def job(_: StageTarget) -> tuple[Staged, ...]:
                return (stage(df, target, driver_bytes=self._driver_bytes),)

            self._start(write, "overwrite", "overwrite", job, replacement=target, loses_rows=True)

    def _overwrite_where(self, write: TableWrite, df: DataFrame, where: str) -> None:
        merged = _merged(write, df, None)

        def job(target: StageTarget) -> tuple[Staged, ...]:
            head, bound = write.changes.head, self._driver_bytes
            return stage_replacement(self._spark, df, target, head, where, driver_bytes=bound)

        self._start(write, "overwrite", f"overwrite where {where}", job, merged=merged, reads=True, loses_rows=True)

    def upsert(
        self,
        table: str,
        df: DataFrame,
        *,
        on: str | Sequence[str],
        when_matched: str = "update",
        when_not_matched: NotMatched = "insert",
        when_not_matched_by_source: str = "keep",
        schema: Literal["merge"] | None = None,
    ) -> None:
        """Replace the rows with equal keys, and add the other rows.

        Rows of up to `driver_bytes` are merged in the driver by pylance; more rows, and all rows if there is a
        condition, are joined with the table in Spark. Conditions are SQL of Spark; the columns of the rows are those of
        `source`, the columns of the table those of `target`.

        Args:
            table: Name of the table.
            df: Rows, with the columns of the table in any order. It is read once.
            on: Key column or columns; those of the declared key if the graph declares one. Never null.
            when_matched: What is done with a row of the table whose key is in `df`: "update", "ignore", "delete", or a
                condition of the update, such as `source.changed > target.changed`.
            when_not_matched: What is done with a row of `df` whose key is not in the table: "insert" or "ignore".
            when_not_matched_by_source: What is done with a row of the table whose key is not in `df`: "keep", "delete",
                or a condition of the deletion.
            schema: "merge" as for `append`.

        Raises:
            InvalidWrite: The columns do not fit, `on` is not the declared key, or an argument has another value.
        """
        key = (on,) if isinstance(on, str) else tuple(on)
        rules = MergeRules(key, when_matched, when_not_matched, when_not_matched_by_source)
        with self._lock:
            self._require_jobs()
            write = self._tables.find_or_declare(table, df, None, replaces=False)
            merged = _merged(write, df, schema)
            _check_key(table, key, write.schema, write.declared)

            def job(target: StageTarget) -> tuple[Staged, ...]:
                staged = stage_merge(self._spark, df, write.changes, target, rules, driver_bytes=self._driver_bytes)
                return (staged,)

            text = f"upsert on {', '.join(key)}"
            self._start(write, "upsert", text, job, merged=merged, reads=True, loses_rows=rules.loses_keys)

    def delete(self, table: str, rows: str | DataFrame, *, on: str | Sequence[str] | None = None) -> None:
        """Delete the rows that match an SQL filter expression of Lance, or whose keys are those of a DataFrame.

        Args:
            table: Name of the table.
            rows: SQL expression over the columns, or keys.
            on: Key column or columns, for a DataFrame; by default those of the declared key.

        Raises:
            InvalidWrite: The table has no version, a key column is missing, or `on` does not fit `rows`.
        """
        with self._lock:
            self._require_jobs()
            write = self._find_for_delete(table)
            if isinstance(rows, str):
                if on is not None:
                    raise InvalidWrite(f"{table}: on {on!r} is for a DataFrame of keys, found the predicate {rows!r}")

                def job_where(target: StageTarget) -> tuple[Staged, ...]:
                    return (stage_deletes(self._spark, target, rows),)

                self._start(write, "delete", f"delete where {rows}", job_where, reads=True, loses_rows=True)
                return
            key = _delete_key(write, rows, on)
            pairs = {name: name for name in key}

            def job(target: StageTarget) -> tuple[Staged, ...]:
                found = rows_with_keys(self._spark, target.base, rows.select(*key), pairs)
                return (stage_row_deletes(self._spark, target, found),)

            self._start(write, "delete", f"delete by {', '.join(key)}", job, reads=True, loses_rows=True)

    def delete_nodes(self, table: str, rows: str | DataFrame, *, cascade: bool = True) -> None:
        """Delete nodes, and with `cascade` the edges that start or end at them, in the same batch.

        Args:
            table: Name of a node table.
            rows: SQL filter expression of Lance over the columns of the nodes, or a DataFrame with their keys.
            cascade: Whether edges at the nodes are deleted in all edge tables of the graph. Without it, `check="full"`
                refuses the write if edges are left at the nodes.

        Raises:
            InvalidWrite: The table is no node table or has no version, or the key column is missing.
        """
        with self._lock:
            self._require_jobs()
            write = self._find_for_delete(table)
            if not isinstance(write.declared, Node):
                raise InvalidWrite(f"{table}: expected a node table, found {write.declared or 'no declaration'}")
            key = write.declared.key
            keys: list[DataFrame] = []
            if not isinstance(rows, str):
                _delete_key(write, rows, key)

            def job(target: StageTarget) -> tuple[Staged, ...]:
                if isinstance(rows, str):
                    keys.append(read_pinned(self._spark, target.base, columns=[key], filter=rows))
                    return (stage_deletes(self._spark, target, rows),)
                found = rows_with_keys(self._spark, target.base, rows.select(key), {key: key})
                keys.append(keys_at(self._spark, target.base, found, [key]))
                return (stage_row_deletes(self._spark, target, found),)

            text = f"delete where {rows}" if isinstance(rows, str) else f"delete by {key}"
            nodes = self._start(write, "delete", text, job, reads=True, loses_rows=True)
            if cascade:
                for name, edge in self._tables.edges_at(table).items():
                    self._delete_edges(name, edge, table, nodes, keys)

    def _delete_edges(self, name: str, edge: Edge, node: str, nodes: Call, keys: Sequence[DataFrame]) -> None:
        """Delete the edges at deleted nodes, whose keys are in `keys` when the call `nodes` is staged."""
        write = self._tables.find(name)
        if write is None:
            return
        ends = [column for end, column in ((edge.source, edge.src), (edge.target, edge.dst)) if end == node]

        def job(target: StageTarget) -> tuple[Staged, ...]:
            nodes.job.result()
            [gone] = keys
            found = [rows_with_keys(self._spark, target.base, gone, {end: gone.columns[0]}) for end in ends]
            return (stage_row_deletes(self._spark, target, reduce(BitMap64.__or__, found)),)

        self._start(write, "delete", f"delete at deleted nodes of {node}", job, reads=True)

    def _find_for_delete(self, table: str) -> TableWrite:
        write = self._tables.find(table)
        if write is None:
            raise InvalidWrite(f"{table}: no version of it to delete from")
        return write

    # -- one call

    def _require_jobs(self) -> StagingJobs:
        if self._jobs is None:
            raise InvalidWrite("rows are staged inside the `with` block of a GraphWrite")
        return self._jobs

    def _start(
        self,
        write: TableWrite,
        change: Change,
        text: str,
        job: Job,
        *,
        merged: MergedSchema | None = None,
        replacement: StageTarget | None = None,
        reads: bool = False,
        loses_rows: bool = False,
    ) -> Call:
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
            write.settle(before)
            if added:
                self._add_columns(write, added)
            return job(replace(write.head_target(schema), filled=filled))

        call = Call(
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

    def _add_columns(self, write: TableWrite, added: Sequence[pa.Field]) -> None:
        """Add columns of nulls, for which no file is written."""
        manifest = write.changes.require_head().manifest
        operation = staging.stage_columns(write.changes.dataset(), manifest, pa.schema(added), None)
        self._tables.transaction.apply(write.changes, operation, f"add {', '.join(item.name for item in added)}")

    # -- leaving the block

    def _settle_and_check(self) -> tuple[tuple[str, ...], list[str]]:
        """Wait for all jobs and check the graph.

        Returns the checks that passed, and the names of the existing tables that were written or read.
        """
        await_jobs(self._tables.writes.values())
        for write in self._tables.writes.values():
            write.settle()
        self._milliseconds["stage"] = (time.perf_counter() - self._started) * 1000
        with self._timed("check"):
            checks, read = self._tables.plan_checks(self._check)
            run_checks(self._spark, checks, parallelism=self._parallelism)
        return tuple(f"{check.table}: {check.rule}" for check in checks), read

    def _finish(self) -> None:
        try:
            _, read = self._settle_and_check()
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

    def _publish(self, send: Callable[[], object]) -> None:
        with self._timed("publish"):
            send()
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
            left += _remove(write, write.superseded_files())
        self._result = GraphWriteResult(
            committed.transaction_id, committed.catalog_version, tables, dict(self._milliseconds), tuple(left)
        )

    @contextmanager
    def _timed(self, phase: Phase) -> Iterator[None]:
        self._enter_phase(phase)
        started = time.perf_counter()
        try:
            yield
        finally:
            self._milliseconds[phase] = (time.perf_counter() - started) * 1000

    def _enter_phase(self, phase: Phase) -> None:
        if self._phases is not None:
            self._phases(phase)

    def _discard(self, error: BaseException) -> None:
        """Delete the files of the jobs that succeeded. The file names of failed jobs are not known."""
        cancel_jobs(self._tables.writes.values())
        for write in self._tables.writes.values():
            for kept in _remove(write, write.files):
                error.add_note(f"could not delete staged file {kept}")

    def _close(self) -> None:
        """End the threads, and close the own connections unless `resend` may need them."""
        if self._jobs is not None:
            self._jobs.close()
            self._jobs = None
        if self._own_server is not None and (self._result is not None or not self._sent):
            self._own_server.close()


def _remove(write: TableWrite, files: Sequence[str]) -> list[str]:
    target = write.target
    return discard_files(target.uri, tuple(files), target.storage_options, never_published=write.new)


def _given(schema: SchemaOption) -> pa.Schema | None:
    return schema if isinstance(schema, pa.Schema) else None


def _merged(write: TableWrite, df: DataFrame, schema: SchemaOption) -> MergedSchema | None:
    """The schema of a table with the columns of new rows, if it is to be merged; else the columns must be the same."""
    if schema == "merge":
        required = write.target.required
        return merge_schemas(write.name, write.schema, arrow_schema(df.schema), required)
    check_columns(write.name, df.columns, write.schema)
    return None


def _check_key(name: str, on: Sequence[str], schema: pa.Schema, declared: Node | Edge | None) -> None:
    unknown = [column for column in on if column not in schema.names]
    if unknown or not on:
        raise InvalidWrite(f"{name}: upsert on {list(on)}, expected columns among {schema.names}")
    if declared is not None and declared.unique and set(declared.unique) != set(on):
        raise InvalidWrite(f"{name}: upsert on {list(on)}, the declared key is {list(declared.unique)}")


def _delete_key(write: TableWrite, rows: DataFrame, on: str | Sequence[str] | None) -> tuple[str, ...]:
    """The key columns of a deletion, which the table and the rows must have."""
    if on is None:
        on = write.declared.unique if write.declared is not None else ()
    key = (on,) if isinstance(on, str) else tuple(on)
    unknown = [column for column in key if column not in write.schema.names or column not in rows.columns]
    if unknown or not key:
        both = [name for name in write.schema.names if name in rows.columns]
        raise InvalidWrite(
            f"{write.name}: delete on {list(key)}, expected columns of the table and of the rows: {both}"
        )
    return key
