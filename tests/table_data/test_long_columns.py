"""Every read of rows goes on in batches of few rows where pylance finds a column of a batch too long.

It guesses the bytes of a batch from those that are stored, which are far fewer where values are the same. To make it
wrong takes more than 2 GiB, so here its scans fail as it does then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from lance_core.data import FEW_ROWS
from namespace_client import Catalog
from spark_catalog.graph_writes.version_rows import VersionRows
from spark_catalog.tables.pinned import PinnedTable
from spark_catalog.tables.reading import read_split
from spark_catalog.tables.scans import Scan
from spark_catalog.tables.splits import Piece, Split
from table_data.operations.querying import query_table
from tests.cli.commands import parsed, printed

SCHEMA = pa.schema([("id", pa.int64())])
IDS = list(range(300))


class _FailingScanner:
    """A scanner whose batches fail after the first one."""

    def __init__(self, scanner: lance.LanceScanner) -> None:
        self._scanner = scanner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scanner, name)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        for batch in self._scanner.to_batches():
            yield batch.slice(0, 10)
            raise ValueError("LanceError(Arrow): Offset overflow error: 2147483648")

    def to_reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self._scanner.to_reader().schema, self.to_batches())

    def to_table(self) -> pa.Table:
        return self.to_reader().read_all()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    root = str(tmp_path / "catalog")
    with Catalog.connect(root) as catalog:
        catalog.create("t", pa.table({"id": IDS[:150]}))
        catalog.append("t", {"id": IDS[150:]})
    for kind in (lance.LanceDataset, lance.LanceFragment):
        scanner = kind.scanner

        def scan(self: Any, *arguments: Any, scanner: Any = scanner, **options: Any) -> Any:
            found = scanner(self, *arguments, **options)
            return found if options.get("batch_size") == FEW_ROWS else _FailingScanner(found)

        monkeypatch.setattr(kind, "scanner", scan)
    return root


def numbers(batches: Any) -> list[int]:
    return [number for batch in batches for number in batch.column(0).to_pylist()]


def test_reads_of_a_catalog_and_of_a_command(root: str, tmp_path: Path) -> None:
    with Catalog.connect(root) as catalog:
        assert numbers(catalog.read("t").to_batches()) == IDS
        with catalog.begin() as tx:
            assert numbers(tx.table("t").to_table().to_batches()) == IDS
    assert numbers_of(parsed("read", "t", "--root", root)) == IDS
    printed("read", "t", "-o", str(tmp_path / "t.csv"), "--root", root)
    assert (tmp_path / "t.csv").read_text().split()[1:] == [str(number) for number in IDS]


def numbers_of(rows: list[dict[str, int]]) -> list[int]:
    return [row["id"] for row in rows]


def test_rows_of_a_dataset_that_are_added(root: str) -> None:
    with Catalog.connect(root) as catalog:
        assert catalog.append("t", catalog.dataset("t")) == len(IDS)
        assert sorted(numbers(catalog.read("t").to_batches())) == sorted(IDS * 2)


def test_a_query(root: str) -> None:
    with Catalog.connect(root) as catalog:
        dataset = catalog.dataset("t")
    assert numbers(query_table(dataset, {"id": ["t"], "k": 0})) == IDS  # type: ignore[typeddict-unknown-key]
    found = query_table(dataset, {"id": ["t"], "k": 200, "offset": 20, "filter": "id > 4"})  # type: ignore[typeddict-unknown-key]
    assert numbers(found) == IDS[25:225]


def test_a_comparison(root: str) -> None:
    with Catalog.connect(root) as catalog:
        found = catalog.row_diff("t", 1, catalog.access.state().version, limit=3)
    assert (found.num_added, found.num_removed, found.added_rows["id"].to_pylist()) == (150, 0, [150, 151, 152])


READS: dict[str, Callable[[PinnedTable], Iterator[pa.RecordBatch]]] = {
    "version": lambda table: VersionRows(table, SCHEMA, 300).batches(["id"]),
    "fragments": lambda table: VersionRows(table, SCHEMA, 300, frozenset({0, 1})).batches(["id"], addresses=True),
    "split": lambda table: read_split(table, Scan(("id",)), Split((Piece(0), Piece(1)), 300, 300), SCHEMA),
    "parts": lambda table: read_split(
        table, Scan(("id",)), Split((Piece(0, 0, 100), Piece(0, 100, 50), Piece(1, 0, 150)), 300, 300), SCHEMA
    ),
}


@pytest.mark.parametrize("read", READS)
def test_reads_of_spark(root: str, read: str) -> None:
    with Catalog.connect(root) as catalog:
        uri = catalog.dataset("t").uri
    assert numbers(READS[read](PinnedTable(uri, 2, {}))) == IDS
