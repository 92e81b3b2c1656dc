"""Counting and delaying stores."""

import threading
import time
from pathlib import Path

import pytest

from lance_core.errors import AlreadyExists, NotFound
from lance_core.storage.local import LocalStore
from lance_core.storage.memory import MemoryStore
from lance_core.storage.port import ObjectStore
from lance_core.storage.wrappers.counting import CountingStore
from tests.storage.contract import StoreContract, racers
from tests.storage.latency import LatencyStore

__all__ = ["racers"]


class TestCountingStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> ObjectStore:
        return CountingStore(LocalStore(tmp_path, "none"))

    @pytest.fixture
    def other(self, tmp_path: Path) -> ObjectStore:
        return LocalStore(tmp_path, "none")


class TestLatencyStore(StoreContract):
    @pytest.fixture
    def store(self) -> ObjectStore:
        return LatencyStore(MemoryStore(), 0.0)

    @pytest.fixture
    def other(self, store: LatencyStore) -> ObjectStore:
        return store.inner


@pytest.fixture(params=["serial", "threads"])
def counting(request: pytest.FixtureRequest) -> CountingStore:
    """Over a store whose `map` is serial, and over one with threads: the counts are the same."""
    inner: ObjectStore = MemoryStore()
    if request.param == "threads":
        inner = LatencyStore(inner, 0.0, workers=4)
    store = CountingStore(inner)
    store.put("a", b"x")
    store.reset()
    return store


def test_counts_requests_by_verb(counting: CountingStore) -> None:
    counting.get("a")
    counting.get("a")
    counting.put("b", b"x")
    with pytest.raises(NotFound):
        counting.head("c")
    list(counting.list(""))
    assert counting.cost.requests == 5
    assert counting.cost.by_verb == {"get": 2, "put": 1, "head": 1, "list": 1}
    assert counting.cost.round_trips == 5


def test_failures_count(counting: CountingStore) -> None:
    with pytest.raises(AlreadyExists):
        counting.put_if_absent("a", b"x")
    with pytest.raises(NotFound):
        counting.map(counting.get, ["nothing", "nowhere"])
    assert (counting.cost.requests, counting.cost.round_trips) == (3, 2)


def test_a_map_takes_as_long_as_its_longest_item(counting: CountingStore) -> None:
    def steps(count: int) -> None:
        for _ in range(count):
            counting.get("a")

    with counting.measure() as cost:
        counting.map(steps, [1, 3, 2, 0])
    assert (cost.requests, cost.round_trips) == (6, 3)


def test_nested_maps(counting: CountingStore) -> None:
    def outer(width: int) -> None:
        counting.get("a")
        counting.map(counting.get, ["a"] * width)
        counting.gather([lambda: counting.get("a"), lambda: counting.map(counting.get, ["a", "a"])])

    with counting.measure() as cost:
        counting.map(outer, [1, 2, 9])
        counting.get("a")
    assert cost.round_trips == 3 + 1
    assert cost.requests == 3 * (1 + 3) + (1 + 2 + 9) + 1


@pytest.mark.parametrize(("in_block", "in_call"), [(3, 2), (1, 2), (0, 1)])
def test_a_block_and_the_call_beside_it_take_as_many_round_trips_as_the_longer_one(
    counting: CountingStore, in_block: int, in_call: int
) -> None:
    with counting.measure() as cost, counting.beside(lambda: [counting.get("a") for _ in range(in_call)]):
        for _ in range(in_block):
            counting.get("a")
    assert (cost.requests, cost.round_trips) == (in_block + in_call, max(in_block, in_call))


def test_an_empty_map_takes_no_round_trip(counting: CountingStore) -> None:
    counting.map(counting.get, [])
    counting.gather([lambda: None])
    counting.sync(["a"])
    assert (counting.cost.requests, counting.cost.round_trips) == (0, 0)


def test_measurements_can_be_nested(counting: CountingStore) -> None:
    with counting.measure() as outer:
        counting.get("a")
        with counting.measure() as inner:
            counting.get("a")
    counting.get("a")
    assert (inner.round_trips, outer.round_trips, counting.cost.round_trips) == (1, 2, 3)


def test_calls_of_helper_threads_are_measured(counting: CountingStore) -> None:
    with counting.measure() as cost:
        worker = threading.Thread(target=lambda: counting.map(counting.get, ["a", "a"]))
        worker.start()
        worker.join()
    assert (cost.requests, cost.round_trips) == (2, 1)


def test_reset_sets_the_cost_to_zero(counting: CountingStore) -> None:
    counting.get("a")
    before = counting.cost
    counting.reset()
    counting.get("a")
    counting.get("a")
    assert (before.requests, counting.cost.requests) == (1, 2)


def test_two_stores_are_counted_separately() -> None:
    one, two = CountingStore(MemoryStore()), CountingStore(MemoryStore())
    one.map(lambda number: two.put(f"{number}", b"x"), range(3))
    assert (one.cost.requests, one.cost.round_trips) == (0, 0)
    assert (two.cost.requests, two.cost.round_trips) == (3, 3)


def test_latency_is_paid_per_call() -> None:
    store = LatencyStore(MemoryStore(), 0.05, workers=16)
    assert not store.local
    begin = time.perf_counter()
    store.put("a", b"x")
    store.get("a")
    serial = time.perf_counter() - begin
    assert serial >= 0.1
    store.close()


def test_a_map_on_a_store_with_latency_makes_requests_at_the_same_time() -> None:
    store = LatencyStore(MemoryStore(), 0.0, workers=16)
    meeting = threading.Barrier(8, timeout=30)
    store.map(lambda _: meeting.wait(), range(16))
    store.close()


def test_a_closed_store_still_maps_in_the_calling_thread() -> None:
    store = LatencyStore(MemoryStore(), 0.0)
    store.close()
    assert store.map(lambda number: number + 1, [1, 2]) == [2, 3]
