"""Deleted rows of a table: deletion files, fragment by fragment, in Spark tasks."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import lance
import numpy as np
import pyarrow as pa
from lance.fragment import FragmentMetadata
from pyroaring import BitMap64
from pyspark.sql import DataFrame, SparkSession

from lance_core.format.bitmaps import bitmap64_of
from spark_catalog.errors import InvalidWrite
from spark_catalog.tables.frames import sized_numbers
from spark_catalog.tables.splits import MAX_ROWS, MIN_ROWS, FragmentSize, plan_splits
from spark_catalog.tasks.staging import PartitionReport, StageTarget, report, run_reporting
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
