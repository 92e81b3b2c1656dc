"""The catalog version that several tables are read as of."""

from __future__ import annotations

from itertools import islice
from typing import Final

from namespace_client.access import CatalogAccess
from namespace_client.error_codes import ErrorCode
from namespace_client.errors import AccessRefused, CommitRejected, Conflict, RetryableConflict
from table_data.batch_operations import TableId, TableState
from table_data.requests.field_paths import dotted

_MOST_VERSIONS: Final = 100
"""Catalog versions whose history is asked for at once."""


class MovingReadPoint:
    """The catalog version that the tables of one job are opened as of. Not thread-safe.

    Commits that were made around the catalog are in no catalog version until the server adopts them, which it does
    when the table is opened. The point then moves to the catalog version that has them, if every table that was opened
    before is the same there. So what is opened is always of one catalog version. If a table has changed since, the
    point stays, and the table is opened without those commits, as without all that are later.

    Args:
        access: The catalog.
        version: Catalog version to begin at.
        fixed: Whether the point never moves, because others read at it, too.
    """

    def __init__(self, access: CatalogAccess, version: int, *, fixed: bool = False) -> None:
        self.version = version
        self._access = access
        self._fixed = fixed
        self._opened: dict[tuple[TableId, str | None], TableState | None] = {}

    def table(self, table_id: TableId, *, branch: str | None = None) -> TableState | None:
        """The table, or one of its branches, at its newest version; the same at every call. None if there is none.

        Raises:
            RetryableConflict: The table has no version here. Its first one was committed around the catalog, and the
                point cannot move to where it is adopted. A fixed point has the table without a version.
            CommitRejected: There is no such branch (code 22), or the catalog refused the read.
            CatalogUnreachable: The catalog did not respond.
        """
        key = (table_id, branch)
        if key not in self._opened:
            self._opened[key] = self._open(table_id, branch) if self.version else self._by_path(table_id, branch)
        return self._opened[key]

    def _by_path(self, table_id: TableId, branch: str | None) -> TableState | None:
        """A table of a root without a catalog: there are none, or those that clients made by path, as they are now."""
        return None if self._access.state().managed else self._access.table(table_id, branch=branch)

    def _open(self, table_id: TableId, branch: str | None) -> TableState | None:
        try:
            found = self._access.find_table(table_id, at=self.version, branch=branch)
        except CommitRejected as error:
            if error.code != ErrorCode.TABLE_BRANCH_NOT_FOUND or self._fixed:
                raise
            self._access.table(table_id, branch=branch)  # adopts a branch that was made around the catalog
            if not self._move(self._access.state().version):
                raise
            return self._access.table(table_id, at=self.version, branch=branch)
        if found.state is None or found.adopted_in is None:
            return found.state
        if self._fixed:
            return found.state
        if self._move(found.adopted_in):
            return self._access.table(table_id, at=self.version, branch=branch)
        if found.state.version is None:
            reason = (
                f"its first version was committed around the catalog and is adopted in catalog version "
                f"{found.adopted_in}; this transaction reads catalog version {self.version}"
            )
            raise retryable_conflict(found.state, None, reason)
        return found.state

    def _move(self, version: int) -> bool:
        """Move to a newer catalog version, if all that was opened is the same there."""
        for table_id, branch in self._perhaps_changed(version):
            try:
                there = self._access.table(table_id, at=version, branch=branch)
            except CommitRejected:
                return False
            if _content(there) != _content(self._opened[table_id, branch]):
                return False
        self.version = version
        return True

    def _perhaps_changed(self, version: int) -> list[tuple[TableId, str | None]]:
        """The opened tables that may have changed up to a newer catalog version, by its history.

        To compare all of it would take n * n requests for n tables, if each of them was made around the catalog.
        """
        made, opened = version - self.version, list(self._opened)
        if not opened or made > _MOST_VERSIONS:
            return opened
        try:
            versions = list(islice(self._access.history(below=version + 1, page=made), made))
        except (CommitRejected, AccessRefused):
            return opened
        if [each.version for each in versions] != list(range(version, self.version, -1)):
            return opened
        return [key for key in opened if any(each.may_have_changed(key[0]) for each in versions)]


def _content(state: TableState | None) -> object:
    """The parts of a state that describe the table. Storage options are issued anew for each answer."""
    return None if state is None else (state.uri, state.version, state.identity, dict(state.properties))


def retryable_conflict(read: TableState, actual: int | None, reason: str) -> RetryableConflict:
    """A conflict that the client finds itself, on the table that was `read`. `actual` is its newest version."""
    error = RetryableConflict(f"{dotted(read.id)}: {reason}; run it again", code=ErrorCode.CONCURRENT_MODIFICATION)
    error.conflicts = (Conflict(read.id, read.branch, read.version, actual, None, reason),)
    return error
