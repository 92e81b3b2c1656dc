"""Servers that are killed, held and started again within milliseconds: forks of a process that has imported all of it.

On standard input of that process each line is a server to fork: a JSON object with `root`, `log`, `port`, `defect`
(null or a key of `planted.DEFECTS`) and `environment`. On standard output: `pid <n>`, what the server itself says, and
`ended <n>`.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from benchmarks.support.gateway import BUCKET, Gateway
from tests.server.servers import REPOSITORY

PORTS = range(20_000, 32_000)
PEER_SECRET = "a secret of servers"
"""Below those that connections take: a server that is started again needs the same one."""


@dataclass(frozen=True)
class Place:
    """Where the root of a history is: its URI, its files on this machine, and what servers need to reach it."""

    uri: str
    directory: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def below(cls, home: Path) -> Place:
        """In a directory."""
        return cls(str(home / "root"), home / "root")

    @classmethod
    def on(cls, gateway: Gateway, name: str) -> Place:
        """Behind an S3 gateway, whose objects are files. This process gets the keys of its clients."""
        os.environ.update(gateway.environment)
        return cls(f"s3://{BUCKET}/{name}", gateway.directory / name, gateway.environment)


@dataclass(slots=True)
class Server:
    """A server at an address that it keeps."""

    factory: ServerFactory
    order: dict[str, Any]
    url: str
    pid: int

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def start(self) -> None:
        """Start it again after a kill."""
        self.pid, self.url = self.factory.fork(self.order)

    def hold(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def stop(self) -> None:
        """Ask it to end, and wait until it has: it answers what it accepted, and sweeps once more."""
        os.kill(self.pid, signal.SIGTERM)
        self.factory.await_end(self.pid)


class ServerFactory:
    """The process that forks the servers. A context manager; the servers are to end before it."""

    def __init__(self) -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": str(REPOSITORY),
            "LANCE_NAMESPACE_CHANGE_WORKERS": "1",
            "LANCE_NAMESPACE_READ_WORKERS": "1",
        }
        command = [sys.executable, "-m", "tests.histories.servers"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=REPOSITORY
        )
        self._lock = threading.Lock()

    @contextmanager
    def servers(
        self,
        place: Place,
        home: Path,
        number: int,
        *,
        defect: str | None = None,
        peers: bool = False,
    ) -> Iterator[list[Server]]:
        """Servers on one root, which have ended well when the block ends. They share a secret if they are `peers`."""
        ports = _free_ports(number)
        with contextlib.ExitStack() as running:
            started = []
            known = {"LANCE_NAMESPACE_PEER_SECRET": PEER_SECRET} if peers else {}
            for at, port in enumerate(ports):
                log = home / f"server{at}.log"
                order = {"root": place.uri, "log": str(log), "port": port, "defect": defect}
                order["environment"] = {**place.environment, **known}
                pid, url = self.fork(order)
                started.append(Server(self, order, url, pid))
                running.callback(started[-1].stop)
            yield started

    def fork(self, order: dict[str, Any]) -> tuple[int, str]:
        assert self._process.stdin is not None
        with self._lock:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            pid = url = None
            while pid is None or url is None:
                line = self._line()
                if line.startswith("pid "):
                    pid = int(line.split()[1])
                elif "http://" in line:
                    url = line.rpartition(" ")[2]
                assert line != f"ended {pid}", Path(order["log"]).read_text()
            return pid, url

    def await_end(self, pid: int) -> None:
        with self._lock:
            while self._line() != f"ended {pid}":
                pass

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the process that forks the servers has ended"
        return line.strip()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
        self._process.stdout.close()


def _free_ports(number: int) -> list[int]:
    found: set[int] = set()
    while len(found) < number:
        port = random.choice(PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found.add(port)
    return list(found)


def serve(order: dict[str, Any]) -> None:
    """Be a server, by its own command line."""
    from namespace_server.cli import cli
    from tests.histories.planted import DEFECTS

    os.dup2(os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
    if order["defect"] is not None:
        DEFECTS[order["defect"]]()
    os.environ.update(order["environment"])
    sys.argv = ["lance-namespace", "serve", "--root", order["root"], "--port", str(order["port"])]
    sys.argv += ["--durability", "none"]
    cli()


def main() -> None:
    """Fork servers until standard input ends."""
    import tests.histories.planted  # noqa: F401  (all that takes long, before the first fork)

    warnings.filterwarnings("ignore", "lance is not fork-safe")  # it is until its first use, which is in the child
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no server is waited for
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.close(0)
            try:
                serve(json.loads(line))
            except BaseException as ended:  # noqa: BLE001 - the end of a fork
                if not isinstance(ended, SystemExit):
                    traceback.print_exc()
            print("ended", os.getpid(), flush=True)
            os._exit(0)
        print("pid", child, flush=True)


if __name__ == "__main__":
    main()
