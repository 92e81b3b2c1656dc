"""Decodes Protobuf messages that clients wrote, within a bound on how many messages they hold.

An empty message takes two bytes where it is stored, and a hundred in memory: without a bound, a file of some MiB takes
some GiB to decode. What writers make has far more bytes for each message, so the number of messages is bounded by the
number of bytes. They are counted before anything is decoded.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple, TypeVar

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message

M = TypeVar("M", bound=Message)

FREE_MESSAGES: Final = 1 << 21
"""Messages that anything may hold. What is too short to hold more is not counted: most manifests and transactions."""
BYTES_EACH: Final = 16
"""Bytes for each message that longer ones have at least, on the average. A fragment has a hundred for each of its
own."""
_SMALLEST: Final = 2
_VARINT, _FIXED64, _BYTES, _GROUP, _GROUP_END, _FIXED32 = range(6)
_SIZES: Final = {_FIXED64: 8, _FIXED32: 4, _GROUP: 0, _GROUP_END: 0}
_NUMBERS: Final = {
    **dict.fromkeys(
        (FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FIXED64, FieldDescriptor.TYPE_SFIXED64), _FIXED64
    ),
    **dict.fromkeys(
        (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_FIXED32, FieldDescriptor.TYPE_SFIXED32), _FIXED32
    ),
}
"""Wire types of numbers of fixed size, by type of field; the others are varints."""
_TEXTS: Final = frozenset({FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES})


class _Part(NamedTuple):
    """Where a message is, and its kind."""

    place: int
    end: int
    kind: Descriptor


class _Field(NamedTuple):
    """The wire types of a field. One that `counts` takes memory of its own; `kind` is that of a message."""

    forms: frozenset[int]
    counts: bool = True
    kind: Descriptor | None = None


_UNKNOWN: Final = _Field(frozenset())


def decode_message(kind: type[M], data: bytes) -> M:
    """The message that `data` is. Raises `DecodeError` for what is none, or holds too many messages for its length."""
    if len(data) > _SMALLEST * FREE_MESSAGES:
        _check_messages(data, kind.DESCRIPTOR)
    return kind.FromString(data)


def _check_messages(data: bytes, kind: Descriptor) -> None:
    """Count messages, and what else takes memory of its own: repeated texts, and fields that the kind does not have."""
    most = max(FREE_MESSAGES, len(data) // BYTES_EACH)
    count = 0
    parts = [_Part(0, len(data), kind)]
    while parts:
        place, end, kind = parts.pop()
        fields = _fields(kind)
        while place < end:
            tag, place = _varint(data, place, end)
            form = tag & 7
            length = 0
            if form in {_VARINT, _BYTES}:
                number, place = _varint(data, place, end)
                length = number if form == _BYTES else 0
            elif form in _SIZES:
                length = _SIZES[form]
            else:
                raise DecodeError(f"field {tag >> 3} has wire type {form}")
            after = place + length
            if after > end:
                raise DecodeError(f"field {tag >> 3} is cut off")
            field = fields.get(tag >> 3, _UNKNOWN)
            if field.counts or form not in field.forms:
                count += 1
                if count > most:
                    raise DecodeError(f"it has {len(data):,} bytes and more than {most:,} messages")
            if length and form == _BYTES and field.kind is not None:
                parts += [_Part(after, end, kind), _Part(place, after, field.kind)]
                break
            place = after


@lru_cache(256)
def _fields(kind: Descriptor) -> Mapping[int, _Field]:
    """The fields of a message, by number."""
    found = {}
    for field in kind.fields:
        is_text, is_message = field.type in _TEXTS, field.message_type is not None
        form = _BYTES if is_text or is_message else _NUMBERS.get(field.type, _VARINT)
        forms = {form, _BYTES} if field.is_repeated else {form}  # repeated numbers are packed
        counts = is_message or (is_text and field.is_repeated)
        found[field.number] = _Field(frozenset(forms), counts, field.message_type)
    return found


def _varint(data: bytes, place: int, end: int) -> tuple[int, int]:
    """A number, and the place behind it. Raises `DecodeError`."""
    value = shift = 0
    while place < end:
        byte = data[place]
        place += 1
        if byte < 0x80:
            return value | byte << shift, place
        value |= (byte & 0x7F) << shift
        shift += 7
        if shift > 63:
            break
    raise DecodeError("a number is cut off, or too long")
