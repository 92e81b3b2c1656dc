"""GraphWrite: many tables, staged by Spark and committed in one batch."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Self

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from namespace_client.http import CatalogServer
from namespace_client.staged_transaction import Isolation, StagedTransaction
from spark_catalog.checks import Change, Level, check_write
from spark_catalog.errors import InvalidWrite, ServerUnreachable, WriteRejected
from spark_catalog.graph import Edge, Graph, Node, parse_properties
from spark_catalog.jobs import StagingJobs, await_jobs, cancel_jobs
from spark_catalog.results import GraphTableResult, GraphWriteResult, StagedTable
from spark_catalog.staging import StageTarget, check_columns, discard_files, stage, stage_deletes, stage_upsert
from spark_catalog.table_write import Staged, TableWrite
from spark_catalog.tables.pinned import PinnedTable
from spark_catalog.views import view_table
from table_data.batch_operations import TableId, TableState


class GraphWrite:
    """One atomic write to many tables of a namespace.

    Each call starts a Spark job that stages data files. Leaving the block waits for the jobs, checks the rules of the
    graph, and commits all tables in one batch: a reader sees all of the write or nothing. A table that is not in the
    catalog is created by the same batch.

    If the block or a job raises, a check fails, or the server refuses the batch, nothing becomes visible and the
    staged files of successful jobs are deleted. If the outcome is unknown, nothing is deleted and `resend` sends the
    same batch again.

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
        parallelism: int = 2,
        progress: Callable[[StagedTable], None] | None = None,
    ) -> None:
        self._spark = spark
        self._namespace = tuple(namespace)
        self._graph = graph
        self._check = check
        self._options = dict(storage_options or {})
        self._parallelism = parallelism
        self._progress = progress
        connection = server if isinstance(server, CatalogServer) else CatalogServer(server)
        self._own_server = None if connection is server else connection
        self._transaction = StagedTransaction(
            connection,
            message=message,
            isolation=isolation,
            storage_options=self._options,
            key_prefix="graph-write",
        )
        self._lock = threading.Lock()
        self._writes: dict[str, TableWrite] = {}
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

    # -- the calls inside the block

    def append(self, table: str, df: DataFrame, *, schema: pa.Schema | None = None) -> None:
        """Add rows.

        Args:
            table: Name of the table.
            df: Rows, with the columns of the table in any order.
            schema: Schema of a table that has no version yet, by default made from the DataFrame.

        Raises:
            InvalidWrite: The columns do not fit, a schema is given for a table that has one, or an earlier call on the
                table was neither an append nor an overwrite.
        """
        self._start(table, "append", df, lambda write: stage(df, write.target), schema=schema)

    def overwrite(self, table: str, df: DataFrame, *, schema: pa.Schema | None = None) -> None:
        """Replace all rows and the schema. Later appends in the same block add to the new rows.

        Args:
            table: Name of the table.
            df: Rows.
            schema: Schema of the table, by default made from the DataFrame.

        Raises:
            InvalidWrite: The columns do not fit the schema or the declared graph, or there was an earlier call on the
                table.
        """
        self._start(table, "overwrite", df, lambda write: stage(df, write.target), schema=schema)

    def upsert(self, table: str, df: DataFrame, *, on: str | Sequence[str]) -> None:
        """Replace the rows with equal keys, and add the other rows. The rows are collected to the driver.

        Args:
            table: Name of the table.
            df: Rows, with the columns of the table in any order.
            on: Key column or columns; those of the declared key if the graph declares one.

        Raises:
            InvalidWrite: The columns do not fit, `on` is not the declared key, or there was an earlier call on the
                table.
        """
        key = (on,) if isinstance(on, str) else tuple(on)
        self._start(table, "upsert", df, lambda write: stage_upsert(df, write.target, key), on=key)

    def delete(self, table: str, predicate: str) -> None:
        """Delete the rows that match an SQL filter expression of Lance.

        Args:
            table: Name of the table.
            predicate: SQL expression over the columns.

        Raises:
            InvalidWrite: The table has no version, or there was an earlier call on it.
        """

        def job(write: TableWrite) -> Staged:
            return stage_deletes(self._spark, write.target, predicate)

        self._start(table, "delete", None, job, predicate=predicate)

    # -- one call

    def _start(
        self,
        name: str,
        change: Change,
        df: DataFrame | None,
        job: Callable[[TableWrite], Staged],
        *,
        schema: pa.Schema | None = None,
        on: tuple[str, ...] = (),
        predicate: str = "",
    ) -> None:
        """Check a call and start its staging job. A call that raises leaves no trace."""
        with self._lock:
            if self._jobs is None:
                raise InvalidWrite("rows are staged inside the `with` block of a GraphWrite")
            write = self._writes.get(name)
            if write is None:
                write = self._new_write(name, change, df, schema, on)
                write.predicate = predicate
            elif change != "append" or write.change not in ("append", "overwrite"):
                raise InvalidWrite(f"{name}: {change} after {write.change} in one write; only appends may follow")
            elif df is not None:
                check_columns(name, df.columns, write.target.schema)
            self._jobs.submit(write, lambda: job(write))
            self._writes[name] = write

    def _new_write(
        self, name: str, change: Change, df: DataFrame | None, schema: pa.Schema | None, on: tuple[str, ...]
    ) -> TableWrite:
        """The state of a table for its first call. A new table is declared after all checks."""
        state = self._state(name)
        declared = self._declaration(name, state)
        required = declared.required if declared is not None else ()
        read_version = state.version if state is not None and change != "overwrite" else None
        if state is not None and read_version is not None:
            if schema is not None:
                raise InvalidWrite(f"{name}: it has a schema; another one is for new tables and overwrite")
            schema = PinnedTable(state.uri, read_version, self._options).open().schema
        elif df is None:
            raise InvalidWrite(f"{name}: no version of it to delete from")
        else:
            schema = schema or _new_schema(df, required)
        missing = [column for column in required if column not in schema.names]
        if missing:
            raise InvalidWrite(f"{name}: the declared graph needs columns {missing}, found {schema.names}")
        if df is not None:
            check_columns(name, df.columns, schema)
        if change == "upsert":
            _check_key(name, on, schema, declared)
        new = state is None
        if state is None:
            properties = declared.properties() if declared is not None else {}
            state = self._transaction.declare(self._id(name), properties=properties)
        target = StageTarget(
            name,
            state.uri,
            schema,
            read_version,
            overwrites=change == "overwrite" and state.version is not None,
            required=required,
            storage_options=self._options,
        )
        return TableWrite(target, state, change, declared, new=new, on=on)

    def _id(self, name: str) -> TableId:
        return (*self._namespace, name)

    def _state(self, name: str) -> TableState | None:
        """The table as of the begin of the write, or as declared by it."""
        return self._transaction.describe(self._id(name))

    def _declaration(self, name: str, state: TableState | None) -> Node | Edge | None:
        stored = None if state is None else parse_properties(name, state.properties)
        declared = None if self._graph is None else self._graph.table(name)
        if declared is not None and stored is not None and declared != stored:
            raise InvalidWrite(f"{name}: declared as {declared}, stored as {stored}")
        return declared or stored

    # -- leaving the block

    def _finish(self) -> None:
        try:
            await_jobs(self._writes.values())
            self._milliseconds["stage"] = (time.perf_counter() - self._started) * 1000
            with self._timed("check"):
                checked = self._check_graph()
            for name, write in self._writes.items():
                for call, operation in write.operations():
                    self._transaction.stage(self._id(name), operation, call=call)
            for name in checked:
                self._transaction.mark_read(self._id(name))
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
        for name, write in self._writes.items():
            table = changed.get(self._id(name))
            version, rebased = (table.version, table.rebased) if table is not None else (write.state.version, False)
            tables[name] = GraphTableResult(name, write.change, version, write.rows, rebased, write.new)
        self._result = GraphWriteResult(
            committed.transaction_id, committed.catalog_version, tables, dict(self._milliseconds)
        )

    @contextmanager
    def _timed(self, phase: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self._milliseconds[phase] = (time.perf_counter() - started) * 1000

    def _discard(self, error: BaseException) -> None:
        """Delete the files of the jobs that succeeded. The file names of failed jobs are not known."""
        cancel_jobs(self._writes.values())
        for write in self._writes.values():
            for kept in discard_files(write.target.uri, write.files, self._options, never_published=write.new):
                error.add_note(f"could not delete staged file {kept}")

    def _close(self) -> None:
        """End the threads, and close the own connections unless `resend` may need them."""
        if self._jobs is not None:
            self._jobs.close()
            self._jobs = None
        if self._own_server is not None and (self._result is not None or not self._sent):
            self._own_server.close()

    # -- checks

    def _check_graph(self) -> list[str]:
        """Check the staged rows. Returns the names of the existing tables that were written or checked."""
        graph = self._known_graph()
        names = dict.fromkeys(self._writes)
        if self._check == "full":
            for name, write in self._writes.items():
                declared = graph.table(name)
                if isinstance(declared, Edge):
                    names |= dict.fromkeys((declared.source, declared.target))
                elif write.change in ("overwrite", "delete"):
                    names |= dict.fromkeys(graph.edges_at(name))
        states = {name: self._state(name) for name in names}
        views = {
            name: view_table(self._spark, name, state, self._writes.get(name), self._options)
            for name, state in states.items()
        }
        check_write(graph, views, self._check, parallelism=self._parallelism)
        return [name for name, state in states.items() if state is not None]

    def _known_graph(self) -> Graph:
        """The declared graph, or the declarations stored with the written tables and the end points of their edges."""
        if self._graph is not None:
            return self._graph
        edges = {name: write.declared for name, write in self._writes.items() if isinstance(write.declared, Edge)}
        nodes = {name: write.declared for name, write in self._writes.items() if isinstance(write.declared, Node)}
        for end in dict.fromkeys(end for edge in edges.values() for end in (edge.source, edge.target)):
            if end not in nodes:
                declared = self._declaration(end, self._state(end))
                if not isinstance(declared, Node):
                    raise InvalidWrite(f"{end}: edges are stored as ending there, but it is no node table")
                nodes[end] = declared
        return Graph(nodes, edges)


def _check_key(name: str, on: Sequence[str], schema: pa.Schema, declared: Node | Edge | None) -> None:
    unknown = [column for column in on if column not in schema.names]
    if unknown or not on:
        raise InvalidWrite(f"{name}: upsert on {list(on)}, expected columns among {schema.names}")
    if declared is not None and declared.unique and set(declared.unique) != set(on):
        raise InvalidWrite(f"{name}: upsert on {list(on)}, the declared key is {list(declared.unique)}")


def _new_schema(df: DataFrame, required: Sequence[str]) -> pa.Schema:
    """The schema of a new table. Only columns that the graph requires are not nullable."""
    schema = to_arrow_schema(df.schema, timezone="UTC")
    return pa.schema([item.with_nullable(item.name not in required) for item in schema])
