"""The methods of `LanceNamespace` that change metadata and columns of a table, or go back to an earlier version."""

from __future__ import annotations

import lance_namespace as models

from namespace_server.directory.data_methods import DataMethods, made, plain


class SchemaMethods(DataMethods):
    """Changes of one table that have no rows. Pylance does the work in this process."""

    def restore_table(self, request: models.RestoreTableRequest) -> models.RestoreTableResponse:
        """Make a new version with the content of an earlier one."""
        return made(models.RestoreTableResponse, self.data.change("restore_table", plain(request)).body)

    def update_table_schema_metadata(
        self, request: models.UpdateTableSchemaMetadataRequest
    ) -> models.UpdateTableSchemaMetadataResponse:
        """Replace the schema metadata; the answer has all of it."""
        answer = self.data.change("update_table_schema_metadata", plain(request))
        return made(models.UpdateTableSchemaMetadataResponse, answer.body)

    def update_field_metadata(self, request: models.UpdateFieldMetadataRequest) -> models.UpdateFieldMetadataResponse:
        """Set, remove or replace the metadata of fields."""
        answer = self.data.change("update_field_metadata", plain(request))
        return made(models.UpdateFieldMetadataResponse, answer.body)

    def alter_table_add_columns(
        self, request: models.AlterTableAddColumnsRequest
    ) -> models.AlterTableAddColumnsResponse:
        """Add columns with the values of SQL expressions."""
        answer = self.data.change("alter_table_add_columns", plain(request))
        return made(models.AlterTableAddColumnsResponse, answer.body)

    def alter_table_alter_columns(
        self, request: models.AlterTableAlterColumnsRequest
    ) -> models.AlterTableAlterColumnsResponse:
        """Rename columns, change whether they may be null, and cast them."""
        answer = self.data.change("alter_table_alter_columns", plain(request))
        return made(models.AlterTableAlterColumnsResponse, answer.body)

    def alter_table_drop_columns(
        self, request: models.AlterTableDropColumnsRequest
    ) -> models.AlterTableDropColumnsResponse:
        """Drop columns, or fields in them."""
        answer = self.data.change("alter_table_drop_columns", plain(request))
        return made(models.AlterTableDropColumnsResponse, answer.body)

    def get_table_stats(self, request: models.GetTableStatsRequest) -> models.GetTableStatsResponse:
        """Bytes, rows, indices and fragments of a table."""
        return made(models.GetTableStatsResponse, self.row_reads.value("get_table_stats", plain(request)).body)
