"""Backend for a catalog in this process: a `DirectoryNamespace`, or an object with the same methods."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Protocol

import lance_namespace
from lance_namespace.errors import LanceNamespaceError

from lance_core.errors import LanceCoreError
from namespace_client.access import Changed, ChangeRejected, ChangeUnknown, Reply
from namespace_client.error_codes import ErrorCode
from namespace_client.errors import CatalogUnreachable, InvalidCall
from namespace_client.wire import NOTHING_DONE, change_refused, refused
from table_data.batch_operations import Json

if TYPE_CHECKING:
    import pyarrow as pa

_WITH_FILES: Final = frozenset(
    {"clone_table", "create_table_tag", "update_table_tag", "delete_table_tag", "delete_table_branch"}
)
"""The changes that `change` makes, and not `commit`."""
_FAILURES: Final = frozenset({ErrorCode.SERVICE_UNAVAILABLE, ErrorCode.INTERNAL})
"""Codes of failures, which leave the outcome of a change unknown unless they say that nothing was done."""
_LOOK: Final = 0.25
"""Seconds between two looks for events."""
_LONGEST_WAIT: Final = 60
_DIRECTORY: Final = "namespace_server.directory.namespace.DirectoryNamespace"


class NamespaceAnswer(Protocol):
    """The body of a response, and the catalog version that it is from."""

    @property
    def body(self) -> Json:
        """The response as JSON."""
        ...

    @property
    def catalog_version(self) -> int:
        """The catalog version that it is from."""
        ...


class Namespace(Protocol):
    """The methods of a `DirectoryNamespace` that the client calls. Requests and responses are JSON of the wire."""

    def read(self, operation: str, request: Mapping[str, Any], *, at: int | None = None) -> NamespaceAnswer:
        """Execute a read."""
        ...

    def read_rows(self, operation: str, request: Mapping[str, Any], *, at: int | None = None) -> pa.RecordBatchReader:
        """Execute a read whose answer is rows, which are read as they are taken."""
        ...

    def read_value(self, operation: str, request: Mapping[str, Any], *, at: int | None = None) -> Any:
        """Execute a read of one table whose answer is a value of JSON."""
        ...

    def stage_rows(self, request: Json, request_data: bytes) -> Json:
        """Write rows, an Arrow IPC stream, for a batch that commits them."""
        ...

    def stage_change(self, operation: str, request: Json, request_data: bytes | None = None) -> Json:
        """Write an update, a deletion or a merge for a batch that commits it. A merge has rows."""
        ...

    def prepare(self, operation: str, request: Mapping[str, Any], *, idempotency_key: str | None = None) -> Any:
        """Validate a change and return a call for `commit_calls`."""
        ...

    def change(
        self, operation: str, request: Mapping[str, Any], *, idempotency_key: str | None = None
    ) -> NamespaceAnswer:
        """Make a change of tags and branches, which writes or removes files beside the catalog."""
        ...

    def maintain(self, request: Mapping[str, Any]) -> NamespaceAnswer:
        """Maintain a table, or plan that; without an idempotency key, since work that is done is not done again."""
        ...

    def blob_refusal(self, place: str) -> str | None:
        """Why the file at a path or URI, which is a value of a column of blobs, is not read; None if it is."""
        ...

    def commit_calls(self, calls: Sequence[Any]) -> Sequence[NamespaceAnswer | LanceNamespaceError]:
        """Commit changes; one response or error for each."""
        ...


def open_catalog(root: str, storage_options: Mapping[str, str]) -> Any:
    """Open the catalog below a root as a `DirectoryNamespace`, by class name: the client does not import the server.

    Raises `InvalidCall` for a root that cannot be opened, and where the server's distribution is not installed.
    """
    if find_spec(_DIRECTORY.partition(".")[0]) is None:
        raise InvalidCall(
            f"{root}: a catalog in this process needs lance-namespace-server, which is not installed: install it, or "
            "give the URL of a server"
        )
    options = {f"storage.{key}": value for key, value in storage_options.items()}
    try:
        return lance_namespace.connect(_DIRECTORY, {"root": root, **options})
    except ValueError as error:  # of whatever the constructor raised
        reason = str(error.__cause__ or error.__context__ or error)
        raise InvalidCall(reason if reason.startswith(root) else f"{root}: {reason}") from error


class InProcessBackend:
    """Calls to a catalog in this process. The caller owns the catalog: `close` does not close it."""

    def __init__(self, namespace: Namespace, name: str = "the catalog in this process") -> None:
        self.name = name
        self.server: str | None = None
        self.headers: Mapping[str, str] = {}
        self.longest_wait = _LONGEST_WAIT
        self.ca: str | None = None
        self.namespace = namespace

    def close(self) -> None:
        """Do nothing, since no connections are held."""

    def ask(self, operation: str, request: Json, *, at: int | None = None) -> Json:
        """See `Backend.ask`."""
        if operation == "list_catalog_events":
            return self._events(request)
        if operation == "maintain_table":  # a plan
            with self._errors():
                return self.namespace.maintain(request).body
        return self._read(operation, request, at)

    def rows(
        self, operation: str, request: Json, *, at: int | None = None, most: int | None = None
    ) -> pa.RecordBatchReader:
        """See `Backend.rows`."""
        import pyarrow as pa

        from namespace_client.row_streams import RowsTooLong

        with self._errors():
            found = self.namespace.read_rows(operation, request, at=at)

        def batches() -> Iterator[pa.RecordBatch]:
            taken = 0
            with self._errors():
                for batch in found:
                    taken += batch.nbytes
                    if most is not None and taken > most:
                        raise RowsTooLong(most)
                    yield batch

        return pa.RecordBatchReader.from_batches(found.schema, batches())

    def value(self, operation: str, request: Json, *, at: int | None = None) -> Any:
        """See `Backend.value`."""
        with self._errors():
            return self.namespace.read_value(operation, request, at=at)

    def stage(self, operation: str, request: Json, rows: bytes) -> Json:
        """See `Backend.stage`."""
        with self._errors():
            if operation == "stage_rows":
                return self.namespace.stage_rows(request, rows)
            return self.namespace.stage_change(operation, request, rows)

    def stage_change(self, operation: str, request: Json) -> Json:
        """See `Backend.stage_change`."""
        with self._errors():
            return self.namespace.stage_change(operation, request)

    def _events(self, request: Json) -> Json:
        """The events of a request, once there are some, or the time is over that it may wait."""
        asked = {name: value for name, value in request.items() if name != "wait"}
        until = time.monotonic() + int(request.get("wait") or 0)
        while True:
            found = self._read("list_catalog_events", asked, None)
            if found["events"] or time.monotonic() >= until:
                return found
            time.sleep(_LOOK)
            asked["since"] = found["last"]

    def _read(self, operation: str, request: Json, at: int | None) -> Json:
        with self._errors():
            return self.namespace.read(operation, request, at=at).body

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except LanceNamespaceError as error:
            status = getattr(error, "status", None)
            raise refused(str(error), int(error.code), getattr(error, "failures", ()), status) from error
        except LanceCoreError as error:
            raise CatalogUnreachable(f"{self.name}: {error}") from error

    def send(self, operation: str, request: Json, idempotency_key: str | None) -> Reply:
        """See `Backend.send`."""
        answer: NamespaceAnswer | LanceNamespaceError
        try:
            if operation == "maintain_table":
                answer = self.namespace.maintain(request)
            elif operation in _WITH_FILES:
                answer = self.namespace.change(operation, request, idempotency_key=idempotency_key)
            else:
                call = self.namespace.prepare(operation, request, idempotency_key=idempotency_key)
                [answer] = self.namespace.commit_calls([call])
        except LanceNamespaceError as error:
            answer = error
        except LanceCoreError as error:  # raised before or after the commit: the outcome is unknown
            return ChangeUnknown(f"{type(error).__name__}: {error}")
        if not isinstance(answer, LanceNamespaceError):
            return Changed(answer.body, answer.catalog_version)
        code = int(answer.code)
        if not _says_nothing_done(answer, code):
            detail = getattr(answer, "detail", None)
            return ChangeUnknown(f"{answer} (code {code})", None if detail is None else str(detail))
        return ChangeRejected(change_refused(operation, str(answer), code, getattr(answer, "failures", ())))


def _says_nothing_done(error: LanceNamespaceError, code: int) -> bool:
    """Whether the error of a change says that nothing was done: by its `outcome`, or by a code of a refusal."""
    outcome = getattr(error, "outcome", None)
    return code not in _FAILURES if outcome is None else bool(outcome == NOTHING_DONE)
