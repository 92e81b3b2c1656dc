"""The tables of the catalog compared with what the generator says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark program uses

from social_graph.generator import GRAPH, TABLES, SocialGraph
from social_graph.pipelines import LIKES_OF_AN_EPOCH, NAMESPACE
from spark_catalog import CatalogServer, read_graph


class Disagreement(Exception):
    """A number differs from its expected value."""


def agree(what: str, found: object, expected: object) -> None:
    """Raise `Disagreement` unless the two are equal."""
    if found != expected:
        raise Disagreement(f"{what}: expected {expected}, found {found}")


def check_days(graph: SocialGraph, counted: Mapping[str, list[int]]) -> None:
    """Compare the rows of every table at the end of every day. The stream adds likes of its own."""
    for table, expected in graph.counts().items():
        if table != "likes":
            agree(f"rows of {table} at the end of each day", counted[table], expected)


def check_rows(spark: SparkSession, server: CatalogServer, graph: SocialGraph, streamed: DataFrame) -> int:
    """Compare all rows of the newest catalog version, views aside, by count and checksum. Returns their number."""
    now = read_graph(spark, server, NAMESPACE)
    total = 0
    for table in TABLES:
        expected = graph.rows(table, graph.days)
        columns = [name for name in now.tables[table].columns if name != "views"]
        if table == "likes":
            expected = expected.select(columns).union(streamed.select(columns))
        found, wanted = _digest(now.tables[table], columns), _digest(expected, columns)
        agree(f"rows and checksum of {table}", found, wanted)
        total += found[0]
    for name, edge in GRAPH.edges.items():
        for end, node in ((edge.src, edge.source), (edge.dst, edge.target)):
            keys = now.tables[node].select(F.col("id").alias(end))
            agree(f"edges of {name} without {end}", now.tables[name].join(keys, end, "left_anti").count(), 0)
    return total


def streamed_likes(likes: DataFrame, epochs: int) -> DataFrame:
    """The likes of the committed micro-batches."""
    return likes.where(F.col("number") < epochs * LIKES_OF_AN_EPOCH)


def check_views(spark: SparkSession, server: CatalogServer, viewed: Sequence[int]) -> int:
    """Compare the views of every message with the messages of all counts. Returns the sum."""
    counts = Counter(viewed)
    messages = read_graph(spark, server, NAMESPACE, columns={"message": ["id", "views"]}).tables["message"]
    found = {
        row.id: row.views for row in messages.where(F.col("id").isin(list(counts)) | (F.col("views") > 0)).collect()
    }
    agree("views of messages", found, {number: counts[number] for number in found})
    return sum(found.values())


def _digest(rows: DataFrame, columns: Sequence[str]) -> tuple[int, int]:
    hashed = F.xxhash64(*columns).cast("decimal(38,0)")
    found = rows.agg(F.count("*").alias("rows"), F.coalesce(F.sum(hashed), F.lit(0)).alias("sum")).first()
    assert found is not None
    return int(found["rows"]), int(found["sum"])
