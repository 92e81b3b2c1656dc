"""New columns from rows and functions: one value for each row, and an error that says what was wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from namespace_client import Catalog, InvalidCall

FORMS = pytest.mark.parametrize(
    "form", [lambda rows: rows, lambda rows: lambda _: rows.to_batches()[0]], ids=["rows", "function"]
)


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    """A table of three fragments, of which one row is deleted."""
    catalog = Catalog.connect(str(tmp_path))
    with catalog.begin() as tx:
        tx.create("t", {"id": [0, 1, 2]})
        tx.append("t", {"id": [3, 99]})
        tx.append("t", {"id": [4, 5]})
        tx.delete("t", "id = 99")
    return catalog


def values(count: int) -> pa.Table:
    return pa.table({"v": range(count), "in": [{"deep": {"x": each}} for each in range(count)]})


@pytest.mark.parametrize(
    "form",
    [lambda rows: rows, lambda rows: rows.to_reader(max_chunksize=4), lambda rows: rows.to_pylist()],
    ids=["table", "stream", "list"],
)
def test_rows_are_those_of_the_table_in_order(catalog: Catalog, form: Callable[[pa.Table], Any]) -> None:
    with catalog.begin() as tx:
        tx.add_columns("t", form(values(6)))
    found = catalog.read("t")
    assert found["id"].to_pylist() == found["v"].to_pylist() == [0, 1, 2, 3, 4, 5]
    assert [each["deep"]["x"] for each in found["in"].to_pylist()] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("count", [0, 2, 3, 5, 7, 12])
def test_more_or_fewer_rows_are_refused(catalog: Catalog, count: int) -> None:
    with pytest.raises(InvalidCall, match="new columns: expected"), catalog.begin() as tx:
        tx.add_columns("t", values(count).to_reader(max_chunksize=2))
    assert catalog.read("t").column_names == ["id"]


@pytest.mark.parametrize("found", [None, {"v": [1]}, pa.table({"v": [1]})], ids=["nothing", "dict", "table"])
def test_what_a_function_returns(catalog: Catalog, found: object) -> None:
    expected = f"expected a RecordBatch or a DataFrame, found {type(found).__name__}"
    with pytest.raises(InvalidCall, match=expected), catalog.begin() as tx:
        tx.add_columns("t", lambda _: found)


def test_a_checkpoint_is_not_ignored(catalog: Catalog, tmp_path: Path) -> None:
    function = lance.batch_udf(pa.schema([("v", pa.int64())]), checkpoint_file=tmp_path / "checkpoint")
    with pytest.raises(InvalidCall, match="checkpoint_file: expected one without"), catalog.begin() as tx:
        tx.add_columns("t", function(lambda batch: pa.record_batch({"v": batch.column("id")})))


@pytest.mark.parametrize(
    "form", [lambda rows: rows, lambda rows: lambda _: rows.to_batches()[0]], ids=["rows", "function"]
)
def test_a_type_that_lance_has_not_is_refused_by_name(catalog: Catalog, form: Callable[[pa.Table], Any]) -> None:
    for kind in (pa.list_view(pa.int8()), pa.month_day_nano_interval(), pa.struct([])):
        with pytest.raises(InvalidCall, match="column 'wrong'"), catalog.begin() as tx:
            tx.add_columns("t", form(pa.table({"wrong": pa.nulls(3, kind)})))


BLOBS = pa.schema([pa.field("v", pa.large_binary(), metadata={"lance-encoding:blob": "true"})])


@FORMS
def test_blobs_are_refused(catalog: Catalog, form: Callable[[pa.Table], Any]) -> None:
    """Pylance could not read them together with those of rows that are appended later."""
    nested = pa.schema([pa.field("in", pa.struct(list(BLOBS)))])
    for schema in (BLOBS, nested):
        rows = pa.table([pa.nulls(6, schema.types[0])], schema=schema)
        for columns in (form(rows), schema):
            with pytest.raises(InvalidCall, match="expected none of blobs"), catalog.begin() as tx:
                tx.add_columns("t", columns)


def test_blobs_of_an_older_format(tmp_path: Path) -> None:
    """There each writer has the same layout."""
    catalog = Catalog.connect(str(tmp_path))
    lance.write_dataset(
        pa.table({"id": [0, 1]}),
        namespace_client=catalog.access.namespace,
        table_id=["t"],
        mode="create",
        data_storage_version="2.1",
    )
    with catalog.begin() as tx:
        tx.add_columns("t", pa.table([pa.array([b"a", b"b"], pa.large_binary())], schema=BLOBS))
        more = pa.schema([("id", pa.int64()), *BLOBS])
        tx.append("t", pa.table([pa.array([2]), pa.array([b"c"], pa.large_binary())], schema=more))
        tx.compact("t")
    read = catalog.dataset("t").to_table(blob_handling="all_binary")
    assert dict(zip(read["id"].to_pylist(), read["v"].to_pylist(), strict=True)) == {0: b"a", 1: b"b", 2: b"c"}
