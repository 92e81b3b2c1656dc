"""Databases of lancedb's clients: each is a namespace, and all ids of a request are below it.

`db://NAME` is the namespace `NAME`, `db://NAME/PREFIX` the one below it that the names of the prefix lead to. Requests
of namespace clients on such a connection name the database, too, so it decides nothing about the dialect.
"""

from __future__ import annotations

from collections.abc import Callable

from lance_namespace.errors import InvalidInputError

from namespace_server.directory.model.object_ids import DELIMITER
from namespace_server.rest.header_names import DATABASE, DATABASE_PREFIX
from namespace_server.rest.request.headers import Headers
from namespace_server.rest.request.ids import ROOT, IdScope, kind_of


def databases(root_database: str | None = None) -> Callable[[Headers, str], IdScope]:
    """How the scope of the ids of a request is read, where this database is the root of the catalog.

    The function raises `InvalidInputError` (13) for what can be no name.
    """

    def place_of(headers: Headers, path: str) -> IdScope:
        database, prefix = headers.get(DATABASE), headers.get(DATABASE_PREFIX)
        if database is None:
            if prefix is not None:
                raise InvalidInputError(f"{DATABASE_PREFIX.decode()}: expected {DATABASE.decode()} with it, found none")
            return ROOT
        name = _header(database, DATABASE)
        below = [] if not prefix else _header(prefix, DATABASE_PREFIX).strip("/").split("/")
        found = (*(() if name == root_database else (name,)), *below)
        for each in found:
            if not each or DELIMITER in each:
                raise InvalidInputError(f"{DATABASE.decode()}: expected the name of a namespace, found {each[:80]!r}")
        return IdScope(found, kind_of(path))

    return place_of


def _header(value: bytes, name: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{name.decode()}: expected UTF-8 ({error})") from None
