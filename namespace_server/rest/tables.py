"""Tables. Stock clients send `drop` without a body, or with `null`."""

from __future__ import annotations

from namespace_server.rest.endpoints import PAGING, Body, Endpoint, flag, parameters

_LISTING = parameters(*PAGING, flag("include_declared"))
_DESCRIBING = parameters(flag("with_table_uri"), flag("load_detailed_metadata"), flag("check_declared"))

ENDPOINTS = (
    Endpoint("describe_table", "POST", "/v1/table/{id}/describe", parameters=_DESCRIBING),
    Endpoint("table_exists", "POST", "/v1/table/{id}/exists", silent=True),
    Endpoint("list_tables", "GET", "/v1/namespace/{id}/table/list", Body.NONE, _LISTING),
    Endpoint("list_all_tables", "GET", "/v1/table", Body.NONE, _LISTING),
    Endpoint("declare_table", "POST", "/v1/table/{id}/declare"),
    Endpoint("register_table", "POST", "/v1/table/{id}/register"),
    Endpoint("deregister_table", "POST", "/v1/table/{id}/deregister"),
    Endpoint("rename_table", "POST", "/v1/table/{id}/rename"),
    Endpoint("drop_table", "POST", "/v1/table/{id}/drop", Body.OPTIONAL),
)
