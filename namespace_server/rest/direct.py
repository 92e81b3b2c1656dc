"""The router in front of FastAPI, and the frequent operations that it serves.

Raw ASGI: matching a route, resolving dependencies and entering a handler takes FastAPI longer than a read takes as a
whole, and longer than the part of one batch in a group commit.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from namespace_server.rest.models import Query
from namespace_server.rest.request.exchange import Exchange, QueryModel
from namespace_server.rest.responses import RowsResponse, read_success, success
from namespace_server.rest.service import CatalogService

_PARAMETER: Final = re.compile(r"\{\w+\}")


class DirectRoute(Protocol):
    """One operation on one path, which has at most one parameter."""

    @property
    def operation(self) -> str:
        """Name of the operation."""
        ...

    @property
    def method(self) -> str:
        """Its HTTP method."""
        ...

    @property
    def path(self) -> str:
        """Its path template."""
        ...

    def endpoint(self, service: CatalogService) -> Endpoint:
        """What answers its requests."""
        ...


Endpoint = Callable[[Scope, Receive, Send, str], Awaitable[None]]
"""Answers a request, where the last argument is the parameter in its path as it was sent, empty if it has none.

Raises namespace errors, for the error handler.
"""


class DirectRouter:
    """Hands a request to the route that its path matches, any other to `default` (an ASGI application).

    One regular expression matches all paths, so that the number of routes costs next to nothing.
    """

    def __init__(self, routes: Sequence[DirectRoute], service: CatalogService, default: ASGIApp) -> None:
        methods = [("GET", "HEAD") if route.method == "GET" else (route.method,) for route in routes]
        self._endpoints = [(allowed, route.endpoint(service)) for allowed, route in zip(methods, routes, strict=True)]
        # Each alternative has one group, so the number of the group that matched is the one of its route.
        self._paths = re.compile("|".join(_pattern(route.path) for route in routes))
        self._default = default

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Handle one request. Raises `HTTPException` (405) if the path is one of these, but not the method."""
        found = self._paths.fullmatch(scope["path"])
        if found is None or found.lastindex is None:
            return self._default(scope, receive, send)
        methods, answer = self._endpoints[found.lastindex - 1]
        if scope["method"] not in methods:
            raise HTTPException(405, headers={"Allow": ", ".join(methods)})
        return answer(scope, receive, send, found[found.lastindex])


def _pattern(path: str) -> str:
    """A regular expression of a path template, with one group: its parameter, or nothing."""
    return _PARAMETER.sub("([^/]+)", path) if _PARAMETER.search(path) else f"{path}()"


@dataclass(frozen=True, slots=True)
class ChangeRoute:
    """A change of the catalog, committed in a group. `model` describes its body.

    The answer of one that `vends` has storage options for the new table.
    """

    operation: str
    path: str
    model: type[BaseModel]
    vends: bool = False
    method: str = "POST"

    def endpoint(self, service: CatalogService) -> Endpoint:
        """What commits the change."""

        async def answer(scope: Scope, receive: Receive, send: Send, segment: str) -> None:
            exchange = Exchange(scope, receive, service, self.path, segment)
            caller, change = exchange.caller, await exchange.change(self.model)
            with service.bodies.hold(change.size):
                committed = await service.commit(self.operation, change, caller)
            if self.vends and change.request.get("vend_credentials") is not False:
                committed = await service.with_storage_options(committed)
            await success(service, committed)(scope, receive, send)

        return answer


@dataclass(frozen=True, slots=True)
class RowsRoute:
    """A change whose body is rows, and whose fields are in the query, as `query` names them."""

    operation: str
    path: str
    query: type[Query]
    method: str = "POST"

    def endpoint(self, service: CatalogService) -> Endpoint:
        """What commits the rows."""
        model = QueryModel(self.query)

        async def answer(scope: Scope, receive: Receive, send: Send, segment: str) -> None:
            exchange = Exchange(scope, receive, service, self.path, segment)
            caller, rows = exchange.caller, exchange.rows(model)
            committed = await service.data.change(self.operation, rows.request, rows.body, caller=caller)
            await success(service, committed)(scope, receive, send)

        return answer


@dataclass(frozen=True, slots=True)
class RowChangeRoute:
    """A change of a table that a JSON body describes. It answers these fields, or all without any."""

    operation: str
    path: str
    model: type[BaseModel]
    fields: tuple[str, ...] = ()
    method: str = "POST"

    def endpoint(self, service: CatalogService) -> Endpoint:
        """What commits the change."""

        async def answer(scope: Scope, receive: Receive, send: Send, segment: str) -> None:
            exchange = Exchange(scope, receive, service, self.path, segment)
            caller, change = exchange.caller, await exchange.table_request(self.model)
            with service.bodies.hold(change.size):
                committed = await service.data.change(self.operation, change.request, caller=caller)
            if self.fields:
                committed = committed.only(*self.fields)
            await success(service, committed)(scope, receive, send)

        return answer


@dataclass(frozen=True, slots=True)
class RowReadRoute:
    """A read of rows that a JSON body describes, which may hold long vectors and filters.

    Its answer is a JSON value, or `streamed` rows.
    """

    operation: str
    path: str
    model: type[BaseModel]
    streamed: bool = False
    method: str = "POST"

    def endpoint(self, service: CatalogService) -> Endpoint:
        """What reads the rows."""

        async def answer(scope: Scope, receive: Receive, send: Send, segment: str) -> None:
            exchange = Exchange(scope, receive, service, self.path, segment)
            query, at = await exchange.table_request(self.model, large=True), exchange.read_point
            response: Any
            with service.bodies.hold(query.size):
                if self.streamed:
                    response = RowsResponse(service, partial(service.data.rows, self.operation, query.request, at=at))
                else:
                    response = read_success(service, await service.data.value(self.operation, query.request, at=at))
                await response(scope, receive, send)

        return answer
