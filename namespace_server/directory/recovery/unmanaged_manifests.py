"""Unmanaged manifests under canonical names: quarantined, committed again where that is possible, and reported (M6).

A quarantined file is finished once a record of state `foreign` has its name. So the next sweep of any process finishes
the work of a process that died (invariant 13). `recommits` finds the transactions that can be committed again.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final

import orjson
from lance_namespace.errors import LanceNamespaceError, ServiceUnavailableError

from lance_core.errors import AlreadyExists, InvalidTransaction, LanceCoreError, NotFound, StorageError
from lance_core.format.manifest import ManifestFile, parse_manifest_file
from lance_core.storage.port import ObjectStore
from lance_core.transaction.lineage import lineage_break
from lance_core.versions import ManifestLocation, find_contents, list_versions
from namespace_server.directory.committing.record_housekeeping import RecordHousekeeping
from namespace_server.directory.manifest_table.table import ManifestTable
from namespace_server.directory.manifests.committed_transactions import CommittedTransactions
from namespace_server.directory.manifests.conditional_removal import remove_if
from namespace_server.directory.manifests.manifest_reader import ManifestReader, has_row, is_row, is_whole
from namespace_server.directory.manifests.quarantine import QuarantinedFile, parsed
from namespace_server.directory.model.entries import RecordEntry, VersionEntry
from namespace_server.directory.model.errors import CatalogDamaged
from namespace_server.directory.model.object_ids import ObjectId
from namespace_server.directory.model.operations import Batch, CommitTransaction
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.recovery.recommits import Recommits, Unmanaged
from namespace_server.durations import elapsed_clock
from namespace_server.observability.observation import SILENT, Observer

logger = logging.getLogger(__name__)

_LOOKS = 8
"""Searches for files above a taken name before the name is repaired: others go on meanwhile."""
_CHAINS_AT_ONCE: Final = 64
"""Chains whose names are repaired at the same time. Threads that repair one name would fail each other's steps."""
_WATCHED = 60.0
"""Seconds for which each sweep looks for versions built on a file after it was dealt with in quarantine."""
_LISTING_INTERVAL = 60.0
"""Seconds between two listings of the quarantine on a bucket, for those that other processes moved there."""
_LONG_LISTING = 0.05
_REST = 20
"""After a listing of the quarantine that took long (seconds), so many times as long is waited for the next one."""
_AT_ONCE: Final = 100
"""The most transactions of a chain that are committed again by one flip. Those above follow with the next one."""
_BRANCH_DELETED: Final = "its branch was deleted with it"


class MustFollow(Exception):
    """Commits of others below in the chain have to be committed again first, or to be moved to quarantine."""


