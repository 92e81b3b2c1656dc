"""JSON over HTTP to one catalog server, and the backend for it.

`HttpClient` sends requests and reads errors; it repeats reads. Changes are sent by `CatalogAccess`, which repeats them.
"""

from __future__ import annotations

import json
import os
import ssl
import threading
from collections.abc import Container, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import httpx
from tenacity import RetryCallState, Retrying, retry_if_exception_type, retry_if_result, stop_after_attempt

from lance_core.hidden_credentials import without_credentials
from namespace_client.access import CatalogAccess, Changed, ChangeNotSent, ChangeRejected, ChangeUnknown, Reply, pause
from namespace_client.connections import TokenProvider
from namespace_client.error_codes import ErrorCode
from namespace_client.errors import (
    AccessRefused,
    CatalogClosed,
    CatalogUnavailable,
    CatalogUnreachable,
    ClientError,
    CommitRejected,
    InvalidCall,
)
from namespace_client.own_server import OwnServerTransport
from namespace_client.routes import Method, http_request
from namespace_client.tracing import trace_context
from namespace_client.wire import NOTHING_DONE, access_refused, change_refused, refused, with_outcome
from table_data.batch_operations import Json

if TYPE_CHECKING:
    import pyarrow as pa

_LONGEST_WAIT: Final = 60
_READS: Final = 5
"""How often a read is sent while its caller has too much under way."""
_SUCCESS: Final = range(200, 300)
_VERSION: Final = "x-lance-catalog-version"
_KEY: Final = "Idempotency-Key"
_ARROW: Final = "application/vnd.apache.arrow.stream"
_NOT_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_TWICE: Final = Retrying(stop=stop_after_attempt(2), retry=retry_if_exception_type(httpx.TransportError), reraise=True)


_SOON: Final = 2
"""Seconds for which a read waits, at most, when its caller has too much under way."""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """The response to one request.

    Attributes:
        status: HTTP status.
        body: The JSON object of the response, empty for an empty response, None for anything else.
        catalog_version: The catalog version that it is from, if it says so.
        retry_after: Seconds after which the request may be repeated, if it says so.
    """

    status: int
    body: Json | None
    catalog_version: int | None
    retry_after: int | None = None

    @property
    def is_throttled(self) -> bool:
        """Whether the caller had too much under way: nothing was done, and the request may soon be repeated."""
        return self.status == httpx.codes.TOO_MANY_REQUESTS and 0 < (self.retry_after or 0) <= _SOON

    @property
    def result(self) -> Json | None:
        """The body of a success, None for an error."""
        return self.body if self.status in _SUCCESS else None

    @property
    def error(self) -> Json | None:
        """The body of an error of a catalog server, None for a success and for errors of others."""
        if self.status in _SUCCESS or self.body is None or not isinstance(self.body.get("code"), int):
            return None
        return with_outcome(self.body, self.status)


def _last_answer(state: RetryCallState) -> Any:
    return state.outcome.result() if state.outcome is not None else None


def _pause_of_read(state: RetryCallState) -> float:
    return pause(state, _last_answer(state).retry_after)


_UNTHROTTLED: Final = Retrying(
    stop=stop_after_attempt(_READS),
    wait=_pause_of_read,
    retry=retry_if_result(lambda response: response.is_throttled),
    retry_error_callback=_last_answer,
)


class _ProvidedToken(httpx.Auth):
    """The token of a provider, for every request. One that is refused for it is sent once more with a newer one."""

    def __init__(self, provider: TokenProvider) -> None:
        self._provider = provider
        self._token: str | None = None
        self._lock = threading.Lock()

    @property
    def header(self) -> str:
        """The header with the token that is in use."""
        with self._lock:
            if self._token is None:
                self._token = self._provided()
            return f"Bearer {self._token}"

    def _provided(self) -> str:
        try:
            token = self._provider()
        except ClientError:
            raise
        except Exception as error:
            raise _no_token(f"{type(error).__name__}: {error}") from error
        if not isinstance(token, str) or not token:
            raise _no_token(f"expected a text, found {type(token).__name__}")
        return token

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """See `httpx.Auth`."""
        sent = request.headers["authorization"] = self.header
        response = yield request
        if response.status_code == httpx.codes.UNAUTHORIZED and (newer := self._after(sent)) != sent:
            request.headers["authorization"] = newer
            yield request

    def _after(self, refused: str) -> str:
        """The header after one that was refused. Requests that were refused at the same time share it."""
        with self._lock:
            if f"Bearer {self._token}" == refused:
                self._token = self._provided()
            return f"Bearer {self._token}"


