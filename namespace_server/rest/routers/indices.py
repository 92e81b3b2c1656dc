"""Indices of a table."""

from __future__ import annotations

from namespace_server.rest.handlers import TableChange, TableRead
from namespace_server.rest.models import BranchQuery
from namespace_server.rest.routing import post

_COMMITTED = ("transaction_id",)

ROUTES = (
    post("create_table_index", "/v1/table/{id}/create_index", TableChange(_COMMITTED)),
    post(
        "create_table_scalar_index",
        "/v1/table/{id}/create_scalar_index",
        TableChange(_COMMITTED),
    ),
    post("list_table_indices", "/v1/table/{id}/index/list", TableRead(optional=True)),
    post(
        "describe_table_index_stats",
        "/v1/table/{id}/index/{index_name}/stats",
        TableRead(named="index_name"),
    ),
    # Stock clients send no body.
    post(
        "drop_table_index",
        "/v1/table/{id}/index/{index_name}/drop",
        TableChange(_COMMITTED, BranchQuery, optional=True, named="index_name"),
    ),
)
