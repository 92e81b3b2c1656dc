from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import lance
import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from lance_core.tables.dataset import Dataset
from spark_catalog.errors import GraphCheckFailed, InvalidWrite, last_line
from spark_catalog.graph_writes.calls.deletes import stage_deletes
from spark_catalog.graph_writes.calls.merges import MergeRules, StagedMerge, stage_merge
from spark_catalog.tables.pinned import PinnedTable
from spark_catalog.tasks.arrow_batches import batch_options
from spark_catalog.tasks.staging import (
    DRIVER_BYTES,
    StagedFragments,
    StageTarget,
    discard_files,
    report,
    run_reporting,
    stage,
    stage_partition,
)
from table_data.batch_operations import TableState
from table_data.composition import transaction_message
from table_data.table_changes import TableChanges

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])


def rows_of(uri: str, version: int | None = None) -> list[dict[str, object]]:
    return sorted(lance.dataset(uri, version=version).to_table().to_pylist(), key=lambda row: row["id"])


def create(uri: str, rows: list[dict[str, object]], schema: pa.Schema = SCHEMA, **options: object) -> None:
    lance.write_dataset(pa.Table.from_pylist(rows, schema=schema), uri, **options)


def upsert(
    spark: SparkSession, df: DataFrame, target: StageTarget, rules: MergeRules | None = None, bound: int = DRIVER_BYTES
) -> StagedMerge | StagedFragments:
    """Merge on `id`."""
    changes = TableChanges(TableState(("t",), target.uri, target.version and target.version.version), {})
    return stage_merge(spark, df, changes, target, rules or MergeRules(("id",)), driver_bytes=bound)


def commit(uri: str, staged: StagedMerge) -> None:
    """Commit a merge to version 1."""
    assert staged.operation is not None
    Dataset.open(uri).commit(transaction_message(staged.operation, 1, None))


def data_files(uri: str) -> set[str]:
    data = Path(uri.removeprefix("file://")) / "data"
    return {f"data/{file.name}" for file in data.iterdir()} if data.exists() else set()


def test_staged_files_of_a_new_table_are_not_visible(spark: SparkSession, uri: str) -> None:
    df = spark.range(0, 1000, 1, 3).selectExpr("id", "concat('n', id) AS name")
    staged = stage(df, StageTarget("t", uri, SCHEMA))
    assert staged.rows == 1000
    assert [(report.partition, report.attempt) for report in staged.reports] == [(0, 0), (1, 0), (2, 0)]
    assert set(staged.files) == data_files(uri)
    with pytest.raises(ValueError, match="not found"):
        lance.dataset(uri)
    lance.LanceDataset.commit(uri, lance.LanceOperation.Overwrite(SCHEMA, list(staged.fragments)))
    assert rows_of(uri) == [{"id": n, "name": f"n{n}"} for n in range(1000)]


def test_an_append_is_staged_in_the_stored_schema(spark: SparkSession, uri: str) -> None:
    create(uri, [{"id": 1, "name": "a"}], data_storage_version="2.1")
    narrow = spark.createDataFrame([("b", 2)], "name string, id int")  # other order, other width
    staged = stage(narrow, StageTarget("t", uri, SCHEMA, version=PinnedTable(uri, 1)))
    assert [file.file_minor_version for fragment in staged.fragments for file in fragment.files] == [1]
    lance.LanceDataset.commit(uri, lance.LanceOperation.Append(list(staged.fragments)), read_version=1)
    assert rows_of(uri) == [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]


def test_timestamps_do_not_depend_on_the_session_time_zone(spark: SparkSession, uri: str) -> None:
    schema = pa.schema([("at", pa.timestamp("us", tz="UTC"))])
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        df = spark.sql("SELECT timestamp'2013-01-01 06:00:00' AS at")
        staged = stage(df, StageTarget("t", uri, schema))
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    dataset = lance.LanceDataset.commit(uri, lance.LanceOperation.Overwrite(schema, list(staged.fragments)))
    assert dataset.to_table()["at"].to_pylist()[0].astimezone(UTC) == datetime(
        2013, 1, 1, 6, tzinfo=ZoneInfo("Europe/Berlin")
    )


