"""The values of a request's headers and path."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from functools import lru_cache
from itertools import chain
from typing import Final
from urllib.parse import parse_qsl, unquote_to_bytes

from lance_namespace.errors import InvalidInputError

from namespace_server.directory.model.limits import MAX_INT64, check_idempotency_key
from namespace_server.rest.header_names import CATALOG_VERSION, IDEMPOTENCY_KEY, LEAST_VERSION

Headers = Mapping[bytes, bytes]

DELIMITER = "$"
SHORT_QUERY: Final = 256
"""Bytes of the longest query string whose parsed form is cached."""
_MAX_PARAMETERS = 64
_NO_WEIGHT: Final = re.compile(rb"q\s*=\s*0(\.0{0,3})?")


def declared_length(headers: Headers) -> int | None:
    """The length of the body in bytes; None if it is not stated. The HTTP server has parsed the number."""
    value = headers.get(b"content-length")
    if value is None or b"transfer-encoding" in headers:
        return None
    return int(value.lstrip(b"0") or b"0")  # leading zeros may make it longer than int() accepts


def has_no_body(headers: Headers, declared: int | None) -> bool:
    """Whether a request whose declared length is known has no body."""
    return declared == 0 or (declared is None and b"transfer-encoding" not in headers)


def read_version(value: bytes, what: str, kind: str = "a catalog version") -> int:
    """A version in decimal digits. Raises `InvalidInputError` naming `what`."""
    if value.isdigit() and len(value) <= 19 and int(value) <= MAX_INT64:
        return int(value)
    raise InvalidInputError(f"{what}: expected {kind}, found {value.decode('latin-1')[:80]!r}")


def read_as_of(headers: Headers) -> int | None:
    """The catalog version that a request is to be answered at, if it names one. Raises `InvalidInputError`."""
    value = headers.get(CATALOG_VERSION)
    return None if value is None else read_version(value, CATALOG_VERSION.decode())


def accepts(headers: Headers, media_type: bytes) -> bool:
    """Whether a request names a media type among those that it accepts. With a weight of 0 it refuses it."""
    for accepted in headers.get(b"accept", b"").lower().split(b","):
        named, *parameters = (part.strip() for part in accepted.split(b";"))
        if named == media_type:
            return not any(_NO_WEIGHT.fullmatch(parameter) for parameter in parameters)
    return False


def read_least_version(headers: Headers) -> int | None:
    """The table version that a read must not be older than, if it names one. Raises `InvalidInputError`."""
    value = headers.get(LEAST_VERSION)
    return None if value is None else read_version(value, LEAST_VERSION.decode(), "a table version")


def read_idempotency_key(headers: Headers) -> str | None:
    """The idempotency key, if there is one: 1 to 255 printable ASCII characters. Raises `InvalidInputError`."""
    value = headers.get(IDEMPOTENCY_KEY)
    if value is None:
        return None
    key = value.decode("latin-1")
    try:
        check_idempotency_key(key)
    except InvalidInputError as error:
        raise InvalidInputError(f"Idempotency-Key: {error}") from None
    return key


def read_query(query_string: bytes, repeated: Container[str] = ()) -> dict[str, str]:
    """The query parameters; of those in `repeated` the last value.

    Raises `InvalidInputError`, also for two values of another one: all but one would be ignored.
    """
    if not query_string:
        return {}
    parse_field = _parse_short_field if len(query_string) <= SHORT_QUERY else _parse_field
    try:
        fields = query_string.decode("ascii").split("&")
        if len(fields) > _MAX_PARAMETERS:
            raise ValueError(f"at most {_MAX_PARAMETERS} parameters")
        pairs = list(chain.from_iterable(map(parse_field, fields)))
    except ValueError as error:
        raise InvalidInputError(f"query: expected percent-encoded UTF-8 ({error})") from None
    query = dict(pairs)
    if len(query) != len(pairs):
        for name, value in pairs:
            if query[name] != value and name not in repeated:
                found = f"{value[:80]!r} and {query[name][:80]!r}"
                raise InvalidInputError(f"{name[:80]}: expected one value, found {found}")
    return query


def _parse_field(field: str) -> list[tuple[str, str]]:
    """The name and the value of `name=value`; nothing for an empty field."""
    return parse_qsl(field, keep_blank_values=True, errors="strict")


_parse_short_field = lru_cache(512)(_parse_field)
"""Most parameters of a list have the same value as before: only the page token is another one."""


def read_name(segment: str) -> str:
    """The name in a path segment as it was sent. Raises `InvalidInputError`."""
    try:
        return unquote_to_bytes(segment).decode()
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"path: expected percent-encoded UTF-8 ({error})") from None


def read_repeated(query_string: bytes, name: str) -> list[str]:
    """All values of a query parameter, in order. `read_query` must have accepted the query string."""
    return [value for key, value in parse_qsl(query_string.decode("ascii"), keep_blank_values=True) if key == name]


def read_id(segment: str, query: Mapping[str, str]) -> list[str]:
    """The names in a path segment as it was sent.

    Empty names are dropped; the delimiter alone is the root. Raises `InvalidInputError`.
    """
    delimiter = query.get("delimiter", DELIMITER)
    if not delimiter:
        raise InvalidInputError("delimiter: expected at least one character, found none")
    text = read_name(segment)
    return [] if text == delimiter else [name for name in text.split(delimiter) if name]
