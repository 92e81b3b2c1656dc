"""Table versions."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response
from lance_namespace import (
    BatchDeleteTableVersionsRequest,
    DescribeTableVersionRequest,
    ListTableVersionsRequest,
)

from namespace_server.rest.dependencies import By, Service, change_of
from namespace_server.rest.direct import ChangeRoute
from namespace_server.rest.models import CreateAnyTableVersionRequest, ListTableVersionsQuery
from namespace_server.rest.reads import ReadRoute
from namespace_server.rest.request.body import Change
from namespace_server.rest.responses import success

DIRECT = (
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
    ChangeRoute("create_table_version", "/v1/table/{id}/version/create", CreateAnyTableVersionRequest),
)

router = APIRouter()


@router.post("/v1/table/{id}/version/delete")
async def batch_delete_table_versions(
    change: Annotated[Change, Depends(change_of(BatchDeleteTableVersionsRequest))],
    caller: By,
    service: Service,
) -> Response:
    """Remove versions of a table."""
    return success(service, await service.commit("batch_delete_table_versions", change, caller))
