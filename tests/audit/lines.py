"""Attempts and logs for tests."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from namespace_server.attempts import AttemptedObject, AttemptRecord, RequestOrigin
from namespace_server.observability.audit.files import Clocks, LineFiles
from namespace_server.observability.audit.log import RefusedAttemptLog
from namespace_server.observability.audit.reading import DirectoryReader

DAY = 86_400.0
NOON = 1_790_000_000.0 // DAY * DAY + DAY / 2
"""Noon of a day, in seconds since the epoch."""


@dataclass
class Clock:
    """A clock that a test moves. What it shows and what has elapsed can be moved apart."""

    now: float = NOON
    elapsed: float = 1_000.0

    @property
    def clocks(self) -> Clocks:
        return Clocks(lambda: self.now, lambda: self.elapsed)

    def passes(self, seconds: float) -> None:
        self.now += seconds
        self.elapsed += seconds


def attempt(request_id: str = "r", **given: Any) -> AttemptRecord:
    """An attempt by ann at table a$t."""
    client = given.pop("client", "192.0.2.1")
    usual: dict[str, Any] = {
        "action": "drop_table",
        "decision": "rejected",
        "status": 404,
        "code": 4,
        "principal": "ann",
        "objects": [AttemptedObject("table", ("a", "t"))],
    }
    return AttemptRecord(**usual | given, origin=RequestOrigin(client, "client/1", request_id))


def files_of(directory: Path, process: str = "p1", clock: Clock | None = None, **given: Any) -> LineFiles:
    clocks = None if clock is None else clock.clocks
    return LineFiles(directory, process, given.get("keep", timedelta(days=90)), given.get("most", 1 << 30), clocks)


def log_in(directory: Path, process: str = "p1", clock: Clock | None = None) -> RefusedAttemptLog:
    """A log of a process in a directory, which is to be started."""
    clocks = None if clock is None else clock.clocks
    return RefusedAttemptLog(files_of(directory, process, clock), DirectoryReader(directory), process, clocks)


@contextmanager
def writing(directory: Path, process: str = "p1", clock: Clock | None = None) -> Iterator[RefusedAttemptLog]:
    """A log of a process in a directory; all is written at the end of the block."""
    log = log_in(directory, process, clock)
    log.start()
    try:
        yield log
    finally:
        log.stop()


def written(directory: Path) -> list[dict[str, Any]]:
    """All lines of a directory, by file."""
    return [json.loads(line) for path in sorted(directory.glob("*")) for line in path.read_bytes().splitlines()]


def ids(lines: list[dict[str, Any]] | tuple[Mapping[str, Any], ...]) -> list[Any]:
    return [each.get("request_id") for each in lines]
