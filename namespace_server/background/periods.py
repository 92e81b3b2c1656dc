"""Periods of work that one of the servers on a root does, claimed by files that say so."""

from __future__ import annotations

from lance_core.errors import AlreadyExists
from lance_core.storage.port import ObjectStore


def claim_period(store: ObjectStore, directory: str, period: int) -> bool:
    """Whether this process is the one that works in a period, by a file of its number; those of earlier ones go.

    This saves work and requests. Several processes that work at one time do no harm. Raises `StorageError`.
    """
    try:
        store.put_if_absent(f"{directory}/{period}", b"", durable=False)
    except AlreadyExists:
        return False
    for meta in list(store.list(directory)):
        if (name := meta.path.rpartition("/")[2]).isdigit() and int(name) < period:
            store.delete(meta.path)
    return True
