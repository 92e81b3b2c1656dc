"""Damaged copies of files of real writers, reproducible by seed."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable, Iterator
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

NUMBERS = (
    0,
    1,
    2,
    7,
    127,
    128,
    255,
    2**16,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**32,
    2**40,
    2**62,
    2**63 - 1,
    2**63,
    2**64 - 1,
)
TEXTS = (
    "",
    "main",
    "../..",
    "/",
    "a\x00b",
    "\u00b2",
    "x" * 5000,
    "\U0010ffff",
    "0-.txn",
    "1-../x.txn",
    "18446744073709551616",
)
BYTES = (b"", b"\x00", b"\xff\xfe", b"\x80" * 16, b"\x0a" * 300, bytes(range(256)))

Case = tuple[str, bytes]
"""What was done, and the bytes."""


def truncations(data: bytes, most: int = 1200) -> Iterator[Case]:
    """Every shorter length of a small file, evenly chosen ones of a large file."""
    step = max(1, len(data) // most)
    for length in range(0, len(data), step):
        yield f"the first {length} bytes", data[:length]
        if length and step == 1 and length % 4 == 0:
            yield f"the last {length} bytes", data[-length:]


def bit_flips(data: bytes, count: int, rng: random.Random) -> Iterator[Case]:
    """One to three bits each; half of the cases in the first and last 64 bytes, where frames are."""
    for _ in range(count):
        damaged = bytearray(data)
        places = []
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            edge = min(64, len(damaged))
            where = rng.choice(
                (rng.randrange(edge), len(damaged) - 1 - rng.randrange(edge), rng.randrange(len(damaged)))
            )
            damaged[where] ^= 1 << rng.randrange(8)
            places.append(where)
        yield f"bits of bytes {places} flipped", bytes(damaged)


def overwrites(data: bytes, count: int, rng: random.Random) -> Iterator[Case]:
    """A boundary number of 2, 4 or 8 bytes somewhere: lengths, counts and offsets that lie."""
    for _ in range(count):
        number = rng.choice(NUMBERS)
        encoded = struct.pack("<Q", number)[: rng.choice((2, 4, 8))]
        where = rng.randrange(max(1, len(data) - len(encoded)))
        yield f"{encoded.hex()} at byte {where}", data[:where] + encoded + data[where + len(encoded) :]


def splices(data: bytes, count: int, rng: random.Random) -> Iterator[Case]:
    """Parts left out, doubled, exchanged, and garbage put in."""
    for _ in range(count):
        start, stop = sorted((rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)))
        part = data[start:stop]
        inserted = rng.choice((b"", part * 2, part[::-1], rng.randbytes(len(part) % 64), b"\xff" * 10))
        yield f"bytes {start} to {stop} became {inserted[:8].hex()}...", data[:start] + inserted + data[stop:]


# Messages


def messages(message: Message, count: int, rng: random.Random) -> Iterator[tuple[str, Message]]:
    """Copies in which one to three fields, anywhere in the tree, hold what no honest writer puts there."""
    for _ in range(count):
        damaged = type(message)()
        damaged.CopyFrom(message)
        done = [_damage(damaged, rng) for _ in range(rng.choice((1, 1, 2, 3)))]
        yield ", ".join(done), damaged


def _damage(message: Message, rng: random.Random) -> str:
    """Change a field of a message that is chosen by a walk from the top."""
    while True:
        field = rng.choice(
            [field for field in message.DESCRIPTOR.fields if _is_set(message, field)] or message.DESCRIPTOR.fields
        )
        below = _submessages(message, field)
        if below and rng.random() < 0.75:
            message = rng.choice(below)
            continue
        if rng.random() < 0.2:
            field = rng.choice(message.DESCRIPTOR.fields)
        _CHANGES[rng.randrange(len(_CHANGES))](message, field, rng)
        return f"{message.DESCRIPTOR.name}.{field.name}"


def _is_set(message: Message, field: FieldDescriptor) -> bool:
    return (
        bool(getattr(message, field.name))
        if field.is_repeated
        else (message.HasField(field.name) if field.has_presence else bool(getattr(message, field.name)))
    )


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _submessages(message: Message, field: FieldDescriptor) -> list[Message]:
    if field.message_type is None or not _is_set(message, field):
        return []
    value = getattr(message, field.name)
    if _is_map(field):
        return [entry for entry in value.values() if isinstance(entry, Message)]
    return list(value) if field.is_repeated else [value]


def _replace(message: Message, field: FieldDescriptor, rng: random.Random) -> None:
    """Another value, of the same type."""
    if _is_map(field):
        key = field.message_type.fields_by_name["key"]
        value = field.message_type.fields_by_name["value"]
        if value.message_type is None:
            getattr(message, field.name)[_value(key, rng)] = _value(value, rng)
        else:
            getattr(message, field.name)[_value(key, rng)].SetInParent()
    elif field.message_type is not None:
        if not field.is_repeated:
            getattr(message, field.name).SetInParent()
        else:
            getattr(message, field.name).add()
    elif field.is_repeated:
        getattr(message, field.name).extend([_value(field, rng)] * rng.choice((1, 2, 100)))
    else:
        setattr(message, field.name, _value(field, rng))


def _remove(message: Message, field: FieldDescriptor, rng: random.Random) -> None:
    value = getattr(message, field.name)
    if field.is_repeated and not _is_map(field) and value:
        del value[rng.randrange(len(value))]
    else:
        message.ClearField(field.name)


def _double(message: Message, field: FieldDescriptor, rng: random.Random) -> None:
    """An entry of a list twice, or the list turned round."""
    value = getattr(message, field.name)
    if not field.is_repeated or _is_map(field) or not value:
        _replace(message, field, rng)
        return
    entries = [*value, rng.choice(value)] if rng.random() < 0.7 else list(value)[::-1]
    copies = [type(entry).FromString(entry.SerializeToString()) for entry in entries] if field.message_type else entries
    del value[:]
    value.extend(copies)


_CHANGES: tuple[Callable[[Message, FieldDescriptor, random.Random], None], ...] = (_replace, _replace, _remove, _double)


def _value(field: FieldDescriptor, rng: random.Random) -> Any:
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_BOOL:
            return rng.random() < 0.5
        case FieldDescriptor.CPPTYPE_STRING:
            return rng.choice(BYTES if field.type == FieldDescriptor.TYPE_BYTES else TEXTS)
        case FieldDescriptor.CPPTYPE_DOUBLE | FieldDescriptor.CPPTYPE_FLOAT:
            return rng.choice((0.0, -1.0, float("inf"), float("nan")))
        case FieldDescriptor.CPPTYPE_INT32 | FieldDescriptor.CPPTYPE_ENUM:
            return rng.choice((0, 1, -1, -2, 5, 100, 2**31 - 1, -(2**31)))
        case FieldDescriptor.CPPTYPE_INT64:
            return rng.choice((0, 1, -1, 2**31, 2**63 - 1, -(2**63)))
        case FieldDescriptor.CPPTYPE_UINT32:
            return rng.choice([number for number in NUMBERS if number < 2**32])
    return rng.choice(NUMBERS)


# Frames of a manifest file


def sections(*parts: bytes, footer: bytes | None = None, begin: int | None = None) -> bytes:
    """Length-prefixed sections, the last of them the manifest, and a footer that says where it begins."""
    framed = [struct.pack("<I", len(part)) + part for part in parts]
    position = sum(map(len, framed[:-1])) if begin is None else begin
    return b"".join(framed) + (struct.pack("<qHH4s", position, 0, 2, b"LANC") if footer is None else footer)


# JSON

_JSON_VALUES: tuple[Any, ...] = (
    None, True, 0, 1, -1, 1.0, 1e300, 2**31, 2**63, 2**64 - 1, 2**64, 10**30, "", "5", "main", "../x", "a\x00b",
    "x" * 3000,
    [], [[]], {}, {"a": 1}, {"": ""}, [1, "a"], [[1, "a"]], [[-1, "a"]], [[True, "a"]], [[1, 2]],
    {"version_mapping": [[1]]},
    {"version_mapping": [[2**64, "f" * 32]]}, {"version_mapping": {}}, {"version_mapping": [[1, "f" * 32]] * 50},
)  # fmt: skip
_JSON_TEXTS = (
    b"", b"null", b"[]", b"{}", b"0", b'"tag"', b"NaN", b"{", b"[" * 50_000, b'{"a":' * 50_000, b"\xff\xfe{\x00}\x00",
    b"\xef\xbb\xbf{}", b'{"version":' + b"9" * 5000 + b"}", b'{"branch": "\\ud800", "version": 1, "manifestSize": 1}',
    b'{"version": 1, "version": 2, "manifestSize": 1}', b'{"version": Infinity, "manifestSize": 1}', b"{} {}",
    b'{"version": 1, "manifestSize": 1}\x00', b'{"version": 1e0, "manifestSize": 1}',
    b'{"version": -0, "manifestSize": 1}',
)  # fmt: skip


def json_objects(data: bytes, count: int, rng: random.Random) -> Iterator[Case]:
    """Members with values of other types and sizes, left out, twice, nested; and texts that are no object."""
    contents = json.loads(data)
    for text in _JSON_TEXTS:
        yield f"the text {text[:60]!r}", text
    for _ in range(count):
        damaged = dict(contents)
        key = rng.choice(sorted(damaged))
        change = rng.randrange(4)
        if change == 0:
            del damaged[key]
        elif change == 1:
            damaged[rng.choice(("metadata", "identifier", "branch", "parentBranch", key))] = rng.choice(_JSON_VALUES)
        else:
            damaged[key] = rng.choice(_JSON_VALUES)
        text = json.dumps(damaged)
        if change == 3:
            other = rng.choice(sorted(damaged))
            text = f'{text[:-1]}{", " if len(text) > 2 else ""}"{other}": {json.dumps(rng.choice(_JSON_VALUES))}}}'
        yield f"member {key}: {text[:120]}", text.encode()
