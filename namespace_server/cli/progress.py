"""How far a command is, on standard error: standard output is for its report."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Final, Self, TextIO

_TERMINAL: Final = 0.1
_LOG: Final = 30.0
"""Seconds between two lines, on a terminal and elsewhere."""
_BAR: Final = 20
"""Columns of a bar."""
_CLEAR: Final = "\r\x1b[K"


class ProgressLine:
    """On a terminal a line that moves, and is gone at the end of the block; elsewhere a line every 30 seconds.

    A `Progress`. A command that takes less time writes nothing elsewhere. `clock` returns seconds.
    """

    def __init__(self, *, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream or sys.stderr
        self._clock = clock
        self._moves = self._stream.isatty()
        self._phase = ""
        self._begun = self._last = clock()
        self._first = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._moves:
            self._write(_CLEAR)

    def __call__(self, phase: str, done: int = 0, of: int = 0, unit: str = "tables") -> None:
        """Write the line, if it is time."""
        now = self._clock()
        is_new = phase != self._phase
        if is_new:
            self._phase, self._begun, self._first = phase, now, done
        if now - self._last < (_TERMINAL if self._moves else _LOG) and not (is_new and self._moves):
            return
        self._last = now
        text = phase
        if of or done:
            text += f": {done:,} of {of:,} {unit}" if of else f": {done:,} {unit}"
            seconds = now - self._begun
            if self._moves and of:
                text = f"{_bar(done, of)} {text}"
            if seconds >= 1:
                text += f", {(done - self._first) / seconds:,.0f} per second"
        self._write(f"{_CLEAR}{text}" if self._moves else f"{text}\n")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def _bar(done: int, of: int) -> str:
    filled = min(_BAR, _BAR * done // of)
    return "█" * filled + "░" * (_BAR - filled)
