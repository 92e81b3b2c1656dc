"""Types of columns as texts: `zip string, price decimal(10, 2), seen timestamp[us, tz=UTC], place float[2]`.

The names are those of Arrow, as `show` prints them.
"""

from __future__ import annotations

import re
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from table_data.errors import InvalidCall
from table_data.requests.arrow_types import arrow_type
from table_data.values.misfits import TypeRefused

_TOKEN: Final = re.compile(r"\s*(`[^`]+`|\"[^\"]+\"|[\w./+-]+|[<>()\[\],:=])")
_MARKS: Final = frozenset("<>()[],:=")
_ALIASES: Final = {
    "int": "int64",
    "integer": "int64",
    "bigint": "int64",
    "text": "string",
    "str": "string",
    "varchar": "string",
    "boolean": "bool",
    "date": "date32",
    "bytes": "binary",
}


def schema_of(text: str) -> pa.Schema:
    """The columns of `name type, …`. Raises `TypeRefused`."""
    reader = _TypeReader(text)
    fields = []
    while True:
        name = reader.name()
        fields.append(pa.field(name, reader.type()))
        if not reader.takes(","):
            break
    reader.expect_end()
    names = [field.name for field in fields]
    if twice := [name for place, name in enumerate(names) if name in names[:place]]:
        raise TypeRefused(f"expected different names of columns, found {twice[0]!r} twice")
    return pa.schema(fields)


def type_of(text: str) -> pa.DataType:
    """The type that a text names. Raises `TypeRefused`."""
    reader = _TypeReader(text)
    found = reader.type()
    reader.expect_end()
    return found


class _TypeReader:
    """Takes names and types from the begin of a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _TOKEN.findall(text)
        if _TOKEN.sub("", text).strip():
            raise TypeRefused(f"expected `name type, …`, found {text[:60]!r}")
        self._place = 0

    def name(self) -> str:
        token = self._next("the name of a column")
        if token in _MARKS:
            raise TypeRefused(f"expected the name of a column in {self._text[:60]!r}, found {token!r}")
        return token[1:-1] if token[0] in '`"' else token

    def takes(self, mark: str) -> bool:
        is_there = self._place < len(self._tokens) and self._tokens[self._place] == mark
        self._place += is_there
        return is_there

    def expect_end(self) -> None:
        if self._place < len(self._tokens):
            raise TypeRefused(f"expected `,` in {self._text[:60]!r}, found {self._tokens[self._place]!r}")

    def type(self) -> pa.DataType:
        name = self._next("a type").lower()
        if name in {"date32", "date64"} and self.takes("["):
            self.name()
            self._expect("]")
        found = self._plain(name)
        while self.takes("["):
            if self.takes("]"):
                found = pa.list_(found)
                continue
            found = pa.list_(found, self._number())
            self._expect("]")
        return found

    def _plain(self, name: str) -> pa.DataType:
        if name in {"decimal", "decimal128", "decimal256"}:
            return self._decimal(name)
        if name in {"timestamp", "time32", "time64", "duration"} and self.takes("["):
            return self._with_unit(name)
        if name in {"list", "large_list", "fixed_size_list"}:
            return self._list(name)
        if name == "struct":
            return self._struct()
        if name == "map":
            return self._map()
        if name == "fixed_size_binary":
            self._expect("[")
            width = self._number()
            self._expect("]")
            return pa.binary(width)
        if name == "dictionary":
            return self._dictionary()
        try:
            return arrow_type(_ALIASES.get(name, name), "schema")
        except InvalidCall:
            raise TypeRefused(f"expected a type of Arrow in {self._text[:60]!r}, found {name!r}") from None

    def _decimal(self, name: str) -> pa.DataType:
        self._expect("(")
        digits = self._number()
        scale = self._number() if self.takes(",") else 0
        self._expect(")")
        try:
            return (pa.decimal256 if name == "decimal256" or digits > 38 else pa.decimal128)(digits, scale)
        except ValueError as error:
            raise TypeRefused(f"{name}({digits}, {scale}): {error}") from None

    def _struct(self) -> pa.DataType:
        self._expect("<")
        fields = [self._field()]
        while self.takes(","):
            fields.append(self._field())
        self._expect(">")
        return pa.struct(fields)

    def _map(self) -> pa.DataType:
        self._expect("<")
        key = self.type()
        self._expect(",")
        item = self.type()
        self._expect(">")
        return pa.map_(key, item)

    def _with_unit(self, name: str) -> pa.DataType:
        unit = self.name()
        zone = None
        if self.takes(","):
            if self._tokens[self._place : self._place + 2] == ["tz", "="]:
                self._place += 2
            zone = self.name()
        self._expect("]")
        try:
            if name == "timestamp":
                kind = pa.timestamp(unit, zone)
                pc.year(pa.array([0], kind))  # which knows the zones
                return kind
            return {"time32": pa.time32, "time64": pa.time64, "duration": pa.duration}[name](unit)
        except pa.ArrowInvalid:
            raise TypeRefused(f"expected a time zone in {self._text[:60]!r}, found {zone!r}") from None
        except (ValueError, TypeError):
            raise TypeRefused(f"expected a unit of {name} in {self._text[:60]!r}, found {unit!r}") from None

    def _list(self, name: str) -> pa.DataType:
        self._expect("<")
        if self._tokens[self._place + 1 : self._place + 2] == [":"]:
            item = self._field()
        else:
            item = pa.field("item", self.type())
        self._expect(">")
        if name == "large_list":
            return pa.large_list(item)
        if not self.takes("["):
            return pa.list_(item)
        size = self._number()
        self._expect("]")
        return pa.list_(item, size)

    def _field(self) -> pa.Field:
        name = self.name()
        self._expect(":")
        kind = self.type()
        nullable = True
        if self._tokens[self._place : self._place + 2] == ["not", "null"]:
            self._place += 2
            nullable = False
        return pa.field(name, kind, nullable)

    def _dictionary(self) -> pa.DataType:
        self._expect("<")
        parts: dict[str, Any] = {}
        while True:
            name = self.name()
            self._expect("=")
            if name not in {"values", "indices", "ordered"} or name in parts:
                raise TypeRefused(f"expected values, indices and ordered in {self._text[:60]!r}, found {name!r}")
            parts[name] = self._number() if name == "ordered" else self.type()
            if not self.takes(","):
                break
        self._expect(">")
        try:
            return pa.dictionary(
                parts.get("indices", pa.int32()), parts.get("values", pa.string()), bool(parts.get("ordered", 0))
            )
        except (TypeError, pa.ArrowException) as error:
            raise TypeRefused(f"expected a dictionary in {self._text[:60]!r}: {error}") from None

    def _number(self) -> int:
        token = self._next("a number")
        if not (token.isascii() and token.isdigit()) or int(token) >= 1 << 31:
            raise TypeRefused(f"expected a number in {self._text[:60]!r}, found {token!r}")
        return int(token)

    def _expect(self, mark: str) -> None:
        if not self.takes(mark):
            found = self._tokens[self._place] if self._place < len(self._tokens) else "the end"
            raise TypeRefused(f"expected {mark!r} in {self._text[:60]!r}, found {found!r}")

    def _next(self, what: str) -> str:
        if self._place >= len(self._tokens):
            raise TypeRefused(f"expected {what} in {self._text[:60]!r}, found the end")
        self._place += 1
        return str(self._tokens[self._place - 1])
