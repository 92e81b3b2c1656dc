"""The queue of refused attempts, and the thread that writes it."""

from __future__ import annotations

import logging
import os
import threading
from collections import Counter, deque
from typing import Final, Protocol

from namespace_server.attempts import (
    AttemptLogState,
    AttemptPage,
    AttemptQuery,
    AttemptRecord,
    Decision,
)
from namespace_server.observability.audit.files import Clocks
from namespace_server.observability.audit.folding import WINDOW, Folded, Folding
from namespace_server.observability.audit.lines import DROPPED, FOLDED, attempt_line, count_line, moment
from namespace_server.observability.audit.reading import DirectoryReader

_log = logging.getLogger(__name__)

_GATHERING: Final = 0.25
"""Seconds for which lines are gathered before they are written."""
_TIDYING: Final = 600.0
_LONGEST_STOP: Final = 5.0
_CAPACITY: Final = 16 << 20
"""Bytes of lines that wait to be written."""
_CHUNK: Final = 256 << 10
_DAY: Final = len("2026-01-31")
_COMPLAINT: Final = 60.0
"""Seconds between two log messages about lines that cannot be written."""


class Destination(Protocol):
    """Where lines go. Belongs to the writing thread."""

    def append(self, data: bytes, first: str, last: str) -> int:
        """Append lines; how many bytes were taken. Raises `OSError`: none."""
        ...

    def tidy(self) -> None:
        """Do what is to be done from time to time. Raises `OSError`."""
        ...