def _no_token(why: str) -> AccessRefused:
    return AccessRefused(f"token: the function that gives it gave none: {why}", code=ErrorCode.UNAUTHENTICATED)


class HttpClient:
    """Connections to one catalog server. Thread-safe and blocking. Close it.

    Args:
        url: Address of the server.
        headers: Headers of every request, for example for authentication.
        timeout: Timeout of each request in seconds.
        ca: PEM file of the authorities that may have signed the server's certificate, in place of those of the system.
        provider: What gives the bearer token of the requests.
        transport: What carries the requests to the server of this process, in place of a network.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        timeout: float = 60.0,
        ca: str | os.PathLike[str] | None = None,
        provider: TokenProvider | None = None,
        transport: OwnServerTransport | None = None,
    ) -> None:
        self.url = url
        self.shown_url = without_credentials(url, is_value=True)
        self._headers = dict(headers or {})
        self._token = None if provider is None else _ProvidedToken(provider)
        self.timeout = timeout
        self.ca = None if ca is None else str(Path(ca).absolute())  # other processes may have another directory
        verify = True if self.ca is None else _trust(self.ca)
        self._own = transport if provider is None else None
        self._client = httpx.Client(
            base_url=url,
            headers=self._headers,
            timeout=timeout,
            verify=verify,
            auth=self._token,
            transport=transport,
        )

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of every request, with the token that is in use now."""
        return self._headers if self._token is None else {**self._headers, "authorization": self._token.header}

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def ask(
        self,
        method: Method,
        path: str,
        body: Json | None = None,
        *,
        parameters: Mapping[str, Any] | None = None,
        at: int | None = None,
    ) -> Json:
        """Send a read, and once more if the connection fails: the server may close idle ones.

        While the server answers that the caller has too much under way it is sent again, some times.

        Args:
            method: HTTP method of the route.
            path: Path of the route.
            body: Body of a POST, empty if None.
            parameters: Query parameters.
            at: Catalog version to read, the newest if None.

        Returns:
            The body of the response.

        Raises:
            CommitRejected: The response is an error of the catalog.
            AccessRefused: The server does not know the caller, or does not let it do this.
            CatalogClosed: The connections were closed before. Nothing was sent.
            CatalogUnreachable: There is no response, or none of a catalog server.
        """
        headers = {} if at is None else {_VERSION: str(at)}
        try:
            response: HttpResponse = _UNTHROTTLED(
                _TWICE, self.send, method, path, body, parameters=parameters, headers=headers
            )
        except httpx.RequestError as error:
            raise CatalogUnreachable(f"{self.shown_url}: {type(error).__name__}: {error}") from error
        return self._result(response, path)

    def _result(self, response: HttpResponse, path: str) -> Json:
        """The body of a success. Raises as `ask` does."""
        if (found := response.error) is not None:
            text, code, failures, _detail = _fields(found)
            raise _in(refused(text, code, failures, response.status), response)
        if response.result is None:
            denied = access_refused(self.url, response.status)
            if denied is not None:
                raise denied
            raise CatalogUnreachable(
                f"{self.shown_url}: answered {response.status} to {path}, not as a catalog server does"
            )
        return response.result

    def fetch(
        self,
        method: Method,
        path: str,
        body: Json | None = None,
        *,
        parameters: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        at: int | None = None,
        accepted: Container[int] = (),
    ) -> httpx.Response:
        """Send a read whose answer is bytes, and once more if the connection fails. Errors but those `accepted` raise.

        Raises as `ask`.
        """
        given = {**(headers or {}), **({} if at is None else {_VERSION: str(at)})}
        try:
            response = _TWICE(self._exchange, method, path, body, parameters=parameters, headers=given)
        except httpx.RequestError as error:
            raise CatalogUnreachable(f"{self.shown_url}: {type(error).__name__}: {error}") from error
        if response.status_code not in accepted:
            self._require_success(response, path)
        return response

    @contextmanager
    def stream(
        self, path: str, *, headers: Mapping[str, str] | None = None, at: int | None = None
    ) -> Iterator[httpx.Response]:
        """A GET whose answer is read as it comes. Raises as `ask`, also while it is read."""
        given = {**trace_context(), **(headers or {}), **({} if at is None else {_VERSION: str(at)})}
        self._require_open("GET", path)
        try:
            with self._client.stream("GET", path, headers=given) as response:
                if response.status_code not in _SUCCESS:
                    response.read()
                    self._require_success(response, path)
                yield response
        except httpx.RequestError as error:
            raise CatalogUnreachable(f"{self.shown_url}: {type(error).__name__}: {error}") from error

    def _require_success(self, response: httpx.Response, path: str) -> None:
        """Raise for an error what `ask` raises."""
        if response.status_code not in _SUCCESS:
            self._result(_read(response), path)
            raise CatalogUnreachable(f"{self.shown_url}: answered {response.status_code} to {path} without an error")

    def rows(
        self, method: Method, path: str, body: Json | None = None, *, at: int | None = None, most: int | None = None
    ) -> pa.RecordBatchReader:
        """Send a read whose answer is rows, which are read as they are taken. Raises as `ask` does, then too.

        Of an answer with more than `most` bytes `RowsTooLong` is raised, once so many were taken.
        """
        from namespace_client.row_streams import rows_of

        headers = {} if at is None else {_VERSION: str(at)}
        try:
            response = _TWICE(self._exchange, method, path, body, headers=headers, whole=False)
        except httpx.RequestError as error:
            raise CatalogUnreachable(f"{self.shown_url}: {type(error).__name__}: {error}") from error
        self._require_success(response, path)
        return rows_of(response, self.url, most=most)

    def upload(self, path: str, rows: bytes, *, parameters: Mapping[str, Any]) -> Json:
        """Send rows, an Arrow IPC stream, to a route that changes nothing by itself. Raises as `ask` does."""

        def send() -> HttpResponse:
            self._require_open("POST", path)
            headers = {**trace_context(), "content-type": _ARROW}
            return _read(self._client.post(path, content=rows, params=parameters, headers=headers))

        try:
            response: HttpResponse = _UNTHROTTLED(_TWICE, send)
        except httpx.RequestError as error:
            raise CatalogUnreachable(f"{self.shown_url}: {type(error).__name__}: {error}") from error
        return self._result(response, path)

    def send(
        self,
        method: Method,
        path: str,
        body: Json | None = None,
        *,
        parameters: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> HttpResponse:
        """Send a request once. Raises `httpx.RequestError` without a response, `CatalogClosed` after `close`."""
        return _read(self._exchange(method, path, body, parameters=parameters, headers=headers))

    def _require_open(self, method: Method, path: str) -> None:
        if self._client.is_closed:
            raise CatalogClosed(f"{method} {path}: the connection to {self.shown_url} was closed; nothing was sent")

    def _exchange(
        self,
        method: Method,
        path: str,
        body: Json | None = None,
        *,
        parameters: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        whole: bool = True,
    ) -> httpx.Response:
        """The answer to a request. The body of a success is read if it is to be `whole`."""
        self._require_open(method, path)
        content = None if method == "GET" else (body or {})
        sent = {**trace_context(), **(headers or {})}
        response = self._answer(method, path, content, sent, parameters)
        if whole or response.status_code not in _SUCCESS:
            try:
                response.read()
            finally:
                response.close()
        return response

    def _answer(
        self,
        method: Method,
        path: str,
        content: Json | None,
        headers: Mapping[str, str],
        parameters: Mapping[str, Any] | None = None,
    ) -> httpx.Response:
        """The answer to a request; its body is not read."""
        if self._own is None:
            request = self._client.build_request(method, path, json=content, params=parameters, headers=headers)
            return self._client.send(request, stream=True)
        given, body = {**self._headers, **headers}, b""
        if content is not None:
            body = json.dumps(content).encode()
            given |= {"content-type": "application/json", "content-length": str(len(body))}
        encoded = [(name.lower().encode("ascii"), value.encode()) for name, value in given.items()]
        place, _, query = path.partition("?")
        if parameters:
            query = str(httpx.QueryParams(parameters))
        return self._own.answer(method, place.encode("ascii"), query.encode("ascii"), encoded, body, self.timeout)


class HttpBackend:
    """The operations of `Backend` as requests of an `HttpClient`, which it closes."""

    def __init__(self, client: HttpClient) -> None:
        self.name = client.url
        self.server: str | None = client.url
        self.ca = client.ca
        self.namespace = None
        self.longest_wait = int(min(client.timeout / 2, _LONGEST_WAIT))
        self._client = client

    @property
    def headers(self) -> Mapping[str, str]:
        """See `Backend.headers`."""
        return self._client.headers

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def ask(self, operation: str, request: Json, *, at: int | None = None) -> Json:
        """See `Backend.ask`."""
        method, path, body, parameters = http_request(operation, request)
        return self._client.ask(method, path, body, parameters=parameters, at=at)

    def rows(
        self, operation: str, request: Json, *, at: int | None = None, most: int | None = None
    ) -> pa.RecordBatchReader:
        """See `Backend.rows`."""
        method, path, body, _parameters = http_request(operation, request)
        return self._client.rows(method, path, body, at=at, most=most)

    def value(self, operation: str, request: Json, *, at: int | None = None) -> Any:
        """See `Backend.value`."""
        method, path, body, _parameters = http_request(operation, request)
        response = self._client.fetch(method, path, body, at=at)
        try:
            return response.json()
        except ValueError as error:
            raise CatalogUnreachable(f"{self.name}: {path}: expected JSON, found something else") from error

    def stage(self, operation: str, request: Json, rows: bytes) -> Json:
        """See `Backend.stage`."""
        _method, path, _body, parameters = http_request(operation, request)
        return self._client.upload(path, rows, parameters=parameters)

    def stage_change(self, operation: str, request: Json) -> Json:
        """See `Backend.stage_change`."""
        return self.ask(operation, request)

    def send(self, operation: str, request: Json, idempotency_key: str | None) -> Reply:
        """See `Backend.send`."""
        method, path, body, _parameters = http_request(operation, request)
        headers = {} if idempotency_key is None else {_KEY: idempotency_key}
        try:
            response = self._client.send(method, path, body, headers=headers)
        except AccessRefused as error:  # there is no token
            return ChangeRejected(error)
        except _NOT_SENT as error:
            return ChangeNotSent(f"{type(error).__name__}: {error}")
        except httpx.RequestError as error:
            return ChangeUnknown(f"{type(error).__name__}: {error}")
        if response.result is not None:
            return Changed(response.result, response.catalog_version)
        if (found := response.error) is None:
            denied = access_refused(self.name, response.status)
            return ChangeUnknown(str(response.status)) if denied is None else ChangeRejected(denied)
        text, code, failures, detail = _fields(found)
        if found["outcome"] != NOTHING_DONE:
            return ChangeUnknown(f"{text} (code {code})", detail)
        return ChangeRejected(_in(change_refused(operation, text, code, failures, response.status), response))


class CatalogServer(CatalogAccess):
    """Connections to one catalog server. Thread-safe and blocking. Close it, or use it as a context manager.

    `url`, `headers`, `timeout`, `ca`, `provider` and `transport` are those of `HttpClient`.

    Args:
        retries: How many times a batch is sent again under the same key, see `CatalogAccess.commit`.

    Attributes:
        client: The connections, for requests that `CatalogAccess` has no methods for.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        timeout: float = 60.0,
        retries: int = 4,
        ca: str | os.PathLike[str] | None = None,
        provider: TokenProvider | None = None,
        transport: OwnServerTransport | None = None,
    ) -> None:
        self.url = url
        self.client = HttpClient(url, headers=headers, timeout=timeout, ca=ca, provider=provider, transport=transport)
        super().__init__(HttpBackend(self.client), retries=retries)


def _in(error: CommitRejected | AccessRefused, response: HttpResponse) -> CommitRejected | AccessRefused:
    """The error, with what the response says of a repetition."""
    if isinstance(error, CatalogUnavailable):
        error.retry_after = response.retry_after
    return error


def _trust(ca: str) -> ssl.SSLContext:
    """Connections to servers whose certificates these authorities signed. Raises `InvalidCall`."""
    try:
        return ssl.create_default_context(cafile=ca)
    except OSError as error:  # ssl.SSLError too
        raise InvalidCall(f"ca {ca}: expected a PEM file of certificates: {error.strerror or error}") from error


def _read(response: httpx.Response) -> HttpResponse:
    version = response.headers.get(_VERSION, "")
    after = response.headers.get("retry-after", "")
    return HttpResponse(
        response.status_code,
        _json_object(response),
        int(version) if version.isdecimal() else None,
        int(after) if after.isdecimal() else None,
    )


def _json_object(response: httpx.Response) -> Json | None:
    if not response.content:
        return {}
    try:
        body = response.json()
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def _fields(error: Json) -> tuple[str, int, list[Json], str | None]:
    detail = error.get("detail")
    return str(error.get("error")), int(error["code"]), error.get("failures") or [], detail and str(detail)
