"""A nursery of server processes with bad stores: they die at a chosen write, or are left without answers now and then.

Everything is imported once; each line on standard input is a server to fork: a JSON object with `root`, `log`, `kill`
(null or [number of the write, whether after it]; the log names each write before it is made) and `lose` (0, or the
share of writes whose answer is lost). On standard output: `pid <n>`, what the server itself says, and
`ended <status>` as `waitpid` has it.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from lance_core.errors import StorageError, StorageUnknown
from lance_core.storage.port import ObjectStore
from lance_core.storage.wrappers.delegation import WrappedStore
from namespace_server.cli import cli, server  # noqa: F401  (what it imports takes longest: before the fork)
from namespace_server.directory import properties
from tests.storage.faults import WRITES

R = TypeVar("R")


class KillingStore(WrappedStore):
    """Writes to `log` what it is about to write, and ends this process by SIGKILL at one of the writes."""

    def __init__(self, inner: ObjectStore, log: int, kill: tuple[int, bool] | None) -> None:
        super().__init__(inner)
        self._log = log
        self._kill = kill
        self._made = 0
        self._lock = threading.Lock()

    def _call(self, verb: str, path: str, request: Callable[[], R]) -> R:
        if verb not in WRITES or path.endswith("/probe"):  # a server looks at its start whether it can write
            return request()
        with self._lock:  # one write at a time, so that the log is the truth about the others
            number, self._made = self._made, self._made + 1
            os.write(self._log, f"{number} {verb} {path}\n".encode())
            if self._kill == (number, False):
                os.kill(os.getpid(), signal.SIGKILL)
            answer = request()
            if self._kill == (number, True):
                os.kill(os.getpid(), signal.SIGKILL)
            return answer


class LossyStore(WrappedStore):
    """Of a share of the writes the answer is lost; the write was made, or never is, or is made a little later."""

    def __init__(self, inner: ObjectStore, share: float) -> None:
        super().__init__(inner)
        self._share = share
        self._chance = random.Random(share)

    def _call(self, verb: str, path: str, request: Callable[[], R]) -> R:
        if verb not in WRITES or self._chance.random() >= self._share:
            return request()
        match self._chance.randrange(3):
            case 0:
                with contextlib.suppress(StorageError):
                    request()
            case 1:
                timer = threading.Timer(self._chance.random() / 10, self._late, [request])
                timer.daemon = True
                timer.start()
        raise StorageUnknown(f"{verb} {path}: the answer was lost")

    @staticmethod
    def _late(request: Callable[[], object]) -> None:
        with contextlib.suppress(StorageError):
            request()


def serve(order: dict[str, Any]) -> None:
    """Be a server, by its own command line."""
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    kill = None if order["kill"] is None else (order["kill"][0], order["kill"][1])
    opened = properties.open_store

    def open_store(*arguments: Any, **options: Any) -> ObjectStore:
        store = opened(*arguments, **options)
        return LossyStore(store, order["lose"]) if order["lose"] else KillingStore(store, log, kill)

    properties.open_store = open_store  # type: ignore[assignment]
    os.dup2(log, 2)
    sys.argv = ["lance-namespace", "serve", "--root", order["root"], "--port", "0", "--durability", "none"]
    cli()


def main() -> None:
    """Fork servers, one after another, until standard input ends."""
    warnings.filterwarnings("ignore", "lance is not fork-safe")  # it is until its first use, which is in the child
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            os.close(0)
            try:
                serve(json.loads(line))
            except SystemExit as ended:
                sys.stdout.flush()
                os._exit(1 if ended.code else 0)
            os._exit(0)
        print("pid", child, flush=True)
        _, status = os.waitpid(child, 0)
        print("ended", os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
