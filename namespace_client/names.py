"""Names of namespaces and tables.

A string is one dotted name, relative to the default namespace: `eu.orders` is table `orders` in namespace `eu` of it.
A part with a dot stands in backticks. `$` joins parts as well, as it does on the wire. A sequence is the parts of a
whole path, whatever the default namespace is.
"""

from __future__ import annotations

from collections.abc import Sequence

from namespace_client.errors import InvalidCall
from table_data.batch_operations import DELIMITER, TableId
from table_data.requests.field_paths import dotted, parse_path

AnyName = str | Sequence[str]


class Name(tuple[str, ...]):
    """The path of a namespace or table. As text it is the dotted name."""

    __slots__ = ()

    def __str__(self) -> str:
        return dotted(self)


def absolute(name: AnyName, namespace: Sequence[str] = (), what: str = "table") -> TableId:
    """The whole path that a name stands for. `namespace` is the default namespace. Raises `InvalidCall`."""
    if isinstance(name, str):
        try:
            return (*namespace, *parse_path(name.replace(DELIMITER, "."), what))
        except InvalidCall:
            raise InvalidCall(f"{what} {name!r}: expected a name, or names with dots between") from None
    parts = tuple(name)
    if not all(isinstance(part, str) and part for part in parts) or (what == "table" and not parts):
        raise InvalidCall(f"{what} {name!r}: expected a name, or a path of names")
    return parts


def default_namespace(namespace: AnyName | None) -> TableId:
    """The path of a default namespace as it is given to a connection. Raises `InvalidCall`."""
    return absolute(namespace, what="namespace") if namespace else ()
