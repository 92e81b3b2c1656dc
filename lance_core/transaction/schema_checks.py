"""Schemas that a transaction gives a table, and metadata of their fields: readers must be able to decode them.

What a field of the table has already is not judged again, so that a table with an unusual field can still be changed.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from lance_core.errors import InvalidTransaction
from lance_core.format.blobs import BLOB_KEY
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.fields import TOP_LEVEL
from lance_core.transaction.operations import MapUpdate

_LEAF: Final = re.compile(
    r"null|bool|u?int(8|16|32|64)|halffloat|float|double|(large_)?(string|binary)|json|date32:day|date64:ms"
    r"|time32:(s|ms)|time64:(us|ns)|timestamp:(s|ms|us|ns):.+|duration:(s|ms|us|ns)|fixed_size_binary:\d{1,9}"
)
_DECIMAL: Final = re.compile(r"decimal:(128|256):(\d{1,2}):(-?\d{1,2})")
_DICTIONARY: Final = re.compile(r"dict:(.+):u?int(8|16|32|64):(true|false)")
_FIXED_SIZE_LIST: Final = re.compile(r"fixed_size_list:(.+):[1-9]\d{0,8}")
_PRECISION: Final = {"128": 38, "256": 76}
_LISTS: Final = frozenset({"list", "large_list"})
_LISTS_OF_STRUCTS: Final = frozenset({"list.struct", "large_list.struct"})
_RESERVED: Final = frozenset(
    {"_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"}
)

_EXTENSION: Final = "ARROW:extension:name"
_LAYOUT: Final = frozenset({BLOB_KEY, "lance-encoding:packed", "packed"})
"""Keys that say how the columns of a field are laid out in its files."""
_VALUES: Final[Mapping[str, re.Pattern[str]]] = {
    "lance-encoding:compression": re.compile("zstd|lz4|none|fsst"),
    "lance-encoding:structural-encoding": re.compile("miniblock|fullzip"),
    "lance:field_id": re.compile(r"-?\d{1,9}"),
}
_STORAGE: Final[Mapping[str, re.Pattern[str]]] = {
    "lance.blob.v2": re.compile("struct|blob"),
    "lance.json": re.compile("json|large_binary"),
    "arrow.json": re.compile("json|(large_)?string"),
    "arrow.uuid": re.compile("fixed_size_binary:16"),
}
_PRIMARY_KEY: Final = "lance-schema:unenforced-primary-key"


def check_fields(fields: Sequence[pb.Field], before: Iterable[pb.Field]) -> None:
    """Raise `InvalidTransaction` for a schema that readers cannot decode.

    `fields` have unique ids, and parents before children. `before` is the schema of the head: its fields are not
    judged again.
    """
    known = {field.id: field for field in before}
    children: defaultdict[int, list[pb.Field]] = defaultdict(list)
    for field in fields:
        children[field.parent_id].append(field)
    for siblings in children.values():
        name, count = Counter(field.name for field in siblings).most_common(1)[0]
        if count > 1:
            raise InvalidTransaction(f"{count} fields are called {name!r}: expected one")
    for field in fields:
        old = known.get(field.id)
        if old is None or old.name != field.name:
            _check_name(field)
        below = children[field.id]
        grown = any(child.id not in known or known[child.id].parent_id != field.id for child in below)
        if old is None or grown or (old.logical_type, old.parent_id) != (field.logical_type, field.parent_id):
            _check_type(field, below)
        changed = {key: value for key, value in field.metadata.items() if old is None or old.metadata.get(key) != value}
        for key, raw in changed.items():
            _check_value(field, key, raw.decode("utf-8", "replace"))


def check_kept_fields(fields: Iterable[pb.Field], before: Iterable[pb.Field], rewritten: Iterable[int] = ()) -> None:
    """Raise `InvalidTransaction` if a field of the head has another type or parent, or its columns another layout.

    Its data files stay, unless its id is among `rewritten`.
    """
    known = {field.id: field for field in before}
    free = frozenset(rewritten)
    for field in fields:
        old = known.get(field.id)
        if old is None or field.id in free:
            continue
        if (field.logical_type, field.parent_id) != (old.logical_type, old.parent_id):
            raise InvalidTransaction(
                f"field {field.id} ({field.name!r}) has type {field.logical_type!r} below {field.parent_id}: expected "
                f"the table's, {old.logical_type!r} below {old.parent_id}"
            )
        for key in _LAYOUT:
            if field.metadata.get(key) != old.metadata.get(key):
                raise InvalidTransaction(f"field {field.name!r}: {key} cannot change, because the field has files")


def check_field_update(field: pb.Field, update: MapUpdate, fields: Iterable[pb.Field]) -> None:
    """Raise `InvalidTransaction` for new metadata of a field of the table that readers or writers fail on."""
    for key, value in update.entries.items():
        if key in _LAYOUT and (value or "").encode() != field.metadata.get(key, b""):
            raise InvalidTransaction(f"field {field.name!r}: {key} cannot change, because the field has files")
        if value is None:
            continue
        _check_value(field, key, value)
        if key == _PRIMARY_KEY and value.lower() in {"true", "1", "yes"}:
            _require_not_null(field, fields)


def _check_name(field: pb.Field) -> None:
    name = field.name
    if not name or "\0" in name or (field.parent_id == TOP_LEVEL and ("." in name or "`" in name)):
        raise InvalidTransaction(f"field {field.id} is called {name!r}: expected a name without '.', '`' and NUL")
    if field.parent_id == TOP_LEVEL and name in _RESERVED:
        raise InvalidTransaction(f"field {field.id} is called {name!r}, which is the name of a column of the system")


def _check_type(field: pb.Field, children: Sequence[pb.Field]) -> None:
    name = field.logical_type
    if name in {"struct", "blob"}:
        return
    if name in _LISTS or name in _LISTS_OF_STRUCTS:
        structs = [child.logical_type in {"struct", "blob"} for child in children]
        plain = [child.logical_type != "struct" for child in children]
        fits = len(children) == 1 and (structs if name in _LISTS_OF_STRUCTS else plain)[0]
    elif name == "map":
        fits = [child.logical_type for child in children] == ["struct"]
    elif name.startswith("fixed_size_list:"):
        of_structs = name.startswith("fixed_size_list:struct:")
        fits = _is_type(name) and [child.logical_type for child in children] == ["struct"] * of_structs
    else:
        fits = _is_type(name) and not children
    if not fits:
        below = [child.logical_type for child in children]
        raise InvalidTransaction(
            f"field {field.id} ({field.name!r}) has type {name[:80]!r} with fields of types {below[:10]} below it: "
            "expected a type that readers know, with the fields that it has"
        )


def _is_type(name: str) -> bool:
    if _LEAF.fullmatch(name):
        return True
    if decimal := _DECIMAL.fullmatch(name):
        precision, scale = int(decimal[2]), int(decimal[3])
        return 0 < precision <= _PRECISION[decimal[1]] and scale <= precision
    if dictionary := _DICTIONARY.fullmatch(name):
        return _LEAF.fullmatch(dictionary[1]) is not None or _DECIMAL.fullmatch(dictionary[1]) is not None
    if items := _FIXED_SIZE_LIST.fullmatch(name):
        return items[1] in {"struct", "lance.bfloat16"} or _is_type(items[1])
    return False


def _check_value(field: pb.Field, key: str, value: str) -> None:
    expected = _VALUES.get(key)
    if expected is not None and not expected.fullmatch(value):
        raise InvalidTransaction(f"field {field.name!r}: {key} is {value[:80]!r}, expected {expected.pattern}")
    if key == BLOB_KEY and value == "true" and field.logical_type not in {"large_binary", "binary", "blob"}:
        raise InvalidTransaction(f"field {field.name!r}: {key} is for large_binary, found {field.logical_type}")
    storage = _STORAGE.get(value) if key == _EXTENSION else None
    if storage is not None and not storage.fullmatch(field.logical_type):
        raise InvalidTransaction(
            f"field {field.name!r}: {key} is {value}, which is stored as {storage.pattern}, found {field.logical_type}"
        )


def _require_not_null(field: pb.Field, fields: Iterable[pb.Field]) -> None:
    known = {entry.id: entry for entry in fields}
    above: pb.Field | None = field
    while above is not None:
        if above.nullable:
            raise InvalidTransaction(f"field {field.name!r}: a primary key, but {above.name!r} may be null")
        above = known.get(above.parent_id)
