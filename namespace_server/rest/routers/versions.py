"""Table versions."""

from __future__ import annotations

from namespace_server.rest.handlers import Commit, Read
from namespace_server.rest.models import ListTableVersionsQuery
from namespace_server.rest.routing import post

ROUTES = (
    # Everything is in the query; stock clients send no body, or `null`.
    post(
        "list_table_versions",
        "/v1/table/{id}/version/list",
        Read(ListTableVersionsQuery, body=True, optional=True),
        fast=True,
    ),
    post("describe_table_version", "/v1/table/{id}/version/describe", Read(body=True), fast=True),
    post("create_table_version", "/v1/table/{id}/version/create", Commit(), fast=True),
    post("batch_delete_table_versions", "/v1/table/{id}/version/delete", Commit()),
)
