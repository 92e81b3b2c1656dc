"""Pins and intents end by fences, by the store's clock (rules G10, G12 and G30)."""

from __future__ import annotations

from namespace_server.directory.model.collector_rows import Lease
from namespace_server.directory.model.entries import Changes, changes_of
from namespace_server.directory.model.snapshot import CatalogSnapshot


def end_leases(snapshot: CatalogSnapshot, now_ms: int) -> Changes:
    """The changes that end the pins and intents whose time is over at `now_ms`, since the epoch.

    Those of `snapshot` have times by the store (`date_limits`).

    No server and no job compares: until this flip they count, and after it they do not, for everybody.
    """
    leases: list[Lease] = [*snapshot.pins(), *snapshot.intents()]
    return changes_of(removes=[lease.object_id for lease in leases if lease.until_ms and lease.until_ms < now_ms])
