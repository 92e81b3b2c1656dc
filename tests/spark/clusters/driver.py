"""A driver for a master: writes and reads a table in each way, and prints what it found as JSON.

    driver.py MASTER SERVER WORKER_PYTHON [SETTING=VALUE ...]

The setting `send` says that the session sends the package to the executors.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import SparkSession

from spark_catalog import Graph, GraphWrite, Node, configure, lance_transaction, read_graph, session, start

NAMESPACE = "n"


def main() -> None:
    master, server, worker_python, *settings = sys.argv[1:]
    given = dict(setting.partition("=")[::2] for setting in settings)
    send = bool(given.pop("send", ""))
    builder = SparkSession.builder.master(master).config("spark.executor.memory", "512m")
    builder = builder.config("spark.executor.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    builder = configure(builder, shuffle_partitions=2, driver_memory="512m", quick_start=True)
    for name, value in given.items():
        builder = builder.config(name, value)
    spark = start(session(builder, uri=server, worker_python=worker_python, send_package=send), log_level="ERROR")
    print(json.dumps(report(spark, server)))
    spark.stop()


def report(spark: SparkSession, server: str) -> dict[str, Any]:
    """Rows after each kind of access."""
    table = f"lance.{NAMESPACE}.person"
    place = {"server": server, "table": f"{NAMESPACE}$person"}
    spark.sql(f"CREATE NAMESPACE lance.{NAMESPACE}")
    with GraphWrite(spark, server, namespace=[NAMESPACE], graph=Graph({"person": Node("id")}), check="full") as tx:
        tx.append("person", spark.range(0, 100, 1, 4).selectExpr("id", "'graph' AS how"))
    with lance_transaction(spark):
        spark.sql(f"INSERT INTO {table} SELECT id + 100, 'sql' FROM range(0, 50, 1, 2)")
        spark.sql(f"UPDATE {table} SET how = concat(how, '!') WHERE id % 10 = 0 AND length(how) > 2")
    rows = spark.range(0, 5, 1, 2).selectExpr("id + 1000 AS id", "'source' AS how")
    rows.write.format("lance").mode("append").options(**place).save()
    by_sql = spark.sql(f"SELECT how, count(*) FROM {table} GROUP BY how ORDER BY how").collect()
    source = spark.read.format("lance").options(**place).load()
    return {
        "sql": [list(row) for row in by_sql],
        "graph": read_graph(spark, server, [NAMESPACE]).tables["person"].where("how = 'sql'").count(),
        "source": source.where("id >= 1000").count(),
        "places": sorted(row.place for row in spark.range(0, 8, 1, 8).mapInPandas(places, "place string").collect()),
    }


def places(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Where a task runs and finds the package."""
    import spark_catalog

    for _ in batches:
        yield pd.DataFrame({"place": [f"{sys.executable} {spark_catalog.__file__}"]})


if __name__ == "__main__":
    main()
