"""The flip on which a collection rests (rules G1 and G4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from namespace_server.directory.manifest_table.schema import COLLECTED, MANAGED_FLAG, WRITER_FLAGS_KEY
from namespace_server.directory.model.collector_rows import CollectorEntry
from namespace_server.directory.model.entries import Changes, changes_of
from namespace_server.directory.model.snapshot import CatalogSnapshot

FENCE_METADATA: Final[Mapping[str, str]] = {WRITER_FLAGS_KEY: str(MANAGED_FLAG | COLLECTED)}
"""Table metadata of a fence: releases that do not know the rules of collection stop to write (G25)."""


def plan_fence(
    snapshot: CatalogSnapshot, *, horizon: int, oldest: int, run: str, now_ms: int, settings: Mapping[str, str]
) -> Changes:
    """The changes that move the horizon (seconds since the epoch) and the oldest kept catalog version.

    Neither goes back; the oldest kept version is never above the snapshot. `settings` are set, others stay.
    """
    before = snapshot.collector
    grace = now_ms // 1_000 - horizon
    entry = CollectorEntry(
        max(before.horizon, horizon),
        max(before.oldest, min(oldest, snapshot.version)),
        run,
        now_ms,
        {**before.settings, **settings},
        min(grace, before.grace) if before.run else grace,
    )
    return changes_of([entry])
