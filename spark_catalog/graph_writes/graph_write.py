"""GraphWrite: many tables, staged by Spark and committed in one batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Literal, TypeAlias

import pyarrow as pa
from pyroaring import BitMap64
from pyspark.sql import DataFrame

from spark_catalog.errors import InvalidWrite
from spark_catalog.graph import Edge, Node
from spark_catalog.graph_writes.calls.columns import MergedSchema, merge_schemas
from spark_catalog.graph_writes.calls.deletes import (
    keys_at,
    rows_with_keys,
    stage_deletes,
    stage_replacement,
    stage_row_deletes,
)
from spark_catalog.graph_writes.calls.merges import MergeRules, NotMatched, stage_merge
from spark_catalog.graph_writes.graph_tables import check_required, new_schema
from spark_catalog.graph_writes.lifecycle import GraphWriteLifecycle
from spark_catalog.graph_writes.table_calls import Staged, TableCall, TableCalls
from spark_catalog.read import read_pinned
from spark_catalog.tables.types import storable_schema
from spark_catalog.tasks.staging import StageTarget, stage
from table_data.arrow.fitting import check_columns, named


class GraphWrite(GraphWriteLifecycle):
    """One atomic write to many tables of a namespace.

    Each call starts a Spark job that stages data files. Leaving the block waits for the jobs, checks the rules of the
    graph, and commits all tables in one batch: a reader sees all of the write or nothing. A table that is not in the
    catalog is created by the same batch. Several calls on one table are applied in order.

    If the block or a job raises, a check fails, or the server refuses the batch, nothing becomes visible and the
    staged files of successful jobs are deleted. Files of failed task attempts stay in storage, in no version. If the
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
        check: Rules that are checked: "none", "batch" or "full", see `checks.plan_checks`.
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
        intent_after: How long the write may take before it is registered as a long job, so that gc never removes
            its files or refuses them. With 0 each table is registered before its first job. Never if None.

    Raises:
        InvalidWrite: A call contradicts the table, the graph or another call; or `isolation` has another value.
        StagingFailed: On leaving the block: a staging job failed.
        GraphCheckFailed: On leaving the block: keys or end points break a rule of the graph.
        GraphConflict: On leaving the block: another commit is in the way.
        WriteRejected: On leaving the block: the server refused the batch for another reason.
        WriteUnknown: On leaving the block: the outcome is unknown.
        ServerUnreachable: The server does not respond. A batch that ends so was never sent.
    """

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
            write = self._tables.find_or_declare(table, df, given_schema(schema), replaces=False)
            merged = merged_schema(write, df, schema)

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
            made = schema or new_schema(table, df, write.declared)
            check_required(table, write.declared, made)
            with named(table):
                check_columns(df.columns, made)
            exists = write.changes.state.version is not None
            target = replace(write.target, schema=made, version=None, overwrites=exists)

            def job(_: StageTarget) -> tuple[Staged, ...]:
                return (stage(df, target, driver_bytes=self._driver_bytes),)

            self._start(write, "overwrite", "overwrite", job, replacement=target, loses_rows=True)

    def _overwrite_where(self, write: TableCalls, df: DataFrame, where: str) -> None:
        merged = merged_schema(write, df, None)

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

        Rows of up to `driver_bytes` are merged in the driver by pylance. More rows are staged by tasks and joined with
        the table by their keys; with a condition, all rows are joined in Spark. Conditions are SQL of Spark: the
        columns of the rows are those of `source`, the columns of the table those of `target`.

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
            merged = merged_schema(write, df, schema)
            check_upsert_key(table, key, write.schema, write.declared)

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
            key = delete_key(write, rows, on)
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
                delete_key(write, rows, key)

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

    def _delete_edges(self, name: str, edge: Edge, node: str, nodes: TableCall, keys: Sequence[DataFrame]) -> None:
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

    def _find_for_delete(self, table: str) -> TableCalls:
        write = self._tables.find(table)
        if write is None:
            raise InvalidWrite(f"{table}: no version of it to delete from")
        return write


SchemaOption: TypeAlias = pa.Schema | Literal["merge"] | None


def given_schema(schema: SchemaOption) -> pa.Schema | None:
    """The schema, if one is given."""
    return schema if isinstance(schema, pa.Schema) else None


def merged_schema(write: TableCalls, df: DataFrame, schema: SchemaOption) -> MergedSchema | None:
    """The schema of a table with the columns of new rows, if it is to be merged; else None.

    Raises `InvalidWrite` if the columns do not fit.
    """
    if schema == "merge":
        required = write.target.required
        return merge_schemas(write.name, write.schema, storable_schema(write.name, df.schema), required)
    with named(write.name):
        check_columns(df.columns, write.schema)
    return None


def check_upsert_key(name: str, on: Sequence[str], schema: pa.Schema, declared: Node | Edge | None) -> None:
    """Raise `InvalidWrite` unless the key columns are there, and are those of the declared key if there is one."""
    unknown = [column for column in on if column not in schema.names]
    if unknown or not on:
        raise InvalidWrite(f"{name}: upsert on {list(on)}, expected columns among {schema.names}")
    if declared is not None and declared.unique and set(declared.unique) != set(on):
        raise InvalidWrite(f"{name}: upsert on {list(on)}, the declared key is {list(declared.unique)}")


def delete_key(write: TableCalls, rows: DataFrame, on: str | Sequence[str] | None) -> tuple[str, ...]:
    """The key columns of a deletion, by default the declared key. Raises `InvalidWrite` if one of them is missing."""
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
