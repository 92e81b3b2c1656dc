"""Transactions over many tables whose files are written in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from lance_core.compaction import CompactionOptions
from lance_core.transaction.operations import Append, Operation
from namespace_client.access import CatalogAccess
from namespace_client.distributed import DistributedTransaction
from namespace_client.errors import InvalidCall
from namespace_client.names import AnyName
from namespace_client.reading import TableReader
from namespace_client.results import CompactionCounts, MergeCounts
from namespace_client.staged_transaction import Isolation, TableName
from table_data import staging
from table_data.arrow.vectors import Vectors, with_vectors
from table_data.composition import Step
from table_data.jobs.discarding import remove_files_of_steps
from table_data.requests.merging import Matched, MergeClauses, NotMatched, NotMatchedBySource
from table_data.table_changes import TableChanges


class MultiTableTransaction(DistributedTransaction):
    """One atomic change of many tables. Made by `Catalog.begin`, used once, by one thread.

    Reads show the catalog version at the begin with the changes of this transaction applied. Leaving the block commits
    all changes in one batch. An exception in the block commits nothing. The files that its calls wrote are removed if
    they are certainly not committed: after an exception in the block, and where the catalog refuses the batch. They
    stay if the outcome is unknown, or if the batch was not sent or the catalog was unavailable: it can be sent again.
    Those of `stage` are the caller's.

    A table name that is a string is one dotted name in the default namespace: `eu.orders` is table `orders` in
    namespace `eu` of it. A sequence is the parts of a whole path. A call that raises changes nothing, so the block may
    go on after it. An Arrow reader given as rows can be read once; the same reader in a second call is refused.

    Example:
        ```python
        with catalog.begin(message="nightly") as tx:
            tx.append("features", features)
            tx.merge("labels", labels, on="id")
            tx.delete("quarantine", "day < 100")
        print(tx.result.catalog_version)
        ```

    Raises:
        RetryableConflict: On leaving the block: another commit is in the way, and running the block again can succeed.
        IncompatibleConflict: On leaving the block: another commit conflicts irreconcilably.
        CommitRejected: On leaving the block: the catalog refused the batch for another reason.
        CatalogUnreachable: On leaving the block: the batch was never sent.
        CommitUnknown: On leaving the block: the outcome is unknown; `resend` sends the same batch again.
    """

    def __init__(
        self,
        access: CatalogAccess,
        *,
        namespace: AnyName = (),
        message: str | None = None,
        isolation: Isolation = "snapshot",
        storage_options: Mapping[str, str] | None = None,
        used_readers: list[object] | None = None,
    ) -> None:
        super().__init__(
            access, namespace=namespace, message=message, isolation=isolation, storage_options=storage_options
        )
        self._given: list[Step] = []
        self._used_readers: list[object] = [] if used_readers is None else used_readers

    def stage(self, table: TableName, operation: Operation, *, call: str, branch: str | None = None) -> None:
        """See `StagedTransaction.stage`. The files stay the caller's, whatever becomes of the transaction."""
        super().stage(table, operation, call=call, branch=branch)
        self._given.append(self._require(table, branch).steps[-1])

    def _discard(self) -> None:
        for changes in self._tables.values():
            given = [step for step in changes.steps if any(step is each for each in self._given)]
            own = [step for step in changes.steps if not any(step is each for each in given)]
            if own:
                remove_files_of_steps(changes, own, given)

    # -- reads

    def table(
        self, table: TableName, *, branch: str | None = None, tag: str | None = None, version: int | None = None
    ) -> TableReader:
        """A reader of a table, or of one of its published versions.

        Args:
            table: Name of the table.
            branch: Name of a branch.
            tag: Name of a tag; the reader shows the tagged version. Not together with `branch` or `version`.
            version: Number of a published version; the reader shows this version.

        Returns:
            A reader, which shows later changes of this transaction unless it is of a fixed version.

        Raises:
            InvalidCall: There is no such table, branch, tag or version.
        """
        changes = self._require(table, branch)
        if tag is None and version is None:
            changes.require_head()
            changes.note_read()
            return TableReader(changes)
        if tag is not None and (version is not None or branch is not None):
            raise InvalidCall(f"{changes.name}: a tag goes without version and branch")
        with self._named("table", changes):
            if tag is not None:
                fixed = changes.tag(tag)
            else:
                fixed = (changes.state.branch, changes.version(version or 0).version)
        return TableReader(changes, fixed)

    # -- changes of rows

    def append(self, table: TableName, data: Any, *, branch: str | None = None) -> int:
        """Add rows.

        Args:
            table: Name of the table.
            data: Arrow data, a DataFrame of pandas or polars, a list of dicts or a dict of columns.
            branch: Name of the branch to change.

        Returns:
            The number of rows added.

        Raises:
            InvalidCall: There is no such table, it has no version, or `data` does not fit: a column is unknown or
                missing, or a value is not one of its column. See "Values of rows" in the reference.
        """
        changes = self._require(table, branch)
        changes.require_head()
        with self._named("append", changes):
            fragments = staging.stage_rows(changes.dataset(), self._unused(data))
            if fragments:
                changes.take("append", Append(fragments), message=self._message)
        return sum(fragment.physical_rows for fragment in fragments)

    def overwrite(
        self,
        table: TableName,
        data: Any,
        *,
        schema: pa.Schema | None = None,
        vectors: Vectors | None = None,
        branch: str | None = None,
    ) -> int:
        """Replace all rows and the schema.

        An overwrite also replaces rows that others commit meanwhile, unless the transaction read the table before.
        Then such a commit is a conflict.

        Args:
            table: Name of the table.
            data: Arrow data, a DataFrame of pandas or polars, a list of dicts or a dict of columns.
            schema: Schema of the table, by default the schema of `data`.
            vectors: Columns of vectors, see `create`.
            branch: Name of the branch to change.

        Returns:
            The number of rows written.

        Raises:
            InvalidCall: There is no such table, or `data` does not fit `schema`.
        """
        changes = self._require(table, branch)
        return self._replace("overwrite", changes, data, schema, vectors)

    def create(
        self,
        table: TableName,
        data: Any = None,
        *,
        schema: pa.Schema | None = None,
        properties: Mapping[str, str] | None = None,
        stable_row_ids: bool = False,
        vectors: Vectors | None = None,
    ) -> int:
        """Create a table, or write the first version of a table that was only declared.

        The namespace must exist when the batch commits.

        Args:
            table: Name of the table.
            data: Arrow data, a DataFrame of pandas or polars, a list of dicts or a dict of columns. May be left out
                with a `schema`.
            schema: Schema of the table, by default the schema of `data`.
            properties: Properties that the catalog stores with the table.
            stable_row_ids: Whether rows keep their ids when they are updated or compacted. Cannot be changed later.
            vectors: Columns of lists of numbers that become vectors of a fixed size, which vector indices need:
                `{"embedding": 768}`, `["embedding"]` if its lists have one length, or "infer" for all such columns of
                floats. Their values have 32 bits, or 16 if `data` has them so; a `schema` is for other types.

        Returns:
            The number of rows written.

        Raises:
            InvalidCall: The table has a version, neither rows nor a schema are given, or they contradict each other.
        """
        table_id = self._id(table)
        changes = self._find(table_id, None)
        if changes is None:
            new = self._new_changes(table_id, properties, stable_row_ids)
            rows = self._replace("create", new, data, schema, vectors)
            self._tables[table_id, None] = new
            return rows
        self._require_vacant(changes, properties)
        changes.stable_row_ids = stable_row_ids
        return self._replace("create", changes, data, schema, vectors)

    def delete(self, table: TableName, where: str, *, branch: str | None = None) -> int:
        """Delete the rows that match an SQL expression.

        Args:
            table: Name of the table.
            where: SQL expression over the columns.
            branch: Name of the branch to change.

        Returns:
            The number of rows deleted.

        Raises:
            InvalidCall: There is no such table, or it has no version.
        """
        changes = self._require(table, branch)
        head = changes.require_head()
        changes.was_read = True
        with self._named("delete", changes):
            operation, rows = staging.stage_delete(changes.dataset(), changes.files, head, where)
            if rows:
                changes.take(f"delete where {where}", operation, message=self._message)
        return rows

    def update(
        self, table: TableName, values: Mapping[str, str], *, where: str | None = None, branch: str | None = None
    ) -> int:
        """Set columns to new values in the rows that match.

        Args:
            table: Name of the table.
            values: SQL expressions over the old row, by column name.
            where: SQL expression over the columns, all rows if None.
            branch: Name of the branch to change.

        Returns:
            The number of rows updated.

        Raises:
            InvalidCall: There is no such table or column, or the table has blob columns.
        """
        changes = self._require(table, branch)
        head = changes.require_head()
        changes.was_read = True
        with self._named("update", changes):
            operation, rows = staging.stage_update(changes.dataset(), changes.files, head, values, where)
            if rows:
                changes.take(f"update {', '.join(values)}", operation, message=self._message)
        return rows

    def merge(
        self,
        table: TableName,
        data: Any,
        on: str | Sequence[str],
        *,
        matched: Matched = "update",
        condition: str | None = None,
        not_matched: NotMatched = "insert",
        not_matched_by_source: NotMatchedBySource = "keep",
        delete_condition: str | None = None,
        branch: str | None = None,
    ) -> MergeCounts:
        """Merge rows by key. Without further arguments this is an upsert.

        Two transactions that insert the same new key conflict. A merge that inserts rows also conflicts with a
        concurrent append or update of the same table, since the keys of these rows are not known.

        Args:
            table: Name of the table.
            data: Arrow data, a DataFrame of pandas or polars, a list of dicts or a dict of columns.
            on: Key column or columns.
            matched: Action for a row of the table with a match in `data`: "update", "keep", "fail" or "delete".
            condition: SQL expression over `source` and `target` that restricts the update.
            not_matched: Action for a row of `data` without a match: "insert" or "ignore".
            not_matched_by_source: Action for a row of the table without a match: "keep" or "delete".
            delete_condition: SQL expression that restricts this deletion.
            branch: Name of the branch to change.

        Returns:
            The numbers of rows inserted, updated and deleted.

        Raises:
            InvalidCall: There is no such table or key column, or the arguments contradict each other.
        """
        changes = self._require(table, branch)
        head = changes.require_head()
        changes.was_read = True
        keys = (on,) if isinstance(on, str) else tuple(on)
        clauses = MergeClauses(keys, matched, condition, not_matched, not_matched_by_source, delete_condition)
        with self._named("merge", changes):
            merged = staging.stage_merge(changes.dataset(), head.outline, self._unused(data), clauses)
            counts = MergeCounts(merged.inserted, merged.updated, merged.deleted)
            if counts != MergeCounts(0, 0, 0):
                call = f"merge on {', '.join(keys)}"
                changes.take(call, merged.operation, message=self._message, guard=merged.guard)
        return counts

    # -- changes of the table

    def add_columns(
        self,
        table: TableName,
        columns: Any,
        *,
        read_columns: Sequence[str] | None = None,
        branch: str | None = None,
    ) -> None:
        """Add columns.

        Args:
            table: Name of the table.
            columns: SQL expressions by name, a function from record batches to record batches, Arrow data with one row
                for each row of the table in the order of a scan, or an Arrow schema or field for columns of nulls.
            read_columns: Columns that the function gets, all columns if None.
            branch: Name of the branch to change.

        Raises:
            InvalidCall: There is no such table, a column exists already, or the rows are more or fewer than the
                table's.
        """
        changes = self._require(table, branch)
        head = changes.require_head()
        changes.was_read = True
        with self._named("add_columns", changes):
            operation = staging.stage_columns(changes.dataset(), head.manifest, columns, read_columns)
            changes.take("add_columns", operation, message=self._message)

    def drop_columns(self, table: TableName, columns: Sequence[str], *, branch: str | None = None) -> None:
        """Remove top-level columns. Their data stays in the data files until these are compacted.

        Args:
            table: Name of the table.
            columns: Names of some, not all, of the columns.
            branch: Name of the branch to change.

        Raises:
            InvalidCall: There is no such table or column, or no column would be left.
        """
        changes = self._require(table, branch)
        head = changes.require_head()
        names = {field.name: field.id for field in head.manifest.fields if field.parent_id == -1}
        unknown = [name for name in columns if name not in names]
        if unknown or not columns or len(set(columns)) == len(names):
            raise InvalidCall(f"{changes.name}: drop_columns {list(columns)}: expected some, not all, of {list(names)}")
        with self._named("drop_columns", changes):
            operation = staging.stage_removal(head.manifest, {names[name] for name in columns})
            changes.take(f"drop_columns {', '.join(columns)}", operation, message=self._message)

    def create_index(
        self,
        table: TableName,
        column: str,
        index_type: str,
        *,
        name: str | None = None,
        replace: bool = False,
        branch: str | None = None,
        **parameters: Any,
    ) -> None:
        """Build an index over all rows that the transaction sees.

        Args:
            table: Name of the table.
            column: Name of the column.
            index_type: Type of the index as in pylance, such as `BTREE` or `IVF_PQ`, in any case.
            name: Name of the index, by default the column's name with `_idx` appended.
            replace: Whether to replace an index of this name.
            branch: Name of the branch to change.
            **parameters: Parameters that the type of the index has, named as in pylance. See "Indices" in the
                guide's page on rows.

        Raises:
            InvalidCall: There is no such table, it has no rows, an index of this name exists, or a parameter is not
                one of the type, has a value that it does not take, or no effect beside the others.
        """
        changes = self._require(table, branch)
        head = changes.require_head()
        changes.was_read = True
        with self._named("create_index", changes):
            kind = staging.index_type_of(index_type)
            arguments = staging.index_arguments(kind, parameters, "keyword")
            operation = staging.stage_index(
                changes.dataset(), head, column, kind, name, replace=replace, parameters=arguments
            )
            changes.take(f"create_index {operation.new[0].name}", operation, message=self._message)

    def compact(
        self, table: TableName, options: CompactionOptions | None = None, *, branch: str | None = None
    ) -> CompactionCounts:
        """Join small fragments, and rewrite fragments with many deleted rows. Indices are rewritten with them.

        Args:
            table: Name of the table.
            options: Sizes and thresholds.
            branch: Name of the branch to change.

        Returns:
            The numbers of fragments removed and added.

        Raises:
            InvalidCall: There is no such table, or it has no version.
        """
        changes = self._require(table, branch)
        changes.require_head()
        with self._named("compact", changes):
            done = changes.compact(options, message=self._message)
        if done is None:
            return CompactionCounts(0, 0)
        return CompactionCounts(done.removed_fragments, done.added_fragments)

    def restore(
        self, table: TableName, version: int | None = None, *, tag: str | None = None, branch: str | None = None
    ) -> None:
        """Restore rows, schema, configuration and indices of an earlier version.

        Like an overwrite it also replaces what others commit meanwhile, unless the transaction read the table before.

        Args:
            table: Name of the table.
            version: Number of a version of the same branch.
            tag: Name of a tag on the same branch, instead of `version`.
            branch: Name of the branch to change.

        Raises:
            InvalidCall: There is no such table, version or tag, or not exactly one of `version` and `tag` is given.
        """
        changes = self._require(table, branch)
        changes.require_head()
        if (version is None) == (tag is None):
            raise InvalidCall(f"{changes.name}: restore takes a version or a tag, found {version} and {tag}")
        with self._named("restore", changes):
            if tag is not None:
                tagged_branch, version = changes.tag(tag)
                if tagged_branch != changes.state.branch:
                    raise InvalidCall(
                        f"tag {tag!r} is on branch {tagged_branch or 'main'}, expected {changes.state.branch or 'main'}"
                    )
            assert version is not None
            changes.restore(version, message=self._message, tag=tag)

    # -- rows

    def _replace(
        self, call: str, changes: TableChanges, data: Any, schema: pa.Schema | None, vectors: Vectors | None
    ) -> int:
        with self._named(call, changes):
            rows = self._unused(data)
            if vectors is not None:
                if rows is None or schema is not None:
                    raise InvalidCall("vectors: expected rows, and no schema, which has the types of its columns")
                rows = with_vectors(staging.validated_rows(rows), vectors)
            operation = staging.stage_table(
                changes.uri,
                rows,
                schema,
                changes.data_version,
                self._options,
                exists=changes.has_version,
            )
            changes.take(call, operation, message=self._message)
        return sum(fragment.physical_rows for fragment in operation.fragments)

    def _unused(self, data: Any) -> Any:
        """Refuse an Arrow reader that was read before, by this transaction or by an earlier attempt at its block.

        It would give no rows.
        """
        if isinstance(data, pa.RecordBatchReader):
            if any(data is used for used in self._used_readers):
                raise InvalidCall("this reader was read before and can be read once: make it inside the block")
            self._used_readers.append(data)
        return data
