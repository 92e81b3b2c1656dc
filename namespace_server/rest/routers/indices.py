"""Indices of a table."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response
from lance_namespace import (
    CreateTableIndexRequest,
    DescribeTableIndexStatsRequest,
    DropTableIndexRequest,
    ListTableIndicesRequest,
)

from namespace_server.rest.dependencies import At, By, Service, named_in_path, read_of
from namespace_server.rest.direct import RowChangeRoute
from namespace_server.rest.models import BranchQuery
from namespace_server.rest.request.body import JsonObject
from namespace_server.rest.responses import read_success, success

_COMMITTED = ("transaction_id",)

DIRECT = (
    RowChangeRoute("create_table_index", "/v1/table/{id}/create_index", CreateTableIndexRequest, _COMMITTED),
    RowChangeRoute(
        "create_table_scalar_index", "/v1/table/{id}/create_scalar_index", CreateTableIndexRequest, _COMMITTED
    ),
)

router = APIRouter()


@router.post("/v1/table/{id}/index/list")
async def list_table_indices(
    request: Annotated[JsonObject, Depends(read_of(ListTableIndicesRequest, optional=True))],
    at: At,
    service: Service,
) -> Response:
    """The indices of a table."""
    return read_success(service, await service.data.value("list_table_indices", request, at=at))


@router.post("/v1/table/{id}/index/{index_name}/stats")
async def describe_table_index_stats(
    request: Annotated[JsonObject, Depends(read_of(DescribeTableIndexStatsRequest))],
    index_name: str,
    at: At,
    service: Service,
) -> Response:
    """Type, rows and segments of an index."""
    named = named_in_path(request, "index_name", index_name)
    return read_success(service, await service.data.value("describe_table_index_stats", named, at=at))


@router.post("/v1/table/{id}/index/{index_name}/drop")
async def drop_table_index(
    request: Annotated[JsonObject, Depends(read_of(DropTableIndexRequest, optional=True, query=BranchQuery))],
    index_name: str,
    caller: By,
    service: Service,
) -> Response:
    """Remove an index. Stock clients send no body."""
    named = named_in_path(request, "index_name", index_name)
    return success(
        service, (await service.data.change("drop_table_index", named, caller=caller)).only("transaction_id")
    )
