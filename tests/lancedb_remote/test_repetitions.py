"""Changes that take longer than lancedb's client waits, and reads that take longer than they are given."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import lancedb
import pytest
from lancedb.remote import ClientConfig, RetryConfig, TimeoutConfig

from namespace_server.rest import under_way
from namespace_server.workers.change_pool import ChangePool
from namespace_server.workers.read_pool import ReadPool
from tests.data.arrow import ARROW, stream
from tests.lancedb_remote.remote import Shop, connect, new_name, refused, rows
from tests.running import running
from tests.waiting import until

AGENT = {"user-agent": "LanceDB-Python-Client/0.40.0", "x-lancedb-database": "shop"}


class Slow:
    """A server whose updates take so many seconds; how many changes were begun, and ended."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.held = 1.5
        self.begun = 0
        self.ended = 0


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    begin = ChangePool.change
    with running(tmp_path) as url:
        made = Slow(url)

        @asynccontextmanager
        async def change(self: ChangePool, *given: Any) -> AsyncIterator[Any]:
            made.begun += 1
            try:
                await asyncio.sleep(made.held if given[0].operation == "update_table" else 0)
                async with begin(self, *given) as change:
                    yield change
            finally:
                made.ended += 1

        monkeypatch.setattr(ChangePool, "change", change)
        yield made


def made_table(slow: Slow) -> Any:
    """A table of a client that waits for two seconds, and asks three times."""
    name = connect(slow.url).create_table(new_name(), rows(3)).name
    config = ClientConfig(
        retry_config=RetryConfig(retries=3, backoff_factor=0.1, backoff_jitter=0.0),
        timeout_config=TimeoutConfig(read_timeout=timedelta(seconds=2)),
    )
    db = lancedb.connect("db://shop", api_key="key", host_override=slow.url, client_config=config)
    slow.begun = slow.ended = 0
    return db.open_table(name)


def test_a_change_that_takes_longer_than_the_client_waits_is_made_once_and_answered(slow: Slow) -> None:
    """Three requests of two seconds each, all of them for one change that takes more than four."""
    table = made_table(slow)
    slow.held = 4.3
    answer = table.update(values_sql={"price": "price + 1"})
    assert (answer.rows_updated, answer.version, slow.begun) == (3, 2, 1)
    assert table.count_rows("price = id / 2.0 + 1") == 3


def test_a_change_whose_client_has_gone_goes_on_if_it_may_be_asked_for_again(slow: Slow) -> None:
    table = made_table(slow)
    path = f"{slow.url}/v1/table/{table.name}/update/"
    body = {"updates": [["price", "price + 1"]]}
    for keyed in (False, True):
        headers = AGENT | ({"x-request-id": str(uuid.uuid4())} if keyed else {})
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(path, json=body, headers=headers, timeout=0.5)
    until(lambda: slow.ended == 2)
    until(lambda: table.version == 2)  # that with a key went on
    time.sleep(0.2)
    assert (slow.begun, table.version) == (2, 2)


def test_a_repetition_that_asks_for_something_else_waits_for_nothing(slow: Slow) -> None:
    table = made_table(slow)
    path = f"{slow.url}/v1/table/{table.name}/update/"
    headers = AGENT | {"x-request-id": str(uuid.uuid4())}
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(path, json={"updates": [["price", "1.0"]]}, headers=headers, timeout=0.5)
    other = httpx.post(path, json={"updates": [["price", "2.0"]]}, headers=headers, timeout=30)
    assert other.status_code == 400
    assert "used for another request" in other.text
    assert (table.count_rows("price = 1.0"), table.version) == (3, 2)


@pytest.mark.parametrize("goes", [False, True])
def test_the_clients_of_one_change(goes: bool) -> None:
    """Without any it goes on for the time of patience; one that asks again meanwhile has its answer."""

    async def run() -> None:
        changes = under_way.UnderWay(patience=0.2)
        asked, begun, cancelled = under_way.AskedChange("key", "what"), [], []

        async def work() -> Any:
            begun.append(1)
            try:
                await asyncio.sleep(0.6)
            except asyncio.CancelledError:
                cancelled.append(1)
                raise
            return "answer"

        async def stays() -> Any:
            await asyncio.Event().wait()

        async def leaves() -> Any:
            await asyncio.sleep(0.05)
            return {"type": "http.disconnect"}

        def ask(receive: Callable[[], Any], what: under_way.AskedChange = asked) -> asyncio.Task[Any]:
            return asyncio.create_task(changes.finish_once(what, work, receive, "ann"))

        first = ask(leaves)
        with pytest.raises(under_way.ClientLeft):
            await first
        assert len(changes) == 1
        if goes:
            await asyncio.sleep(0.4)
            assert (cancelled, len(changes)) == ([1], 0)
            assert await ask(stays) == "answer"
            assert begun == [1, 1]
        else:
            answers = await asyncio.gather(ask(stays), ask(stays), ask(stays, under_way.AskedChange("key", "else")))
            assert answers == ["answer"] * 3
            assert (begun, cancelled) == ([1, 1], [])
        await asyncio.sleep(0.3)
        assert (len(changes), changes._repeatable) == (0, {})

    asyncio.run(run())


