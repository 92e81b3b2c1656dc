"""One thread flips for all that wait; each returns as soon as its own batches are decided."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from lance_namespace.errors import InvalidInputError

from namespace_server.directory.committing.flip_queue import FlipQueue
from namespace_server.directory.committing.group_planner import PendingBatch
from namespace_server.directory.model.errors import BatchUnknown
from namespace_server.directory.model.operations import Batch
from tests.directory.tables import Ground


def decided(batches: Iterable[PendingBatch]) -> list[PendingBatch]:
    """These batches, with a verdict."""
    found = list(batches)
    for each in found:
        each.verdict = InvalidInputError("no")
    return found


def pending(name: str) -> PendingBatch:
    return PendingBatch(Batch(name, (), "hash"), {}, frozenset())


def test_what_arrives_during_a_flip_is_one_group() -> None:
    queue = FlipQueue(10)
    mine = [pending("a")]
    queue.add(mine)
    assert queue.take_group(mine) == mine
    others = [[pending(name)] for name in "bcde"]
    with ThreadPoolExecutor(4) as pool:
        groups = []
        for batch in others:
            queue.add(batch)
            groups.append(pool.submit(queue.take_group, batch))
        assert not any(group.done() for group in groups)
        queue.release()
        taken = []
        while not taken:
            taken = [group for group in groups if group.done()]
        [leader] = taken
        assert leader.result() == [batch for [batch] in others]
        queue.finish(decided(leader.result()))
        assert [group.result(10) for group in groups if group is not leader] == [[], [], []]
    assert queue.take_group(others[0]) == []


def test_a_thread_whose_batches_are_decided_does_not_wait_for_a_flip() -> None:
    queue = FlipQueue(10)
    mine, other = [pending("a")], [pending("b")]
    queue.add([*mine, *other])
    with ThreadPoolExecutor(1) as pool:
        with queue.flipping():
            waiting = pool.submit(queue.take_group, other)
            queue.finish(decided(other))
            assert waiting.result(10) == []
        assert queue.take_group(mine) == [*mine, *other]


def test_a_thread_whose_batches_are_being_promoted_flips_nothing() -> None:
    """Another thread flips those that wait: this one would delay its own answer."""
    queue = FlipQueue(10)
    mine = [pending("a")]
    queue.add(mine)
    queue.take_group(mine)
    queue.release()
    queue.add([pending("b")])
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(queue.take_group, mine)
        with pytest.raises(TimeoutError):
            waiting.result(0.05)
        queue.finish(decided(mine))
        assert waiting.result(10) == []


def test_a_group_is_bounded() -> None:
    queue = FlipQueue(2)
    mine = [pending(name) for name in "abc"]
    queue.add(mine)
    assert queue.take_group(mine) == mine[:2]
    queue.finish(decided(mine[:2]))
    assert queue.take_group(mine) == mine[2:]


def test_nothing_else_flips_meanwhile() -> None:
    queue = FlipQueue(2)
    mine = [pending("a")]
    queue.add(mine)
    entered = threading.Event()

    def flip() -> None:
        with queue.flipping():
            entered.set()

    with ThreadPoolExecutor(1) as pool:
        queue.take_group(mine)
        pool.submit(flip)
        assert not entered.wait(0.05)
        queue.release()
        assert entered.wait(10)


def test_batches_that_must_follow_their_group_come_first_in_the_next_one() -> None:
    queue = FlipQueue(3)
    mine, others = [pending(name) for name in "abc"], [pending(name) for name in "de"]
    queue.add([*mine, *others])
    assert queue.take_group(mine) == mine
    decided(mine[:1])
    queue.finish(mine)
    assert [each.decided for each in mine] == [True, False, False]
    assert queue.take_group(mine) == [*mine[1:], *others[:1]]


def test_nobody_waits_for_a_thread_that_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library raises what is no `Exception` while a batch of another thread is in the same group."""

    class Panic(BaseException):
        pass

    def panic(_: object) -> None:
        raise Panic

    committer = Ground(tmp_path).catalog.committer
    monkeypatch.setattr(committer._loop, "run", panic)
    of_another = pending("b")
    committer._queue.add([of_another])
    with pytest.raises(Panic):
        committer.decide([Batch("a", (), "hash")])
    assert of_another.decided
    assert isinstance(of_another.verdict, BatchUnknown)
