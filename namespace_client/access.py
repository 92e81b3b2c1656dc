"""Access to a catalog: a few reads and one batch request, over any backend."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Protocol, Self, TypeVar

from tenacity import RetryCallState, Retrying, retry_if_result, stop_after_attempt, wait_exponential

from namespace_client.audit import RefusedAttempt
from namespace_client.catalog_overview import CatalogOverview
from namespace_client.error_codes import ErrorCode
from namespace_client.errors import (
    AccessRefused,
    CatalogClosed,
    CatalogUnavailable,
    CatalogUnreachable,
    CommitRejected,
    CommitUnknown,
    InvalidCall,
)
from namespace_client.history import CatalogVersion
from namespace_client.wire import (
    CallerIdentity,
    CatalogCursor,
    CatalogHead,
    CatalogIntent,
    CatalogPin,
    CatalogPins,
    CommittedBatch,
    DroppedTable,
    FoundTables,
    batch_request,
    committed_batch,
    pages_of,
    present,
)
from table_data.batch_operations import DELIMITER, BatchOperation, Json, TableId, TableState, VersionIdentity

if TYPE_CHECKING:
    import pyarrow as pa

_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 2.0
_SPREAD = 0.25
_ILL_FORMED = (KeyError, TypeError, ValueError, AttributeError)


@dataclass(frozen=True, slots=True)
class Changed:
    """The change is made."""

    body: Json
    catalog_version: int | None


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events in order, the catalog version from which to go on, and the newest one."""

    events: list[Json]
    last: int
    newest: int


@dataclass(frozen=True, slots=True)
class ChangeRejected:
    """The change is not made, and will not be by this request."""

    error: CommitRejected | AccessRefused


@dataclass(frozen=True, slots=True)
class ChangeNotSent:
    """The change did not reach the catalog."""

    reason: str

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True, slots=True)
class ChangeUnknown:
    """The outcome of the change is unknown. `batch` is its transaction id if the catalog named it."""

    reason: str
    batch: str | None = None

    def __str__(self) -> str:
        return self.reason


T = TypeVar("T")
Reply = Changed | ChangeRejected | ChangeNotSent | ChangeUnknown


class Backend(Protocol):
    """Transport to a catalog. Operations have the names of the `LanceNamespace` methods. Thread-safe."""

    @property
    def name(self) -> str:
        """Address of the catalog, for messages."""
        ...

    @property
    def server(self) -> str | None:
        """URL of the server, None for a catalog in this process."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of every request to the server."""
        ...

    @property
    def ca(self) -> str | None:
        """PEM file of the authorities that the server's certificate is trusted by; None for those of the system."""
        ...

    @property
    def namespace(self) -> Any:
        """The catalog in this process, None for a server."""
        ...

    @property
    def longest_wait(self) -> int:
        """The most seconds that a request for events may wait for some."""
        ...

    def ask(self, operation: str, request: Json, *, at: int | None = None) -> Json:
        """Send a read, as of catalog version `at` if given.

        Raises `CommitRejected` or `AccessRefused` if the response is an error, `CatalogUnreachable` if there is none.
        """
        ...

    def rows(
        self, operation: str, request: Json, *, at: int | None = None, most: int | None = None
    ) -> pa.RecordBatchReader:
        """Send a read whose answer is rows, which are read as they are taken. Raises as `ask` does, then too.

        With `most`, `RowsTooLong` is raised once they have more bytes.
        """
        ...

    def value(self, operation: str, request: Json, *, at: int | None = None) -> Any:
        """Send a read of one table whose answer is a value of JSON. Raises as `ask` does."""
        ...

    def stage(self, operation: str, request: Json, rows: bytes) -> Json:
        """Send rows, an Arrow IPC stream, that a batch is to commit. Raises as `ask` does; nothing is changed."""
        ...

    def stage_change(self, operation: str, request: Json) -> Json:
        """Have a change of rows written that a batch is to commit. Raises as `ask` does; nothing is changed."""
        ...

    def send(self, operation: str, request: Json, idempotency_key: str | None) -> Reply:
        """Send a change once. Without a key it must be one that may be made twice."""
        ...

    def close(self) -> None:
        """Release the connections."""
        ...


@dataclass(frozen=True, slots=True)
class FoundTable:
    """A table as of a catalog version.

    Attributes:
        state: The table, None if there is none.
        adopted_in: A newer catalog version, in which the versions that others committed around the catalog above this
            one are adopted; None if there are none, or the server does not answer it.
    """

    state: TableState | None
    adopted_in: int | None = None


