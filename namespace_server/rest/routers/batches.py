"""Changes of many tables, all or nothing."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response

from namespace_server.rest.dependencies import IdempotencyKey, Principal, Service, change_of
from namespace_server.rest.models import CatalogBatchRequest, CreateAnyTableVersionsRequest
from namespace_server.rest.request_body import Change
from namespace_server.rest.responses import success

router = APIRouter()


@router.post("/v1/table/batch-commit")
async def batch_commit_tables(
    change: Annotated[Change, Depends(change_of(CatalogBatchRequest))],
    principal: Principal,
    key: IdempotencyKey,
    service: Service,
) -> Response:
    """Commit operations on many tables as one catalog version."""
    return success(service, await service.commit("batch_commit_tables", change, principal, key))


@router.post("/v1/table/version/batch-create")
async def batch_create_table_versions(
    change: Annotated[Change, Depends(change_of(CreateAnyTableVersionsRequest))],
    principal: Principal,
    key: IdempotencyKey,
    service: Service,
) -> Response:
    """Publish staged manifests of several tables as one catalog version."""
    return success(service, await service.commit("batch_create_table_versions", change, principal, key))
