"""Compares a backup with its records, and its files with its manifests; lets pylance scan its tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from lance_core.amounts import counted
from lance_core.data import count_staged
from lance_core.errors import CorruptFile, InvalidTransaction, LanceCoreError, NotFound
from lance_core.format.deletion import live_row_count
from lance_core.format.footer import MAGIC
from lance_core.format.manifest import ManifestFile, parse_manifest_file
from lance_core.format.naming import branch_base
from lance_core.stated_files import check_stated_files
from lance_core.storage.port import ObjectStore
from lance_core.table_files import PlacedFile, TableFiles
from lance_core.tables.stored_files import FileProblem, StoredFiles
from namespace_server.directory.backup.copies import Copies
from namespace_server.directory.backup.ownership import OWNER_KEY, read_owner, two_copies
from namespace_server.directory.backup.records import (
    FILES,
    BackedUpTable,
    BackupRecord,
    Inventory,
    StoredFile,
    StoredVersion,
    file_key,
    inventory_key,
    list_backups,
    manifest_key,
    read_inventory,
    read_record,
    readable_records,
    record_key,
)
from namespace_server.directory.backup.relocated_catalog import mended_manifest
from namespace_server.directory.backup.restore import load_backed_up, read_manifest, roots_below
from namespace_server.directory.model.root_layout import MANIFEST_TABLE
from namespace_server.observability.observation import Progress, no_progress

_LANCE_FILE: Final = ".lance"


class Problem(NamedTuple):
    """A fault of a backup: the key in the destination, the expectation and the finding."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class VerificationReport:
    """The result of a verification: backups, tables, rows counted, files and bytes read; and the problems.

    `copies` is set if the backups are of two copies of a catalog: each is sound by itself.
    """

    destination: str
    backups: tuple[str, ...]
    tables: int
    rows: int
    files: int
    read: int
    problems: tuple[Problem, ...]
    copies: str | None = None

    def lines(self) -> Iterator[str]:
        """The report for a terminal."""
        for problem in self.problems:
            yield f"damaged: {problem.key}: {problem.text}"
        if self.copies:
            yield f"warning: {self.copies}"
        verdict = counted(len(self.problems), "problem") if self.problems else "sound"
        yield (
            f"{self.destination}: {counted(len(self.backups), 'backup')}, {counted(self.tables, 'table')}, "
            f"{counted(self.rows, 'row')}, {counted(self.files, 'file')}, {counted(self.read, 'byte')}: {verdict}"
        )

    def as_json(self) -> dict[str, object]:
        """The report as JSON."""
        return {
            "destination": self.destination,
            "backups": list(self.backups),
            "tables": self.tables,
            "rows": self.rows,
            "files": self.files,
            "bytes": self.read,
            "problems": [{"key": each.key, "text": each.text} for each in self.problems],
            "copies": self.copies,
        }


def verify(
    destination: ObjectStore,
    backup_id: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    progress: Progress = no_progress,
    *,
    decode: bool = False,
) -> VerificationReport:
    """Verify one backup of a destination, or all of them. Writes nothing.

    Every file and manifest is read and compared with its size and SHA-256, once, whatever the number of backups that
    have it. The files that the manifest of each version names are compared with its statements: sizes, the rows of
    deletion files, the ends of data files. Pylance scans the newest version of each branch, with its deletions, and
    with `decode` all of its columns: a few kinds of damage that a backup copied end the process then. Raises `NotFound`
    if there is no such backup, `StorageError` if the destination cannot be read.
    """
    there = list_backups(destination)
    if not there or (backup_id is not None and backup_id not in there):
        raise NotFound(
            f"{destination.uri}: expected backup {backup_id or 'of any name'}, found {', '.join(there) or 'none'}"
        )
    chosen = there if backup_id is None else [backup_id]
    examination = _Examination(destination, storage_options, progress, decode)
    examination.examine_owner()
    for each in chosen:
        examination.examine(each)
    return VerificationReport(
        destination.uri,
        tuple(chosen),
        examination.tables,
        examination.rows,
        len(examination.seen),
        examination.read,
        tuple(examination.problems.values()),
        two_copies(readable_records(destination)[0]) if backup_id is None else None,
    )


