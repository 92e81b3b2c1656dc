"""Decodes Protobuf messages that clients wrote, within a bound on how many messages they hold.

An empty message takes two bytes where it is stored, and some hundred in memory: without a bound, a request or a file of
some MiB takes some GiB to decode. What writers make has far more bytes for each message, so the number of messages is
bounded by the number of bytes. They are counted before they are decoded.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple, TypeVar, cast

from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

M = TypeVar("M", bound=Message)

FREE_MESSAGES: Final = 1 << 16
"""Messages that a file may hold whatever its length. They take about 20 MiB of memory."""
BYTES_EACH: Final = 16
"""Bytes for each message that longer ones have at least, on the average. Those of a fragment have 30."""
_SMALLEST: Final = 2


def decode_message(kind: type[M], data: bytes, free: int = FREE_MESSAGES) -> M:
    """The message that `data` is. Raises `DecodeError` if it is none, or holds too many messages for its length.

    That is more than `free` and one for each `BYTES_EACH` bytes. Bytes too few to hold so many are not counted.
    """
    most = free + len(data) // BYTES_EACH
    if len(data) > _SMALLEST * most:
        _check_messages(data, cast("Descriptor", kind.DESCRIPTOR), most)
    return kind.FromString(data)


class _Shape(NamedTuple):
    """Another reading of messages of one kind, one after the other: of each of these fields a list of the bytes.

    The kind of a field is None where it has no messages in it.
    """

    form: type[Message]
    fields: tuple[tuple[str, Descriptor | None], ...]


def _check_messages(data: bytes, kind: Descriptor, most: int) -> None:
    """Count messages, and repeated texts, which take memory of their own, too.

    Messages of one kind are read together, so that the time goes by bytes and not by messages.
    """
    count = 0
    levels = [(data, kind)]
    while levels:
        joined, level = levels.pop()
        shape = _shape(level)
        found = shape.form.FromString(joined)
        for name, inner in shape.fields:
            values = getattr(found, name)
            count += len(values)
            if count > most:
                raise DecodeError(f"it has {len(data):,} bytes and more than {most:,} messages")
            if values and inner is not None:
                levels.append((b"".join(values), inner))


@lru_cache(256)
def _shape(kind: Descriptor) -> _Shape:
    file = FileDescriptorProto(name=f"{kind.full_name}.shape", syntax="proto3")
    message = file.message_type.add(name="Shape")
    fields: list[tuple[str, Descriptor | None]] = []
    for field in kind.fields:
        is_text = field.type in {field.TYPE_STRING, field.TYPE_BYTES}
        if field.message_type is None and not (is_text and field.is_repeated):
            continue
        inner = field.message_type if field.message_type is not None and _has_parts(field.message_type) else None
        fields.append((field.name, inner))
        message.field.add(
            name=field.name,
            number=field.number,
            type=FieldDescriptorProto.TYPE_BYTES,
            label=FieldDescriptorProto.LABEL_REPEATED,
        )
    pool = DescriptorPool()
    pool.Add(file)
    return _Shape(GetMessageClass(pool.FindMessageTypeByName("Shape")), tuple(fields))


def _has_parts(kind: Descriptor) -> bool:
    """Whether messages of a kind hold messages that are counted."""
    return any(field.message_type is not None or field.is_repeated for field in kind.fields)