def test_empty_partitions_report_nothing(spark: SparkSession, uri: str) -> None:
    df = spark.range(0, 4, 1, 4).where("id = 2").selectExpr("id", "'x' AS name")
    staged = stage(df, StageTarget("t", uri, SCHEMA))
    assert [report.partition for report in staged.reports] == [2]
    assert len(staged.fragments) == 1
    assert stage(df.where("id > 5"), StageTarget("t", uri, SCHEMA)).fragments == ()


def test_batches_of_rows_of_bounded_size_are_limited_by_rows_alone(spark: SparkSession) -> None:
    limits = [f"spark.sql.execution.arrow.max{unit}PerBatch" for unit in ("Bytes", "Records")]

    def seen(*columns: str) -> list[object]:
        def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            sizes = [batch.num_rows for batch in batches]
            yield report(sum(sizes), [TaskContext.get().getLocalProperty(limits[0]), *sizes])

        (found,) = run_reporting(spark.range(0, 70_000, 1, 1).selectExpr("id", *columns), count)
        return found.payload

    assert seen("id * 0.5D AS half") == ["2147483647", 65_536, 4_464]
    assert seen("'x' AS name", "named_struct('a', id) AS s") == ["2147483647", *[4_096] * 17, 368]
    assert seen("array(id) AS ids") == [None, *[10_000] * 7]
    spark.conf.set(limits[1], 40_000)
    try:
        assert seen() == ["2147483647", 40_000, 30_000]
    finally:
        spark.conf.unset(limits[1])
    assert [spark.sparkContext.getLocalProperty(name) for name in limits] == [None, None]


@pytest.mark.parametrize(("columns", "rows"), [(64, 65_536), (128, 32_768)])
def test_rows_of_many_columns_come_in_smaller_batches(columns: int, rows: int) -> None:
    schema = StructType([StructField("c", LongType())] * columns)
    assert batch_options(schema)["spark.sql.execution.arrow.maxRecordsPerBatch"] == str(rows)


