"""Read the manifests of version rows, wherever they lie at the moment (rule M4)."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from typing import NamedTuple

from lance_core.errors import CorruptFile, LanceCoreError, NotFound
from lance_core.format.deletion import deletion_file_path
from lance_core.format.manifest import ManifestFile, parse_manifest_file
from lance_core.format.naming import data_path
from lance_core.storage.port import ObjectStore, SizeAndDate
from lance_core.versions import find_contents
from namespace_server.directory.manifests.quarantine import Quarantine
from namespace_server.directory.manifests.staged_bundles import StagedPaths
from namespace_server.directory.model.entries import Place, VersionEntry, place_of
from namespace_server.directory.model.snapshot import CatalogSnapshot


class PlannedVersion(NamedTuple):
    """A version row that a plan puts, and its manifest: the bytes, and parsed.

    `rows` is by how many rows it has more than the version before it, if that was known without a look at fragments.
    """

    entry: VersionEntry
    data: bytes
    file: ManifestFile
    rows: int | None = None


class _Flipped(NamedTuple):
    """A version that this process has just committed, and when its flip was sent (see `elapsed_clock`)."""

    planned: PlannedVersion
    sent_at: float


class ManifestReader:
    """Bytes of manifests by row. Manifests that this process has just committed come from memory. Thread-safe.

    `quarantine` has the manifests of no row that had names in the same chains.
    """

    def __init__(self, store: ObjectStore) -> None:
        self.quarantine = Quarantine(store)
        self._store = store
        self._staged = StagedPaths(store)
        self._lock = threading.Lock()
        self._flipped: dict[Place, _Flipped] = {}

    def remember(self, planned: Iterable[PlannedVersion], sent_at: float) -> None:
        """Keep the bytes of versions whose flip, sent at `sent_at`, has won its slot, until they are forgotten."""
        with self._lock:
            for version in planned:
                self._flipped[place_of(version.entry)] = _Flipped(version, sent_at)

    def forget(self, entries: Iterable[VersionEntry]) -> None:
        """Drop versions from memory: they are promoted, or not committed."""
        with self._lock:
            for entry in entries:
                self._flipped.pop(place_of(entry), None)

    def from_memory(self, entry: VersionEntry) -> bytes | None:
        """The row's bytes, if this process committed them and has not promoted them yet."""
        return self.recall(entry)[0]

    def recall(self, entry: VersionEntry) -> tuple[bytes | None, float]:
        """The bytes as `from_memory`, and when the row's flip was sent (see `elapsed_clock`); 0.0 without them."""
        flipped = self._flipped.get(place_of(entry))
        if flipped is None or flipped.planned.entry.sha256 != entry.sha256:
            return None, 0.0
        return flipped.planned.data, flipped.sent_at

    def read(self, entry: VersionEntry) -> bytes:
        """The manifest of a row: canonical, then staged, then canonical again (M4).

        Raises `NotFound` when there is no file under these names, or that of another version; `CorruptFile` when there
        is a file that is not what was committed; `StorageError` when storage cannot be read.
        """
        data = self.from_memory(entry) or self._find_canonical(entry) or self.find_staged(entry)
        if data is not None:
            return data
        found = find_contents(self._store, entry.canonical_path)
        if found is None:
            raise NotFound(f"version {entry.version} at {entry.canonical_path}")
        if is_row(entry, found):
            return found
        raise _other_file(entry, found)

    def _find_canonical(self, entry: VersionEntry) -> bytes | None:
        data = find_contents(self._store, entry.canonical_path)
        return data if data is not None and is_row(entry, data) else None

    def find_staged(self, entry: VersionEntry) -> bytes | None:
        """The row's bytes at its staged path; None if they are not there. Raises `StorageError`."""
        copies = () if entry.staged_path is None else self.staged_copies(entry.staged_path)
        return next((data for data in copies if is_row(entry, data)), None)

    def staged_copies(self, path: str) -> Iterator[bytes]:
        """The bytes under a staged path; see `StagedPaths.copies`."""
        return self._staged.copies(path)


def is_row(entry: VersionEntry, data: bytes) -> bool:
    """Whether bytes are the manifest that a row names. Rows of other writers carry no hash: the size is compared."""
    if not entry.sha256:
        return entry.size in {0, len(data)}
    return len(data) == entry.size and sha256(data).hexdigest() == entry.sha256


def _other_file(entry: VersionEntry, data: bytes) -> LanceCoreError:
    """The error for a row whose canonical name has other bytes: those of another version, or of a damaged file.

    The rows of earlier catalog versions name versions whose place others took since: those of a branch that was made
    again, or of a location that was registered again. They were committed at other times.
    """
    with suppress(CorruptFile):
        if parse_manifest_file(data, expected_version=entry.version, lazily=True).timestamp_ms != entry.timestamp_ms:
            return NotFound(f"version {entry.version} at {entry.canonical_path}, which has another version now")
    expected = f"the {entry.size} bytes with SHA-256 {entry.sha256}" if entry.sha256 else f"{entry.size} bytes"
    reason = f"expected {expected} that were committed, found {len(data)} with SHA-256 {sha256(data).hexdigest()}"
    return CorruptFile(f"{entry.canonical_path}: {reason}", key=entry.canonical_path, reason=reason)


def has_row(entry: VersionEntry, newest: CatalogSnapshot) -> bool:
    """Whether the newest catalog version has this very row, or does not have the table.

    The rows of a deleted branch are gone, and others may have its name and numbers. A removed table's location is not
    used again, and its files may be read at earlier catalog versions (N1).
    """
    return newest.has_version(entry) or newest.table_at(entry.location) is None


def is_whole(store: ObjectStore, base: str, file: ManifestFile) -> bool:
    """Whether the data and deletion files that a manifest names below its own root, the key `base`, are there.

    Raises `StorageError`, `CorruptFile`.
    """
    return find_files(store, base, file) is not None


def find_files(
    store: ObjectStore, base: str, file: ManifestFile, below: ManifestFile | None = None
) -> Mapping[str, SizeAndDate] | None:
    """Sizes and dates of these files, by key, without those that the manifest `below` names; None if one is not there.

    Raises `StorageError`, `CorruptFile`.
    """
    paths = _own_files(base, file)
    if below is not None:
        known = set(_own_files(base, below))
        paths = [path for path in paths if path not in known]
    try:
        return dict(zip(paths, store.require(paths), strict=True))
    except NotFound:
        return None


def _own_files(base: str, file: ManifestFile) -> list[str]:
    paths: list[str] = []
    for fragment in file.manifest.fragments:
        paths += [data_path(base, each.path) for each in fragment.files if not each.HasField("base_id")]
        if fragment.HasField("deletion_file") and not fragment.deletion_file.HasField("base_id"):
            paths.append(deletion_file_path(base, fragment.id, fragment.deletion_file))
    return paths
