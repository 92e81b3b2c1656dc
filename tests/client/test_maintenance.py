"""Maintenance of one table by the client: over HTTP, in process and for asyncio."""

from __future__ import annotations

import asyncio

import lance
import pytest

from namespace_client import AsyncCatalog, CommitRejected, MaintenanceResult, NotFound
from tests.client.scene import Scene, rows

COUNT = 4


@pytest.fixture
def table(scene: Scene) -> str:
    """A table with small fragments."""
    scene.catalog.create("tidy", rows(0, 1))
    for number in range(1, COUNT):
        scene.catalog.append("tidy", rows(2 * number, 2 * number + 1))
    return "tidy"


def test_it_is_planned_and_done_and_shown(scene: Scene, table: str) -> None:
    planned = scene.catalog.maintain(table, dry_run=True)
    assert (planned.status, planned.commits, planned.found) == ("planned", 0, planned.left)
    done = scene.catalog.maintain(table, seconds=60, message="tidy up")
    assert isinstance(done, MaintenanceResult)
    assert done.id == (scene.namespace, table)
    assert (done.status, done.reason, done.commits) == ("done", None, 1)
    assert (done.fragments_before, done.fragments) == (COUNT, 1)
    assert (done.version_before, done.version) == (COUNT, COUNT + 1)
    assert done.found
    assert not done.left
    state = scene.catalog.access.table((scene.namespace, table))
    assert state is not None
    dataset = lance.dataset(state.uri)
    dataset.validate()
    assert (len(dataset.get_fragments()), dataset.count_rows()) == (1, 2 * COUNT)
    newest = next(batch for version in scene.catalog.history() for batch in version.batches)
    assert newest.message == "tidy up"
    assert repr(done).splitlines()[0] == f"{scene.namespace}.{table}: done"
    assert ["fragments", str(COUNT), "1"] in [line.split() for line in repr(done).splitlines()]
    assert "<th" in done._repr_html_()
    assert scene.catalog.maintain(table).status == "nothing_to_do"


def test_other_writers_come_first(scene: Scene, table: str) -> None:
    scene.catalog.delete(table, "id = 0")
    busy = scene.catalog.maintain(table)
    assert busy.status == "busy"
    assert "committed less than 60 s ago" in str(busy.reason)
    assert scene.catalog.maintain(table, forced=True).status == "done"


def test_it_is_refused(scene: Scene) -> None:
    with pytest.raises(NotFound):
        scene.catalog.maintain("none")
    with pytest.raises(CommitRejected, match="seconds: expected a number from 1 to 3600"):
        scene.catalog.maintain("none", seconds=0)


def test_for_asyncio(scene: Scene, table: str) -> None:
    async def act() -> MaintenanceResult:
        return await AsyncCatalog(scene.catalog).maintain(table, dry_run=True)

    assert asyncio.run(act()).status == "planned"
