"""The files of an update on a remote store: new rows and deletion files are written at once."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.fragment import write_fragments

from lance_core.storage.local import LocalStore
from lance_core.table_files import TableFiles
from lance_core.versions import read_version
from table_data.staging import rows
from tests.storage.latency import LatencyStore


class NotedStore(LatencyStore):
    """Notes when a file was written."""

    def __init__(self, root: Path) -> None:
        super().__init__(LocalStore(root, "none"), 0.0)
        self.has_written = threading.Event()

    def put(self, path: str, data: bytes, *, durable: bool = True) -> str:
        tag = super().put(path, data, durable=durable)
        self.has_written.set()
        return tag


@pytest.fixture
def store(tmp_path: Path) -> Iterator[NotedStore]:
    lance.write_dataset(pa.table({"a": range(100), "b": [0] * 100}), tmp_path)
    opened = NotedStore(tmp_path)
    yield opened
    opened.close()


def update(store: NotedStore, path: Path) -> tuple[Any, int]:
    _, file = read_version(store, "", 1)
    return rows.stage_update(lance.dataset(path), TableFiles(store, ""), file, {"b": "a + 1"}, "a < 10")


def test_rows_and_deletion_files_are_written_at_once(
    store: NotedStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(*args: Any, **kwargs: Any) -> Any:
        assert store.has_written.wait(30), "expected the deletion file to be written beside the rows"
        return write_fragments(*args, **kwargs)

    monkeypatch.setattr(rows, "write_fragments", write)
    operation, count = update(store, tmp_path)
    assert count == 10
    assert [fragment.physical_rows for fragment in operation.new] == [10]
    assert [fragment.deletion_file.num_deleted_rows for fragment in operation.updated] == [10]


def test_rows_that_come_as_a_stream_are_all_found_first(
    store: NotedStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def as_stream(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(schema, batches)

    def write(*args: Any, **kwargs: Any) -> Any:
        written = write_fragments(*args, **kwargs)
        assert not store.has_written.is_set(), "expected no deletion file before all rows were found"
        return written

    monkeypatch.setattr(rows, "table_or_stream", as_stream)
    monkeypatch.setattr(rows, "write_fragments", write)
    operation, count = update(store, tmp_path)
    assert count == 10
    assert [fragment.deletion_file.num_deleted_rows for fragment in operation.updated] == [10]
