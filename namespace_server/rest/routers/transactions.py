"""Transactions of tables, and batches."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response
from lance_namespace import AlterTransactionRequest, DescribeTransactionRequest

from namespace_server.rest.dependencies import By, Service, change_of
from namespace_server.rest.reads import ReadRoute
from namespace_server.rest.request.body import Change
from namespace_server.rest.responses import success

DIRECT = (
    ReadRoute(
        "describe_transaction",
        "POST",
        "/v1/transaction/{id}/describe",
        DescribeTransactionRequest,
        optional_body=True,
    ),
)

router = APIRouter()


@router.post("/v1/transaction/{id}/alter")
async def alter_transaction(
    change: Annotated[Change, Depends(change_of(AlterTransactionRequest))], caller: By, service: Service
) -> Response:
    """Note properties on a transaction."""
    return success(service, await service.change("alter_transaction", change, caller))
