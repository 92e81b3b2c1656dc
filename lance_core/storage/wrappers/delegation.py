"""Base class of wrappers: passes each call to the inner store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TypeVar

from lance_core.storage.port import ObjectMeta, ObjectStore, Results, WaitingCall

T = TypeVar("T")
R = TypeVar("R")


class WrappedStore(ObjectStore):
    """Behaves like `inner`. A subclass overrides `_call`, through which every request passes, and `map` if needed.

    `sync` does not pass through `_call`, because remote stores have no such request.
    """

    def __init__(self, inner: ObjectStore) -> None:
        self.inner = inner
        self.uri = inner.uri
        self.local = inner.local
        self.content_e_tags = inner.content_e_tags

    def _call(self, verb: str, path: str, request: Callable[[], R]) -> R:  # noqa: ARG002
        """Make one request. `verb` is the method's name, `path` the key that it reads or changes."""
        return request()

    def get(self, path: str, *, at_most: int | None = None) -> bytes:
        return self._call("get", path, lambda: self.inner.get(path, at_most=at_most))

    def get_range(self, path: str, offset: int, length: int) -> bytes:
        return self._call("get_range", path, lambda: self.inner.get_range(path, offset, length))

    def head(self, path: str) -> ObjectMeta:
        return self._call("head", path, lambda: self.inner.head(path))

    def put(self, path: str, data: bytes, *, durable: bool = True) -> str | None:
        return self._call("put", path, lambda: self.inner.put(path, data, durable=durable))

    def put_if_absent(self, path: str, data: bytes, *, durable: bool = True) -> str | None:
        return self._call("put_if_absent", path, lambda: self.inner.put_if_absent(path, data, durable=durable))

    def replace(self, path: str, data: bytes, *, if_match: str) -> str | None:
        return self._call("replace", path, lambda: self.inner.replace(path, data, if_match=if_match))

    def publish(self, staged: str, target: str, data: bytes, *, durable: bool = True) -> str | None:
        return self._call("publish", target, lambda: self.inner.publish(staged, target, data, durable=durable))

    def rename_if_absent(self, source: str, target: str, *, durable: bool = True) -> None:
        self._call("rename_if_absent", target, lambda: self.inner.rename_if_absent(source, target, durable=durable))

    def copy(self, source: str, target: str, *, origin: ObjectStore | None = None, durable: bool = True) -> None:
        inner = self.inner if origin is None or origin is self else origin
        self._call("copy", target, lambda: self.inner.copy(source, target, origin=inner, durable=durable))

    def longest_call(self) -> WaitingCall | None:
        return self.inner.longest_call()

    @property
    def innermost(self) -> ObjectStore:
        return self.inner.innermost

    def delete(self, path: str) -> None:
        self._call("delete", path, lambda: self.inner.delete(path))

    def delete_if(self, path: str, *, if_match: str | None) -> None:
        self._call("delete_if", path, lambda: self.inner.delete_if(path, if_match=if_match))

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectMeta]:
        return self._call("list", prefix, lambda: self.inner.list(prefix, start_after=start_after))

    def unfinished(self, prefix: str) -> Iterator[ObjectMeta]:
        return self.inner.unfinished(prefix)

    def linked_directories(self, prefix: str) -> Sequence[str]:
        return self.inner.linked_directories(prefix)

    def remove_empty_directories(self, prefix: str, before: datetime) -> None:
        self.inner.remove_empty_directories(prefix, before)

    def first(self, prefix: str) -> ObjectMeta | None:
        return self._call("list", prefix, lambda: self.inner.first(prefix))

    def directories(self, prefix: str) -> Sequence[str]:
        return self._call("list", prefix, lambda: self.inner.directories(prefix))

    def sync(self, paths: Iterable[str]) -> None:
        self.inner.sync(paths)

    def object_path(self, path: str) -> str:
        return self.inner.object_path(path)

    def relative_path(self, object_path: str) -> str | None:
        return self.inner.relative_path(object_path)

    def linked_path(self, path: str) -> str | None:
        return self.inner.linked_path(path)

    def contains(self, other: ObjectStore) -> bool:
        return self.inner.contains(other)

    def object_uri(self, path: str) -> str:
        return self.inner.object_uri(path)

    def close(self) -> None:
        self.inner.close()

    def map(self, call: Callable[[T], R], items: Sequence[T]) -> Results[R]:
        return self.inner.map(call, items)

    def beside(self, call: Callable[[], object]) -> AbstractContextManager[None]:
        return self.inner.beside(call)
