"""What Spark's tasks do with dictionary columns and with indices. Nothing here starts Spark."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from lance_core.format.manifest import serialized_manifest
from lance_core.storage.local import LocalStore
from lance_core.versions import read_version
from spark_catalog.graph_writes.calls.deletes import stage_deletes
from spark_catalog.tables.pinned import PinnedTable
from spark_catalog.tasks.row_writes import RowWrite, write_rows
from spark_catalog.tasks.staging import StageTarget, write_files
from table_data.errors import InvalidCall

NARROW = pa.dictionary(pa.int8(), pa.string())


def texts(first: int, count: int) -> pa.RecordBatch:
    return pa.record_batch({"c": [f"c{number}" for number in range(first, first + count)]})


@pytest.fixture
def narrow(tmp_path: Path) -> lance.LanceDataset:
    """A table of stock pylance, whose indices count 128 values."""
    colours = texts(0, 100).column("c").dictionary_encode().cast(NARROW)
    return lance.write_dataset(pa.table({"c": colours}), tmp_path / "t")


def test_rows_that_outgrow_the_indices_are_refused(narrow: lance.LanceDataset) -> None:
    pinned = PinnedTable(narrow.uri, narrow.version)
    target = StageTarget("t", narrow.uri, narrow.schema, pinned)
    write = RowWrite("t", narrow.uri, narrow.schema, pinned)
    parts = [texts(0, 100), texts(100, 100)]
    fitting = [part.cast(narrow.schema) for part in parts]
    assert write_rows(write, iter(parts[:1])).inserted_rows == 100
    with pytest.raises(InvalidCall, match="column 'c': expected no more values"):
        write_rows(write, iter(parts))
    with pytest.raises(InvalidCall, match="column 'c': expected no more values"):
        write_files(pa.RecordBatchReader.from_batches(narrow.schema, fitting), target)


def test_a_version_that_is_not_published_is_opened(narrow: lance.LanceDataset, tmp_path: Path) -> None:
    file = read_version(LocalStore(tmp_path / "t"), "", narrow.version)[1]
    manifest = serialized_manifest(file)
    for version in (tmp_path / "t" / "_versions").iterdir():
        version.unlink()
    opened = PinnedTable(narrow.uri, file.version, manifest=manifest).open()
    assert opened.to_table()["c"].to_pylist() == [f"c{number}" for number in range(100)]


def test_an_index_does_not_keep_rows_from_deletion(tmp_path: Path) -> None:
    """By a BITMAP index pylance does not find the rows with NULL."""
    rows = pa.table({"flag": [True, None, False, None], "n": range(4)})
    lance.write_dataset(rows, tmp_path / "t").create_scalar_index("flag", "BITMAP")
    dataset = PinnedTable(str(tmp_path / "t"), lance.dataset(tmp_path / "t").version).open()
    for predicate, deleted in (("NOT (flag IS TRUE)", 3), ("NOT (flag IS TRUE) AND n > 9", 0), ("flag", 1)):
        target = StageTarget("t", dataset.uri, dataset.schema, PinnedTable(dataset.uri, dataset.version))
        assert stage_deletes(None, target, predicate).rows == deleted  # type: ignore[arg-type]
    [fragment] = dataset.get_fragments()
    assert fragment.delete("n >= 0") is None
