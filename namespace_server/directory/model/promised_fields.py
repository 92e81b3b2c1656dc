"""The fields that requests of the catalog may have. Written by `scripts/generate_client.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "advance_cursor": frozenset({"backwards", "context", "expected", "identity", "name", "version"}),
    "alter_transaction": frozenset({"actions", "context", "id", "identity"}),
    "assert_table_version": frozenset({"branch", "id", "location", "manifest_sha256", "version"}),
    "batch_commit_tables": frozenset({"context", "identity", "operations"}),
    "batch_create_table_versions": frozenset({"context", "entries", "identity"}),
    "batch_delete_table_versions": frozenset({"branch", "context", "id", "identity", "ranges"}),
    "change_grants": frozenset({"context", "grants", "identity", "revokes", "role_grants", "role_revokes"}),
    "check_privilege": frozenset({"context", "identity", "on", "principal", "privilege", "roles"}),
    "clone_table": frozenset(
        {"context", "id", "identity", "is_shallow", "source_location", "source_tag", "source_version"}
    ),
    "commit_transaction": frozenset(
        {"branch", "data_storage_version", "id", "location", "manifest_sha256", "stable_row_ids", "transaction"}
    ),
    "create_namespace": frozenset({"context", "id", "identity", "mode", "properties"}),
    "create_table_branch": frozenset({"context", "from_branch", "from_version", "id", "identity", "name"}),
    "create_table_tag": frozenset({"branch", "context", "id", "identity", "tag", "version"}),
    "create_table_version": frozenset(
        {
            "branch",
            "context",
            "e_tag",
            "id",
            "identity",
            "manifest_path",
            "manifest_size",
            "metadata",
            "naming_scheme",
            "version",
        }
    ),
    "declare_table": frozenset({"context", "id", "identity", "location", "properties", "vend_credentials"}),
    "delete_cursor": frozenset({"context", "identity", "name"}),
    "delete_table_branch": frozenset({"context", "id", "identity", "name"}),
    "delete_table_tag": frozenset({"context", "id", "identity", "tag"}),
    "delete_table_versions": frozenset({"branch", "context", "id", "identity", "ranges"}),
    "deregister_table": frozenset({"context", "id", "identity"}),
    "describe_catalog": frozenset({"context", "identity"}),
    "describe_catalog_figures": frozenset({"context", "identity"}),
    "describe_catalog_version": frozenset({"context", "identity", "version"}),
    "describe_namespace": frozenset({"context", "id", "identity"}),
    "describe_table": frozenset(
        {
            "branch",
            "check_declared",
            "context",
            "id",
            "identity",
            "load_detailed_metadata",
            "tag",
            "vend_credentials",
            "version",
            "with_table_uri",
        }
    ),
    "describe_table_in_lance_types": frozenset(
        {
            "branch",
            "check_declared",
            "context",
            "id",
            "identity",
            "load_detailed_metadata",
            "tag",
            "vend_credentials",
            "version",
            "with_table_uri",
        }
    ),
    "describe_table_version": frozenset({"branch", "context", "id", "identity", "version"}),
    "describe_transaction": frozenset({"context", "id", "identity"}),
    "drop_namespace": frozenset({"behavior", "context", "id", "identity", "mode", "purge"}),
    "drop_table": frozenset({"context", "id", "identity", "purge"}),
    "enable_grants": frozenset({"administrators", "context", "identity"}),
    "end_intent": frozenset({"context", "identity", "intent_id"}),
    "find_tables": frozenset({"context", "identity", "limit", "text"}),
    "get_table_tag_version": frozenset({"context", "id", "identity", "tag"}),
    "grant_privileges": frozenset({"on", "privileges", "to"}),
    "grant_role": frozenset({"role", "to"}),
    "list_all_tables": frozenset({"context", "delimiter", "id", "identity", "include_declared", "limit", "page_token"}),
    "list_audited_versions": frozenset({"context", "identity", "limit", "page_token"}),
    "list_catalog_events": frozenset({"context", "identity", "limit", "since", "wait"}),
    "list_catalog_pins": frozenset({"context", "identity"}),
    "list_catalog_versions": frozenset({"context", "identity", "limit", "page_token"}),
    "list_cursors": frozenset({"context", "identity"}),
    "list_dropped_tables": frozenset({"context", "identity", "limit", "page_token"}),
    "list_grants": frozenset({"context", "identity", "limit", "object", "page_token", "principal", "role"}),
    "list_intents": frozenset({"context", "identity"}),
    "list_namespaces": frozenset({"context", "id", "identity", "limit", "page_token"}),
    "list_table_branches": frozenset({"context", "id", "identity", "limit", "page_token"}),
    "list_table_fragments": frozenset({"branch", "context", "id", "identity", "limit", "page_token", "version"}),
    "list_table_tags": frozenset({"context", "id", "identity", "limit", "page_token"}),
    "list_table_versions": frozenset({"branch", "context", "descending", "id", "identity", "limit", "page_token"}),
    "list_tables": frozenset({"context", "id", "identity", "include_declared", "limit", "page_token"}),
    "maintain_table": frozenset({"context", "dry_run", "forced", "id", "identity", "seconds"}),
    "namespace_exists": frozenset({"context", "id", "identity"}),
    "pin_catalog_version": frozenset({"context", "identity", "name", "reason", "seconds", "version"}),
    "register_intent": frozenset({"context", "identity", "intent_id", "reason", "seconds", "tables"}),
    "register_table": frozenset({"context", "id", "identity", "location", "mode", "properties"}),
    "rename_table": frozenset({"context", "id", "identity", "new_namespace_id", "new_table_name"}),
    "revoke_privileges": frozenset({"on", "privileges", "to"}),
    "revoke_role": frozenset({"role", "to"}),
    "set_table_properties": frozenset({"id", "location", "properties", "removals", "updates"}),
    "table_exists": frozenset({"context", "id", "identity", "version"}),
    "undrop_namespace": frozenset({"context", "id", "identity"}),
    "undrop_table": frozenset({"context", "id", "identity", "new_id", "tombstone_id"}),
    "unpin_catalog_version": frozenset({"context", "identity", "name"}),
    "update_table_tag": frozenset({"branch", "context", "id", "identity", "tag", "version"}),
}
"""By the names of the operations."""
