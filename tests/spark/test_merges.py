"""Merges by key: in the driver and in tasks, compared with a model in Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from lance_core.tables.dataset import Dataset
from spark_catalog.errors import GraphCheckFailed, InvalidWrite, last_line
from spark_catalog.graph_writes import checks
from spark_catalog.graph_writes.calls import merges
from spark_catalog.graph_writes.calls.deletes import collect_addresses
from spark_catalog.graph_writes.calls.merges import MergeRules, StagedMerge, stage_merge
from spark_catalog.tables.pinned import PinnedTable
from spark_catalog.tasks.staging import StagedFragments, StageTarget
from table_data.batch_operations import TableState
from table_data.composition import transaction_message
from table_data.table_changes import TableChanges

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("part", pa.string()), ("n", pa.int64())])
IN_DRIVER, IN_TASKS = 1 << 20, 0
PLACES = {"driver": IN_DRIVER, "keys in driver": IN_TASKS, "tasks": IN_TASKS}
Key = tuple[int, str]


@dataclass(frozen=True)
class Case:
    """Rules, and the same in Python."""

    rules: MergeRules
    updates: Callable[[int, int], bool] = lambda source, target: True
    deletes_matched: bool = False
    deletes: Callable[[int], bool] = lambda target: False

    def model(self, stored: Mapping[Key, int], rows: Mapping[Key, int]) -> dict[Key, int]:
        after = {key: n for key, n in stored.items() if key in rows or not self.deletes(n)}
        for key, n in rows.items():
            if key in stored:
                if self.deletes_matched:
                    del after[key]
                elif self.updates(n, stored[key]):
                    after[key] = n
            elif self.rules.not_matched == "insert":
                after[key] = n
        return after


ON = ("id", "part")
CASES = {
    "upsert": Case(MergeRules(ON)),
    "insert only": Case(MergeRules(ON, "ignore"), updates=lambda *_: False),
    "update only": Case(MergeRules(ON, "update", "ignore")),
    "delete": Case(MergeRules(ON, "delete", "ignore"), deletes_matched=True),
    "toggle": Case(MergeRules(ON, "delete"), deletes_matched=True),
    "replace": Case(MergeRules(ON, by_source="delete"), deletes=lambda _: True),
    "condition": Case(MergeRules(ON, "source.n > target.n"), updates=lambda source, target: source > target),
    "conditions": Case(
        MergeRules(ON, "source.n % 2 = 0 AND target.n < 900", "ignore", "target.n > 500"),
        updates=lambda source, target: source % 2 == 0 and target < 900,
        deletes=lambda target: target > 500,
    ),
}


@pytest.fixture(params=PLACES)
def bound(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Where rows are merged: in the driver, in tasks with a join of the keys in the driver, in tasks alone."""
    if request.param == "tasks":
        monkeypatch.setattr(merges, "DRIVER_JOIN_BYTES", -1)
        monkeypatch.setattr(checks, "DRIVER_CHECK_BYTES", -1)
    return PLACES[request.param]


def create(uri: str, count: int, *, stable: bool) -> dict[Key, int]:
    """A table of several fragments, one with a deletion file."""
    rows = [{"id": number, "part": "ab"[number % 2], "n": number * 10} for number in range(count)]
    lance.write_dataset(pa.Table.from_pylist(rows, SCHEMA), uri, max_rows_per_file=17, enable_stable_row_ids=stable)
    lance.dataset(uri).delete("id IN (3, 40)")
    return contents(uri)


def contents(uri: str) -> dict[Key, int]:
    dataset = lance.dataset(uri)
    dataset.validate()
    rows = dataset.to_table().to_pylist()
    found = {(row["id"], row["part"]): row["n"] for row in rows}
    assert len(found) == len(rows)
    return found


def row_ids(uri: str) -> dict[int, int]:
    table = lance.dataset(uri).to_table(with_row_id=True)
    return dict(zip(table["id"].to_pylist(), table["_rowid"].to_pylist(), strict=True))


