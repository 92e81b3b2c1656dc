"""Deleted rows of a table: deletion files, fragment by fragment, in Spark tasks."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Final

import lance
import numpy as np
import pyarrow as pa
from lance.fragment import FragmentMetadata
from pyroaring import BitMap64
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark program uses

from lance_core.format.bitmaps import bitmap64_of
from lance_core.format.manifest import ManifestFile
from spark_catalog.errors import GraphCheckFailed, InvalidWrite
from spark_catalog.graph_writes.checks import DRIVER_CHECK_BYTES, SAMPLES
from spark_catalog.graph_writes.version_rows import added_rows
from spark_catalog.read import read_pinned
from spark_catalog.tables.frames import sized_numbers
from spark_catalog.tables.pinned import PinnedTable
from spark_catalog.tables.scans import ROW_ADDRESS
from spark_catalog.tables.splits import MAX_ROWS, MIN_ROWS, FragmentSize, plan_splits
from spark_catalog.tasks.staging import (
    PartitionReport,
    StagedFragments,
    StageTarget,
    discard_files,
    report,
    run_reporting,
    stage,
)
from table_data import staging
from table_data.sql.expressions import SqlExpression

_OFFSET_BITS: Final = 32
_OFFSET_MASK: Final = (1 << _OFFSET_BITS) - 1

Remove = Callable[[lance.LanceFragment], FragmentMetadata | None]


@dataclass(frozen=True, slots=True)
class StagedDeletes:
    """Deleted rows of one table. `updated` fragments carry deletion files, `removed` fragments have no rows left."""

    uri: str
    updated: tuple[FragmentMetadata, ...]
    removed: tuple[int, ...]
    rows: int
    seconds: float
    predicate: str = ""

    @property
    def files(self) -> tuple[str, ...]:
        """The deletion files, relative to the table."""
        return deletion_files(self.updated)


def deletion_files(fragments: Sequence[FragmentMetadata]) -> tuple[str, ...]:
    """The deletion files of fragments, relative to the table."""
    return tuple(f.deletion_file.path(f.id) for f in fragments if f.deletion_file is not None)


def stage_deletes(spark: SparkSession, target: StageTarget, predicate: str) -> StagedDeletes:
    """Mark the rows that match a filter expression of Lance as deleted.

    Raises `InvalidWrite` for an expression that does not fit the table, before a task runs.
    """
    dataset = target.open()
    checked = _checked(target.name, dataset, predicate)
    sizes = [_size(fragment.metadata) for fragment in dataset.get_fragments()]
    staged = _delete(spark, target, sizes, lambda fragment: fragment.delete(checked), most_here=MIN_ROWS)
    return replace(staged, predicate=predicate)


def _checked(name: str, dataset: lance.LanceDataset, predicate: str) -> SqlExpression:
    """A filter expression of Lance, as pylance takes it. Raises `InvalidWrite` if it does not fit the table."""
    try:
        checked = staging.expression_of(dataset, predicate, "predicate")
        dataset.scanner(filter=checked, columns=[], with_row_id=True, limit=1).to_table()
    except (ValueError, OSError) as refusal:
        raise InvalidWrite(f"{name}: predicate {predicate!r}: {refusal}") from None
    return checked


def stage_row_deletes(spark: SparkSession, target: StageTarget, addresses: BitMap64) -> StagedDeletes:
    """Mark the rows at these addresses as deleted. The rows must be there."""
    offsets = _by_fragment(addresses)
    sizes = [FragmentSize(number, len(rows), 0) for number, rows in offsets.items()]

    def remove(fragment: lance.LanceFragment) -> FragmentMetadata | None:
        return fragment.delete_rows(offsets[fragment.fragment_id].tolist())

    return _delete(spark, target, sizes, remove, most_here=MAX_ROWS)


def collect_addresses(df: DataFrame, columns: Sequence[str]) -> tuple[tuple[BitMap64, ...], int]:
    """The addresses in some columns of a DataFrame, nulls left out, and its number of rows.

    The tasks send bitmaps to the driver, which take a few bits for each row.
    """

    def collect(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = [BitMap64() for _ in columns]
        rows = 0
        for batch in batches:
            rows += batch.num_rows
            for place, column in enumerate(batch.columns):
                found[place] |= bitmap64_of(column.drop_null().to_numpy().view(np.uint64))
        if rows:
            parts = [bitmap.serialize() for bitmap in found]
            yield report(rows, [len(part) for part in parts], b"".join(parts))

    reports = run_reporting(df.select(*columns), collect)
    return tuple(_joined(reports, place) for place in range(len(columns))), sum(each.rows for each in reports)


def _joined(reports: Sequence[PartitionReport], place: int) -> BitMap64:
    joined = BitMap64()
    for each in reports:
        start = sum(each.payload[:place])
        joined |= BitMap64.deserialize((each.data or b"")[start : start + each.payload[place]])
    return joined


def _by_fragment(addresses: BitMap64) -> Mapping[int, np.ndarray[Any, np.dtype[np.uint32]]]:
    """The offsets of the rows in their fragments, by the number of the fragment."""
    ordered = np.array(addresses.to_array(), np.uint64)
    numbers, starts = np.unique(ordered >> np.uint64(_OFFSET_BITS), return_index=True)
    offsets = (ordered & np.uint64(_OFFSET_MASK)).astype(np.uint32)
    return dict(zip(numbers.tolist(), np.split(offsets, starts[1:]), strict=True)) if len(ordered) else {}


def _delete(
    spark: SparkSession, target: StageTarget, sizes: Sequence[FragmentSize], remove: Remove, *, most_here: int
) -> StagedDeletes:
    """Apply `remove` to fragments: up to `most_here` rows in this process, more of them in tasks."""
    started = time.perf_counter()
    rows = sum(size.rows for size in sizes)
    splits = plan_splits(sizes, max_rows=MAX_ROWS, divisible=False)
    if rows <= most_here:
        found = [_remove_rows(target.open(), [size.id for size in sizes], remove)]
    else:

        def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    found = _remove_rows(target.open(), [piece.fragment for piece in splits[number].pieces], remove)
                    yield report(found["rows"], found)

        found = [each.payload for each in run_reporting(sized_numbers(spark, len(splits), 1), work)]
    updated = [FragmentMetadata.from_json(json.dumps(fragment)) for part in found for fragment in part["updated"]]
    removed = [int(number) for part in found for number in part["removed"]]
    deleted = sum(part["rows"] for part in found)
    return StagedDeletes(target.uri, tuple(updated), tuple(removed), deleted, time.perf_counter() - started)


def _remove_rows(dataset: lance.LanceDataset, numbers: Sequence[int], remove: Remove) -> dict[str, Any]:
    updated: list[dict[str, Any]] = []
    removed: list[int] = []
    deleted = 0
    for number in numbers:
        fragment = dataset.get_fragment(number)
        before = fragment.metadata
        after = remove(fragment)
        if after is None:
            removed.append(number)
            deleted += before.physical_rows - before.num_deletions
        elif after.num_deletions != before.num_deletions:
            updated.append(after.to_json())
            deleted += after.num_deletions - before.num_deletions
    return {"updated": updated, "removed": removed, "rows": deleted}


def _size(fragment: FragmentMetadata) -> FragmentSize:
    return FragmentSize(fragment.id, int(fragment.physical_rows - fragment.num_deletions), 0)


def rows_with_keys(spark: SparkSession, table: PinnedTable, keys: DataFrame, on: Mapping[str, str]) -> BitMap64:
    """Addresses of the rows of a version whose columns equal those of some row of `keys`. Nulls equal nothing.

    Args:
        spark: Session that runs the tasks.
        table: The version.
        keys: Rows to look for, in any number and order.
        on: Columns of `keys` by columns of the table.
    """
    stored = read_pinned(spark, table, columns=(*on, ROW_ADDRESS)).alias("target")
    same = reduce(
        Column.__and__, (F.col(f"target.`{ours}`") == F.col(f"source.`{theirs}`") for ours, theirs in on.items())
    )
    found = stored.join(keys.alias("source"), same, "left_semi")
    (addresses,), _ = collect_addresses(found, [ROW_ADDRESS])
    return addresses


def keys_at(spark: SparkSession, table: PinnedTable, addresses: BitMap64, columns: Sequence[str]) -> DataFrame:
    """Columns of the rows at these addresses."""
    rows = read_pinned(spark, table, columns=(*columns, ROW_ADDRESS))
    wanted = np.array(addresses.to_array(), np.uint64)

    def pick(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = np.isin(batch.column(ROW_ADDRESS).to_numpy().view(np.uint64), wanted)
            yield batch.filter(pa.array(found)).drop_columns([ROW_ADDRESS])

    return rows.mapInArrow(pick, rows.select(*columns).schema)


_RULE: Final = "rows that do not match the predicate of their overwrite"


def stage_replacement(
    spark: SparkSession,
    df: DataFrame,
    target: StageTarget,
    head: ManifestFile | None,
    where: str,
    *,
    driver_bytes: int,
) -> tuple[StagedDeletes | StagedFragments, ...]:
    """Delete the rows that match a filter expression of Lance, and stage new rows, all of which must match it.

    Raises:
        InvalidWrite: The expression does not fit the table, or a value does not.
        GraphCheckFailed: New rows do not match.
    """
    staged: list[StagedDeletes | StagedFragments] = []
    try:
        if head is not None:
            staged.append(stage_deletes(spark, target, where))
        rows = stage(df, target, driver_bytes=driver_bytes)
        staged.append(rows)
        _check_rows_match(spark, target, head, rows, where)
    except BaseException:
        files = tuple(file for part in staged for file in part.files)
        discard_files(target.uri, files, target.storage_options, never_published=False)
        raise
    return tuple(staged)


def _check_rows_match(
    spark: SparkSession, target: StageTarget, head: ManifestFile | None, staged: StagedFragments, where: str
) -> None:
    rows = added_rows(target, staged.fragments, head)
    names = rows.schema.names
    others = f"({where}\n) IS NOT TRUE"
    if rows.bytes(names) <= DRIVER_CHECK_BYTES:
        wrong = rows.read(names, others)
        count, samples = wrong.num_rows, [tuple(row.values()) for row in wrong.slice(0, SAMPLES).to_pylist()]
    else:
        frame = rows.frame(spark, names, others)
        samples = [tuple(row) for row in frame.limit(SAMPLES).collect()]
        count = len(samples) if len(samples) < SAMPLES else frame.count()
    if count:
        raise GraphCheckFailed(target.name, f"{_RULE} ({where})", count, samples)
