"""Operations of the published namespace API that this server does not serve: 406 with code 0, by name.

A client that gets 404 cannot tell an operation that is missing from a table that is.
"""

from __future__ import annotations

from fastapi import APIRouter
from lance_namespace.errors import UnsupportedOperationError
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from namespace_server.rest.service import CatalogService

_TABLE_OPERATIONS = {
    "backfill_column": "alter_table_backfill_columns",
}

OPERATIONS: tuple[tuple[str, str, str], ...] = (
    *((name, "POST", f"/v1/table/{{id}}/{path}") for path, name in _TABLE_OPERATIONS.items()),
    ("create_materialized_view", "POST", "/v1/materialized_view/{id}/create"),
    ("refresh_materialized_view", "POST", "/v1/materialized_view/{id}/refresh"),
)
"""Operation, method and path."""


class Unsupported:
    """Refuses the requests of one operation, after authentication, without reading the body (an ASGI application)."""

    __slots__ = ("_operation", "_path")

    def __init__(self, operation: str, path: str) -> None:
        self._operation = operation
        self._path = path

    async def __call__(self, scope: Scope, _receive: Receive, _send: Send) -> None:
        """Raises `UnsupportedOperationError` (0), `UnauthenticatedError` (16)."""
        scope["route_path"] = self._path
        service: CatalogService = scope["app"].state.service
        scope["principal"] = service.authenticator.principal(dict(scope["headers"]))
        raise UnsupportedOperationError(f"Not supported: {self._operation}")


router = APIRouter(
    routes=[Route(path, Unsupported(name, path), methods=[method], name=name) for name, method, path in OPERATIONS]
)
