"""What an endpoint is: an operation of the namespace, the route it has, and how its request is put together."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from lance_namespace.errors import InvalidInputError

from namespace_server.directory.model.integers import is_int64

_INTEGER = re.compile(r"-?[0-9]{1,19}")


class Body(Enum):
    """Whether an endpoint reads a JSON object from the request body."""

    NONE = "none"
    OPTIONAL = "optional"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A query parameter: `parse` makes a value of its text, `check` accepts the same value from a body.

    Both raise `InvalidInputError` naming the parameter.
    """

    name: str
    parse: Callable[[str, str], Any]
    check: Callable[[str, Any], None]


@dataclass(frozen=True, slots=True, eq=False)
class Endpoint:
    """One method and path. `keyed` endpoints take an `Idempotency-Key`; `silent` ones answer an empty body.

    There is one object for each, compared by identity.
    """

    operation: str
    method: str
    path: str
    body: Body = Body.REQUIRED
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    keyed: bool = False
    silent: bool = False


def _parse_text(_name: str, text: str) -> str:
    return text


def _check_text(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise InvalidInputError(f"{name}: expected a string, found {value!r}")


def _parse_flag(name: str, text: str) -> bool:
    value = {"true": True, "false": False}.get(text.lower())
    if value is None:
        raise InvalidInputError(f"{name}: expected true or false, found {text!r}")
    return value


def _check_flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise InvalidInputError(f"{name}: expected true or false, found {value!r}")


def _parse_limit(name: str, text: str) -> int:
    if _INTEGER.fullmatch(text) is None:
        raise InvalidInputError(f"{name}: expected a number, found {text!r}")
    value = int(text)
    _check_limit(name, value)
    return value


def _check_limit(name: str, value: Any) -> None:
    if not is_int64(value):
        raise InvalidInputError(f"{name}: expected a number, found {value!r}")


def text(name: str) -> Parameter:
    """A parameter that is any string."""
    return Parameter(name, _parse_text, _check_text)


def flag(name: str) -> Parameter:
    """A parameter that is `true` or `false`, in any case."""
    return Parameter(name, _parse_flag, _check_flag)


def limit() -> Parameter:
    """The page size. Zero asks for an empty page without a successor, less than zero for everything."""
    return Parameter("limit", _parse_limit, _check_limit)


def parameters(*items: Parameter) -> dict[str, Parameter]:
    """Parameters by name."""
    return {item.name: item for item in items}


PAGING = (text("page_token"), limit())
