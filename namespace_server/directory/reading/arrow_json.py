"""Arrow schemas in the JSON form of the namespace API, spelled as stock servers spell them.

The form cannot express everything: time units, time zones and dictionary encoding are not in it. The length of a
decimal is precision * 1000 + scale.
"""

from __future__ import annotations

import pyarrow as pa
from pyarrow import types

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
    described: dict[str, object] = {"fields": [_field(field) for field in schema]}
    if schema.metadata:
        described["metadata"] = {key.decode(): value.decode(errors="replace") for key, value in schema.metadata.items()}
    return described


def _field(field: pa.Field) -> dict[str, object]:
    described: dict[str, object] = {"name": field.name, "nullable": field.nullable, "type": _type(field.type)}
    if field.metadata:
        described["metadata"] = {key.decode(): value.decode(errors="replace") for key, value in field.metadata.items()}
    return described


def _type(kind: pa.DataType) -> dict[str, object]:
    if isinstance(kind, pa.BaseExtensionType):
        return _type(kind.storage_type)
    if types.is_dictionary(kind):
        return _type(kind.value_type)
    if types.is_decimal(kind):
        return {"type": f"decimal{kind.bit_width}", "length": kind.precision * 1000 + kind.scale}
    if types.is_fixed_size_binary(kind):
        return {"type": "fixed_size_binary", "length": kind.byte_width}
    if types.is_map(kind):
        entries = pa.field("entries", pa.struct([kind.key_field, kind.item_field]), nullable=False)
        return {"type": "map", "fields": [_field(entries)]}
    if types.is_struct(kind):
        return {"type": "struct", "fields": [_field(kind.field(index)) for index in range(kind.num_fields)]}
    if types.is_fixed_size_list(kind):
        return {"type": "fixed_size_list", "length": kind.list_size, "fields": [_field(kind.value_field)]}
    if types.is_list(kind) or types.is_large_list(kind):
        return {"type": "large_list" if types.is_large_list(kind) else "list", "fields": [_field(kind.value_field)]}
    name = str(kind)
    return {"type": _NAMES.get(name, name.partition("[")[0])}
