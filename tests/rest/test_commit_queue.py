"""The queue in front of the committer."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import httpx
import pytest
from lance_namespace.errors import ServiceUnavailableError, TableNotFoundError

from namespace_server.directory.model.errors import BatchUnknown
from namespace_server.rest.commit_queue import CommitQueue


def names(catalog: Any) -> list[list[str]]:
    return [[call.request["n"] for call in group] for group in catalog.groups]


def call(catalog: Any, n: int) -> Any:
    return catalog.prepare("declare_table", {"n": n})


async def until_entered(catalog: Any) -> None:
    """Wait until a worker is inside `commit`."""
    assert await asyncio.to_thread(catalog.entered.acquire, timeout=30)


class TestCommitQueue:
    async def _started(self, catalog: Any, **options: Any) -> CommitQueue:
        commits = CommitQueue(catalog, **{"workers": 1, "group": 64, "share": 8, "wait": 0.002, **options})
        commits.start()
        return commits

    def test_what_queued_during_a_commit_shares_the_next(self, echo_catalog: Any) -> None:
        async def run() -> None:
            commits = await self._started(echo_catalog)
            echo_catalog.gate.clear()
            first = asyncio.create_task(commits.enqueue(call(echo_catalog, 0)))
            await until_entered(echo_catalog)
            rest = [asyncio.create_task(commits.enqueue(call(echo_catalog, n))) for n in range(1, 5)]
            await asyncio.sleep(0)
            echo_catalog.gate.set()
            answers = await asyncio.gather(first, *rest)
            assert [answer.body["request"]["n"] for answer in answers] == [0, 1, 2, 3, 4]
            await commits.close()

        asyncio.run(run())
        assert names(echo_catalog) == [[0], [1, 2, 3, 4]]

    def test_who_waits_has_the_answer_before_anything_is_cleared_up(self, echo_catalog: Any) -> None:
        events: list[str] = []
        echo_catalog.clean_up = lambda calls: events.extend("cleared up" for _ in calls)

        async def run() -> None:
            commits = await self._started(echo_catalog)

            async def client(n: int) -> None:
                await commits.enqueue(call(echo_catalog, n))
                time.sleep(0.001)  # noqa: ASYNC251 - time for the other thread to be the first
                events.append("answered")

            for _ in range(20):
                await asyncio.gather(client(0), client(1))
            await commits.close()

        asyncio.run(run())
        assert events == ["answered", "answered", "cleared up", "cleared up"] * 20

    @pytest.mark.parametrize("iterations", [1, 30])
    def test_a_client_that_calls_again_upon_its_answer_is_in_the_next_group(
        self, echo_catalog: Any, iterations: int
    ) -> None:
        async def run() -> None:
            commits = await self._started(echo_catalog, wait=10.0)  # a group that has all clients does not wait
            echo_catalog.gate.clear()

            async def client(*calls: int) -> None:
                for n in calls:
                    await commits.enqueue(call(echo_catalog, n))
                    for _ in range(iterations):  # the way to the client and back
                        await asyncio.sleep(0)

            busy = asyncio.create_task(client(0, 4))
            await until_entered(echo_catalog)
            waiting = [asyncio.create_task(client(n)) for n in (1, 2, 3)]
            await asyncio.sleep(0)
            echo_catalog.gate.set()
            await asyncio.gather(busy, *waiting)
            await commits.close()

        asyncio.run(run())
        assert names(echo_catalog) == [[0], [1, 2, 3, 4]]

    def test_a_group_does_not_wait_for_a_client_that_does_not_call_again(self, echo_catalog: Any) -> None:
        async def run() -> None:
            commits = await self._started(echo_catalog)
            echo_catalog.gate.clear()
            busy = asyncio.create_task(commits.enqueue(call(echo_catalog, 0)))
            await until_entered(echo_catalog)
            waiting = [asyncio.create_task(commits.enqueue(call(echo_catalog, n))) for n in (1, 2, 3)]
            await asyncio.sleep(0)
            echo_catalog.gate.set()
            await asyncio.gather(busy, *waiting)
            await commits.close()

        asyncio.run(run())
        assert names(echo_catalog) == [[0], [1, 2, 3]]

    def test_every_group_is_settled_and_a_failure_of_that_fails_no_call(self, echo_catalog: Any) -> None:
        async def run() -> None:
            commits = await self._started(echo_catalog)
            for n in range(3):
                await commits.enqueue(call(echo_catalog, n))
            await commits.close()

        asyncio.run(run())
        assert echo_catalog.settled == echo_catalog.groups
        assert len(echo_catalog.groups) == 3

    def test_a_group_has_its_limit(self, echo_catalog: Any) -> None:
        async def run() -> None:
            commits = await self._started(echo_catalog, group=3)
            echo_catalog.gate.clear()
            tasks = [asyncio.create_task(commits.enqueue(call(echo_catalog, 0)))]
            await until_entered(echo_catalog)
            tasks += [asyncio.create_task(commits.enqueue(call(echo_catalog, n))) for n in range(1, 8)]
            await asyncio.sleep(0)
            echo_catalog.gate.set()
            await asyncio.gather(*tasks)
            await commits.close()

        asyncio.run(run())
        assert names(echo_catalog) == [[0], [1, 2, 3], [4, 5, 6], [7]]

    def test_a_large_call_waits_longer_for_the_client_of_another_principal(self, echo_catalog: Any) -> None:
        """It would be committed between the answer to a client and its next call otherwise, every time."""

        def of(principal: str, n: int, size: int) -> Any:
            return replace(call(echo_catalog, n), principal=principal, size=size)

        async def run() -> None:
            commits = await self._started(echo_catalog, wait=0.05)
            noisy = [asyncio.create_task(commits.enqueue(of("noisy", n, 200))) for n in range(3)]
            for n in range(10, 20):
                await commits.enqueue(of("quiet", n, 2))
                await asyncio.sleep(0.06)
            await asyncio.gather(*noisy)
            await commits.close()

        asyncio.run(run())
        order = [n for group in names(echo_catalog) for n in group]
        assert order.index(1) > order.index(19)  # one may have begun before the other principal was there

    def test_each_member_has_its_own_verdict(self, echo_catalog: Any) -> None:
        async def run() -> list[Any]:
            commits = await self._started(echo_catalog)
            echo_catalog.commit_calls = lambda calls: [
                TableNotFoundError("t") if item.request["n"] % 2 else item for item in calls
            ]
            results = await asyncio.gather(
                *(commits.enqueue(call(echo_catalog, n)) for n in range(4)), return_exceptions=True
            )
            await commits.close()
            return results

        assert [isinstance(result, TableNotFoundError) for result in asyncio.run(run())] == [False, True, False, True]

    def test_a_full_queue_refuses(self, echo_catalog: Any) -> None:
        async def run() -> None:
            commits = await self._started(echo_catalog, capacity=2)
            echo_catalog.gate.clear()
            waiting = [asyncio.create_task(commits.enqueue(call(echo_catalog, n))) for n in range(2)]
            await until_entered(echo_catalog)
            with pytest.raises(ServiceUnavailableError, match="2 commits are waiting"):
                await commits.enqueue(call(echo_catalog, 2))
            echo_catalog.gate.set()
            await asyncio.gather(*waiting)
            assert (await commits.enqueue(call(echo_catalog, 3))).catalog_version == 8
            await commits.close()

        asyncio.run(run())
        assert sorted(n for group in names(echo_catalog) for n in group) == [0, 1, 3]

    def test_closing_finishes_what_was_accepted_and_refuses_the_rest(self, echo_catalog: Any) -> None:
        async def run() -> list[Any]:
            commits = await self._started(echo_catalog, group=2)
            echo_catalog.gate.clear()
            waiting = [asyncio.create_task(commits.enqueue(call(echo_catalog, n))) for n in range(5)]
            await until_entered(echo_catalog)
            closing = asyncio.create_task(commits.close())
            await asyncio.sleep(0)
            with pytest.raises(ServiceUnavailableError, match="shutting down"):
                await commits.enqueue(call(echo_catalog, 9))
            echo_catalog.gate.set()
            await closing
            return await asyncio.gather(*waiting)

        assert len(asyncio.run(run())) == 5
        assert sorted(n for group in names(echo_catalog) for n in group) == [0, 1, 2, 3, 4]

    def test_a_waiter_that_leaves_does_not_take_its_call_along(self, echo_catalog: Any) -> None:
        async def run() -> None:
            commits = await self._started(echo_catalog)
            echo_catalog.gate.clear()
            first = asyncio.create_task(commits.enqueue(call(echo_catalog, 0)))
            await until_entered(echo_catalog)
            leaving = asyncio.create_task(commits.enqueue(call(echo_catalog, 1)))
            await asyncio.sleep(0)
            leaving.cancel()
            await asyncio.gather(leaving, return_exceptions=True)
            echo_catalog.gate.set()
            await first
            await commits.close()

        asyncio.run(run())
        assert names(echo_catalog) == [[0], [1]]

    def test_two_workers_commit_at_the_same_time(self, echo_catalog: Any) -> None:
        both = threading.Barrier(2, timeout=30)

        async def run() -> None:
            commits = await self._started(echo_catalog, workers=2, group=1)

            def meet(calls: Any) -> Any:
                both.wait()
                return list(calls)

            echo_catalog.commit_calls = meet
            await asyncio.gather(*(commits.enqueue(call(echo_catalog, n)) for n in range(2)))
            await commits.close()

        asyncio.run(run())

    def test_a_panic_is_an_unknown_outcome_and_ends_no_thread(self, echo_catalog: Any) -> None:
        """Libraries in Rust raise those as no `Exception`."""

        class Panic(BaseException):
            pass

        async def run() -> None:
            commits = await self._started(echo_catalog)
            commit = echo_catalog.commit_calls

            def panic(_: Any) -> Any:
                echo_catalog.commit_calls = commit
                raise Panic

            echo_catalog.commit_calls = panic
            with pytest.raises(BatchUnknown):
                await commits.enqueue(call(echo_catalog, 0))
            async with asyncio.timeout(30):
                await commits.enqueue(call(echo_catalog, 1))
                await commits.close()

        asyncio.run(run())

    @pytest.mark.parametrize("result", [[], [1, 2, 3]])
    def test_a_missing_verdict_is_an_unknown_outcome(self, echo_catalog: Any, result: list[int]) -> None:
        async def run() -> None:
            commits = await self._started(echo_catalog)
            echo_catalog.commit_calls = lambda _calls: result
            with pytest.raises(BatchUnknown) as caught:
                await commits.enqueue(call(echo_catalog, 0))
            assert caught.value.detail == "batch-None"
            await commits.close()

        asyncio.run(run())


def test_a_full_server_answers_503(serve: Any, echo_catalog: Any) -> None:
    echo_catalog.gate.clear()
    server = serve(echo_catalog, queue_capacity=1)
    with ThreadPoolExecutor(1) as pool, httpx.Client(base_url=server.url) as http:
        accepted = pool.submit(httpx.post, f"{server.url}/v1/table/a/declare", json={})
        assert echo_catalog.entered.acquire(timeout=30)
        response = http.post("/v1/table/b/declare", json={})
        assert (response.status_code, response.json()["code"]) == (503, 17)
        assert http.post("/v1/table/b/describe", json={}).status_code == 200
        echo_catalog.gate.set()
        assert accepted.result().status_code == 200


def test_a_server_that_ends_answers_what_it_accepted(serve: Any, echo_catalog: Any) -> None:
    echo_catalog.gate.clear()
    server = serve(echo_catalog)
    with ThreadPoolExecutor(3) as pool:
        accepted = [pool.submit(httpx.post, f"{server.url}/v1/table/{name}/declare", json={}) for name in "abc"]
        for _ in accepted:
            assert echo_catalog.prepared.acquire(timeout=30)
        server.ask_to_stop()
        echo_catalog.gate.set()
        assert [item.result().status_code for item in accepted] == [200, 200, 200]
    server.stop()
    assert sorted(call.request["id"] for group in echo_catalog.groups for call in group) == [["a"], ["b"], ["c"]]
    assert echo_catalog.closed
    with pytest.raises(httpx.ConnectError):
        httpx.post(f"{server.url}/v1/table/d/declare", json={})
