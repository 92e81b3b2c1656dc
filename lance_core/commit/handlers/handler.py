"""The interface of commit handlers, the base class of their stores, and the handlers that need nothing else."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from contextlib import suppress

from lance_core.errors import StorageError, StorageUnknown
from lance_core.storage.port import ObjectStore
from lance_core.storage.retries import put_with_retries
from lance_core.storage.wrappers.delegation import WrappedStore


class CommitHandler(ABC):
    """Makes the exclusive writes of a store.

    All writers of a table must use the same handler; writers with different handlers do not exclude each other.
    Reading needs a handler only if the table has an external manifest store.
    """

    @abstractmethod
    def over(self, store: ObjectStore) -> ObjectStore:
        """`store`, with `put_if_absent`, `publish`, `rename_if_absent` and `replace` made by this handler.

        Closing the result closes `store`. Makes no request.
        """


def handle(store: ObjectStore, handler: CommitHandler | None) -> ObjectStore:
    """`store`, with names claimed by `handler`; without a handler, `store` itself."""
    return store if handler is None else handler.over(store)


class ConditionalPut(CommitHandler):
    """The put-if-absent of the store: a conditional PUT on S3, Azure and Google, a hard link on a local disk."""

    def over(self, store: ObjectStore) -> ObjectStore:
        """`store` itself."""
        return store


class ExclusiveStore(WrappedStore):
    """A wrapped store whose exclusive writes are all based on `put_if_absent`, which a subclass defines.

    Publishing writes a new object, which has its own e_tag.
    """

    def __init__(self, inner: ObjectStore) -> None:
        super().__init__(inner)
        self.content_e_tags = False
        self.unsynced = inner.unsynced

    @abstractmethod
    def put_if_absent(self, path: str, data: bytes, *, durable: bool = True) -> str | None:
        """See `ObjectStore.put_if_absent`."""

    publish = ObjectStore.publish  # not the inner store's, which would bypass the handler
    rename_if_absent = ObjectStore.rename_if_absent
    delete_if = ObjectStore.delete_if  # in two steps, because the inner store may not support conditions


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
