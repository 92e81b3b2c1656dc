"""The application: middleware around the routes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Collection, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Protocol

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from namespace_server.answer import Answer
from namespace_server.background.scheduler import BackgroundJob
from namespace_server.data.change_request import OPERATOR
from namespace_server.directory.json_api import JsonCatalog
from namespace_server.read_only import NEVER_READ_ONLY, ReadOnlySwitch
from namespace_server.rest.client_address import ClientAddresses
from namespace_server.rest.dialects.databases import databases
from namespace_server.rest.dialects.lancedb import LancedbDialect
from namespace_server.rest.identity import Authenticator
from namespace_server.rest.middleware import ErrorHandler, HostGuard, RequestContext, check_head
from namespace_server.rest.request.limits import RequestLimits
from namespace_server.rest.routers import ROUTES, documentation
from namespace_server.rest.routing import Router
from namespace_server.rest.service import CatalogService
from table_data.requests.table_requests import TableRequest

if TYPE_CHECKING:
    from namespace_server.observability.access_log import AccessLog
    from namespace_server.observability.audit.log import RefusedAttemptLog
    from namespace_server.observability.metrics.measures import ServerMetrics
    from namespace_server.observability.tracing import Tracing
    from namespace_server.rest.forwarding import Forwarding

_EXPOSED = ("x-lance-catalog-version", "x-request-id")


class MountedApplication(Protocol):
    """An ASGI application for HTTP that a server serves beside its routes, below a path of its own.

    It judges nobody: what it has to show of the catalog it asks the server for, with the credentials of its caller.
    """

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Handle one request, whose `path` is as it was sent and begins with where this is mounted."""
        ...

    def lifespan(self, server: ASGIApp) -> AbstractAsyncContextManager[None]:
        """Requests come within, on the running event loop, on which `server` answers those of its API."""
        ...


class Application:
    """The ASGI application of one catalog. It serves HTTP within `lifespan` only."""

    def __init__(
        self,
        service: CatalogService,
        hosts: Iterable[str],
        origins: Iterable[str],
        *,
        near: bool = False,
        proxies: Iterable[str] = (),
    ) -> None:
        self.service = service
        self._jobs: list[BackgroundJob] = []
        self._mounted: dict[str, MountedApplication] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self.api = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
        self._routes = Router(ROUTES, self.api, service, (LancedbDialect(),))
        self.api.router.routes.append(documentation.ASSETS)
        allowed = [origin.lower().rstrip("/") for origin in origins]  # as browsers send them
        self._guard = HostGuard(hosts, allowed, near=near)
        app: ASGIApp = ErrorHandler(self._dispatch, service)
        if allowed:
            app = CORSMiddleware(
                app, allow_origins=allowed, allow_methods=["*"], allow_headers=["*"], expose_headers=_EXPOSED
            )
        self._app = RequestContext(app, service, ClientAddresses(proxies))

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Handle one request."""
        scope["app"] = self.api
        return self._app(scope, receive, send)

    def _dispatch(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Check a request's head and origin, and hand it on by its path as it was sent, without trailing slashes.

        A decoded path would turn a name that holds `%2F` into two segments, and reach the route of another table.
        """
        check_head(scope, self.service.limits.head)
        self._guard.check(scope)
        path = scope["raw_path"].decode("latin-1").rstrip("/") or "/"
        # Of an address that ends in "/" stock clients make "//v1/...".
        scope["path"] = path[1:] if path.startswith("//v1/") else path
        if self._mounted:
            place = path[1:].partition("/")[0]
            if place in self._mounted:
                scope["operation"] = place
                return self._mounted[place](scope, receive, send)
        return self._routes(scope, receive, send)

    def mount(self, name: str, application: MountedApplication) -> None:
        """Serve an application at `/name` and below, within `lifespan`, which has not begun.

        Its requests pass the checks of head, host and origin, and are logged, measured and traced as the operation
        `name`.
        """
        self._mounted[name] = application

    def has_mounted(self, name: str) -> bool:
        """Whether an application is served at `/name`."""
        return name in self._mounted

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Accept requests within, and run jobs; then finish the accepted changes and release the catalog."""
        self._loop = asyncio.get_running_loop()
        self.service.start()
        background = self.service.namespace.background
        for job in self._jobs:
            background.start(job)
        try:
            async with AsyncExitStack() as mounted:
                for application in self._mounted.values():
                    await mounted.enter_async_context(application.lifespan(self))
                yield
        finally:
            for job in self._jobs:
                background.stop_soon(job.name)
            await self.service.close()

    def end_streams(self) -> None:
        """Have the streams of events end that are open: their clients come again."""
        self.service.events.end_all()

    def close_streams(self) -> None:
        """Have all streams of events end, for good: no request is in progress for ever."""
        self.service.events.close()

    def run_in_background(self, job: BackgroundJob) -> None:
        """Run a job of the server within `lifespan`, which has not begun."""
        self._jobs.append(job)

    def change(self, operation: str, request: TableRequest) -> Answer:
        """Commit a change of a table that no client waits for. Blocking; for threads beside the event loop.

        Raises the namespace errors of the operation.
        """
        assert self._loop is not None, "the lifespan has begun"

        async def make() -> Answer:
            return await self.service.data.change(operation, request, _no_client, OPERATOR)

        return asyncio.run_coroutine_threadsafe(make(), self._loop).result()


async def _no_client() -> Message:
    """The `receive` of a request whose client cannot go away: never returns."""
    await asyncio.Event().wait()
    raise AssertionError("nothing sets this event")


def create_app(
    namespace: JsonCatalog,
    authenticator: Authenticator,
    *,
    limits: RequestLimits | None = None,
    hosts: Iterable[str] = (),
    origins: Iterable[str] = (),
    access_log: AccessLog | None = None,
    metrics: ServerMetrics | None = None,
    forwarding: Forwarding | None = None,
    read_only: ReadOnlySwitch = NEVER_READ_ONLY,
    tracing: Tracing | None = None,
    near: bool = False,
    proxies: Iterable[str] = (),
    attempts: RefusedAttemptLog | None = None,
    auditors: Collection[str] = (),
    root_database: str | None = None,
) -> Application:
    """The application for one catalog. Its `lifespan` closes `namespace` at the end.

    Args:
        namespace: the catalog to serve.
        authenticator: the API keys.
        limits: bounds of requests.
        hosts: names that requests may address the server by; empty: any.
        origins: origins of web pages that may call the server, besides its own.
        access_log: where to write a line for every request.
        metrics: what measures the requests, and is served under `/metrics`; None: nothing does. What it measures of the
            catalog `namespace` reports to it, as its observer.
        forwarding: how changes are handed to other servers of the root; None: never.
        read_only: when changes are refused.
        tracing: what makes spans of requests; None: nothing does. It is the observer of `namespace`, too.
        near: whether requests may also address the server by an IP address, or by a name without a dot.
        proxies: addresses and networks of proxies whose headers name the address of the client.
        attempts: where to write refused attempts; None: nowhere.
        auditors: principals who may read who did what from where.
        root_database: the database of lancedb's clients that is the root of the catalog; None: none is.
    """
    service = CatalogService(
        namespace,
        authenticator,
        limits,
        access_log,
        metrics,
        forwarding,
        read_only,
        tracing,
        attempts,
        auditors,
        databases(root_database),
    )
    return Application(service, hosts, origins, near=near, proxies=proxies)
