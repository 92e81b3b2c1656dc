"""The machine's clock against the store's."""

from __future__ import annotations

import logging
from datetime import timedelta
from pathlib import Path

import pytest
from lance_namespace.errors import ServiceUnavailableError

from lance_core.storage.local import LocalStore
from lance_core.storage.wrappers.counting import CountingStore
from namespace_server.directory.manifest_table.store_clock import StoreClock
from tests.directory.tables import Ground

HOUR = 3_600.0
YEARS = 20 * 365 * 24 * HOUR


class Machine:
    """A machine, whose clock is set by a test, with the store of its directory."""

    def __init__(self, root: Path, skew: float = 0.0) -> None:
        self.store = CountingStore(LocalStore(root, "none"))
        self.skew = skew
        self.elapsed = 1_000.0
        self.clock = StoreClock(self.store, self.now, lambda: self.elapsed)
        self.store.put("x", b"")
        self.written = self.store.head("x").last_modified.timestamp()

    def now(self) -> int:
        return int((self.written + self.elapsed - 1_000.0 + self.skew) * 1e9)

    def commit(self) -> None:
        self.clock.wrote("x")

    def look(self, head: float = 0.0) -> None:
        self.clock.look(int((self.written + head) * 1_000))


@pytest.mark.parametrize("skew", [-YEARS, -2 * HOUR, -3_000.0, 0.0, 3_000.0, 2 * HOUR, YEARS])
def test_the_date_of_a_commit_tells_how_far_the_clock_is_off(
    tmp_path: Path, skew: float, caplog: pytest.LogCaptureFixture
) -> None:
    machine = Machine(tmp_path, skew)
    machine.look()
    assert (machine.clock.ahead, machine.clock.problem()) == (None, None)
    machine.commit()
    machine.elapsed += 5
    for _ in range(3):
        machine.look()
    assert machine.clock.ahead == pytest.approx(skew, abs=0.01)
    assert machine.clock.time_ms() == pytest.approx((machine.written + 5) * 1_000, abs=10)
    assert machine.clock.earlier_ms() == pytest.approx((machine.written + 5 + min(skew, 0)) * 1_000, abs=10)
    is_off = abs(skew) > HOUR
    assert len([record for record in caplog.records if record.levelno == logging.ERROR]) == int(is_off)
    assert ("expected less than an hour between them" in (machine.clock.problem() or "")) is is_off


def test_a_clock_that_is_set_right_is_right_without_another_commit(tmp_path: Path) -> None:
    machine = Machine(tmp_path, YEARS)
    machine.commit()
    machine.look()
    assert machine.clock.problem() is not None
    machine.skew = 0.0
    assert machine.clock.problem() is None
    machine.skew = -YEARS
    assert machine.clock.problem() is not None


def test_a_date_is_asked_for_now_and_then(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.store.reset()
    for _ in range(100):
        machine.commit()
        machine.look()
        machine.elapsed += 3
    machine.elapsed += 600
    machine.look()
    machine.commit()
    machine.look()
    machine.store.delete("x")
    machine.elapsed += 600
    machine.commit()
    machine.look()
    assert machine.store.cost.by_verb["head"] == 3


def test_a_catalog_in_the_future_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    machine = Machine(tmp_path)
    machine.look(YEARS)
    machine.commit()
    for head in (0.0, 3_000.0):
        machine.look(head)
    assert not caplog.records
    for _ in range(3):
        machine.look(YEARS)
    [record] = caplog.records
    assert "the clock of a server was ahead" in record.getMessage()
    assert machine.clock.head_ahead(int((machine.written + YEARS) * 1_000)) == pytest.approx(YEARS, abs=1)


def test_a_process_with_a_wrong_clock_sets_no_limits_and_commits(ground: Ground) -> None:
    ground.make_table("g", "t")
    clock = ground.catalog.table.clock
    clock._now = lambda: Machine.now(machine)
    machine = Machine(ground.root.parent / "elsewhere", YEARS)
    machine.elapsed = clock._elapsed()
    machine.written += machine.elapsed - 1_000.0
    ground.catalog.sweep()
    ground.call("create_namespace", id=["n"])
    ground.catalog.sweep()
    state = ground.catalog.state()
    assert state is not None
    assert state.clock_ahead is not None
    assert abs(state.clock_ahead) > YEARS / 2
    for operation, request in (
        ("pin_catalog_version", {"name": "p", "seconds": 3_600}),
        ("register_intent", {"intent_id": "00000000-0000-4000-8000-000000000001", "tables": [{"id": ["g", "t"]}]}),
    ):
        with pytest.raises(ServiceUnavailableError, match=r"no limit of time .* the store says .* this machine"):
            ground.call(operation, **request)
    ground.call("pin_catalog_version", name="p")
    ground.call("drop_table", id=["g", "t"])
    clock._now = lambda: int((clock._elapsed() + (clock._began or 0.0)) * 1e9)
    ground.call("pin_catalog_version", name="q", seconds=3_600)
    assert timedelta(0) <= timedelta(seconds=abs(clock.ahead or 0)) < timedelta(hours=1)
