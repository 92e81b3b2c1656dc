"""Collections of a catalog, started by a server in processes of their own.

A collection reads the manifests of each table that changed and parses them, which would hold the interpreter of the
server. Its process can be ended at any moment: the next one goes on.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from lance_core.errors import LanceCoreError
from lance_core.storage.port import ObjectStore
from namespace_server.background.periods import claim_period
from namespace_server.directory.model.root_layout import COLLECTION_PERIODS
from namespace_server.observability.observation import SILENT, CollectionRun, Observer
from namespace_server.read_only import NEVER_READ_ONLY

_log = logging.getLogger(__name__)

_LOOK: Final = 600.0
"""Seconds from the start of a server to its first look whether a collection is due, and between two looks."""
_PAUSE_LOOK: Final = 1.0
"""Seconds between two looks whether a collection that is under way is to end."""
NICENESS: Final = 19
"""Of the process of a collection: it takes what others leave."""
_LAST_WORDS: Final = 2_000


@dataclass(slots=True)
class CollectionSchedule:
    """Starts a collection in each period of `interval` seconds, in one of the servers on a root.

    Attributes:
        store: The root of the catalog.
        interval: Length of a period, by the machine's clock.
        arguments: The arguments of the command `gc`.
        environment: Its environment variables, over those of this process. Secrets belong here.
        look: Seconds between two looks whether one is due, and to the first one.
        observer: Is told of each collection that ends.
        paused: Whether none is to run now. One that is under way is ended.
    """

    store: ObjectStore
    interval: int
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    look: float = _LOOK
    observer: Observer = SILENT
    paused: Callable[[], bool] = NEVER_READ_ONLY.is_on
    _stopped: threading.Event = field(default_factory=threading.Event, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)
    _process: subprocess.Popen[str] | None = field(default=None, init=False)

    def start(self) -> None:
        """Begin to look in the background."""
        self._thread = threading.Thread(target=self._run, name="collections", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End it, and the process of a collection that is under way."""
        self._stopped.set()
        process = self._process
        if process is not None:
            process.terminate()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        tried = -1
        while not self._stopped.wait(self.look):
            period = int(time.time()) // self.interval
            if period == tried or self.paused():
                continue
            tried = period
            try:
                if claim_period(self.store, COLLECTION_PERIODS, period):
                    self._collect()
            except (LanceCoreError, OSError) as error:
                _log.warning("collection: %s", error)

    def _collect(self) -> None:
        began = time.monotonic()
        command = [sys.executable, "-m", "namespace_server", "gc", "--changed", "--json", *self.arguments]
        self._process = subprocess.Popen(  # noqa: S603 - no shell; the arguments are the server's own settings
            command,
            env=os.environ | dict(self.environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        os.setpriority(os.PRIO_PROCESS, self._process.pid, NICENESS)
        output, errors, was_paused = self._await(self._process)
        if self._stopped.is_set() or was_paused:
            return
        report = _parsed(output)
        if report is None:
            _log.warning(
                "collection failed with status %d: %s", self._process.returncode, errors[-_LAST_WORDS:].strip()
            )
            self.observer.collection(CollectionRun(None, time.monotonic() - began))
            return
        removed = {reason: found["files"] for reason, found in report["removed"].items()}
        size = sum(found["size"] for found in report["removed"].values())
        _log.info("collection: removed %s; %d bytes; complete: %s", removed or "nothing", size, report["complete"])
        for location, problem in report["not_judged"].items():
            _log.warning("collection: the table at %s was left alone: %s", location, problem)
        if report["refused"]:
            path, problem = next(iter(report["refused"].items()))
            _log.warning(
                "collection: %d objects were not removed, the first is %s: %s", len(report["refused"]), path, problem
            )
        self.observer.collection(
            CollectionRun(
                report["complete"], time.monotonic() - began, sum(removed.values()), size, len(report["not_judged"])
            )
        )

    def _await(self, process: subprocess.Popen[str]) -> tuple[str, str, bool]:
        """What a collection wrote when it has ended, and whether it was ended because nothing is to run now."""
        was_paused = False
        while True:
            try:
                return *process.communicate(timeout=_PAUSE_LOOK), was_paused
            except subprocess.TimeoutExpired:
                if self.paused() and not was_paused:
                    was_paused = True
                    _log.info("collection: ended, the server is read-only; the next one goes on")
                    process.terminate()


def _parsed(output: str) -> dict[str, Any] | None:
    """The report of a collection; None if its process died before it was written as a whole."""
    try:
        return cast("dict[str, Any]", json.loads(output))
    except ValueError:
        return None
