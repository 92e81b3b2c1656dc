"""Versions, tags and branches of lancedb's remote client."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from lancedb.index import BTree

from tests.lancedb_remote.remote import ROWS, Shop, connect, refused, rows
from tests.running import running


def test_versions_are_listed_opened_and_restored(shop: Shop) -> None:
    table = shop.table()
    table.delete("id = 1")
    assert [each["version"] for each in table.list_versions()] == [1, 2]
    table.checkout(1)
    assert (table.version, table.count_rows(), table.search().to_arrow().num_rows) == (1, ROWS, ROWS)
    with refused("version"):
        table.delete("id = 2")
    table.checkout_latest()
    assert table.count_rows() == ROWS - 1
    table.restore(1)
    assert (table.count_rows(), table.version) == (ROWS, 3)
    with pytest.raises(ValueError, match="99"):
        table.checkout(99)


def test_tags(shop: Shop) -> None:
    table = shop.table()
    table.delete("id = 1")
    table.tags.create("a", 1)
    assert {name: each["version"] for name, each in table.tags.list().items()} == {"a": 1}
    table.checkout("a")
    assert table.count_rows() == ROWS
    table.checkout_latest()
    table.tags.update("a", 2)
    assert table.tags.get_version("a") == 2
    for words, ask in (
        (("a", "exist"), lambda: table.tags.create("a", 2)),
        (("nothing",), lambda: table.tags.get_version("nothing")),
        (("nothing",), lambda: table.checkout("nothing")),
        (("nothing",), lambda: table.tags.delete("nothing")),
    ):
        with refused(*words, table=table):
            ask()
    table.tags.delete("a")
    assert table.tags.list() == {}


def test_a_refusal_is_not_repeated(shop: Shop) -> None:
    table = shop.table(rows(1))
    table.tags.create("a", 1)
    with refused("exist"):
        connect(shop.url, retries=3).open_table(table.name).tags.create("a", 1)


def test_branches(shop: Shop) -> None:
    table = shop.table()
    branch = table.branches.create("dev")
    branch.add(rows(5, 1000))
    branch.delete("id = 1000")
    assert (branch.count_rows(), table.count_rows(), branch.current_branch()) == (ROWS + 4, ROWS, "dev")
    assert "dev" in table.branches.list()
    assert table.branches.checkout("dev").search().where("id > 999").to_arrow().num_rows == 4
    branch.update(where="id = 1001", values={"text": "q"})
    branch.merge_insert("id").when_not_matched_insert_all().execute(rows(1, 2000))
    branch.create_index("id", config=BTree(), name="own")
    assert (len(branch.list_versions()), branch.stats()["num_indices"]) == (6, 1)
    branch.drop_index("own")
    branch.add_columns({"twice": "id * 2"})
    assert "twice" in branch.schema.names
    assert "twice" not in table.schema.names
    with refused("already exists"):
        table.branches.create("dev")
    with refused("nope"):
        table.branches.checkout("nope")
    with refused("nope"):
        table.branches.delete("nope")
    table.branches.delete("dev")
    assert "dev" not in table.branches.list()


def test_branches_begin_at_a_version_and_at_a_tag(shop: Shop) -> None:
    table = shop.table()
    table.delete("id = 1")
    table.tags.create("one", 1)
    assert table.branches.create("a", from_version=1).count_rows() == ROWS
    table.checkout("one")
    assert table.branches.create("b").count_rows() == ROWS - 1


def test_a_handle_reads_its_own_writes_and_those_of_others_through_another_server(tmp_path: Path) -> None:
    with running(tmp_path / "root") as first, running(tmp_path / "root") as second:
        table = connect(first).create_table("t", rows())
        at_once = connect(second, read_consistency_interval=timedelta(0)).open_table("t")
        for left in range(ROWS - 1, ROWS - 6, -1):
            table.delete(f"id = {left}")
            assert (at_once.count_rows(), at_once.version) == (left, table.version)
        at_once.add(rows(1, 5000))
        assert table.count_rows() == ROWS - 4
