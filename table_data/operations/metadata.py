"""Changes without rows: metadata of the schema and of single fields, and going back to an earlier version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.transaction.operations import MapUpdate, UpdateConfig
from table_data.arrow.body import ArrowBody
from table_data.batch_operations import Result
from table_data.requests.schema_paths import canonical_path, field_at
from table_data.table_changes import TableChanges

if TYPE_CHECKING:
    from table_data.requests.table_requests import FieldMetadata, RestoreTable, SchemaMetadata


def update_table_schema_metadata(changes: TableChanges, request: SchemaMetadata, _rows: ArrowBody | None) -> Result:
    """Replace the schema metadata. Answers all metadata of the new version."""
    given = request.get("metadata") or {}
    stored = changes.require_head().outline.schema_metadata
    if {key: _text(value) for key, value in stored.items()} != given:
        update = MapUpdate(given, replace=True)
        changes.take("update schema metadata", UpdateConfig(schema_metadata=update), message=None)
        stored = changes.require_head().outline.schema_metadata
    return {"metadata": {key: _text(value) for key, value in stored.items()}}


def update_field_metadata(changes: TableChanges, request: FieldMetadata, _rows: ArrowBody | None) -> Result:
    """Set, remove (null) or replace the metadata of fields. Answers the metadata of these fields, by canonical path."""
    fields = changes.require_head().outline.fields
    updates: dict[int, MapUpdate] = {}
    for entry in request["updates"]:
        number = field_at(fields, entry["path"], "update_field_metadata").id
        earlier = updates.get(number)
        update = MapUpdate(entry["metadata"], replace=bool(entry.get("replace")))
        if earlier is not None and not update.replace:
            update = MapUpdate({**earlier.entries, **update.entries}, replace=earlier.replace)
        updates[number] = update
    if updates:
        changes.take("update field metadata", UpdateConfig(field_metadata=updates), message=None)
    after = changes.require_head().outline.fields
    return {
        "fields": {
            canonical_path(after, field.id): {key: _text(value) for key, value in field.metadata.items()}
            for field in after
            if field.id in updates
        }
    }


def restore_table(changes: TableChanges, request: RestoreTable, _rows: ArrowBody | None) -> Result:
    """Make a new version with the rows, schema, metadata and indices of an earlier one."""
    changes.require_head()
    changes.restore(request["version"], message=None)
    return {}


def _text(value: bytes) -> str:
    return value.decode(errors="replace")
