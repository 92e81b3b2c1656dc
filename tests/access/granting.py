"""Catalogs with grants in force, and requests in the names of principals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import httpx

from namespace_server.access.grants import AccessEntry, GrantEntry, Kind, MembershipEntry
from namespace_server.access.subjects import Grantee, Privilege
from namespace_server.directory.manifest_table.table import ManifestTable
from namespace_server.directory.model.entries import Entry, changes_of
from namespace_server.directory.model.object_ids import ObjectId
from namespace_server.directory.namespace import DirectoryNamespace
from tests.data.arrow import ARROW
from tests.directory.flipping import flip

ALL = frozenset({Privilege.OWN})
ADMIN = "admin"


def key(principal: str) -> str:
    """The API key of a principal of the tests."""
    return f"key-of-{principal}"


def keys(*principals: str) -> dict[str, str]:
    return {key(name): name for name in principals}


def as_principal(principal: str) -> dict[str, str]:
    return {"x-api-key": key(principal)}


def granted(kind: Kind, on: str, to: str, *privileges: str, since: int = 0) -> GrantEntry:
    """A grant on an object, by its id as text, to a principal."""
    path: ObjectId = tuple(on.split("$")) if on else ()
    return GrantEntry(kind, path, Grantee("principal", to), frozenset(map(Privilege, privileges)), since)


def member(role: str, principal: str) -> MembershipEntry:
    return MembershipEntry(role, Grantee("principal", principal))


def put_rows(root: Path, rows: Iterable[Entry], *, remove: Iterable[str] = ()) -> int:
    """Put grants as rows, in a flip of the operator; the catalog version that has them."""
    namespace = DirectoryNamespace(root=str(root), durability="none")
    try:
        table: ManifestTable = namespace.catalog.table
        return flip(table, changes_of(rows, remove)).version
    finally:
        namespace.close()


def switch_on(root: Path, *grants: Entry) -> int:
    """Put grants in force, with an administrator who may do everything."""
    return put_rows(root, [AccessEntry(), granted("catalog", "", ADMIN, "own"), *grants])


class Caller:
    """Requests of one principal to a server."""

    def __init__(self, http: httpx.Client, principal: str | None) -> None:
        self.http = http
        self.headers = {} if principal is None else as_principal(principal)

    def post(self, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> httpx.Response:
        given = {**self.headers, **(headers or {})}
        if isinstance(body, bytes):
            return self.http.post(path, content=body, headers={**ARROW, **given})
        return self.http.post(path, json=body or {}, headers=given)

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> httpx.Response:
        return self.http.get(path, headers={**self.headers, **(headers or {})})
