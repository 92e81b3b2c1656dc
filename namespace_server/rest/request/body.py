"""Request bodies: read within bounds, decoded as JSON objects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, TypeVar

import orjson
from lance_namespace.errors import InvalidInputError, ServiceUnavailableError
from starlette.types import Message, Receive

from namespace_server.outcomes import with_nothing_done
from namespace_server.rest.errors import BodyTooLarge, ChunksBroken, ClientDisconnected, RequestTimeout
from namespace_server.rest.request.headers import Headers, declared_length, has_no_body
from namespace_server.rest.request.limits import RequestLimits
from namespace_server.throttling import UPLOADS, PrincipalLimit, Upload

JsonObject = dict[str, object]
R = TypeVar("R")

LARGE_BODY = 64 << 10
"""Bodies from this size on are decoded outside the event loop."""

_ROWS = (b"application/vnd.apache.arrow", b"application/octet-stream")

_BUFFERED_FROM = 64 << 10
"""Smaller bodies do not count against the bound on all of them: connections are bounded too."""

_UNBOUNDED = PrincipalLimit(UPLOADS, 0, "bytes")


@dataclass(frozen=True, slots=True)
class TableBody(Generic[R]):
    """The checked request of an operation on a table, and the length of its body in bytes."""

    request: R
    size: int


@dataclass(frozen=True, slots=True)
class EncodedBody:
    """The bytes of the body of a change, and how they become JSON, with the id of its route.

    `decode` raises `InvalidInputError`. The fields are checked by the catalog. A large one is decoded and checked
    outside the event loop.
    """

    decode: Callable[[], JsonObject]
    data: bytes

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return len(self.data)


class SharedTimeout:
    """Bounds a block to `seconds`, as `asyncio.timeout` does, in any number of tasks. Belongs to one event loop.

    The block raises `TimeoutError` when its time is over. A task is in at most one block at a time.

    `asyncio.timeout` makes a timer for each block, which takes 7 µs of a request with a body; this takes 1 µs, and a
    whole cached read some 50 µs. Since all blocks have the same length, they end in the order in which they began, and
    one timer for the oldest is enough.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._deadlines: dict[asyncio.Task[Any], float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> None:
        loop = asyncio.get_running_loop()
        self._deadlines[_current_task()] = deadline = loop.time() + self.seconds
        if self._timer is None:
            self._timer = loop.call_at(deadline, self._expire)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        task = _current_task()
        if self._deadlines.pop(task, None) is None and not task.uncancel() and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def _expire(self) -> None:
        """Cancel the tasks whose time is over, and wait for the next one."""
        loop = asyncio.get_running_loop()
        self._timer = None
        now = loop.time()
        for task, deadline in list(self._deadlines.items()):
            if deadline > now:
                self._timer = loop.call_at(deadline, self._expire)
                break
            del self._deadlines[task]
            task.cancel()


class BodyReader:
    """Reads request bodies. Belongs to one event loop.

    At most `limits.buffered_bodies` bytes of larger bodies are in memory at one time; what exceeds that is refused
    before it is read.
    """

    def __init__(self, limits: RequestLimits) -> None:
        self._limits = limits
        self._timeout = SharedTimeout(limits.body_timeout)
        self._buffered = 0

    async def read(self, receive: Receive, headers: Headers, limit: int, upload: Upload | None = None) -> bytes:
        """The body of one request, which counts as this upload until it has ended; one above 64 KiB, as for `hold`.

        Raises:
            BodyTooLarge: it is longer than `limit` bytes, or than all uploads of its principal may be.
            LimitReached: it is more than its principal may have under way, beside other bodies.
            RequestTimeout: it did not end within `limits.body_timeout` seconds.
            ServiceUnavailableError: larger bodies fill the memory that is reserved for them.
            ClientDisconnected: the client closed the connection before the end.
        """
        declared = declared_length(headers)
        if has_no_body(headers, declared):
            return b""
        if declared is not None and declared > limit:
            raise BodyTooLarge(f"request body: expected at most {limit} bytes, found {declared}")
        upload = upload or uncounted()
        if declared is not None and declared > _BUFFERED_FROM:
            count_upload(upload, declared)
        reserved = 0
        try:
            with self._timeout:
                message = await receive()
                if message["type"] == "http.request" and is_last(message, declared):
                    data: bytes = message.get("body", b"")
                    _check_length(len(data), limit)
                    return data
                chunks = bytearray()
                while message["type"] == "http.request":
                    chunks += message.get("body", b"")
                    _check_length(len(chunks), limit)
                    if len(chunks) > max(reserved, _BUFFERED_FROM):
                        reserved += self._reserve(len(chunks) - reserved)
                        count_upload(upload, len(chunks))
                    if is_last(message, declared, len(chunks)):
                        return bytes(chunks)
                    message = await receive()
        except TimeoutError:
            raise RequestTimeout(
                f"request body: expected within {self._limits.body_timeout:g} s, found an incomplete one"
            ) from None
        finally:
            self._buffered -= reserved
            upload.close()
        raise broken_off(declared)

    @contextmanager
    def hold(self, size: int) -> Iterator[None]:
        """Count a body of `size` bytes for as long as it is in use."""
        counted = size if size > _BUFFERED_FROM else 0
        self._buffered += counted
        try:
            yield
        finally:
            self._buffered -= counted

    def _reserve(self, size: int) -> int:
        if self._buffered + size > self._limits.buffered_bodies:
            raise with_nothing_done(
                ServiceUnavailableError("too many large requests at one time; nothing was done, try again")
            )
        self._buffered += size
        return size


def uncounted() -> Upload:
    """An upload that is not bounded."""
    return Upload(_UNBOUNDED, None)


def count_upload(upload: Upload, length: int) -> None:
    """Count the bytes of a body that are there, or that it is declared to have, before they are read.

    Raises `LimitReached` if its principal has others under way, and `BodyTooLarge` if it is too long without them: then
    it is of no use to repeat it.
    """
    if upload.most and length > upload.most:
        raise BodyTooLarge(f"request body: expected at most {upload.most} bytes ({UPLOADS}), found {length} or more")
    upload.grow(length)


def broken_off(declared: int | None) -> ClientDisconnected:
    """The error of a body of `declared` bytes that ends before its end."""
    if declared is None:
        return ChunksBroken("request body: expected chunks up to the last one, found a malformed one or no more")
    return ClientDisconnected("request body: expected its end, found a closed connection")


def is_last(message: Message, declared: int | None, length: int | None = None) -> bool:
    """Whether a body of `declared` bytes ends with this message, up to which it has `length`; by default, its own.

    The HTTP server signals the end by one more message, for which the event loop would wait.
    """
    if not message.get("more_body", False):
        return True
    return declared == (len(message.get("body", b"")) if length is None else length)


def _check_length(found: int, limit: int) -> None:
    if found > limit:
        raise BodyTooLarge(f"request body: expected at most {limit} bytes, found more")


def _check_encoding(headers: Headers) -> None:
    """Refuse a compressed body: it would have to be bounded by what becomes of it. Arrow compresses its own buffers."""
    encoding = headers.get(b"content-encoding", b"identity").strip().lower()
    if encoding not in {b"identity", b""}:
        raise InvalidInputError(f"content-encoding: expected none, found {encoding.decode('latin-1')[:80]!r}")


def check_media_type(headers: Headers) -> None:
    """Refuse a body that is not declared to be JSON, even an empty one: a form on a web page can send all others.

    A request without body and without content type passes: stock clients send those.
    """
    _check_encoding(headers)
    media_type = headers.get(b"content-type", b"")
    if media_type == b"application/json" or media_type.partition(b";")[0].strip().lower() == b"application/json":
        return
    if media_type or headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers:
        raise InvalidInputError("Expected request with `Content-Type: application/json`")


def check_arrow(headers: Headers) -> None:
    """Refuse a body that is declared to be neither Arrow nor plain bytes: a form on a web page can send others."""
    _check_encoding(headers)
    media_type = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if media_type and not media_type.startswith(_ROWS):
        raise InvalidInputError(
            "Expected request with `Content-Type: application/vnd.apache.arrow.stream`, "
            f"found {media_type.decode('latin-1')[:80]!r}"
        )


def decode_object(data: bytes, limits: RequestLimits, *, values: int, optional: bool = False) -> JsonObject:
    """The JSON object that a body is. With `optional`, an empty body and `null` are the empty object.

    Raises `InvalidInputError` for anything else, and for objects that are nested too deeply or hold more than `values`
    values. Long lists are counted here: a model that finds something wrong in each item takes seconds.
    """
    if not data and optional:
        return {}
    openers = data.count(b"[") + data.count(b"{")
    if openers + data.count(b",") > values:
        raise InvalidInputError(
            f"request body: expected a JSON object, found invalid JSON, or expected at most {values} values, found more"
        )
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        if "enough memory" in str(error):
            raise with_nothing_done(
                ServiceUnavailableError(
                    "request body: the server has not enough memory to read it; nothing was done, try again"
                )
            ) from None
        raise InvalidInputError(f"request body: expected a JSON object, found invalid JSON ({error})") from None
    if openers > limits.depth:
        _check_depth(value, limits.depth)
    if isinstance(value, dict):
        for name, item in value.items():
            bound = limits.names if name == "id" else limits.operations
            if isinstance(item, list) and len(item) > bound:
                raise InvalidInputError(f"{name[:80]}: expected at most {bound} items, found {len(item)}")
        return value
    if value is None and optional:
        return {}
    raise InvalidInputError(f"request body: expected a JSON object, found {orjson.dumps(value).decode()[:80]}")


def _check_depth(value: object, limit: int) -> None:
    level: list[dict[str, Any] | list[Any]] = [value] if isinstance(value, dict | list) else []
    depth = 0
    while level:
        depth += 1
        if depth > limit:
            raise InvalidInputError(f"request body: expected at most {limit} levels of nesting, found more")
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]


def _current_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None, "no task runs"
    return task
