"""Staging from Spark tasks: data files and deletion files that are not visible to readers.

A task writes Lance data files with `lance.fragment.write_fragments` and reports their metadata as one row. The driver
collects the reports in the final stage of the job, so that Spark returns exactly one report for each partition, even if
tasks were retried. Only reported files are used. A listing would also show the files of failed attempts.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import lance
import pyarrow as pa
from lance.file import LanceFileSession
from lance.fragment import FragmentMetadata, write_fragments
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from lance_core.data import DATA_STORAGE_VERSION
from spark_catalog.checks import check_unique_rows
from spark_catalog.errors import InvalidWrite
from spark_catalog.tables.types import with_offsets

REPORT_COLUMNS = "partition int, attempt int, rows long, payload string"
_REPORT_SCHEMA = pa.schema(
    [("partition", pa.int32()), ("attempt", pa.int32()), ("rows", pa.int64()), ("payload", pa.string())]
)


@dataclass(frozen=True, slots=True)
class StageTarget:
    """Where and how the rows of one table are staged. Pickled into the tasks.

    Attributes:
        name: Name of the table, for messages.
        uri: Root of the table.
        schema: Arrow schema of the table.
        read_version: Version that an append is built on. None for a new table and for an overwrite.
        overwrites: Whether the table has versions although `read_version` is None.
        required: Columns in which nulls are refused, nullable or not.
        storage_options: Options of Lance for the object store of the table.
        max_rows_per_file: Upper bound of the rows in a data file.
    """

    name: str
    uri: str
    schema: pa.Schema
    read_version: int | None = None
    overwrites: bool = False
    required: tuple[str, ...] = ()
    storage_options: Mapping[str, str] = field(default_factory=dict)
    max_rows_per_file: int = 1_048_576

    def open(self) -> lance.LanceDataset:
        """Open the table at the read version."""
        return lance.dataset(self.uri, version=self.read_version, storage_options=dict(self.storage_options))


@dataclass(frozen=True, slots=True)
class PartitionReport:
    """Report of the successful attempt at one partition. `payload` is JSON, in a form that depends on the job."""

    partition: int
    attempt: int
    rows: int
    payload: Any


@dataclass(frozen=True, slots=True)
class StagedFragments:
    """New fragments of one table, and the number of their rows."""

    uri: str
    fragments: tuple[FragmentMetadata, ...]
    rows: int
    reports: tuple[PartitionReport, ...]
    seconds: float

    @property
    def files(self) -> tuple[str, ...]:
        """The data files, relative to the table."""
        return fragment_files(self.fragments)


@dataclass(frozen=True, slots=True)
class StagedDeletes:
    """Deleted rows of one table. `updated` fragments carry deletion files, `removed` fragments have no rows left."""

    uri: str
    updated: tuple[FragmentMetadata, ...]
    removed: tuple[int, ...]
    rows: int
    seconds: float

    @property
    def files(self) -> tuple[str, ...]:
        """The deletion files, relative to the table."""
        return deletion_files(self.updated)


@dataclass(frozen=True, slots=True)
class StagedUpsert:
    """Upserted rows of one table: the uncommitted update of pylance, and the numbers of all and of updated rows."""

    uri: str
    operation: lance.LanceOperation.Update
    rows: int
    updated: int
    seconds: float

    @property
    def new_files(self) -> tuple[str, ...]:
        """The data files with the new rows, relative to the table."""
        return fragment_files(tuple(self.operation.new_fragments))

    @property
    def files(self) -> tuple[str, ...]:
        """All files that were written, relative to the table."""
        return self.new_files + deletion_files(tuple(self.operation.updated_fragments))


def fragment_files(fragments: tuple[FragmentMetadata, ...]) -> tuple[str, ...]:
    """The data files of new fragments, relative to the table."""
    return tuple(f"data/{file.path}" for fragment in fragments for file in fragment.files)


def deletion_files(fragments: tuple[FragmentMetadata, ...]) -> tuple[str, ...]:
    """The deletion files of fragments, relative to the table."""
    return tuple(f.deletion_file.path(f.id) for f in fragments if f.deletion_file is not None)


def stage_partition(batches: Iterator[pa.RecordBatch], target: StageTarget) -> Iterator[pa.RecordBatch]:
    """Write the batches of one partition as data files and yield one report; none for a partition without rows.

    Each batch is cast to the schema of the table, since Spark passes timestamps in the time zone of the session. Raises
    `InvalidWrite` for a value that does not fit or a null that is not allowed. The files of that attempt are not
    deleted.
    """
    refusals: list[InvalidWrite] = []
    counted = 0

    def fit() -> Iterator[pa.RecordBatch]:
        nonlocal counted
        for batch in batches:
            if batch.num_rows:
                try:
                    yield fit_batch(batch, target)
                except InvalidWrite as refusal:
                    refusals.append(refusal)
                    raise
                counted += batch.num_rows

    fitting = fit()
    first = next(fitting, None)
    if first is None:
        return
    reader = pa.RecordBatchReader.from_batches(target.schema, _chain(first, fitting))
    try:
        fragments = _write(reader, target)
    except OSError:
        if refusals:  # Lance wraps the exception of its input as text
            raise refusals[0] from None
        raise
    yield report(counted, [fragment.to_json() for fragment in fragments])


def _write(rows: pa.RecordBatchReader, target: StageTarget) -> list[FragmentMetadata]:
    options = {
        "schema": target.schema,
        "max_rows_per_file": target.max_rows_per_file,
        "storage_options": dict(target.storage_options),
    }
    if target.read_version is not None:
        return list(write_fragments(rows, target.open(), mode="append", **options))
    mode = "overwrite" if target.overwrites else "create"
    return list(write_fragments(rows, target.uri, mode=mode, data_storage_version=DATA_STORAGE_VERSION, **options))


def _chain(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest


def report(rows: int, payload: object) -> pa.RecordBatch:
    """The report of the calling task, as one row."""
    context = TaskContext.get()
    partition, attempt = (context.partitionId(), context.attemptNumber()) if context else (0, 0)
    row = {"partition": partition, "attempt": attempt, "rows": rows, "payload": json.dumps(payload)}
    return pa.RecordBatch.from_pylist([row], schema=_REPORT_SCHEMA)


def fit_batch(batch: pa.RecordBatch | pa.Table, target: StageTarget) -> Any:
    """Cast a batch (or table) to the schema of the target. Columns are matched by name.

    Raises `InvalidWrite` for a missing or surplus column, a value out of the range of its type, or a null in a column
    that must not have nulls. Lance itself does not refuse such nulls.
    """
    check_columns(target.name, batch.schema.names, target.schema)
    columns = []
    for wanted in target.schema:
        column = batch.column(wanted.name)
        if column.null_count and (not wanted.nullable or wanted.name in target.required):
            raise InvalidWrite(
                f"{target.name}.{wanted.name}: {column.null_count} nulls among {batch.num_rows} rows, expected none"
            )
        if column.type != wanted.type:
            try:
                column = column.cast(wanted.type)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as refusal:
                raise InvalidWrite(f"{target.name}.{wanted.name}: expected {wanted.type}: {refusal}") from None
        columns.append(with_offsets(column))
    return type(batch).from_arrays(columns, schema=target.schema)


def check_columns(name: str, found: list[str], schema: pa.Schema) -> None:
    """Raise `InvalidWrite` unless the column names are those of the schema, in any order."""
    missing = [column for column in schema.names if column not in found]
    surplus = [column for column in found if column not in schema.names]
    if missing or surplus or len(found) != len(schema.names):
        raise InvalidWrite(f"{name}: expected columns {schema.names}, missing {missing}, surplus {surplus}")


def stage(df: DataFrame, target: StageTarget) -> StagedFragments:
    """Run a job that writes the rows of a DataFrame as data files of the target. Blocking and thread-safe.

    The rows are not visible to readers. If the job raises, its exception is raised. The files of its tasks then stay in
    storage until garbage collection removes them, since their names were not reported.
    """
    started = time.perf_counter()
    reports = run_reporting(df, lambda batches: stage_partition(batches, target))
    fragments = tuple(
        FragmentMetadata.from_json(json.dumps(fragment)) for report in reports for fragment in report.payload
    )
    rows = sum(report.rows for report in reports)
    written = sum(fragment.physical_rows for fragment in fragments)
    if rows != written:
        raise AssertionError(f"{target.name}: tasks reported {rows} rows, their fragments hold {written}")
    return StagedFragments(target.uri, fragments, rows, reports, time.perf_counter() - started)


def stage_upsert(df: DataFrame, target: StageTarget, on: Sequence[str]) -> StagedUpsert | StagedFragments:
    """Collect the rows to the driver and merge them into the table on the columns `on`, without committing.

    The merge runs in pylance in this process and suits up to a few million rows. For a table without a version all rows
    are new. Raises `GraphCheckFailed` if two rows have the same key, `InvalidWrite` as `fit_batch` does.
    """
    started = time.perf_counter()
    rows = fit_batch(df.toArrow(), target)
    check_unique_rows(target.name, rows, on)
    if target.read_version is None or not rows.num_rows:
        fragments = tuple(_write(rows.to_reader(), target)) if rows.num_rows else ()
        return StagedFragments(target.uri, fragments, rows.num_rows, (), time.perf_counter() - started)
    merge = target.open().merge_insert(list(on)).when_matched_update_all().when_not_matched_insert_all()
    transaction, counts = merge.execute_uncommitted(rows)
    seconds = time.perf_counter() - started
    return StagedUpsert(target.uri, transaction.operation, rows.num_rows, counts["num_updated_rows"], seconds)


def run_reporting(
    df: DataFrame, task: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
) -> tuple[PartitionReport, ...]:
    """Run `task` on all partitions and return their reports in order of the partitions.

    The task is the last stage of the plan, since a shuffle, a limit or a second action after it would run it again.
    """
    rows = df.mapInArrow(task, REPORT_COLUMNS).collect()
    reports = sorted(
        (PartitionReport(row.partition, row.attempt, row.rows, json.loads(row.payload)) for row in rows),
        key=lambda report: report.partition,
    )
    seen = [report.partition for report in reports]
    if len(seen) != len(set(seen)):
        raise AssertionError(f"more than one report for a partition: {seen}")
    return tuple(reports)


def stage_deletes(spark: SparkSession, target: StageTarget, predicate: str) -> StagedDeletes:
    """Mark the rows that match a filter expression of Lance as deleted, fragment by fragment, in Spark tasks.

    Raises `InvalidWrite` for an expression that does not fit the table, before a task runs.
    """
    started = time.perf_counter()
    dataset = target.open()
    try:
        dataset.scanner(filter=predicate, columns=[], with_row_id=True, limit=1).to_table()
    except (ValueError, OSError) as refusal:
        raise InvalidWrite(f"{target.name}: predicate {predicate!r}: {refusal}") from None
    ids = [fragment.fragment_id for fragment in dataset.get_fragments()]
    reports = run_reporting(
        numbers(spark, len(ids)), lambda batches: _delete_in_fragments(batches, target, ids, predicate)
    )
    updated = tuple(
        FragmentMetadata.from_json(json.dumps(fragment)) for report in reports for fragment in report.payload["updated"]
    )
    removed = tuple(int(removed) for report in reports for removed in report.payload["removed"])
    rows = sum(report.rows for report in reports)
    return StagedDeletes(target.uri, updated, removed, rows, time.perf_counter() - started)


def numbers(spark: SparkSession, count: int) -> DataFrame:
    """A DataFrame of the numbers 0 to count - 1 in several partitions. Tasks use them as indices of their input."""
    slots = int(spark.conf.get("spark.default.parallelism", "") or 0) or 8
    return spark.range(0, count, 1, max(1, min(count, slots)))


def _delete_in_fragments(
    batches: Iterator[pa.RecordBatch], target: StageTarget, ids: list[int], predicate: str
) -> Iterator[pa.RecordBatch]:
    updated: list[dict[str, Any]] = []
    removed: list[int] = []
    deleted = 0
    dataset = target.open()
    for batch in batches:
        for number in batch.column(0).to_pylist():
            fragment = dataset.get_fragment(ids[number])
            before = fragment.metadata
            after = fragment.delete(predicate)
            if after is None:
                removed.append(fragment.fragment_id)
                deleted += before.physical_rows - before.num_deletions
            elif after.num_deletions != before.num_deletions:
                updated.append(after.to_json())
                deleted += after.num_deletions - before.num_deletions
    yield report(deleted, {"updated": updated, "removed": removed})


def discard_files(
    uri: str, files: tuple[str, ...], storage_options: Mapping[str, str], *, never_published: bool
) -> list[str]:
    """Delete staged files by name. Returns the files that could not be deleted, each with the reason.

    With `never_published` only this writer uses the location, so that on local file systems empty directories are
    removed, too. In another table a concurrent writer may be about to create a file in such a directory.
    """
    kept = []
    session = LanceFileSession(uri, storage_options=dict(storage_options))
    for file in files:
        try:
            session.delete_file(file)
        except (OSError, ValueError) as error:
            kept.append(f"{uri}/{file}: {error}")
    parts = urlsplit(uri)
    if never_published and parts.scheme in ("", "file"):
        root = Path(unquote(parts.path))
        for directory in (root / "data", root / "_deletions", root):
            try:
                directory.rmdir()
            except OSError:  # not empty, or never created
                continue
    return kept
