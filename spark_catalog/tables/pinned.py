"""`PinnedTable`: the location and version of a table. Pickled into tasks, which never ask a catalog."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import lance
import pyarrow as pa

from table_data.pylance_errors import explained

if TYPE_CHECKING:
    from lance.fragment import FragmentMetadata

MAX_OPEN: Final = 8
_INDEX_CACHE: Final = 128 << 20
_METADATA_CACHE: Final = 64 << 20

_Key = tuple[str, int, tuple[tuple[str, str], ...], str]
_opened: OrderedDict[_Key, lance.LanceDataset] = OrderedDict()
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class PinnedTable:
    """One version of one table, or of one branch.

    Attributes:
        uri: Root of the table or of the branch.
        version: Number of the version.
        storage_options: Options of Lance for the object store.
        content: Digest of the files of the version, empty if unknown. It tells a version from one of the same number
            in another table that took its place.
        manifest: Manifest of a version that is not published, as `LanceDataset` takes it; None for a published one.
    """

    uri: str
    version: int
    storage_options: Mapping[str, str] = field(default_factory=dict)
    content: str = ""
    manifest: bytes | None = None

    def open(self) -> lance.LanceDataset:
        """Open the version.

        Raises:
            VersionGone: There is no such version, or no table.
            WorkFailed: The version cannot be read.
        """
        session = lance.Session(index_cache_size_bytes=_INDEX_CACHE, metadata_cache_size_bytes=_METADATA_CACHE)
        options = dict(self.storage_options) or None
        with explained(f"{self.uri}: version {self.version}"):
            if self.manifest is not None:
                return lance.LanceDataset(
                    self.uri, serialized_manifest=self.manifest, storage_options=options, session=session
                )
            return lance.dataset(self.uri, version=self.version, storage_options=options, session=session)

    def opened(self) -> lance.LanceDataset:
        """The version, which this process opens once as long as it is one of the last few. Thread-safe.

        A table without `content` is opened by every call.
        """
        if not self.content:
            return self.open()
        key = (self.uri, self.version, tuple(sorted(self.storage_options.items())), self.content)
        with _lock:
            found = _opened.get(key)
            if found is None:
                found = _opened[key] = self.open()
            _opened.move_to_end(key)
            while len(_opened) > MAX_OPEN:
                _opened.popitem(last=False)
        return found


def content_digest(schema: pa.Schema, fragments: list[FragmentMetadata], manifest: bytes | None = None) -> str:
    """Digest of the columns and of the names of all files of a version, and of its manifest if it is not published."""
    digest = blake2b(manifest or b"", digest_size=12)
    digest.update(schema.serialize())
    for fragment in fragments:
        digest.update(str(fragment.id).encode())
        for file in fragment.files:
            digest.update(f"{file.path} {file.fields}".encode())
        if fragment.deletion_file is not None:
            digest.update(fragment.deletion_file.path(fragment.id).encode())
    return digest.hexdigest()
