"""Transactions of tables, and batches."""

from __future__ import annotations

from namespace_server.rest.handlers import Change, Read
from namespace_server.rest.routing import post

ROUTES = (
    post(
        "describe_transaction",
        "/v1/transaction/{id}/describe",
        Read(body=True, optional=True),
    ),
    post("alter_transaction", "/v1/transaction/{id}/alter", Change()),
)
