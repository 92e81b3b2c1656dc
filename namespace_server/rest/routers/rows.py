"""Changes of rows. Rows come as an Arrow IPC stream or file, the other fields of these requests in the query."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response

from namespace_server.rest.dependencies import RowsRequest, Service, rows_of
from namespace_server.rest.models import InsertQuery
from namespace_server.rest.responses import success

router = APIRouter()


@router.post("/v1/table/{id}/insert")
async def insert_into_table(rows: Annotated[RowsRequest, Depends(rows_of(InsertQuery))], service: Service) -> Response:
    """Append rows, or replace all rows (mode `overwrite`)."""
    return success(service, await service.data.change("insert_into_table", rows.request, rows.receive))
