"""A run that looks where something changed costs what changed, and misses nothing that it has to find."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from lance_core.cleanup import survey
from lance_core.cleanup.survey import list_known
from lance_core.errors import ReferenceNotFound, StorageError
from lance_core.format.manifest import encode_manifest_file
from lance_core.format.naming import manifest_name
from lance_core.storage.local import LocalStore
from lance_core.storage.wrappers.counting import Cost, CountingStore
from lance_core.versions import find_latest, read_manifest
from namespace_server.directory.gc.report import EXPIRED, UNNAMED, GcReport
from namespace_server.directory.gc.run import Collector
from namespace_server.directory.gc.scan_state import _SCHEMA, choose_locations, read_scan_state
from namespace_server.directory.model.entries import changes_of
from namespace_server.directory.model.root_layout import SCAN_STATE
from tests.directory.gc.collecting import forget_history
from tests.directory.gc.test_mark import leave_fragment
from tests.directory.tables import Ground, rows
from tests.storage.faults import FaultStore

DAY = timedelta(days=1)


def collect_on(ground: Ground, day: float, *, everywhere: bool = False) -> GcReport:
    """A run so many days from now, by its clock."""
    now = datetime.now(UTC).replace(microsecond=0) + day * DAY
    return Collector(ground.catalog, settle=timedelta(0), clock=lambda *_: now).collect(everywhere=everywhere)


def fill(ground: Ground, tables: int) -> list[list[str]]:
    """So many tables of three versions each."""
    made = [ground.make_table("g", f"t{number}", count=1) for number in range(tables)]
    for start in (1, 2):
        ground.batch(*(ground.transaction(table, rows(start, start + 1)) for table in made))
    ground.catalog.sweep()
    return made


@pytest.fixture
def counted(tmp_path: Path) -> Callable[[str], Ground]:
    def make(name: str) -> Ground:
        ground = Ground(tmp_path / name, CountingStore(LocalStore(tmp_path / name, "none")))
        ground.make_namespace("g")
        return ground

    return make


@pytest.fixture
def three(ground: Ground) -> Ground:
    """Three tables at which a run has looked, which found nothing."""
    fill(ground, 3)
    collect_on(ground, 0)
    return ground


T = ["g", "t1"]


def requests_of(ground: Ground, day: float) -> Cost:
    assert isinstance(ground.store, CountingStore)
    fresh = ground.again(ground.store)
    fresh.catalog.snapshot()
    with ground.store.measure() as cost:
        assert collect_on(fresh, day).total.files == 0
    return cost


def test_a_run_that_finds_nothing_new_does_not_depend_on_the_number_of_tables(
    counted: Callable[[str], Ground],
) -> None:
    first, costs = [], []
    for number in (3, 12):
        ground = counted(str(number))
        fill(ground, number)
        first.append(requests_of(ground, 0).by_verb["list"])
        costs.append(requests_of(ground, 0.25).requests)
    assert max(costs) <= 30
    assert first[1] - first[0] == 9 * 2


def test_a_run_looks_at_the_tables_that_changed(counted: Callable[[str], Ground]) -> None:
    ground = counted("root")
    tables = fill(ground, 12)
    requests_of(ground, 0)
    quiet = requests_of(ground, 0.25).requests
    ground.batch(*(ground.transaction(table, rows(7, 8)) for table in tables[:2]))
    ground.catalog.sweep()
    assert requests_of(ground, 0.5).requests - quiet <= 2 * (2 + 1) + 6  # six more for `__manifest`


def test_a_table_of_many_files_is_listed_once_and_its_manifests_three_times_more(
    counted: Callable[[str], Ground], monkeypatch: pytest.MonkeyPatch
) -> None:
    costs = []
    for many in (1_000, 3):
        monkeypatch.setattr(survey, "_MANY", many)
        ground = counted(str(many))
        fill(ground, 5)
        costs.append(requests_of(ground, 0).by_verb)
    # `_versions/` before its files are kept, then `_staging/`, `_versions/` and `tree/`, in place of all at once
    assert costs[1]["list"] - costs[0]["list"] == 5 * 3
    assert costs[1]["get"] == costs[0]["get"]


@pytest.mark.parametrize("day", [0.25, 7.5])
def test_a_changed_table_costs_its_new_versions(counted: Callable[[str], Ground], day: float) -> None:
    """Manifests that an earlier run has read are not read again while nothing goes. A hint is no change."""
    costs = []
    for first in (1, 15):
        ground = counted(str(first))
        table = fill(ground, 1)[0]
        for number in range(first):
            ground.batch(ground.transaction(table, rows(number, number + 1)))
        ground.catalog.sweep()
        hint = ground.root / ground.location(table) / "_versions/latest_version_hint.json"
        hint.write_text("{}")
        requests_of(ground, 0)
        for number in range(5):
            ground.batch(ground.transaction(table, rows(number, number + 1)))
        ground.catalog.sweep()
        hint.write_text("{}")
        costs.append(requests_of(ground, day).by_verb)
    assert costs[0]["list"] == costs[1]["list"]
    assert costs[1]["get"] <= costs[0]["get"] + 2  # of `__manifest`


@pytest.mark.parametrize("change", ["bytes", "size", "date", "name"])
def test_files_are_known_by_all_that_a_listing_tells(three: Ground, change: str) -> None:
    location = three.location(T)
    before = list_known(three.store, location)
    path = min((three.root / location / "data").iterdir())
    data, written = path.read_bytes(), path.stat().st_mtime_ns
    if change == "name":
        path.rename(path.with_stem("0" + path.stem))
    else:
        other = three.root / "other"  # while the old file is there, its inode is not used again
        other.write_bytes({"bytes": data[::-1], "size": data + b"x"}.get(change, data))
        os.utime(other, ns=(written, written - 1_000 * (change == "date")))
        other.replace(path)
    assert list_known(three.store, location).digest != before.digest


@pytest.mark.parametrize("change", [{"sha256": "0" * 64}, {"version": 9}, {"branch": "b"}])
def test_rows_are_known_by_branch_version_and_manifest(ground: Ground, change: dict[str, Any]) -> None:
    ground.make_table(*T)
    before = ground.catalog.snapshot()
    row = before.head(tuple(T))
    assert row is not None
    other = replace(row, **change)
    after = before.apply(changes_of([other], removes={row.object_id} - {other.object_id}))
    look = partial(choose_locations, ground.store, seen={}, now=datetime.now(UTC), horizon=datetime.now(UTC), every=DAY)
    assert look(before).rows.keys() == look(after).rows.keys()
    assert look(before).rows != look(after).rows


def test_a_file_that_came_back_is_of_the_version_that_names_it(three: Ground) -> None:
    """It is old and new at once: no version names it that was written since the last run."""
    lost = Path(three.open(T).get_fragments()[0].data_files()[0].path)
    path = three.root / three.location(T) / "data" / lost
    data = path.read_bytes()
    path.unlink()
    three.batch(three.transaction(T, rows(3, 4)))
    collect_on(three, 0.25)
    three.write(T, rows(9, 10), "overwrite")
    three.catalog.sweep()
    path.write_bytes(data)
    assert collect_on(three, 7.5).total.files == 0
    assert three.open(T).checkout_version(2).to_table().num_rows > 0


def test_what_only_a_vanished_manifest_names_is_found(three: Ground) -> None:
    """Another program removed the manifest of a version, and no file of it."""
    (three.root / three.location(T) / "_versions").joinpath(manifest_name(1)).unlink()
    three.batch(three.transaction(T, rows(3, 4)))
    three.catalog.sweep()
    assert collect_on(three, 0.25).too_young.files == 1


def test_the_files_of_an_expired_version_go_with_it(three: Ground) -> None:
    three.call("batch_delete_table_versions", id=T, ranges=[{"start_version": 1, "end_version": 2}])
    three.catalog.sweep()
    forget_history(three)
    removed = collect_on(three, 7.4).removed
    assert (removed[EXPIRED].files, removed[UNNAMED].files) == (1, 1)


def test_a_table_that_does_not_change_is_listed_now_and_then(counted: Callable[[str], Ground]) -> None:
    ground = counted("root")
    fill(ground, 12)
    requests_of(ground, 0)
    listings = [requests_of(ground, day).by_verb["list"] for day in (0.25, 7.5, 7.75)]
    assert listings == [listings[0], listings[0] + 12, listings[0]]


def test_what_was_too_young_goes_when_it_is_old(three: Ground) -> None:
    lost = leave_fragment(three, T)
    unknown = three.root / three.location(T) / "notes.txt"
    unknown.touch()
    three.batch(three.transaction(T, rows(3, 4)))
    assert collect_on(three, 1).too_young.files == 1
    assert collect_on(three, 2).too_young.files == 0  # it does not look there yet
    assert collect_on(three, 7.1).removed[UNNAMED].files == 1
    assert ((three.root / lost).exists(), unknown.exists()) == (False, True)


def test_a_file_of_a_failed_write_is_found_within_the_interval(three: Ground) -> None:
    """No row changes. `gc.orphans.every` is 7 days, and its grace time as long."""
    lost = leave_fragment(three, T)
    assert collect_on(three, 2).too_young.files == 0
    assert collect_on(three, 7.5).total.files == 1
    assert not (three.root / lost).exists()


def test_a_run_at_some_tables_notes_nothing_of_the_others(three: Ground) -> None:
    leave_fragment(three, T)
    three.batch(three.transaction(T, rows(3, 4)))
    Collector(three.catalog, settle=timedelta(0)).collect(tables=[("g", "t2")])
    assert collect_on(three, 1).too_young.files == 1


def test_a_catalog_version_below_the_oldest_kept_one_is_refused_without_a_request(
    counted: Callable[[str], Ground],
) -> None:
    ground = counted("root")
    forget_history(ground)
    ground.catalog.snapshot()
    assert isinstance(ground.store, CountingStore)
    with ground.store.measure() as cost, pytest.raises(ReferenceNotFound):
        ground.catalog.table.at(1)
    assert cost.requests == 0


def test_a_table_that_is_asked_for_is_looked_at(three: Ground) -> None:
    leave_fragment(three, T)
    collector = Collector(three.catalog, settle=timedelta(0))
    assert collector.estimate().too_young.files == 1
    for run in (collector.estimate, collector.collect):
        assert run(everywhere=False).too_young.files == 0
        assert run(everywhere=False, tables=[("g", "t1")]).too_young.files == 1
    later = datetime.now(UTC) + 8 * DAY
    assert collector.estimate(now=later, tables=[("g", "t1")]).removed[UNNAMED].files == 1


def test_everywhere_is_everywhere(three: Ground) -> None:
    leave_fragment(three, T)
    assert collect_on(three, 3).too_young.files == 0
    assert collect_on(three, 3, everywhere=True).too_young.files == 1
    assert collect_on(three, 7.1).total.files == 1


def test_a_deleted_version_goes_when_the_history_passes(three: Ground) -> None:
    three.call("batch_delete_table_versions", id=T, ranges=[{"start_version": 1, "end_version": 2}])
    three.catalog.sweep()
    assert collect_on(three, 7.2).total.files == 0  # the kept versions of the catalog have it
    forget_history(three)
    assert collect_on(three, 7.4).removed[EXPIRED].files == 1
    assert three.canonical(T) == [2, 3]


def test_a_clone_that_changes_keeps_the_files_of_its_source(three: Ground) -> None:
    """Its earlier manifests are read again, although it was looked at before: they name files of another table."""
    clone, location = ["g", "c"], "0a0b0c0d_g$c"
    three.call("declare_table", id=clone, location=f"{three.store.uri}/{location}")
    three.open(T).shallow_clone(str(three.root / location), 1)
    three.read("list_table_versions", id=clone)
    three.write(T, rows(9, 10), "overwrite")
    three.catalog.sweep()
    collect_on(three, 0.1)
    three.call("batch_delete_table_versions", id=T, ranges=[{"start_version": 1, "end_version": 4}])
    three.write(clone, rows(20, 21), "overwrite")
    three.catalog.sweep()
    forget_history(three)
    assert collect_on(three, 7.4).removed[EXPIRED].files == 3
    assert three.open(clone, 1).to_table()["id"].to_pylist() == [0]


def test_what_could_not_be_removed_is_found_again(three: Ground) -> None:
    lost = leave_fragment(three, T)
    store = FaultStore(LocalStore(three.root, "none"))

    def refuse(verb: str, path: str) -> None:
        if verb == "delete" and path == lost:
            raise StorageError("no")

    store.before(refuse)
    assert list(collect_on(three.again(store), 7.1).refused) == [lost]
    assert collect_on(three, 7.2).total.files == 1


def test_a_location_that_was_not_judged_is_looked_at_again(three: Ground) -> None:
    location = three.location(T)
    manifest = three.root / location / "_versions" / manifest_name(1)
    manifest.write_bytes(manifest.read_bytes()[:-9])
    for _ in range(2):
        assert list(collect_on(three, 7.1).not_judged) == [location]


def test_a_manifest_elsewhere_that_may_name_files_of_all_tables_is_read_by_each_run(three: Ground) -> None:
    """Its table did not change, and is not the catalog's own."""
    lance.write_dataset(rows(0, 1), str(three.root / "mine"))
    three.call("register_table", id=["g", "m"], location="mine")
    found = read_manifest(three.store, find_latest(three.store, "mine"))
    manifest = copy.deepcopy(found.manifest)
    manifest.writer_feature_flags |= 1 << 40
    manifest.base_paths.add(id=1, path="elsewhere")
    path = three.root / "mine/_versions" / manifest_name(1)
    path.write_bytes(encode_manifest_file(manifest, found.transaction, found.indices))
    lost = three.root / leave_fragment(three, T)
    for day in (7.1, 7.2):
        assert three.location(T) in collect_on(three, day).not_judged
    assert lost.exists()


