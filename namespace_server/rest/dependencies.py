"""FastAPI dependencies: identity, idempotency, the id of the route, and the body of a change."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, get_origin, get_type_hints

from fastapi import Depends, Request
from lance_namespace import UpdateTableSchemaMetadataRequest
from lance_namespace.errors import InvalidInputError
from pydantic import BaseModel, TypeAdapter
from starlette.types import Receive

from namespace_server.data.operations import ReadPoint
from namespace_server.rest.headers import (
    Headers,
    read_id,
    read_idempotency_key,
    read_least_version,
    read_name,
    read_pin,
    read_query,
)
from namespace_server.rest.models import BranchQuery, Query
from namespace_server.rest.request_body import (
    LARGE_BODY,
    Change,
    JsonObject,
    check_arrow,
    check_media_type,
    decode_object,
)
from namespace_server.rest.requests import decode_body, parse_query
from namespace_server.rest.service import CatalogService, service_of

Service = Annotated[CatalogService, Depends(service_of)]


def headers_of(request: Request) -> Headers:
    """All headers by their lower-case names."""
    headers: Headers = request.scope["header_map"]
    return headers


RequestHeaders = Annotated[Headers, Depends(headers_of)]


def principal_of(request: Request, headers: RequestHeaders, service: Service) -> str | None:
    """The principal of a request; None where no keys are configured. Raises `UnauthenticatedError` (16)."""
    request.scope["route_path"] = request.scope["route"].path
    principal = service.authenticator.principal(headers)
    request.scope["principal"] = principal
    return principal


Principal = Annotated[str | None, Depends(principal_of)]


def idempotency_key_of(headers: RequestHeaders) -> str | None:
    """The idempotency key of a request, if it has one. Raises `InvalidInputError` (13)."""
    return read_idempotency_key(headers)


IdempotencyKey = Annotated[str | None, Depends(idempotency_key_of)]


def change_of(model: type[BaseModel], *, optional: bool = False) -> Callable[..., AsyncIterator[Change]]:
    """A dependency: the body of a change, checked against a published model.

    Large bodies are decoded outside the event loop. Raises `InvalidInputError` (13), `pydantic.ValidationError`.
    """

    async def read_change(
        request: Request, principal: Principal, headers: RequestHeaders, service: Service
    ) -> AsyncIterator[Change]:
        del principal  # identified before the body is read
        check_media_type(headers)
        data = await service.bodies.read(request.receive, headers, service.limits.body)

        segment = request.path_params.get("id")
        route = None if segment is None else read_id(segment, read_query(request.scope["query_string"]))
        limits = service.limits
        decode = partial(decode_body, data, model, limits, values=limits.values, route=route, optional=optional)
        with service.bodies.hold(len(data)):
            body = await service.in_thread(decode) if len(data) >= LARGE_BODY else decode()
            yield Change(body, len(data))

    return read_change


@dataclass(frozen=True, slots=True)
class RowsRequest:
    """A request whose body is rows: what its query says, with the id of its route, and where the body comes from."""

    request: JsonObject
    receive: Receive


def rows_of(query: type[Query]) -> Callable[..., RowsRequest]:
    """A dependency: a request whose body is an Arrow IPC stream or file, and whose fields are in the query.

    Raises `InvalidInputError` (13), `pydantic.ValidationError`.
    """
    model: TypeAdapter[Query] = TypeAdapter(query)
    repeated = tuple(name for name, kind in get_type_hints(query).items() if get_origin(kind) is list)

    def read_rows_request(request: Request, principal: Principal, headers: RequestHeaders) -> RowsRequest:
        del principal  # identified before anything is read
        check_arrow(headers)
        given, parameters = parse_query(request.scope["query_string"], model, repeated)
        return RowsRequest({**parameters, "id": read_id(request.path_params["id"], given)}, request.receive)

    return read_rows_request


def read_of(
    model: type[BaseModel], *, optional: bool = False, query: type[Query] = Query, large: bool = False
) -> Callable[..., AsyncIterator[JsonObject]]:
    """A dependency: the body of an operation on one table, checked against a published model.

    Fields that the body lacks may be parameters of the query, as `query` names them. A `large` body may hold long
    vectors and filters. Raises `InvalidInputError` (13), `pydantic.ValidationError`.
    """
    known: TypeAdapter[Query] = TypeAdapter(query)

    async def read_request(
        request: Request, principal: Principal, headers: RequestHeaders, service: Service
    ) -> AsyncIterator[JsonObject]:
        del principal  # identified before the body is read
        check_media_type(headers)
        limits = service.limits
        data = await service.bodies.read(request.receive, headers, limits.data.query if large else limits.read_body)
        given, parameters = parse_query(request.scope["query_string"], known)
        route = read_id(request.path_params["id"], given)
        decode = partial(decode_body, data, model, limits, values=limits.values, route=route, optional=optional)
        with service.bodies.hold(len(data)):
            body = await service.in_thread(decode) if len(data) >= LARGE_BODY else decode()
            yield {**parameters, **body}

    return read_request


def named_in_path(request: JsonObject, field: str, segment: str) -> JsonObject:
    """A request with a name that is in the path, and may be in the body too. Raises `InvalidInputError` (13).

    The body decides: stock clients write a space in a path as `+`.
    """
    name, given = read_name(segment), request.get(field)
    if given is not None and given not in {name, name.replace("+", " ")}:
        raise InvalidInputError(f"request body names {field} {given[:200]!r}, the route names {name[:200]!r}")
    return {**request, field: name if given is None else given}


_BRANCH: TypeAdapter[Query] = TypeAdapter(BranchQuery)


async def schema_metadata_of(
    request: Request, principal: Principal, headers: RequestHeaders, service: Service
) -> JsonObject:
    """A dependency: keys and values as the whole body, which has no other fields.

    Raises `InvalidInputError` (13), `pydantic.ValidationError`.
    """
    del principal  # identified before the body is read
    check_media_type(headers)
    limits = service.limits
    data = await service.bodies.read(request.receive, headers, limits.read_body)
    given, parameters = parse_query(request.scope["query_string"], _BRANCH)
    metadata = decode_object(data, limits, values=limits.values)
    body = {**parameters, "id": read_id(request.path_params["id"], given), "metadata": metadata}
    UpdateTableSchemaMetadataRequest.model_validate(body)
    return body


def read_point_of(headers: RequestHeaders) -> ReadPoint:
    """What a read of rows is to see. Raises `InvalidInputError` (13)."""
    return ReadPoint(read_pin(headers), read_least_version(headers))


At = Annotated[ReadPoint, Depends(read_point_of)]
