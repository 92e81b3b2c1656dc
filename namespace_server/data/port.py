"""The ports of operations on rows: they find tables, commit batches, and run work in processes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from lance_namespace.errors import ErrorCode, LanceNamespaceError

from namespace_server.access.subjects import Privilege, Subject
from namespace_server.answer import Answer
from namespace_server.data.change_request import Caller, ChangeRecord
from table_data.batch_operations import StagedOperation, TableState, VersionIdentity
from table_data.jobs.job import Job, Staged
from table_data.requests.table_requests import CreateTable, ReadRequest, TableRequest

if TYPE_CHECKING:
    from namespace_server.directory.catalog_tables import CatalogTables
    from namespace_server.directory.multipart_uploads import MultipartUploads

T = TypeVar("T")
Rows_contra = TypeVar("Rows_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class CommittedChange:
    """A change of rows that is in the catalog.

    Attributes:
        transaction_id: The uuid of its batch.
        catalog_version: The catalog version that has it.
        version: Number of the table version that it made; None if it changed nothing.
        identity: The identity of that version beyond its number, None if the catalog does not know it.
        kept: The recorded answer, with the version, of a change that was committed before under its idempotency key:
            nothing that was staged this time is in the catalog. Else None.
    """

    transaction_id: str
    catalog_version: int
    version: int | None = None
    identity: VersionIdentity | None = None
    kept: Mapping[str, object] | None = None


Commit = Callable[[Sequence[StagedOperation], ChangeRecord], Awaitable[CommittedChange]]
"""See `Tables.commit`."""


class Look(Protocol):
    """Does work that asks storage for something, so that an event loop does not wait for it."""

    async def __call__(self, work: Callable[[], T], /) -> T:
        """The result of the work."""
        ...


async def look_at_once(work: Callable[[], T]) -> T:
    """A `Look` of a process without an event loop: never waits."""
    return work()


CommitChange = Callable[[str, TableRequest], Answer]
"""Commits a change of a table on its newest version: one of `table_data.operations.CHANGES`, and its request. Blocking.

Raises the namespace errors of a change of rows. What was rejected left no files.
"""


class ChangesGone(LanceNamespaceError):
    """The changes of rows cannot be told: versions were removed, or another table took the place of one (410).

    The code is that of other versions that are not kept. `reason` says what was expected and found.
    """

    code = ErrorCode.TABLE_VERSION_NOT_FOUND
    status = 410

    def __init__(self, table: str, reason: str) -> None:
        super().__init__(
            f"changes of table {table}: {reason}; take a baseline: pin a catalog version (POST /v1/catalog/pins), read "
            "the table as of it, go on with the changes since that version, and remove the pin"
        )


class Tables:
    """A catalog as changes of rows use it; calls that may wait for storage or for a commit are coroutines.

    Args:
        catalog: The catalog.
        commit: Commits staged operations as one batch, see `commit`.
        find: Looks for something in the newest version of the catalog.
        in_thread: Does work that waits for storage.
    """

    def __init__(
        self, catalog: CatalogTables, commit: Commit, find: Look = look_at_once, in_thread: Look = look_at_once
    ) -> None:
        self._catalog = catalog
        self._commit = commit
        self._find = find
        self._in_thread = in_thread

    @property
    def storage_options(self) -> Mapping[str, str]:
        """Options of Lance for the object store of the tables."""
        return self._catalog.storage_options

    async def find_table(
        self,
        request: ReadRequest,
        *,
        layout: bool = False,
        subject: Subject | None = None,
        privileges: Collection[Privilege] = (),
    ) -> tuple[TableState, int]:
        """As `CatalogTables.find_table`, at the newest catalog version."""
        find = self._catalog.find_table
        return await self._find(lambda: find(request, layout=layout, subject=subject, privileges=privileges))

    async def new_table(
        self, request: CreateTable, subject: Subject | None = None, implicit: tuple[str, ...] = ()
    ) -> tuple[TableState, int]:
        """As `CatalogTables.new_table`."""
        return await self._find(lambda: self._catalog.new_table(request, subject, implicit))

    def require(self, subject: Subject | None, privileges: Collection[Privilege], table_id: Sequence[str]) -> None:
        """As `CatalogTables.require`."""
        self._catalog.require(subject, privileges, table_id)

    async def is_answered(self, caller: Caller) -> bool:
        """As `CatalogTables.is_answered`."""
        return await self._find(lambda: self._catalog.is_answered(caller))

    async def answered(self, record: ChangeRecord) -> CommittedChange | None:
        """As `CatalogTables.answered`."""
        return await self._find(lambda: self._catalog.answered(record))

    async def commit(self, operations: Sequence[StagedOperation], record: ChangeRecord) -> CommittedChange:
        """Commit the staged operations as one batch. Raises the errors of a batch.

        Under an idempotency key there may be no operations: then the answer is recorded.
        """
        return await self._commit(operations, record)

    async def with_uploads(self, work: Callable[[MultipartUploads], T]) -> T:
        """Do work with the uploads of the root, beside the event loop."""
        return await self._in_thread(lambda: work(self._catalog.uploads))


class StagedChange(Protocol):
    """A change that is staged on one version after another, until its batch commits."""

    async def stage(self, table: TableState, *, limit: float | None = None) -> Staged:
        """Stage it on this version, in `limit` seconds if that can be held. Raises `ClientError`, `WorkTimeout`."""
        ...

    async def discard(self) -> None:
        """Remove the files that were staged last: their batch was rejected. Raises nothing."""
        ...

    async def prepare(self, table: TableState) -> None:
        """Prepare for a change of the version that this change was committed as. Raises nothing."""
        ...


class ChangeRunner(Protocol[Rows_contra]):
    """Runs changes."""

    def change(
        self, job: Job, rows: Rows_contra | None, principal: str | None
    ) -> AbstractAsyncContextManager[StagedChange]:
        """Begin a change of a principal."""
        ...
