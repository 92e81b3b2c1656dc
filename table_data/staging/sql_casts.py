"""Values of SQL expressions as the types of the columns that they are assigned to.

Pylance's own update casts with DataFusion, whose rules and texts are not those of pyarrow: so the cast is a part of the
expression. Numbers are cast by pyarrow: pylance gives a literal the type of the column beside it only where nothing is
around the two, so a cast would change their arithmetic. Of what is cast to other types, only the last digit of a
product such as `float32_column * 1.1` differs for this reason. Pyarrow's are those of `table_data.arrow.fitting`, which
refuse what a column does not hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from table_data.sql.expressions import SqlExpression

_UNITS: Final = {"s": "Second", "ms": "Millisecond", "us": "Microsecond", "ns": "Nanosecond"}
_NAMES: Final = {
    pa.null(): "Null",
    pa.bool_(): "Boolean",
    **{pa.type_for_alias(f"int{bits}"): f"Int{bits}" for bits in (8, 16, 32, 64)},
    **{pa.type_for_alias(f"uint{bits}"): f"UInt{bits}" for bits in (8, 16, 32, 64)},
    **{pa.type_for_alias(f"float{bits}"): f"Float{bits}" for bits in (16, 32, 64)},
    pa.string(): "Utf8",
    pa.large_string(): "LargeUtf8",
    pa.binary(): "Binary",
    pa.large_binary(): "LargeBinary",
    pa.date32(): "Date32",
    pa.date64(): "Date64",
}


def cast_expressions(
    expressions: Mapping[str, SqlExpression], found: pa.Schema, wanted: pa.Schema, *, numbers: bool = False
) -> dict[str, SqlExpression]:
    """The checked expressions whose values have a type that is not the wanted one, with a cast around them.

    Those from number to number are left out unless `numbers` is set, and those of types without a name in DataFusion.
    """
    casts = {}
    for name, expression in expressions.items():
        source, target = found.field(name).type, wanted.field(name).type
        if source == target or (not numbers and _is_cast_by_arrow(source, target)):
            continue
        names = [type_name(kind) for kind in (source, target)]
        if None not in names:
            casts[name] = SqlExpression(f"arrow_cast(arrow_cast({expression}, '{names[0]}'), '{names[1]}')")
    return casts


def type_name(kind: pa.DataType) -> str | None:
    """The name of a type in DataFusion's `arrow_cast`, None if it has none there."""
    types = pa.types
    if types.is_decimal128(kind) or types.is_decimal256(kind):
        return f"Decimal{kind.bit_width}({kind.precision}, {kind.scale})"
    if types.is_fixed_size_binary(kind):
        return f"FixedSizeBinary({kind.byte_width})"
    if types.is_timestamp(kind):
        zone = "None" if kind.tz is None else f'Some("{kind.tz}")'
        return f"Timestamp({_UNITS[kind.unit]}, {zone})"
    if types.is_time(kind):
        return f"Time{kind.bit_width}({_UNITS[kind.unit]})"
    if types.is_duration(kind):
        return f"Duration({_UNITS[kind.unit]})"
    if types.is_nested(kind) or types.is_dictionary(kind):
        return _name_of_parts(kind)
    return _NAMES.get(kind)


def _name_of_parts(kind: pa.DataType) -> str | None:
    types = pa.types
    if types.is_dictionary(kind):
        parts, form = [kind.index_type, kind.value_type], "Dictionary({}, {})"
    elif types.is_list(kind):
        parts, form = [kind.value_type], "List({})"
    elif types.is_large_list(kind):
        parts, form = [kind.value_type], "LargeList({})"
    elif types.is_fixed_size_list(kind):
        parts, form = [kind.value_type], f"FixedSizeList({kind.list_size}, {{}})"
    else:
        return None
    names = [type_name(part) for part in parts]
    return None if None in names else form.format(*names)


def _is_cast_by_arrow(source: pa.DataType, target: pa.DataType) -> bool:
    if pa.types.is_decimal(source):  # pylance cuts off its fraction
        return bool(pa.types.is_integer(target))
    return _is_number(source) and _is_number(target)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))