def merge(spark: SparkSession, uri: str, df: DataFrame, rules: MergeRules, bound: int) -> StagedMerge | StagedFragments:
    version = lance.dataset(uri).version
    changes = TableChanges(TableState(("t",), uri, version), {})
    target = StageTarget("t", uri, SCHEMA, version=PinnedTable(uri, version))
    return stage_merge(spark, df, changes, target, rules, driver_bytes=bound)


def commit(uri: str, staged: StagedMerge | StagedFragments) -> None:
    assert isinstance(staged, StagedMerge)
    if staged.operation is not None:
        version = lance.dataset(uri).version
        Dataset.open(uri).commit(transaction_message(staged.operation, version, None))


def frame(spark: SparkSession, rows: Mapping[Key, int]) -> DataFrame:
    return spark.createDataFrame([(*key, n) for key, n in rows.items()], "id long, part string, n long").repartition(3)


@contextmanager
def broadcasts(spark: SparkSession, *, allowed: bool) -> Iterator[None]:
    """Joins by broadcast, or by a shuffle."""
    name = "spark.sql.autoBroadcastJoinThreshold"
    before = spark.conf.get(name)
    spark.conf.set(name, before if allowed else "-1")
    try:
        yield
    finally:
        spark.conf.set(name, before)


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
@pytest.mark.parametrize("name", CASES)
def test_a_merge_gives_the_rows_of_the_model(
    spark: SparkSession, uri: str, name: str, bound: int, stable: bool
) -> None:
    case = CASES[name]
    stored = create(uri, 100, stable=stable)
    rows = {(number, "ab"[number % 2]): number * 10 + (7 if number % 3 else -8) for number in range(30, 130)}
    rows[5, "a"] = 1  # the id is stored, in the other part
    before = row_ids(uri)
    with broadcasts(spark, allowed=name != "upsert"):
        staged = merge(spark, uri, frame(spark, rows), case.rules, bound)
    assert isinstance(staged, StagedMerge)
    assert staged.in_driver == (bound == IN_DRIVER and case.rules.clauses() is not None)
    assert contents(uri) == stored
    commit(uri, staged)
    after = contents(uri)
    expected = case.model(stored, rows)
    assert after == expected
    assert staged.rows == len(rows)
    assert staged.inserted == len(expected.keys() - stored.keys())
    assert staged.deleted == len(stored.keys() - expected.keys())
    if case.updates(2, 1) and case.updates(1, 2):
        assert staged.updated == (0 if case.deletes_matched else len(rows.keys() & stored.keys()))
    if stable:
        kept = {number for number, _ in stored.keys() & after.keys()} - {5}
        assert {number: before[number] for number in kept} == {number: row_ids(uri)[number] for number in kept}


def test_two_rows_with_one_key_are_refused_with_their_number(spark: SparkSession, uri: str, bound: int) -> None:
    create(uri, 10, stable=False)
    files = {path.name for path in Path(uri.removeprefix("file://"), "data").iterdir()}
    df = spark.createDataFrame([(2, "a", 1), (2, "a", 2), (50, "a", 3), (50, "a", 4)], "id long, part string, n long")
    with pytest.raises(GraphCheckFailed, match=r"t: more than one row for a key \(id, part\)") as caught:
        merge(spark, uri, df, MergeRules(ON), bound)
    assert (caught.value.count, sorted(caught.value.samples)) == (2, [(2, "a"), (50, "a")])
    assert {path.name for path in Path(uri.removeprefix("file://"), "data").iterdir()} == files


def test_a_null_key_is_refused(spark: SparkSession, uri: str, bound: int) -> None:
    create(uri, 10, stable=False)
    df = spark.createDataFrame([(2, None, 1)], "id long, part string, n long")
    with pytest.raises(Exception, match="1 nulls") as caught:
        merge(spark, uri, df, MergeRules(ON), bound)
    assert last_line(caught.value).endswith("t: column 'part': expected no nulls, found 1 nulls among 1 rows")


