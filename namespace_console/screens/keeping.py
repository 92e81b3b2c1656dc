"""What is kept, and for whom: dropped tables, pins, intents and cursors."""

from __future__ import annotations

from typing import Final

from namespace_client.wire import DroppedTable
from namespace_console.visits import Shown, Visit

DROPS: Final = 100
"""Dropped tables of one page."""


def show_drops(visit: Visit) -> Shown:
    """The dropped tables that can come back: two requests."""
    after = visit.text("after")
    request = {"limit": DROPS, **({} if after is None else {"page_token": after})}
    answer = visit.catalog.access.read("list_dropped_tables", request, at=visit.version)
    drops = [DroppedTable.of(row) for row in answer["tables"]]
    return visit.page("drops.html", "Drops", drops=drops, more=answer.get("page_token"))


def show_kept(visit: Visit) -> Shown:
    """Pins, intents and cursors of the newest version: four requests."""
    catalog = visit.catalog
    return visit.newest_page(
        "kept.html", "Pins and intents", pins=catalog.pins(), intents=catalog.intents(), cursors=catalog.cursors()
    )
