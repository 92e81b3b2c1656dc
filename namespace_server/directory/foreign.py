"""Files that others put under canonical names: set aside, reported, and committed again where that is possible (M6)."""

from __future__ import annotations

import logging
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import orjson

from lance_core.errors import CorruptFile, NotFound, StorageError
from lance_core.format.manifest import ManifestFile, parse_manifest_file
from lance_core.storage.port import ObjectStore
from lance_core.transaction.lineage import lineage_break
from lance_core.versions import list_versions
from namespace_server.directory.operations import Batch, CommitTransaction, ObjectId
from namespace_server.directory.rows import RecordEntry, VersionEntry
from namespace_server.directory.snapshot import CatalogSnapshot
from namespace_server.directory.verification import STAGING

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SetAside:
    """A foreign file that was moved out of the way: from where, to where, and whose table it is."""

    table_id: ObjectId
    branch: str | None
    path: str
    kept_at: str
    file: ManifestFile | None

    def report(self) -> RecordEntry:
        """The row that reports it (invariant 13: no foreign commit disappears without a trace)."""
        content = {
            "path": self.path,
            "kept_at": self.kept_at,
            "table_id": self.table_id,
            "branch": self.branch,
            "transaction_id": None if self.file is None else self.file.identity.transaction_uuid,
        }
        return RecordEntry(
            batch_uuid=str(uuid.uuid4()),
            state="foreign",
            timestamp_ms=time.time_ns() // 1_000_000,
            results=orjson.dumps(content),
        )


class ForeignFiles:
    """Repairs usurped names. `refresh` gives the newest snapshot, `report` makes the trace durable."""

    def __init__(
        self,
        store: ObjectStore,
        refresh: Callable[[], CatalogSnapshot],
        report: Callable[[Iterable[RecordEntry]], None],
    ) -> None:
        self._store = store
        self._refresh = refresh
        self._report = report
        self._waiting: deque[SetAside] = deque()

    def repair(self, entry: VersionEntry, ours: bytes, theirs: bytes) -> None:
        """Put the row's manifest back in its place; what stood there, and what was built on it, is set aside.

        Storage was looked at before; the newest catalog version is looked at here, after it. Raises `StorageError`
        when a step cannot be done, or was overtaken; it may be repeated.
        """
        snapshot = self._refresh()
        table_id = snapshot.table_at(entry.location)
        row = None if table_id is None else snapshot.version_entry(table_id, entry.branch, entry.version)
        if table_id is None or row is None or row.identity != entry.identity:
            raise NotFound(f"row of {entry.canonical_path}, which holds a foreign file")
        aside = [self._keep(table_id, entry.branch, entry.canonical_path, theirs)]
        meta = self._store.head(entry.canonical_path)
        if self._store.get(entry.canonical_path) != theirs or meta.e_tag is None:
            raise StorageError(f"{entry.canonical_path} changed while it was repaired")
        self._store.replace(entry.canonical_path, ours, if_match=meta.e_tag)
        aside += self._set_aside_beyond(snapshot, table_id, entry, ours)
        for item in aside:
            logger.error(
                "foreign commit at %s was set aside to %s: the name belongs to a committed version",
                item.path,
                item.kept_at,
            )
        self._report(item.report() for item in aside)
        self._waiting.extend(aside)

    def recommits(self) -> list[Batch]:
        """Batches that commit the transactions set aside again, as head + 1, with their own uuids; each once."""
        batches: list[Batch] = []
        while self._waiting:
            item = self._waiting.popleft()
            if item.file is None or item.file.transaction is None or item.file.operation in {None, "clone"}:
                continue
            operation = CommitTransaction(item.table_id, item.branch, item.file.transaction)
            uid = str(uuid.uuid4())
            batches.append(
                Batch(uid, (operation,), request_hash=uid, message=f"recommit of a foreign commit at {item.path}")
            )
        return batches

    def _keep(self, table_id: ObjectId, branch: str | None, path: str, data: bytes) -> SetAside:
        kept_at = f"{STAGING}/foreign/{uuid.uuid4()}/{path}"
        self._store.put_if_absent(kept_at, data)
        return SetAside(table_id, branch, path, kept_at, _parsed(data))

    def _set_aside_beyond(
        self, snapshot: CatalogSnapshot, table_id: ObjectId, entry: VersionEntry, ours: bytes
    ) -> list[SetAside]:
        """Canonical files above the head that do not descend from it were built on the usurper."""
        head = snapshot.head(table_id, entry.branch)
        if head is None or head.version != entry.version:
            return []
        below = parse_manifest_file(ours)
        aside: list[SetAside] = []
        for found in list_versions(self._store, entry.base):
            if found.version <= head.version:
                continue
            data = self._store.get(found.path)
            file = _parsed(data)
            if not aside and file is not None and _continues(below, file, found.version):
                below = file
                continue
            aside.append(self._keep(table_id, entry.branch, found.path, data))
            self._store.delete(found.path)
        return aside


def _parsed(data: bytes) -> ManifestFile | None:
    try:
        return parse_manifest_file(data)
    except CorruptFile:
        return None


def _continues(below: ManifestFile, file: ManifestFile, named: int) -> bool:
    return file.version == named == below.version + 1 and lineage_break(below, file) is None
