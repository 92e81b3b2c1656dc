"""Fixtures of the catalog's tests."""

from __future__ import annotations

from math import inf
from pathlib import Path

import pytest

from lance_core.storage.local import LocalStore
from namespace_server.directory.committing import commit_loop, write_fairness
from namespace_server.directory.manifest_table import snapshots, table
from namespace_server.directory.manifests import promoter
from namespace_server.durations import elapsed_clock
from tests.directory.tables import Ground
from tests.storage.faults import FaultStore


class StillClock:
    """The clock by which versions of the catalog are proved to be the newest, and promotions late.

    It stands still, at `time` in seconds.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.time = elapsed_clock()
        for module in (snapshots, table, commit_loop, promoter):
            monkeypatch.setattr(module, "elapsed_clock", lambda: self.time)


@pytest.fixture(autouse=True)
def no_looks_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests are counted, however slow the machine is: no server looks whether others ask for a turn."""
    monkeypatch.setattr(write_fairness, "_INTERVAL", inf)


@pytest.fixture
def still_clock(monkeypatch: pytest.MonkeyPatch) -> StillClock:
    return StillClock(monkeypatch)


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    """A managed catalog with the namespace `g`."""
    made = Ground(tmp_path / "root")
    made.make_namespace("g")
    return made


@pytest.fixture
def faults(tmp_path: Path) -> FaultStore:
    return FaultStore(LocalStore(tmp_path / "root", "none"))


@pytest.fixture
def broken(tmp_path: Path, faults: FaultStore) -> Ground:
    """A catalog with the table `g.t` at version 1, over a store that breaks on demand."""
    made = Ground(tmp_path / "root", faults)
    made.make_namespace("g")
    made.make_table("g", "t")
    made.catalog.sweep()
    return made
