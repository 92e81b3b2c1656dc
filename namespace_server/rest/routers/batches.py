"""Changes of many tables, all or nothing."""

from __future__ import annotations

from namespace_server.rest.handlers import Commit
from namespace_server.rest.routing import post

ROUTES = (
    # Operations on many tables as one catalog version; staged manifests of several tables as one catalog version.
    post("batch_commit_tables", "/v1/table/batch-commit", Commit(), fast=True),
    post(
        "batch_create_table_versions",
        "/v1/table/version/batch-create",
        Commit(),
        fast=True,
    ),
)
