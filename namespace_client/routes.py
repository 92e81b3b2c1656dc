"""The routes of the operations that the client calls: method, path, and where the fields of a request go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import quote

from table_data.batch_operations import DELIMITER, Json

Method = Literal["GET", "POST"]


class _Route(NamedTuple):
    """The route of an operation. Of `in_query` the fields are query parameters, though it is a POST."""

    method: Method
    path: str
    in_query: bool = False


class HttpRequest(NamedTuple):
    """A request as HTTP sends it."""

    method: Method
    path: str
    body: Json | None
    parameters: dict[str, Any]


ROUTES: Final[Mapping[str, _Route]] = {
    "who_am_i": _Route("GET", "/v1/whoami"),
    "describe_catalog": _Route("GET", "/v1/catalog"),
    "describe_catalog_figures": _Route("GET", "/v1/catalog/figures"),
    "find_tables": _Route("GET", "/v1/catalog/tables"),
    "list_catalog_versions": _Route("GET", "/v1/catalog/versions"),
    "list_audited_versions": _Route("GET", "/v1/catalog/audit/versions"),
    "list_refused_attempts": _Route("GET", "/v1/catalog/audit/refused"),
    "describe_catalog_version": _Route("GET", "/v1/catalog/versions/{version}"),
    "list_catalog_pins": _Route("GET", "/v1/catalog/pins"),
    "list_intents": _Route("GET", "/v1/catalog/intents"),
    "list_catalog_events": _Route("GET", "/v1/catalog/events"),
    "list_cursors": _Route("GET", "/v1/catalog/cursors"),
    "enable_grants": _Route("POST", "/v1/catalog/access"),
    "change_grants": _Route("POST", "/v1/catalog/grants"),
    "list_grants": _Route("GET", "/v1/catalog/grants"),
    "check_privilege": _Route("POST", "/v1/catalog/can"),
    "list_dropped_tables": _Route("GET", "/v1/catalog/dropped"),
    "list_namespaces": _Route("GET", "/v1/namespace/{id}/list"),
    "describe_namespace": _Route("POST", "/v1/namespace/{id}/describe"),
    "create_namespace": _Route("POST", "/v1/namespace/{id}/create"),
    "drop_namespace": _Route("POST", "/v1/namespace/{id}/drop"),
    "undrop_namespace": _Route("POST", "/v1/namespace/{id}/undrop"),
    "list_tables": _Route("GET", "/v1/namespace/{id}/table/list"),
    "list_all_tables": _Route("GET", "/v1/table"),
    "describe_table": _Route("POST", "/v1/table/{id}/describe"),
    "register_table": _Route("POST", "/v1/table/{id}/register"),
    "drop_table": _Route("POST", "/v1/table/{id}/drop"),
    "undrop_table": _Route("POST", "/v1/table/{id}/undrop"),
    "clone_table": _Route("POST", "/v1/table/{id}/clone"),
    "rename_table": _Route("POST", "/v1/table/{id}/rename"),
    "maintain_table": _Route("POST", "/v1/table/{id}/maintain"),
    "batch_delete_table_versions": _Route("POST", "/v1/table/{id}/version/delete"),
    "list_table_versions": _Route("POST", "/v1/table/{id}/version/list", in_query=True),
    "describe_table_version": _Route("POST", "/v1/table/{id}/version/describe"),
    "list_table_fragments": _Route("GET", "/v1/table/{id}/fragments"),
    "list_table_tags": _Route("POST", "/v1/table/{id}/tags/list", in_query=True),
    "create_table_tag": _Route("POST", "/v1/table/{id}/tags/create"),
    "update_table_tag": _Route("POST", "/v1/table/{id}/tags/update"),
    "delete_table_tag": _Route("POST", "/v1/table/{id}/tags/delete"),
    "list_table_branches": _Route("POST", "/v1/table/{id}/branches/list", in_query=True),
    "create_table_branch": _Route("POST", "/v1/table/{id}/branches/create"),
    "delete_table_branch": _Route("POST", "/v1/table/{id}/branches/delete"),
    "read_table_changes": _Route("POST", "/v1/table/{id}/changes"),
    "query_table": _Route("POST", "/v1/table/{id}/query"),
    "count_table_rows": _Route("POST", "/v1/table/{id}/count_rows"),
    "get_table_stats": _Route("POST", "/v1/table/{id}/stats"),
    "list_table_indices": _Route("POST", "/v1/table/{id}/index/list"),
    "describe_table_index_stats": _Route("POST", "/v1/table/{id}/index/{index_name}/stats"),
    "stage_rows": _Route("POST", "/v1/table/{id}/stage", in_query=True),
    "stage_update": _Route("POST", "/v1/table/{id}/stage_update"),
    "stage_delete": _Route("POST", "/v1/table/{id}/stage_delete"),
    "stage_merge": _Route("POST", "/v1/table/{id}/stage_merge", in_query=True),
    "describe_transaction": _Route("POST", "/v1/transaction/{id}/describe"),
    "batch_commit_tables": _Route("POST", "/v1/table/batch-commit"),
}


def http_request(operation: str, request: Json) -> HttpRequest:
    """The HTTP request for an operation of `ROUTES`."""
    route = ROUTES[operation]
    rest = {key: value for key, value in request.items() if f"{{{key}}}" not in route.path}
    index = quote(request.get("index_name") or "", safe="")
    parts = {"version": request.get("version"), "id": object_id(request.get("id") or ()), "index_name": index}
    path = route.path.format(**parts)
    if route.method == "GET" or route.in_query:
        return HttpRequest(route.method, path, None, rest)
    return HttpRequest(route.method, path, request, {})


def blob_path(table: Sequence[str], column: str, row: int | None) -> str:
    """The path of a value of a column of blobs: of the row with an id, or of the one that a filter matches."""
    place = f"/v1/table/{object_id(table)}/blob/{quote(column, safe='')}"
    return f"{place}/bytes" if row is None else f"{place}/{row}/bytes"


def object_id(path: Sequence[str]) -> str:
    """The name of a namespace or a table in the path of a route."""
    return quote(DELIMITER.join(path) or DELIMITER, safe="")
