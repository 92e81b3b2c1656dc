"""The access log: one line a request, written by a thread of its own."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import deque
from functools import lru_cache
from typing import Literal, TextIO

import orjson

from namespace_server.observability.observation import LoggedRequest

_FLUSH_INTERVAL = 0.25
_CAPACITY = 100_000
_LINES = 1_000
"""Entries that are formatted at once."""
_LOGGER = "namespace_server.access"


class AccessLog:
    """Writes lines in the form of the other log lines, as text or JSON, off the request path.

    `add` only appends to a queue. A thread formats and writes the queue, without the machinery of `logging`: that
    costs more than a describe. What cannot be written, as on a full disk, is kept and written later, from the byte on
    that was not taken. When more requests end than can be kept, the log says how many lines it dropped.

    Args:
        form: "text" or "json".
        stream: where to write; standard error by default.
    """

    def __init__(self, form: Literal["text", "json"] = "text", stream: TextIO | None = None) -> None:
        self._format = _json if form == "json" else _text
        self._stream = stream
        self._entries: deque[LoggedRequest] = deque()
        self._dropped = 0
        self._unwritten = b""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="access-log", daemon=True)

    def start(self) -> None:
        """Start the writing thread."""
        self._thread.start()

    def stop(self) -> None:
        """Write the queue and end the thread."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def add(self, access: LoggedRequest) -> None:
        """Queue one line. Does not wait."""
        if len(self._entries) >= _CAPACITY:
            self._dropped += 1
        else:
            self._entries.append(access)

    def _run(self) -> None:
        while not self._ended.wait(_FLUSH_INTERVAL):
            self._write()
        self._write()

    def _write(self) -> None:
        """Write until nothing is queued, or the stream takes no more for now."""
        while self._unwritten or self._entries or self._dropped:
            self._unwritten = self._unwritten or self._formatted()
            try:
                taken = self._taken(self._unwritten)
            except (OSError, ValueError):  # a full disk, a reader that is gone, a closed stream
                return
            if not taken:
                return
            self._unwritten = self._unwritten[taken:]

    def _formatted(self) -> bytes:
        """The lines that are queued, and the number of requests that were not."""
        entries = [self._entries.popleft() for _ in range(min(len(self._entries), _LINES))]
        if self._dropped and not self._entries:
            dropped, self._dropped = self._dropped, 0
            entries.append(LoggedRequest(time.time(), "", f"{dropped} requests not logged", 0, 0.0, None, None, ""))
        return "".join(map(self._format, entries)).encode()

    def _taken(self, data: bytes) -> int:
        """The number of bytes that the stream took. Without its buffer, which does not report partial writes."""
        stream = self._stream or sys.stderr
        raw = getattr(getattr(stream, "buffer", None), "raw", None)
        if raw is not None:
            return raw.write(data) or 0
        stream.write(data.decode())
        stream.flush()
        return len(data)


def _text(access: LoggedRequest) -> str:
    ended = _local_second(int(access.ended))
    principal = "" if access.principal is None else f" principal={_shown(access.principal)}"
    version = "" if access.catalog_version is None else f" catalog_version={access.catalog_version}"
    client = "" if access.client is None else f" client={_shown(access.client)}"
    key = "" if access.key is None else f" key_sha256={access.key}"
    code = "" if access.code is None else f" code={access.code}"
    error = "" if access.error is None else f" error={_shown(access.error)}"
    return (
        f"{ended},{int(access.ended % 1 * 1000):03d} INFO {_LOGGER}: method={_shown(access.method)} "
        f"route={_shown(access.route)} status={access.status} ms={access.seconds * 1000:.3f}{principal}{version}"
        f"{client}{key}{code}{error} request_id={_shown(access.request_id)}\n"
    )


@lru_cache(4)
def _local_second(second: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(second))


def _json(access: LoggedRequest) -> str:
    line = {
        "time": f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(access.ended))}.{int(access.ended % 1 * 1000):03d}Z",
        "level": "info",
        "logger": _LOGGER,
        "method": access.method,
        "route": access.route,
        "status": access.status,
        "ms": round(access.seconds * 1000, 3),
        "principal": access.principal,
        "catalog_version": access.catalog_version,
        "client": access.client,
        "request_id": access.request_id,
    }
    if access.key is not None:
        line["key_sha256"] = access.key
    if access.code is not None:
        line["code"] = access.code
    if access.error is not None:
        line["error"] = access.error
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE).decode()


def _shown(text: str) -> str:
    """A value as one word: in quotes, with escapes, where it could be taken for several words or lines."""
    plain = text.isascii() and text.isprintable() and " " not in text and '"' not in text and "=" not in text
    return text if plain else json.dumps(text)
