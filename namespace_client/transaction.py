"""MultiTableTransaction: any changes of any tables, computed here, published by one batch, all or none."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Literal, Self

import pyarrow as pa

from lance_core.compaction import CompactionOptions
from lance_core.errors import LanceCoreError
from lance_core.format.naming import MAIN_BRANCH, new_table_location
from lance_core.transaction.fields import descendants
from lance_core.transaction.operations import Append, Project, Restore
from namespace_client import staging
from namespace_client.access import CatalogAccess
from namespace_client.errors import CommitConflict, CommitRejected, CommitUnknown, InvalidCall
from namespace_client.merging import Matched, MergeClauses, MergeCounts, NotMatched, NotMatchedBySource
from namespace_client.reading import TableReader
from namespace_client.wire import (
    BRANCH_NOT_FOUND,
    DELIMITER,
    CatalogState,
    CommittedBatch,
    Operation,
    TableId,
    TableState,
)
from namespace_client.work import TableWork

Isolation = Literal["snapshot", "serializable"]
TableName = str | Sequence[str]


@dataclass(frozen=True, slots=True)
class CompactionCounts:
    """Fragments that a compaction replaced, and those that hold their rows now."""

    removed_fragments: int
    added_fragments: int


@dataclass(frozen=True, slots=True)
class TableResult:
    """What became of one table: its calls, the version that holds them, and whether others committed in between."""

    id: TableId
    branch: str | None
    calls: tuple[str, ...]
    version: int | None
    rebased: bool
    new: bool


@dataclass(frozen=True, slots=True)
class TransactionResult:
    """A committed transaction. Without changes there is no `transaction_id`; `catalog_version` is that of the begin."""

    transaction_id: str | None
    catalog_version: int | None
    tables: tuple[TableResult, ...]


class MultiTableTransaction:
    """One atomic change of many tables; see `Catalog.begin`. Used once, by one thread.

    Reads show the catalog version at the begin and what the block itself did since. Leaving the block publishes all
    of it in one batch, or nothing. An exception in the block publishes nothing. Data files that were written for what
    is not published stay where they are; nothing refers to them.

    Leaving the block raises `RetryableConflict` or `IncompatibleConflict` when others committed what stands in the way
    (nothing was published), `CommitRejected` when the catalog refused the batch otherwise, `CatalogUnreachable` when it
    was never sent, and `CommitUnknown` when nobody can tell: then `resend` asks again.

    Table names are paths, as a sequence or joined by `$`, below the catalog's default namespace if it has one (a
    sequence never is). Every call takes `branch=`. A call that raises changed nothing. A reader given as rows is read
    once: the same one again is refused.
    """

    def __init__(
        self,
        access: CatalogAccess,
        *,
        namespace: Sequence[str] = (),
        message: str | None = None,
        isolation: Isolation = "snapshot",
        storage_options: Mapping[str, str] | None = None,
        spent: list[object] | None = None,
    ) -> None:
        if isolation not in {"snapshot", "serializable"}:
            raise InvalidCall(f"isolation {isolation!r}: expected snapshot or serializable")
        self._access = access
        self._namespace = tuple(namespace)
        self._message = message
        self._serializable = isolation == "serializable"
        self._options = dict(storage_options or {})
        self._key = f"transaction-{uuid.uuid4()}"
        self._spent: list[object] = [] if spent is None else spent
        self._begin: CatalogState | None = None
        self._over = False
        self._works: dict[tuple[TableId, str | None], TableWork] = {}
        self._absent: set[TableId] = set()
        self._operations: tuple[Operation, ...] = ()
        self._result: TransactionResult | None = None

    # -- the block

    def __enter__(self) -> Self:
        if self._begin is not None:
            raise InvalidCall("a transaction is used once; begin another one")
        self._begin = self._access.state()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over = True
        if error is None:
            self._operations = tuple(self._compose())
            self._publish()

    @property
    def catalog_version(self) -> int:
        """The catalog version that the block reads."""
        return self._started().version

    @property
    def idempotency_key(self) -> str:
        """The key under which the batch is sent, every time it is sent."""
        return self._key

    @property
    def result(self) -> TransactionResult:
        """What was published. Raises `InvalidCall` before the block was left, or if nothing was."""
        if self._result is None:
            raise InvalidCall("this transaction has not been committed")
        return self._result

    def resend(self) -> TransactionResult:
        """After `CommitUnknown`: send the same batch under the same key, which cannot apply it twice.

        Raises as leaving the block does, except that a refusal says nothing of the first request while that could still
        be on its way.
        """
        if not self._operations or self._result is not None:
            raise InvalidCall("nothing to send again")
        self._publish()
        return self.result

    # -- reading

    def exists(self, table: TableName) -> bool:
        """Whether there is such a table, in the catalog at the begin or made by this block."""
        return self._find(self._id(table), None) is not None

    def table(
        self, table: TableName, *, branch: str | None = None, tag: str | None = None, version: int | None = None
    ) -> TableReader:
        """The table, for reading; with `tag` or `version` an earlier state of it, which never changes.

        Raises `InvalidCall` when there is no such table, branch, tag or version.
        """
        work = self._work(table, branch)
        if tag is None and version is None:
            work.require_head()
            work.note_read()
            return TableReader(work)
        if tag is not None and (version is not None or branch is not None):
            raise InvalidCall(f"{work.name}: a tag goes without version and branch")
        with self._named("table", work):
            fixed = work.tag(tag) if tag is not None else (work.state.branch, work.version(version or 0).version)
        return TableReader(work, fixed)

    # -- writing rows

    def append(self, table: TableName, data: Any, *, branch: str | None = None) -> int:
        """Add rows; their number. `data` is Arrow data, a DataFrame, a list of rows or a dict of columns."""
        work = self._work(table, branch)
        work.require_head()
        with self._named("append", work):
            fragments = staging.stage_rows(work.dataset(), self._unread(data))
            if fragments:
                work.take("append", Append(fragments), message=self._message)
        return sum(fragment.physical_rows for fragment in fragments)

    def overwrite(
        self, table: TableName, data: Any, *, schema: pa.Schema | None = None, branch: str | None = None
    ) -> int:
        """Make these rows, with their own schema, the whole table; their number.

        It discards what others committed meanwhile, as an overwrite does anywhere, unless the block read the table
        before: then it is a conflict.
        """
        work = self._work(table, branch)
        return self._replace("overwrite", work, data, schema)

    def create(
        self,
        table: TableName,
        data: Any = None,
        *,
        schema: pa.Schema | None = None,
        properties: Mapping[str, str] | None = None,
        stable_row_ids: bool = False,
    ) -> int:
        """Make a table with these rows, or without rows if only a `schema` is given; the number of rows.

        With `stable_row_ids` rows keep their ids when they are updated or compacted, for good. The namespace must exist
        when the batch commits. A table that was only declared gets its first version.
        """
        table_id = self._id(table)
        work = self._find(table_id, None)
        if work is None:
            location = f"{self._started().root}/{new_table_location(DELIMITER.join(table_id))}"
            state = TableState(table_id, location, None, dict(properties or {}))
            made = TableWork(state, self._options, new=True)
            made.stable_row_ids = stable_row_ids
            rows = self._replace("create", made, data, schema)
            self._works[table_id, None] = made
            return rows
        if work.has_version:
            raise InvalidCall(f"{work.name} exists: overwrite it, or append to it")
        if properties:
            raise InvalidCall(f"{work.name} is declared already, with the properties {dict(work.state.properties)}")
        work.stable_row_ids = stable_row_ids
        return self._replace("create", work, data, schema)

    def _replace(self, call: str, work: TableWork, data: Any, schema: pa.Schema | None) -> int:
        with self._named(call, work):
            exists = work.has_version
            operation = staging.stage_table(
                work.uri, self._unread(data), schema, work.data_version, self._options, exists=exists
            )
            work.take(call, operation, message=self._message)
        return sum(fragment.physical_rows for fragment in operation.fragments)

    def delete(self, table: TableName, where: str, *, branch: str | None = None) -> int:
        """Remove the rows that match an SQL expression; their number."""
        work = self._work(table, branch)
        work.require_head()
        work.was_read = True
        with self._named("delete", work):
            operation, rows = staging.stage_delete(work.dataset(), where)
            if rows:
                work.take(f"delete where {where}", operation, message=self._message)
        return rows

    def update(
        self, table: TableName, values: Mapping[str, str], *, where: str | None = None, branch: str | None = None
    ) -> int:
        """Give columns new values, SQL expressions over the row, in the rows that match; their number."""
        work = self._work(table, branch)
        head = work.require_head()
        work.was_read = True
        with self._named("update", work):
            operation, rows = staging.stage_update(work.dataset(), head.manifest, values, where)
            if rows:
                work.take(f"update {', '.join(values)}", operation, message=self._message)
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
        """Merge rows by key; without options an upsert. See `MergeClauses` for the options.

        Two transactions that insert the same new key conflict. So do a merge that inserts and a plain append or update
        of the same table, whose keys nobody looked at.
        """
        work = self._work(table, branch)
        head = work.require_head()
        work.was_read = True
        keys = (on,) if isinstance(on, str) else tuple(on)
        clauses = MergeClauses(keys, matched, condition, not_matched, not_matched_by_source, delete_condition)
        with self._named("merge", work):
            merged = staging.stage_merge(work.dataset(), head.manifest, self._unread(data), clauses)
            counts = MergeCounts(merged.inserted, merged.updated, merged.deleted)
            if counts != MergeCounts(0, 0, 0):
                call = f"merge on {', '.join(keys)}"
                work.take(call, merged.operation, message=self._message, guard=merged.guard)
        return counts

    # -- changing the table

    def add_columns(
        self,
        table: TableName,
        columns: Any,
        *,
        read_columns: Sequence[str] | None = None,
        branch: str | None = None,
    ) -> None:
        """Add columns: SQL expressions by name, a function from batches (of `read_columns`) to batches, or an Arrow
        schema or field for columns of nulls.
        """
        work = self._work(table, branch)
        head = work.require_head()
        work.was_read = True
        with self._named("add_columns", work):
            operation = staging.stage_columns(work.dataset(), head.manifest, columns, read_columns)
            work.take("add_columns", operation, message=self._message)

    def drop_columns(self, table: TableName, columns: Sequence[str], *, branch: str | None = None) -> None:
        """Remove top-level columns. Their data stays in its files until these are compacted."""
        work = self._work(table, branch)
        head = work.require_head()
        names = {field.name: field.id for field in head.manifest.fields if field.parent_id == -1}
        unknown = [name for name in columns if name not in names]
        if unknown or not columns or len(set(columns)) == len(names):
            raise InvalidCall(f"{work.name}: drop_columns {list(columns)}: expected some, not all, of {list(names)}")
        gone = descendants(head.manifest.fields, {names[name] for name in columns})
        kept = tuple(field for field in head.manifest.fields if field.id not in gone)
        with self._named("drop_columns", work):
            call = f"drop_columns {', '.join(columns)}"
            work.take(call, Project(kept, preserves_nullability=True), message=self._message)

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
        """Index a column, over all rows that the block sees. Types and parameters are those of pylance."""
        work = self._work(table, branch)
        head = work.require_head()
        work.was_read = True
        with self._named("create_index", work):
            operation = staging.stage_index(
                work.dataset(), head, column, index_type, name, replace=replace, parameters=parameters
            )
            work.take(f"create_index {operation.new[0].name}", operation, message=self._message)

    def compact(
        self, table: TableName, options: CompactionOptions | None = None, *, branch: str | None = None
    ) -> CompactionCounts:
        """Join small fragments and write those with many deleted rows again; indices follow. Rows stay as they are."""
        work = self._work(table, branch)
        work.require_head()
        with self._named("compact", work):
            done = work.compact(options, message=self._message)
        return (
            CompactionCounts(0, 0) if done is None else CompactionCounts(done.removed_fragments, done.added_fragments)
        )

    def restore(
        self, table: TableName, version: int | None = None, *, tag: str | None = None, branch: str | None = None
    ) -> None:
        """Make the table what it was at an earlier version (or tag) of the same branch: rows, schema, config, indices.

        Like an overwrite it discards what others committed meanwhile, unless the block read the table before.
        """
        work = self._work(table, branch)
        work.require_head()
        if (version is None) == (tag is None):
            raise InvalidCall(f"{work.name}: restore takes a version or a tag, found {version} and {tag}")
        with self._named("restore", work):
            if tag is not None:
                place, version = work.tag(tag)
                if place != work.state.branch:
                    raise InvalidCall(f"tag {tag!r} is on branch {place or 'main'}, not on this one")
            assert version is not None
            if version > (work.state.version or 0):
                raise InvalidCall(f"restore of version {version}: expected at most {work.state.version}")
            source = work.version(version)
            work.take(f"restore {tag or version}", Restore(version), message=self._message, source=source)

    # -- what a call is about

    def _started(self) -> CatalogState:
        if self._begin is None:
            raise InvalidCall("this transaction has not begun: use it in a with statement")
        return self._begin

    def _id(self, table: TableName) -> TableId:
        table_id = (*self._namespace, *table.split(DELIMITER)) if isinstance(table, str) else tuple(table)
        if not table_id or not all(table_id):
            raise InvalidCall(f"table {table!r}: expected a name, or a path of names")
        return table_id

    def _find(self, table_id: TableId, branch: str | None) -> TableWork | None:
        """The table as it was at the begin, or as this block made it."""
        begin = self._started()
        branch = None if branch == MAIN_BRANCH else branch
        if self._over:
            raise InvalidCall("this transaction is over")
        work = self._works.get((table_id, branch))
        if work is None and table_id not in self._absent:
            state = None
            if begin.version:
                try:
                    state = self._access.table(table_id, at=begin.version, branch=branch)
                except CommitRejected as error:
                    if error.code != BRANCH_NOT_FOUND:
                        raise
                    raise InvalidCall(f"{DELIMITER.join(table_id)}: {error}") from error
            if state is None:
                self._absent.add(table_id)
            else:
                work = self._works[table_id, branch] = TableWork(state, self._options)
        return work

    def _work(self, table: TableName, branch: str | None) -> TableWork:
        table_id = self._id(table)
        work = self._find(table_id, branch)
        if work is None:
            raise InvalidCall(
                f"{DELIMITER.join(table_id)}: no such table at catalog version {self.catalog_version}; create it"
            )
        return work

    def _unread(self, data: Any) -> Any:
        """Refuse a stream that was read before: it would be empty now, as in a block that is run again."""
        if isinstance(data, pa.RecordBatchReader):
            if any(data is spent for spent in self._spent):
                raise InvalidCall("this reader was read before and can be read once: make it inside the block")
            self._spent.append(data)
        return data

    @contextmanager
    def _named(self, call: str, work: TableWork) -> Iterator[None]:
        """What the engine or pylance refuses is told with the call that it refused."""
        try:
            yield
        except InvalidCall as error:
            raise InvalidCall(f"{work.name}: {error}") from error
        except LanceCoreError as error:
            raise InvalidCall(f"{work.name}: {call}: {error}") from error
        except Exception as error:
            error.add_note(f"in {call} of {work.name}, which changed nothing")
            raise

    # -- leaving the block

    def _compose(self) -> list[Operation]:
        checks: list[Operation] = []
        changes: list[Operation] = []
        for work in self._works.values():
            asserted, done = work.operations(self._message, serializable=self._serializable)
            checks += asserted
            changes += done
        return [*checks, *changes] if changes else []

    def _publish(self) -> None:
        if not self._operations:
            begin = self._started()
            self._result = self._told(CommittedBatch(None, begin.version, ()))
            return
        try:
            batch = self._access.commit(self._operations, idempotency_key=self._key, message=self._message)
        except CommitUnknown:
            raise
        except CommitConflict as error:
            self._explain(error)
            raise
        self._result = self._told(batch)

    def _explain(self, error: CommitConflict) -> None:
        """Say which calls would have to be made again."""
        explained = []
        for conflict in error.conflicts:
            work = self._works.get((conflict.table, conflict.branch))
            calls = () if work is None else work.calls or (f"what was read of {work.name}",)
            reason = conflict.reason
            if work is not None and work.guard is not None:
                reason += f" (its calls can only be committed on the version that they were made on: {work.guard})"
            explained.append(replace(conflict, reason=reason, redo=calls))
        error.conflicts = tuple(explained)
        for conflict in explained:
            error.add_note(str(conflict))

    def _told(self, batch: CommittedBatch) -> TransactionResult:
        tables = []
        for (table_id, branch), work in self._works.items():
            if not work.steps:
                continue
            done = [table for table in batch.tables if (table.id, table.branch) == (table_id, branch)]
            version = done[-1].version if done else work.state.version
            rebased = any(table.rebased for table in done)
            tables.append(TableResult(table_id, branch, work.calls, version, rebased, work.new))
        return TransactionResult(batch.transaction_id, batch.catalog_version, tuple(tables))
