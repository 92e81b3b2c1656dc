"""New columns from rows and functions: one value for each row, and an error that says what was wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from namespace_client import Catalog, InvalidCall


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
