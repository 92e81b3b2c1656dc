"""Routes: how one is declared, and how a request finds it.

FastAPI serves every route. Matching a path, resolving dependencies and entering a handler takes FastAPI longer than a
read of the catalog takes as a whole, and longer than the part of one batch in a group commit. So the routes whose paths
have no parameter, or one as the third segment (nearly all), are found in front of FastAPI as well, by two lookups, and
their handlers called without it; with the same result.

A route may be answered in several dialects: other clients' ways to say the same request. What distinguishes a dialect,
and how its requests and answers are translated, only `dialects` knows.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol, runtime_checkable

from fastapi import FastAPI, Request
from lance_namespace.errors import LanceNamespaceError, UnsupportedOperationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from namespace_server.access.requirements import PUBLIC, REQUIREMENTS, Requirement
from namespace_server.outcomes import Outcome
from namespace_server.rest.exchange import Exchange
from namespace_server.rest.principals import KeysNeeded, TokenNotJudged
from namespace_server.rest.service import CatalogService

_PLACE: Final = 3
"""Of the parameter in the parts of a path, the first of which is empty."""
_PARTS: Final = 5
"""Into which such a path is split; the last one is the rest."""

PUBLISHED: Final = "published"
"""The dialect of the published namespace API, with our additions."""
LANCEDB: Final = "lancedb"
"""The dialect of lancedb's remote clients (`db://`)."""
ALL_DIALECTS: Final = (PUBLISHED, LANCEDB)

Handler = Callable[[Exchange], Awaitable[Response]]
"""Answers one request. Raises namespace errors and `pydantic.ValidationError`."""
_Bound = tuple["Route", Mapping[str, Handler]]
"""A route with its handler for each dialect."""


@runtime_checkable
class KindOfWork(Protocol):
    """A kind of work that the requests of a route ask for; see `handlers`."""

    def handler(self, operation: str, path: str) -> Handler:
        """The handler of an operation on a path."""
        ...


Work = KindOfWork | Handler
"""What the requests of a route ask for: work of a kind, or what is done by one handler."""


def handler_of(work: Work, operation: str, path: str) -> Handler:
    """The handler of an operation on a path."""
    return work.handler(operation, path) if isinstance(work, KindOfWork) else work


