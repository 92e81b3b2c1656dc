"""Tables of a transaction with methods of lancedb's: what they commit is read by lancedb itself."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import lancedb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from lancedb.expr import col
from lancedb.pydantic import LanceModel, Vector
from pyarrow.dataset import dataset

import namespace_client
from namespace_client import Catalog, InvalidCall, RetryableConflict
from tests.running import running

VECTOR = pa.list_(pa.float32(), 2)


class Sample(LanceModel):
    id: int
    text: str | None = None
    vector: Vector(2)  # type: ignore[valid-type]


class Tagged(LanceModel):
    id: int
    tags: list[str]
    made: dt.datetime


def rows(*ids: int) -> list[dict[str, Any]]:
    return [{"id": each, "text": f"text {each}", "vector": [float(each), 0.5]} for each in ids]


class Lab:
    """A database with two tables of three rows, by the client of transactions, and by lancedb."""

    def __init__(self, url: str, catalog: Catalog) -> None:
        self.catalog = catalog
        self.db = lancedb.connect("db://lab", api_key="any", host_override=url)
        catalog.ensure_namespace()
        catalog.ensure_namespace("inner")
        for name in ("a", "b"):
            self.db.create_table(name, rows(0, 1, 2), mode="overwrite")

    def read(self, name: str = "a") -> list[dict[str, Any]]:
        found = self.db.open_table(name).search().limit(100).to_list()
        return sorted(found, key=lambda row: row["id"])

    def ids(self, name: str = "a") -> list[int]:
        return [row["id"] for row in self.read(name)]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running(tmp_path_factory.mktemp("root")) as url:
        yield url


@pytest.fixture
def lab(url: str) -> Iterator[Lab]:
    with Catalog.connect(url, namespace="lab") as catalog:
        yield Lab(url, catalog)


def test_changes_of_tables_are_committed_at_once(lab: Lab) -> None:
    before = lab.catalog.access.state().version
    with lab.catalog.begin() as tx:
        db = namespace_client.lancedb(tx)
        a, b = db.open_table("a"), db.open_table("b")
        a.add(rows(3))
        merged = (
            b.merge_insert("id")
            .when_matched_update_all(where="target.id > 0")
            .when_not_matched_insert_all()
            .when_not_matched_by_source_delete("id = 0")
            .execute([*rows(5), {"id": 1, "text": "new", "vector": [9.0, 9.0]}])
        )
        assert (merged.num_inserted_rows, merged.num_updated_rows, merged.num_deleted_rows) == (1, 1, 1)
        both = b.merge_insert("id").when_not_matched_insert_all().execute([*rows(2), *rows(6)])
        assert (both.num_inserted_rows, both.num_updated_rows, both.num_deleted_rows) == (1, 0, 0)
        assert a.update("id > 2", {"text": "it's"}).rows_updated == 1
        assert a.update(values_sql={"text": "upper(text)"}).rows_updated == 4
        assert b.delete("id = 2").num_deleted_rows == 1
        made = db.create_table("c", rows(7))
        assert made.schema.field("vector").type == VECTOR
        made.add(rows(8))
        assert (a.count_rows(), a.count_rows("id = 3"), made.to_arrow().num_rows) == (4, 1, 2)
        assert made.to_pandas()["id"].tolist() == [7, 8]
        assert [lab.ids("a"), lab.ids("b")] == [[0, 1, 2], [0, 1, 2]]  # nothing is there before the end
        assert "c" not in lab.db.list_tables().tables

    assert tx.result.catalog_version == before + 1
    assert lab.read("a")[3] == {"id": 3, "text": "IT'S", "vector": [3.0, 0.5]}
    assert [(row["id"], row["text"]) for row in lab.read("b")] == [(1, "new"), (5, "text 5"), (6, "text 6")]
    assert lab.ids("c") == [7, 8]
    assert lab.db.open_table("c").search([8.0, 0.5]).limit(1).to_list()[0]["id"] == 8
    lab.db.drop_table("c")


def test_a_block_that_raises_commits_nothing(lab: Lab) -> None:
    with pytest.raises(ZeroDivisionError), lab.catalog.begin() as tx:  # noqa: PT012 - the block is what raises
        namespace_client.lancedb(tx).open_table("a").add(rows(3))
        raise ZeroDivisionError
    assert lab.ids() == [0, 1, 2]


def test_a_conflict_is_that_of_the_transaction(lab: Lab) -> None:
    with pytest.raises(RetryableConflict), lab.catalog.begin() as tx:  # noqa: PT012 - its end raises
        namespace_client.lancedb(tx).open_table("a").update("id = 1", {"text": "ours"})
        lab.db.open_table("a").update(where="id = 1", values={"text": "theirs"})
    assert lab.read()[1]["text"] == "theirs"


FORMS: dict[str, Callable[[], Any]] = {
    "dicts": lambda: rows(3, 4),
    "models": lambda: [Sample(**row) for row in rows(3, 4)],
    "pandas": lambda: pd.DataFrame(rows(3, 4)),
    "polars": lambda: pl.DataFrame(rows(3, 4)),
    "lazy": lambda: pl.LazyFrame(rows(3, 4)),
    "table": lambda: pa.Table.from_pylist(rows(3, 4)),
    "batch": lambda: pa.RecordBatch.from_pylist(rows(3, 4)),
    "batches": lambda: [pa.RecordBatch.from_pylist(rows(3)), pa.RecordBatch.from_pylist(rows(4))],
    "reader": lambda: pa.Table.from_pylist(rows(3, 4)).to_reader(),
    "generator": lambda: (pa.RecordBatch.from_pylist(rows(each)) for each in (3, 4)),
    "dataset": lambda: dataset(pa.Table.from_pylist(rows(3, 4))),
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_rows_is_taken(lab: Lab, form: str) -> None:
    with lab.catalog.begin() as tx:
        db = namespace_client.lancedb(tx)
        db.open_table("a").add(FORMS[form]())
        merge = db.open_table("b").merge_insert(["id"]).when_not_matched_insert_all()
        assert merge.execute(FORMS[form]()).num_inserted_rows == 2
        db.create_table("made", FORMS[form](), mode="overwrite")
    assert lab.read("a") == rows(0, 1, 2, 3, 4)
    assert lab.read("b") == rows(0, 1, 2, 3, 4)
    assert lab.read("made") == rows(3, 4)
    assert lab.db.open_table("made").schema.field("vector").type == VECTOR


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (rows(3)[0], "found one dict"),
        (Sample(**rows(3)[0]), "found one Sample"),
        ([*rows(3), {**rows(4)[0], "more": 1}], "row 2: expected columns"),
        ([{"id": 3.7, "text": "t", "vector": [1.0, 2.0]}], "expected int64, found 3.7"),
        ([{"id": "3", "text": "t", "vector": [1.0, 2.0]}], "column 'id': expected int64, found string"),
        ([{"id": 3, "text": 4, "vector": [1.0, 2.0]}], "column 'text': expected string, found int64"),
        ([{"id": 3, "text": "t", "vector": [1.0]}], "column 'vector', row 1"),
        ((row for row in rows(3)), "expected an iterator of record batches, found one of dict"),
        (iter(()), "found one of NoneType"),
        (object(), "rows of type object"),
    ],
)
def test_what_would_change_values_is_refused_by_name(lab: Lab, data: Any, words: str) -> None:
    with lab.catalog.begin() as tx:
        table = namespace_client.lancedb(tx).open_table("a")
        with pytest.raises(InvalidCall) as refused:
            table.add(data)
        assert words in str(refused.value)
        table.add(rows(9))
    assert lab.ids() == [0, 1, 2, 9]


def test_keys_that_the_first_row_has_not_are_columns(lab: Lab) -> None:
    with lab.catalog.begin() as tx:
        db = namespace_client.lancedb(tx)
        db.create_table("keys", [{"id": 1}, {"id": 2, "more": "x"}], mode="overwrite")
        db.open_table("a").add([{"id": 3, "vector": [1.0, 1.0]}, *rows(4)])
    assert lab.read("keys") == [{"id": 1, "more": None}, {"id": 2, "more": "x"}]
    assert [row["text"] for row in lab.read()[3:]] == [None, "text 4"]


def test_models_give_the_schema(lab: Lab) -> None:
    made = dt.datetime(2026, 3, 4, 5, 6, 7, 8)  # noqa: DTZ001
    with lab.catalog.begin() as tx:
        db = namespace_client.lancedb(tx)
        db.create_table("empty", schema=Sample, mode="overwrite")
        db.create_table("empty", schema=Sample, mode="overwrite")
        db.create_table("tagged", [Tagged(id=1, tags=["x", "y"], made=made)], mode="overwrite")
    assert lab.db.open_table("empty").schema == Sample.to_arrow_schema()
    assert lab.db.open_table("tagged").schema == Tagged.to_arrow_schema()
    assert lab.read("tagged") == [{"id": 1, "tags": ["x", "y"], "made": made}]


def test_vectors_that_lancedb_would_compute_are_wanted(lab: Lab) -> None:
    stated = b'[{"name": "n", "model": {}, "source_column": "text", "vector_column": "vector"}]'
    schema = Sample.to_arrow_schema().with_metadata({"embedding_functions": stated})
    with lab.catalog.begin() as tx:
        db = namespace_client.lancedb(tx)
        table = db.create_table("embedded", rows(0), schema, mode="overwrite")
        with pytest.raises(InvalidCall, match="column 'vector': lancedb computes it from 'text'"):
            table.add([{"id": 1, "text": "t"}])
        with pytest.raises(InvalidCall, match="column 'vector': lancedb computes it from 'text'"):
            table.merge_insert("id").when_matched_update_all().execute([{"id": 1, "text": "t"}])
        with pytest.raises(InvalidCall, match="column 'vector': lancedb computes it from 'text'"):
            db.create_table("other", [{"id": 1, "text": "t"}], schema)
        table.add(rows(1))
        assert table.count_rows() == 2


ONE_OF_EACH: dict[str, tuple[pa.DataType, list[Any]]] = {
    "bool": (pa.bool_(), [True, False, None]),
    "int8": (pa.int8(), [-128, np.int64(127)]),
    "int64": (pa.int64(), [-(2**63), 2**63 - 1]),
    "uint64": (pa.uint64(), [2**64 - 1]),
    "half": (pa.float16(), [0.5]),
    "float": (pa.float32(), [0.1, np.float32(1e-45), float("inf")]),
    "double": (pa.float64(), [0.1, 5e-324, -0.0, 1.7976931348623157e308, float("-inf"), 3]),
    "text": (pa.string(), ["it's", "", 'tab\tnew\nline ` " -- ; /* ünï €']),
    "long_text": (pa.large_string(), ["x"]),
    "bytes": (pa.binary(), [b"\x00'\xff", b""]),
    "two_bytes": (pa.binary(2), [b"ab"]),
    "day": (pa.date32(), [dt.date(1, 1, 2), dt.date(2026, 2, 28)]),
    "second": (pa.timestamp("s"), [dt.datetime(2026, 1, 2, 3, 4, 5)]),  # noqa: DTZ001
    "micro": (pa.timestamp("us"), [dt.datetime(1500, 1, 2, 3, 4, 5, 6)]),  # noqa: DTZ001
    "zoned": (pa.timestamp("us", "Europe/Berlin"), [dt.datetime(2026, 7, 2, 3, 4, 5, 6, dt.UTC)]),
    "time": (pa.time64("us"), [dt.time(3, 4, 5, 6)]),
    "span": (pa.duration("us"), [dt.timedelta(days=-1, microseconds=5)]),
    "decimal": (pa.decimal128(20, 3), [Decimal("-12345678901234567.125"), 7]),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), ["new"]),
    "vector": (VECTOR, [[0.1, -2.0], np.array([1.5, 2.5])]),
    "list": (pa.list_(pa.int64()), [[1, 2**40, 3]]),
    "texts": (pa.list_(pa.string()), [["it's", "b"]]),
}


@pytest.mark.parametrize("kind", ONE_OF_EACH)
def test_values_of_an_update_are_what_they_were(lab: Lab, kind: str) -> None:
    column_type, values = ONE_OF_EACH[kind]
    table = pa.table({"id": pa.array(range(len(values))), "x": pa.nulls(len(values), column_type)})
    with lab.catalog.begin() as tx:
        made = namespace_client.lancedb(tx).create_table("kinds", table, mode="overwrite")
        for number, value in enumerate(values):
            assert made.update(f"id = {number}", {"x": value}).rows_updated == 1
    plain = [value.tolist() if isinstance(value, np.ndarray) else value for value in values]
    expected = pa.array(plain, column_type.value_type if kind == "dictionary" else column_type).to_pylist()
    assert [repr(row["x"]) for row in lab.read("kinds")] == [repr(value) for value in expected]


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("second", dt.datetime(2026, 1, 2, 3, 4, 5, 6), "column 'second': expected timestamp"),  # noqa: DTZ001
        ("id", 2.5, "column 'id': expected int64, found 2.5"),
        ("id", "2", "column 'id': expected int64"),
        ("vector", [1.0], "column 'vector'"),
        ("list", [], "found an empty list or one with nulls"),
        ("list", [1, None], "found an empty list or one with nulls"),
        ("struct", {"a": 1}, "found one of struct<a: int64>: values_sql or merge_insert can"),
        ("none", 1, "expected some of"),
    ],
)
def test_a_value_that_is_none_of_its_column_is_refused(lab: Lab, column: str, value: Any, words: str) -> None:
    kinds = {
        "id": pa.int64(),
        "second": pa.timestamp("s"),
        "vector": VECTOR,
        "list": pa.list_(pa.int64()),
        "struct": pa.struct({"a": pa.int64()}),
    }
    with lab.catalog.begin() as tx:
        table = namespace_client.lancedb(tx).create_table("refusing", schema=pa.schema(kinds), mode="overwrite")
        with pytest.raises(InvalidCall) as refused:
            table.update(values={column: value})
        assert words in str(refused.value)


def test_arguments_that_contradict_each_other_are_refused(lab: Lab) -> None:
    with lab.catalog.begin() as tx:
        db = namespace_client.lancedb(tx)
        table = db.open_table("a")
        for call, words in (
            (lambda: table.update("id = 1"), "either values or values_sql"),
            (lambda: table.update(values={"id": 1}, values_sql={"id": "1"}), "either values or values_sql"),
            (lambda: table.add(rows(3), mode="upsert"), "mode 'upsert'"),
            (lambda: db.create_table("x", rows(1), mode="exist_ok"), "mode 'exist_ok'"),
            (lambda: db.create_table("a", rows(1)), "exists"),
            (lambda: db.create_table("x", rows(1), schema=dict), "expected a schema of Arrow or a LanceModel"),
            (lambda: db.create_table("x"), "needs rows or a schema"),
            (lambda: db.open_table("none"), "no such table"),
            (lambda: table.merge_insert("id").execute(rows(1)), "expected an action"),
            (lambda: table.delete(col("id") == 1), "expected an SQL text, found Expr"),
            (lambda: table.update(col("id") == 1, {"id": 1}), "expected an SQL text, found Expr"),
            (lambda: namespace_client.lancedb(tx, at=1), "a transaction is at the catalog version of its begin"),
            (lambda: namespace_client.lancedb(lab.catalog), "expected the version of the catalog as `at`"),
        ):
            with pytest.raises(InvalidCall) as refused:
                call()
            assert words in str(refused.value)
        for name in ("search", "create_index", "optimize", "checkout"):
            with pytest.raises(AttributeError, match=name):
                getattr(table, name)
    assert lab.ids() == [0, 1, 2]


def test_an_overwrite_keeps_the_schema(lab: Lab) -> None:
    with lab.catalog.begin() as tx:
        namespace_client.lancedb(tx).open_table("a").add([{"id": 5}], mode="overwrite")
    assert lab.read() == [{"id": 5, "text": None, "vector": None}]


def test_names_are_those_of_lancedb(lab: Lab) -> None:
    with lab.catalog.begin() as tx:
        db = namespace_client.lancedb(tx)
        db.create_table("with.dot", rows(1), mode="overwrite")
        db.create_table("t", rows(2), mode="overwrite", namespace_path=["lab", "inner"])
        assert db.open_table("t", namespace_path=["lab", "inner"]).count_rows() == 1
    assert lab.ids("with.dot") == [1]
    assert lab.db.open_table("t", namespace_path=["inner"]).count_rows() == 1


def test_in_process(tmp_path: Path) -> None:
    with Catalog.connect(str(tmp_path)) as catalog:
        with catalog.begin() as tx:
            table = namespace_client.lancedb(tx).create_table("t", rows(1))
            assert repr(table) == "<TransactionTable t>"
            assert table.to_lance().count_rows() == 1
        assert catalog.read("t").to_pylist() == rows(1)
