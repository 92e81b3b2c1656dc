"""The endpoints of the published namespace API that this server does not serve: 406 with code 0, by name.

A client that gets 404 cannot tell an operation that is missing from a table that is.
"""

from __future__ import annotations

from namespace_server.rest.endpoints import Body, Endpoint

_TABLE_OPERATIONS = {
    "add_columns": "alter_table_add_columns",
    "alter_columns": "alter_table_alter_columns",
    "analyze_plan": "analyze_table_query_plan",
    "backfill_column": "alter_table_backfill_columns",
    "branches/create": "create_table_branch",
    "branches/delete": "delete_table_branch",
    "branches/list": "list_table_branches",
    "count_rows": "count_table_rows",
    "create": "create_table",
    "create_index": "create_table_index",
    "create_scalar_index": "create_table_scalar_index",
    "delete": "delete_from_table",
    "drop_columns": "alter_table_drop_columns",
    "explain_plan": "explain_table_query_plan",
    "index/list": "list_table_indices",
    "index/{index_name}/drop": "drop_table_index",
    "index/{index_name}/stats": "describe_table_index_stats",
    "insert": "insert_into_table",
    "merge_insert": "merge_insert_into_table",
    "query": "query_table",
    "restore": "restore_table",
    "schema_metadata/update": "update_table_schema_metadata",
    "stats": "get_table_stats",
    "tags/create": "create_table_tag",
    "tags/delete": "delete_table_tag",
    "tags/list": "list_table_tags",
    "tags/update": "update_table_tag",
    "tags/version": "get_table_tag_version",
    "update": "update_table",
    "update_field_metadata": "update_field_metadata",
}

ENDPOINTS = (
    *(Endpoint(name, "POST", f"/v1/table/{{id}}/{path}", Body.NONE) for path, name in _TABLE_OPERATIONS.items()),
    Endpoint("create_materialized_view", "POST", "/v1/materialized_view/{id}/create", Body.NONE),
    Endpoint("refresh_materialized_view", "POST", "/v1/materialized_view/{id}/refresh", Body.NONE),
    Endpoint("describe_transaction", "POST", "/v1/transaction/{id}/describe", Body.NONE),
    Endpoint("alter_transaction", "POST", "/v1/transaction/{id}/alter", Body.NONE),
)
