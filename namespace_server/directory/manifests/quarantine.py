"""The quarantine: files of other writers, moved away from canonical names (M6); what their names say (P12).

A quarantined file lies at `_staging/foreign/<name>/<its path>`. Its name, `<uuid>.<number>`, is that of its report too.
Every version from the number on that its writer can have read was unmanaged as well: while the file stood under its
path, no version of the catalog had a canonical name from that number on. Files that other releases moved have none.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from lance_core.errors import CorruptFile
from lance_core.format.manifest import ManifestFile, parse_manifest_file
from lance_core.format.naming import parse_manifest_name
from lance_core.storage.port import ObjectStore
from lance_core.versions import find_contents
from namespace_server.directory.manifests.sized_cache import SizedCache
from namespace_server.directory.model.root_layout import QUARANTINE

_CACHED: Final = 32 << 20
"""Bytes of quarantined manifests that are kept in memory; a file in quarantine never changes."""
_OVERHEAD: Final = 12 << 10


@dataclass(frozen=True, slots=True)
class QuarantinedFile:
    """A file that was moved to quarantine.

    Attributes:
        name: That of its record.
        path: Its former key.
        version: The version that its former name says, 0 for a name that says none.
    """

    name: str
    path: str
    version: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        named = parse_manifest_name(self.path.rpartition("/")[2])
        object.__setattr__(self, "version", 0 if named is None else named[0])

    @classmethod
    def new(cls, path: str, unmanaged_from: int | None = None) -> QuarantinedFile:
        """A fresh place for the file at `path`; see the module for `unmanaged_from`."""
        number = "" if unmanaged_from is None else f".{unmanaged_from}"
        return cls(f"{uuid.uuid4()}{number}", path)

    @property
    def kept_at(self) -> str:
        """Its key now."""
        return f"{QUARANTINE}/{self.name}/{self.path}"

    @property
    def base(self) -> str:
        """The root of its chain."""
        return self.path.rpartition("/_versions/")[0]

    @property
    def unmanaged_from(self) -> int | None:
        """The lowest number under which its writer certainly read no version of the catalog; None if not known."""
        number = self.name.partition(".")[2]
        return int(number) if number.isdecimal() else None


class Quarantine:
    """Lists and reads the quarantine. Thread-safe."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._parsed: SizedCache[str, ManifestFile] = SizedCache(_CACHED, lambda file: _OVERHEAD + 3 * file.size)

    def files(self) -> list[QuarantinedFile]:
        """All files in quarantine, chain by chain, upward. One listing. Raises `StorageError`."""
        paths = (meta.path.removeprefix(f"{QUARANTINE}/").partition("/") for meta in self._store.list(QUARANTINE))
        return sorted(
            (QuarantinedFile(name, path) for name, _, path in paths), key=lambda item: (item.base, item.version)
        )

    def manifest(self, item: QuarantinedFile) -> ManifestFile | None:
        """The manifest in a file; None if it is none, or is not there any more. Raises `StorageError`."""
        known = self._parsed.get(item.kept_at)
        if known is not None:
            return known
        data = find_contents(self._store, item.kept_at)
        file = None if data is None else parsed(data)
        if file is not None:
            self._parsed.put(item.kept_at, file)
        return file

    def read(self, items: Sequence[QuarantinedFile]) -> list[tuple[QuarantinedFile, ManifestFile]]:
        """Those of the files that hold manifests, with these, in one parallel step. Raises `StorageError`."""
        read = self._store.map(self.manifest, items) if items else ()
        return [(item, file) for item, file in zip(items, read, strict=True) if file is not None]


def parsed(data: bytes) -> ManifestFile | None:
    """The manifest in a file of another writer; None if it is none."""
    try:
        return parse_manifest_file(data, lazily=True)
    except CorruptFile:
        return None
