"""Decodes and encodes the operations that this engine commits.

Only the transaction to be committed is decoded. Transactions that were committed already are judged as protobuf
messages (see `conflicts`). Decoding an operation that is not supported raises `UnsupportedFeature` with its name.
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pyroaring import BitMap

from lance_core.errors import InvalidTransaction, UnsupportedFeature
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.operation_types import (
    Append,
    Clone,
    CreateIndex,
    DataReplacement,
    Delete,
    MapUpdate,
    Merge,
    Operation,
    Overwrite,
    Project,
    ReserveFragments,
    Restore,
    Rewrite,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMemWalState,
)

__all__ = [
    "Append",
    "Clone",
    "CreateIndex",
    "DataReplacement",
    "Delete",
    "MapUpdate",
    "Merge",
    "Operation",
    "Overwrite",
    "Project",
    "ReserveFragments",
    "Restore",
    "Rewrite",
    "Update",
    "UpdateBases",
    "UpdateConfig",
    "UpdateMemWalState",
    "decode_config_update",
    "decode_operation",
    "encode_transaction",
    "fragment_ids",
    "operation_name",
]


def operation_name(transaction: pb.Transaction | None) -> str | None:
    """The field name of the operation, such as `append`; None if there is no operation or its number is unknown."""
    return None if transaction is None else transaction.WhichOneof("operation")


def decode_operation(transaction: pb.Transaction) -> Operation:
    """The operation of a transaction to be committed.

    Raises `UnsupportedFeature` for an operation that is not supported, `InvalidTransaction` if there is none.
    """
    name = transaction.WhichOneof("operation")
    if name is None:
        raise InvalidTransaction(f"transaction {transaction.uuid} has no known operation")
    decode = _DECODERS.get(name)
    if decode is None:
        raise UnsupportedFeature(f"transaction {transaction.uuid}: operation {name} cannot be committed here")
    return decode(getattr(transaction, name))


def encode_transaction(
    operation: Operation,
    *,
    read_version: int,
    uuid: str | None = None,
    properties: Mapping[str, str] | None = None,
) -> pb.Transaction:
    """A transaction message, with a random uuid if none is given. `read_version` is 0 for the first version."""
    transaction = pb.Transaction(read_version=read_version, uuid=uuid or str(uuids.uuid4()))
    transaction.transaction_properties.update(properties or {})
    match operation:
        case Append():
            transaction.append.fragments.extend(operation.fragments)
            transaction.append.SetInParent()
        case Overwrite():
            _encode_overwrite(operation, transaction.overwrite)
        case Delete():
            transaction.delete.updated_fragments.extend(operation.updated)
            transaction.delete.deleted_fragment_ids.extend(operation.removed_ids)
            transaction.delete.predicate = operation.predicate
            transaction.delete.SetInParent()
        case Update():
            _encode_update(operation, transaction.update)
        case UpdateConfig():
            _encode_config_update(operation, transaction.update_config)
        case Merge():
            _encode_merge(operation, transaction.merge)
        case CreateIndex():
            transaction.create_index.new_indices.extend(operation.new)
            transaction.create_index.removed_indices.extend(operation.removed)
            transaction.create_index.SetInParent()
        case DataReplacement():
            transaction.data_replacement.replacements.extend(operation.replacements)
            transaction.data_replacement.SetInParent()
        case Rewrite():
            transaction.rewrite.groups.extend(operation.groups)
            transaction.rewrite.rewritten_indices.extend(operation.rewritten_indices)
            transaction.rewrite.SetInParent()
        case _:
            _encode_table_change(operation, transaction)
    return transaction


def _encode_table_change(
    operation: Project | Restore | ReserveFragments | UpdateBases | UpdateMemWalState | Clone,
    transaction: pb.Transaction,
) -> None:
    match operation:
        case Project():
            transaction.project.schema.extend(operation.schema)
            transaction.project.preserves_nullability = operation.preserves_nullability
            transaction.project.SetInParent()
        case Restore():
            transaction.restore.version = operation.version
            transaction.restore.SetInParent()
        case ReserveFragments():
            transaction.reserve_fragments.num_fragments = operation.count
            transaction.reserve_fragments.SetInParent()
        case UpdateMemWalState():
            transaction.update_mem_wal_state.compacted_sstables.extend(operation.compacted_sstables)
            transaction.update_mem_wal_state.SetInParent()
        case UpdateBases():
            transaction.update_bases.new_bases.extend(operation.new_bases)
            transaction.update_bases.SetInParent()
        case Clone():
            transaction.clone.CopyFrom(
                pb.Transaction.Clone(
                    is_shallow=operation.is_shallow,
                    ref_name=operation.ref_name,
                    ref_version=operation.ref_version,
                    ref_path=operation.ref_path,
                    branch_name=operation.branch_name,
                )
            )


def decode_config_update(message: pb.Transaction.UpdateConfig) -> UpdateConfig:
    """The changes of an UpdateConfig message, in its current form or the deprecated form of older writers."""
    config = _decode_map(message.config_updates) if message.HasField("config_updates") else None
    if config is None and (message.upsert_values or message.delete_keys):
        config = MapUpdate({**message.upsert_values, **dict.fromkeys(message.delete_keys)})
    table = _decode_map(message.table_metadata_updates) if message.HasField("table_metadata_updates") else None
    schema = _decode_map(message.schema_metadata_updates) if message.HasField("schema_metadata_updates") else None
    if schema is None and message.schema_metadata:
        schema = MapUpdate(dict(message.schema_metadata), replace=True)
    fields = {number: _decode_map(update) for number, update in message.field_metadata_updates.items()}
    for number, old in message.field_metadata.items():
        fields.setdefault(number, MapUpdate(dict(old.metadata), replace=True))
    return UpdateConfig(config, table, schema, fields)


def _decode_overwrite(message: pb.Transaction.Overwrite) -> Overwrite:
    return Overwrite(
        tuple(message.fragments),
        tuple(message.schema),
        dict(message.schema_metadata),
        dict(message.config_upsert_values),
        tuple(message.initial_bases),
    )


def _encode_merge(operation: Merge, message: pb.Transaction.Merge) -> None:
    message.SetInParent()
    message.fragments.extend(operation.fragments)
    message.schema.extend(operation.schema)
    message.schema_metadata.update(operation.schema_metadata)
    message.preserves_nullability = operation.preserves_nullability


def _encode_overwrite(operation: Overwrite, message: pb.Transaction.Overwrite) -> None:
    message.SetInParent()
    message.fragments.extend(operation.fragments)
    message.schema.extend(operation.schema)
    message.schema_metadata.update(operation.schema_metadata)
    message.config_upsert_values.update(operation.config_upserts)
    message.initial_bases.extend(operation.initial_bases)


def _decode_update(message: pb.Transaction.Update) -> Update:
    offsets = {number: BitMap(old.values).serialize() for number, old in message.updated_fragment_offsets.items()}
    offsets.update(message.updated_fragment_offset_bitmaps)
    return Update(
        updated=tuple(message.updated_fragments),
        removed_ids=tuple(message.removed_fragment_ids),
        new=tuple(message.new_fragments),
        fields_modified=tuple(message.fields_modified),
        value_fields=tuple(message.fields_for_preserving_frag_bitmap),
        # Writers that predate the mode leave it at zero and set the modified fields.
        rewrites_columns=message.update_mode == pb.Transaction.REWRITE_COLUMNS or bool(message.fields_modified),
        rewritten_offsets=offsets,
        inserted_keys=message.inserted_rows if message.HasField("inserted_rows") else None,
        compacted_sstables=tuple(message.compacted_sstables),
    )


def _encode_update(operation: Update, message: pb.Transaction.Update) -> None:
    message.SetInParent()
    message.updated_fragments.extend(operation.updated)
    message.removed_fragment_ids.extend(operation.removed_ids)
    message.new_fragments.extend(operation.new)
    message.fields_modified.extend(operation.fields_modified)
    message.fields_for_preserving_frag_bitmap.extend(operation.value_fields)
    message.compacted_sstables.extend(operation.compacted_sstables)
    message.updated_fragment_offset_bitmaps.update(operation.rewritten_offsets)
    if operation.rewrites_columns:
        message.update_mode = pb.Transaction.REWRITE_COLUMNS
    if operation.inserted_keys is not None:
        message.inserted_rows.CopyFrom(operation.inserted_keys)


def _encode_config_update(operation: UpdateConfig, message: pb.Transaction.UpdateConfig) -> None:
    message.SetInParent()
    if operation.config is not None:
        _encode_map(operation.config, message.config_updates)
    if operation.table_metadata is not None:
        _encode_map(operation.table_metadata, message.table_metadata_updates)
    if operation.schema_metadata is not None:
        _encode_map(operation.schema_metadata, message.schema_metadata_updates)
    for number, update in operation.field_metadata.items():
        _encode_map(update, message.field_metadata_updates[number])


def _decode_map(message: pb.UpdateMap) -> MapUpdate:
    entries = {entry.key: entry.value if entry.HasField("value") else None for entry in message.update_entries}
    return MapUpdate(entries, message.replace)


def _encode_map(update: MapUpdate, message: pb.UpdateMap) -> None:
    message.SetInParent()
    message.replace = update.replace
    for key, value in update.entries.items():
        message.update_entries.add(key=key, value=value)


def fragment_ids(fragments: Iterable[pb.DataFragment]) -> frozenset[int]:
    """The ids of the fragments."""
    return frozenset(fragment.id for fragment in fragments)


def _decode_clone(message: pb.Transaction.Clone) -> Clone:
    return Clone(
        message.ref_path,
        message.ref_version,
        message.ref_name if message.HasField("ref_name") else None,
        message.branch_name if message.HasField("branch_name") else None,
        message.is_shallow,
    )


def _decode_merge(message: pb.Transaction.Merge) -> Merge:
    return Merge(
        tuple(message.fragments),
        tuple(message.schema),
        dict(message.schema_metadata),
        message.preserves_nullability,
    )


def _decode_rewrite(message: pb.Transaction.Rewrite) -> Rewrite:
    groups = list(message.groups)
    if message.old_fragments or message.new_fragments:  # the form of older writers: one group
        groups.append(
            pb.Transaction.Rewrite.RewriteGroup(
                old_fragments=message.old_fragments, new_fragments=message.new_fragments
            )
        )
    return Rewrite(tuple(groups), tuple(message.rewritten_indices))


_DECODERS: dict[str, Callable[[Any], Operation]] = {
    "append": lambda message: Append(tuple(message.fragments)),
    "overwrite": _decode_overwrite,
    "delete": lambda message: Delete(
        tuple(message.updated_fragments), tuple(message.deleted_fragment_ids), message.predicate
    ),
    "update": _decode_update,
    "update_config": decode_config_update,
    "project": lambda message: Project(tuple(message.schema), message.preserves_nullability),
    "merge": _decode_merge,
    "create_index": lambda message: CreateIndex(tuple(message.new_indices), tuple(message.removed_indices)),
    "data_replacement": lambda message: DataReplacement(tuple(message.replacements)),
    "rewrite": _decode_rewrite,
    "restore": lambda message: Restore(message.version),
    "reserve_fragments": lambda message: ReserveFragments(message.num_fragments),
    "update_bases": lambda message: UpdateBases(tuple(message.new_bases)),
    "update_mem_wal_state": lambda message: UpdateMemWalState(tuple(message.compacted_sstables)),
    "clone": _decode_clone,
}
