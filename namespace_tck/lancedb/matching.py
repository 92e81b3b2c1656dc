"""What an answer must be: patterns of JSON values, of rows and of texts, and how an answer differs from one. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import orjson
import pyarrow as pa

from namespace_tck.rows import decode

ANY: Final = ...
"""A value that is there, whatever it is."""
Kept = dict[str, str]
"""Texts of answers, by name, for later requests of the same line."""


class Pattern(Protocol):
    """A value that is described rather than given."""

    def mismatch(self, found: Any, place: str, kept: Kept) -> str | None:
        """How a value differs from what is described; None if it does not."""
        ...


@dataclass(frozen=True, slots=True)
class Where:
    """A value for which a condition holds. `expected` says which."""

    expected: str
    holds: Callable[[Any], bool]

    def mismatch(self, found: Any, place: str, _kept: Kept) -> str | None:
        """See `Pattern`."""
        try:
            is_right = self.holds(found)
        except (AttributeError, KeyError, LookupError, TypeError, ValueError):
            is_right = False
        return None if is_right else f"{place}: expected {self.expected}, found {_short(found)}"


def kind(*types: type) -> Where:
    """A value of one of these types, exactly."""
    names = " or ".join(each.__name__ for each in types)
    return Where(f"a value of type {names}", lambda found: type(found) in types)


def text(*parts: str) -> Where:
    """A text, or any other value whose JSON has these parts, in any case of its letters."""

    def holds(found: Any) -> bool:
        written = found if isinstance(found, str) else orjson.dumps(found).decode()
        return all(part.lower() in written.lower() for part in parts)

    return Where(f"a text with {', '.join(map(repr, parts))}", holds)


def either(*values: object) -> Where:
    """One of these values."""
    return Where(f"one of {values}", lambda found: found in values)


@dataclass(frozen=True, slots=True)
class Keep:
    """A text or number that later requests of the line use as `{name}`."""

    name: str

    def mismatch(self, found: Any, place: str, kept: Kept) -> str | None:
        """See `Pattern`."""
        if not isinstance(found, str | int) or isinstance(found, bool) or found == "":
            return f"{place}: expected a text or a number, found {_short(found)}"
        kept[self.name] = str(found)
        return None


@dataclass(frozen=True, slots=True)
class HasEntry:
    """A list of objects, one of which matches; the others do not count."""

    entry: Mapping[str, Any]

    def mismatch(self, found: Any, place: str, kept: Kept) -> str | None:
        """See `Pattern`."""
        if not isinstance(found, list):
            return f"{place}: expected a list, found {_short(found)}"
        told = [mismatch(each, self.entry, f"{place}[{number}]", kept) for number, each in enumerate(found)]
        if None in told:
            return None
        return f"{place}: expected an entry like {_short(dict(self.entry))}, found {_short(found)}"


NOTHING: Final = Where("null, or no such key", lambda found: found is None)
"""In an object: the key is absent, or null."""
JSON_OBJECT: Final = kind(dict)


@dataclass(frozen=True, slots=True)
class Rows:
    """An Arrow file or stream.

    Attributes:
        columns: The names of the columns, in order.
        values: Values of columns, in order of the rows.
        count: The number of rows.
        having: Names of columns that are there, beside others.
        ordered: Whether the order of the rows counts.
    """

    columns: Sequence[str] | None = None
    values: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    count: int | None = None
    having: Sequence[str] = ()
    ordered: bool = True

    def difference(self, content: bytes) -> str | None:
        """How a body differs from these rows."""
        try:
            found = decode(content)
        except (pa.ArrowInvalid, OSError) as error:
            return f"expected rows as an Arrow file or stream, found {error}"
        if self.columns is not None and found.column_names != list(self.columns):
            return f"columns: expected {list(self.columns)}, found {found.column_names}"
        missing = {*self.having, *self.values} - set(found.column_names)
        if missing:
            return f"columns: expected also {sorted(missing)}, found {found.column_names}"
        if self.count is not None and found.num_rows != self.count:
            return f"rows: expected {self.count}, found {found.num_rows}"
        for name, expected in self.values.items():
            values = found[name].to_pylist()
            wanted = list(expected)
            if not self.ordered:
                values, wanted = sorted(values, key=repr), sorted(wanted, key=repr)
            told = mismatch(values, wanted, name, {})
            if told is not None:
                return told
        return None


def mismatch(found: Any, expected: Any, place: str, kept: Kept) -> str | None:
    """How a JSON value differs from a pattern; None if it does not.

    A mapping is matched by an object that has more keys, too. A key that is absent is null to a condition. Numbers are
    compared within single precision.
    """
    if expected is ANY:
        return None
    if isinstance(expected, Where | Keep | HasEntry):
        return expected.mismatch(found, place, kept)
    if isinstance(expected, Mapping):
        if not isinstance(found, dict):
            return f"{place}: expected an object, found {_short(found)}"
        for name, wanted in expected.items():
            if name not in found and not isinstance(wanted, Where):
                return f"{place}: expected {name!r}, found {_short(found)}"
            told = mismatch(found.get(name), wanted, f"{place}.{name}", kept)
            if told is not None:
                return told
        return None
    if isinstance(expected, list):
        if not isinstance(found, list) or len(found) != len(expected):
            return f"{place}: expected {_short(expected)}, found {_short(found)}"
        told_each = (
            mismatch(f, e, f"{place}[{n}]", kept) for n, (f, e) in enumerate(zip(found, expected, strict=True))
        )
        return next((told for told in told_each if told is not None), None)
    if isinstance(expected, float) and isinstance(found, int | float) and not isinstance(found, bool):
        is_same = abs(found - expected) <= 1e-4 * max(1.0, abs(expected))
    else:
        is_same = type(found) is type(expected) and found == expected
    return None if is_same else f"{place}: expected {_short(expected)}, found {_short(found)}"


def difference(content: bytes, expected: Any, kept: Kept) -> str | None:
    """How the body of an answer differs from what is expected of it: rows, bytes, or JSON."""
    if expected is ANY:
        return None
    if isinstance(expected, Rows):
        return expected.difference(content)
    if isinstance(expected, bytes):
        return None if content == expected else f"expected {len(expected)} bytes, found {len(content)} others"
    try:
        found = orjson.loads(content)
    except orjson.JSONDecodeError:
        return f"expected JSON, found {_short(content)}"
    return mismatch(found, expected, "body", kept)


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 300 else f"{shown[:300]}..."
