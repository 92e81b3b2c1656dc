"""What differs between two catalog versions."""

from __future__ import annotations

from typing import Final

from namespace_console.visits import Page, Shown, Visit

TABLES: Final = 25
"""Tables of one page."""
WITHIN: Final = 5_000
"""Catalog versions between the two, at most."""


def show(visit: Visit) -> Shown:
    """The tables that differ: one request for 500 versions between, and two for each table."""
    after = visit.number("after")
    after = visit.version if after is None else after
    before = visit.number("before")
    before = max(after - 1, 0) if before is None else before
    diff = visit.catalog.diff(before, after, skip=visit.number("skip") or 0, limit=TABLES, within=WITHIN)
    return Page("diff.html", "Differences", {"diff": diff})
