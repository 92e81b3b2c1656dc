"""Whether the root can be written, for readiness checks."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

from lance_namespace.errors import ServiceUnavailableError

from lance_core.errors import StorageError, system_reason
from lance_core.storage.local import LocalStore
from lance_core.storage.port import ObjectStore
from namespace_server.directory.model.root_layout import probe_key

_PROBE = b"probe of lance-namespace\n" * 640


def check_root(store: ObjectStore) -> None:
    """Raise `StorageError` for a local root that is there and is no directory. One call of the operating system."""
    if isinstance(store.innermost, LocalStore):
        root = Path(store.innermost.root)
        if root.exists() and not root.is_dir():
            raise StorageError(f"root {root}: expected a directory, found a file")


def check_writable(store: ObjectStore) -> None:
    """Write some kilobytes under a new name below `_staging/` and remove them: one put and one delete.

    Not an empty object, which a full disk may have room for.

    A local root that is not there yet is made by the first commit: of it only the directory above is looked at, and
    nothing is made. Raises ServiceUnavailableError (17) naming the root and the cause.
    """
    try:
        check_root(store)
        if isinstance(store.innermost, LocalStore) and not Path(store.innermost.root).exists():
            check_parent(Path(store.innermost.root))
            return
        key = probe_key(str(uuid.uuid4()))
        store.put_if_absent(key, _PROBE, durable=False)
        store.delete(key)
    except (StorageError, OSError) as error:
        raise ServiceUnavailableError(f"root {store.uri} cannot be written: {_cause(error)}") from error


def check_parent(root: Path) -> None:
    """Raise `StorageError` unless the directory above `root`, which is not there, can be written. Writes nothing."""
    parent = root.parent
    if not parent.is_dir():
        raise StorageError("neither it nor the directory above is there")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise StorageError("it is not there, and the directory above cannot be written")


def _cause(error: BaseException) -> str:
    """What stands in the way, without the store's own text where that may name credentials."""
    reason = system_reason(error)
    if reason is not None:
        return reason
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, StorageError) and found.__cause__ is None:
            return str(found)
        found = found.__cause__
    return type(error).__name__
