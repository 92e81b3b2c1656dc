"""The fields that a request of each operation may have. Others are refused: to ignore one loses it silently.

What a request does not have is absent or null. The fields are those of the OpenAPI document.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from namespace_server.directory.model.request_fields import Request, check_known

COMMON: Final = frozenset({"id", "identity", "context"})
_CATALOG: Final = COMMON - {"id"}
_PAGE: Final = frozenset({"page_token", "limit"})


def _fields(*own: str, common: frozenset[str] = COMMON) -> frozenset[str]:
    return common | frozenset(own)


FIELDS: Final[Mapping[str, frozenset[str]]] = {
    # reads
    "describe_namespace": COMMON,
    "namespace_exists": COMMON,
    "list_namespaces": COMMON | _PAGE,
    "list_tables": _fields("include_declared", common=COMMON | _PAGE),
    "list_all_tables": _fields("include_declared", "delimiter", common=COMMON | _PAGE),
    "describe_table": _fields(
        "branch", "check_declared", "load_detailed_metadata", "tag", "vend_credentials", "version", "with_table_uri"
    ),
    "table_exists": _fields("version"),
    "list_table_versions": _fields("branch", "descending", common=COMMON | _PAGE),
    "describe_table_version": _fields("branch", "version"),
    "list_table_tags": COMMON | _PAGE,
    "get_table_tag_version": _fields("tag"),
    "list_table_branches": COMMON | _PAGE,
    "describe_transaction": COMMON,
    "describe_catalog": _CATALOG,
    "describe_catalog_version": _CATALOG | {"version"},
    "list_catalog_versions": _CATALOG | _PAGE,
    "list_catalog_pins": _CATALOG,
    "list_intents": _CATALOG,
    "list_dropped_tables": _CATALOG | _PAGE,
    # changes
    "create_namespace": _fields("mode", "properties"),
    "drop_namespace": _fields("behavior", "mode", "purge"),
    "undrop_namespace": COMMON,
    "declare_table": _fields("location", "properties", "vend_credentials"),
    "register_table": _fields("location", "mode", "properties"),
    "deregister_table": COMMON,
    "rename_table": _fields("new_namespace_id", "new_table_name"),
    "drop_table": _fields("purge"),
    "undrop_table": _fields("new_id", "tombstone_id"),
    "create_table_version": _fields(
        "branch", "e_tag", "manifest_path", "manifest_size", "metadata", "naming_scheme", "version"
    ),
    "batch_delete_table_versions": _fields("branch", "ranges"),
    "delete_table_versions": _fields("branch", "ranges"),
    "create_table_branch": _fields("from_branch", "from_version", "name"),
    "delete_table_branch": _fields("name"),
    "create_table_tag": _fields("branch", "tag", "version"),
    "update_table_tag": _fields("branch", "tag", "version"),
    "delete_table_tag": _fields("tag"),
    "alter_transaction": _fields("actions"),
    "pin_catalog_version": _CATALOG | {"name", "reason", "seconds", "version"},
    "unpin_catalog_version": _CATALOG | {"name"},
    "register_intent": _CATALOG | {"intent_id", "reason", "seconds", "tables"},
    "end_intent": _CATALOG | {"intent_id"},
    "batch_commit_tables": _CATALOG | {"operations"},
    "batch_create_table_versions": _CATALOG | {"entries"},
    # operations of a batch alone
    "commit_transaction": frozenset(
        {"id", "branch", "data_storage_version", "location", "manifest_sha256", "stable_row_ids", "transaction"}
    ),
    "assert_table_version": frozenset({"id", "branch", "location", "manifest_sha256", "version"}),
    "set_table_properties": frozenset({"id", "location", "properties", "removals", "updates"}),
}
"""By the names of the operations."""


def check_fields(operation: str, request: Request) -> None:
    """Refuse fields that requests of this operation do not have. Raises InvalidInputError (13) naming them."""
    check_known(request, FIELDS[operation], operation)
