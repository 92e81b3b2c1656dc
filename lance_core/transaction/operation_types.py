"""The operations that this engine commits, as plain values."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field

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
        """The same for a map whose values are bytes; those that are not named may be no UTF-8."""
        if self.replace:
            target.clear()
        for key, value in self.entries.items():
            if value is None:
                target.pop(key, None)
            else:
                target[key] = value.encode()


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
    """The first version of a branch or clone: a copy of the manifest `ref_version` of another root."""

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
class Merge:
    """Another schema, and columns added: `fragments` is the whole list that the table will have.

    The schema metadata stays as it is unless `schema_metadata` holds any. With `preserves_nullability` no column
    forbids nulls that allowed them before.
    """

    fragments: tuple[pb.DataFragment, ...]
    schema: tuple[pb.Field, ...]
    schema_metadata: Mapping[str, bytes] = field(default_factory=dict)
    preserves_nullability: bool = False


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """Index segments come and go. A replacement has both, dropping has only `removed`."""

    new: tuple[pb.IndexMetadata, ...]
    removed: tuple[pb.IndexMetadata, ...] = ()


@dataclass(frozen=True, slots=True)
class DataReplacement:
    """Columns of single fragments get another data file, which holds them for all physical rows."""

    replacements: tuple[pb.Transaction.DataReplacementGroup, ...]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The same rows in other fragments: in each group the `new_fragments` take the place of the `old_fragments`.

    New fragments have ids that were reserved before, or 0 for none yet; on a table with stable row ids they carry the
    ids of their rows. `rewritten_indices` are segments that were moved to the new fragments.
    """

    groups: tuple[pb.Transaction.Rewrite.RewriteGroup, ...]
    rewritten_indices: tuple[pb.Transaction.Rewrite.RewrittenIndex, ...] = ()


@dataclass(frozen=True, slots=True)
class Restore:
    """The whole of an earlier version of the same table or branch again: rows, schema, config, indices."""

    version: int


@dataclass(frozen=True, slots=True)
class ReserveFragments:
    """The next `count` fragment ids are taken, for a Rewrite to come."""

    count: int


@dataclass(frozen=True, slots=True)
class UpdateMemWalState:
    """Generations of the write-ahead log's shards that are in the table now."""

    compacted_sstables: tuple[pb.CompactedSsTable, ...]


@dataclass(frozen=True, slots=True)
class UpdateBases:
    """More places where data files may lie. A base path with id 0 gets the next free one."""

    new_bases: tuple[pb.BasePath, ...]


Operation = (
    Append
    | Overwrite
    | Delete
    | Update
    | UpdateConfig
    | Project
    | Merge
    | CreateIndex
    | DataReplacement
    | Rewrite
    | Restore
    | ReserveFragments
    | UpdateBases
    | UpdateMemWalState
    | Clone
)
