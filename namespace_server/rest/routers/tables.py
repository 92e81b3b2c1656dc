"""Tables."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response
from lance_namespace import (
    DeclareTableRequest,
    DeregisterTableRequest,
    DescribeTableRequest,
    DropTableRequest,
    RegisterTableRequest,
    RenameTableRequest,
    TableExistsRequest,
)

from namespace_server.rest.dependencies import By, Service, change_of
from namespace_server.rest.direct import ChangeRoute
from namespace_server.rest.models import DescribeTableQuery, ListTablesQuery
from namespace_server.rest.reads import ReadRoute
from namespace_server.rest.request.body import Change
from namespace_server.rest.responses import success

DIRECT = (
    ReadRoute("describe_table", "POST", "/v1/table/{id}/describe", DescribeTableRequest, DescribeTableQuery),
    ReadRoute("list_tables", "GET", "/v1/namespace/{id}/table/list", query=ListTablesQuery),
    ReadRoute("table_exists", "POST", "/v1/table/{id}/exists", TableExistsRequest, silent=True),
    ReadRoute("list_all_tables", "GET", "/v1/table", query=ListTablesQuery),
    ChangeRoute("declare_table", "/v1/table/{id}/declare", DeclareTableRequest, vends=True),
)

router = APIRouter()


@router.post("/v1/table/{id}/register")
async def register_table(
    change: Annotated[Change, Depends(change_of(RegisterTableRequest))], caller: By, service: Service
) -> Response:
    """Put an existing dataset under a name."""
    return success(service, await service.commit("register_table", change, caller))


@router.post("/v1/table/{id}/deregister")
async def deregister_table(
    change: Annotated[Change, Depends(change_of(DeregisterTableRequest))], caller: By, service: Service
) -> Response:
    """Remove a table from the catalog; its files stay."""
    return success(service, await service.commit("deregister_table", change, caller))


@router.post("/v1/table/{id}/rename")
async def rename_table(
    change: Annotated[Change, Depends(change_of(RenameTableRequest))], caller: By, service: Service
) -> Response:
    """Give a table another name, in the same or another namespace."""
    return success(service, await service.commit("rename_table", change, caller))


@router.post("/v1/table/{id}/drop")
async def drop_table(
    change: Annotated[Change, Depends(change_of(DropTableRequest, optional=True))],
    caller: By,
    service: Service,
) -> Response:
    """Drop a table. Stock clients send no body, or `null`."""
    return success(service, await service.commit("drop_table", change, caller))
