"""The catalog itself: what it is now, and its history."""

from __future__ import annotations

from namespace_server.rest.handlers import Read
from namespace_server.rest.models import Paging
from namespace_server.rest.routing import get

ROUTES = (
    get("describe_catalog", "/v1/catalog", Read(), fast=True),
    get("list_catalog_versions", "/v1/catalog/versions", Read(query=Paging)),
    get("list_dropped_tables", "/v1/catalog/dropped", Read(query=Paging)),
    get("describe_catalog_version", "/v1/catalog/versions/{version}", Read()),
)
