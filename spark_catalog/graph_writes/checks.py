"""Rules of a graph: keys are unique, end points of edges exist.

A check whose columns are small is made in the driver on Arrow data, since a Spark job takes longer to start. End points
are also looked up in tasks, to which the keys of the nodes are passed as a set of integers. Any other check is one
Spark query over tables whose sizes Spark knows. Keys of integers are compared as numbers; where that finds a violation,
the general way names the keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from typing import Final, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark program uses

from spark_catalog.errors import GraphCheckFailed
from spark_catalog.graph import Graph
from spark_catalog.graph_writes.integer_keys import IntegerKeys, has_repeats
from spark_catalog.graph_writes.version_rows import VersionRows

Level = Literal["none", "batch", "full"]
Columns = Sequence[str]

SAMPLES: Final = 5
DRIVER_CHECK_BYTES = 128 << 20
"""Checks are made in the driver if they hold at most this many bytes of keys in memory."""
DRIVER_SCAN_BYTES = 512 << 20
"""... and read at most this many bytes of other columns, batch by batch."""
PASSED_BYTES = 64 << 20
"""Upper bound of a set of keys that is passed to tasks."""
_END: Final = "end_point"


@dataclass(frozen=True, slots=True)
class TableView:
    """One table before and after a write that is staged but not committed.

    Attributes:
        name: Name of the table.
        added: New rows, None if there are none.
        kept: Stored rows that the write keeps, None if there are none.
        after: All rows after the write, None if there are none.
        repeats: Whether the new rows may hold a key twice, or a key of a kept row.
        loses_rows: Whether the write may remove keys.
    """

    name: str
    added: VersionRows | None
    kept: VersionRows | None
    after: VersionRows | None
    repeats: bool = False
    loses_rows: bool = False


@dataclass(frozen=True, slots=True)
class GraphCheck:
    """One check: the rule in words, and the tables and columns that it reads."""

    table: str
    rule: str


@dataclass(frozen=True, slots=True)
class UniqueKeys(GraphCheck):
    """No two new rows have the same key."""

    rows: VersionRows
    key: tuple[str, ...]

    def run(self, spark: SparkSession) -> None:
        """Raises `GraphCheckFailed`."""
        if self.rows.is_plain(self.key) and self.rows.bytes(self.key) <= DRIVER_CHECK_BYTES:
            check_unique_rows(self.table, self.rows.read(self.key), self.key)
        else:
            rows = self.rows.frame(spark, self.key)
            _refuse_frame(self, rows.groupBy(*self.key).count().where("count > 1").select(*self.key))


@dataclass(frozen=True, slots=True)
class NewKeys(GraphCheck):
    """No new row has the key of a row that stays."""

    rows: VersionRows
    kept: VersionRows
    key: tuple[str, ...]

    def run(self, spark: SparkSession) -> None:
        """Raises `GraphCheckFailed`."""
        size = self.rows.bytes(self.key)
        if size <= DRIVER_CHECK_BYTES and self.kept.bytes(self.key) <= DRIVER_SCAN_BYTES:
            keys = integer_keys(self.rows, self.key)
            if keys is not None and all(_none_of(keys, batch) for batch in self.kept.batches(self.key)):
                return
        if self.rows.is_plain(self.key) and size + self.kept.bytes(self.key) <= DRIVER_CHECK_BYTES:
            added, kept = self.rows.read(self.key), self.kept.read(self.key)
            known = added.join(kept, list(self.key), join_type="left semi")
            _refuse_table(self, known.group_by(list(self.key)).aggregate([]))
        else:
            added_frame, kept_frame = self.rows.frame(spark, self.key), self.kept.frame(spark, self.key)
            _refuse_frame(self, added_frame.join(kept_frame, list(self.key), "left_semi").distinct())


@dataclass(frozen=True, slots=True)
class EndPoints(GraphCheck):
    """All end points of edges are keys of nodes."""

    edges: VersionRows
    columns: tuple[str, ...]
    nodes: VersionRows | None
    key: str

    def run(self, spark: SparkSession) -> None:
        """Raises `GraphCheckFailed`."""
        if self._all_are_known(spark):
            return
        if self._is_small() and self._is_comparable():
            _refuse_table(self, pa.table({_END: self._unknown()}))
            return
        rows = self.edges.frame(spark, self.columns)
        ends = [rows.select(F.col(f"`{column}`").alias(_END)) for column in self.columns]
        used = reduce(DataFrame.union, ends).distinct()
        if self.nodes is not None:
            known = self.nodes.frame(spark, [self.key]).select(F.col(f"`{self.key}`").alias(_END))
            used = used.join(known, _END, "left_anti")
        _refuse_frame(self, used)

    def _all_are_known(self, spark: SparkSession) -> bool:
        """Whether all end points are in a set of the nodes' keys; also False if these are too many, or no integers."""
        if self.nodes is None or self.nodes.bytes([self.key]) > DRIVER_CHECK_BYTES:
            return False
        keys = integer_keys(self.nodes, [self.key])
        if keys is None:
            return False
        if self.edges.bytes(self.columns) <= DRIVER_SCAN_BYTES:
            return all(_all_of(keys, batch) for batch in self.edges.batches(self.columns))
        if keys.nbytes > PASSED_BYTES:
            return False

        def find(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            known = all(_all_of(keys, batch) for batch in batches)
            yield pa.record_batch([pa.array([known])], names=["known"])

        found = self.edges.map_in_tasks(spark, self.columns, find, "known boolean").collect()
        return all(row.known for row in found)

    def _is_small(self) -> bool:
        nodes = self.nodes.bytes([self.key]) if self.nodes is not None else 0
        return nodes <= DRIVER_CHECK_BYTES and self.edges.bytes(self.columns) <= DRIVER_SCAN_BYTES

    def _is_comparable(self) -> bool:
        kinds = {self.edges.schema.field(column).type for column in self.columns}
        if self.nodes is not None:
            kinds.add(self.nodes.schema.field(self.key).type)
        return len(kinds) == 1 and self.edges.is_plain(self.columns)

    def _unknown(self) -> pa.Array:
        used = pa.array([], self.edges.schema.field(self.columns[0]).type)
        for batch in self.edges.batches(self.columns):
            used = pc.unique(pa.concat_arrays([used, *(pc.unique(column) for column in batch.columns)]))
        if self.nodes is None:
            return used
        known = self.nodes.read([self.key])[self.key].combine_chunks()
        return used.filter(pc.invert(pc.is_in(used, value_set=known)))


AnyCheck = UniqueKeys | NewKeys | EndPoints


def plan_checks(graph: Graph, views: Mapping[str, TableView], level: Level) -> list[AnyCheck]:
    """The checks of a write.

    * "none": nothing is checked.
    * "batch": keys are unique among the rows that the write adds to a table.
    * "full": as "batch"; also keys of new rows are not those of rows that stay, and end points of new edges exist in
      the node tables after the write. Where a node table loses rows, the end points of all edges are checked.

    The checks read the versions at the begin of the write. Later commits are not visible to them; `isolation` of the
    write decides whether such commits are conflicts.

    Args:
        graph: Declarations of the tables.
        views: Tables of the write, and for "full" the adjacent tables of the graph.
        level: Rules to check.
    """
    return [] if level == "none" else list(_checks(graph, views, level))


def run_checks(spark: SparkSession, checks: Sequence[AnyCheck], *, parallelism: int) -> None:
    """Run checks, `parallelism` at the same time. Raises `GraphCheckFailed`: the first one that fails."""
    if not checks:
        return
    with ThreadPoolExecutor(max(1, parallelism), thread_name_prefix="graph-check") as pool:
        for outcome in [pool.submit(check.run, spark) for check in checks]:
            outcome.result()


def check_unique(spark: SparkSession, name: str, rows: VersionRows, key: Columns) -> None:
    """Check that no two rows have the same key. Raises `GraphCheckFailed`."""
    UniqueKeys(name, _unique_rule(key), rows, tuple(key)).run(spark)


def check_unique_rows(name: str, rows: pa.Table, key: Columns) -> None:
    """Check that no two rows of an Arrow table have the same key. Raises `GraphCheckFailed`."""
    if has_repeats(rows.select(list(key)).columns) is not False:
        _refuse_table(GraphCheck(name, _unique_rule(key)), _repeated(rows.select(list(key)), key))


def integer_keys(rows: VersionRows, columns: Columns) -> IntegerKeys | None:
    """The keys of rows as a set, if they are integers and not null. Reads them only then."""
    if not all(pa.types.is_integer(rows.schema.field(column).type) for column in columns):
        return None
    return IntegerKeys.of(rows.read(columns).columns)


def _none_of(keys: IntegerKeys, batch: pa.RecordBatch) -> bool:
    found = keys.contains(batch.columns)
    return found is not None and not found.any()


def _all_of(keys: IntegerKeys, batch: pa.RecordBatch) -> bool:
    """Whether all values of each column are in a set of keys of one column."""
    masks = [keys.contains([column]) for column in batch.columns]
    return all(mask is not None and mask.all() for mask in masks)


def _unique_rule(key: Columns) -> str:
    return f"more than one row for a key ({', '.join(key)}) in this write"


def _checks(graph: Graph, views: Mapping[str, TableView], level: Level) -> Iterator[AnyCheck]:
    for name, view in views.items():
        declared = graph.table(name)
        if declared is None or not declared.unique or not view.repeats or view.added is None:
            continue
        key = declared.unique
        yield UniqueKeys(name, _unique_rule(key), view.added, key)
        if level == "full" and view.kept is not None:
            rule = f"appended keys ({', '.join(key)}) that the table holds already"
            yield NewKeys(name, rule, view.added, view.kept, key)
    if level != "full":
        return
    for name, edge in graph.edges.items():
        ends: dict[str, list[str]] = {}
        for node, column in ((edge.source, edge.src), (edge.target, edge.dst)):
            ends.setdefault(node, []).append(column)
        for node, columns in ends.items():
            if name in views and node in views:
                rows = views[name].after if views[node].loses_rows else views[name].added
                if rows is not None:
                    rule = f"end points ({', '.join(columns)}) that are not in {node}"
                    yield EndPoints(name, rule, rows, tuple(columns), views[node].after, graph.nodes[node].key)


def _repeated(rows: pa.Table, key: Columns) -> pa.Table:
    counted = rows.group_by(list(key)).aggregate([([], "count_all")])
    return counted.filter(pc.greater(counted["count_all"], 1)).select(list(key))


def _refuse_table(check: GraphCheck, wrong: pa.Table) -> None:
    if wrong.num_rows:
        samples = [tuple(row.values()) for row in wrong.slice(0, SAMPLES).to_pylist()]
        raise GraphCheckFailed(check.table, check.rule, wrong.num_rows, list(map(_shown, samples)))


def _refuse_frame(check: GraphCheck, wrong: DataFrame) -> None:
    samples = wrong.limit(SAMPLES).collect()
    if samples:
        count = len(samples) if len(samples) < SAMPLES else wrong.count()
        raise GraphCheckFailed(check.table, check.rule, count, [_shown(tuple(sample)) for sample in samples])


def _shown(key: tuple[object, ...]) -> object:
    return key[0] if len(key) == 1 else key
