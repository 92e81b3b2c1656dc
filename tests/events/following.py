"""A server in a thread whose events are followed, and what streams of them say."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from namespace_server.app import Application, create_app
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.rest.identity import Authenticator
from namespace_server.rest.request.limits import RequestLimits
from namespace_server.serving import Server, ServingOptions

STREAM = {"accept": "text/event-stream"}


class Followed:
    """A server on a root, and its port; `app` is the application."""

    def __init__(self, app: Application, server: Server) -> None:
        self.app = app
        self.server = server
        self.url = server.url
        self.http = httpx.Client(base_url=server.url, timeout=30)

    def namespace(self, name: str) -> int:
        """Commit a namespace; the catalog version that it made."""
        answer = self.http.post(f"/v1/namespace/{name}/create", json={})
        assert answer.status_code == 200, answer.text
        return int(answer.headers["x-lance-catalog-version"])

    def events(self, **query: object) -> dict[str, Any]:
        answer = self.http.get("/v1/catalog/events", params={key: str(value) for key, value in query.items()})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    @contextmanager
    def stream(self, headers: Mapping[str, str] | None = None, **query: object) -> Iterator[Stream]:
        given = {key: str(value) for key, value in query.items()}
        with (
            httpx.Client(base_url=self.url, timeout=30) as http,
            http.stream("GET", "/v1/catalog/events", params=given, headers={**STREAM, **(headers or {})}) as answer,
        ):
            yield Stream(answer)


class Stream:
    """An open stream: its events, as they come."""

    def __init__(self, answer: httpx.Response) -> None:
        self.answer = answer
        self.comments = 0
        self._lines = answer.iter_lines()

    def __iter__(self) -> Iterator[tuple[int, dict[str, Any]]]:
        version = 0
        for line in self._lines:
            name, _, value = line.partition(": ")
            if line.startswith(":"):
                self.comments += 1
            elif name == "id":
                version = int(value)
            elif name == "data":
                yield version, json.loads(value)

    def take(self, count: int) -> list[int]:
        """The catalog versions of the next events."""
        found = []
        for version, event in self:
            assert event["data"]["catalog_version"] == version
            found.append(version)
            if len(found) == count:
                break
        return found


@contextmanager
def followed(
    root: Path, *, keys: Mapping[str, str] | None = None, port: int = 0, streams: int = 128
) -> Iterator[Followed]:
    """A server on a root, which ends with the block."""
    namespace = DirectoryNamespace(root=str(root), durability="none", sweep_interval_seconds="0")
    app = create_app(namespace, Authenticator(keys or {}), limits=RequestLimits(event_streams=streams))
    server = Server(app, ServingOptions(port=port, shutdown_timeout=20))
    started = threading.Event()
    thread = threading.Thread(target=server.run, args=(started.set,))
    thread.start()
    assert started.wait(30)
    found = Followed(app, server)
    try:
        yield found
    finally:
        found.http.close()
        server.stop()
        thread.join()


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port