def test_integer_keys_are_looked_up_in_the_driver(
    spark: SparkSession, uri: str, bound: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        pytest.fail("keys of integers are not joined by Arrow")

    monkeypatch.setattr(merges._Merge, "_pairs_here", refused)
    stored = create(uri, 100, stable=False)
    rows = {(number, "c"): 1 for number in range(90, 110)}
    staged = merge(spark, uri, frame(spark, rows), MergeRules(("id",)), bound)
    commit(uri, staged)
    assert contents(uri) == {key: n for key, n in stored.items() if key[0] < 90} | rows
    assert isinstance(staged, StagedMerge)
    assert (staged.inserted, staged.updated) == (10, 10)


@pytest.mark.parametrize("on", [ON, ("id",)], ids=" and ".join)
def test_all_stored_rows_with_the_key_are_replaced(
    spark: SparkSession, uri: str, bound: int, on: tuple[str, ...]
) -> None:
    rows = [{"id": 1, "part": "a", "n": n} for n in range(3)] + [{"id": 2, "part": "a", "n": 9}]
    lance.write_dataset(pa.Table.from_pylist(rows, SCHEMA), uri, max_rows_per_file=2)
    staged = merge(spark, uri, frame(spark, {(1, "a"): 7, (3, "a"): 8}), MergeRules(on), bound)
    commit(uri, staged)
    found = sorted((row["id"], row["n"]) for row in lance.dataset(uri).to_table().to_pylist())
    assert found == [(1, 7), (1, 7), (1, 7), (2, 9), (3, 8)]
    assert isinstance(staged, StagedMerge)
    assert (staged.inserted, staged.updated) == (1, 3)


def test_only_rows_that_are_small_are_merged_in_the_driver(spark: SparkSession, uri: str) -> None:
    create(uri, 100, stable=False)
    df = spark.range(0, 5000, 1, 4).selectExpr("id", "substr('ab', id % 2 + 1, 1) AS part", "id AS n")
    above = merge(spark, uri, df, MergeRules(ON), 64 << 10)
    below = merge(spark, uri, df, MergeRules(ON), 8 << 20)
    assert isinstance(above, StagedMerge)
    assert isinstance(below, StagedMerge)
    assert (above.in_driver, below.in_driver) == (False, True)
    assert (above.inserted, above.updated) == (below.inserted, below.updated) == (4902, 98)


def test_staged_rows_that_are_written_again_leave_no_file(spark: SparkSession, uri: str) -> None:
    create(uri, 100, stable=False)
    staged = merge(spark, uri, frame(spark, {(1, "b"): 7, (300, "a"): 8}), CASES["update only"].rules, IN_TASKS)
    commit(uri, staged)
    named = {file.path for fragment in lance.dataset(uri).get_fragments() for file in fragment.metadata.files}
    assert {path.name for path in Path(uri.removeprefix("file://"), "data").iterdir()} == named


def test_no_rows_change_nothing_unless_others_go(spark: SparkSession, uri: str) -> None:
    create(uri, 10, stable=False)
    nothing = frame(spark, {(1, "b"): 1}).where("n > 5")
    for bound in (IN_DRIVER, IN_TASKS):
        staged = merge(spark, uri, nothing, MergeRules(ON), bound)
        assert isinstance(staged, StagedMerge)
        assert staged.operation is None
    commit(uri, merge(spark, uri, nothing, MergeRules(ON, by_source="target.n < 50"), IN_TASKS))
    assert sorted(contents(uri).values()) == [50, 60, 70, 80, 90]


def test_addresses_of_many_rows_reach_the_driver_as_bitmaps(spark: SparkSession) -> None:
    rows = spark.range(0, 200_000, 1, 5).selectExpr("id * 2 AS a", "IF(id % 2 = 0, (id << 32) | 7, NULL) AS b")
    (left, right), count = collect_addresses(rows, ["a", "b"])
    assert (len(left), len(right), count) == (200_000, 100_000, 200_000)
    assert (left.max(), right.max()) == (399_998, (199_998 << 32) | 7)


def test_unknown_clauses_are_refused() -> None:
    with pytest.raises(InvalidWrite, match="when_not_matched 'drop': expected insert or ignore"):
        MergeRules(("id",), not_matched="drop")  # type: ignore[arg-type]
