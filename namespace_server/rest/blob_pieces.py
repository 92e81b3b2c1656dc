"""A long value of a row as pieces: each is read when the client has taken the one before, and not earlier.

A worker is held for one piece at a time, never while a client reads. So a client that is slow holds a piece of memory,
whatever the length of the value, and no worker and no room on disk.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from typing import Final, NamedTuple

from lance_namespace.errors import ThrottlingError

from namespace_server.workers.process_pool import part_of_one
from table_data.errors import WorkFailed

MEMORY: Final = 128 << 20
"""Bytes of pieces that are in memory, of all answers."""
_FIRST: Final = 256 << 10
_LARGEST: Final = 4 << 20
_QUICK: Final = 0.5
"""Seconds within which a client takes a piece if it can have larger ones, and the next one read beforehand."""
_ROOM_TIMEOUT: Final = 5.0
"""Seconds that a piece waits for room in memory."""
_STALLED: Final = 3.0
"""Seconds for which a client may take a piece while others wait for room; then its stream makes room for them."""
_SOON: Final = 0.05
"""Seconds in which a stream that was broken off lets go of its piece."""

Read = Callable[[int, int], Awaitable[bytes]]
"""Reads so many bytes from a place on. Raises the errors of a job of a worker."""
BreakOff = Callable[[], None]
"""Ends a stream, which lets go of what it holds."""


class _Taking(NamedTuple):
    """A piece that a client is taking: since when, by the clock of the event loop, whose it is, and how to end it."""

    since: float
    principal: str | None
    break_off: BreakOff


class PieceSpace:
    """The room for pieces: `most` bytes, three quarters of it for one principal. Belongs to one event loop.

    Half of it is for small pieces alone: a few clients that take long values quickly, and then no more, would have all.
    While one waits for room, the stream ends whose client has not taken its piece for longest, if that is for some
    seconds: so clients that read are not kept out by any number of those that do not.
    """

    def __init__(self, most: int = MEMORY) -> None:
        self._left = most
        self._for_small = most // 2
        self._share = part_of_one(most)
        self._held: Counter[str | None] = Counter()
        self._changed = asyncio.Event()
        self._taking: dict[int, _Taking] = {}
        self._numbers = count()
        self._reading: set[asyncio.Task[bytes]] = set()

    async def hold(self, size: int, principal: str | None) -> None:
        """Count bytes once there is room for them. Raises `ThrottlingError` (21) if others make none."""
        try:
            async with asyncio.timeout(_ROOM_TIMEOUT):
                while not self.try_hold(size, principal, small=True):
                    self._changed.clear()
                    with suppress(TimeoutError):
                        async with asyncio.timeout(self._make_room(size, principal)):
                            await self._changed.wait()
        except TimeoutError:
            raise ThrottlingError("the blobs that others read fill the room for them; try again") from None

    def try_hold(self, size: int, principal: str | None, *, small: bool = False) -> bool:
        """Count bytes if there is room for them now; whether there is. `small` ones may take all of it."""
        if size > self._left - (0 if small else self._for_small) or (
            principal is not None and self._held[principal] + size > self._share
        ):
            return False
        self._left -= size
        self._held[principal] += size
        return True

    @contextmanager
    def taking(self, principal: str | None, break_off: BreakOff | None) -> Iterator[None]:
        """A block in which a client takes a piece. `break_off` ends its stream; None: it is never ended for others."""
        if break_off is None:
            yield
            return
        number = next(self._numbers)
        self._taking[number] = _Taking(asyncio.get_running_loop().time(), principal, break_off)
        try:
            yield
        finally:
            self._taking.pop(number, None)

    def _make_room(self, size: int, principal: str | None) -> float | None:
        """End the stream that has stalled for longest, if it may be ended; seconds until there may be room, or None.

        Where it is the share of one principal that is used up, it is a stream of that one.
        """
        is_own = principal is not None and self._held[principal] + size > self._share
        now = asyncio.get_running_loop().time()
        for number, each in self._taking.items():  # the one that began first is the first
            if is_own and each.principal != principal:
                continue
            if now - each.since < _STALLED:
                return each.since + _STALLED - now
            del self._taking[number]
            each.break_off()
            return _SOON
        return None

    def let_go(self, size: int, principal: str | None) -> None:
        """Count bytes no longer."""
        self._left += size
        self._held[principal] -= size
        if not self._held[principal]:
            del self._held[principal]
        self._changed.set()

    def begin(self, read: Read, place: int, length: int, principal: str | None) -> asyncio.Task[bytes]:
        """Read a piece, whose bytes are counted, and stay so until they are let go."""

        async def piece() -> bytes:
            try:
                data = await read(place, length)
                if len(data) != length:
                    raise WorkFailed(f"a blob: expected {length} bytes from {place} on, found {len(data)}")
            except BaseException:
                self.let_go(length, principal)
                raise
            return data

        return asyncio.create_task(piece())

    def abandon(self, piece: asyncio.Task[bytes], principal: str | None) -> None:
        """Let go of a piece when it is read. To end its worker would cost more than the rest of one piece."""

        def ended(task: asyncio.Task[bytes]) -> None:
            self._reading.discard(task)
            if not task.cancelled() and task.exception() is None:
                self.let_go(len(task.result()), principal)

        self._reading.add(piece)
        piece.add_done_callback(ended)


async def pieces(
    read: Read,
    place: int,
    end: int,
    space: PieceSpace,
    principal: str | None = None,
    break_off: BreakOff | None = None,
) -> AsyncIterator[bytes]:
    """The bytes from a place up to an end, in pieces that grow while they are taken quickly, and there is room.

    `break_off` is called if the client stalls while others wait for room; see `PieceSpace`.
    Raises what `read` raises, `ThrottlingError`, and `WorkFailed` for a value that has fewer bytes now.
    """
    clock = asyncio.get_running_loop().time
    size = _FIRST
    coming: asyncio.Task[bytes] | None = None
    try:
        while place < end:
            if coming is None:
                length = min(size, end - place)
                if not space.try_hold(length, principal):
                    length = min(_FIRST, length)
                    await space.hold(length, principal)
                coming = space.begin(read, place, length, principal)
            data = await asyncio.shield(coming)
            coming = None
            place += len(data)
            try:
                ahead = min(size, end - place)
                if size > _FIRST and ahead and space.try_hold(ahead, principal):
                    coming = space.begin(read, place, ahead, principal)
                began = clock()
                with space.taking(principal, break_off):
                    yield data
                size = min(2 * size, _LARGEST) if clock() - began < _QUICK else _FIRST
            finally:
                space.let_go(len(data), principal)
    finally:
        if coming is not None:
            space.abandon(coming, principal)
