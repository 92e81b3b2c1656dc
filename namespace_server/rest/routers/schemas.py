"""Changes of the metadata and the columns of a table, and going back to an earlier version of it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response
from lance_namespace import (
    AlterTableAddColumnsRequest,
    AlterTableDropColumnsRequest,
    RestoreTableRequest,
    UpdateFieldMetadataRequest,
)

from namespace_server.data.operations import DataAnswer
from namespace_server.rest.dependencies import By, Service, read_of, schema_metadata_of
from namespace_server.rest.models import AlterAnyColumnsRequest
from namespace_server.rest.request.body import JsonObject
from namespace_server.rest.responses import success

router = APIRouter()


@router.post("/v1/table/{id}/schema_metadata/update")
async def update_table_schema_metadata(
    request: Annotated[JsonObject, Depends(schema_metadata_of)], caller: By, service: Service
) -> Response:
    """Replace the schema metadata. Body and answer are the keys and values alone."""
    answer = await service.data.change("update_table_schema_metadata", request, caller=caller)
    return success(service, DataAnswer(answer.body["metadata"], answer.catalog_version))


@router.post("/v1/table/{id}/update_field_metadata")
async def update_field_metadata(
    request: Annotated[JsonObject, Depends(read_of(UpdateFieldMetadataRequest))], caller: By, service: Service
) -> Response:
    """Set, remove or replace the metadata of fields."""
    answer = await service.data.change("update_field_metadata", request, caller=caller)
    return success(service, answer.only("version", "fields"))


@router.post("/v1/table/{id}/restore")
async def restore_table(
    request: Annotated[JsonObject, Depends(read_of(RestoreTableRequest))], caller: By, service: Service
) -> Response:
    """Make a new version with the content of an earlier one."""
    return success(service, (await service.data.change("restore_table", request, caller=caller)).only("transaction_id"))


@router.post("/v1/table/{id}/add_columns")
async def alter_table_add_columns(
    request: Annotated[JsonObject, Depends(read_of(AlterTableAddColumnsRequest))], caller: By, service: Service
) -> Response:
    """Add columns with the values of SQL expressions."""
    return success(
        service, (await service.data.change("alter_table_add_columns", request, caller=caller)).only("version")
    )


@router.post("/v1/table/{id}/alter_columns")
async def alter_table_alter_columns(
    request: Annotated[JsonObject, Depends(read_of(AlterAnyColumnsRequest))], caller: By, service: Service
) -> Response:
    """Rename columns, change whether they may be null, and cast them."""
    return success(
        service, (await service.data.change("alter_table_alter_columns", request, caller=caller)).only("version")
    )


@router.post("/v1/table/{id}/drop_columns")
async def alter_table_drop_columns(
    request: Annotated[JsonObject, Depends(read_of(AlterTableDropColumnsRequest))], caller: By, service: Service
) -> Response:
    """Drop columns, or fields in them."""
    answer = await service.data.change("alter_table_drop_columns", request, caller=caller)
    return success(service, answer.only("transaction_id", "version"))
