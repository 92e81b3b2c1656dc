"""Object store in the memory of this process: for tests, and for catalogs that need not survive it."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from lance_core.errors import AlreadyExists, NotFound, PreconditionFailed
from lance_core.storage.keys import check_key, check_prefix, is_key
from lance_core.storage.overlap import call_all
from lance_core.storage.port import ObjectMeta, ObjectStore, Results
from lance_core.storage.sizes import check_size

T = TypeVar("T")
R = TypeVar("R")


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class _Object:
    data: bytes
    e_tag: str
    last_modified: datetime


class MemoryStore(ObjectStore):
    """A dictionary behind one lock: every method is atomic, including `replace`.

    Behaves like a remote store: no directories, a new e_tag for every write, durable on return. `clock` returns the
    time for `last_modified`.
    """

    local = True
    content_e_tags = False

    def __init__(self, name: str = "memory", *, clock: Callable[[], datetime] = _now) -> None:
        self.uri = f"memory://{name}"
        self._clock = clock
        self._lock = threading.Lock()
        self._objects: dict[str, _Object] = {}
        self._order: list[bytes] = []
        self._writes = 0

    def get(self, path: str, *, at_most: int | None = None) -> bytes:
        data = self._find(path).data
        check_size(self.uri, path, len(data), at_most)
        return data

    def get_range(self, path: str, offset: int, length: int) -> bytes:
        return self._find(path).data[offset : offset + length]

    def head(self, path: str) -> ObjectMeta:
        return _meta(path, self._find(path))

    def put(self, path: str, data: bytes, *, durable: bool = True) -> str:  # noqa: ARG002
        check_key(path)
        with self._lock:
            return self._store(path, data)

    def put_if_absent(self, path: str, data: bytes, *, durable: bool = True) -> str:  # noqa: ARG002
        check_key(path)
        with self._lock:
            if path in self._objects:
                raise AlreadyExists(f"{self.uri}/{path}: expected a vacant key")
            return self._store(path, data)

    def replace(self, path: str, data: bytes, *, if_match: str) -> str:
        check_key(path)
        with self._lock:
            found = self._objects.get(path)
            if found is None:
                raise NotFound(f"{self.uri}/{path}: expected e_tag {if_match}, found nothing")
            if found.e_tag != if_match:
                raise PreconditionFailed(f"{self.uri}/{path}: expected e_tag {if_match}, found {found.e_tag}")
            return self._store(path, data)

    def publish(self, staged: str, target: str, data: bytes, *, durable: bool = True) -> str:
        check_key(staged)
        return self.put_if_absent(target, data, durable=durable)

    def rename_if_absent(self, source: str, target: str, *, durable: bool = True) -> None:  # noqa: ARG002
        check_key(source)
        check_key(target)
        with self._lock:
            found = self._objects.get(source)
            if found is None:
                raise NotFound(f"{self.uri}/{source}: nothing to rename")
            if target in self._objects:
                raise AlreadyExists(f"{self.uri}/{target}: expected a vacant key")
            self._store(target, found.data)
            self._remove(source)

    def delete(self, path: str) -> None:
        check_key(path)
        with self._lock:
            if path in self._objects:
                self._remove(path)

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectMeta]:
        check_prefix(prefix)
        below = f"{prefix}/".encode() if prefix else b""
        with self._lock:
            first = bisect_left(self._order, below)
            if start_after is not None:
                first = max(first, bisect_right(self._order, start_after.encode()))
            found: list[ObjectMeta] = []
            for raw in self._order[first:]:
                if not raw.startswith(below):
                    break
                path = raw.decode()
                found.append(_meta(path, self._objects[path]))
        return iter(found)

    def sync(self, paths: Iterable[str]) -> None:
        for path in paths:
            check_key(path)

    def object_path(self, path: str) -> str:
        return path

    def relative_path(self, object_path: str) -> str | None:
        path = object_path.removeprefix("/")
        return path if not path or is_key(path) else None

    def close(self) -> None:
        """Does nothing: the objects live as long as the store object."""

    def map(self, call: Callable[[T], R], items: Sequence[T]) -> Results[R]:
        return call_all(call, items)

    def _find(self, path: str) -> _Object:
        check_key(path)
        found = self._objects.get(path)
        if found is None:
            raise NotFound(f"{self.uri}/{path}: nothing there")
        return found

    def _store(self, path: str, data: bytes) -> str:
        self._writes += 1
        if path not in self._objects:
            insort(self._order, path.encode())
        e_tag = f'"{self._writes:x}"'
        self._objects[path] = _Object(bytes(data), e_tag, self._clock())
        return e_tag

    def _remove(self, path: str) -> None:
        del self._objects[path]
        del self._order[bisect_left(self._order, path.encode())]


def _meta(path: str, found: _Object) -> ObjectMeta:
    return ObjectMeta(path, len(found.data), found.e_tag, found.last_modified)
