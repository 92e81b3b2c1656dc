"""Indices of a table."""

from __future__ import annotations

from lance_namespace import (
    CreateTableIndexRequest,
    DescribeTableIndexStatsRequest,
    DropTableIndexRequest,
    ListTableIndicesRequest,
)

from namespace_server.rest.handlers import TableChange, TableRead
from namespace_server.rest.models import BranchQuery
from namespace_server.rest.routing import post

_COMMITTED = ("transaction_id",)

ROUTES = (
    post("create_table_index", "/v1/table/{id}/create_index", TableChange(CreateTableIndexRequest, _COMMITTED)),
    post(
        "create_table_scalar_index",
        "/v1/table/{id}/create_scalar_index",
        TableChange(CreateTableIndexRequest, _COMMITTED),
    ),
    post("list_table_indices", "/v1/table/{id}/index/list", TableRead(ListTableIndicesRequest, optional=True)),
    post(
        "describe_table_index_stats",
        "/v1/table/{id}/index/{index_name}/stats",
        TableRead(DescribeTableIndexStatsRequest, named="index_name"),
    ),
    # Stock clients send no body.
    post(
        "drop_table_index",
        "/v1/table/{id}/index/{index_name}/drop",
        TableChange(DropTableIndexRequest, _COMMITTED, BranchQuery, optional=True, named="index_name"),
    ),
)
