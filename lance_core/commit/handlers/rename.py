"""Claims a name by an exclusive rename."""

from __future__ import annotations

import uuid
from contextlib import suppress

from lance_core.commit.handlers.handler import CommitHandler, ExclusiveStore
from lance_core.errors import StorageError, StorageUnknown
from lance_core.storage.port import ObjectStore
from lance_core.storage.retries import put_with_retries


class RenameIfAbsent(CommitHandler):
    """Writes `<name>-<uuid>`, then renames it to the name if that is vacant.

    For stores with a native `rename_if_absent`, such as local files. On a bucket `rename_if_absent` is a conditional
    put itself, so this handler has no advantage there.
    """

    def over(self, store: ObjectStore) -> ObjectStore:
        """`store`, with its exclusive rename as put-if-absent."""
        return _RenamingStore(store)


class _RenamingStore(ExclusiveStore):
    def put_if_absent(self, path: str, data: bytes, *, durable: bool = True) -> str | None:
        staged = f"{path}-{uuid.uuid4()}"
        e_tag = put_with_retries(self.inner, staged, data, durable=durable)
        try:
            self.inner.rename_if_absent(staged, path, durable=durable)
        except StorageUnknown:
            raise
        except StorageError:
            with suppress(StorageError):
                self.inner.delete(staged)
            raise
        return e_tag if self.inner.content_e_tags else None

    def rename_if_absent(self, source: str, target: str, *, durable: bool = True) -> None:
        self.inner.rename_if_absent(source, target, durable=durable)