@dataclass(frozen=True, slots=True)
class Route:
    """One operation on one path.

    `path` is a template whose parameters are `{name}`. `requirement` is what its caller must be allowed. What its
    `dialects` lack is answered in the published one; what that lacks is refused (406).
    """

    operation: str
    method: str
    path: str
    work: Work
    requirement: Requirement
    dialects: tuple[str, ...] = (PUBLISHED,)

    @property
    def public(self) -> bool:
        """Whether it needs no credentials."""
        return self.requirement is PUBLIC

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that it answers: those that are asked for with GET may be asked for with HEAD."""
        return ("GET", "HEAD") if self.method == "GET" else (self.method,)


class RequestDialect(Protocol):
    """A way in which some clients say requests."""

    @property
    def name(self) -> str:
        """Its name in `Route.dialects`."""
        ...

    def is_spoken(self, scope: Scope) -> bool:
        """Whether a request is in this dialect."""
        ...

    def status(self, scope: Scope, error: LanceNamespaceError, outcome: Outcome) -> int:
        """The HTTP status that answers an error of a request in this dialect."""
        ...

    def work(self, route: Route) -> Work:
        """The work of a route for requests in this dialect."""
        ...


def post(operation: str, path: str, work: Work, *, dialects: tuple[str, ...] = (PUBLISHED,)) -> Route:
    """A route of the published API, nearly all of whose operations are asked for by POST."""
    return Route(operation, "POST", path, work, REQUIREMENTS[operation], dialects)


def get(operation: str, path: str, work: Work, *, dialects: tuple[str, ...] = (PUBLISHED,)) -> Route:
    """A route whose operation is asked for by GET."""
    return Route(operation, "GET", path, work, REQUIREMENTS[operation], dialects)


async def refuse(exchange: Exchange) -> Response:
    """Refuse an operation that is not served: 406 with code 0, after authentication; the body is not read."""
    raise UnsupportedOperationError(f"Not supported: {exchange.scope['operation']}")


class Router:
    """Hands requests to the routes of an application (an ASGI application).

    Errors are raised, for the error handler around it: those of handlers, and `HTTPException` (404, 405) where no route
    fits. The path in the scope is matched as it was sent. Of several `dialects` the first that is spoken counts.
    """

    def __init__(
        self, routes: Iterable[Route], api: FastAPI, service: CatalogService, dialects: Sequence[RequestDialect] = ()
    ) -> None:
        self._service = service
        self._api = api
        self._dialects = tuple(dialects)
        for kind in (HTTPException, Exception):
            api.add_exception_handler(kind, _raise)
        bound = [(route, self._handlers(route)) for route in routes]
        for route, handlers in bound:
            self._api.add_api_route(
                route.path,
                self._endpoint(route, handlers),
                methods=list(route.methods),
                name=route.operation,
                response_model=None,
                include_in_schema=False,
            )
        self._paths: dict[tuple[str, ...], dict[str, _Bound]] = {}
        for route, handlers in bound:
            if (shape := _shape(route.path)) is not None:
                self._paths.setdefault(shape, {}).update(dict.fromkeys(route.methods, (route, handlers)))

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
        scope["dialect"] = PUBLISHED
        for dialect in self._dialects:
            if dialect.is_spoken(scope):
                scope["dialect"], scope["status_of"] = dialect.name, partial(dialect.status, scope)
                break
        methods, segments = self._find(scope["path"])
        if not methods:
            await self._api(scope, receive, send)
            return
        if scope["method"] not in methods:
            raise HTTPException(405, headers={"Allow": ", ".join(methods)})
        route, handlers = methods[scope["method"]]
        scope["operation"] = route.operation
        exchange = await self._exchange(scope, receive, route, segments)
        response = await handlers[scope["dialect"]](exchange)
        await response(scope, receive, send)

    def _find(self, path: str) -> tuple[Mapping[str, _Bound], tuple[str, ...]]:
        """The routes of a path by method, none where FastAPI is to look, and the parameters in it."""
        methods = self._paths.get((path,))
        if methods is not None:
            return methods, ()
        parts = path.split("/", 4)
        if len(parts) < _PARTS or not parts[_PLACE]:
            return {}, ()
        return self._paths.get((parts[1], parts[2], parts[4]), {}), (parts[_PLACE],)

    def _handlers(self, route: Route) -> Mapping[str, Handler]:
        """The handler of a route for each dialect."""
        works = {each.name: each.work(route) for each in self._dialects if each.name in route.dialects}
        if PUBLISHED in route.dialects:
            works[PUBLISHED] = route.work
        handlers = {name: handler_of(work, route.operation, route.path) for name, work in works.items()}
        published = handlers.setdefault(PUBLISHED, refuse)
        return {each.name: published for each in self._dialects} | handlers

    def _endpoint(self, route: Route, handlers: Mapping[str, Handler]) -> Callable[[Request], Awaitable[Response]]:
        """The handlers as FastAPI calls them."""

        async def endpoint(request: Request) -> Response:
            request.scope["operation"] = route.operation
            segments = tuple(request.path_params.values())
            exchange = await self._exchange(request.scope, request.receive, route, segments)
            return await handlers[request.scope["dialect"]](exchange)

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


def _shape(path: str) -> tuple[str, ...] | None:
    """By what a path of a template is found: as a whole, or by what stands around its third segment.

    None where the parameters are others.
    """
    parameters = [number for number, part in enumerate(path.split("/")) if part.startswith("{")]
    if not parameters:
        return (path,)
    parts = path.split("/", 4)
    return (parts[1], parts[2], parts[4]) if parameters == [_PLACE] and len(parts) == _PARTS else None


async def _raise(_request: Request, error: Exception) -> Response:
    """Leave an error to the handler around the router, where FastAPI would answer it."""
    raise error
