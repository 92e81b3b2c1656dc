"""What stores have in common whose put-if-absent is not the one of the store inside."""

from __future__ import annotations

from abc import abstractmethod

from lance_core.errors import OutcomeUnknown, StorageError
from lance_core.storage.keys import check_key
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

    def publish(self, staged: str, target: str, data: bytes, *, durable: bool = True) -> str | None:
        """See `ObjectStore.publish`."""
        check_key(staged)
        return self.put_if_absent(target, data, durable=durable)

    def rename_if_absent(self, source: str, target: str, *, durable: bool = True) -> None:
        """See `ObjectStore.rename_if_absent`."""
        check_key(target)
        self.put_if_absent(target, self.get(source), durable=durable)
        try:
            self.delete(source)
        except StorageError as error:
            raise OutcomeUnknown(f"{self.uri}/{source}: moved to {target}, but perhaps not removed") from error
