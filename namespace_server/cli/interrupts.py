"""Ctrl-C while rows are written by threads that are not Python's: no answer of theirs hides it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self

from namespace_server.cli.command import ExitStatus, refusal
from namespace_server.interruption import raise_interrupt


class Interrupts:
    """Ctrl-C within the block raises `KeyboardInterrupt`, also at the next `check` if the called code has hidden it.

    After `hold` the first one does not: the work goes on to its end, and `came` is true. A second one does.
    """

    def __init__(self) -> None:
        self.came = False
        self._is_held = False
        self._previous: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)

    def check(self) -> None:
        """Raise `KeyboardInterrupt` if it came."""
        if self.came:
            raise KeyboardInterrupt

    def hold(self) -> None:
        """Have the first interrupt wait from now on. Raises `KeyboardInterrupt` if one came before."""
        self.check()
        self._is_held = True
        if self.came:  # between the two
            self._is_held = False
            raise KeyboardInterrupt

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Name the unknown outcome where an interrupt after `hold` ends the block."""
        try:
            yield
        except KeyboardInterrupt:
            if not self._is_held:
                raise
            said = "interrupted twice, during the commit: the rows may be committed, or not; `log` shows which"
            raise refusal(said, ExitStatus.INTERRUPTED) from None

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        again, self.came = self.came, True
        if again or not self._is_held:
            raise_interrupt(number, frame)
