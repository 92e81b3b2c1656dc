"""Fixtures of the catalog's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from lance_core.storage.local import LocalStore
from tests.directory.tables import Ground
from tests.storage.faults import FaultStore


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
