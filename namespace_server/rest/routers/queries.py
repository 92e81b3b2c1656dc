"""Reads of rows."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response
from lance_namespace import CountTableRowsRequest, GetTableStatsRequest

from namespace_server.rest.dependencies import Pin, Service, read_of
from namespace_server.rest.request_body import JsonObject
from namespace_server.rest.responses import success

router = APIRouter()


@router.post("/v1/table/{id}/count_rows")
async def count_table_rows(
    request: Annotated[JsonObject, Depends(read_of(CountTableRowsRequest))], at: Pin, service: Service
) -> Response:
    """The number of rows, or of those that match a predicate."""
    return success(service, await service.data.value("count_table_rows", request, at=at))


@router.post("/v1/table/{id}/stats")
async def get_table_stats(
    request: Annotated[JsonObject, Depends(read_of(GetTableStatsRequest))], at: Pin, service: Service
) -> Response:
    """Bytes, rows, indices and fragments of a table."""
    return success(service, await service.data.value("get_table_stats", request, at=at))
