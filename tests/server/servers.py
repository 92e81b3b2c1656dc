"""The real server as a process of its own, and plain HTTP to it."""

from __future__ import annotations

import http.client
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Self
from urllib.parse import quote, urlsplit

import orjson

from tests.server.forking import ForkedProcess, fork

REPOSITORY = Path(__file__).resolve().parents[2]
NO_KEY = "credentials: expected x-api-key or Authorization: Bearer, found neither"
UNKNOWN_KEY = "credentials: the key is not known"
"""What a server says that has keys."""


class Answer:
    """What came back: the status, the body as JSON (None if there was none), and the headers."""

    def __init__(self, status: int, data: bytes, headers: dict[str, str]) -> None:
        self.status = status
        self.body: Any = orjson.loads(data) if data else None
        self.headers = headers

    @property
    def code(self) -> int | None:
        """The error code of the namespace API."""
        return None if self.status == 200 else self.body["code"]

    @property
    def catalog_version(self) -> int:
        return int(self.headers["x-lance-catalog-version"])


def send(
    url: str, method: str, path: str, data: bytes = b"", headers: dict[str, str] | None = None, timeout: float = 60
) -> Answer:
    """One request, its path and body byte for byte as given."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=timeout)
    try:
        connection.request(method, path, data, {"content-type": "application/json"} if headers is None else headers)
        response = connection.getresponse()
        return Answer(response.status, response.read(), {name.lower(): value for name, value in response.getheaders()})
    finally:
        connection.close()


def path_of(*names: str) -> str:
    """An id as a path segment."""
    return quote("$".join(names) or "$", safe="")


class ServerProcess:
    """`lance-namespace serve` on a free port. Ends with the `with` block; `start` begins it anew on the same root.

    `environment` is put over that of this process, `keys` has the principals of API keys, `source` is the directory
    of the project whose server it is, and `config` its settings file. It is forked from a process that has imported
    it, unless it is to be a process `alone`, as users start it, or is of another source.
    """

    def __init__(
        self,
        root: Path | str,
        *,
        log: Path,
        environment: Mapping[str, str] | None = None,
        keys: Mapping[str, str] | None = None,
        source: Path = REPOSITORY,
        config: Path | None = None,
        alone: bool = False,
    ) -> None:
        self.root = root
        self.log = log
        self._source = source
        self._alone = alone or source != REPOSITORY
        self._config = () if config is None else ("--config", str(config))
        known = {"LANCE_NAMESPACE_API_KEYS": orjson.dumps(keys).decode()} if keys else {}
        self._environment = os.environ | (environment or {}) | known
        self.url = ""
        self._process: subprocess.Popen[str] | ForkedProcess | None = None
        self.start()

    def start(self) -> None:
        arguments = ["serve", "--root", str(self.root), "--port", "0", "--durability", "none", *self._config]
        with self.log.open("a") as log:
            process = self._run_alone(arguments, log) if self._alone else fork(arguments, self._environment, log)
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found is not None, self.log.read_text()
        self.url, self._process = found.group(), process

    def _run_alone(self, arguments: list[str], log: IO[str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "namespace_server", *arguments],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=self._source,
            env=self._environment,
        )

    def stop(self) -> None:
        """Ask the server to end, and wait: it finishes what it accepted, and sweeps once more."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        assert process.wait(timeout=60) in {0, -15}, self.log.read_text()
        assert process.stdout is not None
        process.stdout.close()

    def restart(self) -> None:
        self.stop()
        self.start()

    def call(self, method: str, path: str, body: object = None) -> Answer:
        """One request with a JSON body, whatever the answer."""
        return send(self.url, method, path, b"" if body is None else orjson.dumps(body))

    def ask(self, operation: str, *names: str, query: str = "", **body: Any) -> Any:
        """A `POST` about a table that must succeed; the body of the answer."""
        answer = self.call("POST", f"/v1/table/{path_of(*names)}/{operation}{query and '?' + query}", body)
        assert answer.status == 200, answer.body
        return answer.body

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
