"""MERGE, UPDATE, DELETE and INSERT whose source is a DataFrame over the table that they change."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from spark_catalog import lance_transaction

MERGE = "MERGE INTO {t} t USING src s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = concat(s.v, '!')"


@pytest.fixture
def table(sql: SparkSession, ns: str) -> str:
    name = f"{ns}.t"
    sql.sql(f"CREATE TABLE {name} AS SELECT id, concat('v', id) AS v FROM range(10)")
    sql.sql(f"CREATE TABLE {ns}.other AS SELECT id, 'o' AS o FROM range(3)")
    return name


def same(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    return batches


def first(group: pd.DataFrame) -> pd.DataFrame:
    return group.head(1)


def sources(sql: SparkSession, table: str) -> dict[str, DataFrame]:
    """DataFrames with the rows 0, 1 and 2."""
    rows = sql.table(table)
    few = rows.where("id < 3")
    return {
        "filter": few,
        "columns": few.select("id", F.lower("v").alias("v")),
        "join": sql.table(f"{table.rpartition('.')[0]}.other").join(rows, "id").select("id", "v"),
        "self join": few.alias("a").join(rows.alias("b"), "id").selectExpr("id", "a.v"),
        "distinct": few.dropDuplicates(["id"]),
        "groups": few.groupBy("id").agg(F.max("v").alias("v")),
        "pandas": few.mapInPandas(same, "id long, v string"),
        "pandas by group": few.groupBy("id").applyInPandas(first, "id long, v string"),
        "subquery": sql.sql(f"SELECT * FROM {table} WHERE id IN (SELECT id FROM {table} WHERE id < 3)"),
    }


def test_merge_from_a_dataframe_over_its_table(sql: SparkSession, table: str) -> None:
    for number, name in enumerate(sources(sql, table), 1):
        sources(sql, table)[name].createOrReplaceTempView("src")
        sql.sql(MERGE.format(t=table))
        changed = sql.sql(f"SELECT v FROM {table} WHERE id < 3 ORDER BY id").collect()
        assert [row.v for row in changed] == [f"v{row}{'!' * number}" for row in range(3)], name
    assert sql.table(table).where("v LIKE '%!'").count() == 3


def test_update_delete_and_insert_from_a_dataframe_over_their_table(sql: SparkSession, table: str) -> None:
    sql.table(table).where("id < 3").createOrReplaceTempView("src")
    sql.sql(f"UPDATE {table} SET v = 'q' WHERE id IN (SELECT id FROM src)")
    assert sql.table(table).where("v = 'q'").count() == 3
    sql.table(table).where("id < 3").alias("s").mergeInto(
        table, F.expr(f"s.id = {table.rpartition('.')[2]}.id")
    ).whenMatched(F.expr("s.id = 2")).delete().merge()
    assert sql.table(table).count() == 9
    sql.sql(f"DELETE FROM {table} WHERE id IN (SELECT id FROM src)")
    assert sql.table(table).count() == 7
    rows = sql.table(table).where("id > 7")
    rows.writeTo(table).append()
    assert sql.table(table).count() == 9
    rows.createOrReplaceTempView("src")
    sql.sql(f"INSERT INTO {table} SELECT a.* FROM src a JOIN {table} b ON a.id = b.id AND b.id = 3")
    sql.sql(f"INSERT OVERWRITE {table} SELECT id, v FROM src WHERE id = 8")
    assert sql.table(table).count() == 2


def test_a_transaction_merges_its_own_rows(sql: SparkSession, table: str) -> None:
    with lance_transaction(sql):
        sql.sql(f"INSERT INTO {table} VALUES (100, 'new')")
        sql.table(table).where("id >= 9").createOrReplaceTempView("src")
        sql.sql(MERGE.format(t=table))
    assert sql.table(table).where("v LIKE '%!'").count() == 2


def test_a_dataframe_reads_the_snapshot_of_the_statement(sql: SparkSession, table: str) -> None:
    """It was made before other rows were written, and is part of the statement that writes now."""
    old = sql.table(table).where("id >= 9")
    sql.sql(f"INSERT INTO {table} VALUES (50, 'later')")
    old.createOrReplaceTempView("src")
    sql.sql(MERGE.format(t=table))
    assert sorted(row.id for row in sql.table(table).where("v LIKE '%!'").collect()) == [9, 50]
