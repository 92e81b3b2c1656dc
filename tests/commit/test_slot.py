"""Claiming a slot (rule F1: only an occupied slot is an answer)."""

import threading

import pytest

from lance_core.commit.slot import SlotLost, SlotOutcome, SlotUnknown, SlotWon, claim_slot
from lance_core.errors import NotFound, StorageError
from lance_core.storage.memory import MemoryStore
from tests.storage.faults import Fault, FaultStore

SLOT = "t/_versions/5.manifest"


@pytest.fixture
def inner() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def store(inner: MemoryStore) -> FaultStore:
    return FaultStore(inner)


@pytest.fixture(autouse=True)
def few_and_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lance_core.commit.slot.ATTEMPTS", 3)
    monkeypatch.setattr("lance_core.commit.slot.LONGEST_WAIT", 0.001)


def claim(store: FaultStore) -> SlotOutcome:
    return claim_slot(store, SLOT, b"ours")


def test_a_vacant_slot_is_won(store: FaultStore, inner: MemoryStore) -> None:
    outcome = claim(store)
    assert isinstance(outcome, SlotWon)
    assert outcome.e_tag == inner.head(SLOT).e_tag
    assert inner.get(SLOT) == b"ours"
    assert [write.verb for write in store.writes] == ["put_if_absent"]


def test_a_taken_slot_is_lost_and_returns_its_content(store: FaultStore, inner: MemoryStore) -> None:
    inner.put(SLOT, b"theirs")
    assert claim(store) == SlotLost(b"theirs")
    assert inner.get(SLOT) == b"theirs"


def test_a_slot_with_the_same_bytes_is_won(store: FaultStore, inner: MemoryStore) -> None:
    inner.put(SLOT, b"ours")
    assert claim(store) == SlotWon(None)


def test_a_lost_answer_is_resolved_by_reading(store: FaultStore) -> None:
    store.fail(Fault.LOST_ANSWER)
    assert claim(store) == SlotWon(None)
    assert len(store.writes) == 1


def test_a_lost_answer_of_a_lost_race_is_a_loss(store: FaultStore, inner: MemoryStore) -> None:
    inner.put(SLOT, b"theirs")
    store.fail(Fault.LOST_ANSWER)
    assert claim(store) == SlotLost(b"theirs")


def test_a_lost_request_is_retried_with_the_same_bytes(store: FaultStore, inner: MemoryStore) -> None:
    store.fail(Fault.LOST_REQUEST, times=2)
    assert isinstance(claim(store), SlotWon)
    assert inner.get(SLOT) == b"ours"
    assert [write.path for write in store.writes] == [SLOT] * 3


def test_a_vacant_slot_is_unknown_and_never_lost(store: FaultStore) -> None:
    store.fail(Fault.LOST_REQUEST, times=99)
    outcome = claim(store)
    assert isinstance(outcome, SlotUnknown)
    assert "still vacant after 3 writes" in outcome.reason
    assert len(store.writes) == 3


def test_a_delayed_write_may_be_applied_during_a_retry(store: FaultStore, inner: MemoryStore) -> None:
    store.fail(Fault.DELAYED)
    store.before(lambda verb, _path: store.deliver() if verb == "get" else None)
    assert claim(store) == SlotWon(None)
    assert inner.get(SLOT) == b"ours"


def test_a_delayed_write_is_applied_after_the_retries_are_exhausted(store: FaultStore, inner: MemoryStore) -> None:
    store.fail(Fault.DELAYED, times=99)
    assert isinstance(claim(store), SlotUnknown)
    store.deliver()
    assert inner.get(SLOT) == b"ours"
    assert claim(store) == SlotWon(None)


def test_another_writer_may_take_the_slot_between_retries(store: FaultStore, inner: MemoryStore) -> None:
    store.fail(Fault.LOST_REQUEST)
    reads: list[str] = []

    def steal(verb: str, path: str) -> None:
        if verb == "get":
            reads.append(path)
        elif reads:
            inner.put(path, b"theirs")

    store.before(steal)
    assert claim(store) == SlotLost(b"theirs")


def test_a_refused_write_raises_the_error_of_the_store(store: FaultStore) -> None:
    def refuse(verb: str, _path: str) -> None:
        raise StorageError(f"{verb}: no permission")

    store.before(refuse)
    with pytest.raises(StorageError, match="put_if_absent: no permission"):
        claim(store)


def test_a_refusal_after_a_lost_answer_is_not_conclusive(store: FaultStore) -> None:
    store.fail(Fault.DELAYED)

    def refuse(_verb: str, _path: str) -> None:
        if store.writes:
            raise StorageError("gone away")

    store.before(refuse)
    outcome = claim(store)
    assert isinstance(outcome, SlotUnknown)
    assert "gone away" in outcome.reason


def test_a_slot_that_was_cleared_is_claimed_again(store: FaultStore, inner: MemoryStore) -> None:
    inner.put(SLOT, b"theirs")

    def clear(verb: str, path: str) -> None:
        if verb == "get":
            inner.delete(path)

    store.before(clear)
    assert isinstance(claim(store), SlotWon)


def test_of_concurrent_claims_one_wins(inner: MemoryStore) -> None:
    outcomes: list[SlotOutcome] = []
    start = threading.Barrier(16)

    def run(number: int) -> None:
        start.wait()
        outcomes.append(claim_slot(inner, SLOT, b"%d" % number))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = inner.get(SLOT)
    assert sum(isinstance(outcome, SlotWon) for outcome in outcomes) == 1
    assert [outcome for outcome in outcomes if isinstance(outcome, SlotLost)] == [SlotLost(kept)] * 15


def test_nothing_is_written_to_another_key(store: FaultStore, inner: MemoryStore) -> None:
    claim(store)
    with pytest.raises(NotFound):
        inner.get("t/_versions/4.manifest")
    assert [meta.path for meta in inner.list("")] == [SLOT]
