"""The operations that this engine commits, as dataclasses."""

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
        """The same for a map of bytes. Values of other keys need not be UTF-8."""
        if self.replace:
            target.clear()
        for key, value in self.entries.items():
            if value is None:
                target.pop(key, None)
            else:
                target[key] = value.encode()


@dataclass(frozen=True, slots=True)
class Append:
    """Adds rows. The fragments have no ids yet; their `id` is ignored."""

    fragments: tuple[pb.DataFragment, ...]


@dataclass(frozen=True, slots=True)
class Overwrite:
    """Replaces rows and schema, or creates a table.

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
    """Deletes rows: `updated` fragments carry their complete new deletion file, `removed_ids` lose every row."""

    updated: tuple[pb.DataFragment, ...]
    removed_ids: tuple[int, ...] = ()
    predicate: str = ""


@dataclass(frozen=True, slots=True)
class Update:
    """Rewrites rows: they are deleted in `updated` fragments and written to `new` fragments, which have no ids yet.

    Attributes:
        updated: Fragments with a new deletion file, or with `rewrites_columns`, with new data files.
        removed_ids: Fragments that lose every row.
        new: Fragments with the rewritten and inserted rows.
        fields_modified: With `rewrites_columns`, the fields that the new data files hold.
        value_fields: The fields of moved rows whose values changed.
        rewrites_columns: Whether columns are rewritten in place instead of rows being moved.
        rewritten_offsets: With `rewrites_columns`, the changed rows: a serialized Roaring bitmap by fragment id.
        inserted_keys: Keys that must not exist before the transaction.
        compacted_sstables: Generations of the write-ahead log that the transaction merges.
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
    """Changes the table's config and metadata. `field_metadata` is by field id."""

    config: MapUpdate | None = None
    table_metadata: MapUpdate | None = None
    schema_metadata: MapUpdate | None = None
    field_metadata: Mapping[int, MapUpdate] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Clone:
    """Creates a branch or clone: its first version is a copy of version `ref_version` of another root."""

    ref_path: str
    ref_version: int
    ref_name: str | None
    branch_name: str | None
    is_shallow: bool = True


@dataclass(frozen=True, slots=True)
class Project:
    """Replaces the schema over the same files: columns are dropped, renamed or reordered, none is added.

    `preserves_nullability`: no nullable column becomes non-nullable.
    """

    schema: tuple[pb.Field, ...]
    preserves_nullability: bool = False


@dataclass(frozen=True, slots=True)
class Merge:
    """Replaces the schema and adds columns. `fragments` is the complete new fragment list.

    The schema metadata is kept if `schema_metadata` is empty. `preserves_nullability`: no nullable column becomes
    non-nullable.
    """

    fragments: tuple[pb.DataFragment, ...]
    schema: tuple[pb.Field, ...]
    schema_metadata: Mapping[str, bytes] = field(default_factory=dict)
    preserves_nullability: bool = False


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """Adds and removes index segments. A replacement has both, dropping an index has only `removed`."""

    new: tuple[pb.IndexMetadata, ...]
    removed: tuple[pb.IndexMetadata, ...] = ()


@dataclass(frozen=True, slots=True)
class DataReplacement:
    """Replaces columns of single fragments by data files that hold them for all physical rows."""

    replacements: tuple[pb.Transaction.DataReplacementGroup, ...]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Moves rows to other fragments: in each group the `new_fragments` replace the `old_fragments`.

    New fragments have ids that were reserved before, or 0 (not assigned yet). On a table with stable row ids they carry
    the ids of their rows. `rewritten_indices` are segments that were rewritten for the new fragments.
    """

    groups: tuple[pb.Transaction.Rewrite.RewriteGroup, ...]
    rewritten_indices: tuple[pb.Transaction.Rewrite.RewrittenIndex, ...] = ()


@dataclass(frozen=True, slots=True)
class Restore:
    """Goes back to an earlier version of the same table or branch: rows, schema, config and indices."""

    version: int


@dataclass(frozen=True, slots=True)
class ReserveFragments:
    """Reserves the next `count` fragment ids for a later Rewrite."""

    count: int


@dataclass(frozen=True, slots=True)
class UpdateMemWalState:
    """Records the generations of the write-ahead log's shards that are merged into the table."""

    compacted_sstables: tuple[pb.CompactedSsTable, ...]


@dataclass(frozen=True, slots=True)
class UpdateBases:
    """Adds base paths: further roots for data files. A base path with id 0 gets the next free id."""

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
