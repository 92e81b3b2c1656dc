"""Reads of rows, and plans of queries."""

from __future__ import annotations

from lance_namespace import CountTableRowsRequest, GetTableStatsRequest

from namespace_server.data.reads import plan_request
from namespace_server.rest.handlers import TableRead
from namespace_server.rest.models import AnalyzeRequest, ExplainRequest, QueryRequest
from namespace_server.rest.routing import post

ROUTES = (
    post("query_table", "/v1/table/{id}/query", TableRead(QueryRequest, large=True, streamed=True), fast=True),
    post("count_table_rows", "/v1/table/{id}/count_rows", TableRead(CountTableRowsRequest, large=True), fast=True),
    post("get_table_stats", "/v1/table/{id}/stats", TableRead(GetTableStatsRequest)),
    post(
        "explain_table_query_plan",
        "/v1/table/{id}/explain_plan",
        TableRead(ExplainRequest, large=True, to_request=plan_request),
    ),
    post("analyze_table_query_plan", "/v1/table/{id}/analyze_plan", TableRead(AnalyzeRequest, large=True)),
)
