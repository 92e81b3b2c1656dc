"""External manifest stores for tests: one in memory, and one that fails at chosen calls."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from lance_core.commit.handlers.manifest_store import ManifestRow, ManifestStore
from lance_core.errors import StorageError, StorageUnknown
from tests.storage.faults import Crashed, Fault

R = TypeVar("R")


class MemoryManifestStore(ManifestStore):
    """Rows in memory, behind one lock."""

    local = True

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: dict[tuple[str, int], ManifestRow] = {}

    @property
    def rows(self) -> list[ManifestRow]:
        """All rows, ascending."""
        with self._lock:
            return [row for _, row in sorted(self._rows.items())]

    def get(self, base_uri: str, version: int) -> ManifestRow | None:
        with self._lock:
            return self._rows.get((base_uri, version))

    def staged(self, base_uri: str, *, below: bool = False) -> list[ManifestRow]:
        return [
            row
            for row in self.rows
            if row.staged and (row.base_uri == base_uri or (below and row.base_uri.startswith(f"{base_uri}/")))
        ]

    def put_if_absent(self, row: ManifestRow) -> bool:
        with self._lock:
            return self._rows.setdefault((row.base_uri, row.version), row) is row

    def replace(self, old: ManifestRow, new: ManifestRow) -> bool:
        key = (old.base_uri, old.version)
        with self._lock:
            if self._rows.get(key) != old:
                return False
            self._rows[key] = new
            return True

    def remove(self, row: ManifestRow) -> bool:
        key = (row.base_uri, row.version)
        with self._lock:
            if self._rows.get(key) != row:
                return False
            del self._rows[key]
            return True

    def close(self) -> None:
        """Does nothing."""


@dataclass(slots=True)
class _ManifestFaultRule:
    fault: Fault
    verb: str
    passing: int
    left: int


class FaultyManifestStore(ManifestStore):
    """Passes calls to `inner`, and simulates failures of databases and processes at chosen calls; see `FaultStore`.

    While `unreachable` is true every call fails without an effect.
    """

    def __init__(self, inner: ManifestStore) -> None:
        self.inner = inner
        self.local = inner.local
        self.unreachable = False
        self._faults: list[_ManifestFaultRule] = []
        self._late: list[Callable[[], object]] = []

    def fail(self, fault: Fault, verb: str, *, after: int = 0, times: int = 1) -> None:
        """Cause `fault` at `times` calls of `verb`, after the first `after` calls of it."""
        self._faults.append(_ManifestFaultRule(fault, verb, after, times))

    def deliver(self) -> None:
        """Make the delayed writes in order."""
        late, self._late = self._late, []
        for request in late:
            request()

    def get(self, base_uri: str, version: int) -> ManifestRow | None:
        return self._call("get", lambda: self.inner.get(base_uri, version))

    def staged(self, base_uri: str, *, below: bool = False) -> list[ManifestRow]:
        return self._call("staged", lambda: self.inner.staged(base_uri, below=below))

    def put_if_absent(self, row: ManifestRow) -> bool:
        return self._call("put_if_absent", lambda: self.inner.put_if_absent(row))

    def replace(self, old: ManifestRow, new: ManifestRow) -> bool:
        return self._call("replace", lambda: self.inner.replace(old, new))

    def remove(self, row: ManifestRow) -> bool:
        return self._call("remove", lambda: self.inner.remove(row))

    def close(self) -> None:
        self.inner.close()

    def _call(self, verb: str, request: Callable[[], R]) -> R:
        if self.unreachable:
            raise StorageError(f"{verb}: the manifest store does not answer")
        match self._take(verb):
            case None:
                return request()
            case Fault.CRASH_BEFORE:
                raise Crashed(f"{verb}: crashed before it")
            case Fault.CRASH_AFTER:
                request()
                raise Crashed(f"{verb}: crashed after it")
            case Fault.LOST_ANSWER:
                request()
                raise StorageUnknown(f"{verb}: the answer was lost")
            case Fault.LOST_REQUEST:
                raise StorageUnknown(f"{verb}: the request was lost")
            case Fault.DELAYED:
                self._late.append(request)
                raise StorageUnknown(f"{verb}: the request is late")

    def _take(self, verb: str) -> Fault | None:
        for rule in self._faults:
            if rule.verb == verb and rule.left:
                if rule.passing:
                    rule.passing -= 1
                    return None
                rule.left -= 1
                return rule.fault
        return None
