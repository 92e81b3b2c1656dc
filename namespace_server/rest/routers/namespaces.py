"""Namespaces."""

from __future__ import annotations

from namespace_server.rest.handlers import Commit, Read
from namespace_server.rest.models import Paging
from namespace_server.rest.routing import get, post

ROUTES = (
    post("namespace_exists", "/v1/namespace/{id}/exists", Read(body=True, silent=True), fast=True),
    post("describe_namespace", "/v1/namespace/{id}/describe", Read(body=True), fast=True),
    get("list_namespaces", "/v1/namespace/{id}/list", Read(query=Paging), fast=True),
    post("create_namespace", "/v1/namespace/{id}/create", Commit()),
    # Stock clients send no body.
    post("drop_namespace", "/v1/namespace/{id}/drop", Commit(optional=True)),
    post("undrop_namespace", "/v1/namespace/{id}/undrop", Commit(optional=True)),
)
