"""Bounds on what one request may put into the catalog: sizes, the range of integers, idempotency keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeGuard

from lance_namespace.errors import InvalidInputError

MIN_INT64: Final = -(2**63)
MAX_INT64: Final = 2**63 - 1
"""The range of the integers that requests, versions and timestamps may have: 64 bits, signed."""
_MAX_KEY: Final = 255


@dataclass(frozen=True, slots=True)
class Limits:
    """`operations` bounds a batch, `page_size` the entries in one page of a list.

    The others bound one object of strings: properties, metadata of a version, context.
    `property_bytes` and `total_property_bytes` count UTF-8 bytes: of a key or value, and of all keys and values.
    """

    operations: int = 10_000
    page_size: int = 100_000
    properties: int = 1_000
    property_key_bytes: int = 1_024
    property_bytes: int = 64 << 10
    total_property_bytes: int = 1 << 20

    def check_operations(self, count: int, field: str) -> None:
        """Raise InvalidInputError (13) for more operations than a batch may have."""
        if count > self.operations:
            raise InvalidInputError(f"{field}: expected at most {self.operations} operations, found {count}")

    def check_strings(self, values: Mapping[str, str], field: str) -> None:
        """Raise InvalidInputError (13) unless the keys and values of an object fit, and are valid Unicode."""
        if len(values) > self.properties:
            raise InvalidInputError(f"{field}: expected at most {self.properties} keys, found {len(values)}")
        total = 0
        for key, value in values.items():
            key_bytes, value_bytes = utf8_length(key, field), utf8_length(value, field)
            if key_bytes > self.property_key_bytes:
                raise InvalidInputError(
                    f"{field}: expected keys of at most {self.property_key_bytes} bytes, found {key_bytes}"
                )
            if value_bytes > self.property_bytes:
                raise InvalidInputError(
                    f"{field}: expected values of at most {self.property_bytes} bytes, found {value_bytes} in {key!r}"
                )
            total += key_bytes + value_bytes
        if total > self.total_property_bytes:
            raise InvalidInputError(
                f"{field}: expected at most {self.total_property_bytes} bytes of keys and values, found {total}"
            )


def utf8_length(text: str, field: str) -> int:
    """The number of bytes of a string. Raises InvalidInputError (13) for one with lone surrogates."""
    if text.isascii():
        return len(text)
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"{field}: expected valid Unicode, found a lone surrogate") from error


def is_int64(value: object) -> TypeGuard[int]:
    """Whether a value from JSON is an integer of at most 64 bits; booleans are none."""
    return isinstance(value, int) and not isinstance(value, bool) and MIN_INT64 <= value <= MAX_INT64


def check_idempotency_key(key: str) -> None:
    """Raise InvalidInputError (13) unless `key` is 1 to 255 printable ASCII characters (rule A1)."""
    if not 0 < len(key) <= _MAX_KEY:
        raise InvalidInputError(
            f"idempotency key: expected 1 to {_MAX_KEY} printable ASCII characters, found {len(key)}"
        )
    if not (key.isascii() and key.isprintable()):
        other = next(char for char in key if not (char.isascii() and char.isprintable()))
        raise InvalidInputError(f"idempotency key: expected printable ASCII characters, found {other!a}")
