"""The catalog itself: what it is now, and its history."""

from __future__ import annotations

from namespace_server.rest.models import Paging
from namespace_server.rest.reads import ReadRoute

DIRECT = (
    ReadRoute("describe_catalog", "GET", "/v1/catalog"),
    ReadRoute("list_catalog_versions", "GET", "/v1/catalog/versions", query=Paging),
    ReadRoute("describe_catalog_version", "GET", "/v1/catalog/versions/{version}"),
)
