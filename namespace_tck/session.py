"""One server under test: what it serves, the namespace of the kit on it, and the removal of everything below that."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from namespace_tck.client import Client
from namespace_tck.exchanges import CheckFailed, CheckSkipped, ServerAnswer
from namespace_tck.operations import OPERATIONS, Body, Operation, Target
from namespace_tck.rows import rows
from namespace_tck.storage import StockClient

TIMEOUT = 120.0
"""Seconds until a server that does not answer is given up."""


class SessionError(Exception):
    """The server cannot be tested at all; the text says why."""


class SessionUnreachable(SessionError):
    """The server does not answer."""


class Session:
    """A server under test. Entering makes the kit's namespace and finds out what is served; leaving removes it.

    `absent` maps operations that are not served to the answer that said so. `root` is the namespace of the kit.
    """

    def __init__(self, url: str, headers: Mapping[str, str] | None = None, *, timeout: float = TIMEOUT) -> None:
        self.client = Client(url, headers or {}, timeout)
        self.root = [f"tck_{secrets.token_hex(6)}"]
        self.absent: dict[str, ServerAnswer] = {}
        self.has_catalog = False
        self.has_namespace_properties = False
        self.has_table_properties = False
        self.stock = StockClient(self.client.url, self.client.headers)
        self._spaces = 0

    def __enter__(self) -> Self:
        """Raises `SessionError` if no namespace can be made on the server."""
        try:
            self._make_root()
            self._discover()
        except SessionError:
            self.client.close()
            raise
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the kit's namespace and all below it, and close the connections.

        An interrupt is passed on after the removal, a second one at once. Raises `SessionError` if something is left.
        """
        try:
            try:
                self._remove_root()
            except KeyboardInterrupt:
                self._remove_root()
                raise
        finally:
            self.client.close()

    def new_space(self) -> list[str]:
        """A fresh namespace below the kit's own."""
        self._spaces += 1
        space = [*self.root, f"c{self._spaces}"]
        answer = self.client.call("create_namespace", space, {})
        answer.ok()
        return space

    def remove(self, space: Sequence[str]) -> None:
        """Remove a namespace and all below it, as far as the server lets."""
        for made in reversed(list(self.client.made)):
            if made[: len(space)] == tuple(space) and self.client.made[made] == "table":
                self._remove_table(made)
        for name in self._names("list_tables", space, "tables"):
            self._remove_table([*space, name])
        for name in self._names("list_namespaces", space, "namespaces"):
            self.remove([*space, name])
        for made in sorted(self._made_below(space), key=len, reverse=True):
            self._try("drop_namespace", made)
        self._try("drop_namespace", space)
        for made in list(self.client.made):
            if made[: len(space)] == tuple(space):
                del self.client.made[made]

    def _make_root(self) -> None:
        try:
            answer = self.client.call("create_namespace", self.root, {})
        except CheckFailed as error:
            answered = error.exchange is not None and error.exchange.status
            raise (SessionError if answered else SessionUnreachable)(f"{self.client.url}: {error}") from error
        if not answer.is_success:
            raise SessionError(f"{self.client.url}: the kit cannot make its namespace\n{answer.exchange.render()}")

    def _remove_root(self) -> None:
        try:
            self.remove(self.root)
            left = self.client.call("namespace_exists", self.root)
        except CheckFailed as error:
            raise SessionError(f"namespace {self.root[0]} was not removed: {error}") from error
        if left.is_success:
            raise SessionError(f"namespace {self.root[0]} was not removed, it holds what the server does not drop")

    def _made_below(self, space: Sequence[str]) -> list[tuple[str, ...]]:
        """The namespaces below `space` that this client made and has not dropped, whether or not they are listed."""
        return [
            made
            for made, kind in self.client.made.items()
            if kind == "namespace" and len(made) > len(space) and made[: len(space)] == tuple(space)
        ]

    def _remove_table(self, table: Sequence[str]) -> None:
        if not self._try("drop_table", table):
            self._try("deregister_table", table)

    def _try(self, operation: str, of: Sequence[str]) -> bool:
        try:
            return self.client.call(operation, of).is_success
        except CheckSkipped:
            return False

    def _names(self, operation: str, space: Sequence[str], key: str) -> Iterator[str]:
        try:
            first = self.client.call(operation, space)
        except CheckSkipped:
            return
        while first.is_success:
            page: dict[str, Any] = first.ok()
            yield from page[key]
            if not page.get("page_token") or not page[key]:
                return
            first = self.client.call(operation, space, page_token=page["page_token"])

    def _discover(self) -> None:
        space = self.new_space()
        for operation in OPERATIONS:
            if operation.name in ("create_namespace", "drop_namespace"):
                continue
            answer = self.client.call(operation.name, _probed(operation, space), _smallest(operation))
            if _is_absent(answer):
                self.absent[operation.name] = answer
        self.client.absent = frozenset(self.absent)
        self.has_catalog = self.client.raw("GET", "/v1/catalog").status == 200
        given = {"owner": "tck"}
        named = self.client.call("create_namespace", [*space, "named"], {"properties": given})
        self.has_namespace_properties = named.is_success and self._has_properties("describe_namespace", "named", space)
        if "declare_table" not in self.absent:
            self.client.call("declare_table", [*space, "table"], {"properties": given})
            self.has_table_properties = self._has_properties("describe_table", "table", space)
        self.remove(space)

    def _has_properties(self, operation: str, name: str, space: Sequence[str]) -> bool:
        if operation in self.absent:
            return False
        answer = self.client.call(operation, [*space, name])
        return answer.is_success and answer.ok().get("properties") is not None


def _probed(operation: Operation, space: Sequence[str]) -> list[str] | None:
    match operation.target:
        case Target.NAMESPACE:
            return [*space]
        case Target.NOTHING:
            return None
        case Target.TRANSACTION:
            return [*space, "missing", "1"]
        case Target.NEW_TABLE:
            return [*space, operation.name]
        case _:
            return [*space, "missing"]


def _smallest(operation: Operation) -> Any:
    return rows([1]) if operation.body is Body.ARROW else None


def _is_absent(answer: ServerAnswer) -> bool:
    """Whether the answer says that there is no such operation, in any of the ways that servers say it."""
    if answer.is_success:
        return False
    if answer.code is None:
        return answer.status in (404, 405, 501)
    text = answer.content.decode("utf-8", "replace").lower()
    return answer.code == 0 or (answer.code == 18 and ("not implemented" in text or "not supported" in text))
