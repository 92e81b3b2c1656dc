"""What a transaction has to follow: the head of its table or branch, and all that landed since it was made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from lance_core.commit.concurrent_commits import ConcurrentVersion, read_complete, read_concurrent
from lance_core.errors import ReferenceNotFound
from lance_core.format.manifest import ManifestFile
from lance_core.format.naming import NamingScheme, manifest_path
from lance_core.storage.port import ObjectStore
from lance_core.versions import ManifestLocation, find_latest

_READ_TOGETHER = 1024


@dataclass(frozen=True, slots=True)
class CommittedSince:
    """The versions above a read version, ascending, with their transactions, and what they stand on.

    `head` is None when there is no version at all. `scheme` is how the table names its manifests.
    """

    head: ManifestFile | None
    concurrent: Sequence[ConcurrentVersion]
    scheme: NamingScheme

    def find(self, transaction_uuid: str) -> ConcurrentVersion | None:
        """The version that a transaction made."""
        for landed in self.concurrent:
            if landed.transaction_uuid == transaction_uuid:
                return landed
        return None


class VersionChain:
    """The committed versions of one table or branch, read once each: the head, and of others what made them."""

    def __init__(self, store: ObjectStore, base: str) -> None:
        self.store = store
        self.base = base
        self._known: dict[int, ConcurrentVersion] = {}

    def load_since(self, read_version: int) -> CommittedSince:
        """Look for the head by listing (F6) and read it, and what made every version after `read_version`.

        Raises `ReferenceNotFound` when there is no version and `read_version` is not 0, `RetryableConflict` when one
        that is needed can no longer be read (P8).
        """
        try:
            latest = find_latest(self.store, self.base)
        except ReferenceNotFound:
            if read_version:
                raise
            return CommittedSince(None, (), NamingScheme.V2)
        between = (number for number in range(read_version + 1, latest.version) if number not in self._known)

        def read(number: int) -> ConcurrentVersion:
            if number == latest.version:
                return read_complete(self.store, self.base, latest)
            return read_concurrent(self.store, self.base, self._location(number, latest.scheme))

        # In parts, so that a name with an absurd number in it is found out by the first version that is not there.
        head, *others = self.store.map(read, [latest.version, *islice(between, _READ_TOGETHER)])
        assert isinstance(head, ManifestFile)
        self._known.update((landed.version, landed) for landed in (head, *others))
        while others:
            others = list(self.store.map(read, list(islice(between, _READ_TOGETHER))))
            self._known.update((landed.version, landed) for landed in others)
        concurrent = [self._known[number] for number in range(read_version + 1, latest.version + 1)]
        return CommittedSince(head, concurrent, latest.scheme)

    def whole(self, landed: ConcurrentVersion, scheme: NamingScheme) -> ManifestFile:
        """The file of a version. Raises `RetryableConflict` when it can no longer be read."""
        if isinstance(landed, ManifestFile):
            return landed
        return read_complete(self.store, self.base, self._location(landed.version, scheme))

    def _location(self, version: int, scheme: NamingScheme) -> ManifestLocation:
        return ManifestLocation(manifest_path(self.base, version, scheme), version, scheme)
