"""Rows: read to files and to the terminal, loaded as one batch, and found by vectors and words."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from namespace_server.cli.row_output import json_value
from tests.cli.commands import invoke
from tests.cli.conftest import Shop


def parquet(path: Path, rows: pa.Table) -> str:
    pa.parquet.write_table(rows, path)
    return str(path)


def read_file(path: Path) -> pa.Table:
    match path.suffix:
        case ".parquet":
            return pa.parquet.read_table(path)
        case ".arrow":
            return pa.ipc.open_file(path).read_all()
        case ".csv":
            return pa.csv.read_csv(path)
    return pa.Table.from_pylist([json.loads(line) for line in path.read_text().splitlines()])


class TestRead:
    @pytest.mark.parametrize("kind", ["parquet", "arrow", "csv", "jsonl"])
    def test_a_file_has_the_rows(self, shop: Shop, people: pa.Table, kind: str) -> None:
        name = shop.make("t", people)
        target = shop.home / f"rows.{kind}"
        said = shop("read", name, "-o", str(target), "--where", "id > 1", "--columns", "name,id")
        assert said == f"{target}: 2 rows\n"
        found = read_file(target)
        assert found.column_names == ["name", "id"]
        assert found.to_pylist() == [{"name": "bob", "id": 2}, {"name": "eve", "id": 3}]
        assert [path.name for path in shop.home.iterdir()] == [target.name]

    def test_standard_output(self, shop: Shop, people: pa.Table) -> None:
        name = shop.make("t", people)
        assert shop("read", name, "--format", "jsonl", "--limit", "1") == '{"id":1,"name":"ann"}\n'

    def test_a_table_on_the_terminal_has_twenty_rows_unless_it_is_asked_for_more(self, shop: Shop) -> None:
        name = shop.make("t", {"id": list(range(30))})
        result = invoke("read", name, *shop.options)
        assert len(result.stdout.splitlines()) == 21
        assert "the first 20 rows" in result.stderr
        assert len(shop("read", name, "--limit", "25").splitlines()) == 26
        assert len(shop.parsed("read", name)) == 30

    def test_as_it_was(self, shop: Shop, people: pa.Table) -> None:
        name = shop.make("t", people)
        before = shop.version()
        with shop.catalog() as catalog, catalog.begin() as tx:
            tx.delete("t", "id < 3")
        assert len(shop.parsed("read", name)) == 1
        assert len(shop.parsed("read", name, "--at", str(before))) == 3
        assert len(shop.parsed("read", name, "--at", datetime.now(UTC).isoformat())) == 1
        with shop.catalog() as catalog:
            catalog.pin(shop.namespace, before)
        assert len(shop.parsed("read", name, "--at", shop.namespace)) == 3
        assert "no pin 'nothing'" in shop.refused("read", name, "--at", "nothing")

    def test_what_is_wrong_is_said(self, shop: Shop, people: pa.Table) -> None:
        name = shop.make("t", people)
        assert "expected columns among id, name" in shop.refused("read", name, "--columns", "nope")
        assert "nope" in shop.refused("read", name, "--where", "nope > 1")
        target = shop.home / "t.parquet"
        assert "nope" in shop.refused("read", name, "--where", "nope > 1", "-o", str(target))
        assert "expected one of .parquet" in shop.refused("read", name, "-o", str(shop.home / "t.xls"))
        nested = shop.make("n", {"v": [[1.0, 2.0]]})
        assert "without v" in shop.refused("read", nested, "-o", str(shop.home / "n.csv"))
        assert list(shop.home.iterdir()) == []


def test_values_that_json_has_no_type_for() -> None:
    row = {"d": date(2026, 1, 2), "b": b"\xff", "n": Decimal("1.50"), "l": [{"t": timedelta(0, 2)}]}
    assert json_value(row) == {"d": "2026-01-02", "b": "/w==", "n": "1.50", "l": [{"t": 2.0}]}


class TestLoad:
    def test_several_files_are_one_batch(self, shop: Shop, people: pa.Table) -> None:
        first = parquet(shop.home / "people.parquet", people)
        orders = shop.home / "orders.csv"
        orders.write_text("order,person\n10,1\n11,2\n")
        a, b = shop.name("people"), shop.name("orders")
        before = shop.version()
        found = shop.parsed("load", f"{a}={first}", f"{b}={orders}", "--mode", "create", "-m", "first load")
        assert found == {
            "catalog_version": before + 1,
            "tables": {a: {"created": 3}, b: {"created": 2}},
            "found_types": {b: {"order": "int64", "person": "int64"}},
        }
        [version] = shop.parsed("log", "-n", "1", shop.namespace)
        [batch] = version["batches"]
        assert batch["message"] == "first load"
        assert {change["name"] for change in batch["changes"]} == {a, b}

    def test_one_bad_file_and_nothing_is_loaded(self, shop: Shop, people: pa.Table) -> None:
        name = shop.make("t", people)
        good, bad = parquet(shop.home / "good.parquet", people), shop.home / "bad.csv"
        bad.write_text("id,name\nseven,ann\n")
        before = shop.version()
        told = shop.refused("load", f"{name}={good}", f"{name}={bad}")
        assert "bad.csv" in told
        assert "id" in told
        assert len(shop.parsed("read", name)) == 3
        assert shop.version() == before

    def test_text_files_take_the_types_of_the_table(self, shop: Shop, people: pa.Table) -> None:
        name = shop.make("t", people)
        lines, csv = shop.home / "more.jsonl", shop.home / "more.csv"
        lines.write_text('{"id": 4, "name": "dan"}\n{"name": "joe", "id": 5}\n')
        csv.write_text("name,id\nkim,6\n")
        assert "3 rows appended" in shop("load", f"{name}={lines}", f"{name}={csv}")
        found = shop.parsed("show", name, "--rows", "9")
        assert found["schema"][0]["type"] == "int32"
        assert {row["id"]: row["name"] for row in found["first_rows"]}[6] == "kim"

    def test_upsert_by_key(self, shop: Shop, people: pa.Table) -> None:
        name = shop.make("t", people)
        other = shop.make("u", pa.table({"a": [1], "b": [1], "c": ["old"]}))
        lines, keyed = shop.home / "t.jsonl", shop.home / "u.jsonl"
        lines.write_text('{"id": 3, "name": "eva"}\n{"id": 4, "name": "dan"}\n')
        keyed.write_text('{"a": 1, "b": 1, "c": "new"}\n')
        found = shop.parsed(
            *("load", f"{name}={lines}", f"{other}={keyed}", "--mode", "upsert", "--on", "id"), "--on", f"{other}=a,b"
        )
        assert found["tables"] == {name: {"inserted": 1, "updated": 1}, other: {"inserted": 0, "updated": 1}}
        assert sorted(row["name"] for row in shop.parsed("read", name)) == ["ann", "bob", "dan", "eva"]

    def test_overwrite(self, shop: Shop, people: pa.Table) -> None:
        name = shop.make("t", people)
        file = parquet(shop.home / "t.parquet", pa.table({"x": [1]}))
        shop("load", f"{name}={file}", "--mode", "overwrite")
        assert shop.parsed("read", name) == [{"x": 1}]

    def test_lists_become_vectors_where_it_is_said(self, shop: Shop) -> None:
        lines = shop.home / "v.jsonl"
        lines.write_text('{"id": 1, "v": [0.0, 1.0]}\n{"id": 2, "v": [1.0, 0.0]}\n')
        name = shop.name("v")
        shop("load", f"{name}={lines}", "--mode", "create", "--vector", "v")
        assert shop.parsed("show", name)["schema"][1]["type"].startswith("fixed_size_list<item: float")
        [nearest] = shop.parsed("query", name, "--vector", "[0.9, 0.1]", "-k", "1", "--columns", "id")
        assert nearest["id"] == 2
        lines.write_text('{"id": 1, "v": [0.0, 1.0]}\n{"id": 2, "v": [1.0]}\n')
        assert "column v" in shop.refused("load", f"{shop.name('w')}={lines}", "--mode", "create", "--vector", "v")

    def test_what_is_wrong_is_said(self, shop: Shop, people: pa.Table) -> None:
        name = shop.make("t", people)
        file = parquet(shop.home / "t.parquet", people)
        for arguments, said in (
            (["t.parquet"], "t.parquet: expected TABLE=FILE"),
            ([f"{name}=none.parquet"], "none.parquet: expected a file, found none"),
            ([f"{name}=x.xls"], "expected one of .parquet"),
            ([f"{name}={file}", "--mode", "replace"], "expected one of append, create, overwrite, upsert"),
            ([f"{name}={file}", "--mode", "upsert"], "--mode upsert goes with --on"),
            ([f"{name}={file}", "--mode", "upsert", "--on", "other=id"], "one of the tables that are loaded"),
            ([f"{shop.name('none')}={file}"], "no such table"),
            ([f"{name}={file}", "--mode", "create"], "expected no table of this name with --mode create, found one"),
        ):
            assert said in shop.refused("load", *arguments)
        broken = shop.home / "broken.parquet"
        broken.write_bytes(b"PAR1")
        assert "broken.parquet: not read as parquet" in shop.refused("load", f"{name}={broken}")


class TestQuery:
    def test_words(self, shop: Shop) -> None:
        name = shop.make("t", {"id": [1, 2], "text": ["blue tea", "red coffee"]})
        assert "INVERTED" in shop.refused("query", name, "--text", "tea")
        with shop.catalog() as catalog, catalog.begin() as tx:
            tx.create_index("t", "text", "INVERTED")
        [found] = shop.parsed("query", name, "--text", "coffee", "--columns", "id")
        assert found["id"] == 2
        assert found["_score"] > 0
        assert shop.parsed("query", name, "--text", "coffee", "--where", "id = 1") == []

    def test_a_vector_in_a_file_and_a_filter(self, shop: Shop) -> None:
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.eye(4, dtype=np.float32).ravel()), 4)
        name = shop.make("t", pa.table({"id": range(4), "v": vectors}))
        given = shop.home / "v.json"
        given.write_text("[0, 0, 1, 0]")
        [found] = shop.parsed("query", name, "--vector-file", str(given), "-k", "1")
        assert (found["id"], found["_distance"]) == (2, 0)
        [found] = shop.parsed("query", name, "--vector-file", str(given), "-k", "1", "--where", "id > 2")
        assert found["id"] == 3

    def test_what_is_wrong_is_said(self, shop: Shop, people: pa.Table) -> None:
        name = shop.make("t", people)
        assert "found 0 columns of vectors" in shop.refused("query", name, "--vector", "[1]")
        assert "expected a JSON array of numbers" in shop.refused("query", name, "--vector", "near", "--column", "id")
        assert "expected one of --vector, --vector-file and --text" in shop.refused("query", name)


BLOBS = pa.schema(
    [pa.field("id", pa.int64()), pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})]
)


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_a_file_has_the_bytes_of_blobs_and_is_loaded_again(shop: Shop, tmp_path: Path, kind: str) -> None:
    values = [b"aa", None, b"", b"\xff" * 70_000]
    name = shop.make("t", pa.table({"id": range(4), "b": values}, schema=BLOBS))
    target = tmp_path / f"t.{kind}"
    shop("read", name, "-o", str(target))
    again = shop.name("again")
    shop("load", f"{again}={target}", "--mode", "create")
    shop("read", again, "-o", str(tmp_path / "again.parquet"))
    assert pa.parquet.read_table(tmp_path / "again.parquet").to_pydict() == {"id": [0, 1, 2, 3], "b": values}


def test_csv_refuses_blobs_by_the_name_of_the_column(shop: Shop, tmp_path: Path) -> None:
    name = shop.make("t", pa.table({"id": [1], "b": [b"aa"]}, schema=BLOBS))
    assert "CSV: column b holds bytes" in shop.refused("read", name, "-o", str(tmp_path / "t.csv"))
    shop("read", name, "-o", str(tmp_path / "t.csv"), "--columns", "id")
    assert (tmp_path / "t.csv").read_text() == '"id"\n1\n'


def test_a_file_is_written_in_batches_that_are_bounded_by_bytes(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = shop.make("t", pa.table({"text": ["x" * 50_000] * 40}))
    shop("read", name, "-o", str(tmp_path / "one.parquet"))
    monkeypatch.setattr("table_data.arrow.batch_sizes.BATCH_BYTES", 200_000)
    shop("read", name, "-o", str(tmp_path / "many.parquet"))
    whole, parts = (pa.parquet.ParquetFile(tmp_path / file) for file in ("one.parquet", "many.parquet"))
    assert (whole.num_row_groups, whole.metadata.num_rows, parts.metadata.num_rows) == (1, 40, 40)
    assert parts.num_row_groups >= 5
