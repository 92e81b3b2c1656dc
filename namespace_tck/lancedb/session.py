"""One server under test: a database of the kit, requests as lancedb's clients send them, what one line works with."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote

import orjson
import pyarrow as pa

from namespace_tck.client import Client
from namespace_tck.exchanges import CheckFailed, CheckSkipped, RecordedExchange
from namespace_tck.lancedb import data
from namespace_tck.lancedb.lines import DATABASE, Asked, LancedbLine
from namespace_tck.lancedb.matching import Kept, difference, mismatch
from namespace_tck.rows import STREAM
from namespace_tck.session import TIMEOUT, SessionError, SessionUnreachable

AGENT: Final = "LanceDB-Python-Client/0.40.0"
_FEATURES: Final = "phalanx-version"
_NOT_SERVED: Final = (406, 501)
_WORDS: Final = {"base_tokenizer": "simple", "stem": False, "remove_stop_words": False, "with_position": True}


class LancedbSession:
    """A server under test. Entering looks whether it answers; leaving removes the database of the kit.

    `features` is the version of the protocol that the server announces.
    """

    def __init__(self, url: str, headers: Mapping[str, str] | None = None, *, timeout: float = TIMEOUT) -> None:
        self.client = Client(url, {"x-api-key": "none", "user-agent": AGENT, **(headers or {})}, timeout)
        self.database = f"tck_{secrets.token_hex(6)}"
        self.absent: dict[str, str] = {}
        self.features = (0, 1, 0)
        self._reads: str | None = None
        self._names = 0

    def __enter__(self) -> Self:
        """Raises `SessionError` if the server lists no tables of a database, not even none."""
        try:
            listed = self.send("GET", "/v1/table/")
        except CheckFailed as error:
            self.client.close()
            raise SessionUnreachable(f"{self.client.url}: {error}") from error
        if listed.status != 200:
            self.client.close()
            raise SessionError(f"{self.client.url}: the kit cannot list its database\n{listed.render()}")
        self.features = _version(listed.headers.get(_FEATURES, "0.1.0"))
        # Where a database must be made first; elsewhere it comes into being with its first table.
        self.send("POST", f"/v1/namespace/{self.database}/create", {"mode": "ExistOk"}, {DATABASE: None})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the database and all in it, and close the connections. Raises `SessionError` if something is left."""
        try:
            self._empty("$")
            self.send("POST", f"/v1/namespace/{self.database}/drop", {"mode": "Skip"}, {DATABASE: None})
            left = self._listed("$", "table/list", "tables") + self._listed("$", "list", "namespaces")
            if left:
                raise SessionError(f"database {self.database} was not removed, it holds {', '.join(left)[:300]}")
        finally:
            self.client.close()

    def new_name(self) -> str:
        """A name that nothing in the database has."""
        self._names += 1
        return f"n{self._names}"

    def new_table(self, rows: Any) -> str:
        """A new table with these rows. Raises `CheckFailed` if the server does not create it."""
        name = self.new_name()
        made = self.send("POST", f"/v1/table/{name}/create/?mode=create", rows)
        if made.status != 200:
            raise CheckFailed(f"expected a new table, found status {made.status}", made)
        return name

    def reads(self) -> str:
        """The table that lines share which only read."""
        if self._reads is None:
            self._reads = self.new_table(data.small())
            words = {"column": "text", "index_type": "FTS", **_WORDS}
            made = self.send("POST", f"/v1/table/{self._reads}/create_index/", words)
            if made.status != 200:
                raise CheckFailed(f"expected an index of the text, found status {made.status}", made)
        return self._reads

    def send(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str | None] | None = None
    ) -> RecordedExchange:
        """Send a request with the headers that all clients send. Raises `CheckFailed` without an answer."""
        content, kind = _content(body)
        given: dict[str, str | None] = {
            DATABASE: self.database,
            "x-request-id": str(uuid.uuid4()),
            "content-type": kind,
            **(headers or {}),
        }
        sent = {name: value for name, value in given.items() if value is not None}
        return self.client.exchange(method, path, content, sent)

    def _empty(self, namespace: str) -> None:
        below = "" if namespace == "$" else f"{namespace}$"
        for name in self._listed(namespace, "table/list", "tables"):
            self.send("POST", f"/v1/table/{below}{quote(name, safe='')}/drop/")
        for name in self._listed(namespace, "list", "namespaces"):
            inner = f"{below}{quote(name, safe='')}"
            self._empty(inner)
            self.send("POST", f"/v1/namespace/{inner}/drop", {"mode": "Skip", "behavior": "Restrict"})

    def _listed(self, namespace: str, verb: str, key: str) -> list[str]:
        found: list[str] = []
        token = ""
        for _ in range(200):
            page = self.send("GET", f"/v1/namespace/{namespace}/{verb}{token}")
            if page.status != 200:
                break
            body = orjson.loads(page.received)
            found += body.get(key) or []
            if not body.get("page_token"):
                break
            token = f"?page_token={quote(body['page_token'], safe='')}"
        return found


