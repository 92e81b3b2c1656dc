"""Home: what is here, what happened last, and how the server is."""

from __future__ import annotations

from typing import Final

from namespace_client.errors import CommitRejected
from namespace_client.health import ServerHealth
from namespace_console.visits import Shown, Visit

LATEST: Final = 10
"""Lines of the log."""
WITHIN: Final = 200
"""Catalog versions that are looked at for them."""


def show(visit: Visit) -> Shown:
    """The page: four requests, whatever there is in the catalog."""
    log = visit.catalog.log(LATEST, below=visit.version + 1, within=WITHIN)
    return visit.page("home.html", "Home", log=log, health=_health(visit))


def _health(visit: Visit) -> ServerHealth | None:
    """How the server is, None for visitors who may not see all of the catalog, and where nothing is measured."""
    if not visit.catalog.can("see", catalog=True).allowed:  # else each visit would be an attempt that is refused
        return None
    try:
        return visit.catalog.health()
    except CommitRejected:
        return None
