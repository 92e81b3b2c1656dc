"""Paths of fields, as requests name them: segments between dots, in backticks where a name has a dot or a backtick."""

from __future__ import annotations

import re
from collections.abc import Iterable

from table_data.errors import InvalidCall

_QUOTED = frozenset(".`")
_SEGMENT = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")


def parse_path(path: str, what: str) -> tuple[str, ...]:
    """The names of a path, outermost first. `what` begins the text of errors. Raises `InvalidCall`."""
    names: list[str] = []
    place = 0
    while True:
        found = _SEGMENT.match(path, place)
        if found is None:
            raise InvalidCall(f"{what}: expected the path of a field, found {path[:80]!r}")
        quoted, plain = found.groups()
        names.append(plain if quoted is None else quoted.replace("``", "`"))
        place = found.end()
        if place == len(path):
            return tuple(names)
        if path[place] != ".":
            raise InvalidCall(f"{what}: expected the path of a field, found {path[:80]!r}")
        place += 1


def dotted(path: Iterable[str]) -> str:
    """The path that `parse_path` takes apart: a name with a dot or a backtick is in backticks, doubled in it."""
    return ".".join("`{}`".format(name.replace("`", "``")) if _QUOTED.intersection(name) else name for name in path)


def column_of(path: str, what: str) -> str:
    """The column that a path of one name is. Raises `InvalidCall` for a path into a column: pylance takes none here."""
    names = parse_path(path, what)
    if len(names) > 1:
        raise InvalidCall(f"{what}: expected a column, found the path {path[:80]!r} of a field in one")
    return names[0]
