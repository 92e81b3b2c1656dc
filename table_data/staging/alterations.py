"""Altered columns: other names, other nullability, other types."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import lance
import pyarrow as pa

from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.fields import TOP_LEVEL
from lance_core.transaction.indices import SYSTEM_INDICES, indexed_fields
from lance_core.transaction.operations import Merge, Project
from table_data.errors import InvalidCall
from table_data.requests.schema_paths import canonical_path, names_to
from table_data.staging.casts import Cast, cast_of, write_casts


@dataclass(frozen=True, slots=True)
class Alteration:
    """A change of one field, by its id; None leaves a property as it is."""

    field: int
    rename: str | None = None
    nullable: bool | None = None
    data_type: pa.DataType | None = None


def stage_alterations(
    dataset: lance.LanceDataset,
    manifest: pb.Manifest,
    indices: pb.IndexSection | None,
    alterations: Sequence[Alteration],
) -> Project | Merge | None:
    """Rename columns, change whether they may be null, and write new data files for those with another type.

    None if nothing changes. Raises `InvalidCall` if names collide, if a column holds nulls that may not be there, if
    types are not of one family, if a value does not fit, or if a column with an index is cast.
    """
    fields = [_copied(field) for field in manifest.fields]
    by_id = {field.id: field for field in fields}
    casts: dict[int, Cast] = {}
    tightened = False
    for alteration in alterations:
        field = by_id[alteration.field]
        if alteration.nullable is False and field.nullable:
            _check_no_nulls(dataset, manifest, field.id)
            tightened = True
        if alteration.nullable is not None:
            field.nullable = alteration.nullable
        if alteration.rename is not None:
            field.name = alteration.rename
        if alteration.data_type is not None:
            casts[field.id] = cast_of(manifest, field.id, alteration.data_type)
    _check_names(fields, {alteration.field for alteration in alterations if alteration.rename is not None})
    changing = [cast for cast in casts.values() if cast.source != cast.target]
    if not changing:
        unchanged = fields == list(manifest.fields)
        return None if unchanged else Project(tuple(fields), preserves_nullability=not tightened)
    _check_unindexed(manifest, indices, {cast.field for cast in changing})
    fragments, leaves = write_casts(dataset, manifest, changing)
    schema = tuple(_with_type(field, leaves.get(field.id)) for field in fields)
    live = {field.id for field in schema}
    kept = tuple(_without_unused_files(fragment, live) for fragment in fragments)
    return Merge(kept, schema, preserves_nullability=not tightened)


def stage_removal(manifest: pb.Manifest, dropped: AbstractSet[int]) -> Project:
    """Remove fields with all below them, and structs and lists that nothing is left in.

    Their data stays in the data files until these are compacted. Raises `InvalidCall` if no column would be left.
    """
    gone = set(dropped)
    parents = {field.parent_id for field in manifest.fields}
    before = -1
    while before != len(gone):
        before = len(gone)
        kept = {field.parent_id for field in manifest.fields if field.id not in gone}
        gone |= {field.id for field in manifest.fields if field.parent_id in gone}
        gone |= {field.id for field in manifest.fields if field.id in parents and field.id not in kept}
    left = tuple(field for field in manifest.fields if field.id not in gone)
    if not left:
        names = [field.name for field in manifest.fields if field.parent_id == TOP_LEVEL]
        raise InvalidCall(f"dropped columns: expected some, not all, of {names}")
    return Project(left, preserves_nullability=True)


def _copied(field: pb.Field) -> pb.Field:
    copy = pb.Field()
    copy.CopyFrom(field)
    return copy


def _check_no_nulls(dataset: lance.LanceDataset, manifest: pb.Manifest, field: int) -> None:
    path = canonical_path(manifest.fields, field)
    column = ".".join("`{}`".format(name.replace("`", "``")) for name in names_to(manifest.fields, field))
    try:
        nulls = dataset.count_rows(f"{column} IS NULL")
    except (ValueError, OSError) as error:
        raise InvalidCall(f"column {path!r}: expected one outside of lists, to make it non-nullable") from error
    if nulls:
        raise InvalidCall(f"column {path!r}: expected no nulls, to make it non-nullable; found {nulls}")


def _check_names(fields: Sequence[pb.Field], renamed: AbstractSet[int]) -> None:
    for field in fields:
        if field.id not in renamed:
            continue
        siblings = {other.name for other in fields if other.parent_id == field.parent_id and other.id != field.id}
        if not field.name or field.name in siblings or (field.parent_id == TOP_LEVEL and "." in field.name):
            raise InvalidCall(
                f"rename to {field.name[:80]!r}: expected a name without a dot that is not among {sorted(siblings)}"
            )


def _check_unindexed(manifest: pb.Manifest, indices: pb.IndexSection | None, cast: AbstractSet[int]) -> None:
    for index in indices.indices if indices is not None else ():
        common = indexed_fields(manifest.fields, index) & cast
        if common and index.name not in SYSTEM_INDICES:
            path = canonical_path(manifest.fields, min(common))
            raise InvalidCall(f"column {path!r}: expected no index to cast it, found {index.name!r}; drop it before")


def _with_type(field: pb.Field, leaf: pb.Field | None) -> pb.Field:
    if leaf is not None:
        field.id = leaf.id
        field.logical_type = leaf.logical_type
        field.encoding = leaf.encoding
    return field


def _without_unused_files(fragment: pb.DataFragment, live: AbstractSet[int]) -> pb.DataFragment:
    files = [file for file in fragment.files if not live.isdisjoint(file.fields)]
    copy = pb.DataFragment()
    copy.CopyFrom(fragment)
    del copy.files[:]
    copy.files.extend(files)
    return copy
