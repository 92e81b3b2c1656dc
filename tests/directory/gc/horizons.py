"""Fences of a catalog, without a collection."""

from __future__ import annotations

import os
import time
from pathlib import Path

from namespace_server.directory.model.collector_rows import CollectorEntry
from namespace_server.directory.model.entries import changes_of
from tests.directory.tables import Ground

HOUR = 3_600
WEEK = 7 * 24 * HOUR


def move_horizon(ground: Ground, *, ahead: int = -WEEK) -> None:
    """Move the horizon to so many seconds from now; what nothing names may go after a week."""
    entry = CollectorEntry(horizon=int(time.time()) + ahead, run="r", grace=WEEK)
    ground.catalog.committer.commit_changes(lambda _: changes_of([entry]))


def age(path: Path, seconds: int = WEEK + HOUR) -> None:
    """Make a file older."""
    written = path.stat().st_mtime - seconds
    os.utime(path, (written, written))
