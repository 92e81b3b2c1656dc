"""The load generator, a C program, and its use from Python."""

from __future__ import annotations

import json
import struct
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import orjson

SOURCE = Path(__file__).with_name("batch_load.c")
BINARY = Path(__file__).resolve().parents[2] / ".cache" / "batch_load"


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request of connection number `connection`. `body` is Arrow IPC as bytes, or JSON; None sends none.

    `headers` are added to those of every request.
    """

    connection: int
    method: str
    path: str
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Load:
    """The outcome of a run. Times in seconds; latencies are those of single requests, answered 2xx or not."""

    requests: int
    failed: int
    seconds: float
    per_second: float
    p50: float
    p99: float


def drive(
    port: int,
    connections: int,
    requests: Iterable[Request],
    directory: Path,
    seconds: float = 0,
    *,
    may_fail: bool = False,
) -> Load:
    """Send the requests to 127.0.0.1:`port`, each connection its own in order: once, or repeated for `seconds`.

    Raises `RuntimeError` when a connection breaks, and unless it `may_fail`, when any answer is not 2xx. `directory`
    takes the request file.
    """
    program = _compile()
    script = directory / "requests.bin"
    with script.open("wb") as file:
        for request in requests:
            encoded = encode_request(request)
            file.write(struct.pack("<II", request.connection, len(encoded)) + encoded)
    command = [str(program), str(port), str(connections), str(script), str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    script.unlink()
    if done.returncode:
        raise RuntimeError(f"load generator ended with status {done.returncode}: {done.stderr.strip()}")
    found = json.loads(done.stdout)
    if found["failed"] and not may_fail:
        raise RuntimeError(f"{found['failed']} of {found['requests']} requests failed: {done.stderr.strip()}")
    return Load(
        found["requests"],
        found["failed"],
        found["seconds"],
        found["per_second"],
        found["p50_us"] / 1e6,
        found["p99_us"] / 1e6,
    )


def encode_request(request: Request) -> bytes:
    """The bytes of an HTTP/1.1 request that keeps the connection open."""
    match request.body:
        case None:
            body, kind = b"", ""
        case bytes():
            body, kind = request.body, "application/vnd.apache.arrow.stream"
        case _:
            body, kind = orjson.dumps(request.body), "application/json"
    lines = [f"{request.method} {request.path} HTTP/1.1", "host: 127.0.0.1", f"content-length: {len(body)}"]
    if body:
        lines.append(f"content-type: {kind}")
    lines += [f"{name}: {value}" for name, value in request.headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def object_path(identifier: Iterable[str]) -> str:
    """An id as it stands in a route: components joined with `$`, percent-encoded."""
    return quote("$".join(identifier), safe="")


def _compile() -> Path:
    """Build the load generator unless a current one is there. Raises `RuntimeError` without a C compiler."""
    if BINARY.exists() and BINARY.stat().st_mtime >= SOURCE.stat().st_mtime:
        return BINARY
    BINARY.parent.mkdir(exist_ok=True)
    try:
        subprocess.run(["cc", "-O2", "-std=c11", "-o", BINARY, SOURCE], check=True)
    except FileNotFoundError as error:
        raise RuntimeError("no C compiler found: install gcc (Debian: apt-get install gcc libc6-dev)") from error
    return BINARY
