"""Rules for object ids and for locations of tables."""

from __future__ import annotations

import re
import unicodedata

from lance_namespace.errors import InvalidInputError

from lance_core.format.naming import new_table_location, readable_location_part
from namespace_server.directory.model.errors import shown
from namespace_server.directory.model.object_ids import DELIMITER, ObjectId, join
from namespace_server.directory.model.root_layout import RESERVED

_MAX_NAME_BYTES = 255
_SEPARATORS = frozenset(f"{DELIMITER}/\\")
_CONTROLS = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Unicode categories that no name may have: control characters, surrogates, line and paragraph separators."""
_MARKS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Marks of text direction: a name with one of them reads as another name."""
_UNSEEN = frozenset({"Cf", "Cn", "Zs"})
"""Unicode categories that no new name may have: format characters, what is not assigned, other spaces than ' '."""
_IGNORABLE = (
    range(0x034F, 0x0350),  # combining grapheme joiner
    range(0x115F, 0x1161),  # fillers of Hangul
    range(0x17B4, 0x17B6),  # inherent vowels of Khmer
    range(0x180B, 0x1810),  # variation selectors of Mongolian
    range(0x2800, 0x2801),  # the blank of Braille
    range(0x3164, 0x3165),
    range(0xFE00, 0xFE10),  # variation selectors
    range(0xFFA0, 0xFFA1),
    range(0xE0000, 0xE1000),  # tags, and more variation selectors
)
"""Characters that are default ignorable, or blank, and of no category that says so."""
_JOINERS = frozenset("\u200c\u200d")
"""They change how the characters beside them look, in some scripts and in emoji."""
_VIRAMA = 9
"""The combining class of signs that joiners act on in the scripts of India."""
_HASHED = re.compile(r"[0-9a-f]{8}_(.+)", re.DOTALL)


def check_name(name: str, what: str) -> None:
    """Raise InvalidInputError (13) unless `name` may be one component of an id.

    Non-empty, at most 255 bytes of UTF-8, not '.' or '..'; no '$', '/' or backslash, no control characters, line or
    paragraph separators, no marks of text direction. Tables that others named so stay readable.
    """
    if not name:
        raise InvalidInputError(f"{what}: a name must not be empty")
    if len(name) > _MAX_NAME_BYTES:  # before its characters are looked at
        raise InvalidInputError(f"{what} {name[:40]!r}…: a name has at most {_MAX_NAME_BYTES} bytes")
    if name in {".", ".."}:
        raise InvalidInputError(f"{what}: {name!r} is not a name")
    plain = name.isascii() and name.isprintable() and _SEPARATORS.isdisjoint(name)
    if not plain and (bad := next(filter(_is_refused, name), None)):
        raise InvalidInputError(f"{what} {shown(name)}: the character {bad!a} is not allowed in a name")
    if len(name.encode()) > _MAX_NAME_BYTES:
        raise InvalidInputError(f"{what} {name[:40]!r}…: a name has at most {_MAX_NAME_BYTES} bytes")


def _is_refused(char: str) -> bool:
    return char in _SEPARATORS or char in _MARKS or unicodedata.category(char) in _CONTROLS


def check_id(object_id: ObjectId, what: str) -> None:
    """Raise InvalidInputError (13) unless every component may be a name, also one that an earlier release allowed."""
    for name in object_id:
        check_name(name, what)


def check_new_id(object_id: ObjectId, what: str, *, implicit_namespaces: bool = False) -> None:
    """Raise InvalidInputError (13) unless every component may be a name, and the new ones may be new names.

    That is the last one, and with `implicit_namespaces` each: see `check_new_name`.
    """
    check_id(object_id, what)
    for name in object_id if implicit_namespaces else object_id[-1:]:
        check_new_name(name, what)


def check_new_name(name: str, what: str) -> None:
    """Raise InvalidInputError (13) if a name looks like another one, or like none.

    It has no space at its ends, none but the ASCII space inside, no character without a shape of its own (Unicode:
    default ignorable, or of format) but a joiner where it acts, and is in normal form NFC. Names that look alike in
    letters of two scripts are allowed. `name` may be a name: see `check_name`.
    """
    if name != name.strip():
        raise InvalidInputError(f"{what} {shown(name)}: a new name must not begin or end with a space")
    if name.isascii():
        return
    if bad := next((char for place, char in enumerate(name) if _is_unseen(char) and not _joins(name, place)), None):
        raise InvalidInputError(f"{what} {shown(name)}: the character {bad!a} cannot be seen in a new name")
    if not unicodedata.is_normalized("NFC", name):
        raise InvalidInputError(f"{what} {shown(name)}: expected a new name in the Unicode normal form NFC")


def _is_unseen(char: str) -> bool:
    if char == " ":
        return False
    code = ord(char)
    return unicodedata.category(char) in _UNSEEN or any(code in codes for codes in _IGNORABLE)


def _joins(name: str, place: int) -> bool:
    """Whether a character is seen by what it does: a joiner in emoji, behind an Arabic letter or a virama."""
    if not 0 < place < len(name) - 1 or name[place] not in _JOINERS:
        return False
    before, after = name[place - 1], name[place + 1]
    acts = (
        unicodedata.category(before) in {"So", "Sk"}
        or unicodedata.bidirectional(before) == "AL"
        or unicodedata.combining(before) == _VIRAMA
    )
    return acts and not after.isascii() and not _is_unseen(after)


def check_branch(branch: str) -> None:
    """Raise InvalidInputError (13) unless `branch` may be a branch: names joined by '/', without '$' (N4)."""
    for part in branch.split("/"):
        check_name(part, f"branch {shown(branch)}")


def new_location(object_id: ObjectId) -> str:
    """A location that no table ever had (N1)."""
    return new_table_location(join(object_id))


def check_location(location: str, object_id: ObjectId) -> None:
    """Raise InvalidInputError (13) unless a client may choose `location` for a table with this id (N1)."""
    match = _HASHED.fullmatch(location)
    readable = readable_location_part(join(object_id))
    if match is None or match[1] != readable:
        expected = f"<8 hex digits>_{readable}"
        raise InvalidInputError(f"table {join(object_id)}: location {shown(location)} must have the form {expected}")


def is_managed_location(name: str) -> bool:
    """Whether a directory at the root has the form of those that the catalog makes for tables (N1)."""
    return _HASHED.fullmatch(name) is not None


def check_registered_location(location: str) -> None:
    """Raise InvalidInputError (13) unless `location` is a path relative to the root that stays inside it."""
    place = f"location {shown(location)}"
    expected = "expected a path relative to the catalog's root"
    if "://" in location:
        raise InvalidInputError(f"Absolute URIs are not allowed: {place}: {expected}")
    if location.startswith("/"):
        raise InvalidInputError(f"Absolute paths are not allowed: {place}: {expected}")
    parts = location.split("/")
    if ".." in parts:
        raise InvalidInputError(f"Path traversal is not allowed: {place}: {expected}")
    if any(part in {"", "."} or "\\" in part or not part.isprintable() for part in parts):
        raise InvalidInputError(f"{place}: {expected}, found an empty component, '.' or a character of no path")
    if parts[0] in RESERVED:
        raise InvalidInputError(f"{place} belongs to the catalog itself, or to the file system")
