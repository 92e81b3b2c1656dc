"""What the history of the catalog tells of each version."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lance.namespace import DirectoryNamespace as StockNamespace
from lance_namespace import CreateNamespaceRequest

from namespace_server.directory.committing.group_planner import GroupAttempt
from namespace_server.directory.model.history import MOST_OPERATIONS, NO_OUTLINE
from tests.directory.tables import Ground, rows

TABLE = ["g", "t"]


def newest(ground: Ground, count: int = 1) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ground.read("list_catalog_versions", limit=count)["versions"]
    return found


def test_a_batch_tells_its_operations_in_order_and_its_principal(ground: Ground) -> None:
    ground.make_table("g", "t")
    request = {
        "operations": [
            {"declare_table": {"id": ["g", "d"]}},
            {"assert_table_version": {"id": TABLE, "version": 1}},
            {"deregister_table": {"id": TABLE}},
        ]
    }
    [_] = ground.namespace.commit_calls([ground.namespace.prepare("batch_commit_tables", request, principal="ada")])

    [version] = newest(ground)

    [batch] = version["batches"]
    assert batch["principal"] == "ada"
    assert batch["num_operations"] == 2
    assert batch["operations"] == [
        {"operation": "declare_table", "id": ["g", "d"]},
        {"operation": "deregister_table", "id": TABLE},
    ]
    assert "unmanaged" not in version
    assert "adopted" not in version


def test_a_version_of_a_table_is_told_with_its_number_and_the_kind_of_change(ground: Ground) -> None:
    ground.make_table("g", "t")
    ground.write(TABLE, rows(3, 5))

    [version] = newest(ground)

    [batch] = version["batches"]
    assert batch["operations"] == [
        {"operation": "create_table_version", "id": TABLE, "version": 2, "change": "Append", "rows": 2}
    ]


def test_a_rename_tells_both_names(ground: Ground) -> None:
    ground.make_table("g", "t")
    ground.call("rename_table", id=TABLE, new_table_name="u")

    [batch] = newest(ground)[0]["batches"]

    assert batch["operations"] == [{"operation": "rename_table", "id": TABLE, "new_id": ["g", "u"]}]


def test_of_many_operations_the_first_are_told_and_all_are_counted(ground: Ground) -> None:
    names = [f"d{n}" for n in range(MOST_OPERATIONS + 5)]
    ground.namespace.write(
        "batch_commit_tables", {"operations": [{"declare_table": {"id": ["g", name]}} for name in names]}
    )

    [batch] = newest(ground)[0]["batches"]

    assert batch["num_operations"] == MOST_OPERATIONS + 5
    assert [each["id"][1] for each in batch["operations"]] == names[:MOST_OPERATIONS]


def test_batches_of_one_group_are_told_apart(ground: Ground) -> None:
    calls = [ground.namespace.prepare("create_namespace", {"id": [name]}, principal=name) for name in ("x", "y")]
    ground.namespace.commit_calls(calls)

    [version] = newest(ground)

    assert [(each["principal"], each["operations"][0]["id"]) for each in version["batches"]] == [
        ("x", ["x"]),
        ("y", ["y"]),
    ]


def test_versions_of_another_writer_that_the_catalog_took_in_are_told(ground: Ground) -> None:
    ground.make_table("g", "t")
    ground.unmanaged_append(TABLE, rows(3, 5))

    ground.read("list_table_versions", id=TABLE)

    [version] = newest(ground)
    assert version["adopted"] == [{"id": TABLE, "version": 2}]


def test_catalog_versions_of_stock_clients_say_so(tmp_path: Path) -> None:
    stock = StockNamespace(root=str(tmp_path / "root"), dir_listing_enabled="false")
    stock.create_namespace(CreateNamespaceRequest(id=["g"]))
    ground = Ground(tmp_path / "root")
    ground.namespace.adopt()

    adopted, *others = newest(ground, 10)

    assert "unmanaged" not in adopted
    assert others
    assert all(version["unmanaged"] for version in others)


def test_a_version_of_an_earlier_release_tells_what_its_record_holds(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(GroupAttempt, "outline", lambda _attempt: NO_OUTLINE)
        ground.make_table("g", "t")

    [batch] = newest(ground)[0]["batches"]

    assert batch["operations"] == [{"operation": "create_table_version", "id": TABLE, "version": 1}]
