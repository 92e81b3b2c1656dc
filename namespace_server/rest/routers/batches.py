"""Changes of many tables, all or nothing."""

from __future__ import annotations

from namespace_server.rest.direct import ChangeRoute
from namespace_server.rest.models import CatalogBatchRequest, CreateAnyTableVersionsRequest

DIRECT = (
    # Operations on many tables as one catalog version; staged manifests of several tables as one catalog version.
    ChangeRoute("batch_commit_tables", "/v1/table/batch-commit", CatalogBatchRequest),
    ChangeRoute("batch_create_table_versions", "/v1/table/version/batch-create", CreateAnyTableVersionsRequest),
)
