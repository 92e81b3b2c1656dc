"""The catalog itself: its present state, and its history."""

from __future__ import annotations

from namespace_server.rest.handlers import Commit, Read
from namespace_server.rest.models import Paging
from namespace_server.rest.routing import get, post

ROUTES = (
    get("describe_catalog", "/v1/catalog", Read(), fast=True),
    get("list_catalog_versions", "/v1/catalog/versions", Read(query=Paging)),
    post("pin_catalog_version", "/v1/catalog/pins", Commit()),
    get("list_catalog_pins", "/v1/catalog/pins", Read()),
    post("unpin_catalog_version", "/v1/catalog/pins/delete", Commit()),
    post("register_intent", "/v1/catalog/intents", Commit()),
    get("list_intents", "/v1/catalog/intents", Read()),
    post("end_intent", "/v1/catalog/intents/end", Commit()),
    get("list_dropped_tables", "/v1/catalog/dropped", Read(query=Paging)),
    get("describe_catalog_version", "/v1/catalog/versions/{version}", Read()),
)
