"""Table versions."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response
from lance_namespace import (
    BatchDeleteTableVersionsRequest,
    DescribeTableVersionRequest,
    ListTableVersionsRequest,
)

from namespace_server.rest.dependencies import IdempotencyKey, Principal, Service, change_of
from namespace_server.rest.models import CreateAnyTableVersionRequest, ListTableVersionsQuery
from namespace_server.rest.reads import ReadRoute
from namespace_server.rest.request_body import Change
from namespace_server.rest.responses import success

READS = (
    # Everything is in the query; stock clients send no body, or `null`.
    ReadRoute(
        "list_table_versions",
        "POST",
        "/v1/table/{id}/version/list",
        ListTableVersionsRequest,
        ListTableVersionsQuery,
        optional_body=True,
    ),
    ReadRoute("describe_table_version", "POST", "/v1/table/{id}/version/describe", DescribeTableVersionRequest),
)

router = APIRouter()


@router.post("/v1/table/{id}/version/create")
async def create_table_version(
    change: Annotated[Change, Depends(change_of(CreateAnyTableVersionRequest))], principal: Principal, service: Service
) -> Response:
    """Publish a staged manifest as the next version of a table."""
    return success(service, await service.commit("create_table_version", change, principal))


@router.post("/v1/table/{id}/version/delete")
async def batch_delete_table_versions(
    change: Annotated[Change, Depends(change_of(BatchDeleteTableVersionsRequest))],
    principal: Principal,
    key: IdempotencyKey,
    service: Service,
) -> Response:
    """Remove versions of a table."""
    return success(service, await service.commit("batch_delete_table_versions", change, principal, key))
