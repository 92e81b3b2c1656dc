"""GraphWrite: many tables staged by Spark, published by one batch, all or none."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from types import TracebackType
from typing import Literal, Self

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from lance_core.format.naming import new_table_location
from lance_core.transaction.operations import Operation as TableOperation
from namespace_client.composition import transaction_message
from namespace_client.descriptions import (
    append_operation,
    delete_operation,
    overwrite_operation,
    update_operation,
)
from namespace_client.http import CatalogServer
from namespace_client.wire import (
    DELIMITER,
    AssertVersion,
    CatalogState,
    CommittedBatch,
    CommitTransaction,
    DeclareTable,
    Operation,
    TableState,
)
from spark_catalog.checks import Change, Columns, Level, TableView, check_write
from spark_catalog.errors import InvalidWrite, ServerUnreachable, StagingFailed, WriteRejected
from spark_catalog.graph import Edge, Graph, Node, parse_properties
from spark_catalog.read import PinnedTable, read_data_files
from spark_catalog.staging import (
    StagedDeletes,
    StagedFragments,
    StagedUpsert,
    StageTarget,
    check_columns,
    discard_files,
    stage,
    stage_deletes,
    stage_upsert,
)
from spark_catalog.work import GraphWriteResult, Staged, StagedTable, TableResult, TableWork

Isolation = Literal["snapshot", "serializable"]


class GraphWrite:
    """One atomic write to many tables of a namespace.

        with GraphWrite(spark, "http://127.0.0.1:2333", namespace=["social"], graph=graph) as tx:
            tx.append("person", people)
            tx.append("knows", friendships)
        print(tx.result.catalog_version)

    Each call starts a Spark job that stages data files, `parallelism` of them side by side. Leaving the block waits for
    them, checks what the graph promises (`check`, see `checks.check_write`), and publishes all tables in one batch: a
    reader sees all of it or nothing. A table that the catalog does not have is created by the same batch.

    Nothing is visible if the block or a job raises, a check fails, or the server refuses; the staged files of jobs that
    succeeded are deleted then. Raises `InvalidWrite`, `StagingFailed`, `GraphCheckFailed`, `WriteRejected`,
    `GraphConflict` (run the block again), or `WriteUnknown`: then the batch may have committed, nothing is deleted, and
    `resend` asks again.

    With `isolation="snapshot"` the server rebases the write over what others committed meanwhile, and refuses it only
    if both changed the same rows. "serializable" publishes only if no table that was read or written has changed.
    `graph` declares tables by name; without it the declarations stored with existing tables are used. `message` is kept
    with the batch and in every table's transaction. `storage_options` are Lance's, for object stores.
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
        parallelism: int = 2,
        progress: Callable[[StagedTable], None] | None = None,
    ) -> None:
        self._spark = spark
        self._server = server if isinstance(server, CatalogServer) else CatalogServer(server)
        self._own_server = self._server is not server
        self._namespace = tuple(namespace)
        self._graph = graph
        self._message = message
        self._check = check
        self._isolation = isolation
        self._options = dict(storage_options or {})
        self._parallelism = parallelism
        self._progress = progress
        self._key = f"graph-write-{uuid.uuid4()}"
        self._lock = threading.Lock()
        self._works: dict[str, TableWork] = {}
        self._states: dict[str, TableState | None] = {}
        self._operations: tuple[Operation, ...] = ()
        self._milliseconds: dict[str, float] = {}
        self._catalog: CatalogState | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._result: GraphWriteResult | None = None
        self._started = 0.0

    # -- the block

    def __enter__(self) -> Self:
        if self._catalog is not None:
            raise InvalidWrite("a GraphWrite is used once; make another one")
        self._started = time.perf_counter()
        self._catalog = self._server.state()
        self._pool = ThreadPoolExecutor(max(1, self._parallelism), thread_name_prefix="graph-write")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is not None:
                self._abort(error)
            else:
                self._finish()
        finally:
            self._close()

    @property
    def result(self) -> GraphWriteResult:
        """What was published. Raises `InvalidWrite` before the block was left, or if nothing was."""
        if self._result is None:
            raise InvalidWrite("this write has not been published")
        return self._result

    @property
    def idempotency_key(self) -> str:
        """The key under which the batch is sent."""
        return self._key

    # -- the calls inside the block

    def append(self, table: str, df: DataFrame, *, schema: pa.Schema | None = None) -> None:
        """Add rows. `schema` is for a table that has no version yet; it is made from the DataFrame otherwise."""
        self._stage_rows(table, "append", df, schema)

    def overwrite(self, table: str, df: DataFrame, *, schema: pa.Schema | None = None) -> None:
        """Make these rows (and those of later appends in this block) the whole table, with their own schema."""
        self._stage_rows(table, "overwrite", df, schema)

    def upsert(self, table: str, df: DataFrame, *, on: str | Sequence[str]) -> None:
        """Replace the rows whose `on` columns match, add the others. The rows are collected to the driver."""
        key = (on,) if isinstance(on, str) else tuple(on)
        work = self._open_work(table, "upsert", df)
        work.on = key
        unknown = [column for column in key if column not in work.target.schema.names]
        if unknown or not key:
            raise InvalidWrite(f"{table}: upsert on {list(key)}, expected columns among {work.target.schema.names}")
        if work.declared is not None and work.declared.unique and set(work.declared.unique) != set(key):
            raise InvalidWrite(f"{table}: upsert on {list(key)}, the declared key is {list(work.declared.unique)}")
        self._submit(work, lambda: stage_upsert(df, work.target, key))

    def delete(self, table: str, predicate: str) -> None:
        """Delete the rows that match a Lance filter expression (SQL)."""
        work = self._open_work(table, "delete", None)
        work.predicate = predicate
        self._submit(work, lambda: stage_deletes(self._spark, work.target, predicate))

    def _stage_rows(self, table: str, change: Change, df: DataFrame, schema: pa.Schema | None) -> None:
        work = self._open_work(table, change, df, schema)
        self._submit(work, lambda: stage(df, work.target))

    def _submit(self, work: TableWork, job: Callable[[], Staged]) -> None:
        if self._pool is None:
            raise InvalidWrite("this write is over")

        def run() -> Staged:
            staged = job()
            if self._progress is not None:
                name, files = work.target.name, len(staged.files)
                self._progress(StagedTable(name, work.change, staged.rows, files, staged.seconds))
            return staged

        work.jobs.append(self._pool.submit(run))

    # -- what a call is about

    def _open_work(self, name: str, change: Change, df: DataFrame | None, schema: pa.Schema | None = None) -> TableWork:
        """The table's part of this write, made by the first call on the table."""
        if self._pool is None:
            raise InvalidWrite("rows are staged inside the `with` block of a GraphWrite")
        with self._lock:
            work = self._works.get(name)
            if work is None:
                work = self._works[name] = self._new_work(name, change, df, schema)
            elif change != "append" or work.change not in ("append", "overwrite"):
                raise InvalidWrite(f"{name}: {change} after {work.change} in one write; only appends may follow")
        if df is not None:
            check_columns(name, df.columns, work.target.schema)
        return work

    def _new_work(self, name: str, change: Change, df: DataFrame | None, schema: pa.Schema | None) -> TableWork:
        state = self._state(name)
        declared = self._declaration(name, state)
        exists = state is not None and state.version is not None
        required = declared.required if declared is not None else ()
        if state is None:
            state = TableState((*self._namespace, name), self._new_location(name), None)
        if exists and change != "overwrite":
            if schema is not None:
                raise InvalidWrite(f"{name}: it has a schema; another one is for new tables and overwrite")
            stored = PinnedTable(state.uri, state.version or 0, self._options).open().schema
            target = StageTarget(
                name, state.uri, stored, state.version, required=required, storage_options=self._options
            )
        elif df is None:
            raise InvalidWrite(f"{name}: no version of it to delete from")
        else:
            target = StageTarget(
                name,
                state.uri,
                schema or _new_schema(df, required),
                overwrites=exists,
                required=required,
                storage_options=self._options,
            )
        missing = [column for column in required if column not in target.schema.names]
        if missing:
            raise InvalidWrite(f"{name}: the declared graph needs columns {missing}, found {target.schema.names}")
        return TableWork(target, state, change, declared, new=self._states[name] is None)

    def _state(self, name: str) -> TableState | None:
        """The table at the catalog version that this write began at."""
        if name not in self._states:
            at = self._catalog.version if self._catalog is not None else None
            self._states[name] = self._server.table((*self._namespace, name), at=at)
        return self._states[name]

    def _declaration(self, name: str, state: TableState | None) -> Node | Edge | None:
        stored = None if state is None else parse_properties(name, state.properties)
        declared = None if self._graph is None else self._graph.table(name)
        if declared is not None and stored is not None and declared != stored:
            raise InvalidWrite(f"{name}: declared as {declared}, stored as {stored}")
        return declared or stored

    def _new_location(self, name: str) -> str:
        """A location that nobody else will choose (N1), so that tasks can write there before the table exists."""
        root = self._catalog.root if self._catalog is not None else ""
        return f"{root}/{new_table_location(DELIMITER.join((*self._namespace, name)))}"

    # -- leaving the block

    def _finish(self) -> None:
        try:
            self._await_jobs()
            checked = time.perf_counter()
            self._milliseconds["stage"] = (checked - self._started) * 1000
            read = self._run_checks()
            self._milliseconds["check"] = (time.perf_counter() - checked) * 1000
            self._operations = self._build_operations(read)
        except BaseException as error:
            self._abort(error)
            raise
        try:
            self._publish()
        except (WriteRejected, ServerUnreachable) as error:  # anything else may have committed: delete nothing
            self._operations = ()
            self._abort(error)
            raise

    def resend(self) -> GraphWriteResult:
        """After `WriteUnknown`: send the same batch under the same key, which cannot apply it twice.

        Raises as leaving the block does. Nothing is deleted even if the server refuses: the first request could still
        be on its way.
        """
        if not self._operations or self._result is not None:
            raise InvalidWrite("nothing to send again")
        self._publish()
        self._close()
        return self.result

    def _await_jobs(self) -> None:
        jobs = {job: work for work in self._works.values() for job in work.jobs}
        wait_for(jobs)
        failures = {work.target.name: error for job, work in jobs.items() if (error := job.exception()) is not None}
        if failures:
            raise StagingFailed(failures) from next(iter(failures.values()))

    def _build_operations(self, read: Mapping[str, TableState]) -> tuple[Operation, ...]:
        operations: list[Operation] = []
        if self._isolation == "serializable":
            operations += [AssertVersion(state.id, state.version or 0) for state in read.values()]
        for work in self._works.values():
            if work.new:
                properties = work.declared.properties() if work.declared is not None else {}
                operations.append(DeclareTable(work.state.id, work.state.uri, properties))
            operations += self._transactions(work)
        return tuple(operations)

    def _transactions(self, work: TableWork) -> list[CommitTransaction]:
        """The table's one transaction; none if nothing would change."""
        fragments = [f for staged in work.staged if isinstance(staged, StagedFragments) for f in staged.fragments]
        operation: TableOperation
        if work.change == "overwrite" or work.target.read_version is None:
            operation = overwrite_operation(work.target.schema, fragments)
        elif work.change == "append" and fragments:
            operation = append_operation(fragments)
        else:
            staged = work.staged[0]
            if isinstance(staged, StagedUpsert):
                operation = update_operation(staged.operation)
            elif isinstance(staged, StagedDeletes) and staged.rows:
                operation = delete_operation(staged.updated, staged.removed, work.predicate)
            else:
                return []
        transaction = transaction_message(operation, work.state.version or 0, self._message)
        return [CommitTransaction(work.state.id, transaction)]

    def _publish(self) -> None:
        started = time.perf_counter()
        if any(not isinstance(operation, AssertVersion) for operation in self._operations):
            batch = self._server.commit(self._operations, idempotency_key=self._key, message=self._message)
        else:
            batch = CommittedBatch(None, self._catalog.version if self._catalog else None, ())
        self._milliseconds["publish"] = (time.perf_counter() - started) * 1000
        committed = {table.id: table for table in batch.tables}
        tables = {}
        for name, work in self._works.items():
            at = committed.get(work.state.id)
            version, rebased = (at.version, at.rebased) if at is not None else (work.state.version, False)
            tables[name] = TableResult(name, work.change, version, work.rows, rebased, work.new)
        self._result = GraphWriteResult(batch.transaction_id, batch.catalog_version, tables, self._milliseconds)

    def _abort(self, error: BaseException) -> None:
        """Delete what the jobs that succeeded have staged. Files of a job that failed are unknown to us."""
        jobs = [job for work in self._works.values() for job in work.jobs]
        for job in jobs:
            job.cancel()
        wait_for(jobs)
        for work in self._works.values():
            files = tuple(file for staged in work.staged for file in staged.files)
            for kept in discard_files(work.target.uri, files, self._options, never_published=work.new):
                error.add_note(f"could not delete staged file {kept}")

    def _close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
        if self._own_server and (self._result is not None or not self._operations):
            self._server.close()

    # -- checks

    def _run_checks(self) -> dict[str, TableState]:
        """Check the staged rows; the existing tables that this write rests on, by name."""
        graph = self._known_graph()
        names = dict.fromkeys(self._works)
        if self._check == "full":
            for name, work in self._works.items():
                declared = graph.table(name)
                if isinstance(declared, Edge):
                    names |= dict.fromkeys((declared.source, declared.target))
                elif work.change in ("overwrite", "delete"):
                    names |= dict.fromkeys(graph.edges_at(name))
        check_write(graph, {name: self._view(name) for name in names}, self._check, parallelism=self._parallelism)
        return {name: state for name in names if (state := self._state(name)) is not None}

    def _known_graph(self) -> Graph:
        """The graph as declared, or as stored with the tables of this write and the end points of their edges."""
        if self._graph is not None:
            return self._graph
        edges = {name: work.declared for name, work in self._works.items() if isinstance(work.declared, Edge)}
        nodes = {name: work.declared for name, work in self._works.items() if isinstance(work.declared, Node)}
        for end in dict.fromkeys(end for edge in edges.values() for end in (edge.source, edge.target)):
            if end not in nodes:
                declared = self._declaration(end, self._state(end))
                if not isinstance(declared, Node):
                    raise InvalidWrite(f"{end}: edges are stored as ending there, but it is no node table")
                nodes[end] = declared
        return Graph(nodes, edges)

    def _view(self, name: str) -> TableView:
        work = self._works.get(name)
        state = work.state if work is not None else self._state(name)
        change = work.change if work is not None else None

        def stored(columns: Columns, predicate: str | None = None) -> DataFrame | None:
            if state is None or state.version is None:
                return None
            return PinnedTable(state.uri, state.version, self._options).frame(self._spark, columns, predicate)

        def staged(columns: Columns) -> DataFrame | None:
            files = work.new_files if work is not None else ()
            if work is None or not files:
                return None
            return read_data_files(self._spark, work.target.uri, files, columns, self._options)

        def kept(columns: Columns) -> DataFrame | None:
            if work is None or work.change == "append":
                return stored(columns)
            if work.change == "overwrite":
                return None
            if work.change == "delete":
                return stored(columns, f"({work.predicate}) IS NOT TRUE")
            replaced, rows = staged(work.on), stored(tuple(dict.fromkeys((*columns, *work.on))))
            if replaced is None or rows is None:
                return rows
            return rows.join(replaced, list(work.on), "left_anti").select(*columns)

        return TableView(name, change, stored, kept, staged)


def _new_schema(df: DataFrame, required: Sequence[str]) -> pa.Schema:
    """The schema of a new table: only what the graph needs is not null, however sure Spark is about the rest."""
    schema = to_arrow_schema(df.schema, timezone="UTC")
    return pa.schema([item.with_nullable(item.name not in required) for item in schema])