class Descriptor:
    """An open file, such as standard output for a collector of logs. It is duplicated: others may close their own."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = os.dup(descriptor)

    def append(self, data: bytes, first: str, last: str) -> int:
        """See `Destination`."""
        del first, last
        return os.write(self._descriptor, data)

    def tidy(self) -> None:
        """Do nothing."""


class RefusedAttemptLog:
    """Writes refused attempts beside the event loop.

    `add` makes the line and queues it. A thread gathers lines for a quarter of a second, and writes them at once. What
    cannot be written, as on a full disk, waits within a bound of bytes, and is written later, from the byte on that was
    not taken. Beyond the bound lines are dropped, counted, and their number is the next line that can be written.

    Args:
        destination: where lines go.
        reader: reads them again; None where that cannot be done.
        clocks: the clocks of the machine.
    """

    def __init__(
        self, destination: Destination, reader: DirectoryReader | None, server: str, clocks: Clocks | None = None
    ) -> None:
        self._destination = destination
        self._reader = reader
        self._server = server
        self._clocks = clocks or Clocks()
        self._lock = threading.Lock()
        self._wanted = threading.Event()
        self._ended = threading.Event()
        self._folding = Folding()
        self._lines: deque[tuple[str, bytes]] = deque()
        self._waiting = 0
        self._attempts: Counter[Decision] = Counter()
        self._written = self._folded = self._dropped = self._untold = 0
        self._rest = b""
        self._rest_times = ("", "")
        self._rest_lines = 0
        self._complained = -_COMPLAINT
        self._tidied = -_TIDYING
        self._thread = threading.Thread(target=self._run, name="audit-log", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def stop(self) -> None:
        """Write what is queued, and end. Waits for some seconds at most, also for a destination that takes nothing."""
        self._ended.set()
        self._wanted.set()
        if self._thread.is_alive():
            self._thread.join(_LONGEST_STOP)

    def add(self, attempt: AttemptRecord) -> None:
        """Queue an attempt. Does not wait, and raises nothing."""
        try:
            with self._lock:
                self._attempts[attempt.decision] += 1
                self._end_window()
                if self._folding.admits(attempt):
                    now = self._clocks.wall()
                    self._queue(moment(now), attempt_line(attempt, now, self._server))
                else:
                    self._folded += 1
        except Exception:  # noqa: BLE001 - the request has its answer, whatever is wrong here
            self._dropped += 1
            _log.exception("a refused attempt could not be recorded")
        self._wanted.set()

    def state(self) -> AttemptLogState:
        """The numbers now. May be called by any thread."""
        with self._lock:
            waiting = len(self._lines) + self._rest_lines
            return AttemptLogState(dict(self._attempts), self._written, self._folded, self._dropped, waiting)

    def read(self, query: AttemptQuery) -> AttemptPage | None:
        """A page of what was written, by all processes that write to the same place. Blocking.

        None if it cannot be read again, as on standard output. Raises `ValueError` for a token that is none, `OSError`.
        """
        return None if self._reader is None else self._reader.page(query)

    def _queue(self, time: str, line: bytes) -> None:
        if self._waiting + len(line) > _CAPACITY:
            self._dropped += 1
            self._untold += 1
            return
        self._lines.append((time, line))
        self._waiting += len(line)

    def _end_window(self, *, at_once: bool = False) -> None:
        """Queue the counts of the window, if it is over."""
        for folded, count in self._folding.end_window(self._clocks.elapsed(), at_once=at_once):
            now = self._clocks.wall()
            self._queue(moment(now), count_line(FOLDED, count, now, self._server, **_fields(folded)))

    def _run(self) -> None:
        while not self._ended.is_set():
            pause = WINDOW if self._is_settled() else _GATHERING
            self._wanted.wait(min(pause, _TIDYING))
            self._wanted.clear()
            self._ended.wait(_GATHERING)
            self._work()
        with self._lock:
            self._end_window(at_once=True)
        self._work()

    def _is_settled(self) -> bool:
        with self._lock:
            return not (self._lines or self._rest or self._untold)

    def _work(self) -> None:
        with self._lock:
            self._end_window()
        for step in (self._tidy, self._write):
            try:
                step()
            except OSError as error:  # a full disk, a reader that is gone
                self._complain(error)
            except Exception:  # noqa: BLE001 - the thread goes on with the next lines
                _log.exception("refused attempts: an error that was not foreseen")

    def _tidy(self) -> None:
        if self._clocks.elapsed() - self._tidied >= _TIDYING:
            self._tidied = self._clocks.elapsed()
            self._destination.tidy()

    def _write(self) -> None:
        """Write until nothing is queued. Raises `OSError` where the destination takes nothing for now."""
        while self._rest or self._take():
            first, last = self._rest_times
            taken = self._destination.append(self._rest, first, last)
            if not taken:
                return
            with self._lock:
                done = self._rest.count(b"\n", 0, taken)
                self._written += done
                self._rest_lines -= done
                self._rest = self._rest[taken:]
                self._waiting -= taken

    def _take(self) -> bool:
        """Take the next lines of the queue, of one day and in the order of time; whether there are any."""
        with self._lock:
            if not self._lines and self._untold:
                now = self._clocks.wall()
                line = count_line(DROPPED, self._untold, now, self._server)
                self._untold = 0
                self._lines.append((moment(now), line))
                self._waiting += len(line)
            taken: list[tuple[str, bytes]] = []
            size = 0
            while self._lines and size < _CHUNK and (not taken or _follows(taken[-1][0], self._lines[0][0])):
                taken.append(self._lines.popleft())
                size += len(taken[-1][1])
            if taken:
                self._rest = b"".join(line for _, line in taken)
                self._rest_times = (taken[0][0], taken[-1][0])
                self._rest_lines = len(taken)
        return bool(taken)

    def _complain(self, error: Exception) -> None:
        now = self._clocks.elapsed()
        if now - self._complained >= _COMPLAINT:
            self._complained = now
            state = self.state()
            _log.error(
                "refused attempts cannot be written: %s; %d wait, %d were dropped", error, state.waiting, state.dropped
            )


def _follows(time: str, later: str) -> bool:
    return time <= later and time[:_DAY] == later[:_DAY]


def _fields(folded: Folded) -> dict[str, object]:
    return {**folded._asdict(), "seconds": WINDOW}
