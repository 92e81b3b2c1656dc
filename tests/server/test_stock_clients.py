"""Stock pylance and lancedb, unchanged, on managed tables of the running server.

After everything that they do the version is in the catalog, the catalog holds what storage holds, and the table is
valid.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import lance
import lance_namespace as models
import pyarrow as pa
import pytest
from lance_namespace.errors import TableAlreadyExistsError, TableNotFoundError

from tests.server.servers import REPOSITORY, ServerProcess
from tests.server.stock import Stock, ids, rows


@pytest.fixture
def table(stock: Stock, ns: str) -> list[str]:
    """A table with ids 0 to 5 in two fragments, at version 2."""
    made = stock.make(ns, "t")
    stock.write(made, rows(3, 6))
    return made


def _upsert(dataset: lance.LanceDataset) -> None:
    merge = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(rows(5, 8, "m"))


CHANGES: dict[str, tuple[Callable[[lance.LanceDataset], object], int, list[int]]] = {
    "insert": (lambda dataset: dataset.insert(rows(6, 9)), 3, list(range(9))),
    "overwrite": (lambda dataset: dataset.insert(rows(7, 9), mode="overwrite"), 3, [7, 8]),
    "delete": (lambda dataset: dataset.delete("id % 2 = 0"), 3, [1, 3, 5]),
    "update": (lambda dataset: dataset.update({"id": "id + 10"}, where="id >= 4"), 3, [0, 1, 2, 3, 14, 15]),
    "merge_insert": (_upsert, 3, list(range(8))),
    "compact_files": (lambda dataset: dataset.optimize.compact_files(), 4, list(range(6))),
    "add_columns": (lambda dataset: dataset.add_columns({"twice": "id * 2"}), 3, list(range(6))),
    "alter_columns": (lambda dataset: dataset.alter_columns({"path": "name", "name": "label"}), 3, list(range(6))),
    "drop_columns": (lambda dataset: dataset.drop_columns(["name"]), 3, list(range(6))),
    "update_config": (lambda dataset: dataset.update_config({"lance.x": "1"}), 3, list(range(6))),
    "create_scalar_index": (lambda dataset: dataset.create_scalar_index("id", "BTREE"), 3, list(range(6))),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_an_open_dataset_is_in_the_catalog(stock: Stock, table: list[str], name: str) -> None:
    change, newest, expected = CHANGES[name]
    dataset = stock.open(table)

    change(dataset)

    assert dataset.version == newest
    stock.check(table, newest)
    assert stock.ids(table) == expected == ids(dataset)
    assert stock.ids(table, 2) == list(range(6))
    assert stock.open(table).count_rows() == len(expected)


def test_changes_of_one_handle_follow_each_other(stock: Stock, table: list[str]) -> None:
    dataset = stock.open(table)

    for change, _, _ in CHANGES.values():
        if change is not CHANGES["overwrite"][0] and change is not CHANGES["alter_columns"][0]:
            change(dataset)

    stock.check(table, dataset.version)
    assert dataset.version == 2 + len(CHANGES) - 2 + 1


def test_the_three_modes_of_writing(stock: Stock, ns: str) -> None:
    table = [ns, "t"]
    assert stock.write(table, rows(0, 3), "create").version == 1
    stock.check(table, 1)
    assert stock.write(table, rows(3, 5), "append").version == 2
    stock.check(table, 2)
    assert stock.write(table, pa.table({"other": [1.5]}), "overwrite").version == 3
    stock.check(table, 3)

    assert stock.open(table).schema.names == ["other"]
    with pytest.raises(TableAlreadyExistsError, match=ns):
        stock.write(table, rows(0, 1), "create")
    stock.check(table, 3)


def test_an_index_is_used(stock: Stock, table: list[str]) -> None:
    stock.open(table).create_scalar_index("id", "BTREE")

    dataset = stock.open(table)

    assert [index.name for index in dataset.describe_indices()] == ["id_idx"]
    assert "ScalarIndexQuery" in dataset.scanner(filter="id = 4").explain_plan()
    assert dataset.to_table(filter="id = 4")["name"].to_pylist() == ["n4"]


def test_versions_are_checked_out_and_restored(stock: Stock, table: list[str]) -> None:
    dataset = stock.open(table)
    dataset.delete("id = 0")

    assert [version["version"] for version in dataset.versions()] == [1, 2, 3]
    assert dataset.latest_version == 3
    first = dataset.checkout_version(1)
    assert (first.version, ids(first)) == (1, [0, 1, 2])
    with pytest.raises(ValueError, match="version 9"):
        stock.open(table, 9)

    first.restore()

    assert (first.version, stock.ids(table)) == (4, [0, 1, 2])
    stock.check(table, 4)
    first.insert(rows(3, 4))
    stock.check(table, 5)


def test_tags(stock: Stock, table: list[str]) -> None:
    dataset = stock.open(table)
    dataset.tags.create("one", 1)
    dataset.delete("true")

    assert stock.open(table).tags.list()["one"]["version"] == 1
    assert stock.ids(table, "one") == [0, 1, 2]
    assert ids(dataset.checkout_version("one")) == [0, 1, 2]
    dataset.tags.update("one", 2)
    assert stock.ids(table, "one") == list(range(6))
    dataset.tags.delete("one")
    assert stock.open(table).tags.list() == {}
    stock.check(table, 3)


def test_branches_have_chains_of_their_own(stock: Stock, table: list[str]) -> None:
    dataset = stock.open(table)
    branch = dataset.create_branch("dev")
    stock.check(table, 2, "dev")
    branch.insert(rows(10, 12))
    stock.check(table, 3, "dev")
    lance.write_dataset(rows(12, 13), branch, mode="append")
    stock.check(table, 4, "dev")
    dataset.insert(rows(20, 21))
    stock.check(table, 3)

    assert set(stock.open(table).branches.list()) == {"dev"}
    assert ids(stock.open(table, branch="dev")) == [*range(6), 10, 11, 12]
    assert ids(dataset.checkout_version(("dev", 3))) == [*range(6), 10, 11]
    assert stock.ids(table) == [*range(6), 20]

    stock.open(table, branch="dev").delete("id < 10")
    assert ids(stock.open(table, branch="dev")) == [10, 11, 12]
    stock.check(table, 5, "dev")
    stock.check(table, 3)


def test_branches_of_branches_and_of_older_versions(stock: Stock, table: list[str]) -> None:
    dataset = stock.open(table)
    dataset.tags.create("first", 1)
    branch = dataset.create_branch("dev/a")
    branch.insert(rows(10, 11))

    inner = branch.create_branch("dev/b", ("dev/a", 2))
    inner.insert(rows(30, 31))
    old = dataset.create_branch("old", 1)
    tagged = dataset.create_branch("tagged", "first")

    assert (old.version, ids(old)) == (1, [0, 1, 2])
    assert (tagged.version, ids(tagged)) == (1, [0, 1, 2])
    assert ids(stock.open(table, branch="dev/a")) == [*range(6), 10]
    assert ids(stock.open(table, branch="dev/b")) == [*range(6), 30]
    branches = stock.open(table).branches.list()
    assert {name: branch["parent_branch"] for name, branch in branches.items()} == {
        "dev/a": None,
        "dev/b": "dev/a",
        "old": None,
        "tagged": None,
    }
    for name, newest in {"dev/a": 3, "dev/b": 3, "old": 1, "tagged": 1}.items():
        stock.check(table, newest, name)
    stock.check(table, 2)


def test_a_deleted_branch_leaves_its_name_free(stock: Stock, server: ServerProcess, table: list[str]) -> None:
    dataset = stock.open(table)
    dataset.create_branch("dev").insert(rows(10, 11))
    dataset.branches.delete("dev")

    path = f"/v1/table/{'%24'.join(table)}/version/list?limit=1&descending=true&branch=dev"
    answer = server.call("POST", path, {})
    assert (answer.status, answer.code) == (404, 22), answer.body
    again = stock.open(table).create_branch("dev", 1)

    again.insert(rows(7, 8))
    assert ids(stock.open(table, branch="dev")) == [0, 1, 2, 7]
    stock.check(table, 2, "dev")


def test_tables_come_and_go(stock: Stock, ns: str) -> None:
    client = stock.client
    client.create_namespace(models.CreateNamespaceRequest(id=[ns, "inner"], properties={"owner": "me"}))
    declared = client.declare_table(models.DeclareTableRequest(id=[ns, "inner", "declared"]))
    assert declared.managed_versioning is True
    for name in ("b", "a"):
        stock.make(ns, "inner", name)

    listed = client.list_tables(models.ListTablesRequest(id=[ns, "inner"]))
    assert listed.tables == ["a", "b", "declared"]
    page = client.list_tables(models.ListTablesRequest(id=[ns, "inner"], limit=2))
    assert (page.tables, page.page_token) == (["a", "b"], "b")
    described = client.describe_table(models.DescribeTableRequest(id=[ns, "inner", "a"]))
    assert (described.table, described.namespace, described.managed_versioning) == ("a", [ns, "inner"], True)
    assert client.describe_namespace(models.DescribeNamespaceRequest(id=[ns, "inner"])).properties == {"owner": "me"}

    stock.write([ns, "inner", "declared"], rows(0, 2))
    stock.check([ns, "inner", "declared"], 1)
    with pytest.raises(TableAlreadyExistsError):
        client.declare_table(models.DeclareTableRequest(id=[ns, "inner", "declared"]))

    location = stock.location([ns, "inner", "a"])
    client.rename_table(models.RenameTableRequest(id=[ns, "inner", "a"], new_table_name="c", new_namespace_id=[ns]))
    assert stock.location([ns, "c"]) == location
    stock.write([ns, "c"], rows(3, 4))
    stock.check([ns, "c"], 2)
    with pytest.raises(TableNotFoundError, match="a"):
        client.describe_table(models.DescribeTableRequest(id=[ns, "inner", "a"]))

    client.drop_table(models.DropTableRequest(id=[ns, "inner", "b"]))
    with pytest.raises(TableNotFoundError):
        client.table_exists(models.TableExistsRequest(id=[ns, "inner", "b"]))
    again = stock.make(ns, "inner", "b", count=1)
    assert stock.ids(again) == [0]
    stock.check(again, 1)
    client.deregister_table(models.DeregisterTableRequest(id=again))
    assert client.list_tables(models.ListTablesRequest(id=[ns, "inner"])).tables == ["declared"]


def test_a_deregistered_table_is_registered_with_its_versions(stock: Stock, table: list[str], ns: str) -> None:
    location = stock.location(table)
    stock.client.deregister_table(models.DeregisterTableRequest(id=table))

    stock.client.register_table(models.RegisterTableRequest(id=[ns, "again"], location=location.name))

    stock.check([ns, "again"], 2)
    stock.write([ns, "again"], rows(6, 7))
    stock.check([ns, "again"], 3)


def test_lancedb_tables(stock: Stock, ns: str) -> None:
    db = stock.lancedb()
    table = [ns, "l"]
    made = db.create_table("l", rows(0, 3), namespace_path=[ns])
    stock.check(table, 1)
    made.add(rows(3, 5))
    made.delete("id = 1")
    made.update(where="id = 2", values={"name": "changed"})
    assert (made.version, made.count_rows()) == (4, 4)
    stock.check(table, 4)

    assert db.create_table("l", rows(0, 9), namespace_path=[ns], exist_ok=True).version == 4
    with pytest.raises(ValueError, match="exists"):
        db.create_table("l", rows(0, 9), namespace_path=[ns])
    assert db.create_table("l", rows(0, 4), namespace_path=[ns], mode="overwrite").version == 5
    stock.check(table, 5)

    opened = db.open_table("l", namespace_path=[ns])
    assert [row["id"] for row in opened.search().where("id > 1").to_list()] == [2, 3]
    opened.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows(3, 6))
    opened.optimize()
    assert [version["version"] for version in opened.list_versions()] == stock.stored(table)
    stock.check(table, opened.version)
    opened.checkout(1)
    assert opened.count_rows() == 3
    opened.restore()
    assert (opened.count_rows(), stock.ids(table)) == (3, [0, 1, 2])
    stock.check(table, opened.version)


def test_lancedb_catalog(stock: Stock, ns: str) -> None:
    db = stock.lancedb()
    db.create_namespace([ns, "inner"])
    for name in ("x", "y"):
        db.create_table(name, rows(0, 2), namespace_path=[ns, "inner"])

    assert db.list_namespaces([ns]).namespaces == ["inner"]
    assert db.list_tables([ns, "inner"]).tables == ["x", "y"]
    db.rename_table("x", "z", [ns, "inner"], [ns])
    assert db.open_table("z", namespace_path=[ns]).count_rows() == 2
    db.drop_table("y", [ns, "inner"])
    assert db.list_tables([ns, "inner"]).tables == []
    with pytest.raises(TableNotFoundError, match="y"):
        db.open_table("y", namespace_path=[ns, "inner"])
    db.drop_namespace([ns, "inner"])
    assert db.list_namespaces([ns]).namespaces == []


def test_lancedb_searches_vectors(stock: Stock, ns: str) -> None:
    points = pa.table(
        {
            "id": [0, 1, 2],
            "vector": pa.array([[0.0, 0.0], [1.0, 1.0], [5.0, 5.0]], pa.list_(pa.float32(), 2)),
        }
    )
    table = stock.lancedb().create_table("v", points, namespace_path=[ns])

    assert [row["id"] for row in table.search([0.9, 0.9]).limit(2).to_list()] == [1, 0]


WORKER = """
import sys
from pathlib import Path
from tests.server.stock import Stock, rows

