"""Columns that a write adds: MERGE and INSERT WITH SCHEMA EVOLUTION, and the option `mergeSchema`."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from spark_catalog import lance_transaction
from spark_catalog.requirements import has_transactions
from tests.spark.sql.conftest import NewSession

pytestmark = pytest.mark.skipif(not has_transactions(), reason="needs Spark 4.2")


@pytest.fixture
def table(sql: SparkSession, ns: str) -> str:
    name = f"{ns}.t"
    sql.sql(f"CREATE TABLE {name} (id BIGINT, v STRING)")
    sql.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")
    return name


MERGE = """MERGE WITH SCHEMA EVOLUTION INTO {t} t
USING (SELECT 1L AS id, 'x' AS v, 7 AS n UNION ALL SELECT 3L, 'y', 8) s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"""


def rows(sql: SparkSession, table: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in sql.sql(f"SELECT * FROM {table} ORDER BY id").collect()]


def test_merge_adds_columns_in_its_batch(sql: SparkSession, table: str) -> None:
    before = sql.sql(f"SELECT count(*) FROM {table}.history").collect()[0][0]
    sql.sql(MERGE.format(t=table))
    assert rows(sql, table) == [(1, "x", 7), (2, "b", None), (3, "y", 8)]
    assert sql.table(table).schema["n"].nullable
    assert sql.sql(f"SELECT count(*) FROM {table} VERSION AS OF {before}").collect() == [(2,)]
    sql.sql(MERGE.format(t=table))
    assert rows(sql, table) == [(1, "x", 7), (2, "b", None), (3, "y", 8)]


def test_insert_adds_columns(sql: SparkSession, table: str) -> None:
    sql.sql(f"INSERT WITH SCHEMA EVOLUTION INTO {table} BY NAME SELECT 3L AS id, 'c' AS v, 1.5D AS price")
    assert rows(sql, table) == [(1, "a", None), (2, "b", None), (3, "c", 1.5)]
    sql.sql(f"INSERT WITH SCHEMA EVOLUTION INTO {table} SELECT 4L, 'd', 2.5D, DATE'2024-01-01' AS day")
    assert sql.table(table).columns == ["id", "v", "price", "day"]
    assert sql.sql(f"SELECT count(*) FROM {table} WHERE day IS NOT NULL").collect() == [(1,)]


def test_merge_schema_adds_columns(sql: SparkSession, table: str) -> None:
    more = sql.sql("SELECT 3L AS id, 'c' AS v, array(1, 2) AS tags")
    with pytest.raises(PySparkException):
        more.writeTo(table).append()
    with pytest.raises(PySparkException):
        more.writeTo(table).option("mergeSchema", "false").append()
    assert sql.table(table).columns == ["id", "v"]
    more.writeTo(table).option("mergeSchema", "true").append()
    assert rows(sql, table) == [(1, "a", None), (2, "b", None), (3, "c", [1, 2])]
    other = sql.sql("SELECT 4L AS id, 'd' AS v, array(3) AS tags, true AS flag")
    other.write.mode("append").option("mergeSchema", "true").saveAsTable(table)
    assert sql.table(table).columns == ["id", "v", "tags", "flag"]
    assert sql.table(table).count() == 4
    sql.sql(f"INSERT INTO {table} WITH (`mergeSchema` = 'true') SELECT 5L, 'e', array(4), false, 'more' AS note")
    assert sql.table(table).columns == ["id", "v", "tags", "flag", "note"]


def test_a_failed_write_adds_nothing(sql: SparkSession, table: str) -> None:
    failing = sql.sql("SELECT 3L AS id, 'c' AS v, raise_error('no') AS n").selectExpr("id", "v", "int(n) AS n")
    with pytest.raises(PySparkException):
        failing.writeTo(table).option("mergeSchema", "true").append()
    assert sql.table(table).columns == ["id", "v"]
    assert rows(sql, table) == [(1, "a"), (2, "b")]


def test_columns_are_part_of_a_transaction(new_session: NewSession, sql: SparkSession, table: str) -> None:
    sql.sql("CALL lance.system.begin()")
    sql.sql(MERGE.format(t=table))
    assert rows(sql, table) == [(1, "x", 7), (2, "b", None), (3, "y", 8)]
    assert new_session().table(table).columns == ["id", "v"]
    sql.sql("CALL lance.system.rollback()")
    assert rows(sql, table) == [(1, "a"), (2, "b")]
    with lance_transaction(sql):
        sql.sql(MERGE.format(t=table))
        sql.sql(f"UPDATE {table} SET n = n + 1 WHERE n IS NOT NULL")
    assert rows(sql, table) == [(1, "x", 8), (2, "b", None), (3, "y", 9)]


def test_values_keep_the_types_of_the_table(sql: SparkSession, table: str) -> None:
    merge = MERGE.replace("1L AS id", "1 AS id").replace("3L", "3")
    sql.sql(merge.format(t=table))
    assert sql.table(table).schema["id"].dataType.simpleString() == "bigint"
    wide = MERGE.replace("7 AS n", "9999999999L AS n").replace("'y', 8", "'y', 8L")
    with pytest.raises(PySparkException):
        sql.sql(wide.format(t=table))
    assert sql.table(table).schema["n"].dataType.simpleString() == "int"
    assert rows(sql, table) == [(1, "x", 7), (2, "b", None), (3, "y", 8)]


def test_fields_of_structs_are_not_added(sql: SparkSession, ns: str) -> None:
    sql.sql(f"CREATE TABLE {ns}.nested (id INT, s STRUCT<a: INT>)")
    sql.sql(f"INSERT INTO {ns}.nested VALUES (1, named_struct('a', 1))")
    source = "SELECT 1 AS id, named_struct('a', 2, 'b', 3) AS s"
    evolves = "WITH SCHEMA EVOLUTION INTO"
    merge = f"MERGE {evolves} {ns}.nested t USING ({source}) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *"
    for statement in (f"INSERT {evolves} {ns}.nested {source}", merge):
        with pytest.raises(PySparkException):
            sql.sql(statement)
    assert rows(sql, f"{ns}.nested") == [(1, Row(a=1))]
