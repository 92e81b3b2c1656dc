"""The catalog server as the Spark side sees it: four questions and one request, through the generated client."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx
from lance_namespace_server_client import Client
from lance_namespace_server_client.api.batch import batch_commit_tables
from lance_namespace_server_client.api.catalog import describe_catalog, describe_catalog_version
from lance_namespace_server_client.api.namespace import create_namespace
from lance_namespace_server_client.api.table import describe_table
from lance_namespace_server_client.api.table_version import list_table_versions
from lance_namespace_server_client.models import (
    AssertTableVersionRequest,
    BatchCommitTablesRequest,
    BatchCommitTablesResponse,
    CommitTableOperation,
    CommitTransactionRequest,
    Context,
    CreateNamespaceRequest,
    DeclareTableRequest,
    DescribeTableRequest,
    ErrorResponse,
    Properties,
)
from lance_namespace_server_client.types import Response, Unset

from lance_core.proto import lance_table_pb2 as pb
from spark_catalog.errors import GraphConflict, ServerUnreachable, WriteRejected, WriteUnknown

TableId = tuple[str, ...]
T = TypeVar("T")

DELIMITER = "$"
_TABLE_NOT_FOUND = 4
_THROTTLED = 21
_CONFLICT_STATUS = 409
_SERVER_FAILURE = 500
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_ILL_FORMED = (ValueError, KeyError, TypeError, AttributeError)


@dataclass(frozen=True, slots=True)
class CatalogState:
    """The catalog's root as a URI without trailing slash, and its newest version."""

    root: str
    version: int


@dataclass(frozen=True, slots=True)
class TableState:
    """A table at one catalog version. `version` is None while the table is only declared."""

    id: TableId
    uri: str
    version: int | None
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CatalogPins:
    """Every table at one catalog version."""

    version: int
    tables: Mapping[TableId, TableState]


@dataclass(frozen=True, slots=True)
class DeclareTable:
    """Put a new table into the catalog, at a location that the client chose."""

    id: TableId
    location: str
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CommitTransaction:
    """Commit a Lance transaction, rebased onto the head by the server."""

    id: TableId
    transaction: pb.Transaction


@dataclass(frozen=True, slots=True)
class AssertVersion:
    """Fail the batch unless the table's head is `version` when the batch commits."""

    id: TableId
    version: int


Operation = DeclareTable | CommitTransaction | AssertVersion


@dataclass(frozen=True, slots=True)
class CommittedTable:
    """The version that a transaction became. `rebased` tells that others had committed since its read version."""

    id: TableId
    version: int
    rebased: bool


@dataclass(frozen=True, slots=True)
class CommittedBatch:
    """A batch that is committed, in catalog version `catalog_version`."""

    transaction_id: str | None
    catalog_version: int | None
    tables: tuple[CommittedTable, ...]