def test_the_time_of_patience_begins_when_the_last_client_goes() -> None:
    async def run() -> None:
        changes, begun = under_way.UnderWay(patience=1.0), []

        async def work() -> Any:
            begun.append(1)
            await asyncio.sleep(2)
            return "answer"

        async def leaves() -> Any:
            return {"type": "http.disconnect"}

        async def stays() -> Any:
            await asyncio.Event().wait()

        asked = under_way.AskedChange("key", "what")
        for _ in range(2):
            with pytest.raises(under_way.ClientLeft):
                await changes.finish_once(asked, work, leaves, "ann")
            await asyncio.sleep(0.6)  # after the second one, the time of the first is over
        assert await changes.finish_once(asked, work, stays, "ann") == "answer"
        assert begun == [1]

    asyncio.run(run())


@pytest.fixture
def held_reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Reads of rows that take a second; those that were broken off."""
    ended: list[str] = []
    for name in ("rows", "value"):
        begin: Any = getattr(ReadPool, name)

        async def hold(operation: str) -> None:
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                ended.append(operation)
                raise

        if name == "rows":

            @asynccontextmanager
            async def read(self: ReadPool, *given: Any, begin: Any = begin) -> AsyncIterator[Any]:
                await hold(given[0].operation)
                async with begin(self, *given) as found:
                    yield found
        else:

            async def read(self: ReadPool, *given: Any, begin: Any = begin) -> Any:
                await hold(given[0].operation)
                return await begin(self, *given)

        monkeypatch.setattr(ReadPool, name, read)
    return ended


def test_a_read_ends_when_its_time_is_over(shop: Shop, held_reads: list[str]) -> None:
    table = shop.table(rows(3))
    with refused("timeout"):  # the client looks at its own clock as well
        table.search().limit(3).to_arrow(timeout=timedelta(milliseconds=200))
    until(lambda: held_reads == ["query_table"], 5)
    assert table.search().limit(3).to_arrow(timeout=timedelta(seconds=30)).num_rows == 3
    http = httpx.Client(base_url=shop.url, headers=AGENT)
    with http:
        for path, body in (
            ("query", {"k": 1, "vector": []}),
            ("count_rows", {"predicate": "id > 1"}),
            ("explain_plan", {"query": {"k": 1, "vector": []}}),
        ):
            answer = http.post(
                f"/v1/table/{table.name}/{path}/", json=body, headers={"x-request-timeout-ms": "200"}, timeout=10
            )
            assert (answer.status_code, answer.json()["outcome"]) == (408, "nothing_done")


def test_a_time_that_is_none_is_refused(shop: Shop) -> None:
    table = shop.table(rows(3))
    path = f"{shop.url}/v1/table/{table.name}"
    for text in ("", "-1", "1.5", "1s", "9" * 20):
        answer = httpx.post(f"{path}/query/", json={"k": 1}, headers=AGENT | {"x-request-timeout-ms": text})
        assert (answer.status_code, "x-request-timeout-ms" in answer.text) == (400, True)
    given = AGENT | {"x-request-timeout-ms": "1000"}
    for what, body in (("update", {"updates": [["price", "1"]]}), ("describe", {}), ("create_index", {})):
        answer = httpx.post(f"{path}/{what}/", json=body, headers=given)
        assert (answer.status_code, "x-request-timeout-ms" in answer.text) == (400, True)
    assert table.version == 1


def test_a_merge_that_is_late_did_nothing(shop: Shop) -> None:
    """Its time bounds the work before the commit. One that is committed says so, however late."""
    table = shop.table(rows(3))
    path = f"{shop.url}/v1/table/{table.name}/merge_insert/?on=id&when_matched_update_all=true"
    body: dict[str, Any] = {"content": stream(rows(3)), "timeout": 30}
    late = httpx.post(path, headers=AGENT | ARROW | {"x-request-timeout-ms": "0"}, **body)
    assert (late.status_code, late.json()["outcome"]) == (408, "nothing_done"), late.text
    assert table.version == 1
    in_time = httpx.post(path, headers=AGENT | ARROW | {"x-request-timeout-ms": "30000"}, **body)
    assert (in_time.status_code, in_time.json()["num_updated_rows"]) == (200, 3)
