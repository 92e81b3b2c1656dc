"""An S3 gateway over a directory in memory, behind a proxy that delays its answers and counts its requests."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import httpx
import uvloop

from benchmarks.support.servers import free_port

PROJECT = Path(__file__).resolve().parents[2]
MEMORY = Path("/dev/shm")
BUCKET = "bench"
_VERBS = {verb[:4].ljust(4): verb for verb in ("GET", "PUT", "HEAD", "POST", "DELETE")}


@dataclass(frozen=True, slots=True)
class Gateway:
    """A running gateway with one bucket.

    Attributes:
        directory: The directory that is served as the bucket: files that are put there are objects.
        environment: What a client's process needs to reach it.
        pids: The processes of the gateway and of the proxy.
    """

    directory: Path
    environment: Mapping[str, str]
    pids: tuple[int, int]
    _proxy: subprocess.Popen[str]

    def requests(self) -> Counter[str]:
        """The requests since the start, by HTTP method."""
        if self._proxy.stdin is None or self._proxy.stdout is None:
            raise RuntimeError("the proxy has no pipes")
        self._proxy.stdin.write("count\n")
        self._proxy.stdin.flush()
        return Counter(json.loads(self._proxy.stdout.readline()))

    def collect(self, root: str) -> None:
        """Collect the catalog at this root once, as every server does sooner or later: flips cost less from then on."""
        command = [sys.executable, "-m", "namespace_server", "gc", root]
        subprocess.run(command, check=True, env={**os.environ, **self.environment}, stdout=subprocess.DEVNULL)


@contextmanager
def serve_gateway(delay: float) -> Iterator[Gateway]:
    """versitygw whose answers come `delay` seconds later. Raises `RuntimeError` if it does not start."""
    program = subprocess.run(
        [PROJECT / "scripts/versitygw.sh"], check=True, stdout=subprocess.PIPE, text=True
    ).stdout.strip()
    with tempfile.TemporaryDirectory(prefix="lance-gateway-", dir=MEMORY) as directory:
        bucket = Path(directory) / BUCKET
        bucket.mkdir()
        port = free_port()
        command = [program, "--quiet", "--access", "key", "--secret", "secret", "--port", f"127.0.0.1:{port}"]
        command += ["posix", directory]
        with (
            _process(command, stdout=subprocess.DEVNULL) as gateway,
            _process(
                [sys.executable, "-m", "benchmarks.support.gateway", str(port), str(delay)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            ) as proxy,
        ):
            _await_answer(port, gateway)
            if proxy.stdout is None:
                raise RuntimeError("the proxy has no output")
            environment = {
                "AWS_ENDPOINT_URL": f"http://127.0.0.1:{int(proxy.stdout.readline())}",
                "AWS_ACCESS_KEY_ID": "key",
                "AWS_SECRET_ACCESS_KEY": "secret",
                "AWS_REGION": "us-east-1",
                "AWS_ALLOW_HTTP": "true",
            }
            yield Gateway(bucket, environment, (gateway.pid, proxy.pid), proxy)


@contextmanager
def _process(command: list[str], *, stdout: int, stdin: int = subprocess.DEVNULL) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, stdin=stdin, stdout=stdout, stderr=subprocess.DEVNULL, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _await_answer(port: int, process: subprocess.Popen[str]) -> None:
    limit = time.monotonic() + 30
    while time.monotonic() < limit and process.poll() is None:
        with suppress(httpx.TransportError):
            httpx.get(f"http://127.0.0.1:{port}/")
            return
        time.sleep(0.05)
    raise RuntimeError("the S3 gateway did not start")


class _Answers(asyncio.Protocol):
    """The connection to the gateway: what comes is passed on later."""

    def __init__(self, client: asyncio.Transport, delay: float) -> None:
        self._client = client
        self._delay = delay
        self._loop = asyncio.get_running_loop()

    def data_received(self, data: bytes) -> None:
        self._loop.call_later(self._delay, self._client.write, data)

    def connection_lost(self, _error: Exception | None) -> None:
        self._loop.call_later(self._delay, self._client.close)


class _Requests(asyncio.Protocol):
    """A connection of a client: what comes is passed on at once."""

    def __init__(self, port: int, delay: float, counts: Counter[str]) -> None:
        self._port = port
        self._delay = delay
        self._counts = counts
        self._upstream: asyncio.Transport | None = None
        self._early: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._connecting = asyncio.ensure_future(self._connect(cast("asyncio.Transport", transport)))

    async def _connect(self, client: asyncio.Transport) -> None:
        loop = asyncio.get_running_loop()
        upstream, _ = await loop.create_connection(lambda: _Answers(client, self._delay), "127.0.0.1", self._port)
        upstream.writelines(self._early)
        self._upstream = upstream

    def data_received(self, data: bytes) -> None:
        verb = _VERBS.get(data[:4].decode("latin-1"))
        if verb is not None:
            self._counts[verb] += 1
        if self._upstream is None:
            self._early.append(data)
        else:
            self._upstream.write(data)

    def connection_lost(self, _error: Exception | None) -> None:
        if self._upstream is not None:
            self._upstream.close()


async def _delay_answers(port: int, delay: float) -> None:
    """Serve until the input ends: each of its lines is answered by the number of requests so far."""
    loop = asyncio.get_running_loop()
    counts: Counter[str] = Counter()
    server = await loop.create_server(lambda: _Requests(port, delay, counts), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        print(json.dumps(counts), flush=True)


if __name__ == "__main__":
    uvloop.run(_delay_answers(int(sys.argv[1]), float(sys.argv[2])))
