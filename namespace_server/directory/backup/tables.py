"""Backs up one table: its references, the manifests of its versions, and the files that these need."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from lance_core.errors import CorruptFile, NotFound, ReferenceNotFound, UnsupportedFeature
from lance_core.format.manifest import ManifestFile, parse_manifest_file
from lance_core.format.naming import join_key, manifest_path
from lance_core.storage.port import ObjectStore
from lance_core.storage.retries import put_with_retries
from lance_core.table_files import PlacedFile
from lance_core.tables.stored_files import StoredFiles
from lance_core.versions import find_latest
from namespace_server.directory.backup.copies import Copies, sizes_of
from namespace_server.directory.backup.external_blobs import check_external, external_places
from namespace_server.directory.backup.logs import LogCompacted, capture, log_state
from namespace_server.directory.backup.records import (
    FILES,
    INVENTORIES,
    MANIFESTS,
    BackedUpTable,
    Inventory,
    LeftOut,
    StoredFile,
    StoredVersion,
    file_key,
    inventory_key,
    log_key,
    manifest_key,
    read_inventory,
    state_of,
    version_of,
)
from namespace_server.directory.backup.required_files import (
    References,
    VersionNeeds,
    chosen_versions,
    further_roots,
    needed_files,
    needs_of,
    read_references,
    what_is_lost,
)
from namespace_server.directory.manifests.deleted_branches import is_deleted_branch
from namespace_server.directory.manifests.manifest_reader import ManifestReader
from namespace_server.directory.model.entries import TableEntry, VersionEntry, place_of
from namespace_server.directory.model.object_ids import join
from namespace_server.directory.model.snapshot import CatalogSnapshot

_REFERENCES: Final = "_refs"
_NOTES: Final = "_alter_transactions"
_READ_AT_ONCE: Final = 64
_TRIES: Final = 3


class BackedUp(NamedTuple):
    """A table that is in the destination as a whole.

    `outside` are base paths that lead outside of the root; `copied` files of `written` bytes are new there.
    """

    part: BackedUpTable
    left_out: tuple[LeftOut, ...]
    outside: tuple[str, ...]
    copied: int
    written: int


@dataclass(slots=True)
class TableBackups:
    """Backs up tables of the catalog version `snapshot`, whose files nothing removes meanwhile, to `destination`.

    Attributes:
        store: The root of the catalog.
        destination: Where the backup goes.
        snapshot: The catalog version.
        newest: Returns the newest catalog version.
        heads: Whether only the newest version of each branch is taken, and those that references name.
        keep_outside: Whether base paths outside of the root are left as they are; else such a table is refused.
        tick: Called between two parts of a long step.
        storage_options: With which pylance reads the root.
    """

    store: ObjectStore
    destination: ObjectStore
    snapshot: CatalogSnapshot
    newest: Callable[[], CatalogSnapshot]
    heads: bool
    keep_outside: bool
    tick: Callable[[], None]
    storage_options: Mapping[str, str] | None = None
    _manifests: dict[str, int] = field(init=False)
    _copies: Copies = field(init=False)
    _unsynced: list[str] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        listed = self.destination.list(MANIFESTS)
        self._manifests = {meta.path.removeprefix(f"{MANIFESTS}/"): meta.size for meta in listed}
        self._copies = Copies(self.store, self.destination, self.tick)

    def back_up(self, table: TableEntry) -> BackedUp:
        """Copy the files of a table that the destination lacks, and write its inventory.

        A table whose state is there already costs two listings of its references, one of its files in the destination
        for each thousand, and its inventory. Else: one listing of the table and of each further root that its files lie
        below, for each thousand files; one read for each version; and the copies.

        Raises:
            NotFound, CorruptFile: The newest version of a branch is not whole, or a file is not as it should be.
            UnsupportedFeature: The files of a version cannot be determined, or lie outside of the root.
            StorageError, StorageUnknown: The call may be repeated.
        """
        for _ in range(_TRIES - 1):
            try:
                return self._back_up(table)
            except NotFound:
                continue  # a client's own clean-up removed an earlier version meanwhile
        return self._back_up(table)

    def copy_files(
        self, files: Mapping[str, int], there: Mapping[str, int], last: Inventory
    ) -> tuple[tuple[StoredFile, ...], int, int]:
        """Copy the files of a table, sizes by key, unless the destination has them; `there` has the sizes of its files.

        Returns the files, the number of copies, and their bytes. A file of the `last` inventory is not read again; one
        that it has not is read on both sides, since a run may have died that wrote it.
        """
        recorded = {each.key: each for each in last.files}

        def copy(item: tuple[str, int]) -> tuple[StoredFile, int | None]:
            key, size = item
            target = file_key(key)
            before = recorded.get(key)
            if before is not None and before.size == size == there.get(target):
                return before, None
            self._unsynced.append(target)
            sha256, written = self._copies.copy(key, target, size, there=there.get(target))
            return StoredFile(key, size, sha256), written

        parallel = self.destination if self.store.local else self.store
        made = parallel.map(copy, sorted(files.items()))
        written = [size for _, size in made if size is not None]
        return tuple(item for item, _ in made), len(written), sum(written)

    def last_inventory(self, location: str) -> Inventory:
        """The inventory of a table that was written last; an empty one if there is none. One listing, one read."""
        directory = f"{INVENTORIES}/{location}/"
        listed = self.destination.list(directory.removesuffix("/"))
        found = [meta for meta in listed if "/" not in meta.path.removeprefix(directory)]
        if found:
            last = max(found, key=lambda meta: meta.last_modified)
            state = last.path.removeprefix(directory).removesuffix(".json")
            with suppress(NotFound, CorruptFile):
                return read_inventory(self.destination, location, state)
        return Inventory(location)

    def store_manifest(self, data: bytes, recorded: Container[str]) -> tuple[str, int]:
        """Write a manifest unless the destination has it; its SHA-256, and the bytes that were written.

        One of an inventory, whose SHA-256 is `recorded`, is not read again.
        """
        sha256 = hashlib.sha256(data).hexdigest()
        key = manifest_key(sha256)
        is_there = self._manifests.get(sha256) == len(data)
        if is_there and sha256 in recorded:
            return sha256, 0
        self._unsynced.append(key)
        if is_there and self.destination.get(key) == data:
            return sha256, 0
        put_with_retries(self.destination, key, data, durable=False)
        if self.destination.get(key) != data:
            raise CorruptFile(f"{self.destination.object_uri(key)}: expected the {len(data):,} bytes that were written")
        self._manifests[sha256] = len(data)
        return sha256, len(data)

    def store_inventory(self, table: str, inventory: Inventory) -> BackedUpTable:
        """Write the inventory of a table whose files and manifests are there, once these are durable.

        Equal states give equal bytes. What a run without an inventory left is read and compared by the next one.
        """
        self.destination.sync(self._unsynced)
        self._unsynced.clear()
        state = state_of(inventory.versions, inventory.references, inventory.log)
        put_with_retries(self.destination, inventory_key(inventory.location, state), inventory.encode())
        return _part(table, inventory, state)

    def _back_up(self, table: TableEntry) -> BackedUp:
        location = table.location
        small = self._small_files(location)
        references = read_references(location, small)
        rows = {branch: list(self.snapshot.versions(table.id, branch)) for branch in self.snapshot.chains(table.id)}
        chosen = chosen_versions(rows, references.named(), heads=self.heads)
        kept, left_out = references.of((row.branch, row.version) for row in chosen)
        there = {meta.path: meta.size for meta in self.destination.list(f"{FILES}/{location}")}
        known = self._known(location, state_of(map(version_of, chosen), {key: small[key] for key in kept}), there)
        if known is not None:
            part = _part(join(table.id), known, state_of(known.versions, known.references))
            return BackedUp(part, (*left_out, *known.damaged), known.outside, 0, 0)
        heads = {place_of(chain[-1]) for chain in rows.values() if chain}
        return self._copy(table, chosen, heads, references, small, there)

    def _small_files(self, location: str) -> dict[str, bytes]:
        """References and notes, by key."""
        keys = [
            meta.path
            for directory in (_REFERENCES, _NOTES)
            for meta in self.store.list(join_key(location, directory))
            if meta.path.endswith(".json")
        ]
        found = zip(keys, self.store.map(self.store.find, keys), strict=True)
        return {key: data for key, data in found if data is not None}

    def _known(self, location: str, state: str, there: Mapping[str, int]) -> Inventory | None:
        """The inventory of a state that the destination has as a whole, by the sizes of its files."""
        try:
            inventory = read_inventory(self.destination, location, state)
        except (NotFound, CorruptFile):
            return None
        if inventory.log is not None:  # an earlier release did not look for one
            return None
        if any(self._manifests.get(version.sha256) != version.size for version in inventory.versions):
            return None
        sizes = dict(there)
        further = [file_key(each.key) for each in inventory.files if file_key(each.key) not in sizes]
        try:
            found = self.destination.require(further)
        except NotFound:
            return None
        sizes |= {key: meta.size for key, meta in zip(further, found, strict=True)}
        if any(sizes[file_key(each.key)] != each.size for each in inventory.files):
            return None
        self._check_outside(location, inventory.outside)
        return inventory

    def _is_deleted(self, table: TableEntry, branch: str | None) -> bool:
        """Whether a client deleted the branch by path, so that its rows are about to go (M8)."""
        head = self.snapshot.head(table.id, branch)
        return head is not None and is_deleted_branch(self.store, self.snapshot, head)

    def _copy(
        self,
        table: TableEntry,
        chosen: Sequence[VersionEntry],
        heads: set[tuple[str, str | None, int]],
        references: References,
        small: Mapping[str, bytes],
        there: Mapping[str, int],
    ) -> BackedUp:
        location, missing, needs = table.location, dict[VersionEntry, str](), list[tuple[VersionEntry, VersionNeeds]]()
        shared: dict[str, PlacedFile] = {}
        last, manifests_written = self.last_inventory(location), 0
        recorded = {version.sha256 for version in last.versions}
        for first in range(0, len(chosen), _READ_AT_ONCE):
            self.tick()
            rows = chosen[first : first + _READ_AT_ONCE]
            for row, data in zip(rows, self.store.map(self._read, rows), strict=True):
                if data is None:
                    missing[row] = f"{row.canonical_path}: expected its manifest, found none"
                    continue
                sha256, written = self.store_manifest(data, recorded)
                manifests_written += written
                version = StoredVersion(row.branch, row.version, len(data), sha256)
                needs.append((row, self._needs(table, row, version, data, shared)))
        self._check_outside(location, sorted({path for _, each in needs for path in each.outside}))
        roots = (location, *further_roots(location, [each for _, each in needs]))
        stored_files = StoredFiles(self.store, self._listed(roots))
        sound = {each.key for each in last.files}
        damaged: list[LeftOut] = []
        for row, each in needs:
            self.tick()
            problems = stored_files.problems(each.placed, sound=sound)
            is_head = place_of(row) in heads
            lost = what_is_lost(problems, also_indices=is_head)
            if lost is not None:
                missing[row] = lost
            else:
                damaged += (LeftOut(problem.key, f"{version_of(row).name}: {problem.text}") for problem in problems)
        for row, text in missing.items():
            if place_of(row) in heads and self.newest().has_version(row) and not self._is_deleted(table, row.branch):
                raise CorruptFile(f"table {join(table.id)}: version {row.version}, the newest of its branch: {text}")
        whole = [each for row, each in needs if row not in missing]
        kept, left_out = references.of((each.version.branch, each.version.version) for each in whole)
        left_out += [LeftOut(f"{join(table.id)} {version_of(row).name}", text) for row, text in missing.items()]
        left_out += damaged
        external = self._external([(row, each) for row, each in needs if row not in missing], last)
        places = {place for found in external.values() for place in found}
        check_external(location, places, keep_outside=self.keep_outside)
        used = {path for each in whole for path, key in each.bases.items() if key in each.used and path in places}
        if used:
            raise UnsupportedFeature(
                f"table at {location}: data files and blobs of its rows lie below {', '.join(used)}"
            )
        files = {key: size for root in roots for key, size in needed_files(whole, root, stored_files.sizes).items()}
        further = [file_key(key) for key in files if not key.startswith(f"{location}/")]
        stored, copied, bytes_written = self.copy_files(files, {**there, **sizes_of(self.destination, further)}, last)
        whole_heads = {row: each.log for row, each in needs if place_of(row) in heads and row not in missing}
        log, log_copied, log_written = self._copy_logs(whole_heads)
        inventory = Inventory(
            location,
            tuple(each.version for each in whole),
            stored,
            {key: small[key] for key in sorted(kept)},
            {path: key for each in whole for path, key in each.bases.items() if path not in places},
            tuple(sorted(places.union(*(each.outside for each in whole)))),
            tuple(damaged),
            log,
            {key: found for key, found in sorted(external.items()) if found},
        )
        part = self.store_inventory(join(table.id), inventory)
        written = bytes_written + manifests_written + log_written
        return BackedUp(part, tuple(left_out), inventory.outside, copied + log_copied, written)

    def _external(
        self, whole: Sequence[tuple[VersionEntry, VersionNeeds]], last: Inventory
    ) -> dict[str, tuple[str, ...]]:
        """Where external blobs of whole versions lie, by data file; those of the `last` inventory are known."""
        before = {} if last.external is None else {each.key: last.external.get(each.key, ()) for each in last.files}
        found: dict[str, tuple[str, ...]] = {}
        for row, needs in whole:
            if needs.has_blobs:
                keys = needs.data_keys
                found |= {key: before[key] for key in keys & before.keys()}
                if not keys <= found.keys():
                    self.tick()
                    file = parse_manifest_file(self.destination.get(manifest_key(needs.version.sha256)))
                    found |= external_places(self.store, row.base, file, found.keys(), self.storage_options)
        return found

    def _copy_logs(self, heads: Mapping[VersionEntry, bytes | None]) -> tuple[tuple[StoredFile, ...] | None, int, int]:
        """Copy the write-ahead logs of the newest versions of branches, by what these say of theirs.

        Returns their files, the number of copies, and their bytes. All of their files are read.
        """
        logged = {row: state for row, state in heads.items() if state is not None}
        if not logged:
            return None, 0, 0
        files: list[StoredFile] = []
        copied = written = 0
        for row, state in logged.items():
            for stored, size in capture(self.store, row.base, self._copy_log):
                files.append(stored)
                copied, written = copied + bool(size), written + size
            for newest in self._newest_manifests(row):
                if log_state(newest) != state:
                    raise LogCompacted(row.table_id, row.branch, row.version, newest.version)
        return tuple(files), copied, written

    def _copy_log(self, files: Mapping[str, int]) -> list[tuple[StoredFile, int]]:
        """The files of a log, and the bytes of each that were written."""

        def copy(item: tuple[str, int]) -> tuple[StoredFile, int]:
            key, size = item
            sha256 = self._copies.hash(self.store, key, size)
            target = log_key(sha256)
            self._unsynced.append(target)
            there = sizes_of(self.destination, [target]).get(target)
            return StoredFile(key, size, sha256), self._copies.copy(key, target, size, there=there, sha256=sha256)[1]

        parallel = self.destination if self.store.local else self.store
        return list(parallel.map(copy, sorted(files.items())))

    def _newest_manifests(self, row: VersionEntry) -> Iterator[ManifestFile]:
        """The manifests of later versions of a branch: that of the newest row, and those committed by path."""
        head = self.newest().head_at(row.location, row.branch)
        if head is not None and head.identity != row.identity and (data := self._read(head)) is not None:
            yield parse_manifest_file(data)
        with suppress(ReferenceNotFound, NotFound):
            latest = find_latest(self.store, row.base)
            if latest.version > (row if head is None else head).version:
                yield parse_manifest_file(self.store.get(manifest_path(row.base, latest.version, latest.scheme)))

    def _listed(self, roots: Iterable[str]) -> dict[str, int]:
        """Sizes of the files below some roots, also of those that lie behind symbolic links to directories."""
        return {
            meta.path: meta.size
            for root in roots
            for directory in (root, *self.store.linked_directories(root))
            for meta in self.store.list(directory)
        }

    def _read(self, row: VersionEntry) -> bytes | None:
        staged = row.staged_path or self.snapshot.open_path(place_of(row))
        try:
            return ManifestReader(self.store).read(replace(row, staged_path=staged))
        except (NotFound, CorruptFile):
            return None

    def _needs(
        self, table: TableEntry, row: VersionEntry, version: StoredVersion, data: bytes, shared: dict[str, PlacedFile]
    ) -> VersionNeeds:
        try:
            file = parse_manifest_file(data, expected_version=row.version)
            return needs_of(self.store, row.base, version, file, shared)
        except (CorruptFile, UnsupportedFeature) as error:
            raise type(error)(f"table {join(table.id)}, {version.name}: {error}") from error

    def _check_outside(self, location: str, outside: Sequence[str]) -> None:
        if outside and not self.keep_outside:
            raise UnsupportedFeature(
                f"table at {location}: files of it lie outside of the root, below {', '.join(outside)}: compact it or "
                "make a deep clone of it, or keep such base paths as they are (--keep-outside)"
            )


def _part(table: str, inventory: Inventory, state: str) -> BackedUpTable:
    return BackedUpTable(table, inventory.location, state, len(inventory.versions), inventory.count, inventory.size)
