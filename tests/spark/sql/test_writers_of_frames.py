"""What the writers of DataFrames are told before a write: it has its effect, is refused, or Spark drops it.

What Spark drops no catalog sees. The guide lists it, so a version of Spark that hands on more fails here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any, TypeAlias

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

Step: TypeAlias = Callable[[Any], Any]
Cases: TypeAlias = list[tuple[str, str]]

V2: Mapping[str, Step] = {
    "using": lambda writer: writer.using("parquet"),
    "partitionedBy": lambda writer: writer.partitionedBy(F.col("id")),
    "clusterBy": lambda writer: writer.clusterBy("id"),
    "tableProperty": lambda writer: writer.tableProperty("colour", "red"),
    "option": lambda writer: writer.option("colour", "red"),
}
V2_ENDS: Mapping[str, Step] = {
    "append": lambda writer: writer.append(),
    "overwrite": lambda writer: writer.overwrite(F.col("id") >= 0),
    "overwritePartitions": lambda writer: writer.overwritePartitions(),
    "replace": lambda writer: writer.replace(),
    "createOrReplace": lambda writer: writer.createOrReplace(),
    "create": lambda writer: writer.create(),
}
V2_DROPPED = [*product(("using", "partitionedBy", "clusterBy", "tableProperty"), [*V2_ENDS][:3])]
V2_KEPT = [("tableProperty", end) for end in ("replace", "createOrReplace", "create")]
V2_REFUSED = [case for case in product(V2, V2_ENDS) if case not in [*V2_DROPPED, *V2_KEPT]]

V1: Mapping[str, Step] = {
    "partitionBy": lambda writer: writer.partitionBy("id"),
    "bucketBy": lambda writer: writer.bucketBy(4, "id"),
    "sortBy": lambda writer: writer.sortBy("id"),
    "bucketBy and sortBy": lambda writer: writer.bucketBy(4, "id").sortBy("id"),
    "clusterBy": lambda writer: writer.clusterBy("id"),
    "option": lambda writer: writer.option("colour", "red"),
    "format": lambda writer: writer.format("parquet"),
    "mode": lambda writer: writer.mode("ignore"),
}
V1_ENDS = ("insertInto", "insertInto overwrite", "saveAsTable append", "saveAsTable overwrite", "saveAsTable new")
V1_DROPPED = [
    ("clusterBy", "insertInto"),
    ("clusterBy", "insertInto overwrite"),
    ("format", "insertInto"),
    ("format", "insertInto overwrite"),
    ("format", "saveAsTable append"),
    ("mode", "insertInto"),
    ("mode", "insertInto overwrite"),
]
V1_REFUSED = [case for case in product(V1, V1_ENDS) if case not in V1_DROPPED and case[0] != "mode"]
NAMES = "(?i)using parquet|partition|cluster|bucketBy|sortBy|options? colour"


@pytest.fixture
def table(sql: SparkSession, ns: str) -> str:
    name = f"{ns}.t"
    sql.sql(f"CREATE TABLE {name} (id BIGINT)")
    sql.sql(f"INSERT INTO {name} VALUES (7)")
    return name


def _colours(sql: SparkSession, table: str) -> list[str]:
    return [row.value for row in sql.sql(f"SHOW TBLPROPERTIES {table}").collect() if row.key == "colour"]


def _rows(sql: SparkSession, table: str) -> list[int]:
    return sorted(row.id for row in sql.table(table).collect())


def _write_v2(frame: DataFrame, table: str, told: str, end: str) -> None:
    target = f"{table}_new" if end == "create" else table
    V2_ENDS[end](V2[told](frame.writeTo(target)))


def _write_v1(frame: DataFrame, table: str, told: str, end: str) -> None:
    verb, _, how = end.partition(" ")
    if verb == "insertInto":
        V1[told](frame.write).insertInto(table, overwrite=how == "overwrite")
        return
    writer = frame.write.format("lance").mode("append" if how == "new" else how)
    V1[told](writer).saveAsTable(f"{table}_new" if how == "new" else table)


@pytest.mark.parametrize(("told", "end"), V2_REFUSED)
def test_a_frame_that_is_written_to_a_table_refuses_what_has_no_effect(
    sql: SparkSession, table: str, told: str, end: str
) -> None:
    with pytest.raises(Exception, match=NAMES):
        _write_v2(sql.range(1), table, told, end)
    assert _rows(sql, table) == [7]
    assert not sql.catalog.tableExists(f"{table}_new")


def test_properties_are_those_of_the_new_table(sql: SparkSession, table: str) -> None:
    for told, end in V2_KEPT:
        _write_v2(sql.range(1), table, told, end)
        assert _colours(sql, f"{table}_new" if end == "create" else table) == ["red"]


@pytest.mark.parametrize(("told", "end"), V1_REFUSED)
def test_a_frame_that_is_saved_refuses_what_has_no_effect(sql: SparkSession, table: str, told: str, end: str) -> None:
    with pytest.raises(Exception, match=NAMES):
        _write_v1(sql.range(1), table, told, end)
    assert _rows(sql, table) == [7]
    assert not sql.catalog.tableExists(f"{table}_new")


def test_spark_drops_what_the_guide_lists(sql: SparkSession, table: str) -> None:
    written = _rows(sql, table)
    for write, cases in ((_write_v2, V2_DROPPED), (_write_v1, V1_DROPPED)):
        for told, end in cases:
            write(sql.range(1), table, told, end)
            written = [0, *written] if end in {"append", "insertInto", "saveAsTable append"} else [0]
            assert (_rows(sql, table), _colours(sql, table)) == (written, []), (told, end)
