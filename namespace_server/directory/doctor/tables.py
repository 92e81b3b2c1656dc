"""The versions of one table against its rows (invariants 2, 6, 7, 10 and 11)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from lance_core.errors import CorruptFile, LanceCoreError
from lance_core.format.manifest import ManifestFile, parse_manifest_file
from lance_core.format.naming import (
    BRANCHES_DIRECTORY,
    MAIN_BRANCH,
    NamingScheme,
    manifest_path,
    parse_manifest_name,
    versions_directory,
)
from lance_core.format.refs import BranchContents
from lance_core.storage.port import ObjectStore
from lance_core.tables.branches import Branches
from lance_core.tables.tags import Tags
from lance_core.transaction.lineage import lineage_break
from lance_core.versions import find_contents
from namespace_server.directory.doctor.files import TableFindings
from namespace_server.directory.doctor.findings import BRANCH_DELETED, Finding
from namespace_server.directory.manifests.deleted_branches import is_deleted_branch
from namespace_server.directory.manifests.manifest_reader import ManifestReader, is_row
from namespace_server.directory.model.entries import TableEntry, VersionEntry, place_of
from namespace_server.directory.model.object_ids import join
from namespace_server.directory.model.snapshot import CatalogSnapshot

_AUTOMATIC_CLEANUP = "lance.auto_cleanup."


class TableExamination:
    """One table of `snapshot`. Its files are listed once, and each manifest of its rows is read; nothing is written.

    With `heads` only the newest version of each branch is read.
    """

    def __init__(
        self, store: ObjectStore, snapshot: CatalogSnapshot, table: TableEntry, *, heads: bool = False
    ) -> None:
        self._store = store
        self._snapshot = snapshot
        self._table = table
        self._heads = heads
        self._files = TableFindings(store, table.location)
        self._manifests = ManifestReader(store)
        self._deleted: set[str] = set()
        self.versions = 0

    def findings(self) -> Iterator[Finding]:
        """The differences between storage and the rows. Raises `StorageError`."""
        for branch in self._snapshot.chains(self._table.id):
            rows = list(self._snapshot.versions(self._table.id, branch))
            if rows and is_deleted_branch(self._store, self._snapshot, rows[-1]):
                self._deleted.add(branch or "")
                place = f"{self._table.location}/{BRANCHES_DIRECTORY}/{branch}"
                yield self._finding(BRANCH_DELETED, place, "a client deleted the branch; its rows are there")
                continue
            yield from self._check_names(rows)
            yield from self._check_rows(rows)
        yield from self._check_references()

    def _finding(self, code: str, place: str, text: str) -> Finding:
        return Finding(code, place, text, join(self._table.id))

    def _check_names(self, rows: Sequence[VersionEntry]) -> Iterator[Finding]:
        """The names in the directory of versions: above the head, below it without a row, in one scheme."""
        if not rows:
            return
        head, numbers = rows[-1], {row.version for row in rows}
        directory, schemes = versions_directory(head.base), set()
        for path in self._files.sizes:
            if path.rpartition("/")[0] != directory or (named := parse_manifest_name(path.rpartition("/")[2])) is None:
                continue
            version, scheme = named
            schemes.add(scheme)
            if version > head.version:
                yield self._finding("unmanaged-version", path, f"expected no version above {head.version}, the head")
            elif version not in numbers:
                yield self._finding("version-without-row", path, f"version {version} has no row")
        if len(schemes) > 1:
            yield self._finding("mixed-names", directory, "expected manifests of one naming scheme, found both")

    def _check_rows(self, rows: Sequence[VersionEntry]) -> Iterator[Finding]:
        below: ManifestFile | None = None
        for row in rows[-1:] if self._heads else rows:
            self.versions += 1
            is_head = row is rows[-1]
            data, found = self._read(row, is_head=is_head)
            yield from found
            if data is None:
                below = None
                continue
            try:
                file = parse_manifest_file(data, expected_version=row.version)
                broken = None if below is None or below.version != row.version - 1 else lineage_break(below, file)
            except LanceCoreError as error:
                yield self._finding("manifest-unreadable", row.canonical_path, str(error))
                below = None
                continue
            if broken is not None:
                yield self._finding("lineage-broken", row.canonical_path, f"version {row.version}: {broken}")
            yield from self._files.check(row, file, is_head=is_head)
            keys = sorted(key for key in file.manifest.config if key.startswith(_AUTOMATIC_CLEANUP))
            if is_head and keys:
                yield self._finding("automatic-cleanup", row.canonical_path, f"version {row.version} has {keys[0]}")
            below = file

    def _read(self, row: VersionEntry, *, is_head: bool) -> tuple[bytes | None, list[Finding]]:
        """The manifest of a row, at one of its names, and the findings on these."""
        staged = row.staged_path or self._snapshot.open_path(place_of(row))
        canonical = find_contents(self._store, row.canonical_path) if row.canonical_path in self._files.sizes else None
        path, renamed = self._find_renamed(row)
        found = [] if renamed is None else [self._finding("renamed-manifest", path, f"expected {row.canonical_path}")]
        if canonical is not None and is_row(row, canonical):
            return canonical, found
        if canonical is None and renamed is not None:
            return renamed, found
        data = self._manifests.find_staged(replace(row, staged_path=staged))
        if data is None:
            what = "nothing" if canonical is None else f"{len(canonical):,} bytes that are not its manifest"
            gone = "version-lost" if canonical is None else "version-damaged"
            code, text = "head-lost" if is_head else gone, f"expected version {row.version}{_hash(row)}, found {what}"
        elif canonical is not None:
            code, text = "taken-name", f"expected the manifest of version {row.version}, found another file"
        else:
            code = "open-work" if place_of(row) in self._snapshot.state.open_places else "not-promoted"
            text = f"version {row.version} has its staged name only"
        return data, [self._finding(code, row.canonical_path, text)]

    def _find_renamed(self, row: VersionEntry) -> tuple[str, bytes | None]:
        """The name of a row's manifest in the other scheme, which pylance may have given it, and the manifest there."""
        scheme = NamingScheme.V1 if row.naming_scheme == NamingScheme.V2.value else NamingScheme.V2
        path = manifest_path(row.base, row.version, scheme)
        data = find_contents(self._store, path) if path in self._files.sizes else None
        return path, data if data is not None and is_row(row, data) else None

    def _check_references(self) -> Iterator[Finding]:
        """Tags and branches: the versions that they name exist, and each branch with rows has its reference."""
        location = self._table.location
        try:
            tags, branches = Tags(self._store, location).list(), Branches(self._store, location).list()
        except CorruptFile as error:
            yield self._finding("reference-unreadable", f"{location}/_refs", str(error))
            return
        for name, tag in tags.items():
            branch = None if tag.branch == MAIN_BRANCH else tag.branch
            if not self._is_there(branch, tag.version):
                place = f"{location}/_refs/tags/{name}.json"
                yield self._finding("tag-without-version", place, f"names version {tag.version} of {branch or 'main'}")
        yield from self._check_branches(branches)

    def _check_branches(self, branches: dict[str, BranchContents]) -> Iterator[Finding]:
        rows = set(self._snapshot.branches(self._table.id)) - self._deleted
        for name in sorted(rows - branches.keys()):
            place = f"{self._table.location}/_refs/branches/{name}.json"
            yield self._finding("branch-reference-missing", place, f"branch {name} has rows, and no reference")
        for name in sorted(branches.keys() - rows):
            place = f"{self._table.location}/{BRANCHES_DIRECTORY}/{name}"
            yield self._finding("branch-without-rows", place, f"branch {name} has a reference, and no row")

    def _is_there(self, branch: str | None, version: int) -> bool:
        if branch not in self._deleted and self._snapshot.version_entry(self._table.id, branch, version) is not None:
            return True
        base = self._table.location if branch is None else f"{self._table.location}/{BRANCHES_DIRECTORY}/{branch}"
        directory = f"{versions_directory(base)}/"
        names = (path.removeprefix(directory) for path in self._files.sizes if path.startswith(directory))
        return any(named is not None and named[0] == version for named in map(parse_manifest_name, names))


def _hash(row: VersionEntry) -> str:
    """The name that a backup has for the manifest of a row."""
    return f" with SHA-256 {row.sha256}" if row.sha256 else ""
