"""What stores have in common whose put-if-absent is not the one of the store inside."""

from __future__ import annotations

from abc import abstractmethod

from lance_core.storage.port import ObjectStore
from lance_core.storage.wrappers.delegation import WrappedStore


class ExclusiveStore(WrappedStore):
    """A store whose other exclusive writes follow from `put_if_absent`, which a subclass defines.

    What is published is written afresh, so it has an e_tag of its own.
    """

    def __init__(self, inner: ObjectStore) -> None:
        super().__init__(inner)
        self.content_e_tags = False
        self.unsynced = inner.unsynced

    @abstractmethod
    def put_if_absent(self, path: str, data: bytes, *, durable: bool = True) -> str | None:
        """See `ObjectStore.put_if_absent`."""

    publish = ObjectStore.publish  # not that of the store inside, which knows nothing of the handler
    rename_if_absent = ObjectStore.rename_if_absent
    delete_if = ObjectStore.delete_if  # in two steps: the service inside may know no conditions