@pytest.mark.parametrize(("before", "rows"), [(False, 65_536), (True, 10_000)])
def test_batches_are_limited_by_rows_unless_another_step_has_some(spark: SparkSession, before: bool, rows: int) -> None:
    def seen(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_arrays([pa.array([batch.num_rows] * batch.num_rows, pa.int64())], ["id"])

    def largest(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield report(0, max(batch.num_rows for batch in batches))

    df = spark.range(0, 140_000, 1, 1)
    [found] = run_reporting(df.mapInArrow(seen, "id long") if before else df, largest)
    assert found.payload == rows


def test_a_null_in_a_not_nullable_column_is_refused(spark: SparkSession, uri: str) -> None:
    df = spark.createDataFrame([(1, "a"), (None, "b")], "id long, name string").coalesce(1)
    with pytest.raises(PythonException) as caught:
        stage(df, StageTarget("t", uri, SCHEMA))
    assert last_line(caught.value).endswith("t: column 'id': expected no nulls, found 1 nulls among 2 rows")


def test_a_null_in_a_required_column_is_refused() -> None:
    batch = pa.RecordBatch.from_pylist([{"id": 1, "name": None}], schema=SCHEMA)
    target = StageTarget("t", "memory://t", SCHEMA, required=("name",))
    with pytest.raises(InvalidWrite, match="t: column 'name': expected no nulls, found 1 nulls among 1 rows"):
        list(stage_partition(iter([batch]), target))


def test_a_refusal_in_a_later_batch_keeps_its_type(uri: str) -> None:
    batches = [pa.RecordBatch.from_pylist([{"id": n, "name": "x"}]) for n in range(3)]
    batches.append(pa.RecordBatch.from_pylist([{"id": None, "name": "x"}], schema=pa.schema(list(SCHEMA))))
    with pytest.raises(InvalidWrite, match="t: column 'id': expected no nulls, found 1"):
        list(stage_partition(iter(batches), StageTarget("t", uri, SCHEMA)))


def test_a_value_out_of_the_range_of_its_type_is_refused() -> None:
    batch = pa.RecordBatch.from_pylist([{"id": 2**40}])
    target = StageTarget("t", "memory://t", pa.schema([("id", pa.int16())]))
    with pytest.raises(InvalidWrite, match="t: column 'id': expected int16, found 1099511627776"):
        list(stage_partition(iter([batch]), target))


def test_other_columns_are_refused() -> None:
    batch = pa.RecordBatch.from_pylist([{"id": 1, "nmae": "x"}])
    with pytest.raises(InvalidWrite, match=r"missing \['name'\], surplus \['nmae'\]"):
        list(stage_partition(iter([batch]), StageTarget("t", "memory://t", SCHEMA)))


def test_retried_tasks_give_one_report_per_partition(java: str, tmp_path: Path) -> None:
    """Half of the tasks fail after they wrote files. The files of those attempts are not in the result."""
    script = textwrap.dedent(
        """
        import json, os, sys
        from pathlib import Path
        import lance, pyarrow as pa
        from pyspark import TaskContext
        from pyspark.sql import DataFrame, SparkSession
        from spark_catalog.tasks import staging
        from spark_catalog.spark_session import configure, start

        uri = sys.argv[1]
        builder = SparkSession.builder.master("local[2,3]")
        spark = start(configure(builder, shuffle_partitions=2, driver_memory="1g", quick_start=True), log_level="OFF")
        target = staging.StageTarget("t", uri, pa.schema([("id", pa.int64())]))

        def dying(batches):
            reports = list(staging.stage_partition(batches, target))
            context = TaskContext.get()
            if context.partitionId() % 2 and context.attemptNumber() == 0:
                os._exit(1) if context.partitionId() == 3 else sys.exit("dies after writing, before reporting")
            yield from reports

        reports = staging.run_reporting(spark.range(0, 4000, 1, 4), dying)
        fragments = [lance.FragmentMetadata.from_json(json.dumps(f)) for r in reports for f in r.payload]
        lance.LanceDataset.commit(uri, lance.LanceOperation.Overwrite(target.schema, fragments))
        ids = lance.dataset(uri).to_table()["id"].to_pylist()
        written = len(list(Path(uri.removeprefix("file://"), "data").iterdir()))
        print(json.dumps({
            "reports": [[r.partition, r.attempt > 0] for r in reports],
            "exact": sorted(ids) == list(range(4000)), "written": written, "referenced": len(fragments),
        }))
        spark.stop()
        """
    )
    home = str(Path(__file__).resolve().parents[2])
    paths = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
    run = subprocess.run(
        [sys.executable, "-c", script, (tmp_path / "t").as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        cwd=tmp_path,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    seen = json.loads(run.stdout.splitlines()[-1])
    assert seen["reports"] == [[0, False], [1, True], [2, False], [3, True]]
    assert seen["exact"]
    assert seen["referenced"] == 4
    assert seen["written"] > seen["referenced"]


def test_deletes_are_staged_fragment_by_fragment(spark: SparkSession, uri: str) -> None:
    create(uri, [{"id": n, "name": str(n)} for n in range(30)], max_rows_per_file=10)
    staged = stage_deletes(spark, StageTarget("t", uri, SCHEMA, version=PinnedTable(uri, 1)), "id < 10 OR id = 15")
    assert (staged.rows, staged.removed, [fragment.id for fragment in staged.updated]) == (11, (0,), [1])
    assert lance.dataset(uri).count_rows() == 30
    operation = lance.LanceOperation.Delete(list(staged.updated), list(staged.removed), "id < 10 OR id = 15")
    lance.LanceDataset.commit(uri, operation, read_version=1)
    assert [row["id"] for row in rows_of(uri)] == [*range(10, 15), *range(16, 30)]

    again = stage_deletes(spark, StageTarget("t", uri, SCHEMA, version=PinnedTable(uri, 2)), "id IN (15, 16)")
    assert (again.rows, again.removed, [fragment.id for fragment in again.updated]) == (1, (), [1])


def test_deleting_nothing_stages_nothing(spark: SparkSession, uri: str) -> None:
    create(uri, [{"id": 1, "name": "a"}])
    staged = stage_deletes(spark, StageTarget("t", uri, SCHEMA, version=PinnedTable(uri, 1)), "id = 7")
    assert (staged.rows, staged.updated, staged.removed, staged.files) == (0, (), (), ())


def test_a_predicate_that_does_not_fit_is_refused_before_any_task(spark: SparkSession, uri: str) -> None:
    create(uri, [{"id": 1, "name": "a"}])
    with pytest.raises(InvalidWrite, match=r"t: predicate 'nosuch = 1': .*nosuch"):
        stage_deletes(spark, StageTarget("t", uri, SCHEMA, version=PinnedTable(uri, 1)), "nosuch = 1")


def test_an_upsert_is_merged_and_not_committed(spark: SparkSession, uri: str) -> None:
    create(uri, [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}])
    df = spark.createDataFrame([(2, "B"), (3, "C")], "id long, name string")
    staged = upsert(spark, df, StageTarget("t", uri, SCHEMA, version=PinnedTable(uri, 1)))
    assert isinstance(staged, StagedMerge)
    assert (staged.rows, staged.updated, len(staged.new_files)) == (2, 1, 1)
    assert lance.dataset(uri).version == 1
    commit(uri, staged)
    assert [row["name"] for row in rows_of(uri)] == ["a", "B", "C"]


def test_an_upsert_into_a_new_table_is_an_append(spark: SparkSession, uri: str) -> None:
    df = spark.createDataFrame([(2, "B")], "id long, name string")
    staged = upsert(spark, df, StageTarget("t", uri, SCHEMA))
    assert isinstance(staged, StagedFragments)
    assert (staged.rows, set(staged.files)) == (1, data_files(uri))


def test_an_upsert_of_two_rows_with_one_key_is_refused(spark: SparkSession, uri: str) -> None:
    df = spark.createDataFrame([(2, "B"), (2, "C"), (3, "D")], "id long, name string")
    with pytest.raises(GraphCheckFailed, match=r"t: more than one row for a key \(id\).*: 1 distinct.*2"):
        upsert(spark, df, StageTarget("t", uri, SCHEMA))


def test_only_named_files_are_discarded(spark: SparkSession, uri: str) -> None:
    create(uri, [{"id": 1, "name": "a"}])
    others = data_files(uri)
    staged = stage(
        spark.range(3).selectExpr("id", "'x' AS name"), StageTarget("t", uri, SCHEMA, version=PinnedTable(uri, 1))
    )
    assert discard_files(uri, staged.files, {}, never_published=False) == []
    assert data_files(uri) == others
    assert rows_of(uri) == [{"id": 1, "name": "a"}]


def test_discarding_an_unpublished_table_removes_its_directory(spark: SparkSession, uri: str, tmp_path: Path) -> None:
    staged = stage(spark.range(3).selectExpr("id", "'x' AS name"), StageTarget("t", uri, SCHEMA))
    assert discard_files(uri, staged.files, {}, never_published=True) == []
    assert list(tmp_path.iterdir()) == []


def test_discarding_reports_files_that_could_not_be_deleted(uri: str) -> None:
    create(uri, [{"id": 1, "name": "a"}])
    kept = discard_files(uri, ("data/never-written.lance",), {}, never_published=False)
    assert len(kept) == 1
    assert kept[0].startswith(f"{uri}/data/never-written.lance: ")