url, root, table, kind, first, count = sys.argv[1], Path(sys.argv[2]), sys.argv[3].split("$"), *sys.argv[4:]
stock = Stock(url, root)
print("ready", flush=True)
sys.stdin.read(1)
for number in range(int(count)):
    start = int(first) + 10 * number
    if kind == "append":
        stock.write(table, rows(start, start + 10))
    elif kind == "delete":
        stock.open(table).delete(f"id = {start}")
    else:
        merge = stock.open(table).merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        merge.conflict_retries(30).execute(rows(start, start + 10, "merged"))
"""


def _race(stock: Stock, table: list[str], work: list[tuple[str, int, int]]) -> None:
    """Run workers of (kind, first id, count) as processes of their own, all let go at once."""
    processes: list[subprocess.Popen[Any]] = []
    for kind, first, count in work:
        given = [stock.url, str(stock.root), "$".join(table), kind, str(first), str(count)]
        command = [sys.executable, "-c", WORKER, *given]
        processes.append(
            subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=REPOSITORY,
                text=True,
            )
        )
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("x")
        process.stdin.flush()
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors


def test_no_row_is_lost_between_processes(stock: Stock, ns: str) -> None:
    table = stock.make(ns, "t", count=40)
    appends = [("append", 1000 * (worker + 1), 10) for worker in range(4)]

    _race(stock, table, [*appends, ("delete", 0, 4), ("merge", 100, 4)])

    appended = [number for _, first, count in appends for number in range(first, first + 10 * count)]
    kept = [number for number in range(40) if number % 10]
    assert stock.ids(table) == [*kept, *range(100, 140), *appended]
    stock.check(table, 1 + 40 + 4 + 4)


def test_an_old_version_is_cleaned_up(stock: Stock, server: ServerProcess, table: list[str]) -> None:
    dataset = stock.open(table)
    dataset.delete("id = 0")
    dataset.cleanup_old_versions(timedelta(0))

    assert stock.stored(table) == [3]
    stock.check(table, 3)
    assert server.ask("version/list", *table)["versions"][0]["version"] == 3
    assert stock.write(table, rows(50, 51)).version == 4
    stock.check(table, 4)
