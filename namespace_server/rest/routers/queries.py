"""Reads of rows, and plans of queries."""

from __future__ import annotations

from namespace_server.rest.handlers import TableRead
from namespace_server.rest.routing import post

ROUTES = (
    post("query_table", "/v1/table/{id}/query", TableRead(large=True, streamed=True), fast=True),
    post("count_table_rows", "/v1/table/{id}/count_rows", TableRead(large=True), fast=True),
    post("get_table_stats", "/v1/table/{id}/stats", TableRead()),
    post(
        "explain_table_query_plan",
        "/v1/table/{id}/explain_plan",
        TableRead(large=True),
    ),
    post("analyze_table_query_plan", "/v1/table/{id}/analyze_plan", TableRead(large=True)),
)
