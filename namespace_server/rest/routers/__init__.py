"""The routes.

operations     operations on objects of the catalog, one row for each
unsupported    published operations that this server does not serve
caller         who the caller of a request is; who did what from where, for auditors
health         probes, and the metrics of the server
documentation  the OpenAPI document and the pages that show it
"""

from __future__ import annotations

from namespace_server.rest.routers import caller, documentation, health, unsupported
from namespace_server.rest.routers.operations import OPERATIONS
from namespace_server.rest.routing import Route

ROUTES: tuple[Route, ...] = (
    *OPERATIONS,
    *caller.ROUTES,
    *health.ROUTES,
    *documentation.ROUTES,
    *unsupported.ROUTES,
)
"""All routes."""

__all__ = ["OPERATIONS", "ROUTES"]