def test_a_run_looks_where_a_branch_changed(three: Ground) -> None:
    """Also if it was made again under its name, at the same version."""
    for day in (1, 2):
        three.call("create_table_branch", id=T, name="b", from_version=2)
        three.catalog.sweep()
        leave_fragment(three, T)
        assert collect_on(three, day).too_young.files == day
        three.namespace.change("delete_table_branch", {"id": T, "name": "b"})
        three.catalog.sweep()


def test_a_run_does_not_look_at_tables_that_were_dropped_before_the_last_one(
    counted: Callable[[str], Ground],
) -> None:
    costs = []
    for number in (2, 8):
        ground = counted(str(number))
        for table in fill(ground, number):
            ground.call("drop_table", id=table)
        requests_of(ground, 0)
        costs.append(requests_of(ground, 0.25).requests)
    assert max(costs) <= 30


def test_the_source_of_a_clone_keeps_its_files(three: Ground) -> None:
    """The clone does not change, and its manifest is read by each run."""
    three.open(T).shallow_clone(str(three.root / "clone"), 2)
    three.call("register_table", id=["g", "c"], location="clone")
    three.write(T, rows(9, 10), "overwrite")
    three.catalog.sweep()
    collect_on(three, 7.3)
    three.call("batch_delete_table_versions", id=T, ranges=[{"start_version": 1, "end_version": 4}])
    three.catalog.sweep()
    forget_history(three)
    assert collect_on(three, 7.4).removed[EXPIRED].files == 3
    assert collect_on(three, 14.8).total.files == 0
    assert sorted(lance.dataset(str(three.root / "clone")).to_table()["id"].to_pylist()) == [0, 1]


