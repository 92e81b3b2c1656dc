"""The files that a version of a table names, against what is on storage."""

from __future__ import annotations

from collections.abc import Iterator

from lance_core.cleanup.kinds import role_of
from lance_core.format.manifest import ManifestFile
from lance_core.format.naming import index_directory, join_key
from lance_core.storage.port import ObjectStore
from lance_core.table_files import TableFiles
from namespace_server.directory.doctor.findings import Finding
from namespace_server.directory.model.entries import VersionEntry
from namespace_server.directory.model.object_ids import join


class StoredFiles:
    """The files below the location of a table, of one listing."""

    def __init__(self, store: ObjectStore, location: str) -> None:
        self.store = store
        self.location = location
        self.sizes = {meta.path: meta.size for meta in store.list(location)}
        self._indices = {
            role.name
            for path in self.sizes
            if (role := role_of(path.removeprefix(f"{location}/"))) is not None and "_indices/" in path and role.name
        }

    def check(self, row: VersionEntry, file: ManifestFile, *, is_head: bool) -> Iterator[Finding]:
        """The findings on the files of a version. Files outside the root of the catalog are not looked at."""
        table = join(row.table_id)
        missing = "file-missing" if is_head else "old-file-missing"
        for path, size in TableFiles(self.store, row.base).placed(file.manifest):
            if path is None:
                continue
            found = self._size(path)
            if found is None:
                yield Finding(missing, path, f"version {row.version} names it, found nothing", table)
            elif size and found != size:
                code = "file-size" if is_head else "old-file-missing"
                yield Finding(code, path, f"version {row.version} expects {size:,} bytes, found {found:,}", table)
        name = file.manifest.transaction_file
        if name and self._size(join_key(row.base, "_transactions", name)) is None:
            place = join_key(row.base, "_transactions", name)
            yield Finding("transaction-file-missing", place, f"version {row.version} names it, found nothing", table)
        for index in file.indices.indices if file.indices is not None and is_head else ():
            if not index.HasField("base_id") and index_directory("", index.uuid.uuid) not in self._indices:
                place = index_directory(row.base, index.uuid.uuid)
                if index.index_details.type_url:
                    yield Finding(
                        "index-missing", place, f"index {index.name} of version {row.version}: no file", table
                    )

    def _size(self, path: str) -> int | None:
        if path in self.sizes or path.startswith(f"{self.location}/"):
            return self.sizes.get(path)
        meta = next((each for each in self.store.list(path.rpartition("/")[0]) if each.path == path), None)
        return None if meta is None else meta.size
