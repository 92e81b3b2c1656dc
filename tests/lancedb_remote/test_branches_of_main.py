"""`branches.diff` and `branches.cherry_pick` of lancedb's remote client; rows as stock pylance sees them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lance
import pytest
from lancedb.index import FTS, BTree

from tests.access.granting import ADMIN, granted, key, keys, switch_on
from tests.lancedb_remote.remote import ROWS, Shop, connect, refused, rows
from tests.running import running

Table = Any


def found(table: Table, branch: str | None = None) -> list[dict[str, Any]]:
    """All rows, by stock pylance, in the order of their ids."""
    dataset = lance.dataset(table.uri)
    if branch is not None:
        dataset = dataset.checkout_version((branch, None))
    dataset.validate()
    return sorted(dataset.to_table().to_pylist(), key=lambda row: (row["id"], repr(row)))


def in_many(branch: Table) -> None:
    """Changes of rows of any kind, also of those that the branch has added itself."""
    branch.add(rows(5, 1000))
    branch.update(where="id < 3 or id = 1001", values={"text": "'new'"})
    branch.delete("id in (7, 1002)")
    branch.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows(4, 1003))


def compacted(branch: Table) -> None:
    branch.add(rows(5, 1000))
    branch.delete("id = 1")
    dataset = lance.dataset(branch.uri).checkout_version(("dev", None))
    dataset.optimize.compact_files(target_rows_per_fragment=10_000)


CHANGES: dict[str, Callable[[Table], Any]] = {
    "append": lambda branch: branch.add(rows(5, 1000)),
    "delete": lambda branch: branch.delete("id % 7 = 0"),
    "delete a fragment": lambda branch: branch.delete("id < 300"),
    "update": lambda branch: branch.update(where="id = 4", values={"text": "'new'"}),
    "merge": lambda branch: (
        branch.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows(9, ROWS - 4))
    ),
    "append, and delete of that": lambda branch: (branch.add(rows(5, 1000)), branch.delete("id in (3, 1002)")),
    "all of these": in_many,
    "compacted": compacted,
}


@pytest.mark.parametrize("what", CHANGES)
def test_main_has_the_rows_of_the_branch(shop: Shop, what: str) -> None:
    table = shop.table()
    table.add(rows(3, 500))
    before = table.version
    branch = table.branches.create("dev")
    CHANGES[what](branch)
    expected = found(table, "dev")
    diff = table.branches.diff("dev")
    assert diff["errors"] == []
    assert (diff["rowCountMain"], diff["rowCountBranch"], diff["baseMoved"]) == (ROWS + 3, len(expected), False)
    summary = diff["rowSummary"]
    assert summary["unchanged"] + summary["newOnBranch"] == len(expected)
    tried = table.branches.cherry_pick("dev", dry_run=True)
    assert (tried["status"], tried["diff"], table.version) == ("ready", diff, before)
    done = table.branches.cherry_pick("dev")
    assert (done["status"], done["mainVersionAfter"], table.version) == ("cherryPicked", before + 1, before + 1)
    assert found(table) == expected
    table.branches.delete("dev")
    assert found(table) == expected
    assert table.count_rows() == len(expected)


def test_rows_that_main_got_since_stay(shop: Shop) -> None:
    table = shop.table()
    branch = table.branches.create("dev")
    branch.add(rows(2, 1000))
    branch.update(where="id = 4", values={"text": "'branch'"})
    branch.delete("id = 5")
    table.add(rows(2, 2000))
    table.update(where="id = 6", values={"text": "'main'"})
    table.delete("id = 7")
    diff = table.branches.diff("dev")
    assert (diff["baseMoved"], diff["parentVersion"], diff["mainVersion"], diff["errors"]) == (True, 1, 4, [])
    assert diff["rowSummary"] == {
        "unchanged": ROWS - 4,
        "newOnBase": 3,
        "newOnBranch": 3,
        "staleRecompute": 0,
        "inputsChanged": 0,
        "deltaAvailable": True,
    }
    assert table.branches.cherry_pick("dev")["mainVersionAfter"] == 5
    by_id = {row["id"]: row["text"] for row in found(table)}
    assert (by_id[4], by_id[6]) == ("'branch'", "'main'")
    assert by_id.keys() == (set(range(ROWS)) | {1000, 1001, 2000, 2001}) - {5, 7}


def test_a_new_column_is_promoted_with_its_values(shop: Shop) -> None:
    table = shop.table()
    table.add(rows(5, 1000))
    branch = table.branches.create("dev")
    branch.add_columns({"twice": "id * 2"})
    branch.add_columns({"thrice": "id * 3", "name": "concat(text, '!')"})
    expected = found(table, "dev")
    table.delete("id = 3")
    diff = table.branches.diff("dev")
    assert diff["errors"] == []
    assert diff["addedColumns"][0] == {"name": "twice", "dataType": "int64", "nullable": True}
    assert table.branches.cherry_pick("dev", dry_run=True)["preview"] == {
        "promotedColumns": ["twice", "thrice", "name"]
    }
    done = table.branches.cherry_pick("dev")
    assert (done["status"], done["preview"]["promotedColumns"]) == ("cherryPicked", ["twice", "thrice", "name"])
    table.branches.delete("dev")
    assert found(table) == [row for row in expected if row["id"] != 3]
    table.add_columns({"own": "twice + thrice"})
    table.update(where="id = 4", values={"twice": "0"})
    assert table.search().where("id = 4").to_list()[0]["own"] == 20


def test_indices_answer_for_rows_that_came_with_a_branch(shop: Shop) -> None:
    table = shop.table()
    table.create_index("id", config=BTree(), name="by_id")
    table.create_index("text", config=FTS(), name="words")
    branch = table.branches.create("dev")
    branch.update(where="id = 4", values={"id": "-4", "text": "'walrus'"})
    branch.add(rows(1, 1000))
    branch.delete("id = 8")
    branch.create_index("price", config=BTree(), name="by_price")
    assert [each["indexName"] for each in table.branches.diff("dev")["addedIndexes"]] == ["by_price"]
    assert table.branches.cherry_pick("dev")["status"] == "cherryPicked"
    answers = [table.search().where(f"id = {wanted}").to_arrow().num_rows for wanted in (4, -4, 8, 9, 1000)]
    assert answers == [0, 1, 0, 1, 1]
    assert [row["id"] for row in table.search("walrus", query_type="fts").limit(5).to_list()] == [-4]
    assert {index.name for index in table.list_indices()} == {"by_id", "words"}


@pytest.mark.parametrize(
    ("on_branch", "on_main", "code"),
    [
        (None, None, "nothingToApply"),
        (lambda t: t.drop_columns(["price"]), None, "columnRemoved"),
        (lambda t: t.alter_columns({"path": "price", "rename": "cost"}), None, "columnChanged"),
        (lambda t: (t.add_columns({"n": "id"}), t.delete("id = 1")), None, "rowsChanged"),
        (lambda t: t.add_columns({"n": "id"}), lambda t: t.add(rows(1, 900)), "baseMoved"),
        (lambda t: t.delete("id = 1"), lambda t: t.add_columns({"n": "id"}), "baseMoved"),
        (lambda t: t.delete("id = 1"), lambda t: t.delete("id = 1"), "baseMoved"),
        (
            lambda t: t.update(where="id = 1", values={"text": "'a'"}),
            lambda t: t.update(where="id = 1", values={"text": "'b'"}),
            "baseMoved",
        ),
        (
            lambda t: t.merge_insert("id").when_not_matched_insert_all().execute(rows(1, 900)),
            lambda t: t.add(rows(1, 900)),
            "baseMoved",
        ),
    ],
)
def test_what_main_cannot_take_is_a_result_and_changes_nothing(
    shop: Shop, on_branch: Callable[[Table], Any] | None, on_main: Callable[[Table], Any] | None, code: str
) -> None:
    table = shop.table()
    branch = table.branches.create("dev")
    if on_branch is not None:
        on_branch(branch)
    if on_main is not None:
        on_main(table)
    before, version = found(table), table.version
    assert [each["code"] for each in table.branches.diff("dev")["errors"]] == [code]
    for dry_run in (True, False):
        result = table.branches.cherry_pick("dev", dry_run=dry_run)
        assert result["status"] == "failed"
        assert [each["code"] for each in result["diff"]["errors"]] == [code]
        assert "mainVersionAfter" not in result
    assert (found(table), table.version) == (before, version)


def test_a_branch_of_a_branch_and_one_that_is_missing(shop: Shop) -> None:
    table = shop.table(rows(3))
    table.branches.create("dev").add(rows(1, 10))
    table.branches.create("sub", from_ref="dev")
    assert table.branches.cherry_pick("sub")["diff"]["errors"][0]["code"] == "parentNotMain"
    for ask in (table.branches.diff, table.branches.cherry_pick):
        with refused("nope"):
            ask("nope")
        with refused("from_branch"):
            ask("main")


def test_a_branch_is_taken_once(shop: Shop) -> None:
    table = shop.table()
    table.branches.create("dev").add(rows(2, 1000))
    results: list[str] = []
    threads = [
        threading.Thread(target=lambda: results.append(table.branches.cherry_pick("dev")["status"])) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == ["cherryPicked", "failed", "failed", "failed"]
    assert table.branches.cherry_pick("dev")["diff"]["errors"][0]["code"] == "nothingToApply"
    assert table.count_rows() == ROWS + 2
    table.branches.delete("dev")
    table.branches.create("dev").add(rows(2, 3000))
    assert table.branches.cherry_pick("dev")["status"] == "cherryPicked"
    assert table.count_rows() == ROWS + 4


def test_a_branch_that_main_went_back_before_is_taken_again(shop: Shop) -> None:
    table = shop.table()
    table.branches.create("dev").add(rows(2, 1000))
    assert table.branches.cherry_pick("dev")["status"] == "cherryPicked"
    table.restore(1)
    assert table.branches.cherry_pick("dev")["status"] == "cherryPicked"
    assert table.count_rows() == ROWS + 2


def test_writers_of_main_go_on_meanwhile(shop: Shop) -> None:
    table = shop.table()
    branch = table.branches.create("dev")
    in_many(branch)
    own = connect(shop.url).open_table(table.name)
    ends = threading.Event()

    def write() -> None:
        for number in range(200):
            if ends.is_set():
                return
            own.add(rows(1, 5000 + number))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        result = table.branches.cherry_pick("dev")
    finally:
        ends.set()
        writer.join()
    assert [each["code"] for each in result["diff"]["errors"]] in ([], ["baseMoved"])
    table.checkout_latest()
    ids = [row["id"] for row in found(table)]
    taken = result["status"] == "cherryPicked"
    assert (1000 in ids, 7 not in ids) == (taken, taken)
    assert len(ids) == len(set(ids))


class TestGrants:
    @pytest.fixture(scope="class")
    @classmethod
    def root(cls, tmp_path_factory: pytest.TempPathFactory) -> Path:
        return tmp_path_factory.mktemp("granted") / "root"

    @pytest.fixture(scope="class")
    @classmethod
    def url(cls, root: Path) -> Iterator[str]:
        with running(root, keys(ADMIN, "reader", "writer", "eve")) as url:
            yield url

    def test_who_reads_compares_and_who_writes_takes(self, url: str, root: Path) -> None:
        admin = connect(url, key=key(ADMIN))
        table = admin.create_table("t", rows(5))
        table.branches.create("dev").add(rows(1, 10))
        table.branches.create("columns").add_columns({"n": "id"})
        switch_on(
            root,
            granted("table", "shop$t", "reader", "read"),
            granted("table", "shop$t", "writer", "read", "write"),
        )
        reader, writer = (connect(url, key=key(name)).open_table("t") for name in ("reader", "writer"))
        assert reader.branches.diff("dev")["rowSummary"]["newOnBranch"] == 1
        with refused("write"):
            reader.branches.cherry_pick("dev")
        with refused("alter"):
            writer.branches.cherry_pick("columns")
        assert writer.branches.cherry_pick("dev")["status"] == "cherryPicked"
        with pytest.raises(ValueError, match="not found"):
            connect(url, key=key("eve")).open_table("t")
        assert table.count_rows() == 6
