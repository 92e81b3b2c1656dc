"""`FaultStore`: failures at chosen writes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lance_core.errors import AlreadyExists, NotFound, StorageUnknown
from lance_core.storage.local import LocalStore
from lance_core.storage.memory import MemoryStore
from lance_core.storage.port import ObjectStore
from tests.storage.contract import StoreContract, racers
from tests.storage.faults import WRITES, Crashed, Fault, FaultStore, Write

__all__ = ["racers"]


class TestFaultStore(StoreContract):
    """Without rules it is a store like any other."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> ObjectStore:
        return FaultStore(LocalStore(tmp_path, "none"))

    @pytest.fixture
    def other(self, tmp_path: Path) -> ObjectStore:
        return LocalStore(tmp_path, "none")


@pytest.fixture
def inner() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def store(inner: MemoryStore) -> FaultStore:
    return FaultStore(inner)


def work(store: ObjectStore) -> None:
    """One write of every kind."""
    e_tag = store.put("a", b"1")
    assert e_tag is not None
    store.put_if_absent("b", b"1")
    store.replace("a", b"2", if_match=e_tag)
    store.publish("a", "c", b"2")
    store.rename_if_absent("b", "d")
    store.copy("d", "e")
    store.sync(["d", "c"])
    store.get("d")
    store.delete("c")
    store.delete_if("e", if_match=store.head("e").e_tag)


LOG = [
    ("put", "a"),
    ("put_if_absent", "b"),
    ("replace", "a"),
    ("publish", "c"),
    ("rename_if_absent", "d"),
    ("copy", "e"),
    ("delete", "c"),
    ("delete_if", "e"),
]


def contents(store: ObjectStore) -> dict[str, bytes]:
    return {meta.path: store.get(meta.path) for meta in store.list("")}


def test_logs_every_write_and_every_sync(store: FaultStore) -> None:
    work(store)
    assert store.writes == [Write(number, verb, path) for number, (verb, path) in enumerate(LOG)]
    assert {verb for verb, _ in LOG} == WRITES
    assert store.synced == [(6, "d"), (6, "c")]


@pytest.mark.parametrize("nth", range(len(LOG)))
def test_crashes_at_every_write_in_turn(nth: int) -> None:
    """What is there after a crash is what a run that stops there leaves."""
    states = []
    for fault in (Fault.CRASH_BEFORE, Fault.CRASH_AFTER):
        inner = MemoryStore()
        store = FaultStore(inner)
        store.fail(fault, nth=nth)
        with pytest.raises(Crashed, match=LOG[nth][0]):
            work(store)
        assert len(store.writes) == nth + 1
        assert store.crashed
        states.append(contents(inner))
    assert states[0] != states[1]
    if nth + 1 < len(LOG):
        inner = MemoryStore()
        store = FaultStore(inner)
        store.fail(Fault.CRASH_BEFORE, nth=nth + 1)
        with pytest.raises(Crashed):
            work(store)
        assert contents(inner) == states[1]


def test_after_a_crash_every_call_fails(store: FaultStore, inner: MemoryStore) -> None:
    store.put("a", b"x")
    store.fail(Fault.CRASH_BEFORE)
    with pytest.raises(Crashed):
        store.put("b", b"x")
    calls: list[Callable[[], object]] = [
        lambda: store.get("a"),
        lambda: store.head("a"),
        lambda: list(store.list("")),
        lambda: store.delete("a"),
        lambda: store.sync(["a"]),
    ]
    for call in calls:
        with pytest.raises(Crashed):
            call()
    assert contents(inner) == {"a": b"x"}
    assert contents(FaultStore(inner)) == {"a": b"x"}


def test_a_crash_is_not_an_exception_that_handlers_catch(store: FaultStore) -> None:
    store.fail(Fault.CRASH_AFTER)

    def careful() -> None:
        try:
            store.put("a", b"x")
        except Exception:  # noqa: BLE001
            pytest.fail("a dead process handled an exception")

    with pytest.raises(Crashed):
        careful()


