"""A store that simulates a power loss: objects that are not durable are lost."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from lance_core.storage.port import ObjectStore
from lance_core.storage.wrappers.delegation import WrappedStore


class PowerStore(WrappedStore):
    """Tracks which keys of `inner` are durable: by a durable write, or by `sync`.

    The initial content of `inner` counts as durable. Files that other clients write directly to the disk do not until
    they are synced, because no Lance client syncs them. Removals are durable immediately, which is the worst case
    (rule S1).
    """

    def __init__(self, inner: ObjectStore) -> None:
        super().__init__(inner)
        self._lock = threading.Lock()
        self._durable = {meta.path for meta in inner.list("")}

    def lose_power(self) -> list[str]:
        """Remove from `inner` every object that is not durable. Returns their keys, in byte order."""
        with self._lock:
            lost = [meta.path for meta in self.inner.list("") if meta.path not in self._durable]
            for path in lost:
                self.inner.delete(path)
        return lost

    def put(self, path: str, data: bytes, *, durable: bool = True) -> str | None:
        answer = super().put(path, data, durable=durable)
        self._set_durable(path, durable)
        return answer

    def put_if_absent(self, path: str, data: bytes, *, durable: bool = True) -> str | None:
        answer = super().put_if_absent(path, data, durable=durable)
        self._set_durable(path, durable)
        return answer

    def replace(self, path: str, data: bytes, *, if_match: str) -> str | None:
        answer = super().replace(path, data, if_match=if_match)
        self._set_durable(path, True)
        return answer

    def publish(self, staged: str, target: str, data: bytes, *, durable: bool = True) -> str | None:
        answer = super().publish(staged, target, data, durable=durable)
        self._set_durable(target, durable)
        return answer

    def rename_if_absent(self, source: str, target: str, *, durable: bool = True) -> None:
        super().rename_if_absent(source, target, durable=durable)
        self._set_durable(target, durable)
        self._set_durable(source, False)

    def copy(self, source: str, target: str, *, origin: ObjectStore | None = None, durable: bool = True) -> None:
        super().copy(source, target, origin=origin, durable=durable)
        self._set_durable(target, durable)

    def delete(self, path: str) -> None:
        super().delete(path)
        self._set_durable(path, False)

    def delete_if(self, path: str, *, if_match: str | None) -> None:
        super().delete_if(path, if_match=if_match)
        self._set_durable(path, False)

    def sync(self, paths: Iterable[str]) -> None:
        wanted = list(paths)
        super().sync(wanted)
        for path in wanted:
            self._set_durable(path, True)

    def _set_durable(self, path: str, durable: bool) -> None:
        with self._lock:
            if durable:
                self._durable.add(path)
            else:
                self._durable.discard(path)
