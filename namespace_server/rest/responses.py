"""Responses of catalog operations."""

from __future__ import annotations

from starlette.responses import Response

from namespace_server.rest.errors import Header
from namespace_server.rest.headers import CATALOG_VERSION
from namespace_server.rest.port import Answer
from namespace_server.rest.service import CatalogService

_JSON = (b"content-type", b"application/json")


def success_headers(body: bytes, catalog_version: int) -> list[Header]:
    """The headers of a success; one without a body has no content type."""
    headers = [(b"content-length", b"%d" % len(body)), (CATALOG_VERSION, b"%d" % catalog_version)]
    if body:
        headers.append(_JSON)
    return headers


def success(service: CatalogService, answer: Answer) -> Response:
    """The response for an answer."""
    service.saw(answer.catalog_version)
    response = Response(answer.json)
    response.raw_headers = success_headers(answer.json, answer.catalog_version)
    return response
