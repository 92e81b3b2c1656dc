"""Changes of rows. Rows come as an Arrow IPC stream or file, the other fields of these requests in the query."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response
from lance_namespace import DeleteFromTableRequest, UpdateTableRequest

from namespace_server.rest.dependencies import By, Service, rows_of
from namespace_server.rest.direct import RowChangeRoute, RowsRoute
from namespace_server.rest.models import CreateTableQuery, InsertQuery, MergeInsertQuery, StageRowsQuery
from namespace_server.rest.request.exchange import RowsRequest
from namespace_server.rest.responses import success

DIRECT = (
    RowsRoute("insert_into_table", "/v1/table/{id}/insert", InsertQuery),
    RowsRoute("merge_insert_into_table", "/v1/table/{id}/merge_insert", MergeInsertQuery),
    RowChangeRoute("update_table", "/v1/table/{id}/update", UpdateTableRequest),
    RowChangeRoute("delete_from_table", "/v1/table/{id}/delete", DeleteFromTableRequest),
)

router = APIRouter()


@router.post("/v1/table/{id}/create")
async def create_table(
    rows: Annotated[RowsRequest, Depends(rows_of(CreateTableQuery))], caller: By, service: Service
) -> Response:
    """Create a table from rows: name, properties and first version in one flip."""
    answer = await service.data.create_table(rows.request, rows.body, caller)
    return success(service, await service.with_storage_options(answer))


@router.post("/v1/table/{id}/stage")
async def stage_rows(rows: Annotated[RowsRequest, Depends(rows_of(StageRowsQuery))], service: Service) -> Response:
    """Write rows for a batch that commits them, together with changes of other tables."""
    return success(service, await service.data.stage_rows(rows.request, rows.body))
