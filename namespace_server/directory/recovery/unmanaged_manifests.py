"""Unmanaged manifests under canonical names: quarantined, committed again where that is possible, and reported (M6).

A quarantined file lies at `_staging/foreign/<uuid>/<its path>`. It is finished once a record of state `foreign` has
that uuid. So the next sweep of any process finishes the work of a process that died (invariant 13).
"""

from __future__ import annotations

import hashlib
import logging
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import orjson
from lance_namespace.errors import LanceNamespaceError, ServiceUnavailableError

from lance_core.errors import AlreadyExists, CorruptFile, LanceCoreError, NotFound, StorageError
from lance_core.format.manifest import ManifestFile, parse_manifest_file
from lance_core.format.naming import parse_manifest_name
from lance_core.storage.port import ObjectStore
from lance_core.transaction.lineage import lineage_break
from lance_core.versions import ManifestLocation, find_contents, list_versions
from namespace_server.directory.committing.manifest_reader import ManifestReader, has_row, is_row, is_whole
from namespace_server.directory.committing.record_maintenance import RecordMaintenance
from namespace_server.directory.committing.removals import remove_if
from namespace_server.directory.manifest_table.table import ManifestTable
from namespace_server.directory.model.elapsed import elapsed_clock
from namespace_server.directory.model.entries import RecordEntry, VersionEntry
from namespace_server.directory.model.errors import CatalogDamaged
from namespace_server.directory.model.object_ids import ObjectId
from namespace_server.directory.model.operations import Batch, CommitTransaction
from namespace_server.directory.model.root_layout import QUARANTINE
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.observation import SILENT, Observer

logger = logging.getLogger(__name__)

_LISTING_INTERVAL = 60.0
"""Seconds between two listings of the quarantine on a bucket, for those that other processes moved there."""


@dataclass(frozen=True, slots=True)
class QuarantinedFile:
    """A file that was moved to quarantine. `path` is its former key; `uuid` names its record."""

    uuid: str
    path: str

    @property
    def kept_at(self) -> str:
        """Its key now."""
        return f"{QUARANTINE}/{self.uuid}/{self.path}"

    @property
    def base(self) -> str:
        """The root of its chain."""
        return self.path.rpartition("/_versions/")[0]

    @property
    def version(self) -> int:
        """The version that its name says, 0 for a name that says none."""
        named = parse_manifest_name(self.path.rpartition("/")[2])
        return 0 if named is None else named[0]


