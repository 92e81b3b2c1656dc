"""The catalog as a whole, and its history."""

from __future__ import annotations

from namespace_server.rest.endpoints import PAGING, Body, Endpoint, parameters

ENDPOINTS = (
    Endpoint("describe_catalog", "GET", "/v1/catalog", Body.NONE),
    Endpoint("list_catalog_versions", "GET", "/v1/catalog/versions", Body.NONE, parameters(*PAGING)),
    Endpoint("describe_catalog_version", "GET", "/v1/catalog/versions/{version}", Body.NONE),
)
