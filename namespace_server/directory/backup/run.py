"""A backup of one catalog version: pinned, copied, and recorded last."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple, cast

from lance_namespace.errors import (
    InvalidInputError,
    LanceNamespaceError,
    ServiceUnavailableError,
    TableVersionNotFoundError,
)
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from lance_core.commit.slot import SlotWon, claim_slot
from lance_core.errors import CorruptFile, LanceCoreError, StorageError, StorageUnknown
from lance_core.format.manifest import parse_manifest_file
from lance_core.format.naming import manifest_path
from lance_core.storage.opening import open_store
from lance_core.storage.port import ObjectStore
from lance_core.table_files import TableFiles
from namespace_server.directory.backup.logs import LogCompacted
from namespace_server.directory.backup.ownership import Claim, OpenRoot
from namespace_server.directory.backup.records import FILES, BackupRecord, Inventory, StoredVersion, record_key
from namespace_server.directory.backup.tables import BackedUp, TableBackups
from namespace_server.directory.catalog import StoredCatalog
from namespace_server.directory.manifest_table.schema import OnDisk
from namespace_server.directory.model.results import PinJson
from namespace_server.directory.model.root_layout import MANIFEST_TABLE, kept_version_key
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.durations import elapsed_clock
from namespace_server.observability.observation import Progress, no_progress

_PINNED: Final = 3600
_RENEWED: Final = 900
"""Seconds for which the catalog version is pinned, and after which the pin is renewed."""
_TRIES: Final = 5
_HISTORY: Final = 256
_log = logging.getLogger(__name__)


class FinishedBackup(NamedTuple):
    """A backup that was made: its record, and the files and bytes that the destination did not have before."""

    record: BackupRecord
    copied: int
    written: int


@dataclass(slots=True)
class BackupRun:
    """Makes backups of a catalog to a destination, while servers and writers go on.

    A run that died leaves files without a record, which are no backup. The next run uses them: only the table that was
    being copied is read again, and nothing is written twice.

    Attributes:
        catalog: The catalog. The run sets a pin in it, and removes it.
        destination: A store of its own, neither below the root nor above it. Several catalogs may not share one.
        heads: Whether only the newest version of each branch is taken, and those that references name.
        keep_outside: Whether files outside of the root, which base paths or blobs name, are left where they are; else
            they are refused.
        progress: Called with the number of tables that are copied.
        open_root: Opens the root that an earlier backup in the destination was made of.
        storage_options: With which pylance reads the root.
    """

    catalog: StoredCatalog
    destination: ObjectStore
    heads: bool = False
    keep_outside: bool = False
    progress: Progress = no_progress
    open_root: OpenRoot = open_store
    storage_options: Mapping[str, str] | None = None

    def make(self, at: int | None = None) -> FinishedBackup:
        """Back up a catalog version, by default the newest.

        Raises:
            InvalidInputError: There is no catalog, it is not managed, or the destination is not apart from the root or
                belongs to another catalog.
            TableVersionNotFoundError: The version is not kept.
            LanceNamespaceError, LanceCoreError: As those of the steps. There is no backup then, and the call may be
                repeated.
        """
        _check_apart(self.catalog.store, self.destination)
        for _ in range(_TRIES - 1 if at is None else 0):
            try:
                return self._make(at)
            except LogCompacted as error:
                _log.info("%s: again; files that were copied are used", error)
                # Where it was committed by path, the catalog has it after that.
                request = {"id": list(error.table_id), "branch": error.branch}
                DirectoryNamespace(catalog=self.catalog).read("list_table_versions", request)
        return self._make(at)

    def _make(self, at: int | None) -> FinishedBackup:
        found = self.catalog.snapshot()
        if found.is_empty_root:
            raise InvalidInputError(f"{self.catalog.store.uri}: expected a catalog, found none")
        if not found.managed:
            raise InvalidInputError(
                f"{self.catalog.store.uri}: expected a managed catalog: run `lance-namespace adopt`"
            )
        created = time.time_ns() // 1_000_000
        moment = datetime.fromtimestamp(created // 1_000, UTC)
        backup_id = f"{moment:%Y%m%dT%H%M%S}{created % 1_000:03d}-{uuid.uuid4().hex[:8]}"
        with _pinned(self.catalog, f"backup-{backup_id}", at, self.destination.uri) as pin:
            self._claim()
            snapshot, data = self._read_catalog(pin.version)
            return self._copy(backup_id, created, snapshot, data, pin)

    def _claim(self) -> str:
        """Claim the destination; the identity of the catalog. Raises as `Claim.make`."""
        claim = Claim(self.catalog.store, self.destination, self.catalog.table.refresh_by_listing(), self.open_root)
        claim.make()
        return claim.identity

    def _copy(self, backup_id: str, created: int, snapshot: CatalogSnapshot, data: bytes, pin: _Pin) -> FinishedBackup:
        store = self.catalog.store
        tables = TableBackups(
            store,
            self.destination,
            snapshot,
            self.catalog.table.refresh,
            self.heads,
            self.keep_outside,
            pin.renew,
            self.storage_options,
        )
        rows = self._copy_rows(tables, snapshot.version, data)
        done: list[BackedUp] = []
        chosen = [table for table_id in snapshot.all_tables() if (table := snapshot.table(table_id)) is not None]
        for number, table in enumerate(chosen):
            pin.renew()
            self.progress("back up", number, len(chosen))
            done.append(tables.back_up(table))
        identity = self._claim()  # again: a copy of the root may have made a backup meanwhile
        record = BackupRecord(
            backup_id,
            snapshot.version,
            snapshot.timestamp_ms,
            created,
            store.uri,
            self.heads,
            rows.part,
            tuple(each.part for each in done),
            tuple(left_out for each in done for left_out in each.left_out),
            tuple(sorted({path for each in done for path in each.outside})),
            identity,
        )
        pin.check()
        self._write_record(record)
        try:
            self.catalog.backup_note.write(created / 1_000)
        except StorageError as error:  # the backup is complete
            _log.warning("the backup is not noted at the root, for its servers' metrics: %s", error)
        copied = rows.copied + sum(each.copied for each in done)
        return FinishedBackup(record, copied, rows.written + sum(each.written for each in done))

    def _read_catalog(self, version: int) -> tuple[CatalogSnapshot, bytes]:
        """The snapshot of a pinned version, and its manifest."""
        snapshot = self.catalog.table.kept(version)
        store, disk = self.catalog.store, cast("OnDisk", snapshot.disk)
        for key in (manifest_path(MANIFEST_TABLE, version, disk.scheme), kept_version_key(version)):
            data = store.find(key)
            if (
                data is not None
                and parse_manifest_file(data, expected_version=version).transaction_uuid == disk.attempt
            ):
                return snapshot, data
        raise CorruptFile(f"{store.uri}: the manifest of catalog version {version}: expected a file, found none")

    def _copy_rows(self, tables: TableBackups, version: int, data: bytes) -> BackedUp:
        """Copy the manifest of the catalog version, and the files of its rows."""
        store = self.catalog.store
        last = tables.last_inventory(MANIFEST_TABLE)
        sha256, written = tables.store_manifest(data, {each.sha256 for each in last.versions})
        placed = TableFiles(store, MANIFEST_TABLE).placed(parse_manifest_file(data))
        keys = sorted({each.key for each in placed if each.key is not None})
        sizes = {key: meta.size for key, meta in zip(keys, store.require(keys), strict=True)}
        there = {meta.path: meta.size for meta in self.destination.list(f"{FILES}/{MANIFEST_TABLE}")}
        stored, copied, more = tables.copy_files(sizes, there, last)
        inventory = Inventory(MANIFEST_TABLE, (StoredVersion(None, version, len(data), sha256),), stored, log=None)
        return BackedUp(tables.store_inventory(MANIFEST_TABLE, inventory), (), (), copied, written + more)

    def _write_record(self, record: BackupRecord) -> None:
        key = record_key(record.id)
        outcome = claim_slot(self.destination, key, record.encode())
        if not isinstance(outcome, SlotWon):
            raise StorageUnknown(f"{self.destination.object_uri(key)}: the record may be written, or not: {outcome}")


def version_at(catalog: StoredCatalog, moment_ms: int) -> int:
    """The newest catalog version that was committed at or before a time, in milliseconds since the epoch.

    One request for each version that is younger. Raises TableVersionNotFoundError (11).
    """
    catalog.snapshot()
    before: int | None = None
    while page := catalog.table.history(_HISTORY, before):
        for entry in page:
            if entry.timestamp_ms <= moment_ms:
                return entry.version
        before = page[-1].version
    moment = datetime.fromtimestamp(moment_ms / 1_000, UTC)
    raise TableVersionNotFoundError(f"no kept catalog version was committed at or before {moment:%Y-%m-%dT%H:%M:%SZ}")


class _Pin:
    """The pin of the version that is backed up. Thread-safe."""

    def __init__(self, namespace: DirectoryNamespace, name: str, reason: str) -> None:
        self.version = 0
        self._namespace = namespace
        self._name = name
        self._reason = reason
        self._lock = threading.Lock()
        self._set_at = elapsed_clock()

    def set(self, version: int | None) -> None:
        """Set it, or set it anew. Tried again where the catalog is busy, or its answer was lost."""
        request = {"name": self._name, "version": version, "seconds": _PINNED, "reason": self._reason}
        now = elapsed_clock()
        retrying = Retrying(
            stop=stop_after_attempt(_TRIES),
            wait=wait_random_exponential(multiplier=0.1, max=5),
            retry=retry_if_exception_type(ServiceUnavailableError),
            reraise=True,
        )
        answer = retrying(self._namespace.write, "pin_catalog_version", request)
        self.version = cast("PinJson", answer.body["pin"])["version"]
        self._set_at = now

    def renew(self) -> None:
        """Set it anew if that was not done lately. Raises as `check`."""
        if elapsed_clock() - self._set_at < _RENEWED:
            return
        with self._lock:
            if (before := self._set_at) + _RENEWED <= elapsed_clock():
                self._check_there()
                self.set(self.version)
                self._check_in_time(before)

    def check(self) -> None:
        """Raise ServiceUnavailableError (17) unless it has held all the time: else files may have gone meanwhile."""
        with self._lock:
            self._check_there()
            self._check_in_time(self._set_at)

    def _check_there(self) -> None:
        pin = self._namespace.catalog.table.refresh_by_listing().pin(self._name)
        if pin is None or pin.version != self.version:
            raise ServiceUnavailableError(
                f"pin {self._name} of catalog version {self.version} is gone before its time: files may be missing; "
                "there is no backup, repeat the call"
            )

    def _check_in_time(self, set_at: float) -> None:
        """Raise it if a garbage collection may have ended the pin that was set at `set_at`, by now."""
        elapsed = elapsed_clock() - set_at
        if elapsed >= _PINNED:
            raise ServiceUnavailableError(
                f"pin {self._name} of catalog version {self.version} was not renewed for {elapsed:,.0f} s, expected "
                f"less than {_PINNED:,}: files may be missing; there is no backup, repeat the call"
            )

    def remove(self) -> None:
        """Remove it. What cannot be removed ends by itself within an hour."""
        try:
            self._namespace.write("unpin_catalog_version", {"name": self._name})
        except (LanceNamespaceError, LanceCoreError) as error:
            _log.warning("pin %s stays until its time is over: %s", self._name, error)


@contextmanager
def _pinned(catalog: StoredCatalog, name: str, version: int | None, destination: str) -> Iterator[_Pin]:
    pin = _Pin(DirectoryNamespace(catalog=catalog), name, f"backup to {destination}")
    pin.set(version)
    try:
        yield pin
    finally:
        pin.remove()


def _check_apart(root: ObjectStore, destination: ObjectStore) -> None:
    if root.contains(destination) or destination.contains(root):
        raise InvalidInputError(f"expected a destination apart from the root {root.uri}, found {destination.uri}")
