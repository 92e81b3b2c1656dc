"""Batches that wait for a flip, and the thread that flips: one at a time, for all that wait."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from namespace_server.directory.committing.group_planner import PendingBatch


class FlipQueue:
    """Lets one of the threads whose batches wait flip a group of at most `group_size`. Thread-safe.

    The others wait, and return as soon as their own batches are decided. What arrives during a flip forms the next
    group, however many threads bring it (in a server each brings a group of calls: `rest.commit_queue`); those of the
    last group come first that have to follow its flip.
    """

    def __init__(self, group_size: int) -> None:
        self._group_size = group_size
        self._changed = threading.Condition()
        self._waiting: deque[PendingBatch] = deque()
        self._flipping: int | None = None  # the thread that flips

    @property
    def is_awaited(self) -> bool:
        """Whether batches wait for the next flip."""
        return bool(self._waiting)

    def add(self, batches: Iterable[PendingBatch]) -> None:
        """Let batches wait for a flip."""
        with self._changed:
            self._waiting.extend(batches)

    def take_group(self, mine: Sequence[PendingBatch]) -> list[PendingBatch]:
        """The next group, for the calling thread, which flips from now on until `release`.

        Waits until no other thread flips and some of `mine` wait. Empty, and nothing to release, once all of `mine` are
        decided.
        """
        with self._changed:
            while not all(pending.decided for pending in mine):
                if self._flipping is None and any(not pending.taken for pending in mine):
                    self._flipping = threading.get_ident()
                    group = [self._waiting.popleft() for _ in range(min(self._group_size, len(self._waiting)))]
                    for pending in group:
                        pending.taken = True
                    return group
                self._changed.wait()
        return []

    def release(self) -> None:
        """End the flip of the calling thread. Without effect if it flips no more."""
        with self._changed:
            if self._flipping == threading.get_ident():
                self._flipping = None
                self._changed.notify_all()

    @contextmanager
    def flipping(self) -> Iterator[None]:
        """A context in which the calling thread alone flips; for changes that are not in the queue."""
        with self._changed:
            self._changed.wait_for(lambda: self._flipping is None)
            self._flipping = threading.get_ident()
        try:
            yield
        finally:
            self.release()

    def finish(self, group: Sequence[PendingBatch]) -> None:
        """End with a group: threads return that wait for its decided batches, the others wait first for the next flip.

        The calling thread flips no more, unless it has ended its flip before.
        """
        with self._changed:
            for pending in group:
                pending.decided = pending.verdict is not None
                pending.taken = pending.decided
            self._waiting.extendleft(pending for pending in reversed(group) if not pending.decided)
            if self._flipping == threading.get_ident():
                self._flipping = None
            self._changed.notify_all()
