"""Arrow data in memory as Lance needs it."""

from __future__ import annotations

import pyarrow as pa

from table_data.arrow.dictionaries import without_views


def readable_by_lance(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The same values in memory that Lance reads; a copy where they lie in another way.

    Lance needs decimals at multiples of 16 bytes. Arrow streams and files, Spark and Ray align them to 8. Spark 4.1
    leaves out the offsets of nested columns without elements, which Lance needs. Of a part of a column, Lance takes the
    wrong rows of a struct in a struct.
    """
    if not (pa.types.is_nested(column.type) or pa.types.is_decimal(column.type)):
        return column
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([readable_by_lance(chunk) for chunk in column.chunks], column.type)
    if _has_empty_part(column):
        plain = column.cast(without_views(column.type))  # Arrow takes no views
        return plain.take(pa.array(range(len(plain)), pa.int64())).cast(column.type)
    if _holds_decimal(column.type) and any(part is not None and part.address % 16 for part in column.buffers()):
        return pa.concat_arrays([column])
    return pa.concat_arrays([column]) if _has_nested_part(column) else column


def _has_nested_part(column: pa.Array) -> bool:
    """Whether a struct that is a part of a longer one has other columns of parts in it."""
    if isinstance(column, pa.StructArray):
        fields = [column.field(number) for number in range(column.type.num_fields)]
        if column.offset and any(pa.types.is_nested(field.type) for field in fields):
            return True
        return any(map(_has_nested_part, fields))
    if isinstance(column, (pa.ListArray, pa.LargeListArray, pa.MapArray)):
        return _has_nested_part(column.values)
    return False


def _has_empty_part(column: pa.Array) -> bool:
    if isinstance(column, pa.StructArray):
        parts = [column.field(number) for number in range(column.type.num_fields)]
    elif isinstance(column, pa.MapArray):
        parts = [column.keys, column.items]
    elif isinstance(column, (pa.ListArray, pa.LargeListArray)):
        parts = [column.values]
    else:
        return False
    return any(len(part) == 0 or _has_empty_part(part) for part in parts)


def _holds_decimal(kind: pa.DataType) -> bool:
    parts = (kind.field(number).type for number in range(kind.num_fields))
    return bool(pa.types.is_decimal(kind)) or any(map(_holds_decimal, parts))