class UnmanagedManifests:
    """Repairs names that other writers took (it is the promoter's `NameRepair`), and keeps track of the quarantine."""

    def __init__(
        self,
        store: ObjectStore,
        table: ManifestTable,
        reader: ManifestReader,
        record_maintenance: RecordMaintenance,
        observer: Observer = SILENT,
    ) -> None:
        self._store = store
        self._table = table
        self._reader = reader
        self._record_maintenance = record_maintenance
        self._observer = observer
        self._pending = True
        self._looked_at = 0.0
        self._sent: dict[str, QuarantinedFile] = {}
        self._reported: set[str] = set()
        self._compared: set[str] = set()

    def repair(self, entry: VersionEntry, ours: bytes, theirs: bytes | None) -> None:
        """Give the row's manifest its canonical name; an unmanaged file there, and files built on it, are quarantined.

        `theirs` is None where no unmanaged file has the name of a head: then only files are quarantined that were built
        on an unmanaged file which had it.

        Storage is read first, the newest catalog version after it. The taken name is replaced last: while it is not
        the row's, the next process that finds it starts over.

        Raises:
            NotFound: the row does not exist any more.
            StorageError: a step failed, or the file changed meanwhile.
        """
        above = [
            (found, self._contents(found.path))
            for found in list_versions(self._store, entry.base)
            if found.version > entry.version
        ]
        snapshot = self._table.refresh()
        table_id = snapshot.table_at(entry.location)
        row = None if table_id is None else snapshot.version_entry(table_id, entry.branch, entry.version)
        head = None if table_id is None else snapshot.head(table_id, entry.branch)
        if head is None or row is None or row.identity != entry.identity:
            raise NotFound(f"row of {entry.canonical_path}, which holds an unmanaged file")
        self._pending = True
        if head.version == entry.version:
            for found, data in reversed(_not_built_on(ours, theirs, above)):
                self._move(found.path, data)
        if theirs is None:
            return
        if not theirs:  # no manifest, which may be too large to be copied through this process
            self._move(entry.canonical_path, theirs)
            self._store.put_if_absent(entry.canonical_path, ours)
            return
        self._keep(entry.canonical_path, theirs)
        meta = self._store.head(entry.canonical_path)
        if self._store.get(entry.canonical_path) != theirs or meta.e_tag is None:
            raise StorageError(f"{entry.canonical_path} changed while it was repaired")
        self._store.replace(entry.canonical_path, ours, if_match=meta.e_tag)

    def set_aside(self, head: VersionEntry, sha256: str) -> None:
        """Quarantine what stands above a head, from the top down, if the lowest file has this SHA-256.

        That file is never adopted (P5). While it stands there, stock writers build on it, and none of their versions
        can be committed. Storage is read first, the newest catalog version after it. Raises `StorageError`.
        """
        above = [
            (found, self._contents(found.path))
            for found in sorted(list_versions(self._store, head.base), key=lambda found: found.version)
            if found.version > head.version
        ]
        snapshot = self._table.refresh()
        table_id = snapshot.table_at(head.location)
        row = None if table_id is None else snapshot.head(table_id, head.branch)
        if row is None or row.identity != head.identity or not above:
            return
        if hashlib.sha256(above[0][1]).hexdigest() == sha256:
            for found, data in reversed(above):
                self._move(found.path, data)

    def quarantined_paths(self) -> frozenset[str]:
        """The former keys of the files that are in quarantine now."""
        return frozenset(item.path for item in self._list_quarantined())

    def recommits(self) -> list[Batch]:
        """Batches that commit again, as head + 1 and with their own uuids, the transactions of quarantined files.

        `conclude` takes the verdicts. A file that cannot be committed again is reported here; a row's own manifest
        is put back (G22). A file that fails is left for later and does not delay the others.
        """
        now = elapsed_clock()
        if not (self._pending or self._sent or self._store.local or now - self._looked_at > _LISTING_INTERVAL):
            return []
        self._pending, self._looked_at = False, now
        self._sent.clear()  # files without a conclusion are met again here
        try:
            kept = self._list_quarantined()
            snapshot = self._table.refresh()  # after the files: a row's own file has its row by then
        except LanceCoreError:
            self._pending = True
            raise
        batches: list[Batch] = []
        for item in kept:
            try:
                batch = self._deal_with(item, kept, snapshot)
            except LanceCoreError as error:
                self._pending = True
                logger.error("%s is left in quarantine for now: %s", item.kept_at, error)
                continue
            if batch is not None:
                batches.append(batch)
        return batches

    def conclude(self, batch_uuid: str, error: LanceNamespaceError | None) -> None:
        """Report the outcome of a recommit: committed if there is no `error`. Unknown outcomes are retried (F1)."""
        item = self._sent.pop(batch_uuid)
        if isinstance(error, ServiceUnavailableError | CatalogDamaged):
            self._pending = True
            return
        self._write_report(item, None if error is None else str(error))

    def _deal_with(
        self, item: QuarantinedFile, kept: Iterable[QuarantinedFile], snapshot: CatalogSnapshot
    ) -> Batch | None:
        """Put a file back, report it, or return the batch that commits its transaction again."""
        if item.uuid in self._compared:
            return None
        data = find_contents(self._store, item.kept_at)
        if data is None:
            return None
        file = _parsed(data)
        place = _place_of(item, file, snapshot)
        if self._put_back(item, file, place, data, snapshot):
            return None
        if item.uuid in self._reported or snapshot.record(item.uuid) is not None:
            self._compared.add(item.uuid)
            return None
        obstacle = _removed_with_branch(item, data, snapshot) or self._find_obstacle(item, file, kept, snapshot)
        if obstacle is not None or place is None or file is None or file.transaction is None:
            self._write_report(item, obstacle or "its table is not in the catalog any more")
            return None
        operation = CommitTransaction(place[0], place[1], file.transaction)
        uid = str(uuid.uuid4())
        self._sent[uid] = item
        return Batch(uid, (operation,), request_hash=uid, message=f"recommit of an unmanaged commit at {item.path}")

    def _put_back(
        self,
        item: QuarantinedFile,
        file: ManifestFile | None,
        place: tuple[ObjectId, str | None] | None,
        data: bytes,
        snapshot: CatalogSnapshot,
    ) -> bool:
        """Give a file that is a row's manifest the row's name, whatever its own name says (G22).

        A process that is held while another one finishes the repair moves the repaired file, and may die before it
        notices. A superseded version whose files are missing is left in quarantine: a clean-up removed it.
        """
        entry = None if place is None or file is None else snapshot.version_entry(*place, file.version)
        head = None if place is None else snapshot.head(*place)
        if entry is None or head is None or file is None or not is_row(entry, data):
            return False
        if entry.transaction_uuid not in {"", file.transaction_uuid}:
            return False
        if entry.version < head.version and not is_whole(self._store, entry.base, file):
            return False
        try:
            e_tag = self._store.put_if_absent(entry.canonical_path, data)
        except AlreadyExists:
            theirs = self._contents(entry.canonical_path)
            if theirs != data:
                self.repair(entry, data, theirs)
        else:
            if not has_row(entry, self._table.refresh()):  # its branch was deleted, and perhaps made again
                remove_if(self._store, entry.canonical_path, e_tag)
                return False
            logger.error("%s was quarantined although it is a committed version, and is put back", entry.canonical_path)
        self._store.delete(item.kept_at)
        return True

    def _find_obstacle(
        self,
        item: QuarantinedFile,
        file: ManifestFile | None,
        kept: Iterable[QuarantinedFile],
        snapshot: CatalogSnapshot,
    ) -> str | None:
        """Why the transaction of a file cannot be committed again.

        A transaction that read an unmanaged version names fragments by ids that mean others in the row's chain. Only
        appends name none; their files fit if the columns are the same.
        """
        if file is None:
            return "it is no manifest"
        if file.transaction is None or file.operation in {None, "clone"}:
            return f"its operation, {file.operation}, cannot be committed again"
        read = file.transaction.read_version
        if not any(other.base == item.base and other.version == read for other in kept):
            return None
        place = _place_of(item, file, snapshot)
        head = None if place is None else snapshot.head(*place)
        if file.operation == "append" and head is not None and _same_columns(file, self._reader.read(head)):
            return None
        return f"it was built on version {read}, which was unmanaged too"

    def _write_report(self, item: QuarantinedFile, obstacle: str | None) -> None:
        """The record that reports it (invariant 13: no unmanaged commit disappears without a trace)."""
        content: Mapping[str, str | None] = {
            "path": item.path,
            "kept_at": item.kept_at,
            "outcome": "committed again" if obstacle is None else "kept aside",
            "reason": obstacle,
        }
        self._reported.add(item.uuid)
        now_ms = time.time_ns() // 1_000_000
        self._record_maintenance.report(
            [RecordEntry(item.uuid, "foreign", timestamp_ms=now_ms, results=orjson.dumps(content))]
        )

    def _list_quarantined(self) -> list[QuarantinedFile]:
        """All files in quarantine, chain by chain, upward."""
        paths = (meta.path.removeprefix(f"{QUARANTINE}/").partition("/") for meta in self._store.list(QUARANTINE))
        return sorted(
            (QuarantinedFile(uid, path) for uid, _, path in paths), key=lambda item: (item.base, item.version)
        )

    def _keep(self, path: str, data: bytes) -> None:
        item = QuarantinedFile(str(uuid.uuid4()), path)
        self._store.put_if_absent(item.kept_at, data)
        self._note(item)

    def _contents(self, path: str) -> bytes:
        """The bytes of a file; empty for one that is too large to be a manifest. Raises `NotFound`, `StorageError`."""
        data = find_contents(self._store, path)
        if data is None:
            raise NotFound(f"{path}: removed meanwhile")
        return data

    def _move(self, path: str, judged: bytes) -> None:
        """Move a file to quarantine; move it back if its bytes are not those `judged`: the name was repaired.

        Work that cannot be finished here is found in quarantine (G22).
        """
        item = QuarantinedFile(str(uuid.uuid4()), path)
        self._pending = True
        if judged or self._store.local:
            self._store.rename_if_absent(path, item.kept_at)
        else:  # a bucket copies it inside the service; nobody else has the new name
            e_tag = self._store.head(path).e_tag
            self._store.copy(path, item.kept_at)
            self._store.delete_if(path, if_match=e_tag)
        data = self._contents(item.kept_at)
        if data == judged or not data:
            self._note(item)
            return
        try:
            self._store.put_if_absent(path, data)
        except AlreadyExists:
            return
        self._store.delete(item.kept_at)

    def _note(self, item: QuarantinedFile) -> None:
        self._observer.quarantined()
        logger.error(
            "unmanaged commit at %s is moved to quarantine, %s: its name, or that of a file below it, is a row's, or "
            "it is not built on the head, or its files are gone or may go",
            item.path,
            item.kept_at,
        )


