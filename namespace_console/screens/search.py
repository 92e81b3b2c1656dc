"""Search of tables by parts of their names, as one types."""

from __future__ import annotations

import time
from typing import Final

from namespace_console.visits import Shown, Visit

SHOWN: Final = 50
"""Tables that are shown."""


def show(visit: Visit) -> Shown:
    """The tables that are found: two requests, however many tables there are."""
    text = visit.text("text")
    begun = time.perf_counter()
    found = None if text is None else visit.catalog.access.find_tables(text, SHOWN, at=visit.version)
    seconds = time.perf_counter() - begun
    return visit.page("search.html", "Search", text=text or "", found=found, seconds=seconds)
