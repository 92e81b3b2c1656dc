"""The life of a transaction: it begins, collects operations, and commits them in one batch.

`StagedTransaction` is the one home of composition, isolation, commit, resend and result. Data files may be written by
any process. `MultiTableTransaction` adds calls that write them in this process, and `spark_catalog.GraphWrite` writes
them in Spark tasks.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from types import TracebackType
from typing import Final, Literal, Self

from lance_core.format.manifest import ManifestFile
from lance_core.format.naming import MAIN_BRANCH, new_table_location
from lance_core.transaction.operations import Operation
from namespace_client.access import CatalogAccess
from namespace_client.error_codes import ErrorCode
from namespace_client.errors import (
    AccessRefused,
    CatalogUnavailable,
    CatalogUnreachable,
    CommitConflict,
    CommitRejected,
    InvalidCall,
)
from namespace_client.grants import Privileges, granted_on, granted_to, listed
from namespace_client.leases import EVERY, Intent
from namespace_client.names import AnyName, absolute, default_namespace
from namespace_client.read_point import MovingReadPoint, retryable_conflict
from namespace_client.results import TableResult, TransactionResult
from namespace_client.wire import CatalogHead, CommittedBatch
from table_data.batch_operations import (
    DELIMITER,
    BatchOperation,
    CursorAdvance,
    PrivilegeChange,
    TableId,
    TableOfIntent,
    TableState,
)
from table_data.errors import BaseVersionGone, WorkFailed
from table_data.pylance_errors import explained
from table_data.requests.field_paths import dotted
from table_data.table_changes import TableChanges

INTENT_AFTER: Final = timedelta(minutes=1)
"""How long a transaction may be open before it is registered as a job that takes long."""
Isolation = Literal["snapshot", "serializable"]
TableName = AnyName


class StagedTransaction:
    """One atomic change of many tables whose files are already written. Used once, by one thread.

    A block looks up tables with `describe`, makes new ones with `declare`, writes files by its own means, and describes
    them with `stage`. Leaving the `with` block (or `commit`) sends all operations in one batch. An exception in the
    block sends nothing. The files are the caller's: an unsuccessful transaction deletes none.

    A table name that is a string is one dotted name in the default namespace. A sequence is the parts of a whole path.

    Example:
        ```python
        access = CatalogServer("http://127.0.0.1:2333")
        with StagedTransaction(access, namespace="ml") as tx:
            features = tx.describe("features")
            fragments = write_fragments(rows, features.uri, mode="append")
            tx.stage("features", append_operation(fragments), call="append")
        print(tx.result.catalog_version)
        ```

    Args:
        access: The catalog.
        namespace: Default namespace, the parent of table names that are strings.
        message: Text that is stored with the batch and in the transaction of every table.
        isolation: "snapshot" or "serializable", see `Catalog.begin`.
        storage_options: Options of Lance for the object store of the tables.
        key_prefix: Prefix of the idempotency key.
        begin: Catalog version that the transaction begins at, the newest if None. Operations may be staged for it in
            one process and committed in another.
        intent_after: How long it may be open before it is registered as a job that takes long (`Intent`), which keeps
            its files and the versions that it reads from garbage collection. The commit ends the registration. With 0
            each table is registered before the caller knows it, so that no file is written before. Never if None.

    Raises:
        InvalidCall: `isolation` has another value.
    """

    def __init__(
        self,
        access: CatalogAccess,
        *,
        namespace: AnyName = (),
        message: str | None = None,
        isolation: Isolation = "snapshot",
        storage_options: Mapping[str, str] | None = None,
        key_prefix: str = "transaction",
        begin: CatalogHead | None = None,
        intent_after: timedelta | None = INTENT_AFTER,
    ) -> None:
        if isolation not in {"snapshot", "serializable"}:
            raise InvalidCall(f"isolation {isolation!r}: expected snapshot or serializable")
        self._access = access
        self._namespace = default_namespace(namespace)
        self._message = message
        self._serializable = isolation == "serializable"
        self._options = dict(storage_options or {})
        self._key = f"{key_prefix}-{uuid.uuid4()}"
        self._given_begin = begin
        self._root: str | None = None
        self._point: MovingReadPoint | None = None
        self._over = False
        self._tables: dict[tuple[TableId, str | None], TableChanges] = {}
        self._operations: tuple[BatchOperation, ...] = ()
        self._moves: list[CursorAdvance] = []
        self._grants: list[PrivilegeChange] = []
        self._result: TransactionResult | None = None
        self._intent = Intent(access, self._intended, reason=message)
        self._intent_after = intent_after
        self._registers_at_once = intent_after == timedelta(0)

    def __repr__(self) -> str:
        began = "not begun" if self._point is None else f"at catalog version {self._point.version}"
        changed = [f"{each.name}: {', '.join(each.calls)}" for each in self._tables.values() if each.calls]
        state = "committed" if self._result is not None else "over, not committed" if self._over else "open"
        return f"<{type(self).__name__} {began}, {state}{''.join(f'; {each}' for each in changed)}>"

    def __enter__(self) -> Self:
        if self._point is not None:
            raise InvalidCall("a transaction is used once; begin another one")
        self._begin_at(self._given_begin or self._access.state(), fixed=self._given_begin is not None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            was_open = not self._over
            self.abandon()
            if was_open:
                self._discard()
        elif not self._over:
            self.commit()
        self._over = True

    # -- the transaction as a whole

    @property
    def catalog_version(self) -> int:
        """The catalog version that all reads are of.

        It is that of the begin, or a newer one in which commits around the catalog were adopted when a table was
        opened. It moves only where all tables that were opened before are unchanged.
        """
        return self._started().version

    @property
    def begin(self) -> CatalogHead:
        """Root of the catalog, and the catalog version that all reads are of."""
        return self._started()

    @property
    def idempotency_key(self) -> str:
        """The key of the batch, the same for every time that it is sent."""
        return self._key

    @property
    def result(self) -> TransactionResult:
        """The committed transaction. Raises `InvalidCall` before the commit, and if there was none."""
        if self._result is None:
            raise InvalidCall("this transaction has not been committed")
        return self._result

    def commit(self) -> TransactionResult:
        """Compose all changes into one batch and commit it. Leaving the `with` block calls this.

        A transaction without changes sends nothing.

        Returns:
            The versions that the changes became.

        Raises:
            RetryableConflict: Another commit is in the way, and running the block again can succeed.
            IncompatibleConflict: Another commit conflicts irreconcilably.
            CommitRejected: The catalog refused the batch for another reason. Nothing was committed.
            CatalogUnreachable: The batch was never sent.
            CommitUnknown: The outcome is unknown; `resend` sends the same batch again.
            InvalidCall: The transaction has not begun or is over.
        """
        self._require_open()
        self._over = True
        try:
            self._operations = tuple(self._compose())
        except BaseException:
            self.abandon()
            self._discard()
            raise
        if not self._operations:
            self._intent.end()
        self._intent.stop()
        if self._operations and self._intent.is_registered:
            self._operations = (*self._operations, self._intent.end_operation)
        try:
            return self._publish()
        except (
            AccessRefused,
            CommitRejected,
            CatalogUnreachable,
        ) as error:  # after others it may be committed, and ends the intent
            self.abandon()
            if not isinstance(error, CatalogUnavailable | CatalogUnreachable):
                self._operations = ()
                self._discard()
            raise

    def abandon(self) -> None:
        """Commit nothing, and end the registration as a job that takes long. Does nothing after a commit."""
        self._over = True
        if self._result is None:
            self._intent.end()

    def _discard(self) -> None:
        """Remove files that this transaction wrote: it is not committed, and will not be. Here it has written none."""

    def register_intent(self) -> None:
        """Register this transaction as a job that takes long, with the tables that it uses so far, or add to them.

        Without this call it is registered once it is open for `intent_after`.

        Raises:
            CommitRejected: The catalog refused it, see `Intent.register`.
            CatalogUnreachable: The catalog did not respond.
            CommitUnknown: The outcome is unknown.
        """
        self._intent.register()

    def resend(self) -> TransactionResult:
        """Send the same batch again under the same key after `CommitUnknown`. The catalog applies it at most once.

        Returns:
            The versions that the changes became.

        Raises:
            InvalidCall: There is no batch of unknown outcome.
            CommitRejected: The catalog refused this request. An earlier request of unknown outcome may still commit.
            CatalogUnreachable: This request was not sent.
            CommitUnknown: The outcome is still unknown.
        """
        if not self._operations or self._result is not None:
            raise InvalidCall("nothing to send again")
        return self._publish()

    # -- tables, and changes whose files are written already

    def exists(self, table: TableName) -> bool:
        """Whether the table is in the catalog at the begin, or made by this transaction."""
        return self._find(self._id(table), None) is not None

    def describe(self, table: TableName, *, branch: str | None = None) -> TableState | None:
        """Location, version and properties of a table.

        Args:
            table: Name of the table.
            branch: Name of a branch; its version is in the answer.

        Returns:
            The table as of the begin or as declared by this transaction, None if there is none.

        Raises:
            InvalidCall: There is no such branch.
        """
        changes = self._find(self._id(table), branch)
        return None if changes is None else changes.state

    def declare(
        self,
        table: TableName,
        *,
        properties: Mapping[str, str] | None = None,
        stable_row_ids: bool = False,
        location: str | None = None,
    ) -> TableState:
        """Reserve a unique location for a new table, so that its files can be written before the commit.

        The batch creates the table if a change of it is staged, and leaves it out otherwise.

        Args:
            table: Name of the table.
            properties: Properties that the catalog stores with the table.
            stable_row_ids: Whether rows keep their ids when they are updated or compacted.
            location: URI that another transaction reserved for this table, and that holds its files; a new one if
                None.

        Returns:
            The table, with its location and without a version.

        Raises:
            InvalidCall: The table exists.
        """
        table_id = self._id(table)
        if self._find(table_id, None) is not None:
            raise InvalidCall(f"{dotted(table_id)} exists: expected a new table")
        changes = self._new_changes(table_id, properties, stable_row_ids, location)
        self._take_up((table_id, None), changes)
        return changes.state

    def stage(self, table: TableName, operation: Operation, *, call: str, branch: str | None = None) -> None:
        """Add an operation whose files are written already.

        `table_data.descriptions` makes operations from the uncommitted results of pylance. Several operations on
        one table are composed into one transaction where possible. Each must fit the version that the ones before it
        lead to. The first version of a table is an `Overwrite`.

        Args:
            table: Name of the table, in the catalog or declared by this transaction.
            operation: Operation of the engine, not a `Restore`.
            call: What the operation does, for results, conflicts and errors: `append`, `delete where id = 1`.
            branch: Name of the branch to change.

        Raises:
            InvalidCall: There is no such table or branch, or the operation does not fit the table. Nothing was added.
        """
        changes = self._require(table, branch)
        with self._named(call, changes):
            changes.take(call, operation, message=self._message)

    def advance_cursor(self, name: str, version: int, *, expected: int | None = None) -> None:
        """Put a cursor of events at a catalog version in the same batch: what an event led to is made once.

        The batch conflicts irreconcilably if the cursor is not where it is `expected`, is at that version already, or
        would go back: another consumer of it has done the same. An iterator of events of this connection that moves the
        cursor, too, goes on from there.
        """
        self._require_open()
        self._moves.append(CursorAdvance(name, version, expected))

    def grant(
        self,
        privileges: Privileges,
        *,
        table: AnyName | None = None,
        namespace: AnyName | None = None,
        principal: str | None = None,
        role: str | None = None,
    ) -> None:
        """Grant privileges in the same batch: a table that it creates is there for others from its first version on.

        Names are as in `Catalog.grant`. The batch is denied where the caller may not grant them.
        """
        self._require_open()
        on = granted_on(table, namespace, self._namespace, catalog=False)
        to, given = granted_to(principal, role), tuple(listed(privileges, "privileges"))
        self._grants.append(PrivilegeChange(on.json, to.json, given))

    def mark_read(self, table: TableName, *, branch: str | None = None) -> None:
        """Record that the caller read the table by its own means.

        A serializable commit then asserts that the table has not changed. Under snapshot isolation, an overwrite that
        is staged *after* the read asserts it, too.

        Raises:
            InvalidCall: There is no such table or branch.
        """
        self._require(table, branch).note_read()

    def _begin_at(self, begin: CatalogHead, *, fixed: bool = False) -> None:
        self._root, self._point = begin.root, MovingReadPoint(self._access, begin.version, fixed=fixed)
        if self._intent_after is not None:
            self._intent.renew_after(EVERY if self._registers_at_once else self._intent_after)

    # -- tables by name

    def _started(self) -> CatalogHead:
        if self._root is None or self._point is None:
            raise InvalidCall("this transaction has not begun: use it in a with statement")
        return CatalogHead(self._root, self._point.version)

    def _require_open(self) -> None:
        self._started()
        if self._over:
            raise InvalidCall("this transaction is over")

    def _id(self, table: TableName) -> TableId:
        return absolute(table, self._namespace)

    def _find(self, table_id: TableId, branch: str | None) -> TableChanges | None:
        """The table as of the begin, or as made by this transaction."""
        self._require_open()
        assert self._point is not None
        branch = None if branch == MAIN_BRANCH else branch
        changes = self._tables.get((table_id, branch))
        if changes is None:
            try:
                state = self._point.table(table_id, branch=branch)
            except CommitRejected as error:
                if error.code != ErrorCode.TABLE_BRANCH_NOT_FOUND:
                    raise
                raise InvalidCall(f"{dotted(table_id)}: {error}") from error
            if state is not None:
                changes = _CatalogTable(self._access, state, self._options or state.storage_options)
                self._take_up((table_id, branch), changes)
        return changes

    def _take_up(self, key: tuple[TableId, str | None], changes: TableChanges) -> None:
        self._tables[key] = changes
        if self._registers_at_once:
            self._intent.register()

    def _require(self, table: TableName, branch: str | None) -> TableChanges:
        table_id = self._id(table)
        changes = self._find(table_id, branch)
        if changes is None:
            raise InvalidCall(f"{dotted(table_id)}: no such table at catalog version {self.catalog_version}; create it")
        return changes

    def _new_changes(
        self,
        table_id: TableId,
        properties: Mapping[str, str] | None,
        stable_row_ids: bool,
        location: str | None = None,
    ) -> TableChanges:
        location = location or f"{self._started().root}/{new_table_location(DELIMITER.join(table_id))}"
        changes = TableChanges(TableState(table_id, location, None, dict(properties or {})), self._options, new=True)
        changes.stable_row_ids = stable_row_ids
        return changes

    @contextmanager
    def _named(self, call: str, changes: TableChanges) -> Iterator[None]:
        """Raise errors of the engine and of pylance as `InvalidCall` or `WorkFailed`, with the table and the call."""
        try:
            with explained(call):
                yield
        except (InvalidCall, WorkFailed) as error:
            error.args = (f"{changes.name}: {error}", *error.args[1:])
            raise

    def _intended(self) -> list[TableOfIntent]:
        """The tables that it uses so far. Called from another thread."""
        states = [changes.state for changes in list(self._tables.values())]
        return [TableOfIntent(state.id, state.uri, state.branch, state.version) for state in states]

    # -- the batch

    def _compose(self) -> list[BatchOperation]:
        checks: list[BatchOperation] = []
        changed: list[BatchOperation] = []
        for changes in self._tables.values():
            assertions, operations = changes.operations(self._message, serializable=self._serializable)
            checks += assertions
            changed += operations
        others: list[BatchOperation] = [*self._moves, *self._grants]
        return [*checks, *changed, *others] if changed or others else []

    def _publish(self) -> TransactionResult:
        if self._operations:
            try:
                batch = self._access.commit(self._operations, idempotency_key=self._key, message=self._message)
            except CommitConflict as error:
                self._explain(error)
                raise
            self._access.moved_cursors.update(
                (move.name, move.version) for move in self._moves if move.version is not None
            )
        else:
            batch = CommittedBatch(None, self._started().version, ())
        self._result = self._summary(batch)
        return self._result

    def _explain(self, error: CommitConflict) -> None:
        """Add the calls that would have to be repeated, and the reasons of assertions, to the conflicts."""
        explained = []
        for conflict in error.conflicts:
            changes = self._tables.get((conflict.table, conflict.branch))
            calls = () if changes is None else changes.calls or (f"what was read of {changes.name}",)
            reason = conflict.reason
            if changes is not None and changes.guard is not None:
                reason += f" (its calls can only be committed on the version that they were made on: {changes.guard})"
            explained.append(replace(conflict, reason=reason, redo=calls))
        error.conflicts = tuple(explained)
        for conflict in explained:
            error.add_note(str(conflict))

    def _summary(self, batch: CommittedBatch) -> TransactionResult:
        tables = []
        for (table_id, branch), changes in self._tables.items():
            if not changes.steps:
                continue
            committed = [table for table in batch.tables if (table.id, table.branch) == (table_id, branch)]
            version = committed[-1].version if committed else changes.state.version
            rebased = any(table.rebased for table in committed)
            tables.append(TableResult(table_id, branch, changes.calls, version, rebased, changes.new))
        return TransactionResult(batch.transaction_id, batch.catalog_version, tuple(tables))


class _CatalogTable(TableChanges):
    """The steps of a table of the catalog. The version that they begin with may be gone when it is read."""

    def __init__(self, access: CatalogAccess, state: TableState, options: Mapping[str, str]) -> None:
        super().__init__(state, options)
        self._access = access

    @property
    def base(self) -> ManifestFile | None:
        """The version at the begin of the transaction.

        Raises `RetryableConflict` if it is gone: removed by a clean-up, or with its branch, or another writer has taken
        its name by path, which the catalog repairs. `BaseVersionGone` if it is still the newest, and cannot be read.
        """
        try:
            return super().base
        except BaseVersionGone as error:
            found = self._access.table(self.state.id, branch=self.state.branch)  # it repairs a name that is taken
            if found is not None and found.identity == self.state.identity:
                _ = TableChanges(found, self.options).base
            reason = str(error).removeprefix(f"{self.name}: ")
            raise retryable_conflict(self.state, None if found is None else found.version, reason) from error
