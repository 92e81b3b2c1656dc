"""Events as they come: the newest lines of the log, and those that follow."""

from __future__ import annotations

from typing import Final

from namespace_client.events import CatalogEvent
from namespace_client.log import LogEntry, entries_of_event
from namespace_console.visits import Page, Shown, Visit, whole_number

LINES: Final = 50
FIRST: Final = 4
"""Catalog versions that are asked for first."""
MOST_LINES: Final = 100
"""Lines that a page is given at once: of many clients at work the newest ones."""


def show(visit: Visit) -> Shown:
    """The newest events: two requests. A script asks for those that follow."""
    log = visit.catalog.log(LINES, below=visit.version + 1, within=4 * LINES, housekeeping=True)
    return visit.page("events.html", "Events", log=log, follows=visit.at is None and visit.text("paused") is None)


def news(visit: Visit) -> Shown:
    """The newest events after a version, for the script of that page: two requests, under little load three.

    Those of the newest versions are asked for first: under load they have the batches of many clients.
    """
    since, newest = whole_number("since", visit.path["since"]) or 0, visit.head.version
    first = max(since, newest - FIRST)
    log = _entries(visit, first, newest)
    if len(log) < MOST_LINES and first > since:
        more = (MOST_LINES - len(log)) * FIRST // max(len(log), FIRST)
        end, first = first, max(since, first - more)
        log += _entries(visit, first, end)
    shown = {"log": log[:MOST_LINES], "is_cut": first > since or len(log) > MOST_LINES, "since": max(since, newest)}
    return Page("events_news.html", "Events", shown)


def _entries(visit: Visit, since: int, until: int) -> list[LogEntry]:
    """The lines of the versions after one up to another, newest first."""
    if since == until:
        return []
    events = visit.catalog.access.events(since, limit=max(until - since, 1)).events
    return [entry for row in reversed(events) for entry in entries_of_event(CatalogEvent.of(row))]
