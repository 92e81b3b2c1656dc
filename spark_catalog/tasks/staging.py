"""Staging from Spark tasks: data files that are not visible to readers.

A task writes Lance data files with `lance.fragment.write_fragments` and reports their metadata as one row. The rows of
a small partition go into the report instead, and the driver writes those of all small partitions to one file. The
driver collects the reports in the final stage of the job, so that Spark returns exactly one report for each partition,
even if tasks were retried. Only reported files are used. A listing would also show the files of failed attempts.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from lance.file import LanceFileSession
from lance.fragment import FragmentMetadata, write_fragments
from pyspark import TaskContext
from pyspark.errors import PySparkAttributeError
from pyspark.sql import DataFrame

from lance_core.data import DATA_STORAGE_VERSION
from spark_catalog.errors import InvalidWrite
from spark_catalog.tables.frames import parallelism
from spark_catalog.tables.pinned import PinnedTable
from spark_catalog.tasks.arrow_batches import unmeasured_batches
from table_data.arrow.fitting import fit, named
from table_data.arrow.memory import readable_by_lance
from table_data.arrow.storable import check_readable_types
from table_data.staging.rows import check_written

if TYPE_CHECKING:
    import lance

DRIVER_BYTES: Final = 32 << 20
"""Bytes of rows of one call that the driver writes itself, if every partition is small."""
FILE_BYTES: Final = 1 << 30
FILE_ROWS: Final = 1_048_576
REPORT_COLUMNS: Final = "partition int, attempt int, rows long, payload string, data binary"
_REPORT_SCHEMA: Final = pa.schema(
    [
        ("partition", pa.int32()),
        ("attempt", pa.int32()),
        ("rows", pa.int64()),
        ("payload", pa.string()),
        ("data", pa.binary()),
    ]
)
_TASKS_PER_CORE: Final = 4
_TASKS_PER_CORE_UNKNOWN: Final = 32
_MAX_TASKS: Final = 100_000
_TINY_BYTES: Final = 1 << 20
_PLAIN_OPERATORS: Final = frozenset({"Range", "LocalRelation", "Project", "Filter", "Union", "Repartition"})
_UNKNOWN_BYTES: Final = 1 << 60
"""Spark's own estimate of a DataFrame that it knows nothing about is larger."""


@dataclass(frozen=True, slots=True)
class StageTarget:
    """The place and options for staging the rows of one table. Pickled into the tasks.

    Attributes:
        name: Name of the table, for messages.
        uri: Root of the table.
        schema: Arrow schema of the table.
        version: Version that an append is built on. None for a new table and for an overwrite.
        overwrites: Whether the table has versions although `version` is None.
        required: Columns in which nulls are refused, nullable or not.
        filled: Columns that may be missing, for nulls.
        storage_options: Options of Lance for the object store of the table.
        max_rows_per_file: Upper bound of the rows in a data file.
        max_bytes_per_file: Size at which a data file is ended.
    """

    name: str
    uri: str
    schema: pa.Schema
    version: PinnedTable | None = None
    overwrites: bool = False
    required: tuple[str, ...] = ()
    filled: tuple[str, ...] = ()
    storage_options: Mapping[str, str] = field(default_factory=dict)
    max_rows_per_file: int = FILE_ROWS
    max_bytes_per_file: int = FILE_BYTES

    @property
    def base(self) -> PinnedTable:
        """The version that an append is built on. Only if there is one."""
        assert self.version is not None
        return self.version

    def open(self) -> lance.LanceDataset:
        """Open the version that an append is built on."""
        return self.base.open()


@dataclass(frozen=True, slots=True)
class PartitionReport:
    """Report of the successful attempt at one partition.

    `payload` is JSON and `data` is binary, both in a form that depends on the job.
    """

    partition: int
    attempt: int
    rows: int
    payload: Any
    data: bytes | None = None


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


