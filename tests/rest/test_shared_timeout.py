"""One timer for the timeouts of many tasks."""

from __future__ import annotations

import asyncio

import pytest

from namespace_server.rest.request.body import SharedTimeout


async def wait_within(bound: SharedTimeout, event: asyncio.Event) -> str:
    try:
        with bound:
            await event.wait()
    except TimeoutError:
        return "late"
    return "in time"


def test_each_task_has_the_whole_time_and_no_more() -> None:
    async def run() -> tuple[list[str], list[float]]:
        loop, timeout, never, ended = asyncio.get_running_loop(), SharedTimeout(0.2), asyncio.Event(), []
        began = loop.time()

        async def wait() -> str:
            outcome = await wait_within(timeout, never)
            ended.append(loop.time() - began)
            return outcome

        first = asyncio.create_task(wait())
        await asyncio.sleep(0.1)
        second = asyncio.create_task(wait())
        return [await first, await second], ended

    outcomes, ended = asyncio.run(run())
    assert outcomes == ["late", "late"]
    assert ended[0] >= 0.2
    assert ended[1] >= 0.3


def test_a_block_that_ends_in_time_is_left_alone_afterwards() -> None:
    async def run() -> str:
        timeout, event = SharedTimeout(0.05), asyncio.Event()
        event.set()
        outcome = await wait_within(timeout, event)
        await asyncio.sleep(0.15)
        return outcome

    assert asyncio.run(run()) == "in time"


def test_a_later_block_of_the_same_task_has_its_own_time() -> None:
    async def run() -> list[str]:
        timeout, set_, never = SharedTimeout(0.1), asyncio.Event(), asyncio.Event()
        set_.set()
        return [await wait_within(timeout, event) for event in (set_, never, set_, never)]

    assert asyncio.run(run()) == ["in time", "late", "in time", "late"]


def test_a_late_task_counts_as_cancelled_no_longer() -> None:
    async def run() -> int:
        task = asyncio.current_task()
        assert task is not None
        assert await wait_within(SharedTimeout(0.01), asyncio.Event()) == "late"
        return task.cancelling()

    assert asyncio.run(run()) == 0


def test_a_cancelled_task_is_cancelled_and_not_late() -> None:
    async def run() -> None:
        waiting = asyncio.create_task(wait_within(SharedTimeout(0.05), asyncio.Event()))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.sleep(0.1)

    asyncio.run(run())


def test_other_exceptions_pass() -> None:
    async def run() -> None:
        with SharedTimeout(0.05):
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        asyncio.run(run())
