"""What a transaction has to follow: the head of its table or branch, and all that landed since it was made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lance_core.errors import NotFound, ReferenceNotFound, RetryableConflict
from lance_core.format.manifest import ManifestFile
from lance_core.format.naming import NamingScheme, manifest_path
from lance_core.storage.port import ObjectStore
from lance_core.versions import ManifestLocation, find_latest, read_manifest, with_transaction


@dataclass(frozen=True, slots=True)
class Landed:
    """The versions above a read version, ascending, with their transactions, and what they stand on.

    `head` is None when there is no version at all. `scheme` is how the table names its manifests.
    """

    head: ManifestFile | None
    concurrent: Sequence[ManifestFile]
    scheme: NamingScheme

    def find(self, transaction_uuid: str) -> ManifestFile | None:
        """The version that a transaction made."""
        for file in self.concurrent:
            if file.identity.transaction_uuid == transaction_uuid:
                return file
        return None


class Chain:
    """The committed versions of one table or branch, read once each."""

    def __init__(self, store: ObjectStore, base: str) -> None:
        self.store = store
        self.base = base
        self._known: dict[int, ManifestFile] = {}

    def load_since(self, read_version: int) -> Landed:
        """Look for the head by listing (F6) and read every version from the one after `read_version` up to it.

        Raises `ReferenceNotFound` when there is no version and `read_version` is not 0, `RetryableConflict` when one
        that is needed can no longer be read (P8).
        """
        try:
            latest = find_latest(self.store, self.base)
        except ReferenceNotFound:
            if read_version:
                raise
            return Landed(None, (), NamingScheme.V2)
        first = min(read_version + 1, latest.version)
        wanted = [version for version in range(first, latest.version + 1) if version not in self._known]
        locations = [
            latest
            if version == latest.version
            else ManifestLocation(manifest_path(self.base, version, latest.scheme), version, latest.scheme)
            for version in wanted
        ]
        for file in self.store.map(self._read, locations):
            self._known[file.version] = file
        concurrent = [self._known[version] for version in range(read_version + 1, latest.version + 1)]
        return Landed(self._known[latest.version], concurrent, latest.scheme)

    def _read(self, location: ManifestLocation) -> ManifestFile:
        try:
            return with_transaction(self.store, self.base, read_manifest(self.store, location))
        except NotFound as error:
            raise RetryableConflict(location.version, "it landed since, and can no longer be read") from error
