"""A server with the console, keys, an audit log and some tables; and visitors."""

from __future__ import annotations

import io
import re
import secrets
import wave
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from namespace_client import Catalog
from namespace_console.application import Console
from namespace_server.app import Application, create_app
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.observability.metrics.measures import ServerMetrics
from namespace_server.rest.identity import Authenticator
from tests.audit.lines import log_in
from tests.running import serving

KEYS = {"a key of ann, long enough": "ann", "a key of bob, long enough": "bob", "a key of eve, long enough": "eve"}
KEY_OF = {principal: key for key, principal in KEYS.items()}
SECRETS = re.compile("|".join(map(re.escape, KEYS)))
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u202eevil\u0007\u200b" + "x" * 10_000
"""A text that would be a script, turns others around, cannot be seen, and is long."""


PNG = b"\x89PNG\r\n\x1a\n" + bytes(24)
"""What begins as an image."""


def tone(seconds: int) -> bytes:
    """A sound: 16,000 bytes for each second."""
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8_000)
        sound.writeframes(bytes(range(250)) * (64 * seconds))
    return file.getvalue()


@dataclass
class Visitor:
    """A browser of somebody."""

    http: httpx.Client

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self.http.get(f"/console{path}", headers=headers)

    def token(self, path: str = "/sign-in") -> str:
        found = re.search(r'name="form" value="([0-9a-f]{64})"', self.get(path).text)
        assert found
        return found[1]

    def post(self, path: str, fields: dict[str, str], of: str = "/sign-in", **headers: str) -> httpx.Response:
        return self.http.post(f"/console{path}", data={"form": self.token(of), **fields}, headers=headers)

    def sign_in(self, key: str, means: str = "key", **fields: str) -> httpx.Response:
        return self.post("/sign-in", {"means": means, "credential": key, **fields})

    def text(self, path: str) -> str:
        """The text of a page, as a reader without scripts sees it."""
        answer = self.get(path)
        assert answer.status_code == 200, answer.text
        return text_of(answer.text)


def text_of(page: str) -> str:
    found = re.search(r"<main.*</main>", page, re.DOTALL)
    assert found
    words = re.sub(r"<[^>]+>", " ", re.sub(r"</?(?:a|bdi|code|strong|time)\b[^>]*>", "", found[0]))
    return " ".join(unescape(words).split())


@dataclass
class Site:
    """The server: its address, its application, and what ann may do by the API."""

    url: str
    app: Application
    owner: Catalog
    asked: list[str]
    open: ExitStack

    def visitor(self, principal: str | None = None) -> Visitor:
        made = Visitor(self.open.enter_context(httpx.Client(base_url=self.url, verify=False, timeout=30)))
        if principal is not None:
            assert made.sign_in(KEY_OF[principal]).status_code == 303
        return made


class Counted:
    """The console, which notes the requests that it makes."""

    def __init__(self, asked: list[str]) -> None:
        self._console = Console()
        self._asked = asked

    def __call__(self, scope: Any, receive: Any, send: Any) -> Any:
        return self._console(scope, receive, send)

    def lifespan(self, server: Any) -> Any:
        async def counted(scope: Any, receive: Any, send: Any) -> None:
            query = scope["query_string"].decode()
            self._asked.append(f"{scope['method']} {scope['path']}" + (f"?{query}" if query else ""))
            await server(scope, receive, send)

        return self._console.lifespan(counted)


@contextmanager
def open_site(root: Path) -> Iterator[Site]:
    """A server without any table; bob is an auditor."""
    asked: list[str] = []
    metrics = ServerMetrics()
    app = create_app(
        DirectoryNamespace(root=str(root / "catalog"), durability="none", observer=metrics),
        Authenticator(KEYS, wrong_keys=0),
        attempts=log_in(root / "audit"),
        auditors=["bob"],
        metrics=metrics,
    )
    app.mount("console", Counted(asked))
    with serving(app) as url, Catalog.connect(url, api_key=KEY_OF["ann"]) as owner, ExitStack() as visitors:
        yield Site(url, app, owner, asked, visitors)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server with some batches; bob is an auditor, and eve has no grant."""
    with open_site(tmp_path_factory.mktemp("console")) as found:
        _fill(found.owner)
        yield found


def _fill(catalog: Catalog) -> None:
    for name in (["shop"], ["hidden"]):
        catalog.create_namespace(name)
    with catalog.begin(message="the first orders") as tx:
        tx.create(["shop", "orders"], pa.table({"id": [1, 2, 3], "what": ["a", "b", "c"]}))
        tx.create(["shop", "people"], pa.table({"id": [1]}))
    with catalog.begin(message=HOSTILE) as tx:
        tx.append(["shop", "orders"], pa.table({"id": [4], "what": [HOSTILE]}))
    with catalog.begin(message="a secret of the hidden") as tx:
        tx.create(["hidden", "salaries"], pa.table({"id": [1, 2]}))
    with catalog.begin(message="fewer orders") as tx:
        tx.delete(["shop", "orders"], "id = 1")


@pytest.fixture(scope="session")
def ann(site: Site) -> Visitor:
    """Ann, on a site with a table that has everything that screens show."""
    blob = {"lance-encoding:blob": "true"}
    schema = pa.schema(
        [
            pa.field("id", pa.int64()),
            pa.field("words", pa.string()),
            pa.field("nested", pa.list_(pa.struct([("to", pa.string())]))),
            pa.field("vector", pa.list_(pa.float32(), 2)),
            pa.field("picture", pa.large_binary(), metadata=blob),
            pa.field("page", pa.large_binary(), metadata=blob),
            pa.field("small", pa.binary()),
            pa.field("sound", pa.large_binary(), metadata=blob),
        ]
    )
    rows = [
        {
            "id": number,
            "words": f"red fox {number}",
            "nested": [{"to": HOSTILE}],
            "vector": [float(number), 1.0],
            "picture": PNG,
            "page": b"<html><script>alert(1)</script>",
            "sound": tone(10) if number == 0 else None,
            "small": PNG if number % 2 else b"<svg onload='alert(1)'>",
        }
        for number in range(60)
    ]
    owner = site.owner
    owner.create_namespace(("shown",), properties={"maintenance.compact": "false", "x": HOSTILE})
    name = ("shown", "all")
    owner.create(name, pa.Table.from_pylist(rows, schema=schema), properties={HOSTILE[:60]: HOSTILE})
    with owner.begin() as tx:
        tx.create_index(name, "words", "INVERTED")
    owner.append(name, pa.Table.from_pylist(rows[:2], schema=schema))
    owner.create_tag(name, "first", version=1)
    owner.create_branch(name, "dev")
    odd = '<i>odd & "name'
    owner.create(("shown", odd), pa.table({HOSTILE[:80]: [1], "c": [HOSTILE]}), message=HOSTILE)
    return site.visitor("ann")


@pytest.fixture
def fresh_name() -> str:
    return f"t{secrets.token_hex(4)}"


@pytest.fixture
def root(tmp_path: Path) -> str:
    return str(tmp_path / "catalog")


@pytest.fixture
def echo_catalog() -> Any:
    from tests.rest.conftest import EchoCatalog

    return EchoCatalog()