def fragment_files(fragments: tuple[FragmentMetadata, ...]) -> tuple[str, ...]:
    """The data files of new fragments, relative to the table."""
    return tuple(f"data/{file.path}" for fragment in fragments for file in fragment.files)


def stage_partition(
    batches: Iterator[pa.RecordBatch], target: StageTarget, driver_bytes: int = 0
) -> Iterator[pa.RecordBatch]:
    """Write the batches of one partition as data files and yield one report; none for a partition without rows.

    Rows of at most `driver_bytes` are not written: the `data` of the report is an Arrow stream of them. Each batch is
    cast to the schema of the table, since Spark passes timestamps in the time zone of the session. Raises
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
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in fitting:
        held.append(batch)
        size += batch.nbytes
        if size > driver_bytes or not driver_bytes:
            break
    else:
        if held:
            yield report(counted, [], _encode_rows(held))
        return
    reader = pa.RecordBatchReader.from_batches(target.schema, itertools.chain(held, fitting))
    del held
    try:
        fragments = write_files(reader, target)
    except OSError:
        if refusals:  # Lance wraps the exception of its input as text
            raise refusals[0] from None
        raise
    yield report(counted, [fragment.to_json() for fragment in fragments])


def _encode_rows(batches: Sequence[pa.RecordBatch]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as stream:
        for batch in batches:
            stream.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _decode_rows(data: bytes) -> pa.Table:
    """The rows of a report, aligned for Lance, which a stream in the memory of Python is not."""
    rows = pa.ipc.open_stream(data).read_all()
    return pa.table([readable_by_lance(column) for column in rows.columns], schema=rows.schema)


def write_files(rows: pa.RecordBatchReader, target: StageTarget) -> list[FragmentMetadata]:
    """Write rows in the schema of the target as data files. Readers do not see them.

    Raises `InvalidCall` for a column that Lance would not give back.
    """
    check_readable_types(target.schema, DATA_STORAGE_VERSION)
    options = {
        "schema": target.schema,
        "max_rows_per_file": target.max_rows_per_file,
        "max_bytes_per_file": target.max_bytes_per_file,
        "storage_options": dict(target.storage_options),
    }
    if target.version is not None:
        dataset = target.open()
        written = list(write_fragments(rows, dataset, mode="append", **options))
        check_written(dataset, written)
        return written
    mode = "overwrite" if target.overwrites else "create"
    return list(write_fragments(rows, target.uri, mode=mode, data_storage_version=DATA_STORAGE_VERSION, **options))


def report(rows: int, payload: object, data: bytes | None = None) -> pa.RecordBatch:
    """The report of the calling task, as one row."""
    context = TaskContext.get()
    partition, attempt = (context.partitionId(), context.attemptNumber()) if context else (0, 0)
    row = {"partition": partition, "attempt": attempt, "rows": rows, "payload": json.dumps(payload), "data": data}
    return pa.RecordBatch.from_pylist([row], schema=_REPORT_SCHEMA)


def fit_batch(batch: pa.RecordBatch | pa.Table, target: StageTarget) -> Any:
    """Cast a batch (or table) to the schema of the target, see `fit`, which raises `InvalidWrite`."""
    with named(target.name):
        return fit(batch, target.schema, filled=target.filled, required=target.required, first_row=None)


def stage(df: DataFrame, target: StageTarget, *, driver_bytes: int = 0) -> StagedFragments:
    """Run a job that writes the rows of a DataFrame as data files of the target. Blocking and thread-safe.

    The rows are not visible to readers. If the job raises, its exception is raised. The files of its tasks then stay in
    storage, since their names were not reported; `lance-namespace gc --dry-run` lists them.

    Args:
        df: Rows. Many partitions are joined into fewer tasks.
        target: Where and how the rows are staged.
        driver_bytes: Upper bound of the rows that the driver gets from small partitions. It writes them to one file.
    """
    started = time.perf_counter()
    staged = collect_staged(df, target, driver_bytes=driver_bytes)
    return staged.written(target, started)


@dataclass(frozen=True, slots=True)
class CollectedRows:
    """The reports of the tasks: fragments that they wrote, and the rows of small partitions."""

    fragments: tuple[FragmentMetadata, ...]
    small: pa.Table
    rows: int
    reports: tuple[PartitionReport, ...]

    def written(self, target: StageTarget, started: float) -> StagedFragments:
        """Write the rows of the small partitions, too. `started` is the time at which staging began."""
        fragments = self.fragments
        if self.small.num_rows:
            fragments += tuple(write_files(self.small.to_reader(), target))
        written = sum(fragment.physical_rows for fragment in fragments)
        if self.rows != written:
            raise AssertionError(f"{target.name}: tasks reported {self.rows} rows, their fragments hold {written}")
        return StagedFragments(target.uri, fragments, self.rows, self.reports, time.perf_counter() - started)


def collect_staged(df: DataFrame, target: StageTarget, *, driver_bytes: int) -> CollectedRows:
    """Run the tasks of `stage`."""
    joined, tasks = join_partitions(df, target.max_bytes_per_file, driver_bytes)
    share = driver_bytes // tasks if tasks is not None else 0
    reports = run_reporting(joined, lambda batches: stage_partition(batches, target, share))
    fragments = [FragmentMetadata.from_json(json.dumps(found)) for report in reports for found in report.payload]
    small = [_decode_rows(report.data) for report in reports if report.data is not None]
    rows = pa.concat_tables(small) if small else target.schema.empty_table()
    return CollectedRows(tuple(fragments), rows, sum(report.rows for report in reports), reports)


def join_partitions(df: DataFrame, task_bytes: int, driver_bytes: int = 0) -> tuple[DataFrame, int | None]:
    """The DataFrame in a bounded number of partitions, and that number. Fewer partitions stay as they are.

    There are several tasks for each core, and more if the rows of a task would exceed `task_bytes` as far as Spark
    knows. There is one task for rows that are certainly few, and which the driver takes. On Spark Connect nothing is
    known, the DataFrame stays as it is and the number is None.
    """
    try:
        cores = parallelism(df.sparkSession)
        plan = df._jdf.queryExecution().optimizedPlan()  # noqa: SLF001 - there is no public way
    except (PySparkAttributeError, AttributeError):
        return df, None
    if plan.nodeName() == "Repartition" and not plan.shuffle():
        return df, int(plan.numPartitions())  # Spark would merge two `coalesce` into one, and forget that of the caller
    known = int(str(plan.stats().sizeInBytes()))
    if known <= min(_TINY_BYTES, driver_bytes) and _has_known_rows(plan):
        tasks = 1
    elif known >= _UNKNOWN_BYTES:
        tasks = cores * _TASKS_PER_CORE_UNKNOWN
    else:
        tasks = min(max(cores * _TASKS_PER_CORE, -(-known // task_bytes)), _MAX_TASKS)
    return df.coalesce(tasks), tasks


def _has_known_rows(plan: Any) -> bool:
    """Whether Spark's estimate is an upper bound of the rows: no operator makes more of them."""
    if plan.nodeName() not in _PLAIN_OPERATORS:
        return False
    children = plan.children()
    return all(_has_known_rows(children.apply(place)) for place in range(children.size()))


def run_reporting(
    df: DataFrame, task: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
) -> tuple[PartitionReport, ...]:
    """Run `task` on all partitions and return their reports in order of the partitions.

    The task is the last stage of the plan, since a shuffle, a limit or a second action after it would run it again.
    """
    reporting = df.mapInArrow(task, REPORT_COLUMNS)
    with unmeasured_batches(reporting, df.schema):
        rows = reporting.collect()
    reports = sorted(
        (PartitionReport(row.partition, row.attempt, row.rows, json.loads(row.payload), row.data) for row in rows),
        key=lambda report: report.partition,
    )
    seen = [report.partition for report in reports]
    if len(seen) != len(set(seen)):
        raise AssertionError(f"more than one report for a partition: {seen}")
    return tuple(reports)


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
