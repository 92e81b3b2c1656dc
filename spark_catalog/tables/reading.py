"""The batches of a split. Runs in tasks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any, Final

import lance
import pyarrow as pa

from spark_catalog.tables.pinned import PinnedTable
from spark_catalog.tables.scans import ROW_ID, Scan
from spark_catalog.tables.splits import Piece, Split
from spark_catalog.tables.types import cast_batch
from table_data.arrow.batch_sizes import in_fewer_rows

BATCH_ROWS: Final = 65_536
_BATCH_BYTES: Final = 16 << 20
_READ_AHEAD: Final = 128 << 20
"""Bytes that a scan reads ahead. Pylance's default is gigabytes, and an executor runs several tasks."""

_SOUGHT_INTEGER: Final = re.compile(r"\((`[^`]+`|\w+) = -?\d+\)")
_ROWS_OF_ONE_FOUND: Final = 1000
"""One row among so many is read alone in about the time in which a scan reads the columns of all."""


def read_split(table: PinnedTable, scan: Scan, split: Split, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Read the rows of a split.

    Args:
        table: The table and its version.
        scan: What is read.
        split: One split of `plan_scan` for this scan.
        schema: Schema of the batches, with the columns of the scan in order.

    Yields:
        Batches of at most `BATCH_ROWS` rows with exactly that schema. Without columns they hold a number of rows only.
    """
    if not scan.columns and scan.filter is None and not scan.is_search:
        yield from _empty_rows(split.rows)
        return
    dataset = table.opened()
    late: dict[str, Any] = {"late_materialization": True} if _finds_few(dataset, scan, split) else {}
    for scanner in _scanners(dataset, scan, split):
        for batch in _batches(partial(scanner, **late)):
            if not batch.num_rows:
                continue
            if not scan.columns:
                yield batch.select([])
            elif batch.schema.names == schema.names:
                yield cast_batch(batch, schema)
            else:
                yield cast_batch(batch.select(schema.names), schema)


def _batches(scanner: Callable[..., lance.LanceScanner]) -> Iterator[pa.RecordBatch]:
    return in_fewer_rows(scanner().to_batches(), lambda most: scanner(most).to_batches())


def count_split(table: PinnedTable, scan: Scan, split: Split) -> int:
    """Number of rows of a split that match the filter of the scan. Reads the columns of the filter only."""
    return sum(scanner().count_rows() for scanner in _scanners(table.opened(), scan, split))


def scanner_options(scan: Scan) -> dict[str, Any]:
    """The arguments of pylance for the columns, filter, limit and search of a scan."""
    options: dict[str, Any] = {
        "columns": list(scan.columns or ()) or [ROW_ID],
        "filter": scan.filter,
        "limit": scan.limit,
        "blob_handling": "all_binary",
    }
    if scan.is_search:
        options |= {"prefilter": True, "disable_scoring_autoprojection": True}
    if scan.nearest is not None:
        options |= {"nearest": scan.nearest.options(), "limit": None}
    if scan.text is not None:
        options["full_text_query"] = scan.text.options()
    return options


def _finds_few(dataset: lance.LanceDataset, scan: Scan, split: Split) -> bool:
    """Whether a filter that seeks an integer finds so few rows that their other columns are better read after it.

    The column of the filter is read for it once more. That takes little time for numbers, and too much for strings.
    """
    if scan.filter is None or scan.is_search or not _SOUGHT_INTEGER.search(scan.filter):
        return False
    counted = replace(scan, limit=None)
    found: int = sum(scanner().count_rows() for scanner in _scanners(dataset, counted, split))
    return found * _ROWS_OF_ONE_FOUND <= split.rows


def _scanners(dataset: lance.LanceDataset, scan: Scan, split: Split) -> Iterator[Callable[..., lance.LanceScanner]]:
    """What make the scanners, with so many rows in a batch."""

    def made(most: int = BATCH_ROWS, **given: Any) -> lance.LanceScanner:
        options = scanner_options(scan) | {"batch_size_bytes": _BATCH_BYTES, "io_buffer_size": _READ_AHEAD}
        return dataset.scanner(**options | {"batch_size": most} | given)

    if scan.is_search:
        yield made
        return
    for is_whole, pieces in groupby(split.pieces, key=lambda piece: piece.rows is None):
        if is_whole:
            yield partial(made, fragments=_fragments(dataset, list(pieces)))
            continue
        for piece in pieces:
            part: dict[str, Any] = {"offset": piece.start or None, "limit": piece.rows}
            yield partial(made, **part, fragments=_fragments(dataset, [piece]))


def _fragments(dataset: lance.LanceDataset, pieces: Sequence[Piece]) -> list[lance.LanceFragment]:
    return [dataset.get_fragment(piece.fragment) for piece in pieces]


def _empty_rows(count: int) -> Iterator[pa.RecordBatch]:
    """Batches without columns that hold `count` rows."""
    for start in range(0, count, BATCH_ROWS):
        yield pa.record_batch([pa.nulls(min(BATCH_ROWS, count - start))], names=["rows"]).select([])
