"""Fresh or live (rule G2): no commit names a file that a collection may remove."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import InvalidInputError

from lance_core.data import schema_fields
from lance_core.format.naming import manifest_name
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.local import LocalStore
from lance_core.storage.wrappers.counting import CountingStore
from namespace_server.directory.model.collector_rows import CollectorEntry, IntendedChain, IntentEntry
from namespace_server.directory.model.entries import changes_of
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning.freshness import too_old
from namespace_server.directory.planning.plan_builder import AddedFiles
from tests.directory.gc.horizons import HOUR, WEEK, age, move_horizon
from tests.directory.tables import Ground, as_operation, rows
from tests.staged_fragments import stage_fragments
from tests.storage.faults import FaultStore

T = ["g", "t"]
REFUSED = r"the file .* was written at .*, before .*, the horizon of the catalog; .* stage again"


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    made = Ground(tmp_path / "root")
    made.make_namespace("g")
    made.make_table(*T)
    return made


def data_files(ground: Ground) -> set[Path]:
    return set((ground.root / ground.location(T) / "data").iterdir())


def staged(ground: Ground, stage: Callable[[], dict[str, Any]]) -> tuple[dict[str, Any], list[Path]]:
    """An operation, and the data files that it adds."""
    before = data_files(ground)
    operation = stage()
    return operation, sorted(data_files(ground) - before)


@pytest.mark.parametrize("kind", ["transaction", "manifest"])
def test_a_file_that_was_written_before_the_horizon_is_refused(ground: Ground, kind: str) -> None:
    stage = ground.transaction if kind == "transaction" else ground.stage
    operation, [file] = staged(ground, lambda: stage(T, rows(3, 5)))
    move_horizon(ground)
    age(file)
    with pytest.raises(InvalidInputError, match=REFUSED):
        ground.batch(operation)
    assert ground.ids(T) == [0, 1, 2]
    age(file, -2 * WEEK)
    ground.batch(operation)
    assert ground.ids(T) == [0, 1, 2, 3, 4]


def test_a_file_of_the_second_of_the_horizon_is_fresh(ground: Ground) -> None:
    operation, [file] = staged(ground, lambda: ground.transaction(T, rows(3, 5)))
    move_horizon(ground)
    horizon = ground.catalog.snapshot().collector.horizon
    os.utime(file, (horizon, horizon))
    ground.batch(operation)


def test_an_intent_keeps_no_file_outside_of_its_table() -> None:
    """As one that a base path leads to. A file of the second of its horizon is fresh."""
    dates = {"a/data/w.lance": 3, "a/data/x.lance": 5, "a/data/y.lance": 2, "ab/data/z.lance": 5, "c/data/v.lance": 9}
    found = AddedFiles("a", {}, (), True, dates)
    intent = IntentEntry("00000000-0000-4000-8000-000000000001", (IntendedChain("a", None, 3),), 1)
    snapshot = CatalogSnapshot().apply(changes_of([CollectorEntry(horizon=9), intent]))
    assert too_old(found, snapshot).keys() == {"a/data/y.lance", "ab/data/z.lance"}


def test_a_manifest_that_was_staged_before_the_horizon_is_refused(ground: Ground) -> None:
    operation = ground.stage(T, rows(3, 5))
    path = ground.root / operation["create_table_version"]["manifest_path"].removeprefix(str(ground.root)[1:] + "/")
    move_horizon(ground, ahead=-2 * HOUR)  # below the age at which a staged manifest is refused anyway
    age(path, 3 * HOUR)
    with pytest.raises(InvalidInputError, match=REFUSED):
        ground.batch(operation)


def test_a_catalog_that_was_never_collected_asks_for_no_date(ground: Ground) -> None:
    operation, [file] = staged(ground, lambda: ground.transaction(T, rows(3, 5)))
    age(file)
    ground.batch(operation)
    assert ground.ids(T) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("local", [True, False])
def test_a_horizon_flip_between_the_look_and_the_flip_counts(ground: Ground, local: bool) -> None:
    operation, [file] = staged(ground, lambda: ground.transaction(T, rows(3, 5)))
    age(file)
    store = FaultStore(LocalStore(ground.root, "none"))
    store.local = local
    other = ground.again(store)
    moves: list[str] = []

    def meanwhile(verb: str, path: str) -> None:
        if verb == "put" and path.startswith("_staging/") and not moves:
            moves.append(path)
            move_horizon(ground)

    store.before(meanwhile)
    with pytest.raises(InvalidInputError, match=REFUSED):
        other.batch(operation)
    assert moves
    assert ground.ids(T) == [0, 1, 2]


def test_in_a_bucket_the_date_is_found_beside_staging(ground: Ground) -> None:
    operation, [file] = staged(ground, lambda: ground.transaction(T, rows(3, 5)))
    move_horizon(ground)
    age(file)
    store = CountingStore(LocalStore(ground.root, "none"))
    store.local = False
    with pytest.raises(InvalidInputError, match=REFUSED):
        ground.again(store).batch(operation)
    age(file, -2 * WEEK)
    ground.again(store).batch(operation)
    assert ground.ids(T) == [0, 1, 2, 3, 4]


def test_in_a_bucket_the_date_of_a_manifest_counts_too(ground: Ground) -> None:
    """A process was held for long after it had looked at all files."""
    operation, files = staged(ground, lambda: ground.stage(T, rows(3, 5)))
    for file in files:
        age(file, -3 * HOUR)
    store = FaultStore(LocalStore(ground.root, "none"))
    store.local = False
    moves: list[str] = []

    def meanwhile(verb: str, path: str) -> None:
        if verb == "put" and path.startswith("__manifest/data/") and not moves:
            moves.append(path)
            move_horizon(ground, ahead=2 * HOUR)

    store.before(meanwhile)
    with pytest.raises(InvalidInputError, match=r"the file .*/_versions/.* was written at"):
        ground.again(store).batch(operation)
    assert moves


CHANGES: dict[str, Callable[[lance.LanceDataset], object]] = {
    "append": lambda table: lance.write_dataset(rows(9, 10), table, mode="append"),
    "overwrite": lambda table: lance.write_dataset(rows(9, 10), table, mode="overwrite"),
    "delete": lambda table: table.delete("id = 1"),
    "update": lambda table: table.update({"name": "'x'"}, where="id = 1"),
    "merge": lambda table: table.merge_insert("id").when_matched_update_all().execute(rows(1, 2)),
    "add columns": lambda table: table.add_columns({f"c{table.version}": "id * 2"}),
    "index": lambda table: table.create_scalar_index("id", "BTREE"),
    "compaction": lambda table: table.optimize.compact_files(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changes_of_stock_pylance_on_old_tables(ground: Ground, change: str) -> None:
    for first in (3, 5):
        ground.write(T, rows(first, first + 2))
    for path in (ground.root / ground.location(T)).rglob("*"):
        if path.is_file():
            age(path)
    move_horizon(ground, ahead=0)
    CHANGES[change](lance.dataset(namespace_client=ground.namespace, table_id=T))  # the files that it adds are fresh
    assert ground.head(T) > 3
    move_horizon(ground, ahead=HOUR)
    table = lance.dataset(namespace_client=ground.namespace, table_id=T)
    with pytest.raises(Exception, match=r"stage again|unknown"):
        CHANGES["append" if change == "compaction" else change](table)


def overwrite_with(ground: Ground, fragments: list[Any], branch: str | None = None) -> dict[str, Any]:
    message = pb.Transaction(read_version=ground.head(T, branch), uuid=str(uuid.uuid4()))
    message.overwrite.fragments.extend(fragments)
    message.overwrite.schema.extend(schema_fields(pa.schema([("id", pa.int64()), ("name", pa.string())])))
    return as_operation(T, message, branch)


def test_a_version_that_cannot_be_read_keeps_nothing(ground: Ground) -> None:
    operation, [file] = staged(ground, lambda: ground.transaction(T, rows(3, 5)))
    ground.write(T, rows(5, 6))
    ground.write(T, rows(6, 7))
    ground.catalog.sweep()
    (ground.root / ground.location(T) / "_versions" / manifest_name(2)).unlink()
    move_horizon(ground)
    age(file)
    with pytest.raises(InvalidInputError, match=REFUSED):
        ground.again().batch(operation)


def test_an_old_file_that_a_version_in_the_catalog_names_may_be_named_again(ground: Ground) -> None:
    first = ground.catalog.snapshot().version_entry(tuple(T), None, 1)
    assert first is not None
    fragments = list(ground.catalog.manifests.load(first).manifest.fragments)
    ground.write(T, rows(7, 9), "overwrite")
    for file in data_files(ground):
        age(file)
    move_horizon(ground)
    ground.batch(overwrite_with(ground, fragments))
    assert ground.ids(T) == [0, 1, 2]
    ground.write(T, rows(7, 9), "overwrite")
    ground.call("batch_delete_table_versions", id=T, ranges=[{"start_version": 1, "end_version": 4}])
    with pytest.raises(InvalidInputError, match=REFUSED):
        ground.batch(overwrite_with(ground, fragments))


def test_of_a_branch_its_own_versions_count(ground: Ground) -> None:
    ground.call("create_table_branch", id=T, name="b")
    branch = f"{ground.root / ground.location(T)}/tree/b"
    for mode in ("append", "overwrite"):
        lance.write_dataset(rows(7, 9), ground.open(T).checkout_version(("b", None)), mode=mode)
    ground.read("list_table_versions", id=T, branch="b")
    appended = ground.catalog.snapshot().version_entry(tuple(T), "b", 2)
    assert appended is not None
    named = list(ground.catalog.manifests.load(appended).manifest.fragments)[1:]
    lost = stage_fragments(rows(3, 5), branch, mode="append")
    for path in Path(branch, "data").iterdir():
        age(path)
    move_horizon(ground)
    for fragments, is_fresh in ((named, True), (lost, False)):
        operation = overwrite_with(ground, fragments, "b")
        with nullcontext() if is_fresh else pytest.raises(InvalidInputError, match=REFUSED):
            ground.batch(operation)
    assert sorted(ground.open(T).checkout_version(("b", None)).to_table()["id"].to_pylist()) == [7, 8]


@pytest.mark.parametrize("days", [1, 9])
def test_a_commit_by_path_is_adopted_if_its_writer_was_quicker_than_a_collection(ground: Ground, days: int) -> None:
    before = data_files(ground)
    ground.unmanaged_append(T, rows(3, 5))
    [file] = data_files(ground) - before
    manifest = ground.root / ground.location(T) / "_versions" / manifest_name(2)
    age(file, (20 + days) * 24 * HOUR)
    age(manifest, 20 * 24 * HOUR)
    move_horizon(ground)
    ground.read("list_table_versions", id=T)
    assert ground.head(T) == (2 if days == 1 else 1)


def test_a_slow_commit_by_path_is_not_the_end_of_its_table(ground: Ground) -> None:
    before = data_files(ground)
    ground.unmanaged_append(T, rows(3, 5))
    [file] = data_files(ground) - before
    age(file, 9 * 24 * HOUR)
    move_horizon(ground)
    ground.read("list_table_versions", id=T)
    assert ground.head(T) == 1
    ground.batch(ground.transaction(T, rows(7, 8)))
    for _ in range(2):
        ground.catalog.sweep()
    ground.write(T, rows(8, 9))  # by stock pylance
    assert ground.ids(T) == [0, 1, 2, 7, 8]


@pytest.mark.parametrize(("changes", "is_kept"), [(1, True), (70, True), (1, False)])
def test_a_version_that_is_restored_by_path_is_adopted_while_it_has_a_row(
    ground: Ground, changes: int, is_kept: bool
) -> None:
    """No other version names its files, which are old."""
    for first in range(changes):
        ground.write(T, rows(10 + first, 12 + first), "overwrite")
    if not is_kept:
        ground.call("batch_delete_table_versions", id=T, ranges=[{"start_version": 1, "end_version": 2}])
    for path in (ground.root / ground.location(T)).rglob("*.*"):
        age(path)
    move_horizon(ground)
    ground.open(T, 1).restore()
    ground.read("list_table_versions", id=T)
    assert ground.head(T) == 1 + changes + is_kept
    if is_kept:
        ground.write(T, rows(8, 9))  # by stock pylance
        assert ground.ids(T) == [0, 1, 2, 8]


@pytest.mark.parametrize("kind", ["too slow", "files gone", "restores a deleted version", "not built on the head"])
def test_a_commit_by_path_that_is_never_adopted_does_not_stop_stock_writers(ground: Ground, kind: str) -> None:
    table = ground.root / ground.location(T)
    other = shutil.copytree(table, ground.root.parent / "other")
    ground.write(T, rows(3, 5), "overwrite")
    if kind == "not built on the head":
        for first in (5, 6):
            lance.write_dataset(rows(first, first + 1), str(other), mode="append")
        shutil.copytree(other / "data", table / "data", dirs_exist_ok=True)
        shutil.copyfile(other / "_versions" / manifest_name(3), table / "_versions" / manifest_name(3))
    elif kind == "restores a deleted version":
        ground.call("batch_delete_table_versions", id=T, ranges=[{"start_version": 1, "end_version": 2}])
        for path in table.rglob("*.*"):
            age(path)
        ground.open(T, 1).restore()
    else:
        before = data_files(ground)
        ground.unmanaged_append(T, rows(5, 6))
        ground.unmanaged_append(T, rows(6, 7))
        for file in data_files(ground) - before:
            age(file, 9 * 24 * HOUR)
            if kind == "files gone":
                file.unlink()
    move_horizon(ground)
    ground.write(T, rows(8, 9))  # by stock pylance
    assert (ground.head(T), ground.ids(T)) == (3, [3, 4, 8])
    for _ in range(2):
        ground.catalog.sweep()
    ground.write(T, rows(9, 10))
    assert ground.ids(T) == [3, 4, 8, 9]  # also where it is fresh: what it was built on is not known
    left = [path.name for path in (ground.root / "_staging/foreign").rglob("*.manifest")]
    assert manifest_name(3) in left
    assert {record.state for record in ground.catalog.snapshot().records()} >= {"foreign"}
