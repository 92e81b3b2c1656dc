"""Changes of rows. Rows come as an Arrow IPC stream or file, the other fields of these requests in the query."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response
from lance_namespace import DeleteFromTableRequest, UpdateTableRequest

from namespace_server.rest.dependencies import RowsRequest, Service, read_of, rows_of
from namespace_server.rest.models import CreateTableQuery, InsertQuery, MergeInsertQuery, StageRowsQuery
from namespace_server.rest.request_body import JsonObject
from namespace_server.rest.responses import success

router = APIRouter()


@router.post("/v1/table/{id}/create")
async def create_table(rows: Annotated[RowsRequest, Depends(rows_of(CreateTableQuery))], service: Service) -> Response:
    """Create a table from rows: name, properties and first version in one flip."""
    return success(service, await service.data.create_table(rows.request, rows.receive))


@router.post("/v1/table/{id}/stage")
async def stage_rows(rows: Annotated[RowsRequest, Depends(rows_of(StageRowsQuery))], service: Service) -> Response:
    """Write rows for a batch that commits them, together with changes of other tables."""
    return success(service, await service.data.stage_rows(rows.request, rows.receive))


@router.post("/v1/table/{id}/insert")
async def insert_into_table(rows: Annotated[RowsRequest, Depends(rows_of(InsertQuery))], service: Service) -> Response:
    """Append rows, or replace all rows (mode `overwrite`)."""
    return success(service, await service.data.change("insert_into_table", rows.request, rows.receive))


@router.post("/v1/table/{id}/merge_insert")
async def merge_insert_into_table(
    rows: Annotated[RowsRequest, Depends(rows_of(MergeInsertQuery))], service: Service
) -> Response:
    """Merge rows by key."""
    return success(service, await service.data.change("merge_insert_into_table", rows.request, rows.receive))


@router.post("/v1/table/{id}/update")
async def update_table(
    request: Annotated[JsonObject, Depends(read_of(UpdateTableRequest))], service: Service
) -> Response:
    """Set columns to SQL expressions in the rows that match."""
    return success(service, await service.data.change("update_table", request))


@router.post("/v1/table/{id}/delete")
async def delete_from_table(
    request: Annotated[JsonObject, Depends(read_of(DeleteFromTableRequest))], service: Service
) -> Response:
    """Delete the rows that match."""
    return success(service, await service.data.change("delete_from_table", request))
