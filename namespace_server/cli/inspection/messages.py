"""Converts any protobuf message to plain values, including unknown fields."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from google.protobuf.message import DecodeError, Message
from google.protobuf.timestamp_pb2 import Timestamp
from google.protobuf.unknown_fields import UnknownFieldSet

from lance_core.errors import CorruptFile
from lance_core.format.bitmaps import decode_bitmap
from lance_core.format.decoding import decode_message
from lance_core.proto import lance_table_pb2 as pb

UNKNOWN_FIELDS = "unknown_fields"

_SHOWN_BYTES = 64
_LISTED_NUMBERS = 4096
_UUID_BYTES = 16
_NANOSECONDS = 1_000_000_000


def message_values(message: Message) -> Any:
    """The fields of a message by name, recursively, as JSON values.

    Scalars without presence are shown even if they are zero. Unknown fields are listed under `unknown_fields` with
    their number and content. Uuids, times, bitmaps and row sequences are decoded if they are well-formed; other bytes
    are shown by their length and first bytes.
    """
    if isinstance(message, Timestamp):
        return timestamp_text(message.seconds * _NANOSECONDS + message.nanos)
    if isinstance(message, pb.UUID) and len(message.uuid) == _UUID_BYTES:
        return str(uuid.UUID(bytes=message.uuid))
    if isinstance(message, pb.RowIdSequence):
        return [_segment(segment) for segment in message.segments]
    if isinstance(message, pb.RowDatasetVersionSequence):
        return [{"version": run.version, "rows": _segment(run.span)} for run in message.runs]
    values: dict[str, Any] = {}
    present = {field.name for field, _ in message.ListFields()}
    for field in message.DESCRIPTOR.fields:
        if field.name in present or not (field.has_presence or field.is_repeated):
            values[field.name] = _field_values(field, getattr(message, field.name))
    unknown = unknown_fields(message)
    if unknown:
        values[UNKNOWN_FIELDS] = unknown
    return values


def unknown_fields(message: Message) -> list[dict[str, Any]]:
    """The unknown fields of this message, without those of nested messages."""
    return _unknown(UnknownFieldSet(message))


def timestamp_text(time_ns: int) -> str:
    """Nanoseconds since the epoch as RFC 3339 in UTC, or as a number if the year is out of range."""
    seconds, nanos = divmod(time_ns, _NANOSECONDS)
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{nanos:09d}Z"
    except (ValueError, OverflowError, OSError):
        return f"{time_ns} ns since the epoch"


def bytes_values(data: bytes) -> Any:
    """The length and the first bytes of `data`."""
    shown = {"bytes": len(data), "hex": data[:_SHOWN_BYTES].hex()}
    return shown if len(data) <= _SHOWN_BYTES else shown | {"cut": True}


def number_ranges(numbers: Iterable[int]) -> list[str]:
    """Ascending numbers as a list of texts such as `3` and `5-9`."""
    listed = list(numbers)
    starts = [listed[0]] if listed else []
    ends: list[int] = []
    for before, after in pairwise(listed):
        if after != before + 1:
            ends.append(before)
            starts.append(after)
    ends += listed[-1:]
    return [str(start) if start == end else f"{start}-{end}" for start, end in zip(starts, ends, strict=True)]


def bitmap_values(data: bytes) -> Any:
    """The count of a Roaring bitmap, and its numbers unless there are too many."""
    try:
        bitmap = decode_bitmap(data, "bitmap")
    except CorruptFile as error:
        return {"malformed": str(error), **bytes_values(data)}
    count = len(bitmap)
    if count > _LISTED_NUMBERS:
        return {"count": count, "first": bitmap.min(), "last": bitmap.max()}
    return {"count": count, "numbers": number_ranges(bitmap)}


def _field_values(field: Any, value: Any) -> Any:
    show = _SPECIAL.get(field.full_name, lambda item: _value(field, item))
    if not field.is_repeated:
        return show(value)
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        of = entry.fields_by_name["value"]
        return {str(key): _SPECIAL.get(field.full_name, lambda item: _value(of, item))(value[key]) for key in value}
    return [show(item) for item in value]


def _value(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        return message_values(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return value if known is None else known.name
    return bytes_values(value) if isinstance(value, bytes) else value


def _text(data: bytes) -> Any:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return bytes_values(data)


def _nested(kind: type[Message]) -> Callable[[bytes], Any]:
    def show(data: bytes) -> Any:
        try:
            return message_values(decode_message(kind, data))
        except DecodeError as error:
            return {"malformed": f"not a {kind.DESCRIPTOR.name}: {error}", **bytes_values(data)}

    return show


def _segment(segment: pb.U64Segment) -> Any:
    """A summary of a segment. It is not expanded, because a few bytes can encode a range of any size."""
    kind = segment.WhichOneof("segment")
    if kind is None:
        return {"malformed": "a segment of an unknown kind", UNKNOWN_FIELDS: unknown_fields(segment)}
    if kind in {"range", "range_with_holes", "range_with_bitmap"}:
        span = getattr(segment, kind)
        return {"kind": kind, "from": span.start, "below": span.end}
    array = getattr(segment, kind)
    match array.WhichOneof("array"):
        case "u16_array":
            count = len(array.u16_array.offsets) // 2
        case "u32_array":
            count = len(array.u32_array.offsets) // 4
        case "u64_array":
            count = len(array.u64_array.values) // 8
        case _:
            count = 0
    return {"kind": kind, "count": count}


def _unknown(fields: Any) -> list[dict[str, Any]]:
    shown = []
    for field in fields:
        data = field.data
        if isinstance(data, bytes):
            data = bytes_values(data)
        elif not isinstance(data, int):
            data = _unknown(data)
        shown.append({"field": field.field_number, "wire_type": field.wire_type, "value": data})
    return shown


_SPECIAL: dict[str, Callable[[Any], Any]] = {
    "lance_core.table.IndexMetadata.fragment_bitmap": bitmap_values,
    "lance_core.table.DataFragment.inline_row_ids": _nested(pb.RowIdSequence),
    "lance_core.table.DataFragment.inline_last_updated_at_versions": _nested(pb.RowDatasetVersionSequence),
    "lance_core.table.DataFragment.inline_created_at_versions": _nested(pb.RowDatasetVersionSequence),
    "lance_core.table.Manifest.schema_metadata": _text,
    "lance_core.table.Transaction.Overwrite.schema_metadata": _text,
    "lance_core.table.Transaction.Merge.schema_metadata": _text,
    "lance_core.table.Transaction.Update.updated_fragment_offset_bitmaps": bitmap_values,
    "lance_core.table.Field.metadata": _text,
}
