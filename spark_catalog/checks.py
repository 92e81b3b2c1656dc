"""Rules of a graph, each checked by one Spark query: keys are unique, end points of edges exist."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial, reduce
from typing import Literal

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark program uses

from spark_catalog.errors import GraphCheckFailed
from spark_catalog.graph import Graph

Level = Literal["none", "batch", "full"]
Change = Literal["append", "overwrite", "upsert", "delete"]
Columns = Sequence[str]
Rows = Callable[[Columns], DataFrame | None]

SAMPLES = 5


@dataclass(frozen=True, slots=True)
class TableView:
    """One table before and after a write that is staged but not committed.

    Attributes:
        name: Name of the table.
        change: Change that the write makes, None for a table that is only read.
        stored: Function from columns to the rows at the begin of the write, None if there are none.
        kept: Function from columns to the stored rows that the write does not replace or delete.
        staged: Function from columns to the new rows.
    """

    name: str
    change: Change | None
    stored: Rows
    kept: Rows
    staged: Rows

    def after(self, columns: Columns) -> DataFrame | None:
        """The rows after the write."""
        return _union(self.kept(columns), self.staged(columns))

    @property
    def loses_rows(self) -> bool:
        """Whether the write may remove keys."""
        return self.change in ("overwrite", "delete")


def check_write(graph: Graph, views: Mapping[str, TableView], level: Level, *, parallelism: int = 2) -> None:
    """Check the staged rows against the rules of the graph.

    * "none": nothing is checked.
    * "batch": keys are unique among the rows staged for a table.
    * "full": as "batch"; also keys of appended rows are not in the table yet, and end points of staged edges exist in
      the node tables after the write. Where a node table loses rows, the end points of all remaining edges are checked.

    The checks read the versions at the begin of the write. Later commits are not visible to them; `isolation` of the
    write decides whether such commits are conflicts.

    Args:
        graph: Declarations of the tables.
        views: Tables of the write, and for "full" the adjacent tables of the graph.
        level: Rules to check.
        parallelism: Number of queries that run at the same time.

    Raises:
        GraphCheckFailed: The write would break a rule; the first one found.
    """
    if level == "none":
        return
    checks = list(_rules(graph, views, level))
    with ThreadPoolExecutor(max(1, parallelism), thread_name_prefix="graph-check") as pool:
        for outcome in [pool.submit(check) for check in checks]:
            outcome.result()


def _rules(graph: Graph, views: Mapping[str, TableView], level: Level) -> Iterator[Callable[[], None]]:
    for name, view in views.items():
        declared = graph.table(name)
        if declared is None or not declared.unique:
            continue
        if view.change in ("append", "overwrite"):
            yield partial(check_unique, view, declared.unique)
        if view.change == "append" and level == "full":
            yield partial(check_new, view, declared.unique)
    if level != "full":
        return
    for name, edge in graph.edges.items():
        ends: dict[str, list[str]] = {}
        for node, column in ((edge.source, edge.src), (edge.target, edge.dst)):
            ends.setdefault(node, []).append(column)
        for node, columns in ends.items():
            if name in views and node in views:
                yield partial(check_end_points, views[name], columns, views[node], graph.nodes[node].key)


def check_unique(view: TableView, key: Columns) -> None:
    """Check that no two staged rows have the same key."""
    staged = view.staged(key)
    if staged is not None:
        repeated = staged.groupBy(*key).count().where("count > 1").select(*key)
        _refuse(view.name, f"more than one row for a key ({', '.join(key)}) in this write", repeated)


def check_unique_rows(name: str, rows: pa.Table, key: Columns) -> None:
    """Check that no two rows of an Arrow table have the same key."""
    counted = rows.select(list(key)).group_by(list(key)).aggregate([([], "count_all")])
    repeated = counted.filter(pa.compute.greater(counted["count_all"], 1))
    if repeated.num_rows:
        samples = [tuple(row[column] for column in key) for row in repeated.slice(0, SAMPLES).to_pylist()]
        rule = f"more than one row for a key ({', '.join(key)}) in this write"
        raise GraphCheckFailed(name, rule, repeated.num_rows, [_shown(sample) for sample in samples])


def check_new(view: TableView, key: Columns) -> None:
    """Check that no appended row has a key that is stored already."""
    staged, stored = view.staged(key), view.stored(key)
    if staged is not None and stored is not None:
        known = staged.join(stored, list(key), "left_semi").distinct()
        _refuse(view.name, f"appended keys ({', '.join(key)}) that the table holds already", known)


def check_end_points(edges: TableView, columns: Columns, nodes: TableView, key: str) -> None:
    """Check that end points of staged edges, or of all edges if the node table loses rows, exist after the write."""
    rows = edges.after(columns) if nodes.loses_rows else edges.staged(columns)
    if rows is None:
        return
    used = reduce(DataFrame.union, [rows.select(F.col(column).alias("end_point")) for column in columns]).distinct()
    known = nodes.after([key])
    if known is not None:
        used = used.join(known.select(F.col(key).alias("end_point")), "end_point", "left_anti")
    _refuse(edges.name, f"end points ({', '.join(columns)}) that are not in {nodes.name}", used)


def _refuse(table: str, rule: str, wrong: DataFrame) -> None:
    samples = wrong.limit(SAMPLES).collect()
    if samples:
        count = len(samples) if len(samples) < SAMPLES else wrong.count()
        raise GraphCheckFailed(table, rule, count, [_shown(tuple(sample)) for sample in samples])


def _shown(key: tuple[object, ...]) -> object:
    return key[0] if len(key) == 1 else key


def _union(left: DataFrame | None, right: DataFrame | None) -> DataFrame | None:
    if left is None or right is None:
        return right if left is None else left
    return left.union(right)