class LancedbTrial:
    """What one line works with."""

    def __init__(self, session: LancedbSession) -> None:
        self._session = session
        self._kept: Kept = {"db": session.database}
        self._made: list[str] = []

    def close(self) -> None:
        """Drop the tables that were made for the line."""
        for name in self._made:
            self._session.send("POST", f"/v1/table/{name}/drop/")

    def run(self, line: LancedbLine) -> None:
        """Ask for everything that the line asks for.

        Raises:
            CheckFailed: an answer is not what the line says.
            CheckSkipped: the server does not announce this version of the protocol, or says that it does not serve it.
        """
        if self._session.features < _version(line.since):
            announced = ".".join(map(str, self._session.features))
            raise CheckSkipped(f"the server announces protocol {announced}, {line.since} is needed")
        for asked in line.asked:
            self._ask(asked)

    def _ask(self, asked: Asked) -> None:
        path, body, headers = self._filled(asked.path), self._filled(asked.body), self._filled(dict(asked.headers))
        found = self._session.send(asked.method, path, body, headers)
        if found.status not in asked.statuses:
            self._skip_unserved(asked, found)
            expected = " or ".join(map(str, asked.statuses))
            raise CheckFailed(f"expected status {expected}, found {found.status}", found)
        told = difference(found.received, asked.answer, self._kept)
        if told is None and asked.answered:
            told = mismatch(dict(found.headers), asked.answered, "headers", self._kept)
        if told is not None:
            raise CheckFailed(told, found)

    def _skip_unserved(self, asked: Asked, found: RecordedExchange) -> None:
        """Raise `CheckSkipped` where the server says that it does not serve this."""
        said = found.received.decode("utf-8", "replace")
        by_name = asked.refusal is not None and found.status == 400 and asked.refusal in said
        if found.status in _NOT_SERVED or by_name:
            route = asked.path.partition("?")[0]
            raise CheckSkipped(f"not served: {asked.method} {route} ({said[:200]})")

    def _filled(self, value: Any) -> Any:
        if isinstance(value, str):
            for name in ("t", "r", "big", "n", "m"):
                if f"{{{name}}}" in value and name not in self._kept:
                    self._kept[name] = self._make(name)
            for name, known in self._kept.items():
                value = value.replace(f"{{{name}}}", known)
            return value
        if isinstance(value, dict):
            return {self._filled(key): self._filled(each) for key, each in value.items()}
        return [self._filled(each) for each in value] if isinstance(value, list) else value

    def _make(self, name: str) -> str:
        if name == "r":
            return self._session.reads()
        if name in ("n", "m"):
            return self._session.new_name()
        made = self._session.new_table(data.small() if name == "t" else data.big())
        self._made.append(made)
        return made


def _content(body: object) -> tuple[bytes, str | None]:
    if body is None:
        return b"", None
    if isinstance(body, pa.Table):
        return data.stream(body), STREAM
    if isinstance(body, bytes):
        return body, STREAM
    return orjson.dumps(body), "application/json"


def _version(announced: str) -> tuple[int, int, int]:
    try:
        major, minor, patch = map(int, announced.split("."))
    except ValueError:
        raise SessionError(f"{_FEATURES}: expected a version X.Y.Z, found {announced!r}") from None
    return major, minor, patch
