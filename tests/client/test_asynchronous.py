"""The catalog for asyncio: the same surface, each call in a thread."""

# ruff: noqa: PT012 - leaving the block is what raises

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from namespace_client import (
    AsyncCatalog,
    AsyncCatalogView,
    AsyncTableReader,
    AsyncTransaction,
    Catalog,
    CatalogClosed,
    CatalogView,
    MultiTableTransaction,
    NotFound,
    RetryableConflict,
    TableReader,
)
from tests.client.scene import Scene, rows


@asynccontextmanager
async def connected(scene: Scene) -> AsyncIterator[AsyncCatalog]:
    async with AsyncCatalog.connect(scene.target, namespace=scene.namespace) as catalog:
        yield catalog


def surface(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


@pytest.mark.parametrize(
    ("asynchronous", "blocking"),
    [
        (AsyncCatalog, Catalog),
        (AsyncCatalogView, CatalogView),
        (AsyncTransaction, MultiTableTransaction),
        (AsyncTableReader, TableReader),
    ],
)
def test_everything_is_there_with_the_same_parameters(asynchronous: type, blocking: type) -> None:
    assert surface(blocking) - surface(asynchronous) == set()
    for name in surface(asynchronous) - {"connect"}:
        ours, theirs = getattr(asynchronous, name), getattr(blocking, name, None)
        if inspect.isfunction(ours) and inspect.isfunction(theirs):
            assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters), name
            assert ours.__doc__


def test_a_transaction_reads_and_changes_tables(scene: Scene) -> None:
    async def work() -> None:
        async with connected(scene) as catalog:
            await catalog.create("t", rows(1))
            async with catalog.begin(message="from a coroutine") as tx:
                await asyncio.gather(tx.append("t", rows(2)), tx.append("t", rows(3)), tx.create("u", rows(1)))
                reader = await tx.table("t")
                assert (await reader.to_table()).num_rows == await reader.count_rows() == 3
                assert (await reader.schema()).names == ["id", "v"]
            assert tx.result.catalog_version == scene.catalog_version()
            read, described, names = await asyncio.gather(
                catalog.read("t", ["id"], filter="id > 1"), catalog.describe("u"), catalog.tables()
            )
            assert (read.num_rows, described.rows, len(names)) == (2, 1, 2)
            view = await catalog.at(scene.catalog_version() - 1)
            assert (await view.read("t")).num_rows == 1
            [batch] = (await catalog.history(1))[0].batches
            assert batch.message == "from a coroutine"
            assert (await catalog.dataset("t")).count_rows() == 3

    asyncio.run(work())
    assert scene.ids("t") == [1, 2, 3]


def test_the_loop_runs_while_a_call_works(local: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()

    async def work() -> None:
        loop, entered = asyncio.get_running_loop(), asyncio.Event()
        async with connected(local) as catalog:
            listed = catalog._blocking.access.tables

            def held(*given: Any, **options: Any) -> list[str]:
                loop.call_soon_threadsafe(entered.set)
                assert go_on.wait(10)
                return listed(*given, **options)

            monkeypatch.setattr(catalog._blocking.access, "tables", held)
            call = asyncio.create_task(catalog.tables())
            await entered.wait()
            assert not call.done()
            go_on.set()
            assert await call == []

    asyncio.run(work())


@pytest.mark.parametrize("way", ["retrying", "run"])
def test_a_block_runs_again_after_a_conflict(scene: Scene, way: str) -> None:
    scene.make("t", 1)
    attempts = []

    async def block(tx: AsyncTransaction) -> int:
        await tx.update("t", {"v": "v + 1"})
        attempts.append(tx)
        if len(attempts) == 1:
            with scene.catalog.begin() as other:
                other.update("t", {"v": "v + 10"})
        return len(attempts)

    async def work() -> None:
        async with connected(scene) as catalog:
            if way == "run":
                assert await catalog.run(block) == 2
                return
            async for attempt in catalog.retrying():
                async with attempt as tx:
                    await block(tx)

    asyncio.run(work())
    assert len(attempts) == 2
    assert scene.values()[1] == 12


def test_the_last_conflict_is_raised(local: Scene) -> None:
    local.make("t", 1)

    async def block(tx: AsyncTransaction) -> None:
        await tx.update("t", {"v": "v + 1"})
        with local.catalog.begin() as other:
            other.update("t", {"v": "v + 10"})

    async def work() -> None:
        async with connected(local) as catalog:
            await catalog.run(block, attempts=2)

    with pytest.raises(RetryableConflict):
        asyncio.run(work())


def test_an_exception_or_a_cancellation_in_the_block_commits_nothing(local: Scene) -> None:
    local.make("t", 1)
    appended = asyncio.Event()

    async def block(catalog: AsyncCatalog) -> None:
        async with catalog.begin() as tx:
            await tx.append("t", rows(2))
            appended.set()
            await asyncio.sleep(60)

    async def work() -> None:
        async with connected(local) as catalog:
            task = asyncio.create_task(block(catalog))
            await appended.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            with pytest.raises(ZeroDivisionError):
                async with catalog.begin() as tx:
                    await tx.append("t", rows(3))
                    raise ZeroDivisionError
            with pytest.raises(NotFound):
                await catalog.read("absent")

    asyncio.run(work())
    assert local.ids() == [1]


def test_leases(scene: Scene) -> None:
    scene.make("t", 1)

    async def work() -> None:
        async with connected(scene) as catalog:
            async with catalog.keeping(reason="a reader") as pinned:
                assert pinned.version == scene.catalog_version()
                assert "a reader" in {pin.reason for pin in await catalog.pins()}
            assert "a reader" not in {pin.reason for pin in await catalog.pins()}
            async with catalog.intent(["t"], lasting=timedelta(hours=1), reason=scene.namespace):
                assert scene.namespace in {intent.reason for intent in await catalog.intents()}
            assert scene.namespace not in {intent.reason for intent in await catalog.intents()}

    asyncio.run(work())


def closed(call: Callable[[AsyncCatalog], Coroutine[Any, Any, object]], scene: Scene) -> None:
    async def work() -> None:
        async with connected(scene) as catalog:
            pass
        with pytest.raises(CatalogClosed):
            await call(catalog)

    asyncio.run(work())


def test_after_its_block_it_is_closed(local: Scene) -> None:
    closed(lambda catalog: catalog.tables(), local)
    closed(lambda catalog: catalog.create("t", rows(1)), local)
    assert repr(AsyncCatalog(local.catalog)) == f"<AsyncCatalog of {local.catalog!r}>"
