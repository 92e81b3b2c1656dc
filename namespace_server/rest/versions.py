"""Table versions. `list` has its parameters in the query; stock clients send it without a body, or with `null`."""

from __future__ import annotations

from namespace_server.rest.endpoints import PAGING, Body, Endpoint, flag, parameters, text

_LISTING = parameters(*PAGING, text("branch"), flag("descending"))

ENDPOINTS = (
    Endpoint("list_table_versions", "POST", "/v1/table/{id}/version/list", Body.OPTIONAL, _LISTING),
    Endpoint("describe_table_version", "POST", "/v1/table/{id}/version/describe"),
    Endpoint("create_table_version", "POST", "/v1/table/{id}/version/create"),
    Endpoint("batch_delete_table_versions", "POST", "/v1/table/{id}/version/delete", keyed=True),
)
