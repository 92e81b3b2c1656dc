"""The operations on objects of the catalog: one row for each.

Each row is a route of FastAPI, whose handler is that of its kind of work in `handlers`; most are found in front of it
(`routing`). `dialects` says which other clients' requests a route answers; how those are said, the package of that name
says.
"""

from __future__ import annotations

from namespace_server.rest.blobs import OneBlob, fetch_blobs
from namespace_server.rest.following import events
from namespace_server.rest.handlers import (
    Commit,
    Read,
    RowsChange,
    TableChange,
    TableRead,
    change,
    change_schema_metadata,
    maintain_table,
    read_changes,
)
from namespace_server.rest.models import (
    AbortMultipartQuery,
    BranchQuery,
    CompleteMultipartQuery,
    CreateTableQuery,
    DescribeTableQuery,
    FindBlobQuery,
    FindTablesQuery,
    GrantsQuery,
    InsertQuery,
    ListFragmentsQuery,
    ListTablesQuery,
    ListTableVersionsQuery,
    MergeInsertQuery,
    Pages,
    Paging,
    StageMergeQuery,
    StageRowsQuery,
)
from namespace_server.rest.multipart import MultipartChange, RowsInsert
from namespace_server.rest.routing import ALL_DIALECTS, Route, get, post
from table_data.requests.table_requests import AbortMultipartWrite, BeginMultipartWrite, CompleteMultipartWrite

_COMMITTED = ("transaction_id",)
_DELETED = ("transaction_id", "version")
_MERGED = ("transaction_id", "version", "num_updated_rows", "num_inserted_rows", "num_deleted_rows")

