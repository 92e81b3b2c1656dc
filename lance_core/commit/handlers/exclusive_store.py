"""Base class of wrapped stores that define their own put-if-absent."""

from __future__ import annotations

from abc import abstractmethod

from lance_core.storage.port import ObjectStore
from lance_core.storage.wrappers.delegation import WrappedStore


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
