"""The catalog as the REST layer needs it. `DirectoryNamespace` is one; tests that provoke faults bring their own."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Protocol, TypeVar

from lance_namespace.errors import LanceNamespaceError

from namespace_server.access.subjects import Subject
from namespace_server.answer import Answer
from namespace_server.attempts import RequestOrigin
from namespace_server.background.scheduler import Scheduler
from namespace_server.data.change_request import ChangeRecord
from namespace_server.data.multipart import UploadCatalog
from namespace_server.data.port import CommittedChange
from namespace_server.directory.calls import Call
from namespace_server.directory.model.request_fields import Request
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.observability.observation import CatalogFigures
from table_data.batch_operations import StagedOperation

T = TypeVar("T")


class CatalogPort(Protocol):
    """Reads, and commits in groups. Operations have the names of the `LanceNamespace` methods."""

    @property
    def local(self) -> bool:
        """Whether a read takes microseconds, so that it may run on the event loop."""
        ...

    @property
    def background(self) -> Scheduler:
        """The background jobs of the catalog; they end with `close`."""
        ...

    def state(self) -> CatalogFigures | None:
        """The figures of the catalog in memory, without a storage request; None if no version was read yet."""
        ...

    @property
    def group_limit(self) -> int:
        """The most calls that one `commit_calls` carries out at once; of more it makes several."""
        ...

    def newest(self) -> CatalogSnapshot:
        """The catalog as it is now; storage is asked for it."""
        ...

    def read(
        self,
        operation: str,
        request: Request,
        *,
        at: int | None = None,
        snapshot: CatalogSnapshot | None = None,
        cache_key: Hashable | None = None,
        subject: Subject | None = None,
    ) -> Answer:
        """Answer as of catalog version `at`, or of `snapshot`, or of the newest version, what `subject` may see of it.

        The same `cache_key` stands for the same operation and request; under it the answer may be cached. None as
        subject is the operator.
        """
        ...

    def cached(self, cache_key: Hashable, snapshot: CatalogSnapshot, subject: Subject | None = None) -> Answer | None:
        """The cached answer for a subject under a key, if it is known to be the answer in `snapshot` too."""
        ...

    def require(self, subject: Subject | None, operation: str) -> None:
        """Raise PermissionDeniedError (15) unless a subject may do an operation on the catalog as a whole. No I/O."""
        ...

    def is_granted(self, subject: Subject, operation: str) -> bool:
        """Whether grants are in force, and allow a subject an operation on the catalog as a whole. No I/O."""
        ...

    def takes_long(self, operation: str, request: Request, at: int | None) -> bool:
        """Whether a read may take more than some hundred microseconds."""
        ...

    def prepare(
        self,
        operation: str,
        request: Request,
        *,
        idempotency_key: str | None = None,
        principal: str | None = None,
        origin: RequestOrigin | None = None,
        subject: Subject | None = None,
    ) -> Call[Answer]:
        """Check the form of a change; no I/O. It is judged for `subject` in the flip. Raises `InvalidInputError`."""
        ...

    def prepare_change(self, staged: Sequence[StagedOperation], record: ChangeRecord) -> Call[CommittedChange]:
        """Check a change of rows; no I/O. See `Tables.commit`."""
        ...

    def commit_calls(self, calls: Sequence[Call[T]]) -> Sequence[T | LanceNamespaceError]:
        """Commit, one result per call. Blocking and thread-safe.

        An exception says nothing about the outcome; where it is known that nothing was done, a result says so (rule
        A3).
        """
        ...

    def change(
        self,
        operation: str,
        request: Request,
        *,
        principal: str | None = None,
        idempotency_key: str | None = None,
        origin: RequestOrigin | None = None,
        subject: Subject | None = None,
        implicit: tuple[str, ...] = (),
    ) -> Answer:
        """Make a change that also reads, writes or removes files beside the catalog. Blocking and thread-safe.

        The namespace `implicit` and those above it are created with a new table in them, if they are missing. Raises
        the namespace errors of the operation.
        """
        ...

    def clean_up(self, calls: Sequence[Call[object]]) -> None:
        """Clean up after calls that were committed and answered. Blocking and thread-safe; raises nothing."""
        ...

    def tables(self) -> UploadCatalog:
        """The tables for operations on rows."""
        ...

    @property
    def vends(self) -> bool:
        """Whether clients are handed storage options."""
        ...

    def with_storage_options(self, answer: Answer, subject: Subject | None = None) -> Answer:
        """The answer about a new table, with storage options for a client. Blocking; raises nothing."""
        ...

    def check_answering(self) -> None:
        """Raise `ServiceUnavailableError` if a call to storage has been without an answer for long. Does not block."""
        ...

    def check_changeable(self) -> None:
        """Raise `UnsupportedOperationError` if a newer release made the catalog one that this must not change."""
        ...

    def check_writable(self) -> None:
        """Raise `ServiceUnavailableError` naming root and cause unless the root can be written. Blocking."""
        ...

    def start(self) -> None:
        """Start the background work; does not block."""
        ...

    def close(self) -> None:
        """Release the catalog's resources."""
        ...
