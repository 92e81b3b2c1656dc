"""The access log: one line a request, written by a thread of its own."""

from __future__ import annotations

import json
import logging
import threading
from collections import deque
from dataclasses import dataclass
from typing import Any

_log = logging.getLogger("namespace_server.access")

_FLUSH_INTERVAL = 0.25
_CAPACITY = 100_000


@dataclass(frozen=True, slots=True)
class Access:
    """One answered request.

    `route` is the path template, or the path where no route matched; `seconds` is the duration.
    """

    method: str
    route: str
    status: int
    seconds: float
    principal: str | None
    catalog_version: str | None
    request_id: str

    def fields(self) -> dict[str, Any]:
        """The fields as they stand in a log line."""
        return {
            "method": self.method,
            "route": self.route,
            "status": self.status,
            "ms": round(self.seconds * 1000, 3),
            "principal": self.principal,
            "catalog_version": self.catalog_version,
            "request_id": self.request_id,
        }


class AccessLog:
    """Writes accesses to the logger `namespace_server.access`, off the request path.

    `add` only appends to a queue. When more requests end than can be written, the log says how many lines it dropped.
    """

    def __init__(self) -> None:
        self._entries: deque[Access] = deque()
        self._dropped = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="access-log", daemon=True)

    def start(self) -> None:
        """Start the writing thread."""
        self._thread.start()

    def stop(self) -> None:
        """Write what is queued and end the thread."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def add(self, access: Access) -> None:
        """Queue one line."""
        if len(self._entries) >= _CAPACITY:
            self._dropped += 1
        else:
            self._entries.append(access)

    def _run(self) -> None:
        while not self._ended.wait(_FLUSH_INTERVAL):
            self._write()
        self._write()

    def _write(self) -> None:
        for _ in range(len(self._entries)):
            access = self._entries.popleft()
            fields = access.fields()
            if _log.isEnabledFor(logging.INFO):
                text = " ".join(f"{name}={_shown(value)}" for name, value in fields.items() if value is not None)
                _log.info("%s", text, extra={"access": fields})
        if self._dropped:
            _log.warning("%d requests were not logged: more ended than could be written", self._dropped)
            self._dropped = 0


def _shown(value: object) -> str:
    """A value as one word: in quotes, with escapes, where it could be taken for several words or lines."""
    text = str(value)
    plain = text.isascii() and text.isprintable() and not set(text) & {" ", '"', "="}
    return text if plain else json.dumps(text)
