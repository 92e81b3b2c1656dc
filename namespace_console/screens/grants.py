"""Who the visitor is, and who may do what."""

from __future__ import annotations

from typing import Final

from namespace_client.grants import CatalogGrant, RoleHolder
from namespace_console.visits import Shown, Visit

GRANTS: Final = 200
"""Grants of one page."""


def show(visit: Visit) -> Shown:
    """Grants, roles, and what the server takes the visitor for: three requests."""
    wanted = {name: value for name in ("principal", "role", "object") if (value := visit.text(name))}
    request: dict[str, object] = {**wanted, "limit": GRANTS}
    after = visit.text("after")
    if after is not None:
        request["page_token"] = after
    answer = visit.catalog.access.read("list_grants", request)
    return visit.newest_page(
        "grants.html",
        "Grants and keys",
        caller=visit.catalog.whoami(),
        in_force=bool(answer["in_force"]),
        grants=[CatalogGrant.of(row) for row in answer["grants"]],
        roles=[RoleHolder.of(row) for row in answer.get("roles") or ()],
        more=answer.get("page_token"),
        wanted=wanted,
    )
