"""FastAPI dependencies: identity, idempotency, the id of the route, and the body of a change."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Annotated

from fastapi import Depends, Request
from pydantic import BaseModel

from namespace_server.rest.headers import Headers, read_id, read_idempotency_key, read_query
from namespace_server.rest.request_body import LARGE_BODY, Change, check_media_type
from namespace_server.rest.requests import decode_body
from namespace_server.rest.service import CatalogService, service_of

Service = Annotated[CatalogService, Depends(service_of)]


def headers_of(request: Request) -> Headers:
    """All headers by their lower-case names."""
    return dict(request.scope["headers"])


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
