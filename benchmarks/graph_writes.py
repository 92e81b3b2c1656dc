"""Graph writes from Spark beside Parquet files, from the same DataFrames and on the same disk."""

from __future__ import annotations

import itertools
import os
import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from benchmarks.support.report import Report, Table, count, milliseconds, ratio
from benchmarks.support.servers import serve_ours
from benchmarks.support.spark import friendships, median_seconds, people, spark_session
from namespace_client.http import CatalogServer
from spark_catalog.graph import Edge, Graph, Node
from spark_catalog.graph_writes.checks import Level
from spark_catalog.graph_writes.graph_write import GraphWrite
from spark_catalog.graph_writes.results import GraphWriteResult

NODES, EDGES, CHANGED = 1_000_000, 5_000_000, 1_000_000
TINY_ROWS, TINY_PARTITIONS, TABLES = 100, 100, 10
REPEATS = 3
LEVELS: tuple[Level, ...] = ("none", "batch", "full")
GRAPH = Graph(nodes={"person": Node("id")}, edges={"knows": Edge("person", "person")})
TINY_GRAPH = Graph(
    nodes={"n1": Node("id"), "n2": Node("id")},
    edges={f"e{number}": Edge("n1", "n2", key=("src", "dst")) for number in range(4)},
)


def run(directory: Path) -> Report:
    """Measure each kind of write. Needs Java."""
    with (
        serve_ours(directory / "catalog") as server,
        CatalogServer(f"http://127.0.0.1:{server.port}") as catalog,
        spark_session() as spark,
    ):
        bench = _Bench(spark, catalog, directory)
        tables = [bench.loads(), bench.small_writes(), bench.upserts(), bench.publishing()]
    return Report(
        "graph_writes",
        "Graph writes from Spark",
        f"Medians of {REPEATS} runs after one that is not counted, in one session with a task for each of "
        f"{os.cpu_count()} cores. A person has an id, a name, an age and a score; an edge two ends, a day and a "
        "weight. Both sides compute the rows in the run that is measured. Parquet files are compressed as Spark does "
        "by default.",
        tables,
    )


@dataclass(slots=True)
class _Bench:
    spark: SparkSession
    catalog: CatalogServer
    directory: Path
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def namespace(self) -> list[str]:
        name = [f"n{next(self.numbers)}"]
        self.catalog.ensure_namespace(name)
        return name

    def write(
        self, frames: Mapping[str, DataFrame], graph: Graph | None = None, check: Level = "none"
    ) -> GraphWriteResult:
        with GraphWrite(self.spark, self.catalog, namespace=self.namespace(), graph=graph, check=check) as tx:
            for name, frame in frames.items():
                tx.append(name, frame)
        return tx.result

    def parquet(self, *frames: DataFrame) -> None:
        for frame in frames:
            frame.write.parquet(str(self.directory / f"p{next(self.numbers)}"))

    # -- tables of results

    def loads(self) -> Table:
        frames = {"person": people(self.spark, NODES), "knows": friendships(self.spark, EDGES, NODES)}
        peer = _seconds(lambda: self.parquet(*frames.values()))
        table = Table(
            f"{count(NODES)} nodes and {count(EDGES)} edges", ("write", "s", "rows/s", "rows/s against Parquet")
        )
        table.add("Parquet", f"{peer:.2f}", count((NODES + EDGES) / peer), "")
        for level in LEVELS:
            ours = _seconds(lambda level=level: self.write(frames, GRAPH, level))
            table.add(f"GraphWrite, check={level}", f"{ours:.2f}", count((NODES + EDGES) / ours), ratio(peer, ours))
        return table

    def small_writes(self) -> Table:
        table = Table("Small writes", ("write", "GraphWrite s", "Parquet s", "Parquet against GraphWrite"))
        tiny = {name: people(self.spark, TINY_ROWS) for name in TINY_GRAPH.nodes}
        tiny |= {name: friendships(self.spark, TINY_ROWS, TINY_ROWS) for name in TINY_GRAPH.edges}
        partitions = people(self.spark, TINY_ROWS * TINY_PARTITIONS).repartition(TINY_PARTITIONS)
        for title, frames, graph in (
            (f"{len(tiny)} tables of {TINY_ROWS} rows, check=batch", tiny, TINY_GRAPH),
            (f"{TINY_PARTITIONS} partitions of {TINY_ROWS} rows", {"person": partitions}, GRAPH),
        ):
            ours = _seconds(lambda frames=frames, graph=graph: self.write(frames, graph, "batch"))
            peer = _seconds(lambda frames=frames: self.parquet(*frames.values()))
            table.add(title, f"{ours:.2f}", f"{peer:.2f}", ratio(peer, ours))
        return table

    def upserts(self) -> Table:
        stored = people(self.spark, EDGES)
        new = people(self.spark, CHANGED, EDGES - CHANGED // 2)
        path = str(self.directory / "stored")
        stored.write.parquet(path)

        def rewrite() -> None:
            old = self.spark.read.parquet(path)
            self.parquet(old.join(new, "id", "left_anti").unionByName(new))

        peer = _seconds(rewrite)
        table = Table(
            f"Upsert of {count(CHANGED)} rows, half of them new, into {count(EDGES)}",
            ("way", "s", "speed against Parquet"),
        )
        table.add("Parquet: anti-join, union, write all", f"{peer:.2f}", "")
        for title, bound in (("joined in Spark", 0), ("merged in the driver", 1 << 30)):
            ours = _seconds(
                lambda namespace, bound=bound: self.upsert(namespace, new, bound), lambda: self.stored(stored)
            )
            table.add(f"GraphWrite: {title}", f"{ours:.2f}", ratio(peer, ours))
        return table

    def stored(self, rows: DataFrame) -> list[str]:
        namespace = self.namespace()
        with GraphWrite(self.spark, self.catalog, namespace=namespace, check="none") as tx:
            tx.append("person", rows)
        return namespace

    def upsert(self, namespace: list[str], rows: DataFrame, bound: int) -> None:
        with GraphWrite(self.spark, self.catalog, namespace=namespace, check="none", driver_bytes=bound) as tx:
            tx.upsert("person", rows, on="id")

    def publishing(self) -> Table:
        frames = {f"t{number}": people(self.spark, TINY_ROWS) for number in range(TABLES)}
        found = [self.write(frames).milliseconds["publish"] / 1000 for _ in range(REPEATS)]
        table = Table("Publishing", ("batch", "ms"))
        table.add(f"{TABLES} new tables", milliseconds(statistics.median(found)))
        return table


def _seconds(work: Callable[..., object], prepare: Callable[[], object] | None = None) -> float:
    return median_seconds(work, repeats=REPEATS, prepare=prepare)
