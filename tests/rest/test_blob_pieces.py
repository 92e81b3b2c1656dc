"""Long values in pieces: how much is read, when, and within which room."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from lance_namespace.errors import ThrottlingError

from namespace_server.rest import blob_pieces
from namespace_server.rest.blob_pieces import PieceSpace, pieces
from table_data.errors import WorkFailed

FIRST, LARGEST = 256 << 10, 4 << 20


class Value:
    """A value of so many bytes, and the pieces of it that were read."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.read: list[tuple[int, int]] = []

    async def __call__(self, place: int, length: int) -> bytes:
        self.read.append((place, length))
        await asyncio.sleep(0)
        return bytes(min(length, self.size - place))


async def _taken(stream: AsyncIterator[bytes]) -> int:
    return sum([len(piece) async for piece in stream])


def test_pieces_grow_while_they_are_taken_quickly() -> None:
    value, size = Value(40 << 20), 40 << 20
    assert asyncio.run(_taken(pieces(value, 5, size, PieceSpace()))) == size - 5
    lengths = [length for _, length in value.read]
    assert lengths[:2] == [FIRST, 2 * FIRST]
    assert lengths[:-1] == sorted(lengths[:-1])
    assert max(lengths) == LARGEST
    assert [place for place, _ in value.read] == [5 + sum(lengths[:n]) for n in range(len(lengths))]


def test_a_client_that_takes_them_slowly_has_short_ones_and_none_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blob_pieces, "_QUICK", 0.0)
    value, ahead = Value(10 * FIRST), []

    async def take() -> None:
        taken = 0
        async for piece in pieces(value, 0, value.size, PieceSpace()):
            taken += len(piece)
            await asyncio.sleep(0.01)
            ahead.append(sum(length for _, length in value.read) - taken)

    asyncio.run(take())
    assert {length for _, length in value.read} == {FIRST}
    assert set(ahead) == {0}


def test_all_streams_share_a_room_and_one_principal_has_three_quarters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blob_pieces, "_ROOM_TIMEOUT", 0.05)

    async def run() -> None:
        space = PieceSpace(4 * FIRST)
        stalled = [pieces(Value(LARGEST), 0, LARGEST, space, "ann") for _ in range(3)]
        for stream in stalled:
            await anext(stream)
        with pytest.raises(ThrottlingError):
            await anext(pieces(Value(LARGEST), 0, LARGEST, space, "ann"))
        other = pieces(Value(LARGEST), 0, LARGEST, space, "bob")
        await anext(other)
        with pytest.raises(ThrottlingError):
            await anext(pieces(Value(LARGEST), 0, LARGEST, space))
        for stream in (*stalled, other):
            await stream.aclose()  # type: ignore[attr-defined]
        await asyncio.sleep(0.01)  # what was being read is let go when it is there
        assert await _taken(pieces(Value(LARGEST), 0, LARGEST, space, "ann")) == LARGEST

    asyncio.run(run())


def test_clients_that_stall_with_large_pieces_leave_room_for_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blob_pieces, "_ROOM_TIMEOUT", 0.05)

    async def run() -> None:
        space, size = PieceSpace(4 * LARGEST), 40 << 20
        stalled = [pieces(Value(size), 0, size, space) for _ in range(8)]
        for stream in stalled:
            for _ in range(8):
                await anext(stream)
        assert [await _taken(pieces(Value(size), 0, size, space)) for _ in range(4)] == [size] * 4

    asyncio.run(run())


class Client:
    """A stream of a client that takes one piece, and then no more until its stream is ended for others."""

    def __init__(self, space: PieceSpace, principal: str | None = None) -> None:
        self.ended = asyncio.Event()
        self._stream = pieces(Value(LARGEST), 0, LARGEST, space, principal, self.ended.set)

    async def stall(self) -> None:
        await anext(self._stream)
        await self.ended.wait()
        await self._stream.aclose()  # type: ignore[attr-defined]


def test_any_number_of_clients_that_stall_keeps_no_other_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that has stalled for longest makes room, and of one principal, whose share is used up, its own."""
    monkeypatch.setattr(blob_pieces, "_STALLED", 0.05)

    async def run() -> None:
        space = PieceSpace(4 * FIRST)
        clients = [Client(space) for _ in range(4)]
        stalling = [asyncio.create_task(client.stall()) for client in clients]
        await asyncio.sleep(0.02)
        assert await _taken(pieces(Value(LARGEST), 0, LARGEST, space, "ann")) == LARGEST
        assert clients[0].ended.is_set()
        assert not clients[3].ended.is_set()
        for task in stalling:
            task.cancel()

    asyncio.run(run())


def test_a_principal_that_stalls_makes_room_for_itself_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blob_pieces, "_STALLED", 0.05)

    async def run() -> None:
        space = PieceSpace(4 * FIRST)
        bob, *mine = Client(space, "bob"), *(Client(space, "ann") for _ in range(3))
        stalling = [asyncio.create_task(client.stall()) for client in (bob, *mine)]
        await asyncio.sleep(0.02)
        assert await _taken(pieces(Value(FIRST), 0, FIRST, space, "ann")) == FIRST
        assert [client.ended.is_set() for client in (bob, *mine)] == [False, True, False, False]
        for task in stalling:
            task.cancel()

    asyncio.run(run())


def test_a_client_that_takes_pieces_in_time_is_not_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blob_pieces, "_ROOM_TIMEOUT", 0.05)

    async def run() -> None:
        space = PieceSpace(4 * FIRST)
        clients = [Client(space) for _ in range(4)]
        stalling = [asyncio.create_task(client.stall()) for client in clients]
        await asyncio.sleep(0.02)
        with pytest.raises(ThrottlingError):
            await anext(pieces(Value(LARGEST), 0, LARGEST, space))
        assert not any(client.ended.is_set() for client in clients)
        for task in stalling:
            task.cancel()

    asyncio.run(run())


def test_what_was_read_for_a_client_that_went_away_is_let_go() -> None:
    async def run() -> None:
        space = PieceSpace(2 * LARGEST)
        for _ in range(20):
            stream = pieces(Value(40 << 20), 0, 40 << 20, space)
            for _ in range(6):
                await anext(stream)
            await stream.aclose()  # type: ignore[attr-defined]
        await asyncio.sleep(0.01)
        await asyncio.wait_for(space.hold(2 * LARGEST, None), 1)

    asyncio.run(run())


def test_an_error_of_a_piece_is_that_of_the_stream_and_leaves_the_room() -> None:
    async def run() -> None:
        space = PieceSpace(2 * LARGEST)
        with pytest.raises(WorkFailed, match="expected 262144 bytes from 262144 on, found 0"):
            await _taken(pieces(Value(FIRST), 0, 2 * FIRST, space))
        await asyncio.wait_for(space.hold(2 * LARGEST, None), 1)

    asyncio.run(run())
