"""What a caller must be allowed for each operation that a route serves.

An operation without a line has no route: `Route` looks here when it is made. So nothing is open by oversight.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from namespace_server.access.subjects import Privilege

Rule = Literal["public", "shown", "granted", "planned", "refused"]
"""How an operation is judged.

    public   not at all: it tells nothing of the catalog, and needs no credentials
    shown    its answer has what the caller may see, and nothing else
    granted  the caller has all `privileges` on the object that the request names
    planned  each operation of its batch is judged in the flip
    refused  it is not served
"""


@dataclass(frozen=True, slots=True)
class Requirement:
    """What a caller must be allowed for an operation.

    Attributes:
        rule: How it is judged.
        privileges: Those that the caller needs on the object, all of them. A change of rows is judged before work
            begins, and in the flip again.
        on: What the object is: the table that the request names, or the catalog.
    """

    rule: Rule
    privileges: frozenset[Privilege] = frozenset()
    on: Literal["catalog", "table"] = "table"


PUBLIC: Final = Requirement("public")
SHOWN: Final = Requirement("shown")
PLANNED: Final = Requirement("planned")
REFUSED: Final = Requirement("refused")


def _of_table(*privileges: Privilege) -> Requirement:
    return Requirement("granted", frozenset(privileges))


_READ: Final = _of_table(Privilege.READ)
_READ_AND_WRITE: Final = _of_table(Privilege.READ, Privilege.WRITE)  # a filter tells which rows there are
_ALTER: Final = _of_table(Privilege.ALTER)
_READ_AND_ALTER: Final = _of_table(Privilege.READ, Privilege.ALTER)  # an expression that fails tells a value
_MAINTAIN: Final = _of_table(Privilege.MAINTAIN)
_REFERENCE: Final = _of_table(Privilege.REFERENCE)
_AUDIT: Final = Requirement("granted", frozenset({Privilege.GRANT}), "catalog")  # or named in `audit_readers`
_SEE_ALL: Final = Requirement("granted", frozenset({Privilege.SEE}), "catalog")
_NAMES_VERSIONS: Final = _of_table(Privilege.REFERENCE, Privilege.READ)

REQUIREMENTS: Final[Mapping[str, Requirement]] = {
    # -- the server
    "root": PUBLIC,
    "openapi_document": PUBLIC,
    "documentation": PUBLIC,
    "health_live": PUBLIC,
    "health_ready": PUBLIC,
    "metrics": _SEE_ALL,  # it counts all tables
    "who_am_i": SHOWN,
    # -- namespaces, and the names of tables
    "describe_namespace": SHOWN,
    "namespace_exists": SHOWN,
    "list_namespaces": SHOWN,
    "list_tables": SHOWN,
    "list_all_tables": SHOWN,
    "find_tables": SHOWN,
    "describe_table": SHOWN,
    "describe_table_in_lance_types": SHOWN,  # the same, as clients of another dialect have it described
    "table_exists": SHOWN,
    # -- reads of tables
    "list_table_versions": _READ,
    "describe_table_version": _READ,
    "list_table_fragments": _READ,
    "list_table_tags": _READ,
    "list_table_branches": _READ,
    "get_table_tag_version": _READ,
    "query_table": _READ,
    "read_table_changes": _READ,
    "count_table_rows": _READ,
    "get_table_stats": _READ,
    "fetch_table_blobs": _READ,
    "read_table_blob": _READ,
    "find_table_blob": _READ,
    "explain_table_query_plan": _READ,
    "analyze_table_query_plan": _READ,
    "list_table_indices": _READ,
    "describe_table_index_stats": _READ,
    "diff_table_branch": _READ,
    "prewarm_table_index": _READ,
    "prewarm_table_pages": _READ,
    # -- changes of rows; `create_table` and `stage_rows` need what their mode does
    "insert_into_table": _of_table(Privilege.WRITE),
    # an upload is its principal's; the mode of its parts is judged with each, and when it is completed
    "create_multipart_write": _of_table(Privilege.WRITE),
    "complete_multipart_write": _of_table(Privilege.WRITE),
    "abort_multipart_write": _of_table(Privilege.WRITE),
    "merge_insert_into_table": _READ_AND_WRITE,
    "update_table": _READ_AND_WRITE,
    "delete_from_table": _READ_AND_WRITE,
    "restore_table": _of_table(Privilege.WRITE, Privilege.ALTER),  # it brings an old schema back
    "create_table": PLANNED,
    "stage_rows": PLANNED,
    "stage_update": _READ_AND_WRITE,
    "stage_delete": _READ_AND_WRITE,
    "stage_merge": _READ_AND_WRITE,
    "cherry_pick_table_branch": _READ_AND_WRITE,  # new columns need `alter`, which the flip asks for
    "create_table_index": _MAINTAIN,
    "create_table_scalar_index": _MAINTAIN,
    "drop_table_index": _MAINTAIN,
    "update_table_schema_metadata": _ALTER,
    "update_field_metadata": _ALTER,
    "alter_table_add_columns": _READ_AND_ALTER,
    "alter_table_alter_columns": _READ_AND_ALTER,
    "alter_table_drop_columns": _ALTER,
    # -- changes of the catalog
    "declare_table": PLANNED,
    "register_table": PLANNED,
    "deregister_table": PLANNED,
    "rename_table": PLANNED,
    "drop_table": PLANNED,
    "undrop_table": PLANNED,
    "create_table_version": PLANNED,
    "batch_create_table_versions": PLANNED,
    "batch_delete_table_versions": PLANNED,
    "batch_commit_tables": PLANNED,
    "create_namespace": PLANNED,
    "drop_namespace": PLANNED,
    "undrop_namespace": PLANNED,
    "create_table_branch": PLANNED,
    "pin_catalog_version": PLANNED,
    "unpin_catalog_version": PLANNED,
    "enable_grants": PLANNED,
    "change_grants": PLANNED,
    "list_grants": SHOWN,
    "check_privilege": SHOWN,
    "advance_cursor": PLANNED,
    "delete_cursor": PLANNED,
    "register_intent": PLANNED,
    "end_intent": PLANNED,
    # -- changes that also write or remove files beside the catalog: judged before they do, and in the flip
    "clone_table": PLANNED,  # it reads its source, which it judges before
    "create_table_tag": _NAMES_VERSIONS,
    "update_table_tag": _NAMES_VERSIONS,
    "delete_table_tag": _REFERENCE,
    "delete_table_branch": _REFERENCE,
    "alter_transaction": SHOWN,  # a batch of its own, or a transaction of a table that it may write
    "maintain_table": _MAINTAIN,  # and so is each of its changes, which have no routes of their own:
    "compact_table": _MAINTAIN,
    "optimize_indices": _MAINTAIN,
    "reserve_fragments": _MAINTAIN,
    # -- transactions, and the catalog itself
    "describe_transaction": SHOWN,
    "describe_catalog": SHOWN,
    "describe_catalog_figures": _SEE_ALL,  # it counts all tables
    "describe_catalog_version": SHOWN,
    "list_catalog_versions": SHOWN,
    "list_catalog_events": SHOWN,
    "list_audited_versions": _AUDIT,
    "list_refused_attempts": _AUDIT,
    "list_dropped_tables": SHOWN,
    "list_catalog_pins": SHOWN,
    "list_cursors": SHOWN,
    "list_intents": SHOWN,
}
"""By the name of the operation, as routes and jobs have it."""
