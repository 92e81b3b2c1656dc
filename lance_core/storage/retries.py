"""Repeats writes whose answer was lost."""

from __future__ import annotations

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from lance_core.errors import StorageUnknown
from lance_core.storage.port import ObjectStore


def put_with_retries(store: ObjectStore, path: str, data: bytes, *, durable: bool = True) -> str | None:
    """Write a file that only this transaction writes; unknown outcomes are retried with the same bytes.

    Returns the e_tag. Raises `StorageUnknown` when the retries are exhausted: the file may exist now or later, which
    is harmless.
    """
    try:
        return store.put(path, data, durable=durable)  # without tenacity, which costs more than a local write
    except StorageUnknown:
        retrying = Retrying(
            stop=stop_after_attempt(3),
            wait=wait_random_exponential(multiplier=0.01, max=0.5),
            retry=retry_if_exception_type(StorageUnknown),
            reraise=True,
        )
        return retrying(store.put, path, data, durable=durable)
