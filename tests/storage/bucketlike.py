"""A directory that is asked as a bucket is."""

from __future__ import annotations

from lance_core.storage.port import ObjectStore
from lance_core.storage.wrappers.delegation import WrappedStore


class BucketLike(WrappedStore):
    """It is not local, so nothing is asked of it that costs little in a directory alone, and it publishes by a put."""

    def __init__(self, inner: ObjectStore) -> None:
        super().__init__(inner)
        self.local = False

    def publish(self, staged: str, target: str, data: bytes, *, durable: bool = True) -> str | None:
        del staged
        return self.inner.put_if_absent(target, data, durable=durable)
