"""Plans of scans: partitions by fragment, and the size that Spark's planner gets."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from lance_core.data import arrow_schema
from lance_core.format.deletion import live_row_count
from lance_core.proto import lance_table_pb2 as pb
from spark_catalog.options import named_read_options
from spark_catalog.sql.schemas import parse_schema
from spark_catalog.sql.tables import Versions, resolve
from spark_catalog.sql.transactions import SqlTransaction
from spark_catalog.tables.planned import check_scan, divide
from spark_catalog.tables.split_server import SplitRead, encode_split
from spark_catalog.tables.splits import MIN_ROWS, FragmentSize, Split
from spark_catalog.tables.types import arrow_schema as shown_arrow_schema
from spark_catalog.tables.types import row_width
from table_data.batch_operations import Json


def plan_scan(
    versions: Versions,
    transaction: SqlTransaction | None,
    *,
    table: list[str],
    ref: Json,
    schema: Json,
    filter: str | None,  # noqa: A002 - the name in the call
    limit: int,
    counts: bool,
    tasks: int,
) -> Json:
    """The reads of the tasks of a scan, its rows before the filter, and their bytes in memory.

    Args:
        versions: Manifests of published versions.
        transaction: The transaction that the table is read in.
        table: Name of the table.
        ref: The version.
        schema: Columns of the rows in Spark; for a count, those that hold it.
        filter: SQL expression of Lance.
        limit: Largest number of rows of each task, or -1.
        counts: Whether each task returns one row with the number of its rows.
        tasks: Number of tasks that run at the same time.
    """
    del table
    version, file = resolve(versions, transaction, ref)
    given = named_read_options(ref.get("options") or {})
    shown = parse_schema(schema)
    stored = arrow_schema(file.manifest.fields)
    read = pa.schema([stored.field(name) for name in shown.names if name in stored.names])
    share = row_width(read) / row_width(stored)
    sizes = [_size(fragment, share) for fragment in file.manifest.fragments]
    rows = sum(size.rows for size in sizes)
    where = _both(given.filter, filter)
    scan = replace(given.scan(() if counts else shown.names), filter=where)
    if given.filter is not None or scan.is_search:
        check_scan(version, version.open(), scan)
    if scan.limit is None and where is None and limit >= 0:
        scan = replace(scan, limit=limit)
    splits = divide(
        scan, sizes, min(given.split_rows, max(-(-rows // tasks), min(MIN_ROWS, given.split_rows))), given.split_bytes
    )
    if scan.limit is None and limit >= 0:  # of each task
        scan = replace(scan, limit=limit)
    elif scan.limit is not None:
        rows = min(rows, scan.limit)
    if counts:
        splits = splits or [Split((), 0, 0)]
    return {
        "read": SplitRead(version, scan, shown_arrow_schema(shown), counts).encode(),
        "splits": [encode_split(split) for split in splits],
        "rows": len(splits) if counts else rows,
        "bytes": max(rows * row_width(read), sum(size.bytes for size in sizes), 1),
        "version": file.version,
    }


def _both(first: str | None, second: str | None) -> str | None:
    """The filter that both filters hold. A comment may end the first one."""
    if first is None or second is None:
        return first or second
    return f"({first}\n) AND ({second})"


def count_rows(versions: Versions, transaction: SqlTransaction | None, ref: Json) -> int:
    """Number of rows, from the manifest."""
    _, file = resolve(versions, transaction, ref)
    return sum(map(live_row_count, file.manifest.fragments))


def _size(fragment: pb.DataFragment, share: float) -> FragmentSize:
    stored = sum(int(file.file_size_bytes) for file in fragment.files)
    return FragmentSize(int(fragment.id), live_row_count(fragment), int(stored * share))
