"""The ASGI application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.responses import Response
from lance_namespace.errors import LanceNamespaceError
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from namespace_server.rest import exchange, health
from namespace_server.rest.errors import MethodNotAllowed, RouteNotFound
from namespace_server.rest.identity import Authenticator
from namespace_server.rest.port import Catalog
from namespace_server.rest.service import CatalogService


class NamespaceApp(FastAPI):
    """FastAPI, with the namespace API served ahead of its middleware and routes.

    Those look at the decoded path, where a name that holds `%2F` has turned into two segments; and they would take
    more time than a describe.
    """

    def __init__(self, service: CatalogService) -> None:
        super().__init__(openapi_url=None, docs_url=None, redoc_url=None, lifespan=_lifespan, redirect_slashes=False)
        self.state.service = service
        self._service = service
        self.include_router(health.router)
        self.add_exception_handler(HTTPException, _answer_error)
        self.add_exception_handler(LanceNamespaceError, _answer_error)
        self.add_exception_handler(Exception, _answer_error)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the start and the end of the server."""
        if scope["type"] != "http" or not await self._service.serve(scope, receive, send):
            await super().__call__(scope, receive, send)


def create_app(
    namespace: Catalog, authenticator: Authenticator, *, max_body: int = 64 << 20, queue_capacity: int = 4096
) -> NamespaceApp:
    """The application for one catalog. It closes `namespace` when the server ends.

    `max_body` bounds a request body in bytes, `queue_capacity` the changes accepted and not yet answered.
    """
    return NamespaceApp(CatalogService(namespace, authenticator, max_body=max_body, queue_capacity=queue_capacity))


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    service: CatalogService = app.state.service
    service.start()
    try:
        yield
    finally:
        await service.close()


async def _answer_error(request: Request, error: Exception) -> Response:
    """An ErrorResponse for whatever ends in FastAPI: unknown routes, and the probes."""
    if isinstance(error, HTTPException):
        wanted = f"{request.method} {request.url.path}"
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            error = MethodNotAllowed(f"{wanted}: expected GET", ("GET",))
        else:
            error = RouteNotFound(f"{wanted}: no such route")
    status, headers, body = exchange.render_error(error, request.app.state.service.catalog_version)
    return Response(body, status, {name.decode(): value.decode() for name, value in headers})
