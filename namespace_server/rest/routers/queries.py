"""Reads of rows, and plans of queries."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response
from lance_namespace import CountTableRowsRequest, GetTableStatsRequest

from namespace_server.data.reads import plan_request
from namespace_server.rest.dependencies import At, Service, read_of
from namespace_server.rest.direct import RowReadRoute
from namespace_server.rest.models import AnalyzeRequest, ExplainRequest, QueryRequest
from namespace_server.rest.request.body import JsonObject
from namespace_server.rest.responses import read_success

DIRECT = (
    RowReadRoute("query_table", "/v1/table/{id}/query", QueryRequest, streamed=True),
    RowReadRoute("count_table_rows", "/v1/table/{id}/count_rows", CountTableRowsRequest),
)

router = APIRouter()


@router.post("/v1/table/{id}/stats")
async def get_table_stats(
    request: Annotated[JsonObject, Depends(read_of(GetTableStatsRequest))], at: At, service: Service
) -> Response:
    """Bytes, rows, indices and fragments of a table."""
    return read_success(service, await service.data.value("get_table_stats", request, at=at))


@router.post("/v1/table/{id}/explain_plan")
async def explain_table_query_plan(
    request: Annotated[JsonObject, Depends(read_of(ExplainRequest, large=True))], at: At, service: Service
) -> Response:
    """The plan of a query."""
    return read_success(service, await service.data.value("explain_table_query_plan", plan_request(request), at=at))


@router.post("/v1/table/{id}/analyze_plan")
async def analyze_table_query_plan(
    request: Annotated[JsonObject, Depends(read_of(AnalyzeRequest, large=True))], at: At, service: Service
) -> Response:
    """The plan of a query with what it took to do it."""
    return read_success(service, await service.data.value("analyze_table_query_plan", request, at=at))
