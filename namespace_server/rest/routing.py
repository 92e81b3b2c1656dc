"""Routes: how one is declared, and how a request finds it.

FastAPI serves every route. Matching a path, resolving dependencies and entering a handler takes FastAPI longer than a
read of the catalog takes as a whole, and longer than the part of one batch in a group commit. So a route that is
declared `fast` is matched in front of FastAPI as well, and its handler called without it; with the same result.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from namespace_server.access.requirements import PUBLIC, REQUIREMENTS, Requirement
from namespace_server.rest.exchange import Exchange
from namespace_server.rest.principals import KeysNeeded, TokenNotJudged
from namespace_server.rest.service import CatalogService

_PARAMETER: Final = re.compile(r"\{\w+\}")

Handler = Callable[[Exchange], Awaitable[Response]]
"""Answers one request. Raises namespace errors and `pydantic.ValidationError`."""


class Work(Protocol):
    """The work that the requests of a route ask for; see `handlers`."""

    def handler(self, operation: str, path: str) -> Handler:
        """The handler of an operation on a path."""
        ...


@dataclass(frozen=True, slots=True)
class Route:
    """One operation on one path.

    `path` is a template whose parameters are `{name}`. One that is `fast` has at most one parameter. `requirement` is
    what its caller must be allowed.
    """

    operation: str
    method: str
    path: str
    work: Work
    requirement: Requirement
    fast: bool = False

    @property
    def public(self) -> bool:
        """Whether it needs no credentials."""
        return self.requirement is PUBLIC

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that it answers: those that are asked for with GET may be asked for with HEAD."""
        return ("GET", "HEAD") if self.method == "GET" else (self.method,)


def post(operation: str, path: str, work: Work, *, fast: bool = False) -> Route:
    """A route of the published API, nearly all of whose operations are asked for by POST."""
    return Route(operation, "POST", path, work, REQUIREMENTS[operation], fast)


def get(operation: str, path: str, work: Work, *, fast: bool = False) -> Route:
    """A route whose operation is asked for by GET."""
    return Route(operation, "GET", path, work, REQUIREMENTS[operation], fast)


class Router:
    """Hands requests to the routes of an application (an ASGI application).

    Errors are raised, for the error handler around it: those of handlers, and `HTTPException` (404, 405) where no route
    fits. The path in the scope is matched as it was sent.
    """

    def __init__(self, routes: Iterable[Route], api: FastAPI, service: CatalogService) -> None:
        self._service = service
        self._api = api
        for kind in (HTTPException, Exception):
            api.add_exception_handler(kind, _raise)
        bound = [(route, route.work.handler(route.operation, route.path)) for route in routes]
        for route, handler in bound:
            self._api.add_api_route(
                route.path,
                self._endpoint(route, handler),
                methods=list(route.methods),
                name=route.operation,
                response_model=None,
                include_in_schema=False,
            )
        self._fast = [(route, handler) for route, handler in bound if route.fast]
        # Each alternative has one group, so the number of the group that matched is the one of its route.
        self._paths = re.compile("|".join(_pattern(route.path) for route, _ in self._fast))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. It counts as one of its principal from when that is known until it is answered."""
        requests = self._service.requests
        if not requests.most:
            await self._answer(scope, receive, send)
            return
        try:
            await self._answer(scope, receive, send)
        finally:
            if "counted" in scope:
                requests.give_back(*scope["counted"])

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = self._paths.fullmatch(scope["path"])
        if found is None or found.lastindex is None:
            await self._api(scope, receive, send)
            return
        route, handler = self._fast[found.lastindex - 1]
        if scope["method"] not in route.methods:
            raise HTTPException(405, headers={"Allow": ", ".join(route.methods)})
        scope["operation"] = route.operation
        exchange = await self._exchange(scope, receive, route, (found[found.lastindex],))
        response = await handler(exchange)
        await response(scope, receive, send)

    def _endpoint(self, route: Route, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        """The handler as FastAPI calls it."""

        async def endpoint(request: Request) -> Response:
            request.scope["operation"] = route.operation
            segments = tuple(request.path_params.values())
            return await handler(await self._exchange(request.scope, request.receive, route, segments))

        return endpoint

    async def _exchange(self, scope: Scope, receive: Receive, route: Route, segments: tuple[str, ...]) -> Exchange:
        """The exchange of a request. One whose token needs newer keys of its issuer waits for them."""
        for _ in range(2):
            try:
                exchange = Exchange(scope, receive, self._service, route.path, segments, public=route.public)
            except KeysNeeded as needed:
                await needed.look()
            else:
                if self._service.requests.most and not route.public:
                    self._service.requests.take(exchange.principal)
                    scope["counted"] = (exchange.principal,)
                return exchange
        raise TokenNotJudged(1)


def _pattern(path: str) -> str:
    """A regular expression of a path template, with one group: its parameter, or nothing."""
    return _PARAMETER.sub("([^/]+)", path) if _PARAMETER.search(path) else f"{path}()"


async def _raise(_request: Request, error: Exception) -> Response:
    """Leave an error to the handler around the router, where FastAPI would answer it."""
    raise error
