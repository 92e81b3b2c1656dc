"""Events as they come: the newest lines of the log, and those that follow."""

from __future__ import annotations

from typing import Final

from namespace_client.events import CatalogEvent
from namespace_client.log import entries_of_event
from namespace_console.visits import Page, Shown, Visit, whole_number

LINES: Final = 50
MOST: Final = 200
"""Events that are told at once. The next request tells the others."""
MOST_LINES: Final = 100
"""Lines that a page is given at once: of many clients at work the newest ones, and how many others there were."""


def show(visit: Visit) -> Shown:
    """The newest events: two requests. A script asks for those that follow."""
    log = visit.catalog.log(LINES, below=visit.version + 1, within=4 * LINES, housekeeping=True)
    return visit.page("events.html", "Events", log=log, follows=visit.at is None and visit.text("paused") is None)


def news(visit: Visit) -> Shown:
    """The events after a version, for the script of that page: one request."""
    since = whole_number("since", visit.path["since"]) or 0
    page = visit.catalog.access.events(since, limit=MOST)
    events = [CatalogEvent.of(row) for row in page.events]
    log = [entry for event in reversed(events) for entry in entries_of_event(event)]
    left_out = max(len(log) - MOST_LINES, 0)
    return Page("events_news.html", "Events", {"log": log[:MOST_LINES], "left_out": left_out, "since": page.last})
