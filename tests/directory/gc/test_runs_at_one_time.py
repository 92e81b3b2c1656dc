"""Two runs in their sweep, and a tag by path on a version whose manifest one of them has just removed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lance
import pytest

from lance_core.errors import StorageError
from lance_core.format.naming import manifest_name
from lance_core.storage.local import LocalStore
from lance_core.tables.tags import Tags
from namespace_server.directory.gc import run
from namespace_server.directory.gc.delete import Budget, Deleter
from namespace_server.directory.gc.plan import StoredRuns, list_runs
from namespace_server.directory.gc.run import Collector
from namespace_server.directory.model.root_layout import GC_RUNS
from namespace_server.observability.observation import no_progress
from tests.directory.gc.collecting import collect, forget_history, let_pass
from tests.directory.gc.test_collect_tables import T, delete_versions, two
from tests.directory.tables import Ground
from tests.storage.faults import FaultStore

__all__ = ["two"]


@pytest.fixture
def expired(two: Ground) -> Ground:
    """Versions 1 to 4 of `g.t` have no row in any kept version of the catalog."""
    delete_versions(two, 1, 5)
    let_pass(two)
    forget_history(two)
    return two


def manifest_of(ground: Ground) -> Path:
    """The manifest of version 3."""
    return ground.root / ground.location(T) / "_versions" / manifest_name(3)


def knows_no_runs(ground: Ground, monkeypatch: pytest.MonkeyPatch, call: Callable[[Ground], object]) -> None:
    """A run that had listed the stored runs before the others stored theirs."""
    with monkeypatch.context() as patch:
        patch.setattr(run, "list_runs", lambda _store: StoredRuns([], {}))
        call(ground)


def late_tag(ground: Ground) -> Callable[[], None]:
    """A client that has found version 3, and writes a tag of it now."""
    path = ground.root / ground.location(T) / "_refs/tags/kept.json"
    Tags(ground.store, ground.location(T)).create("kept", 3)
    content = path.read_bytes()
    path.unlink()

    def write() -> None:
        path.write_bytes(content)

    return write


def carry_out(ground: Ground, plans: list[str]) -> None:
    store = LocalStore(ground.root, "none")
    newest = ground.catalog.table.refresh_by_listing()
    Deleter(store, newest, "", Budget(), no_progress).carry_out(plans)


@pytest.mark.parametrize("other", ["looks", "goes on with the same plan", "has a plan of its own"])
def test_a_version_stays_whole_that_is_tagged_while_two_runs_sweep(
    expired: Ground, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = expired.location(T)
    manifest, tags, tag = manifest_of(expired), Tags(expired.store, location), late_tag(expired)
    store = FaultStore(LocalStore(expired.root, "none"))
    if other == "has a plan of its own":
        Collector(expired.again(LocalStore(expired.root, "none")).catalog).collect(budget=Budget(removals=0))
    earlier = list_runs(expired.store).unfinished

    def meanwhile(verb: str, _path: str) -> None:
        if verb == "list" and not manifest.exists() and not tags.list():
            tag()
            if other == "looks":
                knows_no_runs(expired.again(LocalStore(expired.root, "none")), monkeypatch, collect)
            else:
                carry_out(expired, earlier or list_runs(expired.store).unfinished)

    store.before(meanwhile)
    knows_no_runs(expired.again(store), monkeypatch, collect)
    assert tags.list()
    assert expired.canonical(T) == [3, 5]
    dataset = lance.dataset(str(expired.root / location), version=3)
    dataset.validate()
    assert dataset.to_table().num_rows == 9
    assert [path.name for path in (expired.root / GC_RUNS).glob("*/expiring/**/*.manifest")] == [manifest_name(3)]
    let_pass(expired)
    collect(expired)
    dataset.validate()
    assert not list((expired.root / GC_RUNS).glob("*/expiring"))


def test_a_manifest_is_not_put_back_once_its_copy_is_gone(expired: Ground) -> None:
    """The run was held for a day: another one removed the files."""
    manifest, tags, tag = manifest_of(expired), Tags(expired.store, expired.location(T)), late_tag(expired)
    store = FaultStore(LocalStore(expired.root, "none"))

    def hold(verb: str, _path: str) -> None:
        if verb == "list" and not manifest.exists() and not tags.list():
            for copy in (expired.root / GC_RUNS).glob("*/expiring/*/**/*.manifest"):
                copy.unlink()
            tag()

    store.before(hold)
    collect(expired.again(store))
    assert expired.canonical(T) == [5]


def test_copies_of_a_run_that_died_keep_files_for_a_day(expired: Ground) -> None:
    manifest, data = manifest_of(expired), expired.root / expired.location(T) / "data"
    store = FaultStore(LocalStore(expired.root, "none"))

    def die(verb: str, _path: str) -> None:
        if verb == "list" and not manifest.exists():
            raise StorageError("killed")

    store.before(die)
    with pytest.raises(StorageError, match="killed"):
        collect(expired.again(store))
    copies = [meta.path for meta in expired.store.list(GC_RUNS) if "/expiring/" in meta.path]
    assert copies
    collect(expired)
    assert expired.canonical(T) == [5]
    assert len(list(data.iterdir())) > 1
    let_pass(expired)
    collect(expired)  # removes the copies, after it has looked
    assert not [path for path in copies if (expired.root / path).exists()]
    let_pass(expired)
    collect(expired)
    assert len(list(data.iterdir())) == 1
    assert list_runs(expired.store).unfinished == []
