"""A version whose manifest is lost, or that no listing had, keeps its files (rule G29)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import lance
import pytest

from lance_core.storage.local import LocalStore
from lance_core.storage.port import ObjectMeta, ObjectStore
from lance_core.storage.wrappers.delegation import WrappedStore
from namespace_server.directory.gc.history import copy_versions, list_catalog_versions, needed_versions
from namespace_server.directory.gc.report import GcReport
from namespace_server.directory.gc.run import Collector
from tests.directory.gc.collecting import collect, days_pass, forget_history, let_pass
from tests.directory.gc.test_mark import leave_fragment
from tests.directory.tables import Ground, rows

T, U, C = ["g", "t"], ["g", "u"], ["g", "c"]


@pytest.fixture
def old(ground: Ground) -> Ground:
    """A catalog with `g.t`, each of whose five versions has files of its own, and garbage; all of it is old."""
    ground.make_table(*T)
    for first in (10, 20, 30, 40):
        ground.write(T, rows(first, first + 2), "overwrite")
    ground.catalog.sweep()
    ground.catalog.flush_record_housekeeping()
    leave_fragment(ground, T)
    return ground


def manifest(ground: Ground, version: int, table: list[str] = T) -> Path:
    return ground.root / ground.location(table) / "_versions" / f"{2**64 - 1 - version:020d}.manifest"


def ids(ground: Ground, version: int) -> list[int]:
    return ground.open(T, version).to_table()["id"].to_pylist()


def forget_transaction_files(ground: Ground) -> None:
    """As a writer that puts its transactions into manifests alone."""
    for path in (ground.root / ground.location(T) / "_transactions").iterdir():
        path.unlink()


def forget_listings(ground: Ground) -> None:
    """The names of its transaction files are in no listing."""
    store = ShortListing(LocalStore(ground.root, "none"), lambda key: "/_transactions/" in key)
    ground.again = lambda _store=None: Ground(ground.root, store)  # type: ignore[method-assign]


def tag(ground: Ground) -> None:
    forget_transaction_files(ground)
    ground.namespace.change("create_table_tag", {"id": T, "tag": "model", "version": 3})


def fork(ground: Ground) -> None:
    forget_transaction_files(ground)
    ground.open(T).create_branch("b", reference=3)


def pin(ground: Ground) -> None:
    forget_transaction_files(ground)
    ground.call("pin_catalog_version", name="model")


def pin_and_delete(ground: Ground) -> None:
    forget_transaction_files(ground)
    ground.call("pin_catalog_version", name="model")
    ground.call("batch_delete_table_versions", id=T, ranges=[{"start_version": 2, "end_version": 4}])
    ground.catalog.sweep()


def tag_without_a_row(ground: Ground) -> None:
    """By path, on a version that the catalog has given up."""
    forget_transaction_files(ground)
    ground.call("batch_delete_table_versions", id=T, ranges=[{"start_version": 3, "end_version": 4}])
    ground.open(T).tags.create("model", 3)


def keep_nothing(_ground: Ground) -> None:
    """Its row alone, and its transaction file."""


@pytest.mark.parametrize(
    "keep",
    [keep_nothing, forget_transaction_files, forget_listings, tag, fork, pin, pin_and_delete, tag_without_a_row],
)
def test_a_lost_manifest_can_be_put_back_after_collections(old: Ground, keep: Callable[[Ground], None]) -> None:
    keep(old)
    days_pass(old, 8)
    lost = manifest(old, 3)
    data = lost.read_bytes()
    lost.unlink()
    location = old.location(T)
    for _ in range(2):
        report = collect(old.again())
        assert f"version 3 of g$t: expected its manifest at {location}" in report.not_judged[location]
    lost.write_bytes(data)
    assert ids(old, 3) == [20, 21]
    assert dict(collect(old.again()).not_judged) == {}
    assert ids(old, 3) == [20, 21]


def test_a_lost_manifest_stops_the_collection_of_no_other_table(old: Ground) -> None:
    old.make_table(*U)
    garbage = old.root / leave_fragment(old, U)
    days_pass(old, 8)
    manifest(old, 3).unlink()
    assert list(collect(old.again()).not_judged) == [old.location(T)]
    assert not garbage.exists()


def test_a_lost_manifest_of_a_dropped_table_is_no_loss_once_it_is_back(old: Ground) -> None:
    days_pass(old, 8)
    data, lost = manifest(old, 3).read_bytes(), manifest(old, 3)
    lost.unlink()
    two = old.again()
    two.call("drop_table", id=T)
    collect(two)
    two.call("undrop_table", id=T)
    assert list(collect(two).not_judged) == [old.location(T)]
    lost.write_bytes(data)
    assert ids(old, 3) == [20, 21]


@pytest.mark.parametrize("dropped", [False, True])
def test_a_lost_manifest_of_a_clone_keeps_the_files_of_its_source(old: Ground, dropped: bool) -> None:
    """Its earlier version alone names the files of version 3 of the source by then, and a later one others."""
    old.open(T).shallow_clone(str(old.root / "c"), 3)
    old.call("register_table", id=C, location="c")
    old.write(C, rows(7, 8), "overwrite")
    old.call("batch_delete_table_versions", id=T, ranges=[{"start_version": 1, "end_version": 5}])
    old.catalog.sweep()
    forget_history(old)
    days_pass(old, 8)
    collect(old.again())
    assert not manifest(old, 3).exists()
    lost = manifest(old, 3, C)
    data = lost.read_bytes()
    if dropped:
        old.again().call("drop_table", id=C)
    lost.unlink()
    for _ in range(2):
        collect(old.again())
    lost.write_bytes(data)
    assert lance.dataset(str(old.root / "c"), version=3).to_table()["id"].to_pylist() == [20, 21]


def remove(path: Path) -> None:
    path.unlink()


def flip(path: Path) -> None:
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 0x10
    rewrite(path, bytes(damaged))


def empty(path: Path) -> None:
    rewrite(path, b"")


def rewrite(path: Path, data: bytes) -> None:
    """Another content of the same date."""
    written = path.stat().st_mtime
    path.write_bytes(data)
    os.utime(path, (written, written))


@pytest.mark.parametrize("is_purged", [False, True])
@pytest.mark.parametrize("is_dropped", [False, True])
@pytest.mark.parametrize("harm", [remove, flip, empty])
def test_the_only_manifest_of_a_clone_cannot_be_read(
    old: Ground, harm: Callable[[Path], None], is_dropped: bool, is_purged: bool
) -> None:
    """Nothing else tells that it names files of its source, whose version is given up; runs look where much changed."""
    old.open(T).shallow_clone(str(old.root / "c"), 3)
    old.call("register_table", id=C, location="c")
    run(old)
    lost = manifest(old, 3, C)
    data = lost.read_bytes()
    if is_dropped:
        old.call("drop_table", id=C)
    harm(lost)
    for _ in range(2):  # nothing goes yet
        run(old)
    if is_purged:
        old.again().call("drop_table", id=T, purge=True)
    else:
        old.again().call("batch_delete_table_versions", id=T, ranges=[{"start_version": 1, "end_version": 5}])
    two = old.again()
    two.catalog.sweep()
    copy_versions(two.store, list_catalog_versions(two.store), needed_versions(two.catalog.snapshot()))
    forget_history(two)
    let_pass(two, timedelta(days=8))
    for _ in range(2):
        run(two)
    lost.parent.mkdir(parents=True, exist_ok=True)
    lost.write_bytes(data)
    assert lance.dataset(str(old.root / "c"), version=3).to_table()["id"].to_pylist() == [20, 21]


def run(ground: Ground) -> GcReport:
    """A collection as a server starts it."""
    settings = {"gc.dropped.window": "400d"}
    return Collector(ground.again().catalog, settle=timedelta(0)).collect(settings, everywhere=False)


@pytest.mark.parametrize("harm", [remove, flip])
def test_a_table_that_begins_apart_stops_no_other_one(old: Ground, harm: Callable[[Path], None]) -> None:
    """Its only version is lost or damaged; the transaction file tells that it names nothing of others."""
    old.make_table(*U)
    days_pass(old, 8)
    harm(manifest(old, 1, U))
    report = collect(old.again())
    assert list(report.not_judged) == [old.location(U)]
    assert report.removed["named by no manifest"].files == 1


def test_what_a_clean_up_of_a_client_left_goes(old: Ground) -> None:
    """It removed transaction files, and then manifests: nothing is lost."""
    old.open(T).cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False)
    again = old.root / leave_fragment(old, T)
    days_pass(old, 8)
    two = old.again()
    report = collect(two)
    assert dict(report.not_judged) == {}
    assert not again.exists()
    assert two.ids(T) == [40, 41]


class ShortListing(WrappedStore):
    """Its listings lack the keys of which `hides` is true."""

    def __init__(self, inner: ObjectStore, hides: Callable[[str], bool]) -> None:
        super().__init__(inner)
        self.hides = hides
        self.asked: list[str] = []

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectMeta]:
        return (meta for meta in self.inner.list(prefix, start_after=start_after) if not self.hides(meta.path))

    def names(self, prefix: str) -> Sequence[str]:
        return [name for name in self.inner.names(prefix) if not self.hides(f"{prefix}/{name}")]

    def get_with_meta(self, path: str) -> tuple[bytes, ObjectMeta]:
        self.asked.append(path)
        return self.inner.get_with_meta(path)


def test_a_manifest_that_no_listing_has_is_asked_for_by_its_key(old: Ground) -> None:
    days_pass(old, 8)
    location = old.location(T)
    hidden = {f"{location}/_versions/{manifest(old, version).name}" for version in (2, 3)}
    store = ShortListing(LocalStore(old.root, "none"), lambda key: key in hidden)
    report = collect(old.again(store))
    assert {reason: each.files for reason, each in report.removed.items() if "catalog" not in reason} == {
        "named by no manifest": 1
    }
    assert dict(report.not_judged) == {}
    assert [ids(old, version) for version in range(1, 6)] == [[0, 1, 2], [10, 11], [20, 21], [30, 31], [40, 41]]


def test_nothing_is_asked_for_where_each_manifest_is_listed_or_nothing_goes(old: Ground) -> None:
    days_pass(old, 8)
    store = ShortListing(LocalStore(old.root, "none"), lambda _key: False)
    two = old.again(store)
    assert "named by no manifest" in collect(two).removed
    assert not [key for key in store.asked if key.startswith(old.location(T))]
    old.open(T).cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False)
    collect(old.again(store))
    assert not [key for key in store.asked if key.startswith(old.location(T))]
