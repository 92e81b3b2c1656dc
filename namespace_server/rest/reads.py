"""Routes of read operations: raw ASGI, since a describe takes less time than a framework's request object."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from pydantic import BaseModel
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from namespace_server.rest.headers import Headers, read_id, read_pin, read_version
from namespace_server.rest.models import Query
from namespace_server.rest.port import Answer
from namespace_server.rest.request_body import LARGE_BODY, JsonObject, check_media_type
from namespace_server.rest.requests import decode_body, parse_query
from namespace_server.rest.responses import success_headers
from namespace_server.rest.service import CatalogService


@dataclass(frozen=True, slots=True)
class ReadRoute:
    """A read operation on one route.

    `model` describes its body, if it has one, and `query` its query parameters, which win over the body. A `silent`
    route answers an empty body.
    """

    operation: str
    method: str
    path: str
    model: type[BaseModel] | None = None
    query: type[Query] = Query
    optional_body: bool = False
    silent: bool = False

    def route(self, service: CatalogService) -> Route:
        """The route, for a router of this service."""
        return Route(self.path, ReadEndpoint(self, service), methods=[self.method], name=self.operation)


class ReadEndpoint:
    """Answers the requests of one `ReadRoute` (an ASGI application)."""

    __slots__ = ("_route", "_service")

    def __init__(self, route: ReadRoute, service: CatalogService) -> None:
        self._route = route
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. Raises namespace errors, for the error handler."""
        service = self._service
        headers: Headers = dict(scope["headers"])
        scope["principal"] = service.authenticator.principal(headers)
        route = self._route
        scope["route_path"] = route.path
        pin = read_pin(headers)
        body = b""
        if route.model is not None:
            check_media_type(headers)
            body = await service.bodies.read(receive, headers, service.limits.read_body)
        # Every principal sees the same catalog, so the principal is no part of the key.
        key = (route.operation, scope["path"], scope["query_string"], body)
        answer = service.cached(key) if pin is None else None
        if answer is None:
            make_request = partial(self._request, scope, body)
            request = await service.in_thread(make_request) if len(body) >= LARGE_BODY else make_request()
            answer = await service.read(route.operation, request, at=pin, key=key if pin is None else None)
        await self._send(send, answer)

    def _request(self, scope: Scope, body: bytes) -> JsonObject:
        route = self._route
        parameters = scope["path_params"]
        query, given = parse_query(scope["query_string"], route.query)
        named = read_id(parameters["id"], query) if "id" in parameters else None
        request: JsonObject = {}
        if route.model is not None:
            limits = self._service.limits
            request = decode_body(
                body, route.model, limits, values=limits.read_values, route=named, optional=route.optional_body
            )
        elif named is not None:
            request["id"] = named
        request |= given
        if named is not None:
            return request
        if "version" in parameters:
            request["version"] = read_version(parameters["version"].encode(), "path")
        elif "delimiter" in query:
            read_id("", query)
            request["delimiter"] = query["delimiter"]
        return request

    async def _send(self, send: Send, answer: Answer) -> None:
        self._service.saw(answer.catalog_version)
        body = b"" if self._route.silent else answer.json
        await send(
            {"type": "http.response.start", "status": 200, "headers": success_headers(body, answer.catalog_version)}
        )
        await send({"type": "http.response.body", "body": body})
