"""Requests to the catalog server that `CatalogAccess` has no methods for: namespaces, lists, names, references."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from namespace_client.error_codes import ErrorCode
from namespace_client.errors import CommitRejected
from namespace_client.http import HttpClient
from namespace_client.routes import Method, object_id
from namespace_client.wire import pages_of
from spark_catalog.sql.errors import (
    InvalidStatement,
    NamespaceExists,
    NamespaceNotEmpty,
    NoSuchNamespace,
    NoSuchTable,
    TableExists,
)
from table_data.batch_operations import DELIMITER, Json

Path = tuple[str, ...]

_ERRORS: Mapping[int, type[Exception]] = {
    ErrorCode.NAMESPACE_NOT_FOUND: NoSuchNamespace,
    ErrorCode.NAMESPACE_ALREADY_EXISTS: NamespaceExists,
    ErrorCode.NAMESPACE_NOT_EMPTY: NamespaceNotEmpty,
    ErrorCode.TABLE_NOT_FOUND: NoSuchTable,
    ErrorCode.TABLE_ALREADY_EXISTS: TableExists,
}


class ServerRequests:
    """Requests over the connections to one server. Thread-safe.

    Every method raises `CatalogUnreachable` without a response, and `CommitRejected` for an error without a class here.
    """

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    def namespaces(self, parent: Path) -> list[str]:
        """Names of the child namespaces. Raises `NoSuchNamespace`."""
        return self._names(f"/v1/namespace/{object_id(parent)}/list", "namespaces")

    def namespace(self, path: Path) -> dict[str, str]:
        """Properties of a namespace. Raises `NoSuchNamespace`."""
        return dict(self._read("POST", f"/v1/namespace/{object_id(path)}/describe").get("properties") or {})

    def create_namespace(self, path: Path, properties: Mapping[str, str]) -> None:
        """Create a namespace. Raises `NamespaceExists`, and `NoSuchNamespace` without a parent."""
        self._change(f"/v1/namespace/{object_id(path)}/create", {"mode": "Create", "properties": dict(properties)})

    def drop_namespace(self, path: Path, *, cascade: bool) -> None:
        """Drop a namespace. Raises `NoSuchNamespace`, and `NamespaceNotEmpty` without `cascade`."""
        behavior = "Cascade" if cascade else "Restrict"
        self._change(f"/v1/namespace/{object_id(path)}/drop", {"mode": "Fail", "behavior": behavior})

    def tables(self, namespace: Path) -> list[str]:
        """Names of the tables of a namespace. Raises `NoSuchNamespace`."""
        return self._names(f"/v1/namespace/{object_id(namespace)}/table/list", "tables")

    def drop_table(self, path: Path, *, purge: bool = False) -> None:
        """Drop a table. It can come back for a while, with `purge` until the next collection. Raises `NoSuchTable`."""
        self._change(f"/v1/table/{object_id(path)}/drop", {"purge": True} if purge else None)

    def undrop_table(self, path: Path, target: Path) -> None:
        """Bring back a dropped table. Raises `NoSuchTable`, `TableExists`, `NoSuchNamespace`."""
        self._change(f"/v1/table/{object_id(path)}/undrop", {"new_id": list(target)})

    def rename_table(self, path: Path, target: Path) -> None:
        """Give a table another name. Raises `NoSuchTable`, `TableExists`, `NoSuchNamespace`."""
        body = {"new_namespace_id": list(target[:-1]), "new_table_name": target[-1]}
        self._change(f"/v1/table/{object_id(path)}/rename", body)

    def change_reference(self, path: Path, action: str, body: Json) -> None:
        """`action` is `tags/create`, `tags/update`, `tags/delete`, `branches/create` or `branches/delete`."""
        self._change(f"/v1/table/{object_id(path)}/{action}", body)

    def delete_versions(self, path: Path, versions: Sequence[int]) -> None:
        """Remove versions of main, which are given in ascending order, in one change of the catalog."""
        ranges: list[list[int]] = []
        for version in versions:
            if ranges and version == ranges[-1][1]:
                ranges[-1][1] = version + 1
            else:
                ranges.append([version, version + 1])
        body = {"ranges": [{"start_version": first, "end_version": end} for first, end in ranges]}
        self._change(f"/v1/table/{object_id(path)}/version/delete", body)

    def transaction(self, path: Path, version: int) -> Json:
        """The properties of the transaction that made a version of main; empty if it is not known any more."""
        try:
            answer = self._read("POST", f"/v1/transaction/{object_id((*path, str(version)))}/describe")
        except CommitRejected:
            return {}
        return dict(answer.get("properties") or {})

    def _names(self, path: str, field: str) -> list[str]:
        pages = pages_of(lambda more: self._read("GET", path, more))
        return [name for page in pages for name in page.get(field) or ()]

    def _read(self, method: Method, path: str, parameters: Mapping[str, str] | None = None) -> Json:
        with sql_errors():
            return self._client.ask(method, path, parameters=parameters)

    def _change(self, path: str, body: Json | None = None) -> None:
        with sql_errors():
            self._client.change(path, body)


@contextmanager
def sql_errors() -> Iterator[None]:
    """Raise the class of SQL, with the text of the catalog, for an error of the catalog that has one."""
    try:
        yield
    except CommitRejected as error:
        kind = None if error.code is None else _ERRORS.get(error.code)
        if kind is None:
            raise
        raise kind(error.reason) from error


def check_names(path: Sequence[str]) -> None:
    """Raise `InvalidStatement` for a name with which the path of another object would be requested."""
    for name in path:
        if not name or DELIMITER in name:
            found = f"the character {DELIMITER!r} is not allowed in a name" if name else "expected a name, found none"
            raise InvalidStatement(f"{'.'.join(path)}: {name!r}: {found}")
