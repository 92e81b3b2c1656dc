"""Object store on a cloud bucket: requests of `services`, with retries where they are harmless."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import TypeVar

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from lance_core.errors import AlreadyExists, NotFound, OversizedFile, PreconditionFailed, StorageError, StorageUnknown
from lance_core.storage.keys import check_key, check_prefix, is_key, is_name, quote_path
from lance_core.storage.overlap import Overlap
from lance_core.storage.port import ObjectMeta, ObjectStore, Results
from lance_core.storage.services.bucket import VACANT, Bucket, Failure, Found, Page, is_panic
from lance_core.storage.sizes import check_size

T = TypeVar("T")
R = TypeVar("R")

RETRIES = 4
MOST_RETRIES = 100
_FIRST_PAUSE = 0.1
"""Seconds. The longest first pause between attempts; it doubles with every attempt."""
_LONGEST_PAUSE = 2.0
_RETRYABLE = frozenset({Failure.SILENT, Failure.REPEAT})


class BucketStore(ObjectStore):
    """The objects of `bucket` below the key `prefix` ('' is the whole bucket); `uri` is the bucket's URI.

    One request per call, without a cache.

    A request that was not accepted (throttled, no connection) is retried up to `retries` times, with exponential
    backoff. A request without an answer is retried too if it is idempotent: reads, `put` and `delete`. A conditional
    write without an answer is not retried here but raises `StorageUnknown` (rule F1: only an occupied slot is an
    answer).

    `map` makes as many requests at once as `concurrency` says, or that of the bucket, beside those of its callers.
    """

    local = False
    content_e_tags = False

    def __init__(
        self, bucket: Bucket, uri: str, prefix: str, *, concurrency: int | None = None, retries: int = RETRIES
    ) -> None:
        self.uri = f"{uri}/{quote_path(prefix)}" if prefix else uri
        self._bucket = bucket
        self._base = f"{prefix}/" if prefix else ""
        self._overlap = Overlap(concurrency or bucket.concurrency, "storage")
        self._attempts = 1 + retries
        self._pause = _FIRST_PAUSE

    def get(self, path: str, *, at_most: int | None = None) -> bytes:
        key = self._key(path)
        check = partial(check_size, self.uri, path, at_most=at_most)
        return self._ask(path, lambda: self._bucket.read(key, check))

    def get_range(self, path: str, offset: int, length: int) -> bytes:
        if offset < 0 or length < 0:
            raise ValueError(f"{path}: expected a range, found offset {offset}, length {length}")
        if length == 0:
            self.head(path)
            return b""
        key = self._key(path)
        return self._ask(path, lambda: self._bucket.read_range(key, offset, length))

    def head(self, path: str) -> ObjectMeta:
        key = self._key(path)
        found = self._ask(path, lambda: self._bucket.stat(key))
        return ObjectMeta(path, found.size, found.e_tag, found.last_modified)

    def put(self, path: str, data: bytes, *, durable: bool = True) -> str:  # noqa: ARG002
        key = self._key(path)
        return self._ask(path, lambda: self._bucket.write(key, data, None), writes=True)

    def put_if_absent(self, path: str, data: bytes, *, durable: bool = True) -> str:  # noqa: ARG002
        key = self._key(path)
        return self._ask(path, lambda: self._bucket.write(key, data, VACANT), writes=True, mismatch=AlreadyExists)

    def replace(self, path: str, data: bytes, *, if_match: str) -> str:
        key = self._key(path)
        try:
            return self._ask(
                path, lambda: self._bucket.write(key, data, if_match), writes=True, mismatch=PreconditionFailed
            )
        except PreconditionFailed:
            # Some services report a missing object like a changed one; `head` raises `NotFound` then.
            self.head(path)
            raise

    def copy(self, source: str, target: str, *, origin: ObjectStore | None = None, durable: bool = True) -> None:
        there = self if origin is None else origin.innermost
        if not isinstance(there, BucketStore) or there._bucket.service != self._bucket.service:  # noqa: SLF001
            super().copy(source, target, origin=origin, durable=durable)
            return
        from_key, key = there._key(source), self._key(target)  # noqa: SLF001
        what = f"{target}, copied from {there.object_uri(source)}"
        self._ask(what, lambda: self._bucket.copy(there._bucket, from_key, key), writes=True)  # noqa: SLF001

    def delete(self, path: str) -> None:
        key = self._key(path)
        try:
            self._ask(path, lambda: self._bucket.remove(key), writes=True)
        except NotFound:
            return

    def delete_all(self, paths: Sequence[str]) -> None:
        size = self._bucket.bulk
        self.map(self._delete_some, [paths[first : first + size] for first in range(0, len(paths), size)])

    def _delete_some(self, paths: Sequence[str]) -> None:
        """Delete up to as many objects as one request can, or each alone if that fails.

        A service may not know such requests, and of those that it knows the answer does not say what to do about a key.
        """
        keys = [self._key(path) for path in paths]
        if len(keys) > 1:
            with suppress(StorageError):
                self._ask(f"{paths[0]} and {len(keys) - 1} more", lambda: self._bucket.remove_all(keys), writes=True)
                return
        self.map(self.delete, paths)

    def delete_if(self, path: str, *, if_match: str | None) -> None:
        key = self._key(path)
        try:
            self._ask(path, lambda: self._bucket.remove(key, if_match), writes=True, mismatch=PreconditionFailed)
        except NotFound:
            return
        except PreconditionFailed:
            # Some services report a missing object like a changed one.
            try:
                self.head(path)
            except NotFound:
                return
            raise

    def list(
        self, prefix: str, *, start_after: str | None = None, skipped: Callable[[str], object] | None = None
    ) -> Iterator[ObjectMeta]:
        """As the port says. `skipped` is called with the keys of objects that are left out, since no call takes them.

        Marks of folders are none of these: consoles make them, with keys that end in a slash.
        """
        check_prefix(prefix)
        objects = self._objects(prefix, start_after)
        if not self._bucket.ordered:
            objects = iter(sorted(objects, key=lambda found: found.key.encode()))
        return self._metas(objects, start_after, skipped)

    def first(self, prefix: str) -> ObjectMeta | None:
        check_prefix(prefix)
        if not self._bucket.ordered:
            return super().first(prefix)
        below = f"{self._base}{prefix}/" if prefix else self._base
        page = self._ask(prefix, lambda: self._bucket.page(below, None, None, limit=1))
        found = next(self._metas(iter(page.objects), None), None)
        return found if found is not None or page.token is None else super().first(prefix)

    def directories(self, prefix: str) -> Sequence[str]:
        check_prefix(prefix)
        below = f"{self._base}{prefix}/" if prefix else self._base
        pages = self._pages(prefix, lambda token: self._bucket.page_of_directories(below, token))
        found = (key.removeprefix(below).rstrip("/") for page in pages for key in page.directories)
        return [name for name in found if is_name(name)]

    def sync(self, paths: Iterable[str]) -> None:
        for path in paths:
            check_key(path)

    def object_path(self, path: str) -> str:
        return (self._base + path).rstrip("/")

    def relative_path(self, object_path: str) -> str | None:
        absolute = object_path.removeprefix("/")
        if absolute == self._base.rstrip("/"):
            return ""
        path = absolute.removeprefix(self._base)
        return path if absolute.startswith(self._base) and is_key(path) else None

    def close(self) -> None:
        self._overlap.close()
        self._bucket.disconnect()

    def map(self, call: Callable[[T], R], items: Sequence[T]) -> Results[R]:
        return self._overlap.map(call, items)

    def beside(self, call: Callable[[], object]) -> AbstractContextManager[None]:
        return self._overlap.beside(call)

    def _key(self, path: str) -> str:
        check_key(path)
        return self._base + path

    def _objects(self, prefix: str, start_after: str | None) -> Iterator[Found]:
        below = f"{self._base}{prefix}/" if prefix else self._base
        after = None if start_after is None else self._base + start_after
        for page in self._pages(prefix, lambda token: self._bucket.page(below, after, token)):
            yield from page.objects

    def _pages(self, prefix: str, ask: Callable[[str | None], Page]) -> Iterator[Page]:
        """All pages of a listing. Raises `StorageError` where a token comes twice, so that the end is never reached."""
        token: str | None = None
        used: set[str] = set()
        while True:
            page = self._ask(prefix, partial(ask, token))
            yield page
            token = page.token
            if token is None:
                return
            if token in used:
                raise StorageError(f"{self.uri}/{prefix}: a page of the listing has the token of an earlier page")
            used.add(token)

    def _metas(
        self, objects: Iterator[Found], start_after: str | None, skipped: Callable[[str], object] | None = None
    ) -> Iterator[ObjectMeta]:
        bound = None if start_after is None else start_after.encode()
        for found in objects:
            path = found.key.removeprefix(self._base)
            if not is_key(path):
                if skipped is not None and not path.endswith("/"):
                    skipped(path)
            elif bound is None or bound < path.encode():
                yield ObjectMeta(path, found.size, found.e_tag, found.last_modified)

    def _failure(self, error: BaseException) -> Failure | None:
        """The meaning of an error for the object; None for one that is none of the request, as an interruption, or an
        answer that is refused.
        """
        if isinstance(error, OversizedFile):
            return None
        if isinstance(error, Exception):
            return self._bucket.classify(error)
        return Failure.SILENT if is_panic(error) else None

    def _ask(
        self,
        path: str,
        request: Callable[[], R],
        *,
        writes: bool = False,
        mismatch: type[StorageError] | None = None,
    ) -> R:
        """Send a request until it is answered or the attempts are used up.

        Args:
            path: The key, for error messages.
            request: Makes the request once.
            writes: Whether the request may change the bucket. If one attempt got no answer, the request then fails
                with `StorageUnknown`.
            mismatch: The error of a conditional request whose condition does not hold. A conditional request is not
                retried once it may have been applied (rule F1).

        Returns:
            The answer.

        Raises:
            NotFound: The key holds nothing.
            StorageError: The request was refused, or never accepted.
            StorageUnknown: A write may have been applied.
        """
        silent = False

        def is_retryable(error: BaseException) -> bool:
            nonlocal silent
            failure = self._failure(error)
            silent = silent or failure is Failure.SILENT
            return failure in _RETRYABLE and not (silent and mismatch is not None)

        try:
            return self._send(request, is_retryable)
        except BaseException as error:
            failure = self._failure(error)
            if failure is None:
                raise
            kind = {Failure.MISSING: NotFound, Failure.MISMATCH: mismatch}.get(failure) or StorageError
            if writes and silent and failure is not Failure.MISSING:
                kind = StorageUnknown
            raise kind(f"{self.uri}/{path}: {type(error).__name__}: {self._bucket.text(error)}") from error

    def _send(self, request: Callable[[], R], is_retryable: Callable[[BaseException], bool]) -> R:
        """The answer of a request, or its last error. At first without tenacity, whose state takes time to make."""
        failed: list[BaseException] = []
        try:
            return request()
        except BaseException as error:
            if not is_retryable(error):
                raise
            failed.append(error)

        def attempt() -> R:
            if failed:
                raise failed.pop()
            return request()

        return Retrying(
            stop=stop_after_attempt(self._attempts),
            wait=wait_random_exponential(multiplier=self._pause, max=_LONGEST_PAUSE),
            retry=retry_if_exception(is_retryable),
            reraise=True,
        )(attempt)
