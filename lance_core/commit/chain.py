"""The version chain of a table or branch: its head, and the versions committed since a read version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from lance_core.commit.concurrent_commits import ConcurrentVersion, read_complete, read_concurrent
from lance_core.errors import ReferenceNotFound, RetryableTransaction
from lance_core.format.manifest import ManifestFile
from lance_core.format.naming import NamingScheme, manifest_path
from lance_core.storage.port import ObjectStore
from lance_core.versions import ManifestLocation, find_latest

_READ_TOGETHER = 1024


def replaced(number: int, expected: str, found: str) -> RetryableTransaction:
    """The conflict with another version of the same number, of a branch or table that was made again."""
    return RetryableTransaction(
        number,
        f"it is another version than was read: expected the manifest with SHA-256 {expected}, found {found}",
    )


@dataclass(frozen=True, slots=True)
class CommittedSince:
    """The versions above a read version, ascending, each with its transaction.

    `head` is the newest version, None if there is no version. `scheme` is the naming scheme of the manifests.
    """

    head: ManifestFile | None
    concurrent: Sequence[ConcurrentVersion]
    scheme: NamingScheme

    def find(self, transaction_uuid: str) -> ConcurrentVersion | None:
        """The version that a transaction made, or None."""
        return next((version for version in self.concurrent if version.transaction_uuid == transaction_uuid), None)


class VersionChain:
    """The committed versions of one table or branch. Each is read once, and as far as needed."""

    def __init__(self, store: ObjectStore, base: str) -> None:
        self.store = store
        self.base = base
        self._known: dict[int, ConcurrentVersion] = {}

    def load_since(self, read_version: int) -> CommittedSince:
        """Find the head by listing (rule F6), and read it and the transaction of every version after `read_version`.

        Raises:
            ReferenceNotFound: There is no version, and `read_version` is not 0.
            RetryableTransaction: A version that is needed can no longer be read (rule P8).
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

        # In parts, so that a file name with an absurd version number fails at the first version that does not exist.
        head, *others = self.store.map(read, [latest.version, *islice(between, _READ_TOGETHER)])
        assert isinstance(head, ManifestFile)
        self._known.update((version.version, version) for version in (head, *others))
        while others:
            others = list(self.store.map(read, list(islice(between, _READ_TOGETHER))))
            self._known.update((version.version, version) for version in others)
        concurrent = [self._known[number] for number in range(read_version + 1, latest.version + 1)]
        return CommittedSince(head, concurrent, latest.scheme)

    def require(self, number: int, manifest_sha256: str, since: CommittedSince) -> None:
        """Check that version `number` has the manifest with this SHA-256. The head in `since` is not read again.

        Raises `RetryableTransaction` if it has another one, or can no longer be read: the branch or table was made
        again.
        """
        if since.head is None:
            raise ReferenceNotFound(f"{self.store.object_uri(self.base)}: expected version {number}, found none")
        known = since.head.version == number
        try:
            file = since.head if known else read_complete(self.store, self.base, self._location(number, since.scheme))
        except RetryableTransaction as error:
            raise RetryableTransaction(
                number, "it was read, and can no longer be compared with what was read"
            ) from error
        if file.identity.sha256 != manifest_sha256:
            raise replaced(number, manifest_sha256, file.identity.sha256)

    def read_complete(self, version: ConcurrentVersion, scheme: NamingScheme) -> ManifestFile:
        """The manifest file of a version. Raises `RetryableTransaction` if it can no longer be read."""
        if isinstance(version, ManifestFile):
            return version
        return read_complete(self.store, self.base, self._location(version.version, scheme))

    def _location(self, version: int, scheme: NamingScheme) -> ManifestLocation:
        return ManifestLocation(manifest_path(self.base, version, scheme), version, scheme)
