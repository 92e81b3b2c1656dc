"""Lance transactions over staged files: pure, one message per table, not yet bound to a version by anybody."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence

import lance
import pyarrow as pa
from lance.fragment import FragmentMetadata

from lance_core.data import fragment_message, schema_fields
from lance_core.proto import lance_table_pb2 as pb

MESSAGE_PROPERTY = "__lance_commit_message"

_UPDATE_MODES: Mapping[str | None, pb.Transaction.UpdateMode] = {
    None: pb.Transaction.REWRITE_ROWS,
    "rewrite_rows": pb.Transaction.REWRITE_ROWS,
    "rewrite_columns": pb.Transaction.REWRITE_COLUMNS,
}


def append_transaction(
    read_version: int, fragments: Sequence[FragmentMetadata], message: str | None = None
) -> pb.Transaction:
    """Add fragments to a table that has versions."""
    transaction = _transaction(read_version, message)
    transaction.append.fragments.extend(_new(fragments))
    return transaction


def overwrite_transaction(
    read_version: int, schema: pa.Schema, fragments: Sequence[FragmentMetadata], message: str | None = None
) -> pb.Transaction:
    """Make these fragments, with this schema, the whole table; at read version 0 the first version of a new one."""
    transaction = _transaction(read_version, message)
    transaction.overwrite.fragments.extend(_new(fragments))
    transaction.overwrite.schema.extend(schema_fields(schema))
    for key, value in (schema.metadata or {}).items():
        transaction.overwrite.schema_metadata[key.decode()] = value
    return transaction


def update_transaction(
    read_version: int, operation: lance.LanceOperation.Update, message: str | None = None
) -> pb.Transaction:
    """An uncommitted update of pylance's (rows marked deleted in old fragments, their new form in new ones)."""
    transaction = _transaction(read_version, message)
    update = transaction.update
    update.removed_fragment_ids.extend(operation.removed_fragment_ids)
    update.updated_fragments.extend(map(fragment_message, operation.updated_fragments))
    update.new_fragments.extend(_new(operation.new_fragments))
    update.fields_modified.extend(operation.fields_modified)
    update.fields_for_preserving_frag_bitmap.extend(operation.fields_for_preserving_frag_bitmap)
    update.update_mode = _UPDATE_MODES[operation.update_mode]
    return transaction


def delete_transaction(
    read_version: int,
    updated: Sequence[FragmentMetadata],
    removed: Sequence[int],
    predicate: str,
    message: str | None = None,
) -> pb.Transaction:
    """Mark rows as deleted: `updated` fragments carry the deletion files, `removed` ids have no row left."""
    transaction = _transaction(read_version, message)
    transaction.delete.updated_fragments.extend(map(fragment_message, updated))
    transaction.delete.deleted_fragment_ids.extend(removed)
    transaction.delete.predicate = predicate
    return transaction


def _transaction(read_version: int, message: str | None) -> pb.Transaction:
    properties = {MESSAGE_PROPERTY: message} if message else {}
    return pb.Transaction(read_version=read_version, uuid=str(uuid.uuid4()), transaction_properties=properties)


def _new(fragments: Iterable[FragmentMetadata]) -> list[pb.DataFragment]:
    """Fragments of a transaction that are new carry id 0: the commit assigns the ids."""
    messages = [fragment_message(fragment) for fragment in fragments]
    for message in messages:
        message.id = 0
    return messages
