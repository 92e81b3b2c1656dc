"""Fields of requests as they come over the wire (JSON objects), with their types; form is checked, nothing else.

Every function raises `InvalidInputError` (13) naming the field, what is expected and what was found. Field names are
those of the Lance namespace spec.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeGuard, TypeVar

from lance_namespace.errors import InvalidInputError, LanceNamespaceError, UnsupportedOperationError

from lance_core.format.refs import check_branch_name, check_tag_name
from namespace_server.directory.model import naming_rules
from namespace_server.directory.model.errors import shown
from namespace_server.directory.model.limits import MAX_INT64, Limits, is_int64, utf8_length
from namespace_server.directory.model.object_ids import ObjectId
from namespace_server.directory.model.promised_fields import FIELDS

Request = Mapping[str, object]
T = TypeVar("T")
_MAX_DIGITS = len(str(MAX_INT64))
_MAX_PAGE = 2**31 - 1
OBJECTS = (dict, Mapping)
"""The type that JSON gives comes first, here and in `is_list`: a check of an abstract class is several times slower."""


def table_id(request: Request, what: str = "table") -> ObjectId:
    """The id of a table: a list of at least one name."""
    parts = object_id(request, what)
    if not parts:
        raise InvalidInputError(f"{what} id: expected at least one name, found an empty list")
    return parts


def object_id(request: Request, what: str, field: str = "id") -> ObjectId:
    """An id: a list of strings. An absent id is an error; an empty list is the root namespace."""
    return _strings(request.get(field), f"{what} {field}")


def _strings(value: object, what: str) -> tuple[str, ...]:
    if not _are_strings(value):
        raise InvalidInputError(f"{what}: expected a list of strings, found {shown(value)}")
    return tuple(value)


def text(request: Request, field: str, *, required: bool = False) -> str | None:
    """An optional string."""
    value = request.get(field)
    if value is None and not required:
        return None
    if not isinstance(value, str):
        raise InvalidInputError(f"{field}: expected a string, found {shown(value)}")
    if not value.isascii():
        utf8_length(value, field)
    return value


def integer(request: Request, field: str, *, required: bool = False) -> int | None:
    """An optional 64-bit integer."""
    value = request.get(field)
    if value is None and not required:
        return None
    if not is_int64(value):
        raise InvalidInputError(f"{field}: expected a 64-bit integer, found {shown(value)}")
    return value


def flag(request: Request, field: str, *, default: bool = False) -> bool:
    """An optional boolean."""
    value = request.get(field)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise InvalidInputError(f"{field}: expected true or false, found {shown(value)}")
    return value


def page_size(request: Request) -> int | None:
    """The limit of a paged read; None when unlimited (absent or negative)."""
    limit = integer(request, "limit")
    return None if limit is None or limit < 0 else min(limit, _MAX_PAGE)


def entry_count(request: Request) -> int | None:
    """The limit of a page of a list that the published API does not have, 1 or more; None without one."""
    limit = integer(request, "limit")
    if limit is not None and limit < 1:
        raise InvalidInputError(f"limit: expected 1 or more, found {limit}")
    return limit


def page_position(request: Request, what: str) -> int | None:
    """The page token of a read whose pages end with a number (`what` it is), or None on the first page."""
    token = text(request, "page_token")
    if token is None:
        return None
    if token.isascii() and token.isdigit() and len(token) <= _MAX_DIGITS:
        number = int(token)
        if number < MAX_INT64:
            return number
    raise InvalidInputError(f"page_token: expected {what}, found {shown(token)}")


def string_map(request: Request, field: str, limits: Limits) -> dict[str, str]:
    """An optional object of strings; absent is empty."""
    value = request.get(field)
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(
        isinstance(key, str) and isinstance(item, str) for key, item in value.items()
    ):
        raise InvalidInputError(f"{field}: expected an object of strings, found {shown(value)}")
    limits.check_strings(value, field)
    return dict(value)


def check_common(request: Request, limits: Limits) -> None:
    """Check the fields that every operation may have, and that are read of whole requests only."""
    if request.get("context") is not None:
        string_map(request, "context", limits)
    identity = request.get("identity")
    if identity is None:
        return
    if not isinstance(identity, OBJECTS):
        raise InvalidInputError(f"identity: expected an object, found {shown(identity)}")
    text(identity, "api_key")
    text(identity, "auth_token")


def check_fields(operation: str, request: Request) -> None:
    """Refuse fields that requests of this operation do not have in the OpenAPI document; see `check_known`."""
    check_known(request, FIELDS[operation], operation)


def check_known(request: Request, known: frozenset[str], what: str) -> None:
    """Refuse fields other than the `known` ones, unless they are null: an ignored field would be lost silently."""
    if request.keys() <= known:
        return
    unknown = [field for field, value in request.items() if field not in known and value is not None]
    if unknown:
        expected = ", ".join(sorted(known - {"identity"}))
        raise InvalidInputError(f"{what}: expected no fields but {expected}; found {names(unknown)}")


def strings(request: Request, field: str, limits: Limits) -> frozenset[str]:
    """An optional list of keys of an object of strings; absent is empty."""
    value = request.get(field)
    if value is None:
        return frozenset()
    keys = frozenset(_strings(value, field))
    limits.check_strings(dict.fromkeys(keys, ""), field)
    return keys


def branch(request: Request, field: str = "branch") -> str | None:
    """An optional branch; 'main' is the main chain, like None."""
    name = text(request, field)
    if name is None or name == "main":
        return None
    naming_rules.check_branch(name)
    return name


def branch_name(request: Request, *, new: bool = False) -> str:
    """The name of a branch other than main, as stock clients accept it."""
    name = text(request, "name", required=True) or ""
    try:
        return check_branch_name(name, new=new)
    except ValueError as error:
        raise InvalidInputError(f"name: {error}") from error


def tag_name(request: Request, field: str = "tag", *, new: bool = False) -> str:
    """The name of a tag, as stock clients accept it."""
    name = text(request, field, required=True) or ""
    try:
        return check_tag_name(name, new=new)
    except ValueError as error:
        raise InvalidInputError(f"{field}: {error}") from error


def located(place: str, error: InvalidInputError | UnsupportedOperationError) -> LanceNamespaceError:
    """The same error, with the place in front of its message."""
    return type(error)(f"{place}: {error}")


def names(fields: Sequence[object]) -> str:
    """Names of fields as they stand in an error text."""
    names = ", ".join(map(str, fields[:8])) or "none"
    return names if len(names) <= 200 else f"{names[:200]}…"


def objects(request: Request, field: str) -> Sequence[Request]:
    """A list of at least one object."""
    items = request.get(field)
    if not is_list(items) or not items:
        raise InvalidInputError(f"{field}: expected a non-empty list, found {shown(items)}")
    found: list[Request] = []
    for index, item in enumerate(items):
        if not isinstance(item, OBJECTS):
            raise InvalidInputError(f"{field}[{index}]: expected an object, found {shown(item)}")
        found.append(item)
    return found


def is_list(value: object) -> TypeGuard[Sequence[object]]:
    """Whether a value is a list, of JSON or of a caller in this process."""
    return isinstance(value, (list, Sequence)) and not isinstance(value, str)


def _are_strings(value: object) -> TypeGuard[Sequence[str]]:
    return is_list(value) and all(isinstance(part, str) for part in value)


def choice(request: Request, field: str, choices: Mapping[str, T], default: T) -> T:
    """The choice that a string names, in any case, with underscores or without; absent is `default`."""
    value = text(request, field)
    if value is None:
        return default
    chosen = choices.get(value.replace("_", "").lower())
    if chosen is None:
        raise InvalidInputError(f"{field}: expected one of {', '.join(choices)}; found {shown(value)}")
    return chosen
