"""Pins and intents end by fences, by the store's clock (rules G10 and G12)."""

from __future__ import annotations

from namespace_server.directory.model.collector_rows import IntentEntry, PinEntry
from namespace_server.directory.model.entries import Changes, changes_of
from namespace_server.directory.model.snapshot import CatalogSnapshot


def end_leases(snapshot: CatalogSnapshot, now_ms: int) -> Changes:
    """The changes that end the pins and intents whose time is over at `now_ms`, since the epoch.

    No server and no job compares: until this flip they count, and after it they do not, for everybody.
    """
    leases: list[PinEntry | IntentEntry] = [*snapshot.pins(), *snapshot.intents()]
    return changes_of(removes=[lease.object_id for lease in leases if lease.until_ms and lease.until_ms < now_ms])
