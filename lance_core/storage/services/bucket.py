"""`Bucket`, the interface between `BucketStore` and a service: single requests, and what their failures mean."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import aiohttp
from fsspec.asyn import sync

P = ParamSpec("P")
R = TypeVar("R")


class Failure(Enum):
    """The meaning of a failed request for its object."""

    MISSING = "the key holds nothing"
    MISMATCH = "a condition of the write did not hold: nothing was written"
    REFUSED = "refused for good: nothing was written"
    REPEAT = "not accepted this time: nothing was written"
    SILENT = "no answer: a write may have been applied, or may still be"


@dataclass(frozen=True, slots=True)
class Found:
    """One object of a bucket. `key` is relative to the bucket."""

    key: str
    size: int
    e_tag: str
    last_modified: datetime


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a listing. `token` requests the next page; None at the end. `directories` end in a slash."""

    objects: tuple[Found, ...]
    token: str | None
    directories: tuple[str, ...] = ()


class IncompleteListing(Exception):
    """An answer that is no whole page of a listing: a name that it lacks may exist."""


def is_panic(error: BaseException) -> bool:
    """Whether it is a defect of obstore, which may have sent the request or not. It is no `Exception`."""
    return type(error).__name__ == "PanicException"


VACANT = "*"
"""The condition of a write that requires a vacant key."""


class Bucket(ABC):
    """A bucket of one service.

    Each method blocks and makes exactly one HTTP request, unless it says otherwise: neither the SDK nor the HTTP client
    may resend it. A conditional write that was applied, not answered and resent would find its own object and report a
    conflict. All methods may be called by many threads at once.
    """

    service: object
    """Equal for buckets of one service that are accessed with the same credentials."""
    ordered: bool
    """Whether listings are in byte order of the keys and can begin after a key."""
    bulk = 1
    """How many keys `remove_all` takes."""
    concurrency = 32
    """Requests in flight at once, by default."""

    @abstractmethod
    def read(self, key: str, check: Callable[[int], object]) -> bytes:
        """An object. `check` is called with its size before the body is read, and may raise."""

    @abstractmethod
    def read_range(self, key: str, start: int, length: int) -> bytes:
        """A range of an object, with `length` > 0; empty when it begins at the end or behind it."""

    @abstractmethod
    def stat(self, key: str) -> Found:
        """Metadata of an object, by a HEAD request."""

    @abstractmethod
    def write(self, key: str, data: bytes, condition: str | None) -> str:
        """Write an object and return its e_tag. `condition`: None, `VACANT`, or the e_tag that must be there."""

    @abstractmethod
    def copy(self, origin: Any, source: str, key: str) -> None:
        """Copy an object of `origin`, a bucket with an equal `service`, inside the service.

        One request, or a few for an object too large for one; all are idempotent.
        """

    @abstractmethod
    def remove(self, key: str, condition: str | None = None) -> None:
        """Delete an object. `condition`: None, or the e_tag that must be there. May fail with `Failure.MISSING`."""

    def remove_all(self, keys: Sequence[str]) -> None:
        """Delete up to `bulk` objects. Fails if one of them cannot be deleted; not if one is not there."""
        for key in keys:
            self.remove(key)

    @abstractmethod
    def page(self, prefix: str, start_after: str | None, token: str | None, *, limit: int | None = None) -> Page:
        """Up to a page of the objects whose keys begin with `prefix`, at most `limit` of them."""

    @abstractmethod
    def page_of_directories(self, prefix: str, token: str | None) -> Page:
        """Up to a page of the directories whose keys begin with `prefix` and have one slash more, which ends them.

        What else it finds is left out.
        """

    @abstractmethod
    def classify(self, error: Exception) -> Failure:
        """Classify an exception of one of the methods."""

    def text(self, error: BaseException) -> str:
        """The text of such an exception, for people."""
        return str(error)

    @abstractmethod
    def disconnect(self) -> None:
        """Close the connections."""


def on_loop(request: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]) -> Callable[Concatenate[Any, P], R]:
    """Make a coroutine of a bucket a blocking method, which runs it on the event loop of its `file_system`."""

    @wraps(request)
    def call(bucket: Any, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return sync(bucket.file_system.loop, request, bucket, *args, **kwargs)  # type: ignore[no-any-return]

    return call


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """An exception and all exceptions that SDKs wrapped in it."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        link = waiting.pop()
        if not isinstance(link, BaseException) or id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        waiting += [link.__cause__, link.__context__, getattr(link, "inner_exception", None)]
        waiting.append(getattr(link, "kwargs", {}).get("error"))


def classify_connection(error: Exception) -> Failure:
    """Distinguish a connection that was never made, so that nothing was sent, from one that broke."""
    for link in chain(error):
        if isinstance(link, aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError):
            return Failure.REFUSED
        if isinstance(link, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
            return Failure.REPEAT
    return Failure.SILENT


def classify_status(status: int) -> Failure:
    """Classify an HTTP status, unless the service defines another meaning."""
    if status == 404:
        return Failure.MISSING
    if status == 412:
        return Failure.MISMATCH
    if status == 429:
        return Failure.REPEAT
    if status == 501:
        return Failure.REFUSED  # not implemented: the answer of services that do not support the condition
    return Failure.REFUSED if 400 <= status < 500 and status != 408 else Failure.SILENT


def forbid_resending(session: aiohttp.ClientSession) -> None:
    """Stop aiohttp from resending a PUT or DELETE when a reused connection breaks before the answer.

    There is no public option. The storage tests break a connection and count the requests that arrive.
    """
    session._retry_connection = False  # noqa: SLF001
