"""Columns that a table of Lance cannot have are refused by name, on every way that makes a table or adds a column."""

# ruff: noqa: PT012 - leaving the block is what raises

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from namespace_client.http import CatalogServer
from spark_catalog import GraphWrite
from spark_catalog.errors import InvalidWrite

pytestmark = pytest.mark.spark

REFUSED = {
    "'a' COLLATE UTF8_LCASE AS v": r"v: Lance has no type for string collate UTF8_LCASE",
    "map(1, array('a' COLLATE UTF8_LCASE)) AS v": r"v: Lance has no type for map<int,array<string collate UTF8_LCASE>>",
    "INTERVAL '2:03' HOUR TO MINUTE AS v": r"v: Lance has no type for interval hour to minute",
    "1 AS `a``b`": r"column 'a`b': expected a name",
}


def rows(spark: SparkSession, column: str) -> DataFrame:
    return spark.range(1).selectExpr("id", column)


@pytest.mark.parametrize(("column", "message"), REFUSED.items())
def test_graph_writes_refuse_them(
    spark: SparkSession, catalog: CatalogServer, namespace: list[str], column: str, message: str
) -> None:
    with pytest.raises(InvalidWrite, match=message), GraphWrite(spark, catalog, namespace=namespace) as tx:
        tx.append("t", rows(spark, column))
    with pytest.raises(InvalidWrite, match=message), GraphWrite(spark, catalog, namespace=namespace) as tx:
        tx.append("t", spark.range(1))
        tx.append("t", rows(spark, column), schema="merge")
    assert catalog.table((*namespace, "t")) is None


def test_the_data_source_refuses_them(
    spark: SparkSession, catalog: CatalogServer, namespace: list[str], tmp_path: Path
) -> None:
    (column, message), *_ = REFUSED.items()
    place = {"server": catalog.url, "table": "$".join([*namespace, "t"])}
    with pytest.raises(AnalysisException, match=message):
        rows(spark, column).write.format("lance").mode("append").options(**place).save()
    rows(spark, column).write.parquet(str(tmp_path / "source"))
    source = spark.readStream.schema(rows(spark, column).schema).parquet(str(tmp_path / "source"))
    sink = source.writeStream.format("lance").options(**place, checkpointLocation=str(tmp_path / "checkpoint"))
    with pytest.raises(StreamingQueryException, match=message):
        sink.trigger(availableNow=True).start().awaitTermination()
    assert catalog.table((*namespace, "t")) is None
