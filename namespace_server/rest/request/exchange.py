"""One request, and what its parts say; for routes of FastAPI and for those in front of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, get_origin, get_type_hints

from pydantic import BaseModel, TypeAdapter
from starlette.types import Receive, Scope

from namespace_server.data.asked import Caller
from namespace_server.data.reads import ReadPoint
from namespace_server.rest.models import Query
from namespace_server.rest.request.body import LARGE_BODY, Change, JsonObject, check_arrow, check_media_type
from namespace_server.rest.request.decoding import decode_body, parse_query
from namespace_server.rest.request.headers import (
    IDEMPOTENCY_KEY,
    Headers,
    read_id,
    read_idempotency_key,
    read_least_version,
    read_pin,
    read_query,
)
from namespace_server.rest.request.rows import RowsBody
from namespace_server.rest.service import CatalogService


class QueryModel:
    """Query parameters by name and type. Those whose type is a list may be given more than once."""

    def __init__(self, query: type[Query]) -> None:
        self._adapter: TypeAdapter[Query] = TypeAdapter(query)
        self._repeated = tuple(name for name, kind in get_type_hints(query).items() if get_origin(kind) is list)

    def parse(self, query_string: bytes) -> tuple[Mapping[str, str], Mapping[str, Any]]:
        """All parameters as text, and those of the model with their types; see `parse_query`."""
        return parse_query(query_string, self._adapter, self._repeated)


ANY_QUERY: Final = QueryModel(Query)


@dataclass(frozen=True, slots=True)
class RowsRequest:
    """A request whose body is rows: what its query says, with the id of its route, and the body."""

    request: JsonObject
    body: RowsBody


class Exchange:
    """A request of one principal, on a route with at most one parameter.

    `segment` is the parameter in the path as it was sent, empty if the route has none. Raises `UnauthenticatedError`
    (16) before anything of the request is read.
    """

    __slots__ = ("headers", "principal", "receive", "scope", "segment", "service")

    def __init__(self, scope: Scope, receive: Receive, service: CatalogService, path: str, segment: str) -> None:
        self.scope = scope
        self.receive = receive
        self.service = service
        self.segment = segment
        self.headers: Headers = scope["header_map"]
        scope["route_path"] = path
        self.principal = scope["principal"] = service.authenticator.principal(self.headers)

    @property
    def caller(self) -> Caller:
        """Who asks for a change, and under which idempotency key. Raises `InvalidInputError` (13)."""
        return Caller(self.principal, read_idempotency_key(self.headers))

    @property
    def read_point(self) -> ReadPoint:
        """What a read of rows is to see. Raises `InvalidInputError` (13)."""
        return ReadPoint(read_pin(self.headers), read_least_version(self.headers))

    async def change(self, model: type[BaseModel], *, optional: bool = False) -> Change:
        """The body of a change of the catalog, checked against a published model.

        Raises `InvalidInputError` (13), `pydantic.ValidationError`.
        """
        check_media_type(self.headers)
        data = await self.service.bodies.read(self.receive, self.headers, self.service.limits.body)
        route = read_id(self.segment, read_query(self.scope["query_string"])) if self.segment else None
        return Change(await self._decoded(data, model, route, optional=optional), len(data))

    async def table_request(
        self, model: type[BaseModel], query: QueryModel = ANY_QUERY, *, optional: bool = False, large: bool = False
    ) -> Change:
        """The body of an operation on one table, checked against a published model.

        Fields that the body lacks may be parameters of the query, as `query` names them. A `large` body may hold long
        vectors and filters. Raises `InvalidInputError` (13), `pydantic.ValidationError`.
        """
        check_media_type(self.headers)
        limits = self.service.limits
        limit = limits.data.query if large else limits.read_body
        data = await self.service.bodies.read(self.receive, self.headers, limit)
        given, parameters = query.parse(self.scope["query_string"])
        body = await self._decoded(data, model, read_id(self.segment, given), optional=optional)
        return Change({**parameters, **body}, len(data))

    def rows(self, query: QueryModel) -> RowsRequest:
        """A request whose body is an Arrow IPC stream or file, and whose fields are in the query.

        Raises `InvalidInputError` (13), `pydantic.ValidationError`.
        """
        check_arrow(self.headers)
        given, parameters = query.parse(self.scope["query_string"])
        body = RowsBody(self.receive, self.headers, digested=IDEMPOTENCY_KEY in self.headers)
        return RowsRequest({**parameters, "id": read_id(self.segment, given)}, body)

    async def _decoded(
        self, data: bytes, model: type[BaseModel], route: list[str] | None, *, optional: bool
    ) -> JsonObject:
        """The checked body; large ones are decoded outside the event loop."""
        limits = self.service.limits
        decode = partial(decode_body, data, model, limits, values=limits.values, route=route, optional=optional)
        if len(data) < LARGE_BODY:
            return decode()
        with self.service.bodies.hold(len(data)):
            return await self.service.in_thread(decode)
