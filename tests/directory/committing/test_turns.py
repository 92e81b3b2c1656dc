"""Servers that share a root flip by turns, and wait for each other no longer than a flip takes."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from lance_core.errors import StorageError
from namespace_server.directory.committing import turns
from namespace_server.directory.committing.turns import Turns
from namespace_server.directory.manifest_table.peers import Peers


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
    monkeypatch.setattr(turns.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(turns.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    return now


def flip(table: Table, line: Turns, versions: Iterable[int]) -> None:
    for version in versions:
        table.version = version
        line.flipped(version, 0.16)


def test_a_server_that_hands_its_changes_to_this_one_is_not_waited_for(clock: list[float]) -> None:
    table = Table(3)
    line = Turns(table)  # type: ignore[arg-type]
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
    line = Turns(table)  # type: ignore[arg-type]
    line.wait()
    for version in (4, 5, 6):
        flip(table, line, [version])
        line.wait()
    assert table.looks == 0


def test_after_its_own_flip_a_server_waits_for_that_of_another(clock: list[float]) -> None:
    table = Table(3)
    line = Turns(table)  # type: ignore[arg-type]
    flip(table, line, [4, 6])  # 5 is another's
    table.coming = [6, 6, 7]
    line.wait()
    assert (table.version, table.looks) == (7, 3)
    assert clock[0] == pytest.approx(100.02)
    line.wait()  # it is this server's turn
    assert table.looks == 3


def test_idle_servers_are_waited_for_once(clock: list[float]) -> None:
    table = Table(3)
    line = Turns(table)  # type: ignore[arg-type]
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
    line = Turns(table)  # type: ignore[arg-type]
    flip(table, line, [4, 6])

    def refuse() -> Table:
        raise StorageError("not to be had")

    table.refresh = refuse  # type: ignore[method-assign]
    with pytest.raises(StorageError):
        line.wait()
