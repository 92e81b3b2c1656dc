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
from table_data.requests.table_requests import CreateTable, ReadChanges, ReadRequest, TableRequest

if TYPE_CHECKING:
    from namespace_server.data.multipart import UploadStore
    from table_data.change_feed.ranges import ChangeRange

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


class TableCatalog(Protocol):
    """Finds tables. Blocking; thread-safe."""

    @property
    def local(self) -> bool:
        """Whether a table of the newest version is found in microseconds, so that an event loop may wait for it."""
        ...

    @property
    def storage_options(self) -> Mapping[str, str]:
        """Options of Lance for the object store of the tables."""
        ...

    def find_table(
        self,
        request: ReadRequest,
        *,
        at: int | None = None,
        layout: bool = False,
        subject: Subject | None = None,
        privileges: Collection[Privilege] = (),
    ) -> tuple[TableState, int]:
        """The table that a request names, at the version it names or the newest, and the catalog version.

        With `layout` the table has the digest of its layout, unless that takes a look at storage. What other writers
        committed is adopted before, and the version's manifest has its canonical name after. Raises the namespace
        errors for what does not exist, or may not be seen by `subject`; and PermissionDeniedError (15) if that lacks
        one of `privileges`, or reads files of a table by it that it may not read. None is the operator.
        """
        ...

    def find_changes(
        self, request: ReadChanges, *, subject: Subject | None = None, privileges: Collection[Privilege] = ()
    ) -> tuple[TableState, ChangeRange]:
        """The table at the last catalog version of a request, and its versions since the first one.

        The table is known by its location: it may have been renamed since. Raises `ChangesGone` (11) if a version is
        not kept, or another table had its name; InvalidInputError (13) for bounds that are none of this catalog; and
        the namespace errors for what does not exist, or the subject may not see or read.
        """
        ...

    def row_count(self, table: TableState) -> int | None:
        """The number of rows of the table's version; None if its manifest does not state it.

        One read of a manifest of bounded size, unless it is in memory.
        """
        ...

    def blob_refusal(self, place: str, subject: Subject | None = None) -> str | None:
        """Why the file at this path or URI, which is a value of a column of blobs, is not read for a subject.

        None if it is. A few looks at the links of a local path.
        """
        ...

    def new_table(
        self, request: CreateTable, subject: Subject | None = None, implicit: tuple[str, ...] = ()
    ) -> tuple[TableState, int]:
        """A table that does not exist yet, at a location of its own, with the properties of the request.

        Its namespace must exist, unless it is `implicit` or above that. Also the catalog version that does not have it.
        Raises the namespace errors for a name that cannot be taken, and PermissionDeniedError (15) if `subject` may
        create no table there.
        """
        ...

    def require(self, subject: Subject | None, privileges: Collection[Privilege], table_id: Sequence[str]) -> None:
        """Raise PermissionDeniedError (15) if a subject lacks a privilege on a table that was found. No I/O."""
        ...

    def maintain(
        self,
        request: Mapping[str, object],
        change: CommitChange,
        *,
        subject: Subject | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> Answer:
        """Maintain the main branch of a table as a request of `maintain_table` asks for, or plan that.

        Each change is made by `change`, which judges its caller; no further one is begun once `stopped`. A plan makes
        none, and writes nothing. The answer has the outcome, also where work failed or was given up. Raises the
        namespace errors for what does not exist, or may not be seen by `subject`; PermissionDeniedError (15) if that
        may not maintain the table; InvalidInputError (13), also for a table without a version.
        """
        ...

    def is_answered(self, caller: Caller) -> bool:
        """Whether a change of this caller was committed under this idempotency key."""
        ...

    def answered(self, record: ChangeRecord) -> CommittedChange | None:
        """A change that was committed under its key before, with the answer that was `kept`; None if there is none.

        Raises InvalidInputError (13) if the key was used for another request.
        """
        ...

    @property
    def uploads(self) -> UploadStore:
        """The uploads of the root."""
        ...


class Tables:
    """A catalog as changes of rows use it; calls that may wait for storage or for a commit are coroutines.

    Args:
        catalog: The catalog.
        commit: Commits staged operations as one batch, see `commit`.
        find: Looks for something in the newest version of the catalog.
        in_thread: Does work that waits for storage.
    """

    def __init__(
        self, catalog: TableCatalog, commit: Commit, find: Look = look_at_once, in_thread: Look = look_at_once
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
        """As `TableCatalog.find_table`, at the newest catalog version."""
        find = self._catalog.find_table
        return await self._find(lambda: find(request, layout=layout, subject=subject, privileges=privileges))

    async def new_table(
        self, request: CreateTable, subject: Subject | None = None, implicit: tuple[str, ...] = ()
    ) -> tuple[TableState, int]:
        """As `TableCatalog.new_table`."""
        return await self._find(lambda: self._catalog.new_table(request, subject, implicit))

    def require(self, subject: Subject | None, privileges: Collection[Privilege], table_id: Sequence[str]) -> None:
        """As `TableCatalog.require`."""
        self._catalog.require(subject, privileges, table_id)

    async def is_answered(self, caller: Caller) -> bool:
        """As `TableCatalog.is_answered`."""
        return await self._find(lambda: self._catalog.is_answered(caller))

    async def answered(self, record: ChangeRecord) -> CommittedChange | None:
        """As `TableCatalog.answered`."""
        return await self._find(lambda: self._catalog.answered(record))

    async def commit(self, operations: Sequence[StagedOperation], record: ChangeRecord) -> CommittedChange:
        """Commit the staged operations as one batch. Raises the errors of a batch.

        Under an idempotency key there may be no operations: then the answer is recorded.
        """
        return await self._commit(operations, record)

    async def with_uploads(self, work: Callable[[UploadStore], T]) -> T:
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
