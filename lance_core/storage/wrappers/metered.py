"""Measures each call of a store: its kind, its outcome, and how long it took."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from contextvars import copy_context
from functools import partial
from threading import get_ident
from typing import Final, TypeVar

from lance_core.errors import AlreadyExists, NotFound, PreconditionFailed, StorageUnknown
from lance_core.storage.port import ObjectMeta, ObjectStore, Results, SizeAndDate, WaitingCall
from lance_core.storage.wrappers.delegation import WrappedStore

T = TypeVar("T")
R = TypeVar("R")

Meter = Callable[[str, str], Callable[[float], None]]
"""The callback for the seconds of each call of a kind and an outcome, by any thread. It must not raise."""

KINDS: Final = ("get", "head", "put", "put_if_absent", "replace", "rename", "copy", "delete", "list", "sync")
OUTCOMES: Final = ("ok", "not_found", "conflict", "unknown", "error")
"""`conflict`: the key was taken, or had other content than expected. `unknown`: the answer to a write was lost."""

_KIND_OF: Final = {kind: kind for kind in KINDS} | {
    "get_range": "get",
    "publish": "put_if_absent",
    "rename_if_absent": "rename",
    "delete_if": "delete",
}
_AS_LONG_AS_NEEDED: Final = frozenset({"copy", "list"})
_clock = time.perf_counter


class MeteredStore(WrappedStore):
    """Behaves like `inner`, and has each call measured.

    A call is what the port names, with the retries that the store makes within it. Of a local store a call about
    several objects counts once, and on a bucket each of its requests. A listing takes as long as its pages.
    """

    def __init__(self, inner: ObjectStore, meter: Meter) -> None:
        super().__init__(inner)
        self.unsynced = inner.unsynced
        self._meter = meter
        self._under_way: dict[int, tuple[str, str, float]] = {}
        self._done = {verb: meter(kind, "ok") for verb, kind in _KIND_OF.items()}
        self._found, self._vacant = self._done["get"], meter("get", "not_found")

    def longest_call(self) -> WaitingCall | None:
        calls = [call for call in list(self._under_way.values()) if call[0] not in _AS_LONG_AS_NEEDED]
        if not calls:
            return None
        verb, path, began = min(calls, key=lambda call: call[2])
        return WaitingCall(_KIND_OF[verb], path, _clock() - began)

    def _call(self, verb: str, path: str, request: Callable[[], R]) -> R:
        began = _clock()
        self._under_way[thread := get_ident()] = (verb, path, began)
        try:
            result = request()
        except Exception as error:
            self._failed(_KIND_OF[verb], error, _clock() - began)
            raise
        finally:
            self._under_way.pop(thread, None)
        self._done[verb](_clock() - began)
        return result

    def _failed(self, kind: str, error: Exception, seconds: float) -> None:
        self._meter(kind, _outcome_of(error))(seconds)

    def find(self, path: str) -> bytes | None:
        # Not by `_call`: nothing there is an outcome of its own, and each read of a catalog makes such calls.
        began = _clock()
        self._under_way[thread := get_ident()] = ("get", path, began)
        try:
            data = self.inner.find(path)
        except Exception as error:
            self._failed("get", error, _clock() - began)
            raise
        finally:
            self._under_way.pop(thread, None)
        (self._vacant if data is None else self._found)(_clock() - began)
        return data

    def require(self, paths: Sequence[str]) -> Results[SizeAndDate]:
        if not self.local:
            return super().require(paths)
        return self._call("head", "", lambda: self.inner.require(paths))

    def tail(self, path: str, length: int) -> tuple[bytes, SizeAndDate]:
        if not self.local:
            return super().tail(path, length)
        return self._call("get", path, lambda: self.inner.tail(path, length))

    def get_with_meta(self, path: str, *, at_most: int | None = None) -> tuple[bytes, ObjectMeta]:
        if not self.local:
            return super().get_with_meta(path, at_most=at_most)
        return self._call("get", path, lambda: self.inner.get_with_meta(path, at_most=at_most))

    def delete_all(self, paths: Sequence[str]) -> None:
        if paths:
            self._call("delete", paths[0], lambda: self.inner.delete_all(paths))

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectMeta]:
        began = _clock()
        objects = self.inner.list(prefix, start_after=start_after)
        return self._timed(objects, _clock() - began)

    def _timed(self, objects: Iterator[ObjectMeta], seconds: float) -> Iterator[ObjectMeta]:
        """The objects of a listing; the time in which the caller works on them is not counted."""
        meter = self._done["list"]
        began = _clock()
        try:
            for meta in objects:
                seconds += _clock() - began
                yield meta
                began = _clock()
            seconds += _clock() - began
        except Exception as error:
            seconds += _clock() - began
            meter = self._meter("list", _outcome_of(error))
            raise
        finally:
            meter(seconds)

    def names(self, prefix: str) -> Sequence[str]:
        return self._call("list", prefix, lambda: self.inner.names(prefix))

    def map(self, call: Callable[[T], R], items: Sequence[T]) -> Results[R]:
        if self.local:
            return self.inner.map(call, items)
        # In threads: what measures a call may ask in which context variables it is made.
        contexts = [(copy_context(), item) for item in items]
        return self.inner.map(lambda each: each[0].run(call, each[1]), contexts)

    def beside(self, call: Callable[[], object]) -> AbstractContextManager[None]:
        return self.inner.beside(partial(copy_context().run, call))

    def sync(self, paths: Iterable[str]) -> None:
        if self.unsynced or not self.local:  # where it does nothing
            self.inner.sync(paths)
        else:
            self._call("sync", "", lambda: self.inner.sync(paths))


def _outcome_of(error: Exception) -> str:
    if isinstance(error, NotFound):
        return "not_found"
    if isinstance(error, AlreadyExists | PreconditionFailed):
        return "conflict"
    return "unknown" if isinstance(error, StorageUnknown) else "error"
