"""Tables."""

from __future__ import annotations

from namespace_server.rest.handlers import Commit, Read
from namespace_server.rest.models import DescribeTableQuery, ListTablesQuery
from namespace_server.rest.routing import get, post

ROUTES = (
    post("describe_table", "/v1/table/{id}/describe", Read(DescribeTableQuery, body=True), fast=True),
    get("list_tables", "/v1/namespace/{id}/table/list", Read(query=ListTablesQuery), fast=True),
    post("table_exists", "/v1/table/{id}/exists", Read(body=True, silent=True), fast=True),
    get("list_all_tables", "/v1/table", Read(query=ListTablesQuery), fast=True),
    post("declare_table", "/v1/table/{id}/declare", Commit(), fast=True),
    post("register_table", "/v1/table/{id}/register", Commit()),
    post("deregister_table", "/v1/table/{id}/deregister", Commit()),
    post("rename_table", "/v1/table/{id}/rename", Commit()),
    # Stock clients send no body, or `null`.
    post("drop_table", "/v1/table/{id}/drop", Commit(optional=True)),
    post("undrop_table", "/v1/table/{id}/undrop", Commit(optional=True)),
)
