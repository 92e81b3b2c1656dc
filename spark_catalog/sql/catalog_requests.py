"""Namespaces, lists, names and references of the catalog, as SQL reads and changes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from namespace_client.access import CatalogAccess
from namespace_client.error_codes import ErrorCode
from namespace_client.errors import CommitRejected
from spark_catalog.sql.errors import (
    InvalidStatement,
    NamespaceExists,
    NamespaceNotEmpty,
    NoSuchNamespace,
    NoSuchTable,
    TableExists,
)
from table_data.batch_operations import DELIMITER, Json, TableId

Path = tuple[str, ...]

_ERRORS: Mapping[int, type[Exception]] = {
    ErrorCode.NAMESPACE_NOT_FOUND: NoSuchNamespace,
    ErrorCode.NAMESPACE_ALREADY_EXISTS: NamespaceExists,
    ErrorCode.NAMESPACE_NOT_EMPTY: NamespaceNotEmpty,
    ErrorCode.TABLE_NOT_FOUND: NoSuchTable,
    ErrorCode.TABLE_ALREADY_EXISTS: TableExists,
}


class CatalogRequests:
    """Requests to one catalog, with the errors of SQL. Thread-safe.

    A change is sent as `CatalogAccess.change` sends it. Every method raises `CommitRejected` for an error without a
    class here, and `CatalogUnreachable` without a response or if nothing was sent; a change raises `CommitUnknown` if
    its outcome is unknown.
    """

    def __init__(self, access: CatalogAccess) -> None:
        self._access = access

    def namespaces(self, parent: Path) -> list[str]:
        """Names of the child namespaces. Raises `NoSuchNamespace`."""
        with sql_errors():
            return self._access.namespaces(parent)

    def namespace(self, path: Path) -> dict[str, str]:
        """Properties of a namespace. Raises `NoSuchNamespace`."""
        with sql_errors():
            return self._access.namespace_properties(path)

    def create_namespace(self, path: Path, properties: Mapping[str, str]) -> None:
        """Create a namespace. Raises `NamespaceExists`, and `NoSuchNamespace` without a parent."""
        self._change("create_namespace", path, {"mode": "Create", "properties": dict(properties)})

    def drop_namespace(self, path: Path, *, cascade: bool) -> None:
        """Drop a namespace. Raises `NoSuchNamespace`, and `NamespaceNotEmpty` without `cascade`."""
        self._change("drop_namespace", path, {"mode": "Fail", "behavior": "Cascade" if cascade else "Restrict"})

    def tables(self, namespace: Path) -> list[str]:
        """Names of the tables of a namespace. Raises `NoSuchNamespace`."""
        with sql_errors():
            return self._access.tables(namespace)

    def drop_table(self, path: Path, *, purge: bool = False) -> None:
        """Drop a table. It can come back for a while, with `purge` until the next run of gc. Raises `NoSuchTable`."""
        self._change("drop_table", path, {"purge": True} if purge else {})

    def undrop_table(self, path: Path, target: Path) -> None:
        """Bring back a dropped table. Raises `NoSuchTable`, `TableExists`, `NoSuchNamespace`."""
        self._change("undrop_table", path, {"new_id": list(target)})

    def rename_table(self, path: Path, target: Path) -> None:
        """Give a table another name. Raises `NoSuchTable`, `TableExists`, `NoSuchNamespace`."""
        self._change("rename_table", path, {"new_namespace_id": list(target[:-1]), "new_table_name": target[-1]})

    def create_tag(self, path: Path, tag: str, version: int | None) -> None:
        """Name a version of main. Raises `NoSuchTable`."""
        self._change("create_table_tag", path, {"tag": tag, "version": version})

    def delete_tag(self, path: Path, tag: str) -> None:
        """Remove a tag. Raises `NoSuchTable`."""
        self._change("delete_table_tag", path, {"tag": tag})

    def create_branch(self, path: Path, branch: str, version: int | None) -> None:
        """Begin a branch at a version of main, the newest if None. Raises `NoSuchTable`."""
        self._change(
            "create_table_branch", path, {"name": branch} | ({} if version is None else {"from_version": version})
        )

    def delete_branch(self, path: Path, branch: str) -> None:
        """Remove a branch. Raises `NoSuchTable`."""
        self._change("delete_table_branch", path, {"name": branch})

    def delete_versions(self, path: Path, versions: Sequence[int]) -> None:
        """Remove versions of main, which are given in ascending order, in one change of the catalog."""
        ranges: list[list[int]] = []
        for version in versions:
            if ranges and version == ranges[-1][1]:
                ranges[-1][1] = version + 1
            else:
                ranges.append([version, version + 1])
        found = [{"start_version": first, "end_version": end} for first, end in ranges]
        self._change("batch_delete_table_versions", path, {"ranges": found})

    def transaction(self, path: Path, version: int) -> Json:
        """The properties of the transaction that made a version of main; empty if it is not known any more."""
        try:
            return self._access.transaction(path, version)
        except CommitRejected:
            return {}

    def _change(self, operation: str, path: Path, body: Json) -> None:
        with sql_errors():
            self._access.change(operation, {"id": list(path), **body})


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


def table_path(text: str) -> TableId:
    """A table named as `namespace.table`; backticks around names that hold dots."""
    names = parse_names(text)
    if len(names) < 2:
        raise InvalidStatement(f"table {text!r}: expected namespace.table")
    return names


def parse_names(text: str) -> TableId:
    """The names of a dotted name; backticks around those that hold dots. Raises `InvalidStatement`."""
    names: list[str] = []
    rest = text
    while rest:
        if rest.startswith("`"):
            name, closing, rest = rest[1:].partition("`")
            if not closing:
                raise InvalidStatement(f"table {text!r}: expected a closing backtick")
        else:
            name, _, following = rest.partition(".")
            rest = f".{following}" if _ else ""
        names.append(name)
        if rest and not rest.startswith("."):
            raise InvalidStatement(f"table {text!r}: expected a dot after {name!r}")
        rest = rest[1:]
    if not names or not all(names):
        raise InvalidStatement(f"table {text!r}: expected namespace.table")
    check_names(names)
    return tuple(names)
