"""Checks of the requests of operations on rows, once, where they come in."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TypeVar

from lance_namespace.errors import InvalidInputError
from pydantic import TypeAdapter, ValidationError

from lance_core.hidden_credentials import opens, without_credentials
from table_data.requests.table_requests import CHANGES, READS, ReadChanges, ReadRequest, TableRequest

R = TypeVar("R")
_EXPECTATIONS = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "dict_type": "an object",
    "extra_forbidden": "no such field",
    "int_from_float": "a number",
    "int_parsing": "a number",
    "int_parsing_size": "a number",
    "int_type": "a number",
    "list_type": "a list",
    "missing": "a value",
    "model_attributes_type": "an object",
    "model_type": "an object",
    "string_type": "a string",
}
_UP_TO_INT64 = f"less than or equal to {(1 << 63) - 1}"


@cache
def change_type(operation: str) -> TypeAdapter[TableRequest]:
    """The type of the requests of a change, which checks them."""
    return TypeAdapter(CHANGES[operation])


@cache
def read_type(operation: str) -> TypeAdapter[ReadRequest]:
    """The type of the requests of a read, which checks them."""
    return TypeAdapter(READS[operation])


@cache
def changes_type() -> TypeAdapter[ReadChanges]:
    """The type of the requests for changed rows, which checks them."""
    return TypeAdapter(ReadChanges)


def present(request: Mapping[str, object]) -> dict[str, object]:
    """The fields of a request that are given: null is absent."""
    return {field: value for field, value in request.items() if value is not None}


def checked(kind: TypeAdapter[R], request: Mapping[str, object]) -> R:
    """The request of this type; null is absent, and credentials are not looked at. Raises InvalidInputError (13)."""
    given = present(request)
    given.pop("identity", None)
    try:
        return kind.validate_python(given)
    except ValidationError as error:
        raise InvalidInputError(describe_validation_error(error)) from error


def _shown(place: tuple[str | int, ...], value: object) -> str:
    """A value that a client sent, in few characters and without credentials."""
    if place and opens(str(place[-1])):
        return "one"
    return repr(without_credentials(value, is_value=True) if isinstance(value, str) else value)[:80]


def describe_validation_error(error: ValidationError) -> str:
    """The first problem that pydantic found, as `field: expected …, found …`."""
    first = error.errors(include_url=False, include_context=False)[0]
    place = first["loc"]
    found = "none" if first["type"] == "missing" else _shown(place, first["input"])
    if place and place[0] == "id":
        return f"id: expected a list of names, found {found}"
    stated = first["msg"].removeprefix("Input should be ")
    expected = _EXPECTATIONS.get(first["type"]) or stated.replace(_UP_TO_INT64, "a number below 2^63")
    named = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).removeprefix(".")
    return f"{named or 'request body'}: expected {expected}, found {found}"
