"""Pylance's descriptions of files that it wrote, and of changes that it did not commit, as operations of the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.data import fragment_message, schema_fields
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.operations import Append, Delete, Overwrite, Update

if TYPE_CHECKING:
    import lance
    from lance.fragment import FragmentMetadata


def new_fragments(fragments: Sequence[FragmentMetadata]) -> tuple[pb.DataFragment, ...]:
    """Messages for fragments that get their ids when they are committed; those without rows are left out."""
    messages = [fragment_message(fragment) for fragment in fragments if fragment.physical_rows]
    for message in messages:
        message.id = 0
    return tuple(messages)


def append_operation(fragments: Sequence[FragmentMetadata]) -> Append:
    """Fragments added to a table that has versions."""
    return Append(new_fragments(fragments))


def overwrite_operation(schema: pa.Schema, fragments: Sequence[FragmentMetadata]) -> Overwrite:
    """These fragments, with this schema, as the whole table; or as the first version of a new one."""
    metadata = {key.decode(): value for key, value in (schema.metadata or {}).items()}
    return Overwrite(new_fragments(fragments), tuple(schema_fields(schema)), metadata)


def update_operation(
    operation: lance.LanceOperation.Update, claim: pb.Transaction.KeyExistenceFilter | None = None
) -> Update:
    """Rows marked as deleted in old fragments, and their new form in new ones. `claim` are keys that did not exist."""
    return Update(
        updated=tuple(map(fragment_message, operation.updated_fragments)),
        removed_ids=tuple(operation.removed_fragment_ids),
        new=new_fragments(operation.new_fragments),
        fields_modified=tuple(operation.fields_modified),
        value_fields=tuple(operation.fields_for_preserving_frag_bitmap),
        rewrites_columns=operation.update_mode == "rewrite_columns",
        rewritten_offsets=dict(operation.updated_fragment_offsets or {}),
        inserted_keys=claim,
    )


def delete_operation(updated: Sequence[FragmentMetadata], removed: Sequence[int], predicate: str) -> Delete:
    """Rows marked as deleted: `updated` fragments carry the deletion files, `removed` ids have no row left."""
    return Delete(tuple(map(fragment_message, updated)), tuple(removed), predicate)
