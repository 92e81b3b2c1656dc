"""Plans of scans: partitions by fragment, and the size that Spark's planner gets."""

from __future__ import annotations

import base64

import pyarrow as pa

from lance_core.data import arrow_schema
from lance_core.proto import lance_table_pb2 as pb
from spark_catalog.sql.schemas import parse_schema
from spark_catalog.sql.tables import Versions, resolve
from spark_catalog.sql.tasks import Read, partition_bytes, read_function
from spark_catalog.sql.transactions import SqlTransaction
from spark_catalog.tables.row_counts import rows_in, rows_of
from spark_catalog.tables.splits import FragmentSize, plan_splits
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
) -> Json:
    """The function and the partitions of a scan, its rows before the filter, and their bytes in memory."""
    del table
    version, file = resolve(versions, transaction, ref)
    shown = parse_schema(schema)
    stored = arrow_schema(file.manifest.fields)
    read = pa.schema([stored.field(name) for name in shown.names if name in stored.names])
    share = row_width(read) / row_width(stored)
    sizes = [_size(fragment, share) for fragment in file.manifest.fragments]
    splits = plan_splits(sizes, divisible=filter is None, limit=limit if filter is None and limit >= 0 else None)
    rows = sum(size.rows for size in sizes)
    return {
        "function": _text(read_function(Read(version, shown, filter, limit if limit >= 0 else None))),
        "partitions": [_text(partition_bytes(split.pieces)) for split in splits],
        "rows": rows,
        "bytes": max(rows * row_width(read), sum(size.bytes for size in sizes), 1),
        "version": file.version,
    }


def count_rows(versions: Versions, transaction: SqlTransaction | None, ref: Json) -> int:
    """Number of rows, from the manifest."""
    _, file = resolve(versions, transaction, ref)
    return rows_of(file.manifest.fragments)


def _size(fragment: pb.DataFragment, share: float) -> FragmentSize:
    stored = sum(int(file.file_size_bytes) for file in fragment.files)
    return FragmentSize(int(fragment.id), rows_in(fragment), int(stored * share))


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
