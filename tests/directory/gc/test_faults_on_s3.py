"""A collection on a bucket dies after a write, or does not learn what became of it: at each kind of write in turn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from lance_namespace.errors import LanceNamespaceError

from lance_core.errors import LanceCoreError
from lance_core.storage.port import ObjectStore
from namespace_server.directory.catalog import StoredCatalog
from namespace_server.directory.gc.history import copy_versions, list_catalog_versions, needed_versions
from namespace_server.directory.gc.plan import list_runs
from namespace_server.directory.gc.report import GcReport
from namespace_server.directory.gc.run import Collector
from namespace_server.directory.model.root_layout import KEPT_VERSIONS
from tests.directory.gc.collecting import forget_history
from tests.directory.gc.test_mark import leave_fragment
from tests.directory.manifests.test_held_on_s3 import Bucket
from tests.directory.tables import QUIET, Ground, rows
from tests.emulators import Emulator
from tests.storage.faults import Crashed, Fault, FaultStore, Write

pytestmark = [pytest.mark.long, pytest.mark.services, pytest.mark.slow]

T, U, V = ["g", "t"], ["g", "u"], ["g", "v"]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    """A table with deleted versions and garbage, one to be purged, one that may come back, and a pin."""
    ground = Ground(tmp_path_factory.mktemp("scene") / "root")
    ground.make_namespace("g")
    for table in (T, U, V):
        ground.make_table(*table)
    ground.write(T, rows(0, 4), "overwrite")
    ground.catalog.sweep()
    ground.catalog.flush_record_housekeeping()
    ground.call("batch_delete_table_versions", id=T, ranges=[{"start_version": 1, "end_version": 2}])
    ground.call("drop_table", id=U, purge=True)
    ground.call("drop_table", id=V)
    leave_fragment(ground, T)
    ground.call("pin_catalog_version", name="later")
    copy_versions(ground.store, list_catalog_versions(ground.store), needed_versions(ground.catalog.snapshot()))
    forget_history(ground)
    return ground


@pytest.fixture
def bucket(moto_server: Emulator) -> Iterator[Bucket]:
    made = Bucket(moto_server)
    yield made
    for store in made.stores:
        store.close()


def fill(bucket: Bucket, scene: Ground, prefix: str) -> ObjectStore:
    """The scene below a prefix of the bucket."""
    bucket.uri = f"{bucket.uri.rstrip('/').rpartition('/')[0]}/{prefix}"
    bucket.upload(scene.root)
    return bucket.store()


def collect_later(store: ObjectStore) -> GcReport:
    """A run a month from now: the dates of a bucket cannot be changed."""
    later = datetime.now(UTC).replace(microsecond=0) + timedelta(days=30)
    collector = Collector(StoredCatalog(store, QUIET), settle=timedelta(0), clock=lambda *_: later)
    return collector.collect({"gc.dropped.window": "60d"})


def kind(write: Write) -> tuple[str, str]:
    """What is written: the method, and the key without names that differ from run to run."""
    first, second, *rest = write.path.split("/")
    if first == "_staging" and "expiring" in rest:
        return write.verb, "copy of a manifest"
    if first == "_staging":
        return write.verb, "copy" if rest[0] == "kept" else rest[-1].partition("-")[0]
    return write.verb, f"{'catalog' if first == '__manifest' else 'table'} {second}"


def left(store: ObjectStore) -> set[str]:
    """The files of tables, and copies of catalog versions."""
    paths = {meta.path for meta in store.list("")}
    return {path for path in paths if not path.startswith("_") or path.startswith(f"{KEPT_VERSIONS}/")}


def test_a_run_that_a_fault_ends_is_finished_by_the_next_one(bucket: Bucket, scene: Ground) -> None:
    whole = FaultStore(fill(bucket, scene, "whole"))
    collect_later(whole)
    kinds = list(dict.fromkeys(map(kind, whole.writes)))
    for _ in range(3):
        collect_later(whole)
    expected = left(whole)
    assert {verb for verb, _ in kinds} == {"put", "put_if_absent", "delete", "delete_if"}
    assert len(left(scene.store) - expected) > 5
    for number, each in enumerate(kinds):
        store = fill(bucket, scene, f"{number}")
        broken = FaultStore(store)
        fault = (Fault.CRASH_AFTER, Fault.LOST_ANSWER)[number % 2]
        broken.fail(fault, when=lambda write, each=each: kind(write) == each)
        with suppress(Crashed, LanceCoreError, LanceNamespaceError):
            collect_later(broken)
        for _ in range(3):  # the broken run is done, then copies of manifests go that it left, then what they name
            collect_later(store)
        assert (left(store), list_runs(store).unfinished) == (expected, []), (each, fault)
        table = StoredCatalog(store, QUIET).table
        [pin] = table.refresh().pins()
        assert table.kept(pin.version).table(tuple(T)) is not None
        assert bucket.open(scene.location(T)).to_table()["id"].to_pylist() == [0, 1, 2, 3]
