"""What users of Spark are used to: writers of DataFrames, statements on tables, files of a write."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, UnsupportedOperationException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from spark_catalog import lance_transaction
from spark_catalog.requirements import spark_version


@pytest.fixture
def table(sql: SparkSession, ns: str) -> str:
    name = f"{ns}.t"
    sql.sql(f"CREATE TABLE {name} (id BIGINT, v STRING) COMMENT 'c' TBLPROPERTIES ('lance.stable_row_ids' = 'true')")
    sql.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")
    return name


def fragments(sql: SparkSession, table: str) -> tuple[int, int]:
    [[count, rows]] = sql.sql(f"SELECT count(*), sum(rows) FROM {table}.fragments").collect()
    return count, rows


def test_many_partitions_become_a_few_files(sql: SparkSession, ns: str, tmp_path: Path) -> None:
    small = sql.range(0, 40_000, 1, 200).selectExpr("id", "id % 7 AS k")
    small.writeTo(f"{ns}.created").create()
    small.writeTo(f"{ns}.created").append()
    count, rows = fragments(sql, f"{ns}.created")
    assert (count <= 16, rows) == (True, 80_000)
    assert sql.sql(f"SELECT count(DISTINCT id), sum(k) FROM {ns}.created").collect() == [
        (40_000, 2 * sum(row % 7 for row in range(40_000)))
    ]
    small.repartition(100).writeTo(f"{ns}.spread").create()
    assert fragments(sql, f"{ns}.spread")[0] <= 8
    small.coalesce(3).writeTo(f"{ns}.chosen").create()
    assert fragments(sql, f"{ns}.chosen") == (3, 40_000)
    sql.range(0, 100, 1, 50).writeTo(f"{ns}.tiny").create()
    assert fragments(sql, f"{ns}.tiny") == (1, 100)
    source = sql.range(0, 40_000, 1, 200)
    source.write.format("lance").mode("append").save(f"{tmp_path}/path")
    assert len(list((tmp_path / "path" / "data").iterdir())) <= 8
    source.createOrReplaceTempView("many")
    merge = f"MERGE INTO {ns}.chosen t USING many s ON t.id = s.id + 20000 WHEN MATCHED THEN UPDATE SET k = 9"
    sql.sql(f"{merge} WHEN NOT MATCHED THEN INSERT (id, k) VALUES (s.id + 100000, 9)")
    assert sql.sql(f"SELECT count(*), count_if(k = 9) FROM {ns}.chosen").collect() == [(60_000, 40_000)]
    assert fragments(sql, f"{ns}.chosen")[0] <= 12


def test_a_dynamic_overwrite_replaces_a_table_without_partitions(sql: SparkSession, table: str) -> None:
    sql.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    one = sql.sql("SELECT 3L AS id, 'c' AS v")
    sql.sql(f"INSERT OVERWRITE {table} SELECT 9L, 'z'")
    assert sql.table(table).collect() == [(9, "z")]
    one.write.insertInto(table, overwrite=True)
    assert sql.table(table).collect() == [(3, "c")]
    one.limit(0).writeTo(table).overwritePartitions()
    assert sql.table(table).count() == 0
    one.write.format("lance").mode("overwrite").saveAsTable(table)
    assert sql.table(table).collect() == [(3, "c")]


def test_tables_are_made_by_the_api_of_the_catalog(sql: SparkSession, ns: str) -> None:
    schema = sql.range(1).schema
    with pytest.raises(UnsupportedOperationException, match=r"by format\('lance'\) .* by source='lance'"):
        sql.catalog.createTable(f"{ns}.made", schema=schema)
    sql.catalog.createTable(f"{ns}.made", source="lance", schema=schema)
    assert sql.table(f"{ns}.made").schema == schema


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("CREATE TABLE {n} (id INT) USING lance OPTIONS (branch = 'dev')", r"OPTIONS \(branch\): expected no options"),
        ("CREATE TABLE {n} OPTIONS (message = 'm') AS SELECT 1 AS id", r"OPTIONS \(message\): expected no options"),
        ("CREATE OR REPLACE TABLE {t} OPTIONS (x = '1') AS SELECT 1 AS id", r"OPTIONS \(x\): expected no options"),
        ("CREATE TABLE {n} (id INT) STORED AS ORC", "STORED AS, ROW FORMAT and SERDE: a table is stored as lance"),
        ("CREATE TABLE {n} (id INT) ROW FORMAT SERDE 'x'", "STORED AS, ROW FORMAT and SERDE"),
        ("CREATE TABLE {n} (id INT) ROW FORMAT DELIMITED FIELDS TERMINATED BY ','", r"OPTIONS \(\S+\): expected"),
        ("CREATE TABLE {n} (id INT) TBLPROPERTIES ('lance.stable_row_id' = 'true')", "expected lance.stable_row_ids"),
        ("CREATE TABLE {n} (id INT) TBLPROPERTIES ('LANCE.stable_row_ids' = 'true')", "expected lance.stable_row_ids"),
        ("CREATE TABLE {n} (id INT) TBLPROPERTIES ('enable_stable_row_ids' = 'true')", "expected lance.stable_row_ids"),
        ("REPLACE TABLE {t} TBLPROPERTIES ('lance.colour' = 'red') AS SELECT 1 AS id", "expected lance.stable_row_ids"),
        ("ALTER TABLE {t} SET TBLPROPERTIES ('lance.colour' = 'red')", "property lance.colour: expected lance.stable"),
        ("ALTER TABLE {t} SET TBLPROPERTIES ('option.colour' = 'red')", r"OPTIONS \(colour\): expected no options"),
        ("ALTER TABLE {t} DEFAULT COLLATION UTF8_LCASE", "DEFAULT COLLATION UTF8_LCASE: expected UTF8_BINARY"),
        ("ALTER TABLE {t} REPLACE COLUMNS (id BIGINT, w STRING)", "REPLACE COLUMNS would drop the values"),
        ("ALTER NAMESPACE {ns} SET PROPERTIES ('a' = 'b')", "ALTER NAMESPACE .* cannot be changed later"),
        ("ALTER NAMESPACE {ns} UNSET PROPERTIES ('a')", "ALTER NAMESPACE .* cannot be changed later"),
        ("COMMENT ON NAMESPACE {ns} IS 'x'", "ALTER NAMESPACE .* cannot be changed later"),
    ],
)
def test_clauses_without_an_effect_are_refused(
    sql: SparkSession, ns: str, table: str, statement: str, error: str
) -> None:
    with pytest.raises(Exception, match=error):
        sql.sql(statement.format(n=f"{ns}.n", t=table, ns=ns))
    assert not sql.catalog.tableExists(f"{ns}.n")
    assert sql.table(table).columns == ["id", "v"]
    assert {row.key for row in sql.sql(f"SHOW TBLPROPERTIES {table}").collect()} == {"lance.stable_row_ids"}


def test_options_of_a_table_are_refused_by_the_api_of_the_catalog(sql: SparkSession, ns: str) -> None:
    with pytest.raises(UnsupportedOperationException, match=r"OPTIONS \(branch\): expected no options of a table"):
        sql.catalog.createTable(f"{ns}.made", source="lance", schema=sql.range(1).schema, branch="dev")


def test_errors_of_spark_name_the_table(sql: SparkSession, table: str) -> None:
    with pytest.raises(Exception, match=r"does not support overwrite by expression: \w+\.t"):
        sql.table(table).writeTo(table).overwrite(F.expr("length(v) = 1"))
    assert sql.table(table).count() == 2


@pytest.mark.skipif(spark_version() < (4, 3), reason="Spark 4.3 offers it to catalogs")
def test_create_table_like(sql: SparkSession, ns: str, table: str) -> None:
    sql.sql(f"COMMENT ON COLUMN {table}.v IS 'text'")
    sql.sql(f"CREATE TABLE {ns}.like LIKE {table}")
    assert sql.table(f"{ns}.like").schema == sql.table(table).schema
    assert sql.table(f"{ns}.like").count() == 0
    shown = sql.sql(f"SHOW TBLPROPERTIES {ns}.like ('lance.stable_row_ids')").collect()
    assert shown == [("lance.stable_row_ids", "true")]
    sql.sql(f"CREATE TABLE IF NOT EXISTS {ns}.like LIKE {table}")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        sql.sql(f"CREATE TABLE {ns}.like LIKE {table}")


def test_describe_history(sql: SparkSession, ns: str, table: str) -> None:
    history = sql.sql(f"DESCRIBE HISTORY {table}").collect()
    assert [row.version for row in history] == [2, 1]
    assert sql.sql(f" desc  history {table} limit 1 ;").collect() == history[:1]
    sql.sql(f"USE {ns}")
    try:
        assert sql.sql("DESCRIBE HISTORY t").collect() == history
    finally:
        sql.sql("USE spark_catalog.default")


def copy_rows(
    sql: SparkSession, table: str, target: str, checkpoint: Path, mode: str = "append", **options: str
) -> None:
    """All rows of a table into another one, by a stream of the name `target`."""
    rows = sql.readStream.option("starting_version", "1").table(table)
    writer = rows.writeStream.format("lance").outputMode(mode).options(**options).trigger(availableNow=True)
    writer.option("checkpointLocation", str(checkpoint)).toTable(target).awaitTermination()


def test_streams_by_name(sql: SparkSession, ns: str, table: str, tmp_path: Path) -> None:
    def copy(target: str, checkpoint: str, **options: str) -> None:
        copy_rows(sql, table, target, tmp_path / checkpoint, **options)

    sql.sql(
        f"CREATE TABLE {ns}.copy LIKE {table}"
        if spark_version() >= (4, 3)
        else f"CREATE TABLE {ns}.copy (id BIGINT, v STRING)"
    )
    copy(f"{ns}.copy", "first", message="streamed")
    assert sorted(sql.table(f"{ns}.copy").collect()) == [(1, "a"), (2, "b")]
    assert sql.sql(f"SELECT message FROM {ns}.copy.history ORDER BY version DESC LIMIT 1").collect() == [("streamed",)]
    sql.sql(f"INSERT INTO {table} VALUES (3, 'c')")
    copy(f"{ns}.copy", "first", message="streamed")
    assert sorted(row.id for row in sql.table(f"{ns}.copy").collect()) == [1, 2, 3]
    copy(f"{ns}.new", "second")
    assert sql.table(f"{ns}.new").count() == 3
    with pytest.raises(Exception, match="options colour: expected options among"):
        copy(f"{ns}.copy", "third", colour="red")
    with pytest.raises(Exception, match="options colour: expected options among"):
        sql.readStream.option("colour", "red").table(table)
    for travel in ("versionAsOf", "timestampAsOf"):
        with pytest.raises(Exception, match=f"option {travel}: expected none for a stream"):
            sql.readStream.option(travel, "2030-01-01").table(table)
    with pytest.raises(UnsupportedOperationException, match="USING parquet: expected lance"):
        sql.readStream.table(table).writeStream.toTable(f"{ns}.other")
    assert not sql.catalog.tableExists(f"{ns}.other")


@pytest.mark.skipif(spark_version() < (4, 2), reason="streams are read on Spark 4.2")
@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"colour": "red"}, "options colour: expected options among"),
        ({"branch": "dev"}, "options branch: expected options among"),
        ({"isolation": "bogus"}, "option isolation: expected snapshot or serializable, found 'bogus'"),
        ({"mode": "update"}, "Update"),
        ({"mode": "complete"}, "Complete"),
        ({"mergeSchema": "true"}, "options mergeschema: expected options among"),
    ],
)
def test_a_refused_stream_makes_no_table(
    sql: SparkSession, ns: str, table: str, tmp_path: Path, options: dict[str, str], error: str
) -> None:
    with pytest.raises(Exception, match=f"(?i){error}"):
        copy_rows(sql, table, f"{ns}.new", tmp_path / "checkpoint", **options)
    assert [row.tableName for row in sql.sql(f"SHOW TABLES IN {ns}").collect()] == ["t"]


@pytest.mark.skipif(spark_version() < (4, 2), reason="streams are read on Spark 4.2")
def test_a_stream_is_no_part_of_a_transaction(sql: SparkSession, ns: str, table: str, tmp_path: Path) -> None:
    with lance_transaction(sql):
        for target in (f"{ns}.new", table):
            with pytest.raises(UnsupportedOperationException, match="a stream cannot be part of a transaction"):
                copy_rows(sql, table, target, tmp_path / "checkpoint")
    assert [row.tableName for row in sql.sql(f"SHOW TABLES IN {ns}").collect()] == ["t"]
    copy_rows(sql, table, f"{ns}.new", tmp_path / "checkpoint")
    assert sql.table(f"{ns}.new").count() == 2
