"""Versions of tables go by age and count, and none that something needs."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import lance
import pytest
from lance_namespace.errors import ConcurrentModificationError, InvalidInputError

from lance_core.format.naming import manifest_name
from lance_core.storage.local import LocalStore
from lance_core.tables.tags import Tags
from namespace_server.directory.gc.history import copy_versions, list_catalog_versions, needed_versions
from namespace_server.directory.gc.report import GcReport
from namespace_server.directory.gc.restored_versions import put_back_named
from namespace_server.directory.gc.run import Collector
from namespace_server.directory.gc.settings import GcSettings
from namespace_server.directory.gc.table_retention import Superseded, find_superseded
from namespace_server.directory.model.entries import Changes, Participant, RecordEntry, changes_of
from namespace_server.directory.model.retention import Kept, kept_of
from namespace_server.directory.model.snapshot import CatalogSnapshot
from tests.directory.gc.collecting import collect, date_rows_back, days_pass, forget_history, let_pass
from tests.directory.tables import Ground, rows
from tests.storage.faults import Crashed, Fault, FaultStore

T, U = ["g", "t"], ["g", "u"]
JOB = "0a0b0c0d-0000-4000-8000-000000000001"
TWO_DAYS = {"gc.tables.age": "2d"}


@pytest.fixture
def two(ground: Ground) -> Ground:
    """Two tables of six versions each."""
    for table in (T, U):
        ground.make_table(*table)
        for start in range(3, 8):
            ground.write(table, rows(start, start + 1))
    ground.catalog.sweep()
    return ground


def versions(ground: Ground, table: list[str], branch: str | None = None) -> list[int]:
    return [row.version for row in ground.again().catalog.snapshot().versions(tuple(table), branch)]


def whole(ground: Ground, table: list[str], *kept: int) -> None:
    for version in kept:
        dataset = ground.open(table, version)
        dataset.validate()
        assert dataset.to_table().num_rows == version + 2


def test_without_settings_all_versions_stay(two: Ground) -> None:
    days_pass(two, 400)
    assert collect(two).expired == 0
    assert versions(two, T) == [1, 2, 3, 4, 5, 6]


def test_by_age(two: Ground) -> None:
    days_pass(two, 1)
    two.write(T, rows(8, 9))
    days_pass(two, 1.5)
    report = collect(two, TWO_DAYS)
    assert report.expired == 5 + 5  # version 6 of T was superseded a day and a half ago
    assert (versions(two, T), versions(two, U)) == ([6, 7], [6])
    whole(two, T, 6, 7)
    assert two.again().ids(U) == list(range(8))


def test_the_clock_of_the_store_says_how_old_a_version_is(two: Ground) -> None:
    later = datetime.now(UTC).replace(microsecond=0) + timedelta(days=3)
    collector = Collector(two.catalog, settle=timedelta(0), clock=lambda *_: later)
    assert collector.collect(TWO_DAYS).expired == 10


def test_by_count(two: Ground) -> None:
    assert collect(two, {"gc.tables.count": "2"}).expired == 0  # within the hour
    days_pass(two, 0.1)
    assert collect(two).expired == 8
    assert versions(two, T) == versions(two, U) == [5, 6]
    assert collect(two).expired == 0


def test_a_table_with_fewer_versions_than_are_kept_is_judged(two: Ground) -> None:
    days_pass(two, 30)
    report = collect(two, {"gc.tables.count": "100"})
    assert (report.expired, report.not_judged) == (0, {})


def test_both_keep(two: Ground) -> None:
    days_pass(two, 30)
    assert collect(two, TWO_DAYS | {"gc.tables.count": "4"}).expired == 4
    assert versions(two, T) == [3, 4, 5, 6]


def test_the_files_follow_with_the_history_of_the_catalog(two: Ground) -> None:
    days_pass(two, 3)
    collect(two, TWO_DAYS)
    assert two.canonical(T) == [1, 2, 3, 4, 5, 6]  # kept versions of the catalog have them
    forget_history(two)
    let_pass(two)
    collect(two)
    assert two.canonical(T) == two.canonical(U) == [6]
    whole(two, T, 6)
    lance.write_dataset(rows(20, 21), mode="append", namespace_client=two.again().namespace, table_id=T)
    assert two.again().ids(T) == [*range(8), 20]


def test_a_dry_run_tells_and_removes_nothing(two: Ground) -> None:
    days_pass(two, 3)
    report = Collector(two.again().catalog).estimate(TWO_DAYS)
    assert report.expired == 10
    assert "would expire: 10 versions of tables" in list(report.lines())
    assert report.as_json()["expired_versions"] == 10
    assert versions(two, T) == [1, 2, 3, 4, 5, 6]


def test_the_nearest_property_counts(two: Ground) -> None:
    two.batch({"set_table_properties": {"id": T, "properties": {"gc.tables.count": "3"}}})
    two.call("create_namespace", id=["g", "deep"], properties={"gc.tables.age": "off", "gc.tables.count": "5"})
    deep = two.make_table("g", "deep", "v")
    for start in range(3, 10):
        two.write(deep, rows(start, start + 1))
    days_pass(two, 3)
    collect(two, TWO_DAYS)
    assert (versions(two, T), versions(two, U), versions(two, deep)) == ([4, 5, 6], [6], [4, 5, 6, 7, 8])
    two.batch({"set_table_properties": {"id": U, "properties": {"gc.tables.age": "off"}}})
    two.write(U, rows(8, 9))
    days_pass(two, 3)
    collect(two)
    assert versions(two, U) == [6, 7]


def test_a_namespace_counts_before_the_one_above_it(ground: Ground) -> None:
    for number, path in enumerate((["a"], ["a", "b"]), 2):
        ground.call("create_namespace", id=path, properties={"gc.tables.count": str(number)})
    ground.call("declare_table", id=["a", "b", "t"])
    kept = kept_of(ground.catalog.snapshot(), ("a", "b", "t"), None, None)
    assert kept == Kept(timedelta(hours=1), 3)


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"gc.tables.age": "1s"}, "at least 1h"),
        ({"gc.tables.count": "0"}, "at least 1"),
        ({"gc.dropped.window": "off"}, "expected a duration"),
        ({"gc.catalog.age": "1d"}, "expected one of"),
    ],
)
def test_properties_are_checked_when_they_are_set(two: Ground, properties: dict[str, str], said: str) -> None:
    requests: list[tuple[str, dict[str, Any]]] = [
        ("create_namespace", {"id": ["n"], "properties": properties}),
        ("declare_table", {"id": ["g", "n"], "properties": properties}),
    ]
    for operation, request in requests:
        with pytest.raises(InvalidInputError, match=said):
            two.call(operation, **request)
    for field in ("properties", "updates"):
        with pytest.raises(InvalidInputError, match=said):
            two.batch({"set_table_properties": {"id": T, field: properties}})


def test_a_wrong_property_keeps_all_and_is_told(two: Ground) -> None:
    """Another program wrote it into the row."""

    def spoil(snapshot: CatalogSnapshot) -> Changes:
        table = snapshot.table(tuple(T))
        assert table is not None
        return changes_of([replace(table, properties={"gc.tables.age": "soon"})])

    two.catalog.committer.commit_changes(spoil)
    days_pass(two, 3)
    report = collect(two, TWO_DAYS)
    assert "property gc.tables.age: soon" in report.not_judged[two.location(T)]
    assert (versions(two, T), versions(two, U)) == ([1, 2, 3, 4, 5, 6], [6])


def test_what_a_tag_names_or_a_branch_began_from_stays(two: Ground) -> None:
    two.namespace.change("create_table_tag", {"id": T, "tag": "kept", "version": 2})
    two.call("create_table_branch", id=T, name="b", from_version=4)
    days_pass(two, 3)
    assert collect(two, TWO_DAYS).expired == 3 + 5
    assert versions(two, T) == [2, 4, 6]
    forget_history(two)
    let_pass(two)
    collect(two)
    whole(two, T, 2, 4, 6)
    assert two.open(T).checkout_version(("b", None)).to_table().num_rows == 6


def test_what_a_branch_began_from_that_the_catalog_does_not_know_stays(two: Ground) -> None:
    two.open(T).create_branch("b", 4)  # by stock pylance
    days_pass(two, 3)
    collect(two, TWO_DAYS)
    assert versions(two, T) == [4, 6]


def test_a_table_with_an_unreadable_reference_keeps_all_and_no_other_table_does(two: Ground) -> None:
    tag = two.root / two.location(T) / "_refs/tags/x.json"
    tag.parent.mkdir(parents=True)
    tag.write_text("{")
    days_pass(two, 3)
    assert "versions of g$t" in collect(two, TWO_DAYS).not_judged[two.location(T)]
    assert (versions(two, T), versions(two, U)) == ([1, 2, 3, 4, 5, 6], [6])


def test_branches_have_versions_of_their_own(two: Ground) -> None:
    two.call("create_table_branch", id=T, name="b", from_version=4)
    branch = two.open(T).checkout_version(("b", None))
    for start in (50, 51, 52):
        branch = lance.write_dataset(rows(start, start + 1), branch, mode="append")
        two.read("list_table_versions", id=T, branch="b")
    days_pass(two, 3)
    before = versions(two, T, "b")
    collect(two, TWO_DAYS)
    assert versions(two, T, "b") == [before[0], before[-1]]  # the first is the number that the branch began from
    assert two.open(T).checkout_version(("b", None)).to_table().num_rows == 9


def test_a_branch_that_is_made_meanwhile_keeps_its_version(two: Ground) -> None:
    """References were read before it was there."""
    days_pass(two, 3)
    store = FaultStore(LocalStore(two.root, "none"))
    made: list[str] = []

    def make(verb: str, path: str) -> None:
        if verb == "put_if_absent" and path.startswith("__manifest/_versions/") and not made:
            made.append(path)
            two.again().call("create_table_branch", id=T, name="b", from_version=2)

    store.before(make)
    assert collect(two.again(store), TWO_DAYS).expired == 5
    assert (versions(two, T), versions(two, U)) == ([1, 2, 3, 4, 5, 6], [6])
    assert collect(two.again()).expired == 4
    assert versions(two, T) == [2, 6]


@pytest.mark.parametrize("change", ["none", "the branch is made again", "a job reads it", "only the head"])
def test_rows_that_were_found_are_compared_with_those_of_the_flip(two: Ground, change: str) -> None:
    def make() -> None:
        two.call("create_table_branch", id=T, name="b", from_version=4)
        for _ in range(3):
            lance.write_dataset(rows(50, 51), two.open(T).checkout_version(("b", None)), mode="append")
        two.read("list_table_versions", id=T, branch="b")
        two.catalog.sweep()

    make()
    days_pass(two, 3)
    settings, now = GcSettings(tables_age=timedelta(days=2)), datetime.now(UTC)
    found = find_superseded(two.store, two.catalog.snapshot(), settings, now)
    assert found.total == 4 + 2 + 5
    match change:
        case "the branch is made again":
            two.namespace.change("delete_table_branch", {"id": T, "name": "b"})
            two.catalog.sweep()
            make()
        case "a job reads it":
            tables = [{"id": T, "branch": "b", "read_version": 6}, {"id": T, "read_version": 3}]
            two.call("register_intent", intent_id=JOB, tables=tables, seconds=3_600)
        case "only the head":
            head = two.catalog.snapshot().head(tuple(T), None)
            assert head is not None
            found = Superseded({tuple(T): ((head,), frozenset({"b"}))})
    gone = found.expire(two.catalog.committer.commit_changes)
    expected = {"none": 11, "the branch is made again": 9, "a job reads it": 8, "only the head": 0}[change]
    records = [each for each in two.catalog.snapshot().records() if each.state == "expiring"]
    assert (gone.total, len(records)) == (expected, int(expected > 0))
    assert two.head(T) == 6


@pytest.mark.parametrize("lost", ["its catalog version", "its table"])
def test_a_record_of_rows_that_cannot_come_back_ends(tagged: Ground, lost: str) -> None:
    if lost == "its table":
        tagged.call("deregister_table", id=T)
    else:
        [record] = [each for each in tagged.again().catalog.snapshot().records() if each.state == "expiring"]
        forget_history(tagged.again())
        (tagged.root / "__manifest/_versions" / manifest_name(record.catalog_version)).unlink()
    collect(tagged.again(), {"gc.tables.age": "off"})
    assert not [each for each in tagged.again().catalog.snapshot().records() if each.state == "expiring"]


def test_a_version_in_an_open_record_stays(two: Ground) -> None:
    """Its staged name is there; the sweep has not looked whether the other one is durable."""
    for start in (8, 9):
        two.batch(two.transaction(T, rows(start, start + 1)))
    assert two.catalog.snapshot().open_records()
    let_pass(two, timedelta(days=3))
    date_rows_back(two, 3)
    collect(two, TWO_DAYS)
    assert versions(two, T) == [7, 8]
    two.again().catalog.sweep()
    two.catalog.flush_record_housekeeping()
    collect(two.again())
    assert versions(two, T) in ([8], [7, 8])  # once its record is closed
    whole(two, T, 8)


def test_the_store_dates_versions_not_the_rows(two: Ground) -> None:
    """A server whose clock was three days behind committed them just now."""
    date_rows_back(two, 3)
    assert collect(two, TWO_DAYS).expired == 0
    assert versions(two, T) == [1, 2, 3, 4, 5, 6]


def test_a_version_is_as_old_as_the_one_that_superseded_it(two: Ground) -> None:
    """By the store; the rows say three days for both."""
    days_pass(two, 2.5)
    two.write(T, rows(8, 9))
    two.catalog.sweep()
    date_rows_back(two, 3)
    collect(two, TWO_DAYS)
    assert versions(two, T) == [6, 7]


def test_a_version_stays_of_which_the_store_does_not_say_when_it_was_superseded(two: Ground) -> None:
    """Another program removed the manifest after it."""
    days_pass(two, 3)
    (two.root / two.location(T) / "_versions" / manifest_name(4)).unlink()
    collect(two, TWO_DAYS)
    assert versions(two, T) == [3, 6]


@pytest.mark.parametrize("moment", ["look", "flip", "swept"])
def test_a_version_that_is_tagged_meanwhile_stays(two: Ground, moment: str) -> None:
    """A tagger has seen the version, and writes its tag before or after the row went."""
    days_pass(two, 3)
    location = two.location(T)
    store = FaultStore(LocalStore(two.root, "none"))
    tags = Tags(LocalStore(two.root, "none"), location)
    looked: list[str] = []

    def tag(verb: str, path: str) -> None:
        if tags.list():
            return
        if verb == "list" and path.startswith(f"{location}/_refs"):
            looked.append(path)
        is_flip = verb == "put_if_absent" and path.startswith("__manifest/_versions/")
        is_plan = verb == "list" and path == "_staging/gc" and bool(looked)
        due = {"look": bool(looked), "flip": is_flip and bool(looked), "swept": is_plan}
        if due[moment] or (moment == "swept" and is_flip and bool(looked)):
            tags.create("kept", 3)

    store.before(tag)
    collect(two.again(store), TWO_DAYS)
    assert tags.list()
    assert versions(two, T) == [3, 6]
    forget_history(two)
    let_pass(two)
    collect(two)
    assert versions(two, T) == [3, 6]
    whole(two, T, 3, 6)


@pytest.fixture
def tagged(two: Ground) -> Ground:
    """A tag was made and answered while a run looked at references. The run died when the row had gone."""
    days_pass(two, 3)
    store = FaultStore(LocalStore(two.root, "none"))
    answers: list[Any] = []

    def tag_then_die(verb: str, path: str) -> None:
        if verb != "put_if_absent" or not path.startswith("__manifest/_versions/"):
            return
        if not answers:
            answers.append(two.again().namespace.change("create_table_tag", {"id": T, "tag": "kept", "version": 3}))
        elif 3 not in versions(two, T):
            raise Crashed

    store.before(tag_then_die)
    with pytest.raises(Crashed):
        collect(two.again(store), TWO_DAYS)
    assert answers
    assert versions(two, T) == [6]
    return two


def comes_back(ground: Ground, table: list[str]) -> None:
    report = collect(ground.again(), {"gc.tables.age": "off"})
    assert not report.not_judged
    forget_history(ground)
    let_pass(ground)
    collect(ground.again())
    assert versions(ground, table) == [3, 6]
    whole(ground, table, 3, 6)
    assert not [each for each in ground.again().catalog.snapshot().records() if each.state == "expiring"]


def test_the_next_run_brings_back_what_was_tagged_before_its_row_went(tagged: Ground) -> None:
    comes_back(tagged, T)


def test_it_comes_back_under_the_name_that_its_table_has_by_then(tagged: Ground) -> None:
    tagged.call("rename_table", id=T, new_table_name="renamed")
    comes_back(tagged, ["g", "renamed"])


def test_it_comes_back_when_its_table_does(tagged: Ground) -> None:
    tagged.call("drop_table", id=T)
    collect(tagged.again())
    snapshot = tagged.again().catalog.snapshot()
    store = LocalStore(tagged.root, "none")
    copy_versions(store, list_catalog_versions(store), needed_versions(snapshot))
    forget_history(tagged)
    collect(tagged.again())
    tagged.again().call("undrop_table", id=T)
    comes_back(tagged, T)


def test_where_references_cannot_be_read_all_rows_come_back(tagged: Ground) -> None:
    (tagged.root / tagged.location(T) / "_refs/tags/x.json").write_text("{")
    collect(tagged.again(), {"gc.tables.age": "off"})
    assert (versions(tagged, T), versions(tagged, U)) == ([1, 2, 3, 4, 5, 6], [6])


def test_what_another_run_put_back_and_was_deleted_since_stays_away(tagged: Ground) -> None:
    """This run has read the references before, and commits last."""
    held = tagged.again()

    def commit_late(plan: Callable[[CatalogSnapshot], Changes]) -> CatalogSnapshot:
        collect(tagged.again(), {"gc.tables.age": "off"})
        assert versions(tagged, T) == [3, 6]
        tagged.namespace.change("delete_table_tag", {"id": T, "tag": "kept"})
        tagged.call("batch_delete_table_versions", id=T, ranges=[{"start_version": 3, "end_version": 4}])
        return held.catalog.committer.commit_changes(plan)

    put_back_named(held.store, held.catalog.snapshot(), held.catalog.table.kept, commit_late)
    assert versions(tagged, T) == [6]


def test_what_nothing_names_stays_away(tagged: Ground) -> None:
    tagged.namespace.change("delete_table_tag", {"id": T, "tag": "kept"})
    collect(tagged.again(), {"gc.tables.age": "off"})
    assert versions(tagged, T) == versions(tagged, U) == [6]


@pytest.mark.parametrize("again", [None, 2, 4])
def test_no_row_comes_back_to_a_branch_that_was_deleted(two: Ground, again: int | None) -> None:
    """It may have been made again, at an earlier version or with other versions of the same numbers."""

    def make(version: int, appends: int = 1) -> None:
        two.call("create_table_branch", id=T, name="b", from_version=version)
        for _ in range(appends):
            lance.write_dataset(rows(50, 51), two.open(T).checkout_version(("b", None)), mode="append")
        two.read("list_table_versions", id=T, branch="b")
        two.catalog.sweep()

    make(4)
    before = two.catalog.snapshot()
    party = Participant(tuple(T), "b", 5, two.location(T), None)
    two.namespace.change("delete_table_branch", {"id": T, "name": "b"})
    two.catalog.sweep()
    if again is not None:
        make(again, again // 2)
    expiring = RecordEntry(JOB, "expiring", participants=(party,), catalog_version=before.version)
    two.catalog.committer.commit_changes(lambda _: changes_of([expiring]))
    expected = [row.identity for row in two.catalog.snapshot().versions(tuple(T), "b")]
    tag = two.root / two.location(T) / "_refs/tags/x.json"
    tag.parent.mkdir(parents=True)
    tag.write_text("{")  # so that all rows come back
    collect(two)
    after = two.again().catalog.snapshot()
    assert after.record(JOB) is None
    assert [row.identity for row in after.versions(tuple(T), "b")] == expected
    assert list(after.branches(tuple(T))) == ([] if again is None else ["b"])


def test_a_run_dies_while_rows_come_back(tagged: Ground, tmp_path: Path) -> None:
    for number in range(4):
        for fault in (Fault.CRASH_BEFORE, Fault.CRASH_AFTER):
            root = tmp_path / f"{number}-{fault.name}"
            shutil.copytree(tagged.root, root)
            store = FaultStore(LocalStore(root, "none"))
            store.fail(fault, nth=number)
            with pytest.raises(Crashed):
                collect(Ground(root, store))
            comes_back(Ground(root), T)


def test_what_a_job_reads_stays(two: Ground) -> None:
    two.call(
        "register_intent",
        intent_id=JOB,
        tables=[{"id": T, "read_version": 4}],
        seconds=3_600,
    )
    days_pass(two, 3)
    assert Collector(two.again().catalog).estimate(TWO_DAYS).expired == 3 + 5
    collect(two, TWO_DAYS)
    assert (versions(two, T), versions(two, U)) == ([4, 5, 6], [6])


@pytest.mark.parametrize("gone", ["row", "manifest"])
def test_a_transaction_over_a_version_that_went_is_refused(two: Ground, gone: str) -> None:
    """Its conflicts cannot be told any more (P8, G18)."""
    late = two.transaction(T, rows(100, 101), read_version=2)
    if gone == "row":
        days_pass(two, 3)
        collect(two, TWO_DAYS)
    else:  # another program removed it
        (two.root / two.location(T) / "_versions" / manifest_name(4)).unlink()
    with pytest.raises(ConcurrentModificationError, match="is no longer readable; redo the operation"):
        two.again().batch(late)
    assert two.ids(T) == list(range(8))


@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER])
def test_a_run_dies_at_each_of_its_first_writes(two: Ground, tmp_path: Path, fault: Fault) -> None:
    days_pass(two, 3)
    for number in range(6):
        root = tmp_path / f"{number}"
        shutil.copytree(two.root, root)
        store = FaultStore(LocalStore(root, "none"))
        store.fail(fault, nth=number)
        with pytest.raises(Crashed):
            collect(Ground(root, store), TWO_DAYS)
        report: GcReport = collect(Ground(root), TWO_DAYS)
        assert not report.not_judged
        ground = Ground(root)
        assert versions(ground, T) == versions(ground, U) == [6]
        whole(ground, T, 6)


def test_a_dropped_table_stays_as_long_as_its_property_says(two: Ground) -> None:
    two.batch({"set_table_properties": {"id": T, "properties": {"gc.dropped.window": "30d"}}})
    for table in (T, U):
        two.call("drop_table", id=table)
    let_pass(two, timedelta(days=8))
    assert len(collect(two).purged) == 1
    two.again().call("undrop_table", id=T)
    assert two.again().ids(T) == list(range(8))
    two.call("drop_table", id=T)
    let_pass(two, timedelta(days=31))
    assert len(collect(two.again()).purged) == 1
