"""Direct routes of reads of the catalog, whose answers may be cached."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from pydantic import BaseModel, TypeAdapter
from starlette.types import Receive, Scope, Send

from namespace_server.rest.direct import Endpoint
from namespace_server.rest.models import Query
from namespace_server.rest.request.body import LARGE_BODY, JsonObject, check_media_type
from namespace_server.rest.request.decoding import decode_body, parse_query
from namespace_server.rest.request.headers import Headers, read_id, read_pin, read_version
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

    def endpoint(self, service: CatalogService) -> Endpoint:
        """What answers the read."""
        return ReadEndpoint(self, service).answer


class ReadEndpoint:
    """Answers the requests of one `ReadRoute`."""

    __slots__ = ("_query", "_route", "_service")

    def __init__(self, route: ReadRoute, service: CatalogService) -> None:
        self._route = route
        self._service = service
        self._query: TypeAdapter[Query] = TypeAdapter(route.query)

    async def answer(self, scope: Scope, receive: Receive, send: Send, segment: str) -> None:
        """Answer one request, where `segment` is the parameter in its path as it was sent, empty if it has none.

        Raises namespace errors, for the error handler.
        """
        service, route = self._service, self._route
        headers: Headers = scope["header_map"]
        scope["principal"] = service.authenticator.principal(headers)
        scope["route_path"] = route.path
        pin = read_pin(headers)
        body = b""
        if route.model is not None:
            check_media_type(headers)
            body = await service.bodies.read(receive, headers, service.limits.read_body)
        query: bytes = scope["query_string"]
        # Every principal sees the same catalog, so the principal is no part of the key.
        key = None if pin is not None else (route.operation, scope["path"], query, body)
        answer = None if key is None else service.cached(key)
        if answer is None:
            if len(body) >= LARGE_BODY:
                request = await service.in_thread(partial(self._request, segment, query, body))
            else:
                request = self._request(segment, query, body)
            answer = await service.read(route.operation, request, at=pin, key=key)
        service.saw(answer.catalog_version)
        content = b"" if route.silent else answer.json
        told = success_headers(content, answer.catalog_version)
        await send({"type": "http.response.start", "status": 200, "headers": told})
        await send({"type": "http.response.body", "body": content})

    def _request(self, segment: str, query_string: bytes, body: bytes) -> JsonObject:
        route = self._route
        query, given = parse_query(query_string, self._query)
        named = read_id(segment, query) if "{id}" in route.path else None
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
        if segment:
            request["version"] = read_version(segment.encode(), "path")
        elif "delimiter" in query:
            read_id("", query)
            request["delimiter"] = query["delimiter"]
        return request
