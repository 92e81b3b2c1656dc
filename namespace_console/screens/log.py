"""The log of the catalog, and what one of its versions did."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from namespace_client.errors import InvalidCall
from namespace_console.visits import Onward, Page, Shown, Visit, missing, whole_number
from table_data.batch_operations import DELIMITER

LINES: Final = 50
WITHIN: Final = 2_000
"""Catalog versions that are looked at for one page of a filtered log."""


def show(visit: Visit) -> Shown:
    """A line for each batch, newest first: two requests, one more in a quiet catalog, with a filter a few."""
    below = visit.number("below")
    log = visit.catalog.log(
        LINES,
        below=visit.version + 1 if below is None else min(below, visit.version + 1),
        since=moment(visit, "since"),
        until=moment(visit, "until"),
        principal=visit.text("principal"),
        table=visit.text("table"),
        within=WITHIN,
        housekeeping=visit.text("all") is not None,
    )
    filters = {name: visit.text(name) for name in ("table", "principal", "since", "until", "all")}
    shown = {"log": log, "filters": filters, "is_filtered": any(filters.values()), "below": below}
    return visit.page("log.html", "Catalog log", **shown)


def batch(visit: Visit) -> Shown:
    """What a catalog version did: one request; for auditors two."""
    version = whole_number("version", visit.path["version"])
    event = visit.catalog.event(version or 0)
    audited = None
    if visit.text("origin") is not None:
        audited = visit.catalog.history(1, below=event.version + 1, audited=True)[0]
    shown = {"event": event, "tables": {(each.name, each.branch): each for each in event.tables}, "audited": audited}
    return Page("batch.html", f"Catalog version {event.version:,}", shown)


def winner(visit: Visit) -> Shown:
    """The way to the batch that made a version of a table."""
    version = whole_number("version", visit.path["version"])
    path = tuple(visit.path["table"].split(DELIMITER))
    maker = visit.catalog.maker(path, version or 0, branch=visit.text("branch"), within=WITHIN)
    if maker is None:
        raise missing(f"version {version} of {'.'.join(path)} in the newest {WITHIN:,} catalog versions")
    return Onward(visit.links("batch", maker, at=None))


def moment(visit: Visit, name: str) -> datetime | None:
    """A time of the query, in UTC where it names no zone."""
    given = visit.text(name)
    if given is None:
        return None
    try:
        found = datetime.fromisoformat(given)
    except ValueError:
        raise InvalidCall(f"{name}: expected a time such as 2026-03-01T12:00, found {given[:40]!r}") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
