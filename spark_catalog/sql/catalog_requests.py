"""Requests to the catalog server beside those of `namespace_client`: namespaces, lists, tags, branches, history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import httpx

from namespace_client.error_codes import ErrorCode
from namespace_client.errors import CatalogUnreachable, CommitRejected
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
    """Connections to one server. Thread-safe. Every method raises `CatalogUnreachable` without a response."""

    def __init__(self, url: str, *, headers: Mapping[str, str], timeout: float = 60.0) -> None:
        self.url = url.rstrip("/")
        self._client = httpx.Client(base_url=self.url, headers=dict(headers), timeout=timeout)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def namespaces(self, parent: Path) -> list[str]:
        """Names of the child namespaces. Raises `NoSuchNamespace`."""
        return list(self._pages("GET", f"/v1/namespace/{_id(parent)}/list", "namespaces"))

    def namespace(self, path: Path) -> dict[str, str]:
        """Properties of a namespace. Raises `NoSuchNamespace`."""
        return dict(self._send("POST", f"/v1/namespace/{_id(path)}/describe").get("properties") or {})

    def create_namespace(self, path: Path, properties: Mapping[str, str]) -> None:
        """Create a namespace. Raises `NamespaceExists`, and `NoSuchNamespace` without a parent."""
        self._send("POST", f"/v1/namespace/{_id(path)}/create", {"mode": "Create", "properties": dict(properties)})

    def drop_namespace(self, path: Path, *, cascade: bool) -> None:
        """Drop a namespace. Raises `NoSuchNamespace`, and `NamespaceNotEmpty` without `cascade`."""
        behavior = "Cascade" if cascade else "Restrict"
        self._send("POST", f"/v1/namespace/{_id(path)}/drop", {"mode": "Fail", "behavior": behavior})

    def tables(self, namespace: Path) -> list[str]:
        """Names of the tables of a namespace. Raises `NoSuchNamespace`."""
        return list(self._pages("GET", f"/v1/namespace/{_id(namespace)}/table/list", "tables"))

    def drop_table(self, path: Path) -> None:
        """Remove a table from the catalog. Its files stay in storage. Raises `NoSuchTable`."""
        self._send("POST", f"/v1/table/{_id(path)}/drop")

    def rename_table(self, path: Path, target: Path) -> None:
        """Give a table another name. Raises `NoSuchTable`, `TableExists`, `NoSuchNamespace`."""
        body = {"new_namespace_id": list(target[:-1]), "new_table_name": target[-1]}
        self._send("POST", f"/v1/table/{_id(path)}/rename", body)

    def versions(self, path: Path, *, branch: str | None = None, at: int | None = None) -> list[Json]:
        """Versions of a table, newest first, each with `version` and `timestamp_millis`."""
        parameters: dict[str, Any] = {"descending": "true"} | ({"branch": branch} if branch else {})
        return list(self._pages("POST", f"/v1/table/{_id(path)}/version/list", "versions", parameters, at=at))

    def tags(self, path: Path) -> dict[str, Json]:
        """Tags of a table by name, each with `version` and `branch`."""
        found: dict[str, Json] = {}
        for page in self._all("POST", f"/v1/table/{_id(path)}/tags/list"):
            found |= page.get("tags") or {}
        return found

    def branches(self, path: Path) -> dict[str, Json]:
        """Branches of a table by name, without main."""
        found: dict[str, Json] = {}
        for page in self._all("POST", f"/v1/table/{_id(path)}/branches/list"):
            found |= page.get("branches") or {}
        return found

    def change_reference(self, path: Path, action: str, body: Json) -> None:
        """`action` is `tags/create`, `tags/update`, `tags/delete`, `branches/create` or `branches/delete`."""
        self._send("POST", f"/v1/table/{_id(path)}/{action}", body)

    def delete_versions(self, path: Path, versions: Sequence[int]) -> None:
        """Remove versions of main, which are given in ascending order, in one change of the catalog."""
        ranges: list[list[int]] = []
        for version in versions:
            if ranges and version == ranges[-1][1]:
                ranges[-1][1] = version + 1
            else:
                ranges.append([version, version + 1])
        body = {"ranges": [{"start_version": first, "end_version": end} for first, end in ranges]}
        self._send("POST", f"/v1/table/{_id(path)}/version/delete", body)

    def transaction(self, path: Path, version: int) -> Json:
        """The properties of the transaction that made a version of main; empty if it is not known any more."""
        try:
            answer = self._send("POST", f"/v1/transaction/{_id((*path, str(version)))}/describe")
        except CommitRejected:
            return {}
        return dict(answer.get("properties") or {})

    def _pages(
        self, method: str, path: str, field: str, parameters: Mapping[str, Any] | None = None, *, at: int | None = None
    ) -> Iterator[Any]:
        for page in self._all(method, path, parameters, at=at):
            yield from page.get(field) or ()

    def _all(
        self, method: str, path: str, parameters: Mapping[str, Any] | None = None, *, at: int | None = None
    ) -> Iterator[Json]:
        token: str | None = None
        while True:
            page = self._send(
                method, path, None, {**(parameters or {}), **({"page_token": token} if token else {})}, at
            )
            yield page
            token = page.get("page_token")
            if not token:
                return

    def _send(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        parameters: Mapping[str, Any] | None = None,
        at: int | None = None,
    ) -> Json:
        headers = {} if at is None else {"x-lance-catalog-version": str(at)}
        content = None if method == "GET" else (body or {})
        try:
            response = self._client.request(method, path, json=content, params=parameters or None, headers=headers)
            answer: Json = response.json() if response.content else {}
        except (httpx.TransportError, ValueError) as error:
            raise CatalogUnreachable(f"{self.url}: {type(error).__name__}: {error}") from error
        if response.is_success:
            return answer
        code, text = int(answer.get("code", -1)), str(answer.get("error", response.status_code))
        if code in _ERRORS:
            raise _ERRORS[code](text)
        raise CommitRejected(f"{text} (code {code})", code=code, status=response.status_code)


def check_names(path: Sequence[str]) -> None:
    """Raise `InvalidStatement` for a name with which the path of another object would be requested."""
    for name in path:
        if not name or DELIMITER in name:
            found = f"the character {DELIMITER!r} is not allowed in a name" if name else "expected a name, found none"
            raise InvalidStatement(f"{'.'.join(path)}: {name!r}: {found}")


def _id(path: Sequence[str]) -> str:
    return quote(DELIMITER.join(path) or DELIMITER, safe="")