def test_a_table_that_is_dropped_goes(three: Ground) -> None:
    location = three.location(T)
    three.call("drop_table", id=T)
    collect_on(three, 1)
    report = collect_on(three, 7.1)
    assert report.purged == (location,)
    assert location not in {path.partition("/")[0] for path in map(str, three.root.iterdir())}
    assert collect_on(three, 7.2).total.files == 0


@pytest.mark.parametrize("schema", [pa.schema([("location", pa.string())]), _SCHEMA.with_metadata({"format": "1"})])
def test_what_another_release_noted_is_not_read(ground: Ground, schema: pa.Schema) -> None:
    sink = pa.BufferOutputStream()
    values = {"location": "a", "rows": bytes(16), "listing": bytes(16), "names_others": False}
    with pa.ipc.new_file(sink, schema) as writer:
        writer.write(pa.RecordBatch.from_pylist([{name: values.get(name, 0) for name in schema.names}], schema))
    body = sink.getvalue().to_pybytes()
    ground.store.put(SCAN_STATE, sha256(body).digest() + body)
    assert read_scan_state(ground.store) == {}


@pytest.mark.parametrize("damage", [b"", b"damaged", None])
def test_without_what_was_seen_a_run_looks_everywhere(three: Ground, damage: bytes | None) -> None:
    leave_fragment(three, T)
    path = three.root / SCAN_STATE
    path.unlink() if damage is None else path.write_bytes(path.read_bytes()[:-3] + damage)
    assert read_scan_state(three.store) == {}
    assert collect_on(three, 1).too_young.files == 1
    assert len(read_scan_state(three.store)) == 3
