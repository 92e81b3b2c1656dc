"""Few rows are a table, of whose size pylance makes use; many are a stream."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from lance_core.storage.local import LocalStore
from lance_core.transaction.operations import Update
from lance_core.versions import read_version
from table_data.arrow import body as body_module
from table_data.arrow.body import ArrowBody
from table_data.arrow.file import table_or_stream
from table_data.arrow.sources import rows_of
from table_data.requests.merging import MergeClauses
from table_data.staging import merge

ROWS = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]})


def batches(count: int, made: list[int]) -> Iterator[pa.RecordBatch]:
    for number in range(count):
        made.append(number)
        yield pa.RecordBatch.from_pydict({"id": pa.array([number] * 100)})


def test_rows_up_to_a_bound_are_a_table() -> None:
    found = table_or_stream(pa.schema({"id": pa.int64()}), batches(3, []), most=3 * 800)
    assert isinstance(found, pa.Table)
    assert found["id"].to_pylist() == [0] * 100 + [1] * 100 + [2] * 100


def test_more_rows_are_made_as_they_are_asked_for() -> None:
    made: list[int] = []
    found = table_or_stream(pa.schema({"id": pa.int64()}), batches(9, made), most=3 * 800 - 1)
    assert isinstance(found, pa.RecordBatchReader)
    assert made == [0, 1, 2]
    assert found.read_all().num_rows == 900
    assert made == list(range(9))


def test_no_rows() -> None:
    assert table_or_stream(ROWS.schema, []) == ROWS.schema.empty_table()


def test_what_breaks_the_first_rows_is_raised_at_once() -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield ROWS.to_batches()[0]
        raise pa.ArrowInvalid("broken")

    with pytest.raises(pa.ArrowInvalid, match="broken"):
        table_or_stream(ROWS.schema, broken())


@pytest.mark.parametrize("data", [ROWS, ROWS.to_batches()[0], ROWS.to_pylist(), ROWS.to_pydict()])
def test_rows_in_memory_are_a_table(data: Any) -> None:
    assert rows_of(data, ROWS.schema) == ROWS


def test_rows_that_come_are_a_stream() -> None:
    assert isinstance(rows_of(ROWS.to_reader()), pa.RecordBatchReader)


@pytest.mark.parametrize("in_memory", [True, False])
def test_a_merge_gives_rows_in_memory_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_memory: bool
) -> None:
    dataset = lance.write_dataset(ROWS, tmp_path / "t")
    given: list[type] = []

    class Builder:
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def execute_uncommitted(self, rows: Any) -> Any:
            given.append(type(rows))
            return self.inner.execute_uncommitted(rows)

    build = merge._merge_builder
    monkeypatch.setattr(merge, "_merge_builder", lambda *given, **options: Builder(build(*given, **options)))
    sink = io.BytesIO()
    new = pa.table({"id": [3, 4], "name": ["x", "y"]})
    with pa.ipc.new_stream(sink, new.schema) as writer:
        writer.write_table(new)
    if not in_memory:
        monkeypatch.setattr(body_module, "table_or_stream", lambda schema, rows: table_or_stream(schema, rows, 0))
    body = ArrowBody(pa.py_buffer(sink.getvalue()))
    _, file = read_version(LocalStore(tmp_path), "t", 1)
    staged = merge.stage_merge(dataset, file.manifest, body.rows(), MergeClauses(("id",)))
    assert given == [pa.Table if in_memory else pa.RecordBatchReader]
    assert (staged.inserted, staged.updated) == (1, 1)
    assert isinstance(staged.operation, Update)
