"""When a root was last backed up: a note at the root, for the metrics of its servers. It decides nothing."""

from __future__ import annotations

import logging
from math import inf
from typing import Final

import orjson

from lance_core.errors import StorageError
from lance_core.storage.port import ObjectStore
from namespace_server.directory.model.root_layout import BACKUP_NOTE
from namespace_server.durations import elapsed_clock

logger = logging.getLogger(__name__)

_INTERVAL: Final = 600.0
"""Seconds between two reads of the note."""


class BackupNote:
    """The note of the last backup of a root. One thread looks at it."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._looked_at = -inf
        self._last: float | None = None

    def write(self, began: float) -> None:
        """Note a complete backup that began at that time, unless a later one is noted. Raises `StorageError`."""
        noted = self._find()
        if noted is None or noted < began:
            self._store.put(BACKUP_NOTE, orjson.dumps({"timestamp_ms": round(began * 1_000)}), durable=False)

    @property
    def last(self) -> float | None:
        """When the last backup began, in seconds since the epoch, as it was read last; None if none is known."""
        return self._last

    def look(self) -> None:
        """Read the note, unless that was done within ten minutes. What cannot be read now is read later."""
        now = elapsed_clock()
        if now - self._looked_at < _INTERVAL:
            return
        self._looked_at = now
        try:
            self._last = self._find()
        except StorageError as error:
            logger.warning("the time of the last backup is not known: %s", error)

    def _find(self) -> float | None:
        data = self._store.find(BACKUP_NOTE)
        try:
            return None if data is None else float(orjson.loads(data)["timestamp_ms"]) / 1_000
        except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
            return None
