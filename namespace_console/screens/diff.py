"""What differs between two catalog versions: tables, and rows of one of them."""

from __future__ import annotations

from typing import Final

from namespace_client.errors import InvalidCall
from namespace_client.names import Name
from namespace_client.row_differences import compare_rows
from namespace_console.visits import Page, Shown, Visit
from table_data.batch_operations import DELIMITER

TABLES: Final = 25
"""Tables of one page."""
WITHIN: Final = 5_000
"""Catalog versions between the two, at most."""


def show(visit: Visit) -> Shown:
    """The tables that differ: one request for 500 versions between, and two to four for each table."""
    after = visit.number("after")
    after = visit.version if after is None else after
    before = visit.number("before")
    before = max(after - 1, 0) if before is None else before
    diff = visit.catalog.diff(before, after, skip=visit.number("skip") or 0, limit=TABLES, within=WITHIN)
    return Page("diff.html", "Differences", {"diff": diff})


def show_rows(visit: Visit) -> Shown:
    """Rows of a table that only one of two versions has: four requests, and those for the rows that are read."""
    table = tuple(visit.path["table"].split(DELIMITER))
    before, after = visit.number("before"), visit.number("after")
    if before is None or after is None:
        raise InvalidCall("before, after: expected two catalog versions, found one or none")
    old = visit.text("old")
    old_id = table if old is None else tuple(old.split(DELIMITER))
    diff = compare_rows(visit.catalog.access, table, before, after, old_id=old_id)
    return Page("row_diff.html", f"Differences of {Name(table)}", {"diff": diff, "old_id": old_id})
