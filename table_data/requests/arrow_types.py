"""Arrow types from the JSON of the namespace API. Pure.

A type is an object with a `type` name, or the name alone, which is what stock servers take. Names are in any case. They
may be those of Lance's own schemas, too, which have units, time zones and precisions (`timestamp:us:UTC`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from table_data.errors import InvalidCall

_ALIASES = {
    "utf8": "string",
    "large_utf8": "large_string",
    "boolean": "bool",
    "float16": "halffloat",
    "float32": "float",
    "float64": "double",
    "timestamp": "timestamp[us]",
    "duration": "duration[us]",
}
_SIMPLE: Mapping[str, pa.DataType] = {
    str(kind): kind
    for kind in (
        *(pa.null(), pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64()),
        *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.float16(), pa.float32(), pa.float64()),
        *(pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.date32(), pa.date64()),
        *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")),
        *(pa.duration(unit) for unit in ("s", "ms", "us", "ns")),
        *(pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
    )
} | {"date32": pa.date32(), "date64": pa.date64()}


def arrow_type(described: Any, what: str) -> pa.DataType:
    """The type that JSON describes; `what` begins the text of errors. Raises `InvalidCall`."""
    if isinstance(described, str):
        described = {"type": described}
    if not isinstance(described, Mapping) or not isinstance(described.get("type"), str):
        raise InvalidCall(f"{what}: expected the name of an Arrow type, or an object with one in `type`")
    name, length = described["type"].lower(), described.get("length")
    found = _SIMPLE.get(_ALIASES.get(name, name)) or _of_lance(described["type"])
    if found is not None:
        return found
    if name == "fixed_size_list" and isinstance(length, int) and 0 < length < 1 << 31:
        return pa.list_(_item(described, what), length)
    if name in {"decimal128", "decimal256"} and isinstance(length, int):
        try:
            return (pa.decimal128 if name == "decimal128" else pa.decimal256)(*divmod(length, 1000))
        except (ValueError, OverflowError) as error:
            raise InvalidCall(f"{what}: expected precision * 1000 + scale as length, found {length}") from error
    raise InvalidCall(f"{what}: expected a type that a column can be cast to, found {described['type'][:80]!r}")


def _of_lance(name: str) -> pa.DataType | None:
    """The type that Lance's own schemas name so; None if it is not one of theirs with a unit or a precision."""
    kind, _, rest = name.partition(":")
    parts = rest.split(":", 1)
    try:
        match kind:
            case "timestamp" if len(parts) == 2:
                return pa.timestamp(parts[0], None if parts[1] == "-" else parts[1])
            case "date32" | "date64" | "time32" | "time64" | "duration" if len(parts) == 1:
                return _SIMPLE.get(f"{kind}[{rest}]")
            case "decimal":
                bits, precision, scale = rest.split(":")
                of_bits = {"128": pa.decimal128, "256": pa.decimal256}
                return of_bits[bits](int(precision), int(scale))
    except (ValueError, KeyError, OverflowError):
        return None
    return None


def _item(described: Mapping[str, Any], what: str) -> pa.Field:
    fields = described.get("fields")
    if not isinstance(fields, list) or len(fields) != 1 or not isinstance(fields[0], Mapping):
        raise InvalidCall(f"{what}: expected one field for the items of a fixed_size_list")
    kind = arrow_type(fields[0].get("type"), what)
    if pa.types.is_nested(kind):
        raise InvalidCall(f"{what}: expected a fixed_size_list of numbers, found one of {kind}")
    return pa.field("item", kind, bool(fields[0].get("nullable", True)))


def is_castable(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether a column may be cast, as pylance sees it: within a family, such as integers to integers."""
    if pa.types.is_fixed_size_list(source) and pa.types.is_fixed_size_list(target):
        return source.list_size == target.list_size and is_castable(source.value_type, target.value_type)
    return any(member(source) and member(target) for member in _FAMILIES)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


_FAMILIES = (
    *(pa.types.is_integer, pa.types.is_floating, pa.types.is_temporal, pa.types.is_decimal, pa.types.is_boolean),
    *(_is_text, _is_bytes, pa.types.is_null),
)
