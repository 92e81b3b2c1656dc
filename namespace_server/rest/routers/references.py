"""Tags and branches of a table."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response
from lance_namespace import (
    CreateTableBranchRequest,
    CreateTableTagRequest,
    DeleteTableBranchRequest,
    DeleteTableTagRequest,
    GetTableTagVersionRequest,
    ListTableBranchesRequest,
    ListTableTagsRequest,
    UpdateTableTagRequest,
)

from namespace_server.rest.dependencies import By, Service, change_of
from namespace_server.rest.models import Paging
from namespace_server.rest.reads import ReadRoute
from namespace_server.rest.request.body import Change
from namespace_server.rest.responses import success

DIRECT = (
    # Everything is in the query; stock clients send no body, or `null`.
    ReadRoute("list_table_tags", "POST", "/v1/table/{id}/tags/list", ListTableTagsRequest, Paging, optional_body=True),
    ReadRoute("get_table_tag_version", "POST", "/v1/table/{id}/tags/version", GetTableTagVersionRequest),
    ReadRoute(
        "list_table_branches",
        "POST",
        "/v1/table/{id}/branches/list",
        ListTableBranchesRequest,
        Paging,
        optional_body=True,
    ),
)

router = APIRouter()


@router.post("/v1/table/{id}/tags/create")
async def create_table_tag(
    change: Annotated[Change, Depends(change_of(CreateTableTagRequest))], caller: By, service: Service
) -> Response:
    """Name a version of a table."""
    return success(service, await service.change("create_table_tag", change, caller))


@router.post("/v1/table/{id}/tags/update")
async def update_table_tag(
    change: Annotated[Change, Depends(change_of(UpdateTableTagRequest))], caller: By, service: Service
) -> Response:
    """Let a tag name another version."""
    return success(service, await service.change("update_table_tag", change, caller))


@router.post("/v1/table/{id}/tags/delete")
async def delete_table_tag(
    change: Annotated[Change, Depends(change_of(DeleteTableTagRequest))], caller: By, service: Service
) -> Response:
    """Remove a tag."""
    return success(service, await service.change("delete_table_tag", change, caller))


@router.post("/v1/table/{id}/branches/create")
async def create_table_branch(
    change: Annotated[Change, Depends(change_of(CreateTableBranchRequest))], caller: By, service: Service
) -> Response:
    """Begin a branch at a version of main or of another branch."""
    return success(service, await service.commit("create_table_branch", change, caller))


@router.post("/v1/table/{id}/branches/delete")
async def delete_table_branch(
    change: Annotated[Change, Depends(change_of(DeleteTableBranchRequest))], caller: By, service: Service
) -> Response:
    """Remove a branch that nothing needs, with its versions and files."""
    return success(service, await service.change("delete_table_branch", change, caller))
