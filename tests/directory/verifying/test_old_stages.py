"""Rules S2 and S3: a manifest that was staged long ago is refused, or its files are looked for."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from lance_namespace.errors import InvalidInputError

from tests.directory.breaking import T
from tests.directory.tables import Ground, rows


def staged_file(operation: dict[str, Any]) -> Path:
    return Path("/") / operation["create_table_version"]["manifest_path"]


def stage(ground: Ground, *, ago: timedelta) -> dict[str, Any]:
    """An append to `g.t` that a client staged some time ago."""
    ground.make_table(*T)
    operation = ground.stage(T, rows(3, 5))
    then = time.time() - ago.total_seconds()
    os.utime(staged_file(operation), (then, then))
    return operation


def test_a_manifest_older_than_three_days_is_refused_and_left_where_it_is(ground: Ground) -> None:
    operation = stage(ground, ago=timedelta(days=3, minutes=1))

    with pytest.raises(InvalidInputError, match=r"staged 3 days.* ago, stage again"):
        ground.batch(operation)

    assert (ground.head(T), ground.canonical(T)) == (1, [1])
    assert staged_file(operation).exists()


def test_a_younger_manifest_is_committed(ground: Ground) -> None:
    ground.batch(stage(ground, ago=timedelta(days=2, hours=23)))

    assert ground.ids(T) == [0, 1, 2, 3, 4]


def test_a_data_file_that_a_client_removed_meanwhile_is_missed(ground: Ground) -> None:
    ground.make_table(*T)
    before = set((ground.root / ground.location(T) / "data").iterdir())
    operation = ground.stage(T, rows(3, 5))
    [added] = set((ground.root / ground.location(T) / "data").iterdir()) - before
    added.unlink()

    with pytest.raises(InvalidInputError, match=f"{added.name}.* stage again"):
        ground.batch(operation)

    assert ground.head(T) == 1
