"""Home: what is here, what happened last, and how the server is."""

from __future__ import annotations

from typing import Final

from namespace_client.catalog_overview import CatalogOverview
from namespace_client.errors import AccessRefused, CommitRejected
from namespace_client.health import ServerHealth
from namespace_console.visits import Shown, Visit

LATEST: Final = 10
"""Lines of the log."""
WITHIN: Final = 200
"""Catalog versions that are looked at for them."""


def show(visit: Visit) -> Shown:
    """The page: five requests, whatever there is in the catalog."""
    log = visit.catalog.log(LATEST, below=visit.version + 1, within=WITHIN)
    sees_all = visit.catalog.can("see", catalog=True).allowed  # else each visit would be an attempt that is refused
    figures, health = (_figures(visit), _health(visit)) if sees_all else (None, None)
    warnings = [each for told in (figures, health) if told is not None for each in told.warnings]
    return visit.page("home.html", "Home", log=log, figures=figures, health=health, warnings=warnings)


def _figures(visit: Visit) -> CatalogOverview | None:
    """What is in the catalog, None where storage cannot be asked, or the visitor sees the catalog and nothing in it."""
    try:
        return visit.catalog.figures()
    except (AccessRefused, CommitRejected):
        return None


def _health(visit: Visit) -> ServerHealth | None:
    """How the server is, None where nothing is measured, or the visitor sees the catalog and nothing in it."""
    try:
        return visit.catalog.health()
    except (AccessRefused, CommitRejected):
        return None
