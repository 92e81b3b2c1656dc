"""Ids in requests: the objects that a path segment may name, and those below the database of a request.

A `+` in a path is a plus by RFC 3986 and a space in a form; pylance's client writes paths as a form, with `%2B` for a
plus. A segment with a `+` as it was sent has several readings. One of them is chosen by, in this order: the client, if
it is known to write forms; the id in the body; which of the readings exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final, Literal, TypeGuard
from urllib.parse import quote

import orjson
from lance_namespace.errors import InvalidInputError

from namespace_server.directory.model.object_ids import DELIMITER
from namespace_server.rest.header_names import IDEMPOTENCY_KEY
from namespace_server.rest.request.headers import Headers, read_id, read_name

Id = list[str]
Database = tuple[str, ...]
"""The namespace that a request is about, from the root; empty: the root."""
Kind = Literal["namespace", "table", "transaction"]

_FORM_QUERY: Final = b"delimiter=%24"
_MOST_NAMES: Final = 4
"""Names with a `+` in one path, of which each has two readings."""
_CREATING: Final = frozenset({"clone_table", "create_namespace", "create_table", "declare_table", "register_table"})
_DROPPED: Final = frozenset({"undrop_namespace", "undrop_table"})
"""Operations on what does not exist now, so that what exists decides nothing."""
_LISTS: Final = ("operations", "entries", "tables", "results", "grants", "revokes")
"""Fields that hold objects with ids: operations of a batch and their results, versions, tables of an intent, grants."""
_IDS: Final = ("id", "new_namespace_id", "new_id", "namespace", "table")
_GRANTED: Final = "on"
"""The field that holds an object with one id: what a grant is on."""


def kind_of(path: str) -> Kind:
    """The kind of object that the id in a path template names."""
    named = path.split("/", 3)[2:3]
    return "namespace" if named == ["namespace"] else "transaction" if named == ["transaction"] else "table"


def writes_forms(headers: Headers, query_string: bytes) -> bool:
    """Whether a request is one of pylance's native client, which all bindings of Lance share.

    It has no `User-Agent` and names the delimiter first. A `+` in a path of it is a space.
    """
    return b"user-agent" not in headers and query_string.startswith(_FORM_QUERY)


def read_ids(segment: str, query: Mapping[str, str], *, form: bool) -> list[Id]:
    """The ids that a segment with a `+` may mean, that of RFC 3986 first; one id if the client writes a `form`.

    Raises `InvalidInputError`, also for more names with a `+` than anything is to be looked up for.
    """
    plus, space = read_id(segment, query), read_id(segment.replace("+", " "), query)
    if form or plus == space:
        return [space]
    if len(plus) != len(space):  # the delimiter holds one of them
        return [plus, space]
    names = [(name,) if name == other else (name, other) for name, other in zip(plus, space, strict=True)]
    if sum(len(readings) > 1 for readings in names) > _MOST_NAMES:
        raise InvalidInputError(
            f"path: expected at most {_MOST_NAMES} names with a + in it, found more; "
            "write a space as %20 and a plus as %2B"
        )
    return [list(readings) for readings in product(*names)]


def choose(operation: str, readings: Sequence[Id], existing: Sequence[Id]) -> Id:
    """The id that a path names if nothing in the request decides: the only one of its `readings` that exists.

    What is to be created, and what does not exist, is read as RFC 3986 has it. Raises `InvalidInputError` naming both
    where more than one exists, or where one that exists stands in the way of another that may be meant.
    """
    first = readings[0]
    if operation in _CREATING:
        existing = [first, *(found for found in existing if found != first)]
    if len(existing) > 1:
        raise undecided(existing)
    return existing[0] if existing else first


def may_be_looked_up(operation: str, headers: Headers) -> bool:
    """Whether existing objects may decide which name a path has.

    Not for a change with an idempotency key: its repetition would be about another name once the change is made. Nor
    for what was dropped.
    """
    return operation not in _DROPPED and IDEMPOTENCY_KEY not in headers


def undecided(readings: Sequence[Id]) -> InvalidInputError:
    """The error of a path that has several readings, of which nothing decides."""
    named = " or ".join(_shown(found) for found in readings[:2])
    return InvalidInputError(
        f"path: a + in it may be a plus or a space, expected one name, found {named}; "
        "write a space as %20 and a plus as %2B"
    )


def choose_name(field: str, segment: str, given: object, *, form: bool) -> object:
    """A name that is the last segment of a path, and may be in the body too, which decides.

    Raises `InvalidInputError` if they differ, or if nothing decides what a `+` is.
    """
    names = {read_name(segment.replace("+", " "))} if form else {read_name(segment.replace("+", c)) for c in "+ "}
    if given is not None:
        if given not in names:
            name = read_name(segment)
            raise InvalidInputError(f"request body names {field} {str(given)[:200]!r}, the route names {name[:200]!r}")
        return given
    if len(names) > 1:
        raise InvalidInputError(f"path: {field}: a + may be a plus or a space; write a space as %20 and a plus as %2B")
    return names.pop()


def matches(named: object, route: Id) -> bool:
    """Whether the id of a body is that of the path. What is no list of names is refused later, by its field."""
    return named is None or named == route or not _is_id(named)


def as_segment(ids: Id, query: Mapping[str, str]) -> bytes:
    """A path segment that every server reads as this id."""
    delimiter = query.get("delimiter", DELIMITER)
    return quote(delimiter.join(ids) or delimiter, safe="").encode()


@dataclass(frozen=True, slots=True)
class IdScope:
    """The scope of the ids of a request: those below its `database`. `kind`: the kind of object in its path."""

    database: Database = ()
    kind: Kind = "table"

    def absolute(self, given: Id) -> Id:
        """The id from the root, of the one in the path or beside it. A database is the root of its namespaces."""
        is_root_of_none = not given and self.kind != "namespace"
        is_batch = len(given) == 1 and self.kind == "transaction"
        return given if is_root_of_none or is_batch else [*self.database, *given]

    def request(self, body: Mapping[str, object]) -> dict[str, object]:
        """A request with all ids from the root, of one whose ids are below the database."""
        found = _with_ids(body, lambda given: [*self.database, *given] if given else given)
        given = body.get("id")
        return {**found, "id": self.absolute(given)} if _is_id(given) else found

    def answer(self, body: Mapping[str, object]) -> dict[str, object]:
        """An answer with all ids below the database, of one whose ids are from the root."""
        length = len(self.database)
        return _with_ids(body, lambda given: given[length:] if tuple(given[:length]) == self.database else given)


ROOT: Final = IdScope()
PlaceOf = Callable[[Headers, str], IdScope]
"""The scope of the ids of a request, from its headers and the template of its path."""


def _with_ids(body: Mapping[str, object], change: Callable[[Id], Id]) -> dict[str, object]:
    found = dict(body)
    for field in _IDS:
        value = found.get(field)
        if _is_id(value):
            found[field] = change(value)
    granted = found.get(_GRANTED)
    if isinstance(granted, dict):
        found[_GRANTED] = _with_ids(granted, change)
    for field in _LISTS:
        items = found.get(field)
        if isinstance(items, list):
            found[field] = [_item_with_ids(item, change) for item in items]
    return found


def _item_with_ids(item: object, change: Callable[[Id], Id]) -> object:
    """An item of a list: an object with an id, or one whose field is such an object."""
    if not isinstance(item, dict):
        return item
    inner = {name: _with_ids(value, change) if isinstance(value, dict) else value for name, value in item.items()}
    return _with_ids(inner, change)


def _is_id(value: object) -> TypeGuard[Id]:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _shown(value: Iterable[str]) -> str:
    return orjson.dumps(list(value)).decode()[:400]
