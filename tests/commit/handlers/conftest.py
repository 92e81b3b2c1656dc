"""Fixtures of the tests of commit handlers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commit.handlers.place import Place
from tests.transaction.tables import make_table


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(make_table(tmp_path / "root", (0, 10), (10, 20)))


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lance_core.commit.slot.LONGEST_WAIT", 0.001)