class UnmanagedManifests:
    """Repairs names that other writers took (it is the promoter's `NameRepair`), and keeps track of the quarantine."""

    def __init__(
        self,
        store: ObjectStore,
        table: ManifestTable,
        reader: ManifestReader,
        transactions: CommittedTransactions,
        record_housekeeping: RecordHousekeeping,
        observer: Observer = SILENT,
    ) -> None:
        self._store = store
        self._table = table
        self._quarantine = reader.quarantine
        self._recommits = Recommits(store, reader, transactions)
        self._record_housekeeping = record_housekeeping
        self._observer = observer
        self._pending = True
        self._looked_at = 0.0
        self._listing_took = 0.0
        self._sent: dict[str, QuarantinedFile] = {}
        self._reported: set[str] = set()
        self._compared: set[str] = set()
        self._watched: dict[str, float] = {}
        self._repairing = [threading.Lock() for _ in range(_CHAINS_AT_ONCE)]

    def repair(self, entry: VersionEntry, ours: bytes, theirs: bytes | None) -> None:
        """Give the row's manifest its canonical name; an unmanaged file there, and files built on it, are quarantined.

        `theirs` is None where no unmanaged file has the name of a head: then only files are quarantined that were built
        on an unmanaged file which had it.

        Storage is read first, the newest catalog version after it. The taken name is replaced last: while it is not
        the row's, the next process that finds it starts over. What stood above the name while it was taken was built on
        no version of the catalog from that number on, and its place in quarantine says so (P12).

        Raises:
            NotFound: the row does not exist any more.
            StorageError: a step failed, or the file changed meanwhile.
        """
        with self._repairing[hash(entry.base) % len(self._repairing)]:
            self._repair(entry, ours, theirs)

    def _repair(self, entry: VersionEntry, ours: bytes, theirs: bytes | None) -> None:
        for _ in range(_LOOKS):
            above = self._above(entry)
            self._require_taken(entry, theirs)
            if not self._clear_above(entry, ours, theirs, above):
                break
        if theirs is None:
            return
        if not theirs:  # no manifest, which may be too large to be copied through this process
            self._move(entry.canonical_path, theirs, entry.version)
            self._store.put_if_absent(entry.canonical_path, ours)
            return
        self._keep(entry, theirs)
        meta = self._require_taken(entry, theirs)
        self._store.replace(entry.canonical_path, ours, if_match=meta)

    def _above(self, entry: VersionEntry) -> list[tuple[ManifestLocation, bytes]]:
        """The files above the name of a row, upward."""
        listed = sorted(list_versions(self._store, entry.base), key=lambda found: found.version)
        return [(found, self._contents(found.path)) for found in listed if found.version > entry.version]

    def _require_taken(self, entry: VersionEntry, theirs: bytes | None) -> str:
        """The e_tag of the unmanaged file that has the name of a row. Raises `StorageError` if it has it no more."""
        if theirs is None:
            return ""
        meta = self._store.head(entry.canonical_path)
        if self._contents(entry.canonical_path) != theirs or meta.e_tag is None:
            raise StorageError(f"{entry.canonical_path} changed while it was repaired")
        return meta.e_tag

    def _clear_above(
        self, entry: VersionEntry, ours: bytes, theirs: bytes | None, above: Sequence[tuple[ManifestLocation, bytes]]
    ) -> bool:
        """Quarantine the versions built on an unmanaged file under the name of a head, top down; whether any was.

        Raises `NotFound` if the newest catalog version does not have the row.
        """
        snapshot = self._table.refresh()
        table_id = snapshot.table_at(entry.location)
        row = None if table_id is None else snapshot.version_entry(table_id, entry.branch, entry.version)
        head = None if table_id is None else snapshot.head(table_id, entry.branch)
        if head is None or row is None or row.identity != entry.identity:
            raise NotFound(f"row of {entry.canonical_path}, which holds an unmanaged file")
        self._pending = True
        unmanaged = _not_built_on(ours, theirs, above) if head.version == entry.version else []
        for found, data in reversed(unmanaged):
            self._move(found.path, data, entry.version + (theirs is None))
        return bool(unmanaged)

    def quarantine_above(self, head: VersionEntry, sha256: str) -> None:
        """Quarantine the files above a head, from the top down, if the lowest one has this SHA-256.

        That file is never adopted (P5). While it stands there, stock writers build on it, and none of their versions
        can be committed. Storage is read first, the newest catalog version after it. Raises `StorageError`.
        """
        above = self._above(head)
        snapshot = self._table.refresh()
        table_id = snapshot.table_at(head.location)
        row = None if table_id is None else snapshot.head(table_id, head.branch)
        if row is None or row.identity != head.identity or not above:
            return
        if hashlib.sha256(above[0][1]).hexdigest() == sha256:
            for found, data in reversed(above):
                self._move(found.path, data, head.version + 1)

    def quarantined_paths(self) -> frozenset[str]:
        """The former keys of the files that are in quarantine now."""
        return frozenset(item.path for item in self._quarantine.files())

    def give_up(self, bases: Collection[str], snapshot: CatalogSnapshot) -> None:
        """Report the quarantined files of deleted branches, with these roots, as not committed.

        Without a report they would be committed to branches that are made again under these names. One listing. Raises
        `StorageError`.
        """
        for item in self._quarantine.files() if bases else ():
            if item.base in bases and item.name not in self._reported and snapshot.record(item.name) is None:
                self._write_report(item, _BRANCH_DELETED)

    def recommits(self, is_stopping: Callable[[], bool] = lambda: False) -> list[Batch]:
        """Batches that commit again, with their own uuids, the transactions of quarantined files, as far as these wait.

        `conclude` takes the verdicts, and the next call gives those that follow: of each chain they are committed in
        order, at most 100 appends with each other and every other one alone. A file that cannot be committed again is
        reported here; a row's own manifest is put back (G22). A file that fails is left for later. It delays only those
        above it in its chain that are no appends. Once `is_stopping` says so, all that is left waits.
        """
        now = elapsed_clock()
        rest = _REST * self._listing_took if self._listing_took > _LONG_LISTING else 0.0
        interval = max(0.0 if self._store.local else _LISTING_INTERVAL, rest)
        if not (self._pending or self._sent or now - self._looked_at >= interval):
            return []
        self._pending, self._looked_at = False, now
        self._sent.clear()  # files without a conclusion are met again here
        try:
            kept = self._quarantine.files()
            self._listing_took = elapsed_clock() - now
            snapshot = self._table.refresh()  # after the files: a row's own file has its row by then
        except LanceCoreError:
            self._pending = True
            raise
        batches: list[Batch] = []
        for base, group in groupby(kept, key=attrgetter("base")):
            items = list(group)
            if any(item.name not in self._compared for item in items):
                self._watched[base] = now
            batches += self._recommits_of(items, snapshot, is_stopping)
            if now - self._watched.get(base, -_WATCHED) < _WATCHED:
                self._clear_above_gap(base, snapshot)
        return batches

    def _clear_above_gap(self, base: str, snapshot: CatalogSnapshot) -> None:
        """Quarantine a writer's commits on a file that is in quarantine, above the name that is vacant since.

        It is never adopted. Until the catalog commits a version that needs the vacant name, readers by path take it
        for the newest one.
        """
        location, _, branch = base.partition("/tree/")
        table_id = snapshot.table_at(location)
        head = None if table_id is None else snapshot.head(table_id, branch or None)
        try:
            above = [] if head is None else self._above(head)
            if head is not None and above and above[0][0].version > head.version + 1:
                self.quarantine_above(head, hashlib.sha256(above[0][1]).hexdigest())
        except LanceCoreError as error:
            logger.warning("unmanaged versions above the head of %s were left in place: %s", base, error)

    def _recommits_of(
        self, items: Sequence[QuarantinedFile], snapshot: CatalogSnapshot, is_stopping: Callable[[], bool]
    ) -> list[Batch]:
        """The same of one chain."""
        batches: list[Batch] = []
        failed = False
        for item in items:
            if len(batches) == _AT_ONCE or is_stopping():
                self._pending = True
                break
            try:
                batch = self._deal_with(item, items, snapshot, waits=failed or bool(batches))
            except MustFollow:
                self._pending = True
                break
            except LanceCoreError as error:
                self._pending = True
                logger.error("%s is left in quarantine for now: %s", item.kept_at, error)
                failed = True
                continue
            if batch is not None:
                batches.append(batch)
                if not _is_append(batch):
                    self._pending = True
                    break
        return batches

    def conclude(self, batch_uuid: str, error: LanceNamespaceError | None) -> None:
        """Report the outcome of a recommit: committed if there is no `error`. Unknown outcomes are retried (F1)."""
        item = self._sent.pop(batch_uuid)
        if isinstance(error, ServiceUnavailableError | CatalogDamaged):
            self._pending = True
            return
        self._write_report(item, None if error is None else str(error))

    def _deal_with(
        self, item: QuarantinedFile, chain: Sequence[QuarantinedFile], snapshot: CatalogSnapshot, *, waits: bool
    ) -> Batch | None:
        """Put a file back, report it, or return the batch that commits its transaction again.

        Raises `MustFollow` for any but an append if it `waits` for those below.
        """
        if item.name in self._compared:
            return None
        data = find_contents(self._store, item.kept_at)
        if data is None:
            return None
        file = parsed(data)
        place = _place_of(item, file, snapshot)
        if self._put_back(item, file, place, data, snapshot):
            return None
        if item.name in self._reported or snapshot.record(item.name) is not None:
            self._compared.add(item.name)
            return None
        if waits and file is not None and file.operation != "append":
            raise MustFollow
        self._require_below(item, chain, place, snapshot)
        try:
            operation = self._again(item, file, place, data, chain, snapshot)
        except InvalidTransaction as error:
            self._write_report(item, str(error))
            return None
        if operation is None:
            self._write_report(item, None)
            return None
        uid = str(uuid.uuid4())
        self._sent[uid] = item
        return Batch(uid, (operation,), request_hash=uid, message=f"recommit of an unmanaged commit at {item.path}")

    def _require_below(
        self,
        item: QuarantinedFile,
        chain: Sequence[QuarantinedFile],
        place: tuple[ObjectId, str | None] | None,
        snapshot: CatalogSnapshot,
    ) -> None:
        """Raise `MustFollow` while files that its writer has built it on are on their way to quarantine.

        They are moved from the top down: what its transaction read is known when all of them are there.
        """
        first = item.version if item.unmanaged_from is None else item.unmanaged_from
        missing = set(range(first, item.version)) - {each.version for each in chain}
        if not missing or place is None:
            return
        standing = [found for found in list_versions(self._store, item.base) if found.version in missing]
        for found in standing:
            row, data = snapshot.version_entry(*place, found.version), find_contents(self._store, found.path)
            if row is None or data is None or not is_row(row, data):
                raise MustFollow
        missing -= {found.version for found in standing}
        if any(each.base == item.base and each.version in missing for each in self._quarantine.files()):
            raise MustFollow  # moved since the files of the chain were listed

    def _again(
        self,
        item: QuarantinedFile,
        file: ManifestFile | None,
        place: tuple[ObjectId, str | None] | None,
        data: bytes,
        chain: Sequence[QuarantinedFile],
        snapshot: CatalogSnapshot,
    ) -> CommitTransaction | None:
        """The batch that commits a file's transaction again; None if it is committed. Raises `InvalidTransaction`."""
        removed = snapshot.removed_versions(item.base)
        if removed and hashlib.sha256(data).hexdigest() in removed:
            raise InvalidTransaction(_BRANCH_DELETED)
        if file is None:
            raise InvalidTransaction("it is no manifest")
        if file.transaction is None or file.operation in {None, "clone"}:
            raise InvalidTransaction(f"its operation, {file.operation}, cannot be committed again")
        if place is None:
            raise InvalidTransaction("its table is not in the catalog any more")
        others = [each for each in chain if each != item]
        return self._recommits.operation(Unmanaged(item, file), others, place, snapshot)

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

    def _write_report(self, item: QuarantinedFile, obstacle: str | None) -> None:
        """The record that reports it (invariant 13: no unmanaged commit disappears without a trace)."""
        content: Mapping[str, str | None] = {
            "path": item.path,
            "kept_at": item.kept_at,
            "outcome": "committed again" if obstacle is None else "kept aside",
            "reason": obstacle,
        }
        self._reported.add(item.name)
        self._observer.recommitted(there=obstacle is None)
        if obstacle is not None:
            logger.error(
                "the commit by path at %s is not in the table, and stays at %s: %s", item.path, item.kept_at, obstacle
            )
        now_ms = time.time_ns() // 1_000_000
        self._record_housekeeping.report(
            [RecordEntry(item.name, "foreign", timestamp_ms=now_ms, results=orjson.dumps(content))]
        )

    def _keep(self, entry: VersionEntry, data: bytes) -> None:
        item = QuarantinedFile.new(entry.canonical_path, entry.version)
        self._store.put_if_absent(item.kept_at, data)
        self._note(item)

    def _contents(self, path: str) -> bytes:
        """The bytes of a file; empty for one that is too large to be a manifest. Raises `NotFound`, `StorageError`."""
        data = find_contents(self._store, path)
        if data is None:
            raise NotFound(f"{path}: removed meanwhile")
        return data

    def _move(self, path: str, judged: bytes, unmanaged_from: int) -> None:
        """Move a file to quarantine; move it back if its bytes are not those `judged`: the name was repaired.

        Work that cannot be finished here is found in quarantine (G22).
        """
        item = QuarantinedFile.new(path, unmanaged_from)
        self._pending = True
        if judged or self._store.local:
            self._store.rename_if_absent(path, item.kept_at)
        else:  # a bucket copies it inside the service; no other process has the new name
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


def _is_append(batch: Batch) -> bool:
    return all(isinstance(each, CommitTransaction) and each.transaction.HasField("append") for each in batch.operations)


def _not_built_on(
    ours: bytes, theirs: bytes | None, above: Iterable[tuple[ManifestLocation, bytes]]
) -> list[tuple[ManifestLocation, bytes]]:
    """Of canonical files above a head whose name was taken, ascending, those that were not built on the head.

    A file that fits both the head and the file that took its name counts as built on that file, which its writer saw.
    """
    below = parse_manifest_file(ours)
    taker = None if theirs is None else parsed(theirs)
    unmanaged: list[tuple[ManifestLocation, bytes]] = []
    for found, data in above:
        file = parsed(data)
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


def _continues(below: ManifestFile, file: ManifestFile, named: int) -> bool:
    return file.version == named == below.version + 1 and lineage_break(below, file) is None
