"""`PinnedTable`: the location and version of a table. Pickled into tasks, which never ask a catalog."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, Self

import lance

from lance_core.data import commit_time, unpublished_uri
from table_data.errors import VersionGone
from table_data.pylance_errors import explained
from table_data.staging.handles import ReadOnlyTable

if TYPE_CHECKING:
    from lance_core.format.manifest import ManifestFile
    from table_data.batch_operations import TableState

MAX_OPEN: Final = 8
_INDEX_CACHE: Final = 128 << 20
_METADATA_CACHE: Final = 64 << 20

_MILLISECOND: Final = 1_000_000

_Key = tuple[str, int, tuple[tuple[str, str], ...], int | bytes]
_opened: OrderedDict[_Key, lance.LanceDataset] = OrderedDict()
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class PinnedTable:
    """One version of one table, or of one branch.

    Attributes:
        uri: Root of the table or of the branch.
        version: Number of the version.
        storage_options: Options of Lance for the object store.
        committed_ms: When the version was committed, in milliseconds since the epoch, None if that is not known. It
            distinguishes the version from one of the same number in another table that took its place.
        manifest: Manifest of a version that is not published, as `LanceDataset` takes it; None for a published one.
    """

    uri: str
    version: int
    storage_options: Mapping[str, str] = field(default_factory=dict)
    committed_ms: int | None = None
    manifest: bytes | None = None

    @classmethod
    def of(cls, state: TableState, storage_options: Mapping[str, str]) -> Self:
        """The version that the catalog names, which there is."""
        assert state.version is not None
        known = None if state.identity is None else state.identity.committed_ms
        return cls(state.root, state.version, dict(storage_options), known)

    @classmethod
    def published(cls, uri: str, file: ManifestFile, storage_options: Mapping[str, str]) -> Self:
        """The version with a manifest that was read below `uri`."""
        return cls(uri, file.version, dict(storage_options), file.timestamp_ms)

    @classmethod
    def of_dataset(cls, uri: str, dataset: lance.LanceDataset, storage_options: Mapping[str, str]) -> Self:
        """The version that is open, of the table or branch with the root `uri`."""
        return cls(uri, dataset.version, dict(storage_options), committed_ms(dataset))

    def open(self) -> lance.LanceDataset:
        """Open the version, read-only: filters are checked, see `ReadOnlyTable`.

        Raises:
            VersionGone: There is no such version, or no table, or another version took its place.
            WorkFailed: The version cannot be read.
        """
        session = lance.Session(index_cache_size_bytes=_INDEX_CACHE, metadata_cache_size_bytes=_METADATA_CACHE)
        options = dict(self.storage_options) or None
        with explained(f"{self.uri}: version {self.version}"):
            if self.manifest is not None:
                place = unpublished_uri(self.uri, self.manifest)
                return ReadOnlyTable(place, serialized_manifest=self.manifest, storage_options=options, session=session)
            dataset = ReadOnlyTable(self.uri, version=self.version, storage_options=options, session=session)
        found = committed_ms(dataset)
        if None not in {found, self.committed_ms} and found != self.committed_ms:
            raise VersionGone(
                f"{self.uri}: version {self.version} was replaced by another one: expected one that was committed at "
                f"{self.committed_ms} ms, found {found} ms"
            )
        return dataset

    def opened(self) -> lance.LanceDataset:
        """The version, which this process opens once as long as it is one of the last few. Thread-safe.

        A version of which neither `committed_ms` nor `manifest` is known is opened by every call.
        """
        content = self.committed_ms if self.manifest is None else blake2b(self.manifest, digest_size=12).digest()
        if content is None:
            return self.open()
        key = (self.uri, self.version, tuple(sorted(self.storage_options.items())), content)
        with _lock:
            found = _opened.get(key)
            if found is None:
                found = _opened[key] = self.open()
            _opened.move_to_end(key)
            while len(_opened) > MAX_OPEN:
                _opened.popitem(last=False)
        return found


def committed_ms(dataset: lance.LanceDataset) -> int | None:
    """When the version that is open was committed, in milliseconds since the epoch; None if pylance does not know it.

    Nothing is read.
    """
    found = commit_time(dataset)
    return None if found is None else found // _MILLISECOND