class _Closed:
    """The backend of a connection that was closed."""

    server: str | None = None
    headers: Mapping[str, str] = MappingProxyType({})
    ca: str | None = None
    namespace: Any = None
    longest_wait: int = 0

    def __init__(self, name: str) -> None:
        self.name = name

    def _refuse(self, operation: str, *_given: object, **_options: object) -> NoReturn:
        """Raise `CatalogClosed`."""
        raise CatalogClosed(f"{operation}: the connection to {self.name} was closed; nothing was sent")

    ask = rows = value = stage = stage_change = send = _refuse

    def close(self) -> None:
        """Do nothing."""


class CatalogAccess:
    """A catalog behind a backend. Thread-safe and blocking. Close it, or use it as a context manager.

    Args:
        backend: Transport to the catalog.
        retries: How many times a batch is sent again under the same key, see `commit`.

    Attributes:
        moved_cursors: Where transactions of this connection have put cursors of events, by name.
    """

    def __init__(self, backend: Backend, *, retries: int = 4) -> None:
        self._backend: Backend | _Closed = backend
        self._retries = retries
        self.moved_cursors: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the backend. Every later call raises `CatalogClosed`."""
        self._backend.close()
        self._backend = _Closed(self._backend.name)

    @property
    def name(self) -> str:
        """Address of the catalog, for messages."""
        return self._backend.name

    @property
    def server(self) -> str | None:
        """URL of the server, None for a catalog in this process."""
        return self._backend.server

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of every request to the server."""
        return self._backend.headers

    @property
    def ca(self) -> str | None:
        """The PEM file of the authorities that the server's certificate is trusted by; None for those of the system."""
        return self._backend.ca

    @property
    def namespace(self) -> Any:
        """The catalog in this process, None for a server."""
        return self._backend.namespace

    def read(self, operation: str, request: Json, *, at: int | None = None) -> Json:
        """The answer to a read of the specification, one of `routes.ROUTES`. Raises as `Backend.ask`."""
        return self._backend.ask(operation, request, at=at)

    def caller(self) -> CallerIdentity:
        """Who the server takes the caller for. A catalog in this process knows no callers."""
        answer = {"means": "none"} if self._backend.server is None else self._backend.ask("who_am_i", {})
        with self._parsing():
            return CallerIdentity.of(answer)

    def state(self) -> CatalogHead:
        """Root and newest version of the catalog."""
        answer = self._backend.ask("describe_catalog", {})
        with self._parsing():
            return CatalogHead(answer["root"].rstrip("/"), int(answer["version"]), answer.get("managed", True))

    def table(
        self, table_id: TableId, *, at: int | None = None, branch: str | None = None, version: int | None = None
    ) -> TableState | None:
        """Describe a table or one of its branches, at its newest version or at another one.

        Args:
            table_id: Path of the table.
            at: Catalog version to read, the newest if None.
            branch: Name of the branch whose version is described, the main branch if None.
            version: Number of the version, the newest if None.

        Returns:
            The table, None if there is no such table.

        Raises:
            CommitRejected: The catalog refused the read; with code 22 if there is no such branch, 11 if there is no
                such version.
            CatalogUnreachable: The catalog did not respond, or without a location.
        """
        return self.find_table(table_id, at=at, branch=branch, version=version).state

    def find_table(
        self, table_id: TableId, *, at: int | None = None, branch: str | None = None, version: int | None = None
    ) -> FoundTable:
        """As `table`, with the newer catalog version that adopts commits around the catalog."""
        request: Json = {"id": list(table_id)}
        try:
            table = self._backend.ask("describe_table", request, at=at)
        except CommitRejected as error:
            if error.code == ErrorCode.TABLE_NOT_FOUND:
                return FoundTable(None)
            raise
        if not table.get("location"):
            raise CatalogUnreachable(f"{'$'.join(table_id)}: {self._backend.name} answered a table without a location")
        request |= present(branch=branch)
        if version is not None:
            newest = self._backend.ask("describe_table_version", request | {"version": version}, at=at)
        else:
            newest = self._backend.ask("list_table_versions", request | {"limit": 1, "descending": True}, at=at)
        with self._parsing():
            versions = newest["versions"] if version is None else [newest["version"]]
            head = int(versions[0]["version"]) if versions else None
            properties, storage_options = (dict(table.get(key) or {}) for key in ("properties", "storage_options"))
            identity = VersionIdentity.of(versions[0]) if versions else None
            adopted_in = None if newest.get("adopted_in") is None else int(newest["adopted_in"])
        if branch is not None and head is None:
            raise CommitRejected(
                f"{'$'.join(table_id)} has no branch {branch!r}", code=ErrorCode.TABLE_BRANCH_NOT_FOUND
            )
        state = TableState(
            table_id, str(table["location"]), head, properties, branch, storage_options, identity=identity
        )
        return FoundTable(state, adopted_in)

    def changes(
        self,
        table_id: TableId,
        *,
        since: int | None,
        cursor: str | None,
        to: int | None,
        branch: str | None,
        columns: Sequence[str] | None,
    ) -> pa.RecordBatchReader:
        """The rows of a table that changed between two catalog versions; see `CatalogReads.changes`."""
        names = None if columns is None else list(columns)
        request = present(id=list(table_id), since=since, cursor=cursor, to=to, branch=branch, columns=names)
        return self._backend.rows("read_table_changes", request)

    def query(
        self, table_id: TableId, request: Json, *, at: int | None = None, most: int | None = None
    ) -> pa.RecordBatchReader:
        """Rows that the catalog finds and sends: this process needs no access to storage.

        Args:
            table_id: Path of the table.
            request: Fields of a `QueryTableRequest`, see "Queries" in the reference.
            at: Catalog version to read, the newest if None.
            most: Bytes of Arrow that are taken; all if None.

        Returns:
            The rows, read as they are taken. Read them to the end, or drop the reader, to release the connection.

        Raises:
            CommitRejected: The catalog refused the query.
            AccessRefused: The caller may not read the table.
            CatalogUnreachable: The catalog did not respond, or broke off; also while rows are read.
            RowsTooLong: The rows have more bytes than `most`; also while rows are read.
        """
        return self._backend.rows("query_table", {"id": list(table_id)} | request, at=at, most=most)

    def table_value(
        self, operation: str, table_id: TableId, request: Json | None = None, *, at: int | None = None
    ) -> Any:
        """What the catalog answers about the rows of a table: statistics, counts, indices. Raises as `query`.

        Args:
            operation: One of the reads of `routes.ROUTES` that workers do, such as `get_table_stats`.
            table_id: Path of the table.
            request: Further fields of the request of the specification.
            at: Catalog version to read, the newest if None.
        """
        return self._backend.value(operation, {"id": list(table_id)} | (request or {}), at=at)

    def stage_rows(self, table_id: TableId, rows: bytes, request: Json) -> Json:
        """Have the catalog write rows for a batch, which commits them.

        Args:
            table_id: Path of the table.
            rows: An Arrow IPC stream.
            request: `mode` (`create`, `append`, `overwrite`), and optionally `branch` and `properties`.

        Returns:
            `operations` of a batch, `num_rows` and `location`. Rows that no batch commits are garbage.

        Raises:
            CommitRejected: The catalog refused the rows.
            AccessRefused: The caller may not write them.
            CatalogUnreachable: The catalog did not respond.
        """
        return self._backend.stage("stage_rows", {"id": list(table_id)} | request, rows)

    def stage_merge(self, table_id: TableId, rows: bytes, request: Json) -> Json:
        """Have the catalog merge rows by key for a batch, which commits the merge.

        Args:
            table_id: Path of the table.
            rows: An Arrow IPC stream.
            request: `on`, and optionally `when_matched_update_all` and the other fields of a merge but its time.

        Returns:
            `operations` of a batch, none where no row changes, with `num_updated_rows`, `num_inserted_rows` and
            `num_deleted_rows`. What no batch commits is garbage. Raises as `stage_rows`.
        """
        return self._backend.stage("stage_merge", {"id": list(table_id)} | request, rows)

    def stage_change(self, operation: str, table_id: TableId, request: Json) -> Json:
        """Have the catalog write an update or a deletion for a batch, which commits it.

        Args:
            operation: `stage_update` or `stage_delete`.
            table_id: Path of the table.
            request: `predicate`, of an update also `updates`, and optionally `branch`.

        Returns:
            `operations` of a batch, none where no row matches, and the number of rows. What no batch commits is
            garbage. Raises as `stage_rows`.
        """
        return self._backend.stage_change(operation, {"id": list(table_id)} | request)

    def namespaces(self, parent: Sequence[str], *, at: int | None = None) -> list[str]:
        """Names of the child namespaces of a namespace. `at` is the catalog version to read, the newest if None."""
        pages = self._pages("list_namespaces", {"id": list(parent)}, at)
        return [name for page in pages for name in page.get("namespaces") or ()]

    def tables(self, namespace: Sequence[str], *, at: int | None = None) -> list[str]:
        """Names of the tables in a namespace. `at` is the catalog version to read, the newest if None."""
        pages = self._pages("list_tables", {"id": list(namespace)}, at)
        return [name for page in pages for name in page.get("tables") or ()]

    def all_tables(self, *, at: int | None = None) -> list[TableId]:
        """Paths of all tables. `at` is the catalog version to read, the newest if None."""
        pages = self._pages("list_all_tables", {}, at)
        return [tuple(name.split(DELIMITER)) for page in pages for name in page.get("tables") or ()]

    def find_tables(self, text: str, limit: int, *, at: int | None = None) -> FoundTables:
        """The tables whose paths have all words of a text; see `CatalogReads.find`."""
        answer = self._backend.ask("find_tables", {"text": text, "limit": limit}, at=at)
        with self._parsing():
            return FoundTables.of(answer)

    def figures(self) -> CatalogOverview:
        """What is in the catalog; see `Catalog.figures`."""
        return self.asked("describe_catalog_figures", {}, CatalogOverview.of)

    def history(
        self, *, below: int | None = None, page: int | None = None, audited: bool = False
    ) -> Iterator[CatalogVersion]:
        """The kept catalog versions, newest first, with the batches that made them.

        Args:
            below: A catalog version; only those before it are returned.
            page: How many are asked for at once.
            audited: Whether also where each batch came from, which a server tells to auditors alone.
        """
        first = present(page_token=None if below is None else str(below), limit=page)
        for answer in self._pages("list_audited_versions" if audited else "list_catalog_versions", first):
            with self._parsing():
                rows = iter(answer["versions"])
            for row in rows:
                with self._parsing():
                    version = CatalogVersion.of(row)
                yield version

    def refused_attempts(self, wanted: Json) -> Iterator[RefusedAttempt]:
        """The refused attempts that a server has recorded, newest first.

        Args:
            wanted: The fields of the request.
        """
        if self._backend.server is None:
            raise InvalidCall(
                "refused attempts: expected a server, found a catalog in this process; `lance-namespace log --refused "
                "--root` reads what servers of its root have recorded"
            )
        for answer in self._pages("list_refused_attempts", wanted):
            with self._parsing():
                attempts = [RefusedAttempt.of(row) for row in answer["attempts"]]
            yield from attempts

    def require_version(self, version: int) -> None:
        """Raise `NotFound` unless a catalog version is kept."""
        self._backend.ask("list_namespaces", {"id": [], "limit": 1}, at=version)

    def dropped_tables(self) -> list[DroppedTable]:
        """The dropped tables that can come back, the last one first."""
        pages = pages_of(lambda more: self._backend.ask("list_dropped_tables", more))
        with self._parsing():
            return [DroppedTable.of(row) for page in pages for row in page["tables"]]

    def catalog_pins(self) -> list[CatalogPin]:
        """The catalog versions that are kept by a pin, by the name of the pin."""
        return self.asked("list_catalog_pins", {}, lambda answer: [CatalogPin.of(row) for row in answer["pins"]])

    @property
    def longest_wait(self) -> int:
        """See `Backend.longest_wait`."""
        return self._backend.longest_wait

    def events(self, since: int | None, *, wait: int = 0, limit: int | None = None) -> EventPage:
        """The events after a catalog version, oldest first; none without a version.

        Args:
            since: Catalog version; the events after it are told.
            wait: Seconds to wait for an event if there is none yet, at most `longest_wait`.
            limit: How many at most.

        Raises:
            EventsGone: Some of them are not kept any more.
            CommitRejected: The catalog refused the read: with code 13 if the version is in the future.
            CatalogUnreachable: The catalog did not respond.
        """
        return self.asked(
            "list_catalog_events",
            present(since=since, wait=wait or None, limit=limit),
            lambda answer: EventPage(list(answer["events"]), int(answer["last"]), int(answer["newest"])),
        )

    def cursors(self) -> list[CatalogCursor]:
        """The cursors of consumers of events, by name."""
        return self.asked("list_cursors", {}, lambda answer: [CatalogCursor.of(row) for row in answer["cursors"]])

    def catalog_intents(self) -> list[CatalogIntent]:
        """The jobs that are registered, by the id of the intent."""
        return self.asked("list_intents", {}, lambda answer: [CatalogIntent.of(row) for row in answer["intents"]])

    def pins(self, version: int | None = None) -> CatalogPins:
        """All tables and their versions in one catalog version, the newest if None."""
        wanted = self.state().version if version is None else version
        answer = self._backend.ask("describe_catalog_version", {"version": wanted})
        with self._parsing():
            tables = [
                TableState(tuple(row["id"]), row["location"], row.get("version"), identity=VersionIdentity.of(row))
                for row in answer["tables"]
            ]
            return CatalogPins(int(answer["version"]), {table.id: table for table in tables})

    def versions(self, table_id: TableId, *, branch: str | None = None, at: int | None = None) -> list[Json]:
        """List the versions of a table or of one of its branches, newest first, as `TableVersion` of the specification.

        Args:
            table_id: Path of the table.
            branch: Name of the branch, the main branch if None.
            at: Catalog version to read, the newest if None.

        Raises:
            CommitRejected: There is no such table (code 4) or branch (22), or the catalog refused the read.
            CatalogUnreachable: The catalog did not respond.
        """
        request = present(id=list(table_id), descending=True, branch=branch)
        return [
            version
            for page in self._pages("list_table_versions", request, at)
            for version in page.get("versions") or ()
        ]

    def tags(self, table_id: TableId) -> dict[str, Json]:
        """List the tags of a table by name, each with `version` and `branch`. Raises as `versions` does."""
        pages = self._pages("list_table_tags", {"id": list(table_id)})
        return {name: tag for page in pages for name, tag in (page.get("tags") or {}).items()}

    def branches(self, table_id: TableId) -> dict[str, Json]:
        """List the branches of a table by name, without main. Raises as `versions` does."""
        pages = self._pages("list_table_branches", {"id": list(table_id)})
        return {name: branch for page in pages for name, branch in (page.get("branches") or {}).items()}

    def namespace_properties(self, namespace: Sequence[str]) -> dict[str, str]:
        """Properties of a namespace. Raises `NotFound`."""
        return dict(self._backend.ask("describe_namespace", {"id": list(namespace)}).get("properties") or {})

    def transaction(self, table_id: TableId, version: int) -> dict[str, str]:
        """The properties of the transaction that made a version of the main branch. Raises `NotFound`."""
        answer = self._backend.ask("describe_transaction", {"id": [*table_id, str(version)]})
        return dict(answer.get("properties") or {})

    def ensure_namespace(self, namespace: Sequence[str]) -> None:
        """Create a namespace and its parents if they do not exist. Retries and raises as `commit`.

        It is sent without a key, which the catalog would record even where there is nothing to do.
        """
        for depth in range(1, len(namespace) + 1):
            request = {"id": list(namespace[:depth]), "mode": "exist_ok"}
            self._deliver("create_namespace", request, None, lambda changed: changed.body)

    def _pages(self, operation: str, request: Json, at: int | None = None) -> Iterator[Json]:
        return pages_of(lambda more: self._backend.ask(operation, request | more, at=at))

    @contextmanager
    def _parsing(self) -> Iterator[None]:
        """Raise `CatalogUnreachable` if a response has not the fields that are read in the block."""
        try:
            yield
        except _ILL_FORMED as error:
            message = f"{self._backend.name}: not a response of a catalog server: {type(error).__name__}: {error}"
            raise CatalogUnreachable(message) from error

    def commit(
        self, operations: Sequence[BatchOperation], *, idempotency_key: str, message: str | None
    ) -> CommittedBatch:
        """Send one batch: all operations or none are committed.

        The same request is sent again under the same key while its outcome is unknown, while it cannot be sent, and
        while the catalog answers that it is unavailable, or that the caller has too much under way, and nothing was
        done. The key keeps the catalog from applying it twice.

        Args:
            operations: Operations of the batch.
            idempotency_key: Key of the batch.
            message: Text that the catalog stores with the batch.

        Returns:
            The committed versions.

        Raises:
            CommitRejected: The catalog refused the batch, in general as a `RetryableConflict`, an
                `IncompatibleConflict` or, after the last retry, as `CatalogUnavailable`.
            CatalogUnreachable: The batch was never sent.
            CommitUnknown: The outcome is unknown after the last retry. A rejection that follows an attempt of unknown
                outcome is raised as `CommitUnknown`, too, since that attempt may still be committed.
        """

        def parse(changed: Changed) -> CommittedBatch:
            return committed_batch(operations, changed.body, changed.catalog_version)

        return self._deliver("batch_commit_tables", batch_request(operations, message), idempotency_key, parse)

    def asked(self, operation: str, request: Json, parse: Callable[[Json], T]) -> T:
        """Send a read, and give what `parse` reads in the response.

        Raises `CommitRejected` if the catalog refused it, `CatalogUnreachable` if it did not respond, or with fields
        that `parse` does not find.
        """
        answer = self._backend.ask(operation, request)
        with self._parsing():
            return parse(answer)

    def change(self, operation: str, request: Json, *, message: str | None = None) -> Json:
        """Make a change that is no batch, once, whatever is lost on the way. Retries and raises as `commit`.

        Args:
            operation: Name of the operation, one of `routes.ROUTES`.
            request: The request of the specification.
            message: Text that the catalog stores with the change.

        Returns:
            The response.
        """
        return self.changed(operation, request, lambda body: body, message=message)

    def changed(self, operation: str, request: Json, parse: Callable[[Json], T], *, message: str | None = None) -> T:
        """As `change`, with what `parse` reads in the response."""
        body = request | ({"context": {"message": message}} if message else {})
        return self._deliver(operation, body, str(uuid.uuid4()), lambda changed: parse(changed.body))

    def make(self, operation: str, request: Json, *, idempotency_key: str, message: str | None) -> Changed:
        """As `change`, under a key of the caller's: the same request under it is made once, also by later calls.

        Returns:
            The response, with the catalog version that holds the change.
        """
        body = request | ({"context": {"message": message}} if message else {})
        return self._deliver(operation, body, idempotency_key, lambda changed: changed)

    def _deliver(self, operation: str, request: Json, idempotency_key: str | None, parse: Callable[[Changed], T]) -> T:
        """Send a change until its outcome is known, and give what `parse` reads in the response.

        Without a key it must be one that may be made twice.
        """
        unknown: list[ChangeUnknown] = []

        def send() -> _Parsed[T] | Reply:
            reply = self._backend.send(operation, request, idempotency_key)
            if isinstance(reply, Changed):
                try:
                    return _Parsed(parse(reply))
                except _ILL_FORMED as error:
                    reply = ChangeUnknown(f"{type(error).__name__}: {error}")
            if isinstance(reply, ChangeUnknown):
                unknown.append(reply)
            return reply

        last = Retrying(
            stop=stop_after_attempt(self._retries + 1),
            wait=_pause_after,
            retry=retry_if_result(_worth_repeating),
            retry_error_callback=lambda state: state.outcome.result() if state.outcome is not None else None,
        )(send)
        if isinstance(last, _Parsed):
            return last.value
        refusal = (
            last.error if isinstance(last, ChangeRejected) else CatalogUnreachable(f"{self._backend.name}: {last}")
        )
        if not unknown:
            raise refusal
        batch = next((reply.batch for reply in reversed(unknown) if reply.batch), None)
        what = f"batch {batch or '(not named by the server)'}" if operation == "batch_commit_tables" else operation
        key = "" if idempotency_key is None else f", Idempotency-Key {idempotency_key}"
        raise CommitUnknown(
            f"{what}{key}: the outcome is unknown ({unknown[-1].reason}); it may have committed, or may still",
            batch=batch,
            idempotency_key=idempotency_key,
        ) from refusal


@dataclass(frozen=True, slots=True)
class _Parsed(Generic[T]):
    """A change that was made, and what was read in the response."""

    value: T


_BACKOFF = wait_exponential(multiplier=_FIRST_PAUSE, max=_LONGEST_PAUSE)


def pause(state: RetryCallState, retry_after: int | None) -> float:
    """Seconds until a request is sent again: a backoff, or what the server says, if that is short.

    Callers that were refused together do not come again together.
    """
    if retry_after is None or retry_after > _LONGEST_PAUSE:
        return _BACKOFF(state)
    return max(_BACKOFF(state), retry_after) * random.uniform(1, 1 + _SPREAD)  # noqa: S311


def _pause_after(state: RetryCallState) -> float:
    reply = state.outcome.result() if state.outcome is not None else None
    error = reply.error if isinstance(reply, ChangeRejected) else None
    return pause(state, error.retry_after if isinstance(error, CatalogUnavailable) else None)


def _worth_repeating(reply: object) -> bool:
    if isinstance(reply, ChangeRejected):
        return isinstance(reply.error, CatalogUnavailable)
    return isinstance(reply, (ChangeNotSent, ChangeUnknown))
