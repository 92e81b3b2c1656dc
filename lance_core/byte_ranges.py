"""Ranges of bytes that a request asks for (RFC 9110, section 14), and the conditions on them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_UNIT: Final = b"bytes"
_RANGE: Final = re.compile(rb"([0-9]{0,40})-([0-9]{0,40})")
_TAG: Final = re.compile(rb'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"')


@dataclass(frozen=True, slots=True)
class ByteRange:
    """From `first` to `last`; without `last` to the end; without `first` the `last` bytes."""

    first: int | None
    last: int | None

    def within(self, size: int) -> tuple[int, int] | None:
        """The first and the last place of a value of so many bytes; None if no byte of it is in the range."""
        if self.first is None:
            length = min(self.last or 0, size)
            return (size - length, size - 1) if length else None
        if self.first >= size:
            return None
        return self.first, size - 1 if self.last is None else min(self.last, size - 1)


def read_range(value: bytes | None) -> ByteRange | None:
    """The range of a `Range` header; None without one, or for a unit that is not known, which is to be ignored.

    Raises `ValueError` for what is no range, and for several: each can be asked for by itself.
    """
    if value is None:
        return None
    unit, separator, ranges = value.partition(b"=")
    if separator and unit.strip().lower() != _UNIT:
        return None
    given = [each.strip() for each in ranges.split(b",")]
    if len(given) > 1:
        raise ValueError(f"Range: expected one range, found {len(given)}; ask for each by itself")
    found = _RANGE.fullmatch(given[0])
    if not separator or found is None or found[0] == b"-":
        raise _no_range(value)
    first, last = (int(part) if part else None for part in found.groups())
    if first is not None and last is not None and last < first:
        raise _no_range(value)
    return ByteRange(first, last)


def is_same(condition: bytes | None, tag: bytes | None) -> bool:
    """Whether an `If-Range` lets a range be answered: there is none, or it names the value as it is, by its strong tag.

    A time never does: no answer has one.
    """
    return condition is None or (tag is not None and condition.strip() == tag)


def is_known(condition: bytes | None, tag: bytes | None) -> bool:
    """Whether an `If-None-Match` names the value as it is, which the client then has. Tags are compared weakly."""
    if condition is None:
        return False
    if condition.strip() == b"*":
        return True
    return tag is not None and any(each.removeprefix(b"W/") == tag for each in _TAG.findall(condition))


def _no_range(value: bytes) -> ValueError:
    return ValueError(f"Range: expected bytes=first-last, found {value.decode('latin-1')[:80]!r}")
