"""Ends work from another thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from table_data.errors import WorkFailed


class Cancellation:
    """Ends what is under way, from another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._end: Callable[[], None] | None = None
        self._cancelled = False

    def cancel(self) -> None:
        """End what is under way, and what would begin."""
        with self._lock:
            self._cancelled = True
            if self._end is not None:
                self._end()

    @contextmanager
    def ends(self, end: Callable[[], None]) -> Iterator[None]:
        """`end` is what ends the work of the block. Raises `WorkFailed` if it was cancelled already."""
        with self._lock:
            if self._cancelled:
                raise WorkFailed("cancelled; nothing was changed")
            self._end = end
        try:
            yield
        finally:
            with self._lock:
                self._end = None
