"""Compares the files that a version of a table names with storage."""

from __future__ import annotations

from collections.abc import Iterator

from lance_core.format.manifest import ManifestFile
from lance_core.storage.port import ObjectStore
from lance_core.table_files import TableFiles
from lance_core.tables.stored_files import FileProblem, StoredFiles
from namespace_server.directory.doctor.findings import Finding
from namespace_server.directory.model.entries import VersionEntry
from namespace_server.directory.model.object_ids import join
from namespace_server.directory.verifying.allowed_locations import AllowedLocations

HEAD_CODES = {"missing": "file-missing", "size": "file-size", "content": "file-unreadable"}
"""The codes of damaged data and deletion files of the newest version of a branch."""


class TableFindings:
    """The files below the location of a table, of one listing, and the findings on those that versions name."""

    def __init__(self, store: ObjectStore, location: str) -> None:
        self._store = store
        self._stored = StoredFiles(store, {meta.path: meta.size for meta in store.list(location)})
        self.sizes = self._stored.sizes

    def check(self, row: VersionEntry, file: ManifestFile, *, is_head: bool) -> Iterator[Finding]:
        """The findings on the files of a version. Files outside the root of the catalog are not looked at."""
        placed, table = list(TableFiles(self._store, row.base).placed(file)), join(row.table_id)
        keys = (each.key.rstrip("/") for each in placed if each.key is not None)
        for link in AllowedLocations(self._store).links_outside(keys):
            yield Finding("link-out-of-root", link, f"version {row.version} names a file there", table)
        for problem in self._stored.problems(placed):
            text = f"version {row.version}: {problem.text}"
            yield Finding(_code(problem, is_head=is_head), problem.key.rstrip("/"), text, table)


def _code(problem: FileProblem, *, is_head: bool) -> str:
    if problem.file.kind == "transaction":
        return "transaction-file-missing"
    if problem.file.kind == "index":
        return "index-missing" if problem.what == "missing" else "index-damaged"
    return HEAD_CODES[problem.what] if is_head else "old-file-missing"
