"""Table versions."""

from __future__ import annotations

from lance_namespace import (
    DescribeTableVersionRequest,
    ListTableVersionsRequest,
)

from namespace_server.rest.handlers import Commit, Read
from namespace_server.rest.models import ListTableVersionsQuery
from namespace_server.rest.routing import post

ROUTES = (
    # Everything is in the query; stock clients send no body, or `null`.
    post(
        "list_table_versions",
        "/v1/table/{id}/version/list",
        Read(ListTableVersionsRequest, ListTableVersionsQuery, optional_body=True),
        fast=True,
    ),
    post("describe_table_version", "/v1/table/{id}/version/describe", Read(DescribeTableVersionRequest), fast=True),
    post("create_table_version", "/v1/table/{id}/version/create", Commit(), fast=True),
    post("batch_delete_table_versions", "/v1/table/{id}/version/delete", Commit()),
)
