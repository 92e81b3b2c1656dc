"""The operations that this engine commits, as plain values, and their form on the wire.

A committed transaction of any kind can stand in the way of ours; it is judged as the message that it is (`conflicts`).
What is decoded here is our own side. An operation that is not among these raises `UnsupportedFeature` by name.
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field

from pyroaring import BitMap

from lance_core.errors import InvalidTransaction, UnsupportedFeature
from lance_core.proto import lance_table_pb2 as pb


@dataclass(frozen=True, slots=True)
class MapUpdate:
    """Changes to a string map. A value of None deletes its key; `replace` drops every key that is not in `entries`."""

    entries: Mapping[str, str | None]
    replace: bool = False

    def apply_to(self, target: MutableMapping[str, str]) -> None:
        """Change `target` in place."""
        if self.replace:
            target.clear()
        for key, value in self.entries.items():
            if value is None:
                target.pop(key, None)
            else:
                target[key] = value

    def apply_to_bytes(self, target: MutableMapping[str, bytes]) -> None:
        """The same for a map whose values are UTF-8 bytes."""
        texts = {key: value.decode() for key, value in target.items()}
        self.apply_to(texts)
        target.clear()
        target.update({key: value.encode() for key, value in texts.items()})


@dataclass(frozen=True, slots=True)
class Append:
    """New rows. The fragments have no ids yet, whatever their `id` says."""

    fragments: tuple[pb.DataFragment, ...]


@dataclass(frozen=True, slots=True)
class Overwrite:
    """New rows and schema in place of everything; the first version of a table, too.

    `schema` is in pre-order, top-level fields with parent -1. `config_upserts` is merged into the table's config.
    `initial_bases` is for a first version only.
    """

    fragments: tuple[pb.DataFragment, ...]
    schema: tuple[pb.Field, ...]
    schema_metadata: Mapping[str, bytes] = field(default_factory=dict)
    config_upserts: Mapping[str, str] = field(default_factory=dict)
    initial_bases: tuple[pb.BasePath, ...] = ()


@dataclass(frozen=True, slots=True)
class Delete:
    """Rows are gone: `updated` fragments carry their complete new deletion file, `removed_ids` lost every row."""

    updated: tuple[pb.DataFragment, ...]
    removed_ids: tuple[int, ...] = ()
    predicate: str = ""


@dataclass(frozen=True, slots=True)
class Update:
    """Rows are rewritten: deleted where they were and written again to `new` fragments, which have no ids yet.

    With `rewrites_columns` the `updated` fragments instead carry new data files for `fields_modified`, and
    `rewritten_offsets` (a serialized Roaring bitmap by fragment id) says which of their rows changed. `inserted_keys`
    holds the keys that the transaction claims not to have existed. `value_fields` are the fields of moved rows whose
    values changed.
    """

    updated: tuple[pb.DataFragment, ...] = ()
    removed_ids: tuple[int, ...] = ()
    new: tuple[pb.DataFragment, ...] = ()
    fields_modified: tuple[int, ...] = ()
    value_fields: tuple[int, ...] = ()
    rewrites_columns: bool = False
    rewritten_offsets: Mapping[int, bytes] = field(default_factory=dict)
    inserted_keys: pb.Transaction.KeyExistenceFilter | None = None
    compacted_sstables: tuple[pb.CompactedSsTable, ...] = ()


@dataclass(frozen=True, slots=True)
class UpdateConfig:
    """Changes to the table's maps. `field_metadata` is by field id."""

    config: MapUpdate | None = None
    table_metadata: MapUpdate | None = None
    schema_metadata: MapUpdate | None = None
    field_metadata: Mapping[int, MapUpdate] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Clone:
    """The first version of a branch or of a shallow clone: a copy of the manifest `ref_version` of another root."""

    ref_path: str
    ref_version: int
    ref_name: str | None
    branch_name: str | None
    is_shallow: bool = True


@dataclass(frozen=True, slots=True)
class Project:
    """Another schema over the same files: columns are dropped, renamed or reordered, none is added.

    With `preserves_nullability` no column forbids nulls that allowed them before.
    """

    schema: tuple[pb.Field, ...]
    preserves_nullability: bool = False


@dataclass(frozen=True, slots=True)
class Restore:
    """The whole of an earlier version of the same table or branch again: rows, schema, config, indices."""

    version: int


@dataclass(frozen=True, slots=True)
class ReserveFragments:
    """The next `count` fragment ids are taken, for a Rewrite to come."""

    count: int


@dataclass(frozen=True, slots=True)
class UpdateBases:
    """More places where data files may lie. A base path with id 0 gets the next free one."""

    new_bases: tuple[pb.BasePath, ...]


Operation = (
    Append | Overwrite | Delete | Update | UpdateConfig | Project | Restore | ReserveFragments | UpdateBases | Clone
)


def operation_name(transaction: pb.Transaction | None) -> str | None:
    """The field name of the operation, such as `append`. None when there is none or its number is not known."""
    return None if transaction is None else transaction.WhichOneof("operation")


def decode_operation(transaction: pb.Transaction) -> Operation:
    """The operation of a transaction that we are to commit.

    Raises `UnsupportedFeature` naming one that is not built here, `InvalidTransaction` when there is none.
    """
    match transaction.WhichOneof("operation"):
        case "append":
            return Append(tuple(transaction.append.fragments))
        case "overwrite":
            return _decode_overwrite(transaction.overwrite)
        case "delete":
            delete = transaction.delete
            return Delete(tuple(delete.updated_fragments), tuple(delete.deleted_fragment_ids), delete.predicate)
        case "update":
            return _decode_update(transaction.update)
        case "update_config":
            return decode_config_update(transaction.update_config)
        case "clone":
            clone = transaction.clone
            return Clone(
                clone.ref_path,
                clone.ref_version,
                clone.ref_name if clone.HasField("ref_name") else None,
                clone.branch_name if clone.HasField("branch_name") else None,
                clone.is_shallow,
            )
        case "project":
            return Project(tuple(transaction.project.schema), transaction.project.preserves_nullability)
        case "restore":
            return Restore(transaction.restore.version)
        case "reserve_fragments":
            return ReserveFragments(transaction.reserve_fragments.num_fragments)
        case "update_bases":
            return UpdateBases(tuple(transaction.update_bases.new_bases))
        case None:
            raise InvalidTransaction(f"transaction {transaction.uuid} holds no operation that is known")
        case name:
            raise UnsupportedFeature(f"transaction {transaction.uuid}: operation {name} cannot be committed here")


def encode_transaction(
    operation: Operation,
    *,
    read_version: int,
    uuid: str | None = None,
    properties: Mapping[str, str] | None = None,
) -> pb.Transaction:
    """A transaction message; a fresh random uuid if none is given. `read_version` is 0 for a table's first version."""
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
    return transaction


def decode_config_update(message: pb.Transaction.UpdateConfig) -> UpdateConfig:
    """The changes of an UpdateConfig message, in whichever of its two forms (older writers use the deprecated one)."""
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
        # Writers from before the mode existed leave it at zero; the modified fields tell.
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
