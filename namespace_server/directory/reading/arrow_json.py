"""Arrow schemas as JSON, in two forms.

That of the namespace API is spelled as stock servers spell it. It cannot express everything: time units, time zones and
dictionary encoding are not in it. The length of a decimal is precision * 1000 + scale.

That of Lance itself names types as its manifests do (`timestamp:us:UTC`), and expresses all types that a table may have
but maps, intervals and views: a view is described as what it is a view of.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyarrow import types

Leaf = Callable[[pa.DataType], dict[str, object]]
"""How a form describes a type that has no fields."""

_NAMES = {
    "string": "utf8",
    "large_string": "large_utf8",
    "halffloat": "float16",
    "float": "float32",
    "double": "float64",
    "date32[day]": "date32",
    "date64[ms]": "date64",
}


def schema_json(schema: pa.Schema) -> dict[str, object]:
    """JsonArrowSchema."""
    return _schema(schema, _leaf)


def lance_schema_json(schema: pa.Schema) -> dict[str, object]:
    """The schema in the form of Lance."""
    return _schema(schema, _lance_leaf)


def _schema(schema: pa.Schema, leaf: Leaf) -> dict[str, object]:
    described: dict[str, object] = {"fields": [_field(field, leaf) for field in schema]}
    if schema.metadata:
        described["metadata"] = {key.decode(): value.decode(errors="replace") for key, value in schema.metadata.items()}
    return described


def _field(field: pa.Field, leaf: Leaf) -> dict[str, object]:
    described: dict[str, object] = {"name": field.name, "nullable": field.nullable, "type": _type(field.type, leaf)}
    metadata = field.metadata or {}
    if leaf is _lance_leaf and isinstance(field.type, pa.BaseExtensionType):
        metadata = {b"ARROW:extension:name": field.type.extension_name.encode()} | metadata
    if metadata:
        described["metadata"] = {key.decode(): value.decode(errors="replace") for key, value in metadata.items()}
    return described


def _type(kind: pa.DataType, leaf: Leaf) -> dict[str, object]:
    if isinstance(kind, pa.BaseExtensionType):
        return _type(kind.storage_type, leaf)
    if types.is_fixed_size_binary(kind):
        return {"type": "fixed_size_binary", "length": kind.byte_width}
    if types.is_map(kind):
        entries = pa.field("entries", pa.struct([kind.key_field, kind.item_field]), nullable=False)
        return {"type": "map", "fields": [_field(entries, leaf)]}
    if types.is_struct(kind):
        return {"type": "struct", "fields": [_field(kind.field(index), leaf) for index in range(kind.num_fields)]}
    if types.is_fixed_size_list(kind):
        return {"type": "fixed_size_list", "length": kind.list_size, "fields": [_field(kind.value_field, leaf)]}
    if types.is_list(kind) or types.is_large_list(kind):
        name = "large_list" if types.is_large_list(kind) else "list"
        return {"type": name, "fields": [_field(kind.value_field, leaf)]}
    return leaf(kind)


def _leaf(kind: pa.DataType) -> dict[str, object]:
    if types.is_dictionary(kind):
        return _type(kind.value_type, _leaf)
    if types.is_decimal(kind):
        return {"type": f"decimal{kind.bit_width}", "length": kind.precision * 1000 + kind.scale}
    name = str(kind)
    return {"type": _NAMES.get(name, name.partition("[")[0])}


def _lance_leaf(kind: pa.DataType) -> dict[str, object]:
    if types.is_dictionary(kind):
        value, index = (_type(each, _lance_leaf)["type"] for each in (kind.value_type, kind.index_type))
        return {"type": f"dict:{value}:{index}:{str(kind.ordered).lower()}"}
    if types.is_decimal(kind):
        return {"type": f"decimal:{kind.bit_width}:{kind.precision}:{kind.scale}"}
    if types.is_timestamp(kind):
        return {"type": f"timestamp:{kind.unit}:{kind.tz or '-'}"}
    if types.is_time(kind) or types.is_duration(kind):
        return {"type": str(kind).replace("[", ":").rstrip("]")}
    if types.is_date(kind):
        return {"type": "date32:day" if types.is_date32(kind) else "date64:ms"}
    return {"type": str(kind).removesuffix("_view")}
