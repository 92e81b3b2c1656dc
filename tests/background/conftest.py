"""A catalog whose tables are maintained."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.directory.tables import Ground


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    """A managed catalog with the namespace `g`."""
    made = Ground(tmp_path / "root")
    made.make_namespace("g")
    return made
