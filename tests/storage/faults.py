"""A store that fails at chosen writes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from lance_core.errors import StorageError, StorageUnknown
from lance_core.storage.overlap import call_all
from lance_core.storage.port import ObjectStore, Results
from lance_core.storage.wrappers.delegation import WrappedStore

T = TypeVar("T")
R = TypeVar("R")

WRITES = frozenset({"put", "put_if_absent", "replace", "publish", "rename_if_absent", "copy", "delete", "delete_if"})
"""The methods that change the content of a store."""


class Crashed(BaseException):
    """Simulated crash of the process at this call. Not an `Exception`, because a dead process handles no errors."""


class Fault(Enum):
    """The failure of a write."""

    CRASH_BEFORE = "the process crashes, the write is not made"
    CRASH_AFTER = "the write is made, the process crashes before the answer"
    LOST_ANSWER = "the write is made, the caller gets StorageUnknown"
    LOST_REQUEST = "the write is never made, the caller gets StorageUnknown"
    DELAYED = "the caller gets StorageUnknown, the write is made by `deliver`"


@dataclass(frozen=True, slots=True)
class Write:
    """One write. `number` counts from 0 since the store was created; `path` is the key that it changes."""

    number: int
    verb: str
    path: str


@dataclass(slots=True)
class _FaultRule:
    fault: Fault
    matches: Callable[[Write], bool]
    left: int


class FaultStore(WrappedStore):
    """Passes calls to `inner`, and simulates failures of stores and processes at chosen writes.

    After a crash every call of any thread raises `Crashed`. The next process is a new wrapper around the same `inner`.
    `map` runs its items sequentially, so that writes have the same numbers in every run.
    """

    def __init__(self, inner: ObjectStore) -> None:
        super().__init__(inner)
        self.writes: list[Write] = []
        """Every requested write in order, including failed ones."""
        self.synced: list[tuple[int, str]] = []
        """Every path given to `sync`, with the number of writes requested before it."""
        self.crashed = False
        self._rules: list[_FaultRule] = []
        self._late: list[Callable[[], object]] = []
        self._hooks: list[Callable[[str, str], None]] = []
        self._lock = threading.Lock()
        self._hooked = threading.local()

    def fail(
        self,
        fault: Fault,
        *,
        nth: int | None = None,
        when: Callable[[Write], bool] = lambda _write: True,
        times: int = 1,
    ) -> None:
        """Cause `fault` at the write with number `nth`, or at the first `times` writes for which `when` is true."""

        def matches(write: Write) -> bool:
            return (nth is None or write.number == nth) and when(write)

        self._rules.append(_FaultRule(fault, matches, times))

    def before(self, hook: Callable[[str, str], None]) -> Callable[[], None]:
        """Call `hook(verb, path)` before every call, including reads. Returns a function that removes the hook.

        The hook may use `inner` or this store as a concurrent client; its own calls trigger no hooks. An exception of
        the hook is raised from the call.
        """
        self._hooks.append(hook)
        return lambda: self._hooks.remove(hook)

    def deliver(self) -> list[StorageError | None]:
        """Make the delayed writes in order. Returns the error of each; None is success."""
        with self._lock:
            late, self._late = self._late, []
        answers: list[StorageError | None] = []
        for request in late:
            try:
                request()
                answers.append(None)
            except StorageError as error:
                answers.append(error)
        return answers

    def sync(self, paths: Iterable[str]) -> None:
        wanted = list(paths)
        for path in wanted:
            self._arrive("sync", path)
            with self._lock:
                self.synced.append((len(self.writes), path))
        self.inner.sync(wanted)

    def map(self, call: Callable[[T], R], items: Sequence[T]) -> Results[R]:
        return call_all(call, items)

    def _call(self, verb: str, path: str, request: Callable[[], R]) -> R:
        self._arrive(verb, path)
        if verb not in WRITES:
            return request()
        with self._lock:
            write = Write(len(self.writes), verb, path)
            self.writes.append(write)
            fault = self._take(write)
        if fault is None:
            answer = request()
            self._live(verb, path)
            return answer
        return self._break(fault, write, request)

    def _arrive(self, verb: str, path: str) -> None:
        self._live(verb, path)
        if getattr(self._hooked, "running", False):
            return
        self._hooked.running = True
        try:
            for hook in tuple(self._hooks):
                hook(verb, path)
        finally:
            self._hooked.running = False
        self._live(verb, path)

    def _live(self, verb: str, path: str) -> None:
        if self.crashed:
            raise Crashed(f"{verb} {path}: the process has crashed")

    def _take(self, write: Write) -> Fault | None:
        for rule in self._rules:
            if rule.left and rule.matches(write):
                rule.left -= 1
                return rule.fault
        return None

    def _break(self, fault: Fault, write: Write, request: Callable[[], R]) -> R:
        name = f"write {write.number}, {write.verb} {write.path}"
        match fault:
            case Fault.CRASH_BEFORE:
                self.crashed = True
                raise Crashed(f"{name}: crashed before it")
            case Fault.CRASH_AFTER:
                with suppress(StorageError):
                    request()
                self.crashed = True
                raise Crashed(f"{name}: crashed after it")
            case Fault.LOST_ANSWER:
                with suppress(StorageError):
                    request()
                raise StorageUnknown(f"{name}: the answer was lost")
            case Fault.LOST_REQUEST:
                raise StorageUnknown(f"{name}: the request was lost")
            case Fault.DELAYED:
                with self._lock:
                    self._late.append(request)
                raise StorageUnknown(f"{name}: the request is late")
