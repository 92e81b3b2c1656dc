"""Rows of a batch, by the columns that expressions may name."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from table_data.arrow.batch_sizes import BATCH_BYTES, batch_rows, in_fewer_rows, table_of

SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "Small": pa.int8(),
        "price": pa.decimal128(20, 2),
        "text": pa.string(),
        "kind": pa.dictionary(pa.int8(), pa.string()),
        "vector": pa.list_(pa.float32(), 128),
        "inner": pa.struct({"id": pa.int64()}),
    }
)
NARROW = pa.schema({f"column{number:03}": pa.int64() for number in range(100)})


@pytest.mark.parametrize("expressions", [["id"], ["id", "small > 3"], ["ID % 7 = 1"], ["price"], []])
def test_columns_of_one_width(expressions: list[str]) -> None:
    assert batch_rows(SCHEMA, expressions) == 65_536


@pytest.mark.parametrize(
    "expressions",
    [None, ["id", "text"], ["`text` = 'a'"], ["kind"], ["vector"], ["inner.id"], ["id", "TEXT like 'a%'"]],
)
def test_other_columns(expressions: list[str] | None) -> None:
    assert batch_rows(SCHEMA, expressions) is None


def test_a_batch_stays_within_its_bytes() -> None:
    assert batch_rows(NARROW, [f"column{number:03}" for number in range(16)]) == 32_768
    assert batch_rows(NARROW, [f"column{number:03}" for number in range(32)]) == 16_384
    assert batch_rows(NARROW, None) is None


def test_a_column_of_a_batch_that_is_too_long_is_read_in_fewer_rows() -> None:
    """Pylance guesses the bytes of the first batch. To make it wrong takes more than 2 GiB."""
    asked: list[int | None] = []

    class Dataset:
        """One whose batches are too long unless they have few rows."""

        def to_table(self, *, batch_size: int | None = None, batch_size_bytes: int, columns: list[str]) -> pa.Table:
            asked.append(batch_size)
            if batch_size is None:
                raise OSError("Arrow error: Offset overflow error: 2163212288")
            return pa.table({columns[0]: [batch_size_bytes]})

    few = table_of(Dataset(), columns=["a"])
    assert few["a"].to_pylist() == [BATCH_BYTES]

    def batches(most: int | None) -> Iterator[pa.RecordBatch]:
        if most is None:
            raise OSError("Arrow error: Offset overflow error: 2163212288")
        yield pa.record_batch({"a": [most]})

    assert [batch.to_pydict() for batch in in_fewer_rows(batches(None), batches)] == [{"a": [asked[-1]]}]
    rows = [pa.record_batch({"a": [1]}), pa.record_batch({"a": [2]})]
    assert list(in_fewer_rows(rows, batches)) == rows
    assert list(in_fewer_rows([], batches)) == []


def test_another_error_of_a_scan_is_raised() -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield from ()
        raise OSError("Not found")

    with pytest.raises(OSError, match="Not found"):
        list(in_fewer_rows(broken(), lambda _: []))


def test_a_later_batch_that_is_too_long_is_read_in_fewer_rows() -> None:
    """What was read before it is not read twice."""
    again = [pa.record_batch({"a": list(part)}) for part in (range(4), range(4, 8), range(8, 11))]

    def batches(until: int) -> Iterator[pa.RecordBatch]:
        for start in range(0, until, 3):
            yield pa.record_batch({"a": [start, start + 1, start + 2]})
        raise OSError("Arrow error: Offset overflow error: 2163212288")

    for until in (0, 3, 6, 9):
        found = list(in_fewer_rows(batches(until), lambda most: again if most == 64 else []))
        assert [value for batch in found for value in batch["a"].to_pylist()] == list(range(11)), until