@dataclass(slots=True)
class _Examination:
    """The state of one verification. Each object is read once."""

    store: ObjectStore
    storage_options: Mapping[str, str] | None
    progress: Progress
    decode: bool
    tables: int = 0
    rows: int = 0
    read: int = 0
    seen: set[str] = field(default_factory=set)
    problems: dict[str, Problem] = field(default_factory=dict)
    _inventories: set[str] = field(default_factory=set)
    _ends_read: set[str] = field(default_factory=set)
    _unreadable: set[str] = field(default_factory=set)

    def examine_owner(self) -> None:
        try:
            read_owner(self.store)
        except CorruptFile as error:
            self._add(OWNER_KEY, str(error))

    def examine(self, backup_id: str) -> None:
        try:
            record = read_record(self.store, backup_id)
        except CorruptFile as error:
            self._add(record_key(backup_id), str(error))
            return
        for number, part in enumerate(record.parts):
            self.progress(f"verify {backup_id}", number, len(record.parts))
            self._examine_part(part)
        self._load(record)

    def _examine_part(self, part: BackedUpTable) -> None:
        key = inventory_key(part.location, part.state)
        if key in self._inventories:
            return
        self._inventories.add(key)
        try:
            inventory = read_inventory(self.store, part.location, part.state)
        except (NotFound, CorruptFile) as error:
            self._add(key, str(error))
            return
        found = (len(inventory.versions), inventory.count, inventory.size)
        if found != (part.versions, part.files, part.size):
            text = "{:,} versions and {:,} files of {:,} bytes"
            stated = text.format(part.versions, part.files, part.size)
            self._add(key, f"expected {stated}, found {text.format(*found)}")
        sizes = self._check_files(inventory)
        manifests = dict(zip(inventory.versions, self.store.map(self._manifest, inventory.versions), strict=True))
        if part.location == MANIFEST_TABLE:
            return
        self.tables += 1
        roots = roots_below(self.store, inventory, FILES)
        heads = {version.branch: version for version in inventory.versions}.values()
        stored = StoredFiles(self.store, sizes)
        for version in inventory.versions:
            data = manifests[version]
            if data is None:
                continue
            file = parse_manifest_file(mended_manifest(data, roots))
            is_whole = self._check_version(inventory, version, file, stored)
            if version in heads and is_whole:
                self._scan(part, version, file)

    def _check_version(
        self, inventory: Inventory, version: StoredVersion, file: ManifestFile, stored: StoredFiles
    ) -> bool:
        """Compare files with the statements of a version; whether its rows can be read by that."""
        base = file_key(branch_base(inventory.location, version.branch))
        placed = [each for each in TableFiles(self.store, base).placed(file) if each.key is not None]
        left_out = {file_key(each.what) for each in inventory.damaged}
        found = [each for each in stored.problems(placed) if each.key not in left_out]
        known = left_out | self._ends_read | {each.key for each in found}
        ends = [each for each in placed if each.kind in {"data", "index"} and each.key not in known]
        self._ends_read |= {str(each.key) for each in ends}
        for each, text in zip(ends, self.store.map(self._end_problem, ends), strict=True):
            if text is not None:
                found.append(FileProblem(each, "content", text))
        for problem in found:
            self._add(problem.key, f"{version.name}: {problem.text}")
        self._unreadable |= {problem.key for problem in found}
        return not any(each.key in self._unreadable | self.problems.keys() for each in placed)

    def _end_problem(self, file: PlacedFile) -> str | None:
        """The fault at the end of a data file, or of a file of an index; None if there is none."""
        key = str(file.key)
        try:
            if file.kind == "data":
                check_stated_files(self.store, {key: file.stated}, contents=True)
            elif key.endswith(_LANCE_FILE) and (end := self.store.tail(key, len(MAGIC))[0]) != MAGIC:
                return f"ends with {end!r}, expected {MAGIC!r}"
        except NotFound:
            return "expected a file, found none"
        except (CorruptFile, InvalidTransaction) as error:
            return str(error)
        return None

    def _check_files(self, inventory: Inventory) -> dict[str, int]:
        """Compare the files of a table with its inventory; the sizes of those below its location, by key."""
        sizes = {meta.path: meta.size for meta in self.store.list(f"{FILES}/{inventory.location}")}
        copies = Copies(self.store, self.store)

        def check(item: tuple[str, StoredFile]) -> str | None:
            key, file = item
            try:
                size = sizes[key] if key in sizes else self.store.head(key).size
                if size != file.size:
                    return f"expected {file.size:,} bytes, found {size:,}"
                found = copies.hash(self.store, key, size)
            except NotFound:
                return "expected a file, found none"
            except CorruptFile as error:
                return str(error)
            return None if found == file.sha256 else f"expected SHA-256 {file.sha256}, found {found}"

        unseen = [(key, file) for key, file in inventory.sources() if key not in self.seen]
        for (key, file), problem in zip(unseen, self.store.map(check, unseen), strict=True):
            self.seen.add(key)
            self.read += file.size
            if problem is not None:
                self._add(key, problem)
        return sizes

    def _manifest(self, version: StoredVersion) -> bytes | None:
        """The bytes of a manifest; None, and a problem, if it is not whole."""
        key = manifest_key(version.sha256)
        if key not in self.seen:
            self.seen.add(key)
            self.read += version.size
        try:
            return read_manifest(self.store, version)
        except NotFound:
            self._add(key, f"expected the manifest of {version.name}, found none")
        except CorruptFile as error:
            self._add(key, str(error))
        return None

    def _scan(self, part: BackedUpTable, version: StoredVersion, file: ManifestFile) -> None:
        uri = self.store.object_uri(file_key(branch_base(part.location, version.branch)))
        try:
            found = count_staged(uri, file, self.storage_options, decode=self.decode)
        except LanceCoreError as error:
            self._add(f"{part.table} {version.name}", str(error))
            return
        self.rows += found
        stated = sum(map(live_row_count, file.manifest.fragments))
        if found != stated:
            self._add(f"{part.table} {version.name}", f"expected {stated:,} rows, found {found:,}")

    def _load(self, record: BackupRecord) -> None:
        """The rows of the catalog can be read, and each table has its row."""
        try:
            snapshot, _ = load_backed_up(self.store, record)
        except (LanceCoreError, ValueError) as error:
            self._add(f"catalog of {record.id}", str(error))
            return
        for part in record.tables:
            if snapshot.table_at(part.location) is None:
                self._add(f"catalog of {record.id}", f"expected a row for table {part.table} at {part.location}")

    def _add(self, key: str, text: str) -> None:
        self.problems.setdefault(key, Problem(key, text))
