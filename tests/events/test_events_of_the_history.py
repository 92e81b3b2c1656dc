"""Each catalog version as one event, made of its own files: by any process, at any time, the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from lance.namespace import DirectoryNamespace as StockNamespace
from lance_namespace import CreateNamespaceRequest
from lance_namespace.errors import InvalidInputError

from namespace_server.directory.committing.group_planner import GroupAttempt
from namespace_server.directory.model.errors import HistoryGone
from namespace_server.directory.model.history import MOST_OPERATIONS, NO_OUTLINE
from tests.directory.gc.collecting import collect, let_pass
from tests.directory.tables import Ground, rows

TABLE = ["g", "t"]


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    found = Ground(tmp_path / "root")
    found.make_namespace("g")
    return found


def events(ground: Ground, since: int = 0, **request: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ground.read("list_catalog_events", since=since, **request)["events"]
    return found


def newest(ground: Ground) -> dict[str, Any]:
    version = ground.catalog.snapshot().version
    [event] = events(ground, version - 1)
    data: dict[str, Any] = event["data"]
    assert data["catalog_version"] == version
    return data


def test_each_version_is_one_cloud_event_in_order_and_the_same_from_every_process(ground: Ground) -> None:
    ground.make_table(*TABLE)
    ground.write(TABLE, rows(3, 6))
    ground.catalog.sweep()

    found = events(ground)

    version = ground.catalog.snapshot().version
    assert [event["data"]["catalog_version"] for event in found] == list(range(1, version + 1))
    assert orjson.dumps(found) == orjson.dumps(events(ground.again()))
    assert len({event["id"] for event in found}) == version
    assert {event["source"] for event in found} == {f"urn:uuid:{found[0]['id'].partition('/')[0]}"}
    assert [event["sequence"] for event in found] == sorted(event["sequence"] for event in found)
    assert {event["specversion"] for event in found} == {"1.0"}
    assert all(event["time"].endswith("Z") and event["type"].endswith(event["data"]["kind"]) for event in found)


def test_the_bytes_of_an_event_do_not_change_when_records_and_rows_are_gone(ground: Ground) -> None:
    ground.make_table(*TABLE)
    before = [orjson.dumps(event) for event in events(ground)]
    ground.call("drop_table", id=TABLE)
    let_pass(ground)
    collect(ground)
    for record in list(ground.catalog.snapshot().records()):
        ground.catalog.record_housekeeping.remove([record])
    ground.catalog.flush_record_housekeeping()

    assert [orjson.dumps(event) for event in events(ground.again())][: len(before)] == before


def test_tables_are_told_with_their_versions_and_rows(ground: Ground) -> None:
    ground.make_table(*TABLE)
    assert newest(ground)["tables"] == [{"id": TABLE, "rows": 3, "after": 1}]
    ground.write(TABLE, rows(3, 5))
    assert newest(ground)["tables"] == [{"id": TABLE, "before": 1, "rows": 2, "after": 2}]
    ground.batch(ground.transaction(TABLE, rows(5, 9)))
    assert newest(ground)["tables"] == [{"id": TABLE, "before": 2, "rows": 4, "after": 3}]
    ground.write(TABLE, rows(0, 1), "overwrite")
    assert newest(ground)["tables"] == [{"id": TABLE, "before": 3, "rows": -8, "after": 4}]
    ground.call("create_table_branch", id=TABLE, name="dev")
    assert newest(ground)["tables"] == [{"id": TABLE, "branch": "dev", "after": 4}]
    ground.call("drop_table", id=TABLE)
    assert newest(ground)["tables"] == [{"id": TABLE, "before": 4, "dropped": True}]


def test_batches_of_one_version_are_told_apart_and_their_versions_of_a_table_together(ground: Ground) -> None:
    ground.make_table(*TABLE)
    operations = [ground.transaction(TABLE, rows(10 * n, 10 * n + n)) for n in (1, 2)]
    calls = [
        ground.namespace.prepare(
            "batch_commit_tables", {"operations": [each], "context": {"message": name}}, principal=name
        )
        for each, name in zip(operations, ("ada", "bob"), strict=True)
    ]
    ground.namespace.commit_calls(calls)

    data = newest(ground)

    assert [(each["principal"], each["message"]) for each in data["batches"]] == [("ada", "ada"), ("bob", "bob")]
    assert data["tables"] == [{"id": TABLE, "before": 1, "rows": 3, "after": 3}]


def test_kinds_of_versions(ground: Ground) -> None:
    ground.make_table(*TABLE)
    assert newest(ground)["kind"] == "committed"
    ground.catalog.sweep()
    assert newest(ground)["kind"] == "housekeeping"
    ground.unmanaged_append(TABLE, rows(3, 5))
    ground.read("list_table_versions", id=TABLE)
    data = newest(ground)
    assert data["kind"] == "adopted"
    assert data["tables"] == [{"id": TABLE, "before": 1, "after": 2}]
    ground.call("advance_cursor", name="c", version=1)
    assert newest(ground)["kind"] == "cursors"
    both = {"advance_cursor": {"name": "c", "version": 2}, "create_namespace": {"id": ["h"]}}
    ground.namespace.commit_calls([ground.namespace.prepare(operation, request) for operation, request in both.items()])
    assert newest(ground)["kind"] == "committed"


def test_versions_of_stock_clients_are_events_too(tmp_path: Path) -> None:
    stock = StockNamespace(root=str(tmp_path / "stock"), dir_listing_enabled="false")
    stock.create_namespace(CreateNamespaceRequest(id=["g"]))
    ground = Ground(tmp_path / "stock")
    before = events(ground)
    assert before
    assert {event["data"]["kind"] for event in before} == {"unmanaged"}
    ground.namespace.adopt()
    found = events(ground)
    assert found[: len(before)] == before
    assert [event["data"]["kind"] for event in found[len(before) :]] == ["housekeeping"]


def test_a_batch_of_an_earlier_release_is_told_by_the_record_in_its_own_version(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(GroupAttempt, "outline", lambda _attempt: NO_OUTLINE)
        ground.make_table(*TABLE)
    [batch] = newest(ground)["batches"]
    assert batch["operations"] == [{"operation": "create_table_version", "id": TABLE, "version": 1}]


def test_pages_end_at_their_limit_and_at_a_megabyte(ground: Ground) -> None:
    page = ground.read("list_catalog_events", since=0, limit=1)
    assert (len(page["events"]), page["last"], page["newest"]) == (1, 1, 1)
    names = [f"{n:03d}".ljust(128, "x") for n in range(MOST_OPERATIONS)]
    for _ in range(50):
        pins = [{"pin_catalog_version": {"name": name, "version": 1}} for name in names]
        ground.batch(*pins)
    page = ground.read("list_catalog_events", since=1)
    assert 1 < len(page["events"]) < 50
    assert len(orjson.dumps(page["events"])) < 2 << 20
    assert ground.read("list_catalog_events", since=page["last"])["events"]


def test_without_since_only_the_newest_version_is_told(ground: Ground) -> None:
    assert ground.read("list_catalog_events") == {"events": [], "last": 1, "newest": 1}


def test_a_version_in_the_future_is_refused(ground: Ground) -> None:
    with pytest.raises(InvalidInputError, match="from 0 to 1, found 2"):
        events(ground, 2)
    with pytest.raises(InvalidInputError, match="found -1"):
        events(ground, -1)


def test_what_is_not_kept_is_gone_and_not_left_out(ground: Ground) -> None:
    for number in range(130):
        ground.make_namespace(f"n{number}")
    let_pass(ground)
    oldest = collect(ground).oldest
    assert oldest > 1
    with pytest.raises(HistoryGone, match=f"expected {oldest - 1} or later") as gone:
        events(ground, oldest - 2)
    assert gone.value.status == 410
    assert "POST /v1/catalog/pins" in str(gone.value)
    assert events(ground, oldest - 1)[0]["data"]["catalog_version"] == oldest
    newer = ground.again()
    assert events(newer, newer.catalog.snapshot().version) == []


def test_a_version_that_another_server_removed_meanwhile_ends_the_page_before_it(ground: Ground) -> None:
    for number in range(5):
        ground.make_namespace(f"n{number}")
    version = ground.catalog.snapshot().version
    [path] = [each for each in ground.root.glob("__manifest/_versions/*") if _number(each) == version - 2]
    path.unlink()
    assert [event["data"]["catalog_version"] for event in events(ground)] == list(range(1, version - 3))
    with pytest.raises(HistoryGone):
        events(ground, version - 3)


def test_a_file_that_is_not_the_version_of_the_history_is_not_told(ground: Ground) -> None:
    for number in range(4):
        ground.make_namespace(f"n{number}")
    files = {_number(each): each for each in ground.root.glob("__manifest/_versions/*")}
    other = Ground(ground.root.parent / "other")
    for number in range(5):
        other.make_namespace(f"m{number}")
    [foreign] = [each for each in other.root.glob("__manifest/_versions/*") if _number(each) == 3]
    files[3].write_bytes(foreign.read_bytes())
    # The other file is told no more than the version before it, whose successor it claims to be.
    assert [event["data"]["catalog_version"] for event in events(ground)] == [1]


def _number(path: Path) -> int:
    return 2**64 - 1 - int(path.name.removesuffix(".manifest"))
