"""Schema fields as a manifest lists them: in pre-order, each with the id of its parent."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from lance_core.errors import InvalidTransaction
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.operations import MapUpdate

TOP_LEVEL = -1
"""Parent of a top-level field. (0 is the field with id 0.)"""

TOMBSTONE = -2
"""Value in `DataFile.fields` for a column that the file no longer provides."""

_PRIMARY_KEY = "lance-schema:unenforced-primary-key"
_PRIMARY_KEY_POSITION = "lance-schema:unenforced-primary-key:position"
_CLUSTERING_KEY_POSITION = "lance-schema:unenforced-clustering-key:position"
_LAST_POSITION = (1 << 32) - 1
_POSITION_DIGITS = len(str(_LAST_POSITION))
_TRUE = frozenset({b"true", b"1", b"yes"})


def check_schema(fields: Iterable[pb.Field]) -> None:
    """Raise `InvalidTransaction` unless ids are unique, not negative, and parents come before their children."""
    known: set[int] = set()
    for field in fields:
        if field.id < 0 or field.id in known:
            raise InvalidTransaction(f"field {field.name!r} has id {field.id}: expected a fresh one from 0 upward")
        if field.parent_id != TOP_LEVEL and field.parent_id not in known:
            raise InvalidTransaction(f"field {field.name!r} comes before its parent {field.parent_id}")
        known.add(field.id)
    if not known:
        raise InvalidTransaction("the schema has no field")


def descendants(fields: Iterable[pb.Field], roots: AbstractSet[int]) -> frozenset[int]:
    """`roots` and the ids of all fields below them."""
    found = set(roots)
    for field in fields:
        if field.parent_id in found:
            found.add(field.id)
    return frozenset(found)


def descriptions(fields: Iterable[pb.Field]) -> dict[int, tuple[int, str, str]]:
    """By the id of each field its parent, name and logical type, which distinguish columns."""
    return {field.id: (field.parent_id, field.name, field.logical_type) for field in fields}


def set_field_metadata(field: pb.Field, update: MapUpdate) -> None:
    """Change a field's metadata, and the message fields derived from it: unenforced primary and clustering keys."""
    update.apply_to_bytes(field.metadata)
    position = _position(field, _PRIMARY_KEY_POSITION)
    marked = field.metadata.get(_PRIMARY_KEY, b"").lower() in _TRUE
    field.unenforced_primary_key = marked or position is not None
    field.unenforced_primary_key_position = position or 0
    position = _position(field, _CLUSTERING_KEY_POSITION)
    field.unenforced_clustering_key = position is not None
    field.unenforced_clustering_key_position = position or 0


def _position(field: pb.Field, key: str) -> int | None:
    value = field.metadata.get(key)
    if value is None:
        return None
    if not value.isdigit() or int(value[:_POSITION_DIGITS]) > _LAST_POSITION or len(value) > _POSITION_DIGITS:
        raise InvalidTransaction(f"field {field.name!r}: metadata {key} is {value!r}, expected a number below 2^32")
    return int(value)
