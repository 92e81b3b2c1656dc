"""The log of a catalog, differences of its versions, what one version did, and the health of a server."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from lance.namespace import DirectoryNamespace as StockNamespace
from lance_namespace import CreateNamespaceRequest, DeclareTableRequest

from namespace_client import Catalog, CatalogDiff, CatalogOverview, EventsGone, InvalidCall, NotFound
from namespace_client.health import Garbage, read_health, seconds
from tests.client.scene import Scene
from tests.directory.gc.collecting import collect, let_pass
from tests.directory.gc.test_collect_history import flips
from tests.directory.tables import Ground

over_http = pytest.mark.parametrize("scene", ["http"], indirect=True)


def head(scene: Scene) -> int:
    return scene.catalog.access.state().version


@pytest.fixture
def start(scene: Scene) -> int:
    """The catalog version before three batches on two tables of the scene."""
    found = head(scene)
    with scene.catalog.begin(message="both") as tx:
        tx.create("a", pa.table({"id": [1, 2], "gone": ["x", "y"]}))
        tx.create("b", pa.table({"id": [1]}))
    with scene.catalog.begin(message="more\nof a") as tx:
        tx.append("a", pa.table({"id": [3], "gone": ["z"]}))
    with scene.catalog.begin() as tx:
        tx.delete("a", "id = 1")
    return found


def test_the_log_has_a_line_for_each_batch_newest_first(scene: Scene, start: int) -> None:
    log = [each for each in scene.catalog.log(20) if each.version > start]
    assert [each.message for each in log] == ["", "more\nof a", "both"]
    assert [(each.added, each.removed) for each in log] == [(0, -1), (1, 0), (3, 0)]
    assert [[str(name) for name in each.tables] for each in log] == [
        [f"{scene.namespace}.a"],
        [f"{scene.namespace}.a"],
        [f"{scene.namespace}.a", f"{scene.namespace}.b"],
    ]
    assert log[0].operations == ("Delete",)
    assert {each.kind for each in log} == {"batch"}
    text = repr(scene.catalog.log(3)).splitlines()
    assert text[0].split() == ["version", "time", "by", "message", "tables", "rows"]
    assert "more\\x0aof a" in text[2]
    assert text[2].endswith("+1")
    assert "<td" in scene.catalog.log(1)._repr_html_()


def test_the_log_goes_on_where_a_page_ends_and_is_filtered(scene: Scene, start: int) -> None:
    first = scene.catalog.log(1)
    assert first.below == first[0].version
    second = scene.catalog.log(1, below=first.below)
    assert [each.message for each in second] == ["more\nof a"]
    of_b = scene.catalog.log(table="b")
    assert [each.message for each in of_b] == ["both"]
    assert of_b.below is None
    cut = scene.catalog.log(table="b", within=1)
    assert (list(cut), cut.below, cut.searched) == ([], cut.searched, cut.below)
    assert cut.below is not None
    assert [each.message for each in scene.catalog.log(table="b", below=cut.below)] == ["both"]
    assert list(scene.catalog.log(principal="nobody")) == []
    now = datetime.now(UTC) + timedelta(minutes=1)
    assert list(scene.catalog.log(since=now)) == []
    assert scene.catalog.log(3, until=now, since=now - timedelta(hours=1))[0].message == ""
    assert list(scene.catalog.log(until=now - timedelta(days=900))) == []
    assert list(scene.catalog.log(0)) == []
    with pytest.raises(InvalidCall):
        scene.catalog.log(-1)


def test_a_diff_tells_tables_versions_rows_and_columns(scene: Scene, start: int) -> None:
    made = head(scene)
    added = {str(each.name): each for each in scene.catalog.diff(start, made).tables}
    assert {name: (each.kind, each.before, each.after, each.rows) for name, each in added.items()} == {
        f"{scene.namespace}.a": ("added", None, 3, 2),
        f"{scene.namespace}.b": ("added", None, 1, 1),
    }
    scene.catalog.drop("b")
    scene.catalog.rename("a", "c")
    with scene.catalog.begin() as tx:
        tx.drop_columns("c", ["gone"])
        tx.add_columns("c", {"new": "id * 2"})
    scene.catalog.create("b", pa.table({"other": [1, 2]}))
    diff = scene.catalog.diff(made, head(scene))
    by_kind = {each.kind: each for each in diff.tables}
    assert sorted(each.kind for each in diff.tables) == ["added", "dropped", "renamed"]
    renamed = by_kind["renamed"]
    assert (str(renamed.old_name), str(renamed.name)) == (f"{scene.namespace}.a", f"{scene.namespace}.c")
    assert {each.name: (each.before, each.after) for each in renamed.columns} == {
        "gone": ("utf8", None),
        "new": (None, "int64"),
    }
    assert str(by_kind["dropped"].name) == str(by_kind["added"].name) == f"{scene.namespace}.b"
    assert "renamed" in repr(diff)
    assert "renamed" in diff._repr_html_()
    assert scene.catalog.diff(made, made).tables == ()


def test_a_diff_comes_in_pages_and_is_bounded(scene: Scene, start: int) -> None:
    made = head(scene)
    first = scene.catalog.diff(start, made, limit=1)
    assert ([str(each.name) for each in first.tables], first.next) == ([f"{scene.namespace}.a"], 1)
    second = scene.catalog.diff(start, made, limit=1, skip=1)
    assert ([str(each.name) for each in second.tables], second.next) == ([f"{scene.namespace}.b"], None)
    assert first.num_candidates == 2
    with pytest.raises(InvalidCall, match="an earlier version and a later one"):
        scene.catalog.diff(made, start)


def kinds(diff: CatalogDiff) -> dict[str, str]:
    return {each.name[-1]: each.kind for each in diff.tables}


@pytest.fixture
def past(local: Scene) -> tuple[int, int]:
    """Two catalog versions with all kinds of differences between."""
    catalog = local.catalog
    for name in ("goes", "moves", "stays", "grows"):
        catalog.create(name, pa.table({"id": [1, 2]}))
    before = head(local)
    catalog.drop("goes")
    catalog.rename("moves", "moved")
    catalog.create("came", pa.table({"id": [1]}))
    catalog.append("grows", pa.table({"id": [3]}))
    catalog.delete("grows", "id = 1")
    return before, head(local)


DIFFERENT = {"goes": "dropped", "moved": "renamed", "came": "added", "grows": "changed"}


def test_where_events_are_gone_the_lists_of_tables_tell_the_same(
    local: Scene, past: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = local.catalog.diff(*past)
    assert kinds(told) == DIFFERENT
    assert {each.name[-1]: each.rows for each in told.tables} == {"goes": -2, "moved": 0, "came": 1, "grows": 0}
    assert local.catalog.diff(*past, within=4) == told  # more versions than events are read for, and few tables
    with pytest.raises(InvalidCall, match="at most 3 catalog versions between them, found 5"):
        local.catalog.diff(*past, within=3)
    for name in ("more", "and more"):
        local.catalog.create(name, pa.table({"id": [1]}))
    later = head(local)
    for version in (*past, later):
        local.catalog.pin(f"kept-{version}", version)
    ground = Ground(Path(local.target))
    flips(ground, 120)
    let_pass(ground)
    collect(ground)
    with Catalog.connect(local.target, namespace=["ml"]) as catalog:
        with pytest.raises(EventsGone):
            list(catalog.events(since=past[0]))
        assert catalog.diff(*past) == told
        assert catalog.diff(*past, within=5) == told
        with pytest.raises(EventsGone):
            catalog.diff(past[1], later, within=5)
        assert set(kinds(catalog.diff(0, past[1])).values()) == {"added"}


def test_versions_of_writers_without_a_server_are_compared_by_the_lists(tmp_path: Path) -> None:
    stock = StockNamespace(root=str(tmp_path / "stock"), dir_listing_enabled="false")
    stock.create_namespace(CreateNamespaceRequest(id=["g"]))
    with Catalog.connect(str(tmp_path / "stock")) as catalog:
        before = catalog.access.state().version
        for name in ("a", "b"):
            stock.declare_table(DeclareTableRequest(id=["g", name]))
        after = catalog.access.state().version
        assert [event.kind for event in catalog.events(since=before)] == ["unmanaged"] * (after - before)
        whole = catalog.diff(before, after)
        assert (kinds(whole), whole.unknown) == ({"a": "added", "b": "added"}, ())
        cut = catalog.diff(before, after, within=after - before - 1) if after - before > 2 else None
        assert cut is None or cut.unknown


def test_tables_of_a_namespace_that_came_back_are_in_a_diff(scene: Scene, start: int) -> None:
    scene.catalog.create_namespace("inner")
    scene.catalog.create("inner.t", pa.table({"id": [1]}))
    scene.catalog.drop_namespace("inner", cascade=True)
    gone = head(scene)
    scene.catalog.undrop_namespace("inner")
    assert [(each.kind, str(each.name)) for each in scene.catalog.diff(gone, head(scene)).tables] == [
        ("added", f"{scene.namespace}.inner.t")
    ]


def test_rows_that_only_one_version_has(scene: Scene, start: int) -> None:
    made = head(scene)
    scene.catalog.append(
        "a", pa.table({"id": [9], "gone": [None]}, schema=pa.schema({"id": "int64", "gone": "string"}))
    )
    scene.catalog.delete("a", "id = 2")
    diff = scene.catalog.row_diff("a", made, head(scene))
    assert [[str(cell) for cell in row.cells] for row in diff.removed] == [["2", "y"]]
    assert [str(row.cells[0]) for row in diff.added] == ["9"]
    assert (diff.num_before, diff.num_after, diff.num_removed, diff.num_added) == (2, 2, 1, 1)
    assert repr(diff).splitlines()[1].split() == ["-", "2", "y"]
    with pytest.raises(NotFound):
        scene.catalog.row_diff("a", start, made)


def test_an_event_is_what_one_version_did(scene: Scene, start: int) -> None:
    event = scene.catalog.event(start + 1)
    assert [batch.message for batch in event.batches] == ["both"]
    assert {(str(each.name), each.before, each.after, each.rows) for each in event.tables} == {
        (f"{scene.namespace}.a", None, 1, 2),
        (f"{scene.namespace}.b", None, 1, 1),
    }
    assert scene.catalog.maker("a", 2) == start + 2
    assert scene.catalog.maker("a", 77) is None
    with pytest.raises(NotFound):
        scene.catalog.event(0)


EXPOSITION = """
lance_namespace_batch_seconds_bucket{le="0.01",outcome="committed"} 98.0
lance_namespace_batch_seconds_bucket{le="0.1",outcome="committed"} 100.0
lance_namespace_batch_seconds_bucket{le="+Inf",outcome="committed"} 100.0
lance_namespace_batch_seconds_count{outcome="committed"} 100.0
lance_namespace_batch_seconds_count{outcome="unknown"} 2.0
lance_namespace_step_seconds_bucket{le="+Inf",step="flip"} 1.0
lance_namespace_catalog_entries{kind="namespace"} 3.0
lance_namespace_catalog_entries{kind="table"} 1e+06
lance_namespace_promotion_backlog 250.0
lance_namespace_snapshot_age_seconds 400.0
lance_namespace_background_runs_total{outcome="failed",task="gc"} 1.0
lance_namespace_collection_left_tables 4.0
lance_namespace_collected_files_total{reason="unreferenced"} 3.0
lance_namespace_collected_files_total{reason="dropped_table"} 1.0
lance_namespace_collected_files_total{reason="upload"} 0.0
lance_namespace_collected_bytes_total{reason="unreferenced"} 70.0
lance_namespace_collected_bytes_total{reason="dropped_table"} 2e+06
lance_namespace_collected_bytes_total{reason="upload"} 0.0
lance_namespace_collection_young_files 2.0
lance_namespace_collection_young_bytes 12000.0
lance_namespace_collection_end_timestamp_seconds 1000.0
lance_namespace_cursors{state="expired"} 1.0
lance_namespace_backup_timestamp_seconds 1000.0
lance_namespace_clock_ahead_seconds -90.0
lance_namespace_quarantined_files_total 1.0
lance_namespace_audit_lines_total{outcome="dropped"} 5.0
lance_namespace_read_only 1.0
"""


def test_health_is_read_from_metrics_with_a_warning_for_each_thing_that_wants_attention() -> None:
    health = read_health(EXPOSITION, now=1000.0 + 8 * 86_400)
    assert (health.namespaces, health.tables, health.backlog) == (3, 1_000_000, 250)
    assert (seconds(health.commit_median), seconds(health.commit_tail)) == ("< 10 ms", "< 100 ms")
    assert seconds(health.flip_median) == "very long"
    commands = {each.text.split(":")[0]: each.command for each in health.warnings}
    assert len(commands) == 11
    assert commands["The last backup began 8 days ago."] == "lance-namespace backup DESTINATION"
    assert (health.removed_files, health.removed_bytes) == (4, 2_000_070)
    assert health.removed == (Garbage("of dropped tables", 1, 2_000_000), Garbage("named by no manifest", 3, 70))
    assert re.search("too young to be removed +2 files, 12.0 kB", repr(health))
    assert "warning" in repr(health)
    quiet = read_health("")
    assert (quiet.removed, quiet.collected) == ((), None)
    assert (quiet.warnings, quiet.commit_median, seconds(None)) == ((), None, "")


@over_http
def test_a_server_tells_its_health(scene: Scene, start: int) -> None:
    health = scene.catalog.health()
    assert health.tables >= 2
    assert health.batches["committed"] >= 3
    assert health.flip_median is not None
    assert "promotion backlog" in repr(health)


def test_figures_are_what_is_in_the_catalog(scene: Scene, start: int) -> None:
    figures = scene.catalog.figures()
    assert (figures.catalog_version, figures.is_whole) == (head(scene), True)
    names = scene.catalog.tables((), recursive=True)
    assert figures.tables == len(names)
    assert figures.rows == sum(scene.catalog.show(name).rows or 0 for name in names)
    assert re.search(rf"rows +{figures.rows:,}\n", repr(figures))
    assert "known tables" not in repr(figures)


def test_figures_warn_of_what_wants_work() -> None:
    told = dict.fromkeys(CatalogOverview.__slots__, 0)
    quiet = CatalogOverview.of({**told, "versions_beyond_policy": 100, "worth_maintenance": []})
    assert quiet.warnings == ()
    work = [{"id": ["a", "t"], "num_fragments": 5, "num_indices": 1}]
    counts = {"tables": 9, "known_tables": 3, "versions_beyond_policy": 1_234, "num_worth_maintenance": 1}
    figures = CatalogOverview.of({**told, **counts, "worth_maintenance": work})
    assert [each.command for each in figures.warnings] == ["lance-namespace gc", "lance-namespace maintain"]
    assert "1,234 versions of tables" in figures.warnings[0].text
    for shown in ("a.t: 5 fragments to rewrite, 1 index to extend", "known tables", "1 table is worth maintenance"):
        assert shown in repr(figures)


@pytest.mark.parametrize("scene", ["in process"], indirect=True)
def test_a_catalog_in_this_process_has_no_health(scene: Scene) -> None:
    with pytest.raises(InvalidCall, match="expected a server"):
        scene.catalog.health()
