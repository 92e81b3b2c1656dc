"""Makes a catalog of a backup, under an empty root. `__manifest` comes last."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, cast

import orjson
import pyarrow as pa
from lance_namespace.errors import InvalidInputError

from lance_core.commit.slot import SlotUnknown, SlotWon, claim_slot
from lance_core.errors import CorruptFile, StorageUnknown
from lance_core.format.manifest import ManifestFile, parse_manifest_file
from lance_core.format.naming import NamingScheme, manifest_path
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.port import ObjectStore
from lance_core.storage.retries import put_with_retries
from lance_core.table_files import root_path
from namespace_server.directory.backup.copies import Copies, check_hash, sizes_of
from namespace_server.directory.backup.ownership import find_record
from namespace_server.directory.backup.records import (
    FILES,
    BackedUpTable,
    BackupRecord,
    Inventory,
    StoredFile,
    StoredVersion,
    file_key,
    manifest_key,
    read_inventory,
)
from namespace_server.directory.backup.relocated_catalog import (
    RestoredManifest,
    mended_manifest,
    mended_reference,
    restored_entries,
)
from namespace_server.directory.manifest_table.flip import prepare_flip
from namespace_server.directory.manifest_table.fragments import Fragment, Layout
from namespace_server.directory.manifest_table.incremental_refresh import IncrementalRefresh
from namespace_server.directory.manifest_table.newest_version import NewestVersion
from namespace_server.directory.manifest_table.schema import IDENTITY_KEY, OnDisk, read_batches, read_outline
from namespace_server.directory.model.entries import Place, changes_of, place_of
from namespace_server.directory.model.root_layout import AUDIT, MANIFEST_TABLE, RESTORE_CLAIM
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.observability.observation import Progress, no_progress

_OF_NO_CATALOG: Final = ("lost+found/", f"{AUDIT}/")
"""What may be at a root that is empty otherwise: a server there may have refused requests."""
_NAMES: Final = uuid.UUID("6d0c2e0e-5c8b-4c0e-9f5a-0b7a3e1c9d24")
"""The namespace of the uuids of restored catalogs and of their versions."""
_ROWS: Final = f"{FILES}/{MANIFEST_TABLE}"


class RestoredCatalog(NamedTuple):
    """A catalog that was restored: the backup, and the files and bytes that were written."""

    record: BackupRecord
    files: int
    written: int


def load_backed_up(backups: ObjectStore, record: BackupRecord) -> tuple[CatalogSnapshot, ManifestFile]:
    """The catalog version of a backup, and its manifest. Raises `NotFound`, `CorruptFile`, `StorageError`."""
    inventory = read_inventory(backups, MANIFEST_TABLE, record.catalog.state)
    [version] = inventory.versions
    copies = Copies(backups, backups)
    for each in inventory.files:
        check_hash(backups, file_key(each.key), each.sha256, copies.hash(backups, file_key(each.key), each.size))
    file = parse_manifest_file(read_manifest(backups, version), expected_version=version.version)
    return IncrementalRefresh(backups, _ROWS).follow(CatalogSnapshot(), file, NamingScheme.V2, 0.0), file


def read_manifest(backups: ObjectStore, version: StoredVersion) -> bytes:
    """The bytes of a manifest. Raises `NotFound`, `CorruptFile`."""
    key = manifest_key(version.sha256)
    data = backups.get(key)
    check_hash(backups, key, version.sha256, hashlib.sha256(data).hexdigest())
    return data


def roots_below(store: ObjectStore, inventory: Inventory, prefix: str = "") -> dict[str, str]:
    """The new path of each root that manifests of a table name, if the keys of the catalog lie below `prefix`."""
    keys = {path: "/".join(part for part in (prefix, key) if part) for path, key in inventory.bases.items()}
    return {path: root_path(store, key) for path, key in keys.items()}


@dataclass(slots=True)
class Restoration:
    """Restores a backup of the destination `backups` under `root`, which is empty, or left by the same restoration.

    Order: a claim; of each table its files, its references, and its manifests, ascending; then the rows and the
    manifest of the catalog, by put-if-absent; then the claim goes. No server makes a catalog at a root with a claim.
    After a crash the same call completes it: files that are there are read and compared, and not written again. Two
    restorations of one backup to one root end in one catalog, which must not be changed before both have ended.

    Attributes:
        backups: The destination of the backup.
        root: The root. With a manifest store, one that has no row of tables at this root.
        progress: Called with the number of tables that are restored.
    """

    backups: ObjectStore
    root: ObjectStore
    progress: Progress = no_progress
    _copies: Copies = field(init=False)
    _files: int = field(default=0, init=False)
    _written: int = field(default=0, init=False)
    _unsynced: list[str] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._copies = Copies(self.backups, self.root)

    def restore(self, backup_id: str | None = None) -> RestoredCatalog:
        """Restore a backup, by default the newest.

        Raises:
            InvalidInputError: The root is not empty, or not apart from the backups, another backup is being restored
                there, or no backup is named and the destination has those of several catalogs.
            NotFound, CorruptFile: There is no such backup, or a file of it is missing or damaged.
            StorageError, StorageUnknown: The call may be repeated.
        """
        if self.backups.contains(self.root) or self.root.contains(self.backups):
            raise InvalidInputError(f"expected a root apart from the backups {self.backups.uri}, found {self.root.uri}")
        record = find_record(self.backups, backup_id)
        self._claim(record)
        attempt = str(uuid.uuid5(_NAMES, record.id))
        if not self._is_complete(record, attempt):
            snapshot, file = load_backed_up(self.backups, record)
            manifests: dict[Place, RestoredManifest] = {}
            for number, part in enumerate(record.tables):
                self.progress("restore", number, len(record.tables))
                manifests |= self._restore_table(part, snapshot)
                self.root.sync(self._unsynced)
                self._unsynced.clear()
            self._commit(record, snapshot, file.transaction, manifests, attempt)
        self.root.delete(RESTORE_CLAIM)
        return RestoredCatalog(record, self._files, self._written)

    def _claim(self, record: BackupRecord) -> None:
        """Claim the root for this backup, unless it is claimed."""
        claimed = self.root.find(RESTORE_CLAIM)
        if claimed is None:
            there = next((meta for meta in self.root.list("") if not meta.path.startswith(_OF_NO_CATALOG)), None)
            if there is not None:
                raise InvalidInputError(f"{self.root.uri}: expected an empty root, found {there.path}")
            data = orjson.dumps({"backup": record.id, "from": self.backups.uri})
            outcome = claim_slot(self.root, RESTORE_CLAIM, data)
            if isinstance(outcome, SlotUnknown):
                raise StorageUnknown(f"{self.root.object_uri(RESTORE_CLAIM)}: {outcome.reason}")
            claimed = data if isinstance(outcome, SlotWon) else outcome.data
        found = _claimed_by(claimed)
        if found != record.id:
            raise InvalidInputError(
                f"{self.root.uri}: backup {found} is being restored there: complete that, or empty the root"
            )

    def _is_complete(self, record: BackupRecord, attempt: str) -> bool:
        """Whether the catalog is there already, by this very restoration."""
        newest = NewestVersion(self.root, MANIFEST_TABLE).find()
        if newest is None:
            return False
        key = manifest_path(MANIFEST_TABLE, record.catalog_version, NamingScheme.V2)
        data = self.root.find(key)
        if data is not None and parse_manifest_file(data).transaction_uuid == attempt:
            return True
        raise InvalidInputError(
            f"{self.root.uri}: expected no catalog, found one at version {newest[0]}: empty the root"
        )

    def _restore_table(self, part: BackedUpTable, snapshot: CatalogSnapshot) -> dict[Place, RestoredManifest]:
        """Restore the files, the references and the manifests of a table, in this order."""
        inventory = read_inventory(self.backups, part.location, part.state)
        there = {meta.path: meta.size for meta in self.root.list(part.location)}
        self._copy_files(inventory, there)
        roots = roots_below(self.root, inventory)
        mended = {
            version: mended_manifest(read_manifest(self.backups, version), roots) for version in inventory.versions
        }
        sizes = {(version.branch, version.version): len(data) for version, data in mended.items()}
        for key, data in inventory.references.items():
            self._put(key, mended_reference(key, data, sizes), there)
        restored: dict[Place, RestoredManifest] = {}
        for version, data in mended.items():
            row = snapshot.version_at(part.location, version.branch, version.version)
            if row is None:
                raise CorruptFile(f"table {part.table}: {version.name}: expected a row of the catalog, found none")
            self._put(row.canonical_path, data, there)
            restored[place_of(row)] = RestoredManifest(len(data), hashlib.sha256(data).hexdigest())
        return restored

    def _copy_files(self, inventory: Inventory, there: Mapping[str, int]) -> None:
        """Copy the files of a table and of its write-ahead log. Those that lie elsewhere belong to other tables too."""
        further = [each.key for each in inventory.files if not each.key.startswith(f"{inventory.location}/")]
        sizes = {**there, **sizes_of(self.root, further)}

        def copy(item: tuple[str, StoredFile]) -> int:
            source, (key, size, sha256) = item
            self._unsynced.append(key)
            return self._copies.copy(source, key, size, there=sizes.get(key), sha256=sha256)[1]

        parallel = self.root if self.backups.local else self.backups
        written = parallel.map(copy, list(inventory.sources()))
        self._files += sum(1 for size in written if size)
        self._written += sum(written)

    def _put(self, key: str, data: bytes, there: Mapping[str, int]) -> None:
        """Write a file unless the root has it, and read it back."""
        if there.get(key) == len(data) and self.root.get(key) == data:
            self._unsynced.append(key)
            return
        put_with_retries(self.root, key, data, durable=False)
        self._unsynced.append(key)
        if self.root.get(key) != data:
            raise CorruptFile(f"{self.root.object_uri(key)}: expected the {len(data):,} bytes that were written")
        self._files += 1
        self._written += len(data)

    def _commit(
        self,
        record: BackupRecord,
        snapshot: CatalogSnapshot,
        transaction: pb.Transaction | None,
        manifests: Mapping[Place, RestoredManifest],
        attempt: str,
    ) -> None:
        """Write the rows, then the one version of the catalog: number, time and batches are those of the backup."""
        own = {batch_uuid for batch_uuid, _ in read_batches(transaction)}
        disk = cast("OnDisk", snapshot.disk)
        frame = pb.Manifest()
        frame.CopyFrom(disk.frame)
        # It goes on by itself from here, and so do its backups.
        frame.table_metadata[IDENTITY_KEY] = str(uuid.uuid5(_NAMES, f"{record.id} {self.root.uri}"))
        before = OnDisk(frame, Layout(), NamingScheme.V2, disk.timestamp_ns - 1)
        flip = prepare_flip(
            MANIFEST_TABLE,
            CatalogSnapshot(snapshot.version - 1, managed=snapshot.managed, disk=before),
            changes_of(restored_entries(snapshot, manifests)),
            attempt=attempt,
            now_ns=disk.timestamp_ns,
            read=_no_rows,
            outline=read_outline(transaction),
            known=[each.batch_uuid for each in snapshot.records() if each.batch_uuid not in own],
        )
        newest = NewestVersion(self.root, MANIFEST_TABLE)
        newest.mark(flip.version)
        for path, data in flip.files:
            put_with_retries(self.root, path, data)
        if not self._is_complete(record, attempt):
            outcome = claim_slot(self.root, flip.path, flip.manifest)
            if isinstance(outcome, SlotUnknown):
                raise StorageUnknown(f"{self.root.object_uri(flip.path)}: {outcome.reason}")
            self._is_complete(record, attempt)


def _no_rows(fragment: Fragment) -> pa.RecordBatch:
    raise AssertionError(f"fragment {fragment.message.id}: a restored catalog has none before its first")


def _claimed_by(data: bytes) -> str:
    try:
        return str(orjson.loads(data)["backup"])
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise CorruptFile(f"{RESTORE_CLAIM}: expected the claim of a restoration: {error!r}") from error
