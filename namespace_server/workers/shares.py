"""The holders of the processes of a pool, and the waiters for one, by principal."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class _Turn(Generic[T]):
    principal: str | None
    future: asyncio.Future[T]


class Shares(Generic[T]):
    """Processes by the principal of their jobs, and a queue for them. Belongs to one event loop.

    A principal holds at most `most` at one time, so that its long jobs leave some to others; what has no principal is
    not bounded. The next process goes to the principal that holds the fewest, and of its jobs to the one that waits
    longest.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: Counter[str | None] = Counter()
        self._turns: deque[_Turn[T]] = deque()

    def admits(self, principal: str | None) -> bool:
        """Whether a principal may hold one more process."""
        return principal is None or self._held[principal] < self._most

    def take(self, principal: str | None) -> None:
        """Count a process that a principal holds from now on."""
        self._held[principal] += 1

    def give_back(self, principal: str | None) -> None:
        """Count a process that a principal holds no longer."""
        self._held[principal] -= 1
        if not self._held[principal]:
            del self._held[principal]

    async def wait(self, principal: str | None, put_back: Callable[[T], None]) -> T:
        """Wait for a process. It counts as held when it is given.

        One that is given to a caller that was cancelled meanwhile is put back.
        """
        turn: _Turn[T] = _Turn(principal, asyncio.get_running_loop().create_future())
        self._turns.append(turn)
        try:
            return await turn.future
        except asyncio.CancelledError:
            if turn.future.done() and not turn.future.cancelled():
                self.give_back(principal)
                put_back(turn.future.result())
            raise

    def give(self, process: T) -> bool:
        """Give a process to the job whose turn it is; whether there is one."""
        while self._turns and self._turns[0].future.done():
            self._turns.popleft()
        waiting = [turn for turn in self._turns if not turn.future.done() and self.admits(turn.principal)]
        if not waiting:
            return False
        turn = min(waiting, key=lambda each: self._held[each.principal])
        self._turns.remove(turn)
        self.take(turn.principal)
        turn.future.set_result(process)
        return True

    def waiting(self, principal: str | None) -> int:
        """The number of jobs of a principal that wait."""
        return sum(turn.principal == principal and not turn.future.done() for turn in list(self._turns))

    @property
    def waiting_jobs(self) -> tuple[int, int]:
        """The number of jobs that wait, and of those whose principal has its share. May be called by any thread."""
        waiting = [turn.principal for turn in list(self._turns) if not turn.future.done()]
        return len(waiting), sum(not self.admits(principal) for principal in waiting)

    def cancel(self) -> None:
        """Cancel the waiting work."""
        for turn in self._turns:
            turn.future.cancel()
