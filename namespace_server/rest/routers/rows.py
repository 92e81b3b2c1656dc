"""Changes of rows. Rows come as an Arrow IPC stream or file, the other fields of these requests in the query."""

from __future__ import annotations

from namespace_server.rest.handlers import RowsChange, TableChange
from namespace_server.rest.models import CreateTableQuery, InsertQuery, MergeInsertQuery, StageRowsQuery
from namespace_server.rest.routing import post

ROUTES = (
    post("insert_into_table", "/v1/table/{id}/insert", RowsChange(InsertQuery), fast=True),
    post("merge_insert_into_table", "/v1/table/{id}/merge_insert", RowsChange(MergeInsertQuery), fast=True),
    post("update_table", "/v1/table/{id}/update", TableChange(), fast=True),
    post("delete_from_table", "/v1/table/{id}/delete", TableChange(), fast=True),
    # Name, properties and first version in one flip.
    post("create_table", "/v1/table/{id}/create", RowsChange(CreateTableQuery, vends=True)),
    # Rows for a batch that commits them, together with changes of other tables.
    post("stage_rows", "/v1/table/{id}/stage", RowsChange(StageRowsQuery)),
)
