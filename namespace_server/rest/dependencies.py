"""FastAPI dependencies: identity, idempotency, the id of the route, and the body of a change."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Request
from lance_namespace import UpdateTableSchemaMetadataRequest
from lance_namespace.errors import InvalidInputError
from pydantic import BaseModel

from namespace_server.data.asked import Caller
from namespace_server.data.reads import ReadPoint
from namespace_server.rest.models import BranchQuery, Query
from namespace_server.rest.request.body import Change, JsonObject, check_media_type, decode_object
from namespace_server.rest.request.exchange import Exchange, QueryModel, RowsRequest
from namespace_server.rest.request.headers import read_id, read_name
from namespace_server.rest.service import CatalogService, service_of

Service = Annotated[CatalogService, Depends(service_of)]


# Not plain functions: FastAPI would call each of those in a thread.
async def exchange_of(request: Request, service: Service) -> Exchange:
    """What a request says. Raises `UnauthenticatedError` (16)."""
    path, segment = request.scope["route"].path, request.path_params.get("id", "")
    return Exchange(request.scope, request.receive, service, path, segment)


CurrentExchange = Annotated[Exchange, Depends(exchange_of)]


async def caller_of(exchange: CurrentExchange) -> Caller:
    """Who asks for a change, and under which idempotency key. Raises `InvalidInputError` (13)."""
    return exchange.caller


By = Annotated[Caller, Depends(caller_of)]


def change_of(model: type[BaseModel], *, optional: bool = False) -> Callable[..., AsyncIterator[Change]]:
    """A dependency: the body of a change, checked against a published model.

    Raises `InvalidInputError` (13), `pydantic.ValidationError`.
    """

    async def read_change(exchange: CurrentExchange) -> AsyncIterator[Change]:
        change = await exchange.change(model, optional=optional)
        with exchange.service.bodies.hold(change.size):
            yield change

    return read_change


def rows_of(query: type[Query]) -> Callable[..., Awaitable[RowsRequest]]:
    """A dependency: a request whose body is an Arrow IPC stream or file, and whose fields are in the query.

    Raises `InvalidInputError` (13), `pydantic.ValidationError`.
    """
    model = QueryModel(query)

    async def read_rows_request(exchange: CurrentExchange) -> RowsRequest:
        return exchange.rows(model)

    return read_rows_request


def read_of(
    model: type[BaseModel], *, optional: bool = False, query: type[Query] = Query, large: bool = False
) -> Callable[..., AsyncIterator[JsonObject]]:
    """A dependency: the body of an operation on one table, as `Exchange.table_request` reads it."""
    known = QueryModel(query)

    async def read_request(exchange: CurrentExchange) -> AsyncIterator[JsonObject]:
        found = await exchange.table_request(model, known, optional=optional, large=large)
        with exchange.service.bodies.hold(found.size):
            yield found.request

    return read_request


def named_in_path(request: JsonObject, field: str, segment: str) -> JsonObject:
    """A request with a name that is in the path, and may be in the body too. Raises `InvalidInputError` (13).

    The body decides: stock clients write a space in a path as `+`.
    """
    name, given = read_name(segment), request.get(field)
    if given is not None and given not in {name, name.replace("+", " ")}:
        raise InvalidInputError(f"request body names {field} {given[:200]!r}, the route names {name[:200]!r}")
    return {**request, field: name if given is None else given}


_BRANCH = QueryModel(BranchQuery)


async def schema_metadata_of(exchange: CurrentExchange) -> JsonObject:
    """A dependency: keys and values as the whole body, which has no other fields.

    Raises `InvalidInputError` (13), `pydantic.ValidationError`.
    """
    check_media_type(exchange.headers)
    limits = exchange.service.limits
    data = await exchange.service.bodies.read(exchange.receive, exchange.headers, limits.read_body)
    given, parameters = _BRANCH.parse(exchange.scope["query_string"])
    metadata = decode_object(data, limits, values=limits.values)
    body = {**parameters, "id": read_id(exchange.segment, given), "metadata": metadata}
    UpdateTableSchemaMetadataRequest.model_validate(body)
    return body


async def read_point_of(exchange: CurrentExchange) -> ReadPoint:
    """What a read of rows is to see. Raises `InvalidInputError` (13)."""
    return exchange.read_point


At = Annotated[ReadPoint, Depends(read_point_of)]
