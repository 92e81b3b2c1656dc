"""The time of a run, by the store's own clock (rule G28)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from lance_core.storage.port import ObjectStore
from namespace_server.directory.gc.errors import CollectionStopped
from namespace_server.directory.manifest_table.store_clock import MOST_APART
from namespace_server.directory.model.root_layout import collection_key

Clock = Callable[[ObjectStore, str], datetime]
"""Tells the time of a run, by its uuid."""


def store_time(store: ObjectStore, run: str, now: datetime | None = None) -> datetime:
    """The store's date, in whole seconds, of an object that the run `run` writes for it.

    Everything that a run decides is decided by this time. A wrong one that lies ahead would refuse all writers for
    good, so it is compared with the machine's clock (`now`). By one that lies behind less is removed.

    Raises:
        CollectionStopped: It is more than an hour from the machine's clock.
        StorageError: The store failed.
    """
    key = collection_key(run, "clock")
    store.put(key, b"", durable=False)
    found = store.head(key).last_modified.replace(microsecond=0)
    now = now or datetime.now(UTC)
    if abs(found - now) > MOST_APART:
        raise CollectionStopped(
            f"the store says that it is {found:%Y-%m-%dT%H:%M:%SZ}, this machine {now:%Y-%m-%dT%H:%M:%SZ}: expected "
            "less than an hour between them"
        )
    return found
