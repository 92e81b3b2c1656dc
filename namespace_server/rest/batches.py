"""Batches: many tables, all or none."""

from __future__ import annotations

from namespace_server.rest.endpoints import Endpoint

ENDPOINTS = (
    Endpoint("batch_commit_tables", "POST", "/v1/table/batch-commit", keyed=True),
    Endpoint("batch_create_table_versions", "POST", "/v1/table/version/batch-create", keyed=True),
)
