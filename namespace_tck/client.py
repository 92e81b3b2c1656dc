"""Sends requests and keeps what was exchanged; refuses to call what the server does not serve."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack
from typing import Any
from urllib.parse import quote

import httpx
import orjson
import pyarrow as pa

from namespace_tck.exchanges import CheckFailed, CheckSkipped, RecordedExchange, ServerAnswer
from namespace_tck.operations import BY_NAME, Body, Operation
from namespace_tck.rows import STREAM, stream

DELIMITER = "$"

_MAKES = {"create_namespace": "namespace", "declare_table": "table", "create_table": "table", "register_table": "table"}


class Client:
    """A client of one server. May be used by many threads, and after an interrupt in the middle of a request.

    `absent` holds the operations that the server does not serve; a call of one raises `CheckSkipped`. `made` holds the
    ids of what was created through this client, oldest first.
    """

    def __init__(self, url: str, headers: Mapping[str, str], timeout: float) -> None:
        self.url = url.rstrip("/")
        self.headers = dict(headers)
        self.absent: AbstractSet[str] = frozenset()
        self.made: dict[tuple[str, ...], str] = {}
        self.last: RecordedExchange | None = None
        self._lock = threading.Lock()
        self._timeout = timeout
        self._open = ExitStack()
        self._http = self._new_http()

    def close(self) -> None:
        """Close the connections."""
        self._open.close()

    def call(
        self,
        operation: str,
        of: Sequence[str] | None = None,
        body: object = None,
        *,
        index: str = "missing",
        headers: Mapping[str, str] | None = None,
        delimiter: str | None = None,
        **query: object,
    ) -> ServerAnswer:
        """Call an operation on the object `of` (the path of its names; empty: the root).

        `body` is a JSON value, a `pyarrow.Table` that is sent as a stream, or bytes that are sent as they are. Without
        one the smallest valid request is sent. `query` holds query parameters.

        Raises:
            CheckSkipped: the server does not serve the operation.
            CheckFailed: the server did not answer.
        """
        if operation in self.absent:
            raise CheckSkipped(f"{operation} is not served")
        found = BY_NAME[operation]
        joint = delimiter or DELIMITER
        path = found.path.replace("{id}", quote(joint.join(of or ()) or joint, safe=""))
        parameters = {**found.query, **_query(query)} if query or found.query else {}
        if delimiter is not None:
            parameters["delimiter"] = delimiter
        answer = ServerAnswer(
            found, self._send(found, path.replace("{index_name}", quote(index, safe="")), body, parameters, headers)
        )
        if answer.is_success and of is not None:
            self._note(operation, tuple(of))
        return answer

    def raw(
        self, method: str, path: str, content: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> RecordedExchange:
        """Send a request that belongs to no operation. Raises `CheckFailed` if the server does not answer."""
        sent = {"content-type": "application/json", **(headers or {})}
        return self.exchange(method, path, content, sent)

    def exchange(self, method: str, path: str, content: bytes, headers: Mapping[str, str]) -> RecordedExchange:
        """Send exactly this. Raises `CheckFailed` if the server does not answer."""
        return self._exchange(method, self.url + path, content, headers, {})

    def _send(
        self,
        operation: Operation,
        path: str,
        body: object,
        query: Mapping[str, Any],
        headers: Mapping[str, str] | None,
    ) -> RecordedExchange:
        content, kind = _content(operation, body)
        sent = {**({"content-type": kind} if kind else {}), **(headers or {})}
        return self._exchange(operation.method, self.url + path, content, sent, query)

    def _exchange(
        self, method: str, url: str, content: bytes, headers: Mapping[str, str], query: Mapping[str, Any]
    ) -> RecordedExchange:
        try:
            response = self._http.request(
                method, url, params=query or None, content=content or None, headers=dict(headers)
            )
        except httpx.TransportError as error:
            asked = RecordedExchange(method, url, content, headers.get("content-type") != STREAM, 0, "", b"")
            raise CheckFailed(f"the server did not answer: {type(error).__name__} {error}", asked) from error
        except KeyboardInterrupt:
            # The connection may be between two of its states. The requests that clean up get connections of their own.
            self._http = self._new_http()
            raise
        exchange = RecordedExchange(
            method,
            str(response.request.url),
            content,
            headers.get("content-type") != STREAM,
            response.status_code,
            response.headers.get("content-type", ""),
            response.content,
            dict(response.headers),
        )
        self.last = exchange
        return exchange

    def _new_http(self) -> httpx.Client:
        limits = httpx.Limits(max_connections=64)
        return self._open.enter_context(httpx.Client(headers=self.headers, timeout=self._timeout, limits=limits))

    def _note(self, operation: str, of: tuple[str, ...]) -> None:
        with self._lock:
            if operation in _MAKES:
                self.made[of] = _MAKES[operation]
            elif operation in ("drop_namespace", "drop_table", "deregister_table"):
                self.made.pop(of, None)


def _content(operation: Operation, body: object) -> tuple[bytes, str | None]:
    if isinstance(body, bytes):
        return body, STREAM if operation.body is Body.ARROW else "application/json"
    if isinstance(body, pa.Table):
        return stream(body), STREAM
    if body is None and operation.body is not Body.JSON:
        return b"", STREAM if operation.body is Body.ARROW else None
    return orjson.dumps(dict(operation.request) if body is None else body), "application/json"


def _query(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _word(value) for name, value in given.items() if value is not None}


def _word(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return [_word(one) for one in value]
    return value if isinstance(value, str) else str(value)
