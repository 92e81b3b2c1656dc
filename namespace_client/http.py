"""Backend for a catalog server over HTTP, through the generated client."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import httpx
from lance_namespace_server_client import Client
from lance_namespace_server_client.api.batch import batch_commit_tables
from lance_namespace_server_client.api.catalog import describe_catalog, describe_catalog_version
from lance_namespace_server_client.api.namespace import create_namespace
from lance_namespace_server_client.api.table import describe_table
from lance_namespace_server_client.api.table_version import describe_table_version, list_table_versions
from lance_namespace_server_client.models import (
    BatchCommitTablesRequest,
    BatchCommitTablesResponse,
    CreateNamespaceRequest,
    DescribeTableRequest,
    DescribeTableVersionRequest,
    ErrorResponse,
)
from lance_namespace_server_client.types import Response, Unset
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from namespace_client.access import BatchCommitted, BatchNotSent, BatchRejected, BatchUnknown, CatalogAccess, Reply
from namespace_client.errors import CatalogUnreachable
from namespace_client.wire import refused, says_nothing_was_done
from table_data.batch_operations import DELIMITER, Json

_SERVER_FAILURE = 500
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_ILL_FORMED = (ValueError, KeyError, TypeError, AttributeError)
_TWICE = Retrying(stop=stop_after_attempt(2), retry=retry_if_exception_type(httpx.TransportError), reraise=True)


class HttpBackend:
    """Connections to one server. `timeout` is in seconds, for each request."""

    def __init__(self, url: str, *, headers: Mapping[str, str] | None = None, timeout: float = 60.0) -> None:
        self.name = url
        self._client = Client(base_url=url, headers=dict(headers or {}), timeout=httpx.Timeout(timeout))

    def close(self) -> None:
        """Close the connections."""
        self._client.get_httpx_client().close()

    def ask(self, operation: str, request: Json, *, at: int | None = None) -> Json:
        """See `Backend.ask`. A failed connection is retried once, since the server may have closed an idle one."""
        pin: dict[str, Any] = {} if at is None else {"x_lance_catalog_version": at}
        try:
            response = _TWICE(_ASK[operation], self._client, dict(request), pin)
            answer = response.parsed
            if isinstance(answer, ErrorResponse):
                raise _refused(answer, response.status_code)
            if answer is None:
                raise CatalogUnreachable(f"{self.name}: answered {int(response.status_code)} to {operation}")
            body: Json = answer.to_dict()
        except httpx.TransportError as error:
            raise CatalogUnreachable(f"{self.name}: {type(error).__name__}: {error}") from error
        except _ILL_FORMED as error:
            raise CatalogUnreachable(f"{self.name}: not an answer of a catalog server: {error}") from error
        return body

    def send(self, request: Json, idempotency_key: str) -> Reply:
        """See `Backend.send`."""
        body = BatchCommitTablesRequest.from_dict(request)
        try:
            response = batch_commit_tables.sync_detailed(
                client=self._client, body=body, idempotency_key=idempotency_key
            )
        except _NOT_SENT as error:
            return BatchNotSent(f"{type(error).__name__}: {error}")
        except (httpx.TransportError, *_ILL_FORMED) as error:
            return BatchUnknown(f"{type(error).__name__}: {error}")
        answer = response.parsed
        if isinstance(answer, BatchCommitTablesResponse):
            version = response.headers.get("x-lance-catalog-version")
            return BatchCommitted(answer.to_dict(), int(version) if version else None)
        if answer is None:
            return BatchUnknown(str(int(response.status_code)))
        if response.status_code >= _SERVER_FAILURE and not says_nothing_was_done(str(answer.error)):
            batch = None if isinstance(answer.detail, Unset) else answer.detail
            return BatchUnknown(f"{answer.error} (code {answer.code})", batch)
        return BatchRejected(_refused(answer, response.status_code))


class CatalogServer(CatalogAccess):
    """Connections to one catalog server. Thread-safe and blocking. Close it, or use it as a context manager.

    Args:
        url: Address of the server.
        headers: Headers of every request, for example for authentication.
        timeout: Timeout of each request in seconds.
        retries: How many times a batch is sent again under the same key, see `CatalogAccess.commit`.
    """

    def __init__(
        self, url: str, *, headers: Mapping[str, str] | None = None, timeout: float = 60.0, retries: int = 4
    ) -> None:
        self.url = url
        super().__init__(HttpBackend(url, headers=headers, timeout=timeout), retries=retries)


def _refused(answer: ErrorResponse, status: int) -> Any:
    failures = [] if isinstance(answer.failures, Unset) else [failure.to_dict() for failure in answer.failures]
    return refused(str(answer.error), answer.code, failures, int(status))


def _name(request: Json) -> str:
    return DELIMITER.join(request["id"])


_Ask = Callable[[Client, Json, dict[str, Any]], Response[Any]]

_ASK: Mapping[str, _Ask] = {
    "describe_catalog": lambda client, _request, _pin: describe_catalog.sync_detailed(client=client),
    "describe_catalog_version": lambda client, request, _pin: describe_catalog_version.sync_detailed(
        request["version"], client=client
    ),
    "create_namespace": lambda client, request, _pin: create_namespace.sync_detailed(
        _name(request), client=client, body=CreateNamespaceRequest.from_dict(request)
    ),
    "describe_table": lambda client, request, pin: describe_table.sync_detailed(
        _name(request), client=client, body=DescribeTableRequest.from_dict(request), **pin
    ),
    "describe_table_version": lambda client, request, pin: describe_table_version.sync_detailed(
        _name(request), client=client, body=DescribeTableVersionRequest.from_dict(request), **pin
    ),
    "list_table_versions": lambda client, request, pin: list_table_versions.sync_detailed(
        _name(request), client=client, **{key: request[key] for key in request if key != "id"}, **pin
    ),
}
