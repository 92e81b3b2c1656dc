"""Namespaces."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response
from lance_namespace import (
    CreateNamespaceRequest,
    DescribeNamespaceRequest,
    DropNamespaceRequest,
    NamespaceExistsRequest,
)

from namespace_server.rest.dependencies import By, Service, change_of
from namespace_server.rest.models import Paging
from namespace_server.rest.reads import ReadRoute
from namespace_server.rest.request.body import Change
from namespace_server.rest.responses import success

DIRECT = (
    ReadRoute("namespace_exists", "POST", "/v1/namespace/{id}/exists", NamespaceExistsRequest, silent=True),
    ReadRoute("describe_namespace", "POST", "/v1/namespace/{id}/describe", DescribeNamespaceRequest),
    ReadRoute("list_namespaces", "GET", "/v1/namespace/{id}/list", query=Paging),
)

router = APIRouter()


@router.post("/v1/namespace/{id}/create")
async def create_namespace(
    change: Annotated[Change, Depends(change_of(CreateNamespaceRequest))], caller: By, service: Service
) -> Response:
    """Create a namespace in an existing parent."""
    return success(service, await service.commit("create_namespace", change, caller))


@router.post("/v1/namespace/{id}/drop")
async def drop_namespace(
    change: Annotated[Change, Depends(change_of(DropNamespaceRequest, optional=True))],
    caller: By,
    service: Service,
) -> Response:
    """Drop a namespace. Stock clients send no body."""
    return success(service, await service.commit("drop_namespace", change, caller))
