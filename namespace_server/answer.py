"""The answer of an operation, and JSON that is kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import orjson

_BUFFER: Final = 4096


@dataclass(slots=True)
class Answer:
    """A JSON value with the exact wire names, and the catalog version that it was answered at.

    `table_version` is the version of a table that a read of rows has read.
    """

    body: Any
    catalog_version: int
    table_version: int | None = None
    _json: bytes | None = field(default=None, init=False, repr=False, compare=False)

    def at(self, catalog_version: int) -> Answer:
        """The same answer at another catalog version."""
        other = Answer(self.body, catalog_version)
        other._json = self.json
        return other

    def only(self, *names: str) -> Answer:
        """The answer with these fields of it."""
        return Answer({name: self.body[name] for name in names if name in self.body}, self.catalog_version)

    @property
    def json(self) -> bytes:
        """The body as JSON; encoded once."""
        if self._json is None:
            self._json = json_bytes(self.body)
        return self._json


def json_bytes(value: object) -> bytes:
    """A value as compact JSON, in as much memory as it has bytes.

    orjson encodes into a buffer of some thousand bytes, which a short result keeps for as long as it lives.
    """
    encoded = orjson.dumps(value)
    return bytes(memoryview(encoded)) if len(encoded) < _BUFFER else encoded
