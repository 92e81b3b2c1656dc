"""Detects the loss of the newest version of `__manifest` (rule F7).

The newest version is the file with the highest number. When that very file is lost while no server runs, the catalog
goes back by one version, and no other file names the lost one. So the sweep notes the newest version that it saw in a
second file, and the first sweep of a process compares.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any

import orjson

from lance_core.storage.port import ObjectStore
from namespace_server.directory.manifest_table.table import ManifestTable
from namespace_server.directory.model.root_layout import NEWEST_VERSION_NOTE
from namespace_server.directory.model.snapshot import CatalogSnapshot

logger = logging.getLogger(__name__)


class LostVersionCheck:
    """Compares the catalog with the note, and writes the note.

    The note lags behind by an interval of the sweep at most. It decides nothing.
    """

    def __init__(self, store: ObjectStore, table: ManifestTable) -> None:
        self._store = store
        self._table = table
        self._noted: int | None = None

    def compare(self, snapshot: CatalogSnapshot) -> None:
        """Note the version of `snapshot` if it is the highest so far; log an error if the note names a higher one.

        Another process may have committed and written the note since `snapshot` was read: before a loss is reported,
        storage is listed again. Nothing is written to a root that is not managed. Raises as `ManifestTable.refresh`.
        """
        if self._noted is None:
            found = self._read()
            noted = found.get("version", 0)
            if noted > snapshot.version:
                snapshot = self._table.refresh_by_listing()
            self._noted = noted
            if noted > snapshot.version:
                committed_at = datetime.fromtimestamp(found.get("timestamp_ms", 0) / 1_000, UTC)
                logger.error(
                    "the catalog went back: version %d was committed at %s, the newest on storage is %d; restore the "
                    "missing files of __manifest/_versions from a backup, for what they changed is missing",
                    self._noted,
                    committed_at.isoformat(timespec="seconds"),
                    snapshot.version,
                )
        if snapshot.managed and snapshot.version > self._noted:
            content = orjson.dumps({"version": snapshot.version, "timestamp_ms": snapshot.timestamp_ms})
            self._store.put(NEWEST_VERSION_NOTE, content, durable=False)
            self._noted = snapshot.version

    def _read(self) -> dict[str, Any]:
        data = self._store.find(NEWEST_VERSION_NOTE)
        try:
            found = orjson.loads(data) if data is not None else None
        except orjson.JSONDecodeError:
            found = None
        if isinstance(found, dict) and all(isinstance(found.get(name), int) for name in ("version", "timestamp_ms")):
            return found
        return {}