def _removed_with_branch(item: QuarantinedFile, data: bytes, snapshot: CatalogSnapshot) -> str | None:
    """Why a file of a branch that was deleted is not committed again; None if it is none."""
    removed = snapshot.removed_versions(item.base)
    return "its branch was deleted with it" if removed and hashlib.sha256(data).hexdigest() in removed else None


def _not_built_on(
    ours: bytes, theirs: bytes | None, above: Iterable[tuple[ManifestLocation, bytes]]
) -> list[tuple[ManifestLocation, bytes]]:
    """Of canonical files above a head whose name was taken, ascending, those that were not built on the head.

    A file that fits both the head and the file that took its name counts as built on that file, which its writer saw.
    """
    below = parse_manifest_file(ours)
    taker = None if theirs is None else _parsed(theirs)
    unmanaged: list[tuple[ManifestLocation, bytes]] = []
    for found, data in above:
        file = _parsed(data)
        if (
            unmanaged
            or file is None
            or not _continues(below, file, found.version)
            or (taker is not None and _continues(taker, file, found.version))
        ):
            unmanaged.append((found, data))
        else:
            below, taker = file, None
    return unmanaged


def _place_of(
    item: QuarantinedFile, file: ManifestFile | None, snapshot: CatalogSnapshot
) -> tuple[ObjectId, str | None] | None:
    """The chain that a file was put into; None if its table is not in the catalog."""
    branch = None if file is None else file.branch
    location = item.base if branch is None else item.base.removesuffix(f"/tree/{branch}")
    table_id = snapshot.table_at(location)
    return None if table_id is None else (table_id, branch)


def _same_columns(file: ManifestFile, head: bytes) -> bool:
    return list(file.manifest.fields) == list(parse_manifest_file(head).manifest.fields)


def _parsed(data: bytes) -> ManifestFile | None:
    try:
        return parse_manifest_file(data)
    except CorruptFile:
        return None


def _continues(below: ManifestFile, file: ManifestFile, named: int) -> bool:
    return file.version == named == below.version + 1 and lineage_break(below, file) is None
