"""The answer of an operation, and JSON that is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Generic

import orjson
from typing_extensions import TypeVar  # that of `typing` has defaults from Python 3.13 on

_BUFFER: Final = 4096
Body_co = TypeVar("Body_co", covariant=True, default=Mapping[str, object])


@dataclass(slots=True)
class Answer(Generic[Body_co]):
    """A JSON value with the exact wire names, and the catalog version that it was answered at.

    It is an object, except for some reads of rows. `table_version` is the version of a table that a read of rows has
    read.
    """

    body: Body_co
    catalog_version: int
    table_version: int | None = None
    _json: bytes | None = field(default=None, init=False, repr=False, compare=False)

    def at(self, catalog_version: int) -> Answer[Body_co]:
        """The same answer at another catalog version."""
        other = Answer(self.body, catalog_version)
        other._json = self.json
        return other

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
