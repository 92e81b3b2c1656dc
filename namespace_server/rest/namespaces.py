"""Namespaces."""

from __future__ import annotations

from namespace_server.rest.endpoints import PAGING, Body, Endpoint, parameters

ENDPOINTS = (
    Endpoint("namespace_exists", "POST", "/v1/namespace/{id}/exists", silent=True),
    Endpoint("describe_namespace", "POST", "/v1/namespace/{id}/describe"),
    Endpoint("list_namespaces", "GET", "/v1/namespace/{id}/list", Body.NONE, parameters(*PAGING)),
    Endpoint("create_namespace", "POST", "/v1/namespace/{id}/create"),
    Endpoint("drop_namespace", "POST", "/v1/namespace/{id}/drop", Body.OPTIONAL),
)
