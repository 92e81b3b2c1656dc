"""The columns of a data file that follow from the schema fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from lance_core.errors import CorruptFile
from lance_core.proto import lance_table_pb2 as pb

TOP_LEVEL = -1
"""`Field.parent_id` of a top-level field."""

_PACKED_KEYS = ("packed", "lance-encoding:packed")


MAX_DEPTH = 64
"""Largest nesting depth of fields, as in Arrow."""


def check_depth(fields: Iterable[pb.Field]) -> None:
    """Raise `CorruptFile` if fields, or the types within a type, are nested deeper than `MAX_DEPTH`.

    Decoding a schema is recursive: a hundred thousand levels, which fit into a few megabytes, crash the process.
    """
    depths: dict[int, int] = {}
    for field in fields:
        depth = depths[field.id] = depths.get(field.parent_id, 0) + 1
        if depth > MAX_DEPTH or field.logical_type.count(":") > MAX_DEPTH:
            raise CorruptFile(f"field {field.id} ({field.name[:80]!r}): nested deeper than {MAX_DEPTH} levels")


def data_file_message(path: str, fields: Sequence[pb.Field], *, size: int, version: str = "2.2") -> pb.DataFile:
    """The message for a data file that holds exactly `fields`.

    `path` is relative to `data/`, `size` is in bytes, `version` is the data file version `major.minor` of the table.
    Raises `ValueError` for a version before 2.0.
    """
    major, minor = (int(part) for part in version.split("."))
    if major < 2:
        raise ValueError(f"data file {path} has version {version}, expected 2.0 or later")
    parents = (major, minor) == (2, 0)
    ids = list(_stored_fields(_group_by_parent(fields), TOP_LEVEL, parents=parents))
    return pb.DataFile(
        path=path,
        fields=ids,
        column_indices=range(len(ids)),
        file_major_version=major,
        file_minor_version=minor,
        file_size_bytes=size,
    )


def _group_by_parent(fields: Iterable[pb.Field]) -> Mapping[int, list[pb.Field]]:
    children: dict[int, list[pb.Field]] = {}
    for field in fields:
        children.setdefault(field.parent_id, []).append(field)
    return children


def _stored_fields(children: Mapping[int, list[pb.Field]], parent: int, *, parents: bool) -> Iterator[int]:
    """The ids of the fields below `parent` that have a column of their own, in column order.

    With `parents` (file version 2.0) these are all fields, except those inside a fixed-size list; otherwise only the
    leaves. A packed struct is one column in every version.
    """
    for field in children.get(parent, ()):
        leaf = field.id not in children or _is_packed(field)
        if leaf or parents:
            yield field.id
        if not leaf and not (parents and field.logical_type.startswith("fixed_size_list")):
            yield from _stored_fields(children, field.id, parents=parents)


def _is_packed(field: pb.Field) -> bool:
    return any(field.metadata.get(key, b"").lower() == b"true" for key in _PACKED_KEYS)