def test_the_items_of_a_map_crash_in_order(store: FaultStore, inner: MemoryStore) -> None:
    store.fail(Fault.CRASH_AFTER, nth=1)
    with pytest.raises(Crashed):
        store.map(lambda name: store.put(name, b"x"), ["a", "b", "c"])
    assert sorted(contents(inner)) == ["a", "b"]


def test_a_lost_answer_hides_success_and_failure(store: FaultStore, inner: MemoryStore) -> None:
    store.fail(Fault.LOST_ANSWER, times=2)
    for _ in range(2):
        with pytest.raises(StorageUnknown, match="put_if_absent slot"):
            store.put_if_absent("slot", b"x")
    assert contents(inner) == {"slot": b"x"}
    with pytest.raises(AlreadyExists):
        store.put_if_absent("slot", b"x")


def test_a_lost_request_never_arrives(store: FaultStore, inner: MemoryStore) -> None:
    store.fail(Fault.LOST_REQUEST, when=lambda write: write.path == "b")
    store.put("a", b"x")
    with pytest.raises(StorageUnknown):
        store.put("b", b"x")
    assert store.deliver() == []
    assert contents(inner) == {"a": b"x"}


def test_a_delayed_write_is_applied_when_delivered(store: FaultStore, inner: MemoryStore) -> None:
    store.fail(Fault.DELAYED, times=2, when=lambda write: write.verb == "put_if_absent")
    for path in ("one", "two"):
        with pytest.raises(StorageUnknown):
            store.put_if_absent(path, b"late")
    assert contents(inner) == {}
    inner.put("two", b"other writer")
    answers = store.deliver()
    assert answers[0] is None
    assert isinstance(answers[1], AlreadyExists)
    assert contents(inner) == {"one": b"late", "two": b"other writer"}
    assert store.deliver() == []


def test_a_delayed_write_is_applied_after_a_crash(store: FaultStore, inner: MemoryStore) -> None:
    store.fail(Fault.DELAYED, nth=0)
    store.fail(Fault.CRASH_BEFORE, nth=1)
    with pytest.raises(StorageUnknown):
        store.put_if_absent("slot", b"late")
    with pytest.raises(Crashed):
        store.put("other", b"x")
    store.deliver()
    assert contents(inner) == {"slot": b"late"}


def test_rules_end_and_are_taken_in_order(store: FaultStore) -> None:
    store.fail(Fault.LOST_REQUEST, when=lambda write: write.path.startswith("t/"))
    store.fail(Fault.LOST_ANSWER, when=lambda write: write.path == "t/1")
    with pytest.raises(StorageUnknown, match="the request was lost"):
        store.put("t/1", b"x")
    with pytest.raises(StorageUnknown, match="the answer was lost"):
        store.put("t/1", b"x")
    store.put("t/1", b"x")


def test_a_hook_runs_a_concurrent_client_at_an_exact_call(store: FaultStore, inner: MemoryStore) -> None:
    seen: list[tuple[str, str]] = []

    def intrude(verb: str, path: str) -> None:
        seen.append((verb, path))
        if verb == "put_if_absent":
            store.put("by the hook", b"x")
            inner.put(path, b"theirs")

    remove = store.before(intrude)
    with pytest.raises(NotFound):
        store.get("slot")
    with pytest.raises(AlreadyExists):
        store.put_if_absent("slot", b"ours")
    remove()
    store.delete("slot")
    assert seen == [("get", "slot"), ("put_if_absent", "slot")]
    assert contents(inner) == {"by the hook": b"x"}


def test_a_hook_may_crash_the_process(store: FaultStore, inner: MemoryStore) -> None:
    def kill(verb: str, path: str) -> None:
        store.crashed = True

    store.before(kill)
    with pytest.raises(Crashed):
        store.put("a", b"x")
    assert contents(inner) == {}
    assert store.writes == []
