"""From a URI to a store."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Literal
from urllib.parse import unquote, urlsplit

from lance_core.errors import StorageError
from lance_core.storage.local import LocalStore
from lance_core.storage.memory import MemoryStore
from lance_core.storage.port import ObjectStore

_memory_stores: dict[str, MemoryStore] = {}
_memory_lock = threading.Lock()


def open_store(
    uri: str | os.PathLike[str],
    storage_options: Mapping[str, str] | None = None,
    *,
    durability: Literal["fsync", "none"] = "fsync",
) -> ObjectStore:
    """The store whose root is `uri`: a plain path, `file://`, or `memory://name` (one store per name and process).

    `storage_options` are Lance's own keys. `durability` matters to local files only. Opens no connection. Raises
    `StorageError` for a URI that names no store.
    """
    text = os.fspath(uri)
    if "://" not in text:
        return LocalStore(text, durability)
    parts = urlsplit(text)
    if parts.scheme == "file":
        if parts.netloc not in {"", "localhost"}:
            raise StorageError(f"{text}: expected file:///path, found the host {parts.netloc}")
        return LocalStore(unquote(parts.path), durability)
    if parts.scheme == "memory":
        name = (parts.netloc + parts.path).strip("/")
        with _memory_lock:
            return _memory_stores.setdefault(name, MemoryStore(name))
    raise StorageError(f"{text}: expected a path, file:// or memory://")
