"""`PlannedScan`: a scan of one version, divided into splits. Planned on the driver, from metadata alone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import lance
import pyarrow as pa
from pyspark.sql.types import StructType

from spark_catalog.tables.pinned import PinnedTable, committed_ms
from spark_catalog.tables.reading import scanner_options
from spark_catalog.tables.scans import METADATA_COLUMNS, SCORE_COLUMNS, Scan
from spark_catalog.tables.splits import MAX_BYTES, MAX_ROWS, MIN_ROWS, FragmentSize, Split, plan_splits
from spark_catalog.tables.types import row_width, spark_schema
from table_data.errors import InvalidCall
from table_data.pylance_errors import plain_text

if TYPE_CHECKING:
    from lance.fragment import FragmentMetadata


@dataclass(frozen=True, slots=True)
class PlannedScan:
    """A scan and its splits.

    Attributes:
        table: The table and its version.
        scan: What is read.
        schema: Schema of the rows in Spark.
        splits: What the tasks read, in order. None for a table without rows.
        rows: Number of rows of the table, or the limit if that is less. A filter may leave fewer.
        bytes: Estimated size of these rows in memory. Never less than the size of their files.
    """

    table: PinnedTable
    scan: Scan
    schema: StructType
    splits: tuple[Split, ...]
    rows: int
    bytes: int


def plan_scan(
    table: PinnedTable,
    scan: Scan | None = None,
    *,
    max_rows: int = MAX_ROWS,
    max_bytes: int = MAX_BYTES,
    tasks: int = 1,
    only: Collection[int] | None = None,
) -> PlannedScan:
    """Divide a scan into splits. Reads the manifest and no data.

    A fragment is divided among tasks only if the scan has no filter, because a part of a fragment can be filtered no
    faster than all of it. A search, and a filter with a limit, are one split.

    Args:
        table: The table and its version.
        scan: What is read; all columns and rows if None.
        max_rows: Rows of a split.
        max_bytes: Bytes of a split.
        tasks: Number of tasks that run at the same time. Splits are made smaller for them, down to `MIN_ROWS`.
        only: Ids of the fragments to read, all of them if None. Not for a search.

    Returns:
        The splits, the schema and the size of the result.

    Raises:
        InvalidCall: There is no such column, a type has no counterpart in Spark, or the filter or search does not fit
            the table.
        VersionGone: There is no such version.
    """
    dataset = table.open()
    scan = scan or Scan()
    stored = stored_schema(table, dataset.schema, scan)
    scan = replace(scan, columns=tuple(stored.names))
    check_scan(table, dataset, scan)
    fragments = [fragment.metadata for fragment in dataset.get_fragments()]
    share = row_width(stored) / max(1, row_width(dataset.schema))
    chosen = [fragment for fragment in fragments if only is None or fragment.id in only]
    sizes = [_size(fragment, share, dataset.schema) for fragment in chosen]
    evenly = -(-sum(size.rows for size in sizes) // max(1, tasks))
    splits = divide(scan, sizes, min(max_rows, max(evenly, MIN_ROWS)), max_bytes)
    rows = sum(split.rows for split in splits)
    if scan.limit is not None:
        rows = min(rows, scan.limit)
    if scan.nearest is not None:
        rows = min(rows, scan.nearest.k)
    total = max(1, sum(size.rows for size in sizes))
    stored_bytes = sum(size.bytes for size in sizes) * rows // total
    pinned = table if table.manifest is not None else replace(table, committed_ms=committed_ms(dataset))
    return PlannedScan(
        pinned, scan, spark_schema(stored), tuple(splits), rows, max(rows * row_width(stored), stored_bytes)
    )


def stored_schema(table: PinnedTable, schema: pa.Schema, scan: Scan) -> pa.Schema:
    """The stored types of the columns of a scan. Raises `InvalidCall` for a column that there is not."""
    if scan.columns is None:
        return schema
    extra = {name: pa.int64() for name in METADATA_COLUMNS}
    if scan.is_search:
        extra |= {name: pa.float32() for name in SCORE_COLUMNS}
    unknown = [name for name in scan.columns if name not in schema.names and name not in extra]
    if unknown or len(set(scan.columns)) != len(scan.columns):
        raise InvalidCall(f"{table.uri}: expected columns among {schema.names}, found {list(scan.columns)}")
    return pa.schema(
        [schema.field(name) if name in schema.names else pa.field(name, extra[name]) for name in scan.columns]
    )


def count_rows(table: PinnedTable) -> int:
    """The number of rows of a version, from its manifest."""
    return sum(_live_rows(fragment.metadata) for fragment in table.open().get_fragments())


def check_scan(table: PinnedTable, dataset: lance.LanceDataset, scan: Scan) -> None:
    """Let pylance plan the filter and the search, without reading rows. Raises `InvalidCall` if they do not fit."""
    if scan.nearest is not None and scan.text is not None:
        raise InvalidCall(f"{table.uri}: expected a vector search or a full-text search, found both")
    if scan.filter is None and not scan.is_search:
        return
    try:
        dataset.scanner(**scanner_options(scan)).explain_plan()
    except (ValueError, OSError) as refusal:
        asked = " and ".join(
            f"{what} {given!r}"
            for what, given in (("filter", scan.filter), ("search", scan.nearest or scan.text))
            if given is not None
        )
        raise InvalidCall(f"{table.uri}: {asked}: {plain_text(refusal)}") from None


def divide(scan: Scan, sizes: Sequence[FragmentSize], max_rows: int, max_bytes: int) -> list[Split]:
    """The splits of a scan, which together return no more than its limit of rows."""
    if scan.is_search or (scan.filter is not None and scan.limit is not None):
        return plan_splits(sizes, max_rows=2**63, max_bytes=2**63, divisible=False)
    return plan_splits(
        sizes,
        max_rows=max_rows,
        max_bytes=max_bytes,
        divisible=scan.filter is None,
        limit=scan.limit if scan.filter is None else None,
    )


def _size(fragment: FragmentMetadata, share: float, schema: pa.Schema) -> FragmentSize:
    rows = _live_rows(fragment)
    sizes = [file.file_size_bytes for file in fragment.files]
    known = sum(size for size in sizes if size)
    stored = known if all(sizes) else max(known, fragment.physical_rows * row_width(schema))
    return FragmentSize(fragment.id, rows, int(stored * min(1.0, share)))


def _live_rows(fragment: FragmentMetadata) -> int:
    return int(fragment.physical_rows - fragment.num_deletions)
