"""The operations of the published specification, release 0.13.0: route, smallest request, answer of a success."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any


class Target(StrEnum):
    """What the `id` of an operation names."""

    NAMESPACE = "namespace"
    TABLE = "table"
    NEW_TABLE = "new table"
    TRANSACTION = "transaction"
    VIEW = "view"
    NOTHING = "nothing"


class Body(StrEnum):
    """What a request carries."""

    JSON = "json"
    ARROW = "arrow"
    NONE = "none"


class SuccessBody(StrEnum):
    """What a success answers, where that is not a model."""

    NOTHING = "nothing"
    INTEGER = "integer"
    STRING = "string"
    STRING_MAP = "map of strings"
    ARROW = "arrow"


@dataclass(frozen=True, slots=True)
class Operation:
    """One published operation.

    `success` is the name of the model of a success, or one of `SuccessBody`. `request` and `query` are the smallest
    valid request.
    """

    name: str
    target: Target
    path: str
    success: str
    method: str = "POST"
    body: Body = Body.JSON
    request: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    query: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    status: int = 200

    @property
    def title(self) -> str:
        """The name of the operation in the specification: `CreateNamespace`."""
        return "".join(word.capitalize() for word in self.name.split("_"))


_ID = "/v1/table/{id}/"
_QUERY = {"k": 10, "vector": {}}
_VERSION = {"version": 1, "manifest_path": "missing.manifest"}


def _namespace(name: str, verb: str, success: str, **given: Any) -> Operation:
    return Operation(name, Target.NAMESPACE, f"/v1/namespace/{{id}}/{verb}", success, **given)


def _table(name: str, verb: str, success: str, **given: Any) -> Operation:
    return Operation(name, Target.TABLE, _ID + verb, success, **given)


def _new_table(name: str, verb: str, success: str, **given: Any) -> Operation:
    return Operation(name, Target.NEW_TABLE, _ID + verb, success, **given)


def _bodyless(name: str, verb: str, success: str) -> Operation:
    return _table(name, verb, success, body=Body.NONE)


OPERATIONS: tuple[Operation, ...] = (
    _namespace("create_namespace", "create", "CreateNamespaceResponse"),
    _namespace("describe_namespace", "describe", "DescribeNamespaceResponse"),
    _namespace("namespace_exists", "exists", SuccessBody.NOTHING),
    _namespace("list_namespaces", "list", "ListNamespacesResponse", method="GET", body=Body.NONE),
    _namespace("drop_namespace", "drop", "DropNamespaceResponse"),
    _namespace("list_tables", "table/list", "ListTablesResponse", method="GET", body=Body.NONE),
    Operation("list_all_tables", Target.NOTHING, "/v1/table", "ListTablesResponse", method="GET", body=Body.NONE),
    _new_table("declare_table", "declare", "DeclareTableResponse"),
    _new_table("create_table", "create", "CreateTableResponse", body=Body.ARROW),
    _new_table("register_table", "register", "RegisterTableResponse", request={"location": "missing"}),
    _table("describe_table", "describe", "DescribeTableResponse"),
    _table("table_exists", "exists", SuccessBody.NOTHING),
    _table("rename_table", "rename", "RenameTableResponse", request={"new_table_name": "renamed"}),
    _table("deregister_table", "deregister", "DeregisterTableResponse"),
    _bodyless("drop_table", "drop", "DropTableResponse"),
    _table("insert_into_table", "insert", "InsertIntoTableResponse", body=Body.ARROW),
    _table(
        "merge_insert_into_table",
        "merge_insert",
        "MergeInsertIntoTableResponse",
        body=Body.ARROW,
        query={"on": "id", "when_matched_update_all": "true", "when_not_matched_insert_all": "true"},
    ),
    _table("update_table", "update", "UpdateTableResponse", request={"updates": [["name", "'new'"]]}),
    _table("delete_from_table", "delete", "DeleteFromTableResponse", request={"predicate": "id = 1"}),
    _table("restore_table", "restore", "RestoreTableResponse", request={"version": 1}),
    _table("count_table_rows", "count_rows", SuccessBody.INTEGER),
    _table("query_table", "query", SuccessBody.ARROW, request=_QUERY),
    _table("explain_table_query_plan", "explain_plan", SuccessBody.STRING, request={"query": _QUERY}),
    _table("analyze_table_query_plan", "analyze_plan", SuccessBody.STRING, request=_QUERY),
    _table("get_table_stats", "stats", "GetTableStatsResponse"),
    _bodyless("list_table_versions", "version/list", "ListTableVersionsResponse"),
    _table("describe_table_version", "version/describe", "DescribeTableVersionResponse", request={"version": 1}),
    _table("create_table_version", "version/create", "CreateTableVersionResponse", request=_VERSION),
    _table(
        "batch_delete_table_versions",
        "version/delete",
        "BatchDeleteTableVersionsResponse",
        request={"ranges": [{"start_version": 1, "end_version": 2}]},
    ),
    Operation(
        "batch_create_table_versions",
        Target.NOTHING,
        "/v1/table/version/batch-create",
        "BatchCreateTableVersionsResponse",
        request={"entries": []},
    ),
    Operation(
        "batch_commit_tables",
        Target.NOTHING,
        "/v1/table/batch-commit",
        "BatchCommitTablesResponse",
        request={"operations": []},
    ),
    _table(
        "alter_table_add_columns",
        "add_columns",
        "AlterTableAddColumnsResponse",
        request={"new_columns": [{"name": "added", "expression": "id"}]},
    ),
    _table(
        "alter_table_alter_columns",
        "alter_columns",
        "AlterTableAlterColumnsResponse",
        request={"alterations": [{"path": "name", "rename": "title"}]},
    ),
    _table("alter_table_drop_columns", "drop_columns", "AlterTableDropColumnsResponse", request={"columns": ["name"]}),
    _table(
        "alter_table_backfill_columns",
        "backfill_column",
        "AlterTableBackfillColumnsResponse",
        request={"column": "name"},
        status=202,
    ),
    _table("update_table_schema_metadata", "schema_metadata/update", SuccessBody.STRING_MAP, request={"key": "value"}),
    _table(
        "update_field_metadata",
        "update_field_metadata",
        "UpdateFieldMetadataResponse",
        request={"updates": [{"path": "id", "metadata": {"key": "value"}}]},
    ),
    _table(
        "create_table_index",
        "create_index",
        "CreateTableIndexResponse",
        request={"column": "id", "index_type": "BTREE"},
    ),
    _table(
        "create_table_scalar_index",
        "create_scalar_index",
        "CreateTableScalarIndexResponse",
        request={"column": "id", "index_type": "BTREE"},
    ),
    _table("list_table_indices", "index/list", "ListTableIndicesResponse"),
    _table("describe_table_index_stats", "index/{index_name}/stats", "DescribeTableIndexStatsResponse"),
    _bodyless("drop_table_index", "index/{index_name}/drop", "DropTableIndexResponse"),
    _table("create_table_tag", "tags/create", "CreateTableTagResponse", request={"tag": "first", "version": 1}),
    _table("get_table_tag_version", "tags/version", "GetTableTagVersionResponse", request={"tag": "first"}),
    _table("update_table_tag", "tags/update", "UpdateTableTagResponse", request={"tag": "first", "version": 1}),
    _table("delete_table_tag", "tags/delete", "DeleteTableTagResponse", request={"tag": "first"}),
    _bodyless("list_table_tags", "tags/list", "ListTableTagsResponse"),
    _table("create_table_branch", "branches/create", "CreateTableBranchResponse", request={"name": "side"}),
    _table("delete_table_branch", "branches/delete", "DeleteTableBranchResponse", request={"name": "side"}),
    _bodyless("list_table_branches", "branches/list", "ListTableBranchesResponse"),
    Operation(
        "describe_transaction",
        Target.TRANSACTION,
        "/v1/transaction/{id}/describe",
        "DescribeTransactionResponse",
    ),
    Operation(
        "alter_transaction",
        Target.TRANSACTION,
        "/v1/transaction/{id}/alter",
        "AlterTransactionResponse",
        request={"actions": [{"setPropertyAction": {"key": "a", "value": "b"}}]},
    ),
    Operation(
        "create_materialized_view",
        Target.VIEW,
        "/v1/materialized_view/{id}/create",
        "CreateMaterializedViewResponse",
        request={"kind": "query", "source_query": "select 1", "output_schema": ""},
        status=201,
    ),
    Operation(
        "refresh_materialized_view",
        Target.VIEW,
        "/v1/materialized_view/{id}/refresh",
        "RefreshMaterializedViewResponse",
        status=202,
    ),
)

BY_NAME: Mapping[str, Operation] = MappingProxyType({operation.name: operation for operation in OPERATIONS})

STATUS_OF_CODE: Mapping[int, int] = MappingProxyType(
    dict.fromkeys((1, 4, 6, 8, 10, 11, 12, 22), 404)
    | dict.fromkeys((2, 3, 5, 7, 9, 14, 19, 23), 409)
    | dict.fromkeys((13, 20), 400)
    | {0: 406, 15: 403, 16: 401, 17: 503, 18: 500}
)
"""The HTTP status that the published operations list for an error of each code."""
