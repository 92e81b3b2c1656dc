"""Rows of a batch, by the columns that expressions may name."""

from __future__ import annotations

import pyarrow as pa
import pytest

from table_data.arrow.batch_sizes import batch_rows

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
