"""Operations of the engine from uncommitted results of pylance, for `StagedTransaction.stage`."""

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
    from lance.schema import LanceSchema


def new_fragments(fragments: Sequence[FragmentMetadata]) -> tuple[pb.DataFragment, ...]:
    """Messages of fragments that get their ids when they are committed. Fragments without rows are left out."""
    messages = [fragment_message(fragment) for fragment in fragments if fragment.physical_rows]
    for message in messages:
        message.id = 0
    return tuple(messages)


def append_operation(fragments: Sequence[FragmentMetadata]) -> Append:
    """Append fragments to a table that has a version."""
    return Append(new_fragments(fragments))


def overwrite_operation(
    schema: pa.Schema, fragments: Sequence[FragmentMetadata], fields: Sequence[pb.Field] | None = None
) -> Overwrite:
    """Replace the whole table by fragments with a schema, or write the first version of a table.

    `fields` are those of the schema as it was written, if they are known: pylance writes columns of blobs as structs.
    """
    metadata = {key.decode(): value for key, value in (schema.metadata or {}).items()}
    return Overwrite(new_fragments(fragments), tuple(schema_fields(schema) if fields is None else fields), metadata)


def written_fields(schema: LanceSchema) -> list[pb.Field]:
    """The fields of a schema of pylance. Dictionaries are left out: data files hold their own."""
    _, (_, *encoded) = schema.__reduce__()
    fields = [pb.Field.FromString(field) for field in encoded]
    for field in fields:
        field.ClearField("dictionary")
    return fields


def update_operation(
    operation: lance.LanceOperation.Update, claim: pb.Transaction.KeyExistenceFilter | None = None
) -> Update:
    """Delete rows in old fragments and write them to new ones. `claim` holds the keys that a merge inserts."""
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
    """Delete rows: `updated` fragments carry deletion files, fragments with `removed` ids have no rows left."""
    return Delete(tuple(map(fragment_message, updated)), tuple(removed), predicate)