OPERATIONS: tuple[Route, ...] = (
    # -- tables
    post(
        "describe_table",
        "/v1/table/{id}/describe",
        Read(DescribeTableQuery, body=True),
        dialects=ALL_DIALECTS,
    ),
    get("list_tables", "/v1/namespace/{id}/table/list", Read(query=ListTablesQuery), dialects=ALL_DIALECTS),
    post("table_exists", "/v1/table/{id}/exists", Read(body=True, silent=True)),
    get("list_all_tables", "/v1/table", Read(query=ListTablesQuery), dialects=ALL_DIALECTS),
    post("declare_table", "/v1/table/{id}/declare", Commit()),
    post("register_table", "/v1/table/{id}/register", Commit()),
    post("deregister_table", "/v1/table/{id}/deregister", Commit()),
    post("rename_table", "/v1/table/{id}/rename", Commit(), dialects=ALL_DIALECTS),
    # Stock clients send no body, or `null`.
    post("drop_table", "/v1/table/{id}/drop", Commit(optional=True), dialects=ALL_DIALECTS),
    post("undrop_table", "/v1/table/{id}/undrop", Commit(optional=True)),
    # Ours: a table that begins with a version of another one, and refers to its files.
    post("clone_table", "/v1/table/{id}/clone", change, dialects=ALL_DIALECTS),
    # -- table versions
    # Everything is in the query; stock clients send no body, or `null`.
    post(
        "list_table_versions",
        "/v1/table/{id}/version/list",
        Read(ListTableVersionsQuery, body=True, optional=True),
        dialects=ALL_DIALECTS,
    ),
    post("describe_table_version", "/v1/table/{id}/version/describe", Read(body=True)),
    # Ours: the fragments of a version with their files.
    get("list_table_fragments", "/v1/table/{id}/fragments", Read(query=ListFragmentsQuery)),
    post("create_table_version", "/v1/table/{id}/version/create", Commit()),
    post("batch_delete_table_versions", "/v1/table/{id}/version/delete", Commit()),
    # -- changes of many tables, all or nothing
    # Operations on many tables as one catalog version; staged manifests of several tables as one catalog version.
    post("batch_commit_tables", "/v1/table/batch-commit", Commit()),
    post("batch_create_table_versions", "/v1/table/version/batch-create", Commit()),
    # -- changes of rows: they come as an Arrow IPC stream or file, the other fields of these requests in the query
    post("insert_into_table", "/v1/table/{id}/insert", RowsInsert(InsertQuery), dialects=ALL_DIALECTS),
    post(
        "merge_insert_into_table",
        "/v1/table/{id}/merge_insert",
        RowsChange(MergeInsertQuery, fields=_MERGED),
        dialects=ALL_DIALECTS,
    ),
    post("update_table", "/v1/table/{id}/update", TableChange(), dialects=ALL_DIALECTS),
    post("delete_from_table", "/v1/table/{id}/delete", TableChange(_DELETED), dialects=ALL_DIALECTS),
    # Name, properties and first version in one flip.
    post("create_table", "/v1/table/{id}/create", RowsChange(CreateTableQuery, vends=True), dialects=ALL_DIALECTS),
    # Rows for a batch that commits them, together with changes of other tables.
    post("stage_rows", "/v1/table/{id}/stage", RowsChange(StageRowsQuery)),
    # Changes of rows for such a batch.
    post("stage_update", "/v1/table/{id}/stage_update", TableChange(staged=True)),
    post("stage_delete", "/v1/table/{id}/stage_delete", TableChange(staged=True)),
    post("stage_merge", "/v1/table/{id}/stage_merge", RowsChange(StageMergeQuery)),
    # Rows in parts, each of which is an insert: committed as one version.
    post(
        "create_multipart_write",
        "/v1/table/{id}/multipart_write/create",
        MultipartChange(BeginMultipartWrite, BranchQuery),
        dialects=ALL_DIALECTS,
    ),
    post(
        "complete_multipart_write",
        "/v1/table/{id}/multipart_write/complete",
        MultipartChange(CompleteMultipartWrite, CompleteMultipartQuery),
        dialects=ALL_DIALECTS,
    ),
    post(
        "abort_multipart_write",
        "/v1/table/{id}/multipart_write/abort",
        MultipartChange(AbortMultipartWrite, AbortMultipartQuery),
        dialects=ALL_DIALECTS,
    ),
    # -- reads of rows, and plans of queries
    post("query_table", "/v1/table/{id}/query", TableRead(large=True, streamed=True), dialects=ALL_DIALECTS),
    post("count_table_rows", "/v1/table/{id}/count_rows", TableRead(large=True), dialects=ALL_DIALECTS),
    post("get_table_stats", "/v1/table/{id}/stats", TableRead(), dialects=ALL_DIALECTS),
    post("explain_table_query_plan", "/v1/table/{id}/explain_plan", TableRead(large=True), dialects=ALL_DIALECTS),
    post("analyze_table_query_plan", "/v1/table/{id}/analyze_plan", TableRead(large=True), dialects=ALL_DIALECTS),
    # Ours: what changed between two catalog versions, as a stream of Arrow.
    post("read_table_changes", "/v1/table/{id}/changes", read_changes),
    # -- values of columns of blobs: many as rows; one as bytes, of the row with an id or that a filter matches
    post("fetch_table_blobs", "/v1/table/{id}/fetch_blobs", fetch_blobs, dialects=ALL_DIALECTS),
    get("read_table_blob", "/v1/table/{id}/blob/{column}/{row}/bytes", OneBlob(), dialects=ALL_DIALECTS),
    get("find_table_blob", "/v1/table/{id}/blob/{column}/bytes", OneBlob(FindBlobQuery)),
    # -- indices of tables
    post("create_table_index", "/v1/table/{id}/create_index", TableChange(_COMMITTED), dialects=ALL_DIALECTS),
    post(
        "create_table_scalar_index",
        "/v1/table/{id}/create_scalar_index",
        TableChange(_COMMITTED),
        dialects=ALL_DIALECTS,
    ),
    post("list_table_indices", "/v1/table/{id}/index/list", TableRead(optional=True), dialects=ALL_DIALECTS),
    post(
        "describe_table_index_stats",
        "/v1/table/{id}/index/{index_name}/stats",
        TableRead(named="index_name"),
        dialects=ALL_DIALECTS,
    ),
    # Stock clients send no body.
    post(
        "drop_table_index",
        "/v1/table/{id}/index/{index_name}/drop",
        TableChange(_COMMITTED, BranchQuery, optional=True, named="index_name"),
        dialects=ALL_DIALECTS,
    ),
    # Ours: fewer fragments with the same rows, and indices over all of them.
    post("maintain_table", "/v1/table/{id}/maintain", maintain_table),
    # -- changes of metadata and columns, and going back to an earlier version
    post("update_table_schema_metadata", "/v1/table/{id}/schema_metadata/update", change_schema_metadata),
    post(
        "update_field_metadata",
        "/v1/table/{id}/update_field_metadata",
        TableChange(("version", "fields")),
        dialects=ALL_DIALECTS,
    ),
    post("restore_table", "/v1/table/{id}/restore", TableChange(("transaction_id",)), dialects=ALL_DIALECTS),
    post("alter_table_add_columns", "/v1/table/{id}/add_columns", TableChange(("version",)), dialects=ALL_DIALECTS),
    post("alter_table_alter_columns", "/v1/table/{id}/alter_columns", TableChange(("version",)), dialects=ALL_DIALECTS),
    post(
        "alter_table_drop_columns",
        "/v1/table/{id}/drop_columns",
        TableChange(("transaction_id", "version")),
        dialects=ALL_DIALECTS,
    ),
    # -- namespaces
    post("namespace_exists", "/v1/namespace/{id}/exists", Read(body=True, silent=True)),
    post("describe_namespace", "/v1/namespace/{id}/describe", Read(body=True), dialects=ALL_DIALECTS),
    get("list_namespaces", "/v1/namespace/{id}/list", Read(query=Paging), dialects=ALL_DIALECTS),
    post("create_namespace", "/v1/namespace/{id}/create", Commit(), dialects=ALL_DIALECTS),
    # Stock clients send no body.
    post("drop_namespace", "/v1/namespace/{id}/drop", Commit(optional=True), dialects=ALL_DIALECTS),
    post("undrop_namespace", "/v1/namespace/{id}/undrop", Commit(optional=True)),
    # -- tags and branches
    # Everything in these lists is in the query; stock clients send no body, or `null`.
    post("list_table_tags", "/v1/table/{id}/tags/list", Read(Paging, body=True, optional=True), dialects=ALL_DIALECTS),
    post(
        "list_table_branches",
        "/v1/table/{id}/branches/list",
        Read(Paging, body=True, optional=True),
        dialects=ALL_DIALECTS,
    ),
    post("get_table_tag_version", "/v1/table/{id}/tags/version", Read(body=True), dialects=ALL_DIALECTS),
    post("create_table_tag", "/v1/table/{id}/tags/create", change, dialects=ALL_DIALECTS),
    post("update_table_tag", "/v1/table/{id}/tags/update", change, dialects=ALL_DIALECTS),
    post("delete_table_tag", "/v1/table/{id}/tags/delete", change, dialects=ALL_DIALECTS),
    post("create_table_branch", "/v1/table/{id}/branches/create", Commit(), dialects=ALL_DIALECTS),
    post("delete_table_branch", "/v1/table/{id}/branches/delete", change, dialects=ALL_DIALECTS),
    # Ours: what a branch changed, beside main; and main with that, in one commit.
    post("diff_table_branch", "/v1/table/{id}/branches/diff", TableRead(), dialects=ALL_DIALECTS),
    post("cherry_pick_table_branch", "/v1/table/{id}/branches/cherry_pick", TableChange(), dialects=ALL_DIALECTS),
    # -- transactions and batches
    post("describe_transaction", "/v1/transaction/{id}/describe", Read(body=True, optional=True)),
    post("alter_transaction", "/v1/transaction/{id}/alter", change),
    # -- the catalog itself: its present state, and its history
    get("describe_catalog", "/v1/catalog", Read()),
    get("describe_catalog_figures", "/v1/catalog/figures", Read()),
    get("find_tables", "/v1/catalog/tables", Read(query=FindTablesQuery)),
    get("list_catalog_versions", "/v1/catalog/versions", Read(query=Pages)),
    post("pin_catalog_version", "/v1/catalog/pins", Commit()),
    get("list_catalog_pins", "/v1/catalog/pins", Read()),
    post("unpin_catalog_version", "/v1/catalog/pins/delete", Commit()),
    get("list_catalog_events", "/v1/catalog/events", events),
    post("enable_grants", "/v1/catalog/access", Commit()),
    post("change_grants", "/v1/catalog/grants", Commit()),
    get("list_grants", "/v1/catalog/grants", Read(query=GrantsQuery)),
    post("check_privilege", "/v1/catalog/can", Read(body=True)),
    post("advance_cursor", "/v1/catalog/cursors", Commit()),
    get("list_cursors", "/v1/catalog/cursors", Read()),
    post("delete_cursor", "/v1/catalog/cursors/delete", Commit()),
    post("register_intent", "/v1/catalog/intents", Commit()),
    get("list_intents", "/v1/catalog/intents", Read()),
    post("end_intent", "/v1/catalog/intents/end", Commit()),
    get("list_dropped_tables", "/v1/catalog/dropped", Read(query=Pages)),
    get("describe_catalog_version", "/v1/catalog/versions/{version}", Read()),
)
