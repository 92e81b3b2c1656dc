"""A process dies at any storage call of maintenance: the table is readable, its rows are the same, and work goes on."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import table_data.table_changes
from lance_core.storage.local import LocalStore
from lance_core.storage.opening import open_store
from tests.directory.gc.unreferenced import check_exact, remove
from tests.directory.invariants import check_always, check_quiet
from tests.directory.tables import Ground
from tests.maintenance.tables import T, contents, found_by_index, maintain, make_table
from tests.storage.faults import Crashed, FaultStore

pytestmark = pytest.mark.long


class DyingStores:
    """The stores of one process, of the catalog and of the tables, which dies before its call number `last`."""

    def __init__(self, last: int | None = None) -> None:
        self.verbs: list[str] = []
        self._last = last
        self._stores: list[FaultStore] = []

    def over(self, store: Any) -> FaultStore:
        made = FaultStore(store)
        made.before(self._arrive)
        self._stores.append(made)
        return made

    def _arrive(self, verb: str, _path: str) -> None:
        self.verbs.append(verb)
        if self._last is not None and len(self.verbs) > self._last:
            for store in self._stores:
                store.crashed = True


def run_until_death(root: Path, stores: DyingStores, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(table_data.table_changes, "open_store", lambda *given: stores.over(open_store(*given)))
        with suppress(Crashed):
            maintain(Ground(root, stores.over(LocalStore(root, "none"))))


@pytest.mark.parametrize("index", [False, pytest.param(True, marks=pytest.mark.long)])
def test_at_every_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, index: bool) -> None:
    ground = Ground(tmp_path / "root")
    ground.make_namespace("g")
    make_table(ground, index=index)
    ground.catalog.sweep()
    before = contents(ground.open(T))
    whole = DyingStores()
    shutil.copytree(ground.root, tmp_path / "whole")
    run_until_death(tmp_path / "whole", whole, monkeypatch)
    for last in range(len(whole.verbs)):
        root = tmp_path / f"dies-{last}"
        shutil.copytree(ground.root, root)
        run_until_death(root, DyingStores(last), monkeypatch)
        check_always(root, since=ground.catalog.snapshot().version)
        survivor = Ground(root)
        survivor.catalog.sweep()
        assert contents(survivor.open(T)) == before
        maintain(survivor)
        survivor.catalog.sweep()
        dataset = survivor.open(T)
        dataset.validate()
        assert contents(dataset) == before
        assert len(dataset.get_fragments()) == (2 if index else 1)
        if index:
            assert found_by_index(dataset, 7) == [7]
        remove(root, check_exact(root))
        check_quiet(root, since=survivor.catalog.snapshot().version)
        shutil.rmtree(root)
