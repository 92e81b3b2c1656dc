"""The history of a catalog, and what two of its versions have different."""

from __future__ import annotations

import pyarrow as pa
import pytest

from namespace_server.cli import history
from tests.cli.commands import invoke
from tests.cli.conftest import Shop


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


class TestLog:
    def test_who_when_why_and_what(self, shop: Shop) -> None:
        with shop.catalog() as catalog:
            with catalog.begin(message="both") as tx:
                tx.create("a", rows(1, 2, 3))
                tx.create("b", rows(1))
            with catalog.begin(message="fewer") as tx:
                tx.delete("a", "id = 1")
                tx.append("b", rows(2, 3))
            catalog.rename("b", "c")
        lines = shop("log", shop.namespace, "--stat").splitlines()
        a, b, c = (shop.name(name) for name in "abc")
        assert lines[0].split() == ["version", "committed", "by", "message", "changes"]
        assert f"rename {b} to {c}" in lines[1]
        assert f"delete {a} (-1 row), append {b} (+2 rows)" in lines[2]
        assert "fewer" in lines[2]
        assert f"create {a} (+3 rows), create {b} (+1 row)" in lines[3]

    def test_one_table(self, shop: Shop) -> None:
        a, _ = shop.make("a", rows(1)), shop.make("b", rows(1))
        [version] = shop.parsed("log", a)
        assert [change["name"] for change in version["batches"][0]["changes"]] == [a, a]
        assert shop.parsed("log", shop.name("none")) == []

    def test_the_limit(self, shop: Shop) -> None:
        for name in "abc":
            shop.make(name, rows(1))
        assert len(shop.parsed("log", "-n", "2")) == 2
        assert [each["version"] for each in shop.parsed("log", shop.namespace, "-n", "2")] == [
            *(each["version"] for each in shop.parsed("log", shop.namespace)[:2])
        ]


class TestDiff:
    def test_tables_that_came_went_were_renamed_or_changed(self, shop: Shop) -> None:
        for name in ("goes", "moves", "stays", "grows"):
            shop.make(name, rows(1, 2))
        before = str(shop.version())
        with shop.catalog() as catalog:
            catalog.drop("goes")
            catalog.rename("moves", "moved")
            catalog.create("came", rows(1))
            with catalog.begin() as tx:
                tx.append("grows", rows(3))
                tx.add_columns("grows", {"twice": "id * 2"})
        found = {each["name"]: each for each in shop.parsed("diff", before)["tables"]}
        kinds = {name.rpartition(".")[2]: each["kind"] for name, each in found.items()}
        assert kinds == {"came": "added", "goes": "dropped", "moved": "renamed", "grows": "changed"}
        grows = found[shop.name("grows")]
        assert (grows["before"], grows["after"], grows["rows"]) == (1, 3, 1)
        assert grows["columns"] == [{"name": "twice", "before": None, "after": "int64"}]
        lines = [line.split() for line in shop("diff", before).splitlines()]
        assert lines[:2] == [
            ["catalog", "versions", before, "and", str(shop.version())],
            ["table", "version", "rows", "columns"],
        ]
        assert ["added", shop.name("came"), "none", "→", "1", "+1"] in lines
        assert ["renamed", shop.name("moves"), "is", shop.name("moved"), "1", "→", "1", "+0"] in lines
        assert ["changed", shop.name("grows"), "1", "→", "3", "+1", "twice:", "none", "→", "int64"] in lines

    def test_rows(self, shop: Shop) -> None:
        name = shop.make("t", pa.table({"id": range(100), "word": ["w"] * 100}))
        before = str(shop.version())
        with shop.catalog() as catalog, catalog.begin() as tx:
            tx.delete("t", "id = 7")
            tx.update("t", {"word": "'new'"}, where="id = 9")
            tx.append("t", pa.table({"id": [100], "word": ["w"]}))
        [found] = shop.parsed("diff", before, "--rows", "5")["tables"]
        told = found["row_changes"]
        assert (told["added"], told["removed"], told["note"]) == (2, 2, None)
        assert {row["id"] for row in told["sample_removed"]} == {7, 9}
        assert {"id": 9, "word": "new"} in told["sample_added"]
        lines = [line.split() for line in shop("diff", before, "--rows", "5").splitlines()]
        assert [f"{name}:", *["100", "rows,", "now", "100;", "2", "added,", "2", "removed"]] in lines
        assert ["+", "100", "w"] in lines
        assert len(shop.parsed("diff", before, "--rows", "1")["tables"][0]["row_changes"]["sample_added"]) == 1
        assert found["name"] == name

    def test_a_compaction_changes_no_rows(self, shop: Shop) -> None:
        name = shop.make("t", rows(1))
        with shop.catalog() as catalog:
            with catalog.begin() as tx:
                tx.append("t", rows(1))
            before = str(shop.version())
            with catalog.begin() as tx:
                tx.compact("t")
        [found] = shop.parsed("diff", before, "--rows", "5")["tables"]
        assert found["name"] == name
        assert (found["row_changes"]["added"], found["row_changes"]["removed"]) == (0, 0)

    def test_too_many_rows_are_not_compared(self, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
        shop.make("t", rows(1, 2, 3))
        before = str(shop.version())
        with shop.catalog() as catalog:
            catalog.overwrite("t", rows(*range(9)))
        monkeypatch.setattr(history, "_COMPARED", 8)
        [found] = shop.parsed("diff", before, "--rows", "1")["tables"]
        assert found["row_changes"]["note"] == "rows are not compared: 9 may differ, of at most 8"
        assert "9 may differ, of at most 8" in shop("diff", before, "--rows", "1")

    def test_the_status_tells_of_differences_where_that_is_wanted(self, shop: Shop) -> None:
        before = str(shop.version())
        assert invoke("diff", before, "--exit-code", *shop.options).exit_code == 0
        assert "no differences" in shop("diff", before)
        shop.make("t", rows(1))
        assert invoke("diff", before, "--exit-code", *shop.options).exit_code == 1
        assert invoke("diff", before, *shop.options).exit_code == 0

    def test_a_version_that_is_not_there(self, shop: Shop) -> None:
        assert "999999" in shop.refused("diff", "999999")
