"""Tables with dictionary columns, as pandas categoricals are: each call works after each other one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from namespace_client import Catalog, InvalidCall, MultiTableTransaction
from tests.emulators import Emulator

NARROW = pa.dictionary(pa.int8(), pa.string())
WIDE = pa.dictionary(pa.int32(), pa.string())
Call = Callable[[MultiTableTransaction, str], object]


def colours(first: int, count: int, kind: pa.DataType = NARROW) -> pa.Array:
    return pa.array([f"c{number}" for number in range(first, first + count)]).dictionary_encode().cast(kind)


def rows(*ids: int) -> pa.Table:
    colour = pa.array([None if each % 2 else "red" for each in ids], pa.string()).dictionary_encode().cast(NARROW)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "colour": colour,
            "in": pa.StructArray.from_arrays([colour], names=["colour"]),
        }
    )


CALLS: dict[str, Call] = {
    "append": lambda tx, table: tx.append(table, rows(20, 21)),
    "merge": lambda tx, table: tx.merge(table, rows(1, 30), on="id"),
    "update": lambda tx, table: tx.update(table, {"colour": "'blue'"}, where="id = 2"),
    "delete": lambda tx, table: tx.delete(table, "id = 3"),
    "add_columns": lambda tx, table: tx.add_columns(table, {"twice": "id * 2"}),
    "create_index": lambda tx, table: tx.create_index(table, "id", "BTREE"),
    "compact": lambda tx, table: tx.compact(table),
    "overwrite": lambda tx, table: tx.overwrite(table, rows(0, 1, 2, 3)),
}


@pytest.mark.parametrize("first", CALLS)
def test_calls_of_one_transaction(tmp_path: Path, first: str) -> None:
    with Catalog.connect(str(tmp_path / "a b%20#ü")) as catalog:
        for second, call in CALLS.items():
            if {first, second} <= {"add_columns"} or (first == "add_columns" and second in {"append", "merge"}):
                continue
            with catalog.begin() as tx:
                tx.create(second, rows(0, 1, 2, 3))
                if first != second or first != "create_index":
                    CALLS[first](tx, second)
                call(tx, second)
                staged = tx.table(second).to_table().sort_by("id").select(["id", "colour", "in"]).to_pylist()
            assert catalog.read(second).sort_by("id").select(["id", "colour", "in"]).to_pylist() == staged


def test_in_a_bucket(moto_server: Emulator) -> None:
    with Catalog.connect(moto_server.new_root(), storage_options=moto_server.storage_options) as catalog:
        with catalog.begin() as tx:
            tx.create("t", rows(0, 1))
            tx.append("t", rows(2))
            tx.update("t", {"colour": "'blue'"}, where="id = 2")
        assert catalog.read("t").sort_by("id")["colour"].to_pylist() == ["red", None, "blue"]


def test_rows_of_writers_after_a_change(tmp_path: Path) -> None:
    with Catalog.connect(str(tmp_path)) as catalog, catalog.begin() as tx:
        tx.create("t", rows(0, 1))
        writer = tx.row_writer("t")
        tx.add_written(writer, [writer.write(rows(2)), writer.write(rows(4, 6))])
        assert tx.table("t").count_rows() == 5


def test_indices_get_wide_enough_for_all_values_to_come(tmp_path: Path) -> None:
    """Each part has 100 values, and fits 8 bits alone."""
    with Catalog.connect(str(tmp_path)) as catalog:
        with catalog.begin() as tx:
            tx.create("t", pa.table({"c": pa.chunked_array([colours(0, 100), colours(100, 100)])}))
            tx.append("t", pa.table({"c": colours(200, 100)}))
            tx.update("t", {"c": "c"})
            tx.compact("t")
            tx.add_columns("t", lambda batch: pa.record_batch({"d": batch.column("c").cast(WIDE)}))
        found = catalog.read("t")
        assert found.schema.field("c").type == WIDE
        assert sorted(found["c"].to_pylist()) == sorted(f"c{number}" for number in range(300))
        assert found["d"].to_pylist() == found["c"].to_pylist()


def test_a_table_with_narrow_indices_takes_what_they_count(tmp_path: Path) -> None:
    """Stock pylance makes such tables, and an overwrite makes the indices wide."""
    with Catalog.connect(str(tmp_path)) as catalog:
        lance.write_dataset(
            pa.table({"c": colours(0, 100)}), namespace_client=catalog.access.namespace, table_id=["t"], mode="create"
        )
        with catalog.begin() as tx:
            tx.append("t", pa.table({"c": colours(100, 100)}))
        with pytest.raises(InvalidCall, match="column 'c': expected"), catalog.begin() as tx:
            tx.append("t", pa.table({"c": pa.chunked_array([colours(0, 100), colours(100, 100)])}))
        with pytest.raises(InvalidCall, match="column 'c': expected"), catalog.begin() as tx:
            tx.merge("t", pa.table({"c": pa.chunked_array([colours(200, 100), colours(300, 100)])}), on="c")
        with pytest.raises(InvalidCall, match="column 'c': expected"), catalog.begin() as tx:
            tx.update("t", {"c": "c"})
        with pytest.raises(Exception, match="nothing was committed"), catalog.begin() as tx:
            tx.compact("t")
        assert len(catalog.read("t")) == 200
        with catalog.begin() as tx:
            tx.overwrite("t", catalog.read("t"))
            tx.append("t", pa.table({"c": colours(200, 100)}))
            tx.compact("t")
        assert len(set(catalog.read("t")["c"].to_pylist())) == 300
