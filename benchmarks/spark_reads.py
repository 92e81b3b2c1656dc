"""Reads by Spark beside Parquet files with the same rows, on the same disk."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from benchmarks.support.report import Report, Table, count, milliseconds, ratio
from benchmarks.support.servers import serve_ours
from benchmarks.support.spark import friendships, median_seconds, people, spark_session
from namespace_client.http import CatalogServer
from spark_catalog.graph_writes.graph_write import GraphWrite
from spark_catalog.read import read_table

NODES, EDGES = 1_000_000, 5_000_000
REPEATS, UNCOUNTED = 5, 2
NAMESPACE: Final = "social"
COLUMNS: Final = ["src", "weight"]
FILTER: Final = "weight > 99"


def run(directory: Path, nodes: int = NODES, edges: int = EDGES) -> Report:
    """Measure each kind of read. Needs Java."""
    with serve_ours(directory / "catalog") as server:
        url = f"http://127.0.0.1:{server.port}"
        with spark_session(url) as spark, CatalogServer(url) as catalog:
            _write(spark, catalog, directory, nodes, edges)
            table = _measure(spark, catalog, edges)
    return Report(
        "spark_reads",
        "Reads by Spark",
        f"Medians of {REPEATS} runs after {UNCOUNTED} that are not counted, in one session with a task for each of "
        f"{os.cpu_count()} cores. {count(edges)} edges of {count(nodes)} persons; an edge has two ends, a day and a "
        "weight. Rows are read and dropped. Parquet files are compressed as Spark does by default. The persons of "
        "Parquet are broadcast, since Spark takes them for as large as their file. Those of Lance are sorted, since "
        "their size in memory is told. So the join is measured sorted, too.",
        [table],
    )


def _write(spark: SparkSession, catalog: CatalogServer, directory: Path, nodes: int, edges: int) -> None:
    frames = {"person": people(spark, nodes), "knows": friendships(spark, edges, nodes)}
    catalog.ensure_namespace([NAMESPACE])
    with GraphWrite(spark, catalog, namespace=[NAMESPACE], check="none") as tx:
        for name, frame in frames.items():
            tx.append(name, frame)
    for name, frame in frames.items():
        frame.write.parquet(str(directory / name))
        spark.read.parquet(str(directory / name)).createOrReplaceTempView(name)


def _measure(spark: SparkSession, catalog: CatalogServer, edges: int) -> Table:
    columns, whole = ", ".join(COLUMNS), f"all of {count(edges)} rows"
    statements = {
        whole: "SELECT * FROM {}knows",
        "two columns": f"SELECT {columns} FROM {{}}knows",
        "two columns with a filter": f"SELECT {columns} FROM {{}}knows WHERE {FILTER}",
        "count": "SELECT count(*) FROM {}knows",
        "count with a filter": f"SELECT count(*) FROM {{}}knows WHERE {FILTER}",
        "join with the persons": "SELECT age, count(*) FROM {0}knows JOIN {0}person ON src = id GROUP BY age",
        "the same, sorted": (
            "SELECT /*+ MERGE(person) */ age, count(*) FROM {0}knows JOIN {0}person person ON src = id GROUP BY age"
        ),
    }
    knows = partial(read_table, spark, catalog, [NAMESPACE, "knows"])
    frames = {
        whole: knows,
        "two columns": partial(knows, columns=COLUMNS),
        "two columns with a filter": partial(knows, columns=COLUMNS, filter=FILTER),
    }
    table = Table(
        "Reads", ("read", "Parquet, ms", "SQL, ms", "SQL against Parquet", "read_table, ms", "read_table against it")
    )
    for title, statement in statements.items():
        peer = _seconds(partial(spark.sql, statement.format("")))
        ours = _seconds(partial(spark.sql, statement.format(f"lance.{NAMESPACE}.")))
        shown = [milliseconds(peer), milliseconds(ours), ratio(peer, ours), "", ""]
        if title in frames:
            direct = _seconds(frames[title])
            shown[3:] = [milliseconds(direct), ratio(peer, direct)]
        table.add(title, *shown)
    return table


def _seconds(rows: partial[DataFrame]) -> float:
    """Time in which a DataFrame is made, and its rows are computed and dropped."""
    return median_seconds(
        lambda: rows().write.format("noop").mode("overwrite").save(), repeats=REPEATS, uncounted=UNCOUNTED
    )
