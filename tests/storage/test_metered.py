"""A store whose calls are measured."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from lance_core.errors import AlreadyExists, NotFound, StorageError, StorageUnknown
from lance_core.storage.local import LocalStore
from lance_core.storage.memory import MemoryStore
from lance_core.storage.port import ObjectStore
from lance_core.storage.wrappers import metered
from lance_core.storage.wrappers.delegation import WrappedStore
from lance_core.storage.wrappers.metered import KINDS, OUTCOMES, MeteredStore
from tests.storage.contract import StoreContract, racers
from tests.storage.faults import Fault, FaultStore
from tests.storage.latency import LatencyStore

__all__ = ["racers"]


class Calls:
    """What was measured."""

    def __init__(self) -> None:
        self.made: list[tuple[str, str]] = []
        self.seconds = 0.0

    def __call__(self, kind: str, outcome: str) -> Callable[[float], None]:
        assert kind in KINDS
        assert outcome in OUTCOMES

        def observe(seconds: float) -> None:
            self.made.append((kind, outcome))
            self.seconds += seconds

        return observe


class TestMeteredStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> ObjectStore:
        return MeteredStore(LocalStore(tmp_path, "none"), Calls())

    @pytest.fixture
    def other(self, tmp_path: Path) -> ObjectStore:
        return LocalStore(tmp_path, "none")


class TestMeteredRemoteStore(StoreContract):
    @pytest.fixture
    def store(self) -> ObjectStore:
        return MeteredStore(LatencyStore(MemoryStore(), 0.0), Calls())

    @pytest.fixture
    def other(self, store: MeteredStore) -> ObjectStore:
        return store.innermost


def test_tells_kinds_and_outcomes(tmp_path: Path) -> None:
    calls = Calls()
    store = MeteredStore(LocalStore(tmp_path, "none"), calls)
    store.put("a", b"x")
    assert store.find("a") == b"x"
    assert store.find("b") is None
    with pytest.raises(NotFound):
        store.get("b")
    with pytest.raises(AlreadyExists):
        store.put_if_absent("a", b"y")
    store.publish("a", "c", b"x")
    store.require(["a", "c"])
    assert [meta.path for meta in store.list("")] == ["a", "c"]
    store.delete_all(["a", "c"])
    assert calls.made == [
        ("put", "ok"),
        ("get", "ok"),
        ("get", "not_found"),
        ("get", "not_found"),
        ("put_if_absent", "conflict"),
        ("put_if_absent", "ok"),
        ("head", "ok"),
        ("list", "ok"),
        ("delete", "ok"),
    ]


def test_takes_apart_what_a_bucket_takes_apart() -> None:
    calls = Calls()
    store = MeteredStore(LatencyStore(MemoryStore(), 0.0), calls)
    store.put("a", b"x")
    store.require(["a", "a", "a"])
    assert calls.made == [("put", "ok"), *[("head", "ok")] * 3]


def test_tells_a_lost_answer_from_a_refusal(tmp_path: Path) -> None:
    calls = Calls()
    inner = FaultStore(LocalStore(tmp_path, "none"))
    store = MeteredStore(inner, calls)
    inner.fail(Fault.LOST_ANSWER)
    with pytest.raises(StorageUnknown):
        store.put_if_absent("a", b"x")
    (tmp_path / "d").write_bytes(b"no directory")
    with pytest.raises(StorageError):
        store.put("d/e", b"x")
    assert calls.made == [("put_if_absent", "unknown"), ("put", "error")]


def test_counts_the_time_of_a_listing_and_not_of_its_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(metered, "_clock", lambda: now[0])
    inner = FaultStore(MemoryStore())
    inner.put("a", b"x")
    inner.before(lambda _verb, _path: now.__setitem__(0, now[0] + 1.0))
    calls = Calls()
    for _ in MeteredStore(inner, calls).list(""):
        now[0] += 10.0
    assert (calls.made, calls.seconds) == ([("list", "ok")], 1.0)
    listing = MeteredStore(inner, calls).list("")
    next(listing)
    now[0] += 10.0
    listing.close()
    assert (calls.made, calls.seconds) == ([("list", "ok")] * 2, 2.0)


def test_sync_is_a_call_where_it_does_something(tmp_path: Path) -> None:
    for durability, expected in (("none", []), ("fsync", [("sync", "ok")])):
        calls = Calls()
        inner = LocalStore(tmp_path, durability)  # type: ignore[arg-type]
        inner.put("a", b"x")
        MeteredStore(inner, calls).sync(["a"])
        inner.close()
        assert calls.made == expected


def test_calls_in_threads_are_made_in_the_context_of_their_caller() -> None:
    store = MeteredStore(LatencyStore(MemoryStore(), 0.0, workers=4), Calls())
    variable: ContextVar[str] = ContextVar("variable", default="none")
    variable.set("mine")
    barrier = threading.Barrier(3, timeout=30)

    def look(_: int) -> str:
        barrier.wait()
        return variable.get()

    assert store.map(look, range(3)) == ["mine"] * 3
    seen: list[str] = []
    with store.beside(lambda: seen.append(variable.get())):
        pass
    assert seen == ["mine"]


def test_a_call_under_way_is_told(tmp_path: Path) -> None:
    inner, begun, go_on = LocalStore(tmp_path, "none"), threading.Event(), threading.Event()

    class Hanging(WrappedStore):
        def _call(self, verb: str, path: str, request: Callable[[], Any]) -> Any:
            if path == "t/slow":
                begun.set()
                assert go_on.wait(30)
            return super()._call(verb, path, request)

    store = MeteredStore(Hanging(inner), Calls())
    store.put("t/fast", b"x")
    store.put("t/source", b"x")
    assert store.longest_call() is None
    for kind, call in (
        ("get", lambda: store.get("t/slow")),
        ("get", lambda: store.find("t/slow")),
        ("head", lambda: store.head("t/slow")),
        ("put", lambda: store.put("t/slow", b"x")),
        (None, lambda: store.copy("t/source", "t/slow")),
    ):
        begun.clear()
        go_on.clear()
        thread = threading.Thread(target=lambda call=call: suppressed(call))
        thread.start()
        assert begun.wait(30)
        store.get("t/fast")
        waiting = WrappedStore(store).longest_call()
        assert (None if waiting is None else waiting[:2]) == (None if kind is None else (kind, "t/slow"))
        assert waiting is None or 0 <= waiting.seconds < 30
        go_on.set()
        thread.join()
        assert store.longest_call() is None


def suppressed(call: Callable[[], object]) -> None:
    with suppress(NotFound):
        call()
