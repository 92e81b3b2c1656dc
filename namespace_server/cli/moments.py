"""Points in the history of a catalog: how they are given, and how times are shown."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from namespace_client import Catalog, CatalogView


def parse_point(text: str) -> int | datetime | str:
    """A catalog version (a number), a time (ISO 8601; local time without a zone), or else the name of a pin."""
    if text.isdecimal():
        return int(text)
    try:
        return datetime.fromisoformat(text).astimezone()
    except ValueError:
        return text


def at_point(catalog: Catalog, point: str | None) -> Catalog | CatalogView:
    """The catalog as it was at a point; as it is without one."""
    return catalog if point is None else catalog.at(parse_point(point))


def shown_moment(moment: datetime | None) -> str:
    """A time in UTC, to the second."""
    return "" if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}"
