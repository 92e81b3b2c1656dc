"""The history of `__manifest`: its versions, each with what made it, read from their manifests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from lance_core.format.manifest import ManifestFile
from lance_core.storage.port import ObjectStore
from namespace_server.directory.manifest_table.schema import (
    BASE_PROPERTY,
    IDENTITY_KEY,
    OnDisk,
    is_flip,
    read_batches,
    read_inline,
    read_outline,
)
from namespace_server.directory.manifest_table.snapshots import Snapshots
from namespace_server.directory.model.entries import RecordEntry
from namespace_server.directory.model.history import FlipOutline
from namespace_server.directory.model.snapshot import CatalogSnapshot

_PAGE: Final = 64


@dataclass(frozen=True, slots=True)
class CatalogHistoryEntry:
    """A catalog version, and the (batch uuid, message) of each batch that it committed.

    `outline` is what is known of the batches beyond that. `made_by_catalog` is false for what another writer committed
    to `__manifest` itself. `identity` is that of the catalog, or of this version where the catalog had none yet.
    """

    version: int
    timestamp_ms: int
    batches: tuple[tuple[str, str | None], ...]
    outline: FlipOutline
    made_by_catalog: bool
    identity: str


@dataclass(frozen=True, slots=True)
class CatalogStep:
    """A catalog version, and the records that it put, where it is short enough to tell its rows.

    `size` is about the bytes of what is told of it: those of the texts that tell it.
    """

    entry: CatalogHistoryEntry
    records: tuple[RecordEntry, ...]
    size: int = 0


class VersionHistory:
    """The kept versions of `__manifest`. Thread-safe."""

    def __init__(self, store: ObjectStore, snapshots: Snapshots) -> None:
        self._store = store
        self._snapshots = snapshots

    def newest_first(self, limit: int, before: int | None = None) -> list[CatalogHistoryEntry]:
        """Up to `limit` kept versions, newest first, only those below `before` if it is given."""
        current = self._snapshots.current
        newest, below = current.version, current.collector.oldest - 1
        top = newest if before is None else min(newest, before - 1)
        found: list[CatalogHistoryEntry] = []
        while len(found) < limit and top > below:
            bottom = max(top - min(limit - len(found), _PAGE), below)
            for file in self._store.map(self._snapshots.read_manifest, range(top, bottom, -1)):
                if file is None:
                    return found
                found.append(_entry(file))
            top = bottom
        return found

    def after(self, version: int, newest: CatalogSnapshot, limit: int) -> Iterator[CatalogStep]:
        """Up to `limit` versions that follow `version`, up to that of the snapshot, oldest first, without a gap.

        A version is told only if the next one, or the snapshot, was made from it: the file of another one may stand
        where a clean-up had removed it (G7). So the steps end before one that is not kept, or cannot be proved.
        """
        end = min(version + limit, newest.version)
        for first in range(version + 1, end + 1, _PAGE):
            last = min(first + _PAGE - 1, end)
            numbers = range(first, min(last + 1, newest.version) + 1)
            files = list(self._store.map(self._snapshots.read_manifest, numbers))
            for number in range(first, last + 1):
                file = files[number - first]
                following = files[number - first + 1] if number < newest.version else None
                is_proved = file is not None and (
                    _is_of(newest, file) if number == newest.version else _is_followed_by(file, following)
                )
                if file is None or not is_proved:
                    return
                yield CatalogStep(_entry(file), tuple(_records(file)), _size(file))


def _entry(file: ManifestFile) -> CatalogHistoryEntry:
    made = file.transaction
    identity = file.outline.table_metadata.get(IDENTITY_KEY, "") or file.transaction_uuid
    return CatalogHistoryEntry(
        file.version, file.timestamp_ms, read_batches(made), read_outline(made), is_flip(made), identity
    )


def _size(file: ManifestFile) -> int:
    return 0 if file.transaction is None else sum(map(len, file.transaction.transaction_properties.values()))


def _records(file: ManifestFile) -> Sequence[RecordEntry]:
    inline = read_inline(file.transaction)
    return [] if inline is None else [entry for entry in inline[1].puts.values() if isinstance(entry, RecordEntry)]


def _is_followed_by(file: ManifestFile, following: ManifestFile | None) -> bool:
    if following is None:
        return False
    made = following.transaction
    made_to = None if made is None else made.transaction_properties.get(BASE_PROPERTY)
    return made_to in {None, file.transaction_uuid}


def _is_of(snapshot: CatalogSnapshot, file: ManifestFile) -> bool:
    return isinstance(snapshot.disk, OnDisk) and snapshot.disk.attempt == file.transaction_uuid
