"""Versions committed concurrently with a transaction, each read only as far as judging against it needs."""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

from lance_core.errors import NotFound, RetryableTransaction
from lance_core.format.manifest import ManifestFile, end_of_section, leading_transaction
from lance_core.format.outline import AnyManifest
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.port import ObjectStore
from lance_core.versions import ManifestLocation, parse_found, read_manifest, with_transaction

FRONT = 16 * 1024
"""Bytes. The transaction is near the beginning of a manifest file, before the fragments."""


class ConcurrentVersion(Protocol):
    """A committed version as a verdict needs it. `outline` may be read on access."""

    @property
    def version(self) -> int:
        """The version number."""

    @property
    def transaction(self) -> pb.Transaction | None:
        """The transaction that made the version; None if it cannot be read."""

    @property
    def transaction_uuid(self) -> str:
        """The uuid of the transaction that made the version; '' if the version names none."""

    @property
    def outline(self) -> AnyManifest:
        """The manifest. Raises `NotFound` if the version was removed meanwhile, `CorruptFile`."""


class TransactionOnly:
    """A version of which only the transaction was read."""

    def __init__(self, store: ObjectStore, location: ManifestLocation, transaction: pb.Transaction) -> None:
        self.transaction = transaction
        self._store = store
        self._location = location

    @property
    def version(self) -> int:
        """The number in the name of the file."""
        return self._location.version

    @property
    def transaction_uuid(self) -> str:
        """The uuid of the transaction."""
        return self.transaction.uuid

    @cached_property
    def outline(self) -> AnyManifest:
        """The manifest, read on first access. Raises `NotFound`, `CorruptFile`."""
        return read_manifest(self._store, self._location, lazily=True).outline


def read_concurrent(store: ObjectStore, base: str, location: ManifestLocation) -> ConcurrentVersion:
    """Read the transaction of a version: only the front of a large file, if the transaction is there.

    Raises:
        RetryableTransaction: The version was removed (rule P8: what cannot be judged must be redone).
        CorruptFile: The file is not that version.
    """
    try:
        front = store.get_range(location.path, 0, FRONT)
        if len(front) < FRONT:
            return with_transaction(store, base, parse_found(store, location, front, lazily=True))
        transaction = leading_transaction(front)
        if transaction is None:  # an index section may come first
            transaction = leading_transaction(store.get_range(location.path, end_of_section(front), FRONT))
    except NotFound as error:
        raise _gone(location) from error
    if transaction is None or transaction.read_version >= location.version:
        return read_complete(store, base, location)
    return TransactionOnly(store, location, transaction)


def read_complete(store: ObjectStore, base: str, location: ManifestLocation) -> ManifestFile:
    """Read a version with its transaction; its fragments stay encoded. Raises as `read_concurrent` does."""
    try:
        return with_transaction(store, base, read_manifest(store, location, lazily=True))
    except NotFound as error:
        raise _gone(location) from error


def _gone(location: ManifestLocation) -> RetryableTransaction:
    return RetryableTransaction(location.version, "it was committed concurrently, and can no longer be read")
