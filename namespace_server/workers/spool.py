"""Bytes that wait for slow clients: in memory while they are few, else in temporary files, within bounds for them all.

A worker is held while it works, never while a client sends or reads: rows are whole before a worker gets them, and an
answer that its client does not read as fast as it is made waits here.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from lance_namespace.errors import ServiceUnavailableError, ThrottlingError

from namespace_server.outcomes import with_nothing_done

T = TypeVar("T")

MEMORY: Final = 128 << 20
"""Bytes that wait in memory, of all requests and answers."""
_ANSWER: Final = 2 << 20
"""Bytes of one answer that wait in memory."""
_PIECE: Final = 1 << 20
_FLUSH: Final = 256 << 10
"""Bytes of a request from which on they are written to its file."""
_BEHIND: Final = 4 << 20
"""Bytes of a request that arrive while others are written."""
_ROOM_TIMEOUT: Final = 5.0
"""Seconds that a worker waits for the client of its answer, where the disk has no room left."""


class SpoolSpace:
    """The room for waiting rows: `disk` bytes in temporary files without names in `directory`, by default
    the system's. Belongs to one event loop.
    """

    def __init__(self, disk: int, directory: str | None = None, memory: int = MEMORY) -> None:
        self.directory = directory
        self._disk = disk
        self._memory = memory

    def hold(self, size: int) -> bool:
        """Count bytes in memory; False if there is no room for them."""
        if size > self._memory:
            return False
        self._memory -= size
        return True

    def let_go(self, size: int) -> None:
        """Count bytes in memory no longer."""
        self._memory += size

    def reserve(self, size: int) -> bool:
        """Count bytes in files; False if there is no room for them."""
        if size > self._disk:
            return False
        self._disk -= size
        return True

    def give_back(self, size: int) -> None:
        """Count bytes in files no longer."""
        self._disk += size


class SpoolFile:
    """A temporary file, which is gone when it is closed or its process ends. Reads and writes are done in threads."""

    def __init__(self, space: SpoolSpace) -> None:
        self._space = space
        self._descriptor: int | None = None
        self.length = 0

    def fileno(self) -> int:
        """The descriptor of the file, which has bytes."""
        assert self._descriptor is not None, "nothing was written"
        return self._descriptor

    async def append(self, pieces: Sequence[bytes]) -> bool:
        """Write bytes at the end; False if there is no room for them. Raises `ServiceUnavailableError` (17)."""
        size = sum(map(len, pieces))
        if not self._space.reserve(size):
            return False
        try:
            await _in_thread(self._append, pieces, self.length)
        except BaseException as error:
            self._space.give_back(size)
            if not isinstance(error, OSError):
                raise
            reason = os.strerror(error.errno or 0)
            raise with_nothing_done(
                ServiceUnavailableError(
                    f"rows cannot be kept in a temporary file of the server ({reason}); nothing was done"
                )
            ) from error
        self.length += size
        return True

    async def read(self, place: int, size: int) -> bytes:
        """Bytes of the file."""
        return await _in_thread(os.pread, self.fileno(), size, place)

    def clear(self) -> None:
        """Forget all bytes."""
        os.ftruncate(self.fileno(), 0)
        self._space.give_back(self.length)
        self.length = 0

    def close(self) -> None:
        """Remove the file. May be called more than once."""
        self._space.give_back(self.length)
        self.length = 0
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _append(self, pieces: Sequence[bytes], place: int) -> None:
        if self._descriptor is None:
            with tempfile.TemporaryFile(buffering=0, dir=self._space.directory) as made:
                self._descriptor = os.dup(made.fileno())
        for piece in pieces:
            view = memoryview(piece)
            while view:
                written = os.pwrite(self._descriptor, view, place)
                view, place = view[written:], place + written


class SpooledBody:
    """The bytes of a request as they arrive: in memory up to `most`, in a file from there on.

    They are written while more of them arrive.
    """

    def __init__(self, space: SpoolSpace, most: int) -> None:
        self._space = space
        self._most = most
        self._pieces: list[bytes] = []
        self._size = 0
        self._held = 0
        self._file: SpoolFile | None = None
        self._writing: asyncio.Task[None] | None = None

    async def append(self, piece: bytes) -> None:
        """Keep more bytes. Raises `ThrottlingError` (21) without room for them, `ServiceUnavailableError` (17)."""
        self._pieces.append(piece)
        self._size += len(piece)
        is_held = self._space.hold(len(piece))
        self._held += len(piece) if is_held else 0
        if self._file is None and is_held and self._size <= self._most:
            return
        self._file = self._file or SpoolFile(self._space)
        is_writing = self._writing is not None and not self._writing.done()
        if not is_writing or not is_held or self._size > _BEHIND:
            await self._written()
            if self._size >= _FLUSH or not is_held:
                self._write(self._file)

    async def end(self) -> bytes | SpoolFile:
        """All bytes, or the file that has them. Raises as `append` does."""
        if self._file is None:
            return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        await self._written()
        self._write(self._file)
        await self._written()
        return self._file

    async def close(self) -> None:
        """Forget the bytes."""
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.wait({self._writing})
        self._space.let_go(self._held)
        self._held, self._pieces = 0, []
        if self._file is not None:
            self._file.close()

    def _write(self, file: SpoolFile) -> None:
        """Begin to write the pieces in memory."""
        pieces, held, self._pieces, self._held, self._size = self._pieces, self._held, [], 0, 0

        async def write() -> None:
            if not await file.append(pieces):
                raise ThrottlingError("the rows of other requests fill the room for them; nothing was done, try again")

        self._writing = asyncio.create_task(write())
        self._writing.add_done_callback(lambda _: self._space.let_go(held))

    async def _written(self) -> None:
        """Wait for the write under way."""
        writing, self._writing = self._writing, None
        if writing is not None:
            await writing


class SpooledAnswer:
    """The bytes of an answer between a worker, which is not to wait, and a client that takes them when it can."""

    def __init__(self, space: SpoolSpace) -> None:
        self._space = space
        self._pieces: deque[bytes] = deque()
        self._held = 0
        self._file: SpoolFile | None = None
        self._place = 0
        self._changed = asyncio.Event()
        self._has_ended = False

    async def put(self, piece: bytes) -> None:
        """Keep more bytes. Raises `ThrottlingError` (21) if there is no room, and the client makes none."""
        while not self._put_in_memory(piece) and not await self._put_in_file(piece):
            try:
                async with asyncio.timeout(_ROOM_TIMEOUT):
                    await self._change()
            except TimeoutError:
                raise ThrottlingError("expected a client that reads its answer faster, or room for it") from None
        self._changed.set()

    def end(self) -> None:
        """There are no more bytes."""
        self._has_ended = True
        self._changed.set()

    async def take(self) -> bytes:
        """The next bytes; none at the end."""
        while True:
            if self._pieces:
                piece = self._pieces.popleft()
                self._space.let_go(len(piece))
                self._held -= len(piece)
            elif self._file is not None and self._place < self._file.length:
                piece = await self._file.read(self._place, _PIECE)
                self._place += len(piece)
            else:
                piece = b""
            self._changed.set()
            if piece or self._has_ended:
                return piece
            await self._change()

    def close(self) -> None:
        """Release the remaining bytes."""
        self._space.let_go(self._held)
        self._held = 0
        self._pieces.clear()
        if self._file is not None:
            self._file.close()

    def _put_in_memory(self, piece: bytes) -> bool:
        behind = self._file is not None and self._place < self._file.length
        if behind or self._held + len(piece) > _ANSWER or not self._space.hold(len(piece)):
            return False
        self._held += len(piece)
        self._pieces.append(piece)
        return True

    async def _put_in_file(self, piece: bytes) -> bool:
        if self._file is None:
            self._file = SpoolFile(self._space)
        elif self._file.length and self._place == self._file.length:
            self._file.clear()
            self._place = 0
        return await self._file.append([piece])

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()


async def _in_thread(work: Callable[..., T], *arguments: Any) -> T:
    """Do work on a file, which stays open until the work is done, also when the task that waits for it is cancelled."""
    done = asyncio.ensure_future(asyncio.to_thread(work, *arguments))
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        await asyncio.wait({done})
        raise
