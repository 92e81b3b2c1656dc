"""Servers that share a root flip by turns, and wait for each other no longer than a flip takes."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from lance_core.errors import StorageError
from lance_core.storage.memory import MemoryStore
from lance_core.storage.wrappers.counting import CountingStore
from namespace_server.directory.committing import write_fairness
from namespace_server.directory.committing.write_fairness import WriteFairness
from namespace_server.directory.manifest_table.peers import Peer, Peers
from namespace_server.directory.model.root_layout import TURN_REQUESTS
from tests.storage.faults import FaultStore


class Table:
    """A table whose next looks at storage find these versions; then the last one again and again."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.coming: list[int] = []
        self.looks = 0
        self.peers = Peers()

    @property
    def current(self) -> Table:
        return self

    def refresh(self) -> Table:
        self.looks += 1
        if self.coming:
            self.version = self.coming.pop(0)
        return self


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which passes only while something sleeps."""
    now = [100.0]
    monkeypatch.setattr(write_fairness, "_INTERVAL", 0.5)
    monkeypatch.setattr(write_fairness.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(write_fairness.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    return now


def flip(table: Table, line: WriteFairness, versions: Iterable[int]) -> None:
    for version in versions:
        table.version = version
        line.flipped(version, 0.16)


def test_a_server_that_hands_its_changes_to_this_one_is_not_waited_for(clock: list[float]) -> None:
    table = Table(3)
    line = WriteFairness(MemoryStore(), table)  # type: ignore[arg-type]
    flip(table, line, [4, 6])
    table.peers.was_handed()
    line.wait()
    assert (clock[0], table.looks) == (100.0, 1)
    table.peers.flipped()
    flip(table, line, [7, 9])
    line.wait()
    assert clock[0] > 100.3


@pytest.mark.usefixtures("clock")
def test_a_server_that_is_alone_never_looks() -> None:
    table = Table(3)
    line = WriteFairness(MemoryStore(), table)  # type: ignore[arg-type]
    line.wait()
    for version in (4, 5, 6):
        flip(table, line, [version])
        line.wait()
    assert table.looks == 0


def test_after_its_own_flip_a_server_waits_for_that_of_another(clock: list[float]) -> None:
    table = Table(3)
    line = WriteFairness(MemoryStore(), table)  # type: ignore[arg-type]
    flip(table, line, [4, 6])  # 5 is another's
    table.coming = [6, 6, 7]
    line.wait()
    assert (table.version, table.looks) == (7, 3)
    assert clock[0] == pytest.approx(100.02)
    line.wait()  # it is this server's turn
    assert table.looks == 3


def test_idle_servers_are_waited_for_once(clock: list[float]) -> None:
    table = Table(3)
    line = WriteFairness(MemoryStore(), table)  # type: ignore[arg-type]
    flip(table, line, [4, 6])
    line.wait()
    assert 100.32 <= clock[0] <= 100.34
    looks = table.looks
    assert looks <= 34
    line.wait()
    flip(table, line, [7, 8])
    line.wait()
    assert table.looks == looks
    flip(table, line, [10])  # 9 is another's
    table.coming = [11]
    line.wait()
    assert table.looks == looks + 1


@pytest.mark.usefixtures("clock")
def test_what_storage_refuses_is_raised() -> None:
    table = Table(3)
    line = WriteFairness(MemoryStore(), table)  # type: ignore[arg-type]
    flip(table, line, [4, 6])

    def refuse() -> Table:
        raise StorageError("not to be had")

    table.refresh = refuse  # type: ignore[method-assign]
    with pytest.raises(StorageError):
        line.wait()


def staged(*lines: WriteFairness) -> None:
    """Each server writes its next attempt."""
    for line in lines:
        for call in line.requests():
            call()


def test_a_server_that_loses_again_and_again_is_let_in(clock: list[float]) -> None:
    store, table, slow = MemoryStore(), Table(3), Table(3)
    line, loser = WriteFairness(store, table), WriteFairness(store, slow)  # type: ignore[arg-type]
    flip(table, line, [4, 5])
    staged(loser, line)
    assert store.names(TURN_REQUESTS) == []
    loser.lost()
    staged(loser)
    clock[0] += 0.5
    staged(line)
    assert line.are_taken
    table.coming = [5, 6]
    line.wait()
    assert table.version == 6
    flip(slow, loser, [6])
    staged(loser)
    assert store.names(TURN_REQUESTS) == []


def test_a_turn_that_is_not_used_is_granted_once(clock: list[float]) -> None:
    store, table, slow = MemoryStore(), Table(3), Table(3)
    line, loser = WriteFairness(store, table), WriteFairness(store, slow)  # type: ignore[arg-type]
    flip(table, line, [4, 5])
    loser.lost()
    staged(loser)
    asked = store.names(TURN_REQUESTS)
    clock[0] += 0.5
    staged(line)
    line.wait()
    assert 100.8 < clock[0] < 100.9
    assert not line.are_taken
    staged(line, loser)
    assert store.names(TURN_REQUESTS) == []
    clock[0] += 2.0
    staged(loser)  # it is there, and still loses
    assert len(store.names(TURN_REQUESTS)) == 1
    assert store.names(TURN_REQUESTS) != asked


def test_a_busy_server_looks_for_requests_twice_a_second(clock: list[float]) -> None:
    store, table = CountingStore(MemoryStore()), Table(3)
    line = WriteFairness(store, table)  # type: ignore[arg-type]
    for version in range(4, 28):
        flip(table, line, [version])
        staged(line)
        line.wait()
        clock[0] += 0.125
    assert store.cost.by_verb == {"list": 5}
    assert table.looks == 0


def test_no_attempt_fails_for_a_turn(clock: list[float], caplog: pytest.LogCaptureFixture) -> None:
    store, table = FaultStore(MemoryStore()), Table(3)
    line = WriteFairness(store, table)  # type: ignore[arg-type]
    flip(table, line, [4])
    clock[0] += 1.0

    def refuse(_verb: str, _path: str) -> None:
        raise StorageError("not to be had")

    store.before(refuse)
    staged(line)
    line.lost()
    staged(line)
    flip(table, line, [5])
    staged(line)
    assert [
        each.getMessage().partition(":")[0] for each in caplog.records if each.name == write_fairness.logger.name
    ] == [
        "requests for a turn cannot be listed",
        "a turn cannot be asked for",
        "a request for a turn is left",
    ]


def test_of_three_servers_each_waits_for_both_others(clock: list[float]) -> None:
    table = Table(3)
    line = WriteFairness(MemoryStore(), table)  # type: ignore[arg-type]
    flip(table, line, [4, 7])
    for name in "bc":
        table.peers.saw(Peer(name, "~"), proved=False)
    table.coming = [8, 8, 9]
    line.wait()
    assert (table.version, table.looks) == (9, 3)
    flip(table, line, [10])
    table.coming = [11]
    line.wait()  # one of them has nothing to commit
    assert table.version == 11
    assert line.are_taken
    assert clock[0] == pytest.approx(100.36, abs=0.02)


def test_names_that_no_server_made_cost_little(clock: list[float]) -> None:
    store, table = CountingStore(MemoryStore()), Table(3)
    for number in range(1000):
        store.inner.put(f"{TURN_REQUESTS}/{number}", b"", durable=False)
    line = WriteFairness(store, table)  # type: ignore[arg-type]
    flip(table, line, [4])
    clock[0] += 0.5
    staged(line)
    line.wait()
    assert clock[0] < 101
    staged(line)
    assert store.cost.by_verb == {"list": 1, "delete": 16}