class CatalogServer:
    """Connections to one server. Thread-safe, blocking; close it, or use it as a context manager.

    `timeout` is in seconds and holds for each request. `retries` is how often a batch is sent again, under the same
    key, while its outcome is unknown.
    """

    def __init__(
        self, url: str, *, headers: Mapping[str, str] | None = None, timeout: float = 60.0, retries: int = 4
    ) -> None:
        self.url = url
        self._retries = retries
        self._client = Client(base_url=url, headers=dict(headers or {}), timeout=httpx.Timeout(timeout))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._client.get_httpx_client().close()

    def state(self) -> CatalogState:
        """Where the catalog is and what version it is at."""
        answer = _expect(self._ask(lambda: describe_catalog.sync_detailed(client=self._client)))
        return CatalogState(answer.root.rstrip("/"), answer.version)

    def table(self, table_id: TableId, *, at: int | None = None) -> TableState | None:
        """A table, None if there is none; as of catalog version `at` if given."""
        pin: dict[str, Any] = {} if at is None else {"x_lance_catalog_version": at}
        name = DELIMITER.join(table_id)
        described = self._ask(
            lambda: describe_table.sync_detailed(
                name, client=self._client, body=DescribeTableRequest(id=list(table_id)), **pin
            )
        )
        if isinstance(described.parsed, ErrorResponse) and described.parsed.code == _TABLE_NOT_FOUND:
            return None
        table = _expect(described)
        listed = _expect(
            self._ask(
                lambda: list_table_versions.sync_detailed(name, client=self._client, limit=1, descending=True, **pin)
            )
        )
        properties = {} if isinstance(table.properties, Unset) else table.properties.additional_properties
        if isinstance(table.location, Unset):
            raise ServerUnreachable(f"{name}: {self.url} answered a table without a location")
        head = listed.versions[0].version if listed.versions else None
        return TableState(table_id, table.location, head, properties)

    def pins(self, version: int | None = None) -> CatalogPins:
        """Every table and the version that it was at in one catalog version (None: the newest)."""
        wanted = self.state().version if version is None else version
        answer = _expect(self._ask(lambda: describe_catalog_version.sync_detailed(wanted, client=self._client)))
        tables = [
            TableState(tuple(table.id), table.location, None if isinstance(table.version, Unset) else table.version)
            for table in answer.tables
        ]
        return CatalogPins(answer.version, {table.id: table for table in tables})

    def ensure_namespace(self, namespace: Sequence[str]) -> None:
        """Create a namespace and its parents where they are missing."""
        for depth in range(1, len(namespace) + 1):
            path = list(namespace[:depth])
            body = CreateNamespaceRequest(id=path, mode="exist_ok")
            name = DELIMITER.join(path)
            _expect(self._ask(partial(create_namespace.sync_detailed, name, client=self._client, body=body)))

    def commit(self, operations: Sequence[Operation], *, idempotency_key: str, message: str | None) -> CommittedBatch:
        """Send one batch: all operations or none.

        While the outcome is unknown the same request is sent again under the same key, which cannot apply it twice.
        Raises `GraphConflict` or `WriteRejected` if the server refused it, `ServerUnreachable` if it was never sent,
        `WriteUnknown` if nobody can tell. A refusal that followed an attempt of unknown outcome is `WriteUnknown` as
        well: that attempt might still arrive.
        """
        body = BatchCommitTablesRequest(operations=[_wire(operation) for operation in operations])
        if message:
            body.context = Context.from_dict({"message": message})
        doubt: str | None = None
        batch: str | None = None
        refusal: Exception = ServerUnreachable(f"{self.url}: the batch was not sent")
        for attempt in range(self._retries + 1):
            if attempt:
                time.sleep(min(2.0, 0.1 * 2**attempt))
            try:
                response = batch_commit_tables.sync_detailed(
                    client=self._client, body=body, idempotency_key=idempotency_key
                )
            except _NOT_SENT as error:
                refusal = ServerUnreachable(f"{self.url}: {error}")
                continue
            except (httpx.TransportError, *_ILL_FORMED) as error:
                doubt = f"{type(error).__name__}: {error}"
                continue
            answer = response.parsed
            if isinstance(answer, BatchCommitTablesResponse):
                return _committed(operations, answer, response)
            if answer is None or response.status_code >= _SERVER_FAILURE:
                doubt = str(response.status_code.value) if answer is None else f"{answer.error} (code {answer.code})"
                batch = batch if answer is None or isinstance(answer.detail, Unset) else answer.detail
                continue
            refusal = _refused(answer, response.status_code)
            if answer.code != _THROTTLED:
                break
        if doubt is None:
            raise refusal
        raise WriteUnknown(
            f"batch {batch or '(not named by the server)'}, Idempotency-Key {idempotency_key}: the outcome is unknown "
            f"({doubt}); it may have committed, or may still",
            batch=batch,
            idempotency_key=idempotency_key,
        ) from refusal

    def _ask(self, call: Callable[[], Response[T]]) -> Response[T]:
        """A read, tried again once: a kept connection may have been closed by the other side."""
        for last in (False, True):
            try:
                return call()
            except httpx.TransportError as error:
                if last:
                    raise ServerUnreachable(f"{self.url}: {type(error).__name__}: {error}") from error
            except _ILL_FORMED as error:
                raise ServerUnreachable(f"{self.url}: not an answer of a catalog server: {error}") from error
        raise AssertionError("unreachable")


def _expect(response: Response[Any]) -> Any:
    """The answer of a read. Raises `WriteRejected` with the server's words if it is an error."""
    if isinstance(response.parsed, ErrorResponse):
        raise _refused(response.parsed, response.status_code)
    return response.parsed


def _refused(answer: ErrorResponse, status: int) -> WriteRejected:
    failures = [] if isinstance(answer.failures, Unset) else [failure.to_dict() for failure in answer.failures]
    hints = "; ".join(str(failure["hint"]) for failure in failures if failure.get("hint"))
    kind = GraphConflict if status == _CONFLICT_STATUS else WriteRejected
    text = f"{answer.error} (code {answer.code})" + (f": {hints}" if hints else "")
    return kind(text, status=int(status), code=answer.code, failures=failures)


def _wire(operation: Operation) -> CommitTableOperation:
    match operation:
        case DeclareTable(table_id, location, properties):
            declare = DeclareTableRequest(id=list(table_id), location=location)
            if properties:
                declare.properties = Properties.from_dict(properties)
            return CommitTableOperation(declare_table=declare)
        case CommitTransaction(table_id, transaction):
            encoded = base64.b64encode(transaction.SerializeToString()).decode()
            return CommitTableOperation(
                commit_transaction=CommitTransactionRequest(id=list(table_id), transaction=encoded)
            )
        case AssertVersion(table_id, version):
            return CommitTableOperation(
                assert_table_version=AssertTableVersionRequest(id=list(table_id), version=version)
            )


def _committed(
    operations: Sequence[Operation], answer: BatchCommitTablesResponse, response: Response[Any]
) -> CommittedBatch:
    tables = []
    for operation, result in zip(operations, answer.results, strict=True):
        committed = result.commit_transaction
        if isinstance(operation, CommitTransaction) and not isinstance(committed, Unset):
            tables.append(CommittedTable(operation.id, committed.version.version, bool(committed.rebased)))
    version = response.headers.get("x-lance-catalog-version")
    transaction_id = None if isinstance(answer.transaction_id, Unset) else answer.transaction_id
    return CommittedBatch(transaction_id, int(version) if version else None, tuple(tables))
