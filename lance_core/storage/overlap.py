"""Runs blocking calls in parallel threads. Calls may be nested."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def call_all(call: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """`[call(item) for item in items]`, sequentially; the first error is raised after all calls were made."""
    results: list[R] = []
    error: Exception | None = None
    for item in items:
        try:
            results.append(call(item))
        except Exception as caught:  # noqa: BLE001  (kept, and raised below)
            error = error or caught
    if error is not None:
        raise error
    return results


class Overlap:
    """A pool of up to `workers` threads, started on first use, that help the calling thread of `map`.

    The caller makes calls itself, so a nested `map` makes progress even if no thread is free.
    """

    def __init__(self, workers: int, name: str) -> None:
        self._workers = workers
        self._name = name
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._closed = False

    def map(self, call: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """`[call(item) for item in items]`. All calls are made; then the first error, in order, is raised."""
        if len(items) < 2:
            return [call(item) for item in items]
        results: dict[int, R] = {}
        errors: dict[int, BaseException] = {}
        waiting = deque(enumerate(items))

        def work() -> None:
            while True:
                try:
                    index, item = waiting.popleft()
                except IndexError:
                    return
                try:
                    results[index] = call(item)
                except BaseException as error:  # noqa: BLE001  (kept, and raised in the calling thread)
                    errors[index] = error

        helpers = self._start(work, len(items) - 1)
        work()
        wait([helper for helper in helpers if not helper.cancel()])
        if errors:
            raise errors[min(errors)]
        return [results[index] for index in range(len(items))]

    @contextmanager
    def beside(self, call: Callable[[], object]) -> Iterator[None]:
        """Make a call in a thread while the block runs; after it, in the calling thread, if none was free till then.

        Ends when both have ended. An error of the block is raised rather than one of the call, which is not begun then.
        """
        started = self._start(call, 1)
        left = True
        try:
            yield
        finally:
            if started and not started[0].cancel():
                left = False
                wait(started)
        if left:
            call()
        else:
            started[0].result()

    def _start(self, work: Callable[[], object], wanted: int) -> list[Future[object]]:
        with self._lock:
            if self._closed:
                return []
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._workers, thread_name_prefix=self._name)
            helpers: list[Future[object]] = []
            with suppress(RuntimeError):  # no more threads can be started: those there are must do
                for _ in range(min(wanted, self._workers)):
                    helpers.append(self._pool.submit(work))  # noqa: PERF401 - what was appended stays
            return helpers

    def close(self) -> None:
        """Wait for the threads to finish, and stop them. A later `map` runs in the calling thread alone."""
        with self._lock:
            self._closed = True
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True)
