"""The two servers under test, each in its own process on a loopback port: ours and pylance's RestAdapter."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import orjson

START_LIMIT = 120.0
"""Seconds until a server that does not answer is given up."""

PEER = """
import sys
from lance.namespace import RestAdapter
adapter = RestAdapter("dir", {"root": sys.argv[1], "table_version_tracking_enabled": "true"}, port=int(sys.argv[2]))
with adapter:
    sys.stdin.read()
"""


_SCHEDULED = 2
"""Of the clocks of a process, which clock_getcpuclockid(3) numbers by its id, that of the time on a processor."""
JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"


class Connection:
    """A connection to a server on a loopback port. By the standard library: of the clients it takes the least time.

    `headers` are sent with each request. `catalog_version` is that of the last answer.
    """

    def __init__(self, port: int, headers: Mapping[str, str] | None = None) -> None:
        self._headers = dict(headers or {})
        self.catalog_version = 0
        self._http = http.client.HTTPConnection("127.0.0.1", port, timeout=600)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it."""
        self._http.close()

    def send(self, path: str, body: bytes | None, media_type: str = JSON, *, method: str = "POST") -> bytes:
        """Send one request and return the answer. Raises `RuntimeError` unless it is 2xx."""
        kind = {} if body is None else {"content-type": media_type}
        self._http.request(method, path, body, {**self._headers, **kind})
        response = self._http.getresponse()
        data = response.read()
        self.catalog_version = int(response.headers.get("x-lance-catalog-version") or 0)
        if response.status // 100 != 2:
            raise RuntimeError(f"{method} {path} answered {response.status}: {data[:800]!r}")
        return data


@dataclass(frozen=True, slots=True)
class Server:
    """A running server. `started` is the time in seconds from the start of the process to the first answer."""

    port: int
    pid: int
    started: float

    def call(self, method: str, path: str, body: object = None) -> Any:
        """Send one request and return the decoded answer. Raises `RuntimeError` unless it is 2xx."""
        with self.connect() as connection:
            data = connection.send(path, None if body is None else orjson.dumps(body), method=method)
        return orjson.loads(data) if data else {}

    def connect(self) -> Connection:
        """A connection of its own."""
        return Connection(self.port)

    def processor_seconds(self) -> float:
        """Seconds of processor time that the server process has taken, without its children."""
        return time.clock_gettime(~self.pid << 3 | _SCHEDULED)

    def resident_bytes(self) -> int:
        """Physical memory that the server process holds."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise RuntimeError(f"process {self.pid} reports no resident memory")


@contextmanager
def serve_ours(
    root: Path | str,
    durability: str = "none",
    environment: Mapping[str, str] | None = None,
    port: int | None = None,
) -> Iterator[Server]:
    """Our server on `root`; ready when the block begins, stopped when it ends. `environment` is added to its own.

    It listens on a free port, unless one is given.
    """
    port = port or free_port()
    command = [sys.executable, "-m", "namespace_server", "serve", "--root", str(root), "--port", str(port)]
    # The peer writes no access log; where ours does, that takes a fifth to a third of the time of a cached read.
    variables = {**os.environ, "LANCE_NAMESPACE_ACCESS_LOG": "false", **(environment or {})}
    with _run([*command, "--durability", durability], port, "/health/ready", variables) as server:
        yield server


@contextmanager
def serve_peer(root: Path | str, environment: Mapping[str, str] | None = None) -> Iterator[Server]:
    """pylance's RestAdapter over its DirectoryNamespace on `root`, with managed table versions.

    It counts as started when it has listed the root's namespaces once. `environment` is added to its own.
    """
    port = free_port()
    command = [sys.executable, "-c", PEER, str(root), str(port)]
    with _run(command, port, "/v1/namespace/%24/list?limit=1", {**os.environ, **(environment or {})}) as server:
        yield server


@contextmanager
def _run(command: list[str], port: int, first: str, environment: Mapping[str, str] | None = None) -> Iterator[Server]:
    began = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment)
    try:
        _wait_for(port, first, process)
        yield Server(port, process.pid, time.perf_counter() - began)
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdin is not None:
            process.stdin.close()


def _wait_for(port: int, path: str, process: subprocess.Popen[bytes]) -> None:
    limit = time.monotonic() + START_LIMIT
    while time.monotonic() < limit:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with status {process.returncode} before it answered")
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=START_LIMIT)
        try:
            connection.request("GET", path)
            if connection.getresponse().status == 200:
                return
        except ConnectionError:
            pass
        finally:
            connection.close()
        time.sleep(0.01)
    raise RuntimeError(f"the server did not answer GET {path} within {START_LIMIT:.0f} s")


def free_port() -> int:
    """A loopback port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
