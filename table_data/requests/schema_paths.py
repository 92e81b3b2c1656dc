"""Fields of a table's schema by their paths, and the canonical paths of fields."""

from __future__ import annotations

from collections.abc import Sequence

from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.fields import TOP_LEVEL
from table_data.errors import ColumnNotFound
from table_data.requests.field_paths import dotted, parse_path

_LISTS = frozenset({"list", "list.struct", "large_list", "large_list.struct"})


def field_at(fields: Sequence[pb.Field], path: str, what: str, *, through_lists: bool = False) -> pb.Field:
    """The field at a path; `what` begins the text of errors. Raises `InvalidCall`, `ColumnNotFound`.

    The path names the items of lists, or with `through_lists` leaves them out.
    """
    parent, found = TOP_LEVEL, None
    for name in parse_path(path, what):
        children = [field for field in fields if field.parent_id == parent]
        while through_lists and found is not None and is_list(found) and len(children) == 1:
            found = children[0]
            children = [field for field in fields if field.parent_id == found.id]
        found = next((field for field in children if field.name == name), None)
        if found is None:
            names = ", ".join(field.name for field in children)[:200] or "none"
            raise ColumnNotFound(f"{what}: no field {name[:80]!r} of path {path[:80]!r}, expected one of {names}")
        parent = found.id
    assert found is not None
    return found


def is_list(field: pb.Field) -> bool:
    """Whether a field holds lists, whose items are its only child."""
    return field.logical_type in _LISTS


def names_to(fields: Sequence[pb.Field], identifier: int) -> list[str]:
    """The names on the way to a field, outermost first."""
    by_id = {field.id: field for field in fields}
    names: list[str] = []
    while identifier != TOP_LEVEL:
        names.append(by_id[identifier].name)
        identifier = by_id[identifier].parent_id
    return names[::-1]


def canonical_path(fields: Sequence[pb.Field], identifier: int) -> str:
    """The path of a field, as `parse_path` takes it apart."""
    return dotted(names_to(fields, identifier))
