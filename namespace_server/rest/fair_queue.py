"""Changes that wait for the committer, handed out in turns of their principals.

While one principal alone sends changes, they are handed out as they came. While several do, each has a share of every
group, counted in operations: so that flips stay short, and a change waits for few others, however many wait of another
principal.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final, Generic, TypeVar

T = TypeVar("T")

PRESENT: Final = 60.0
"""Seconds after its last change for which a principal counts as present: its next change meets short flips."""
_LOOK: Final = 1.0
"""Seconds between two looks for principals that are not present any more."""


class _Line(Generic[T]):
    """The changes of one principal.

    `cost` is that of the `waiting` ones, `held` that of those that were taken and are not answered yet. It is passed
    over until the `level` of the queue is `due`. `returning` counts the callers that were answered since the last group
    was taken, and did not call again.
    """

    __slots__ = ("cost", "due", "held", "principal", "returning", "seen", "waiting")

    def __init__(self, principal: str | None) -> None:
        self.principal = principal
        self.waiting: deque[tuple[int, T]] = deque()
        self.cost = 0
        self.held = 0
        self.due = 0
        self.returning = 0
        self.seen = 0.0


class Group(Generic[T]):
    """Changes that were taken together; `parts` are their operations and their number by principal."""

    __slots__ = ("changes", "parts")

    def __init__(self) -> None:
        self.changes: list[T] = []
        self.parts: dict[_Line[T], tuple[int, int]] = {}


class FairQueue(Generic[T]):
    """Waiting changes by principal. No I/O; belongs to one thread.

    Changes of one principal are taken in the order in which they were added. While several are present:

    * A group has at most `share` operations of each, and the next group begins with those that had none in it.
    * A change of more operations is taken alone, and nobody waits for it in a group. Then its principal is passed over
      until another one has taken as many operations, or no other one has a change waiting or with the committer.

    A principal has one group at a time with the committer, which keeps its order there; with `pipelined` it may have a
    share, in several. `None`, which is who has not said a name, is a principal as any other.

    Args:
        share: operations of one principal in a group.
        pipelined: whether a principal may have several groups with the committer.
        clock: seconds that never go back.

    Attributes:
        is_shared: Whether several principals are present.
    """

    def __init__(self, share: int, *, pipelined: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self._share = share
        self._pipelined = pipelined
        self._clock = clock
        self.is_shared = False
        self._lines: dict[str | None, _Line[T]] = {}
        self._order: deque[_Line[T]] = deque()  # those with waiting changes, the one that is next first
        self._returning: list[_Line[T]] = []
        self._length = 0
        self._holding = 0  # principals with changes at the committer
        self._level = 0  # operations that a principal has taken that took what it could in each group
        self._looked_at = 0.0

    def __len__(self) -> int:
        return self._length

    @property
    def principals(self) -> int:
        """The number of principals that are present."""
        return len(self._lines)

    @property
    def is_ready(self) -> bool:
        """Whether `take` has a change to give."""
        if self.is_shared:
            return any(map(self._may_take, self._order))
        return self._length > 0 and (self._pipelined or not self._order[0].held)

    @property
    def is_awaited(self) -> bool:
        """Whether callers that were answered are expected to call again before the next group is taken.

        Of several principals only those count that have less than their share waiting: others have their part of it.
        """
        if not self.is_shared:
            return bool(self._returning)
        return any(line.cost < self._share and (self._pipelined or not line.held) for line in self._returning)

    @property
    def is_large(self) -> bool:
        """Whether the next group is one change of more operations than a share, beside other principals."""
        ready = (line for line in self._order if self._may_take(line)) if self.is_shared else ()
        return all(line.waiting[0][0] > self._share for line in ready) and self.is_shared

    @property
    def held_back(self) -> int:
        """The number of changes that wait because of what their principal has taken already. For any thread."""
        if not self.is_shared:
            return 0
        return sum(len(line.waiting) for line in list(self._order) if not self._may_take(line))

    def add(self, principal: str | None, cost: int, change: T) -> None:
        """Let a change of so many operations wait."""
        line = self._lines.get(principal)
        if line is None:
            line = self._lines[principal] = _Line(principal)
            self.is_shared = len(self._lines) > 1
        if not line.waiting:
            self._order.append(line)
        line.waiting.append((cost, change))
        line.cost += cost
        line.seen = self._clock()
        self._length += 1
        if line.returning:
            line.returning -= 1
            if not line.returning:
                self._returning.remove(line)

    def take(self, most: int) -> Group[T]:
        """The next group, of at most so many changes; of none if none may be taken now."""
        for line in self._returning:
            line.returning = 0
        self._returning.clear()
        if self.is_shared:
            self._forget()
        if not self.is_ready:
            return Group()
        return self._take_in_turns(most) if self.is_shared else self._take_first(most)

    def answered(self, group: Group[T]) -> None:
        """The changes of a group are answered. Their callers are expected to call again."""
        for line, (cost, number) in group.parts.items():
            line.held -= cost
            if not line.held:
                self._holding -= 1
            if not line.returning:
                self._returning.append(line)
            line.returning += number

    def _take_first(self, most: int) -> Group[T]:
        """Changes of the only principal."""
        group: Group[T] = Group()
        [line] = self._order
        line.due = self._level  # what it took before is paid for: nobody else is there
        self._move(line, group, min(most, len(line.waiting)))
        if not line.waiting:
            self._order.clear()
        return group

    def _take_in_turns(self, most: int) -> Group[T]:
        """One change of each principal after the other, as long as they have something left of their shares."""
        candidates = [line for line in self._order if self._may_take(line)]
        self._level = max(self._level, min(line.due for line in candidates))
        group: Group[T] = Group()
        turns = deque(line for line in candidates if line.due <= self._level)
        while turns and len(group.changes) < most:
            line = turns.popleft()
            cost = line.waiting[0][0]
            is_large = cost > self._share
            if (is_large and group.changes) or (line.held and line.held + cost > self._share):
                continue
            self._move(line, group)
            if is_large:
                line.due = self._level + cost
                break
            if line.waiting:
                turns.append(line)
        else:
            self._level += max(cost for cost, _ in group.parts.values())
        others = [line for line in self._order if line not in group.parts]
        self._order = deque(line for line in (*others, *group.parts) if line.waiting)
        return group

    def _move(self, line: _Line[T], group: Group[T], number: int = 1) -> None:
        """Move the first changes of a principal to a group."""
        taken = [line.waiting.popleft() for _ in range(number)]
        cost = sum([each for each, _ in taken])
        if not line.held:
            self._holding += 1
        line.cost -= cost
        line.held += cost
        self._length -= number
        before = group.parts.get(line, (0, 0))
        group.parts[line] = before[0] + cost, before[1] + number
        group.changes += [change for _, change in taken]

    def _may_take(self, line: _Line[T]) -> bool:
        """Whether one of several principals, which has waiting changes, may take one now."""
        return self._has_room(line) and (line.due <= self._level or not self._is_beside_others(line))

    def _has_room(self, line: _Line[T]) -> bool:
        """Whether the first change that waits may be with the committer beside those that are there already."""
        return not line.held or (self._pipelined and line.held + line.waiting[0][0] <= self._share)

    def _is_beside_others(self, line: _Line[T]) -> bool:
        """Whether another principal has a change with the committer, or one that it may take."""
        if self._holding > bool(line.held):
            return True
        return any(other is not line and other.due <= self._level for other in list(self._order))

    def _forget(self) -> None:
        """Forget the principals that are not present any more."""
        now = self._clock()
        if now - self._looked_at < _LOOK:
            return
        self._looked_at = now
        for line in list(self._lines.values()):
            if not (line.waiting or line.held) and now - line.seen >= PRESENT:
                del self._lines[line.principal]
        self.is_shared = len(self._lines) > 1


class FairGate:
    """Lets work begin: of a principal alone all of it, and while several are present `most` of each at one time.

    What waits has its order among that of its principal. Belongs to one event loop.
    """

    def __init__(self, most: int) -> None:
        self._queue: FairQueue[asyncio.Future[None]] = FairQueue(most, pipelined=True)
        self._begun: dict[asyncio.Future[None], Group[asyncio.Future[None]] | None] = {}

    @asynccontextmanager
    async def turn(self, principal: str | None) -> AsyncIterator[None]:
        """Wait for a turn, which lasts for the block."""
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.add(principal, 1, waiting)
        self._begun[waiting] = None
        self._pass()
        try:
            await waiting
            yield
        finally:
            waiting.cancel()  # if it has not begun
            group = self._begun.pop(waiting)
            if group is not None:
                self._queue.answered(group)
                self._pass()

    def _pass(self) -> None:
        """Let work begin that may."""
        while self._queue.is_ready:
            group = self._queue.take(1)
            [waiting] = group.changes
            if waiting.cancelled():
                self._queue.answered(group)
            else:
                self._begun[waiting] = group
                waiting.set_result(None)
