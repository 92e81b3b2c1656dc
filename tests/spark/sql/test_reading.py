"""Scans: what is pushed down, what the planner knows, and which versions one query reads."""

from __future__ import annotations

import datetime as dt
import math
import struct
from pathlib import Path
from urllib.parse import urlsplit

import lance
import pyarrow as pa
import pytest
from pyspark.errors import IllegalArgumentException, UnsupportedOperationException
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from namespace_client import Catalog
from namespace_client.http import CatalogServer
from spark_catalog import GraphWrite, lance_transaction
from tests.spark.sql.conftest import NewSession


def plan(session: SparkSession, query: str) -> str:
    return str(session.sql(f"EXPLAIN FORMATTED {query}").collect()[0][0])


@pytest.fixture
def numbers(sql: SparkSession, ns: str) -> str:
    """A table of 1000 rows in four fragments."""
    name = f"{ns}.numbers"
    sql.sql(f"CREATE TABLE {name} (id BIGINT, half INT, word STRING, x DOUBLE, day DATE)")
    for part in range(4):
        sql.sql(
            f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ id, int(id / 2), concat('w', id % 7), id / 3.0,"
            f" date_add(DATE'2020-01-01', int(id)) FROM range({part * 250}, {part * 250 + 250})"
        )
    return name


def test_columns_filters_and_limits_are_pushed(sql: SparkSession, numbers: str) -> None:
    text = plan(sql, f"SELECT word FROM {numbers} WHERE id > 990 AND day < DATE'2030-01-01' LIMIT 3")
    assert "columns word, filter" in text
    assert "(`id` > 990)" in text
    assert "(`day` < CAST('2030-01-01' AS DATE))" in text
    assert "limit 3" in text
    assert "Filter" not in text.replace("RuntimeFilters", "").replace("filter", "")


def test_filters_that_lance_answers_in_another_way_stay_in_spark(sql: SparkSession, numbers: str) -> None:
    for predicate in ("id + 1 = 5", "upper(word) = 'W1'", "x = x OR id = 1"):
        text = plan(sql, f"SELECT word FROM {numbers} WHERE {predicate}")
        pushed = text.partition("filter ")[2].partition(", limit")[0]
        assert pushed in {"none", "(`x` IS NOT NULL)", "(`id` IS NOT NULL)", "(`word` IS NOT NULL)"}, predicate
        assert "Filter" in text
    both = plan(sql, f"SELECT word FROM {numbers} WHERE x > 3.5 AND id = 7")
    assert "(`id` = 7)" in both


def test_times_decimals_floats_and_fields_are_compared_as_spark_does(
    sql: SparkSession, ns: str, server_url: str
) -> None:
    table, same = f"{ns}.kinds", "same_kinds"
    rows = """SELECT * FROM VALUES
        (1, TIMESTAMP'2020-01-01 00:00:00.000001Z', TIMESTAMP_NTZ'0001-01-01 00:00:00', 1.50BD, float('1.1'), 1.5D,
         named_struct('b', 'q', 'at', TIMESTAMP'2020-01-01 00:00:00Z', 'c', named_struct('e', 5))),
        (2, TIMESTAMP'1969-12-31 23:59:59.999999Z', TIMESTAMP_NTZ'9999-12-31 00:00:00', -2.00BD, float('NaN'), 3.5D,
         null),
        (3, null, null, null, null, null, named_struct('b', null, 'at', null, 'c', null)),
        (4, TIMESTAMP'2020-01-01 00:00:00Z', TIMESTAMP_NTZ'2020-01-01 00:00:00', 0.00BD, float('-0.0'), -0.0D,
         named_struct('b', 'z', 'at', TIMESTAMP'1970-01-01 00:00:00Z', 'c', named_struct('e', null)))
        AS t(id, at, local, price, f, d, s)"""
    sql.sql(f"CREATE TABLE {table} AS {rows}")
    sql.sql(rows).createOrReplaceTempView(same)
    times = ("TIMESTAMP'2020-01-01 00:00:00.000001Z'", "TIMESTAMP'1969-12-31 23:59:59.999999Z'")
    locals_ = ("TIMESTAMP_NTZ'0001-01-01 00:00:00'", "TIMESTAMP_NTZ'2020-01-01 00:00:00'")
    operands = {
        "at": times,
        "local": locals_,
        "price": ("1.50BD", "CAST(0 AS DECIMAL(3, 2))"),
        "f": ("float('1.1')", "float('0')"),
        "d": ("1.5D", "0.0D"),
        "s.b": ("'q'",),
        "s.at": ("TIMESTAMP'1970-01-01 00:00:00Z'",),
        "s.c.e": ("5",),
    }
    comparisons = [
        f"{negation}({column} {operator} {value})"
        for column, values in operands.items()
        for value in values
        for operator in ("=", "<", "<=", ">", ">=", "<>")
        for negation in ("", "NOT ")
    ]
    comparisons += [f"{column} IN ({', '.join((*values, values[0]))})" for column, values in operands.items()]
    comparisons += [f"NOT ({column} IN ({', '.join(values)}))" for column, values in operands.items()]
    comparisons += [f"{column} IS {test}" for column in operands for test in ("NULL", "NOT NULL")]
    comparisons += ["d IN (1.5D, 3.5D, 9D, 10D, 11D, 12D, 13D, 14D, 15D, 16D, 17D)", "s.c IS NULL", "s IS NULL"]

    def found(name: str) -> list[Row]:
        selects = (f"SELECT {n} AS n, collect_list(id) FROM {name} WHERE {each}" for n, each in enumerate(comparisons))
        return sql.sql(" UNION ALL ".join(selects)).collect()

    assert found(table) == found(same)
    for comparison in (comparisons[0], "price >= 1.50BD", "s.b = 'q'", "s.c.e IN (5, 6)", "f > float('1.1')"):
        text = plan(sql, f"SELECT id FROM {table} WHERE {comparison}")
        assert "Filter" not in text.replace("RuntimeFilters", "").replace("filter", ""), comparison
    sql.sql(f"DELETE FROM {table} WHERE at = {times[0]}")
    assert sql.table(table).count() == 3
    with Catalog.connect(server_url, namespace=[ns.removeprefix("lance.")]) as other, other.begin() as tx:
        nanos = pa.array([1_577_836_800_000_000_001, 1_577_836_800_000_000_000], pa.timestamp("ns", "UTC"))
        tx.create("nanos", pa.table({"at": nanos}))
    equal = f"SELECT count(*) FROM {ns}.nanos WHERE at = TIMESTAMP'2020-01-01 00:00:00Z'"
    assert sql.sql(equal).collect() == [(2,)]
    assert "(`at` = " not in plan(sql, equal)


def test_doubles_are_compared_as_spark_does(sql: SparkSession, ns: str, server_url: str) -> None:
    """NaN of either sign is above all numbers, and 0.0 is -0.0."""
    nan = struct.unpack("<2d", struct.pack("<2Q", 0x7FF8000000000000, 0xFFF8000000000001))
    numbers = [*nan, 0.0, -0.0, math.inf, -math.inf, 5e-324, -5e-324, 1.5, -1.5, 0.1, 1e300, None]
    written = pa.table({"id": pa.array(range(len(numbers)), pa.int64()), "x": pa.array(numbers, pa.float64())})
    with Catalog.connect(server_url, namespace=[ns.removeprefix("lance.")]) as other, other.begin() as tx:
        tx.create("doubles", written)
    sql.createDataFrame(written.to_pylist(), "id long, x double").createOrReplaceTempView("same")
    comparisons = [
        f"{negation} {left} {operator} {right}"
        for operator in ("=", "<", "<=", ">", ">=", "<>")
        for number in ("0.0D", "-0.0D", "1.5D", "5E-324D")
        for negation, left, right in (("", "x", number), ("", number, "x"), ("NOT", "x", number))
    ]

    def found(table: str) -> list[Row]:
        return sql.sql(
            " UNION ALL ".join(
                f"SELECT '{comparison}' AS c, collect_list(id) FROM {table} WHERE {comparison}"
                for comparison in comparisons
            )
        ).collect()

    assert found(f"{ns}.doubles") == found("same")
    text = plan(sql, f"SELECT id FROM {ns}.doubles WHERE x > 1.5D")
    assert "(`x` > 1.5 OR isnan(`x`))" in text
    assert "Filter" not in text.replace("RuntimeFilters", "").replace("filter", "")


def test_a_count_reads_no_rows(sql: SparkSession, numbers: str) -> None:
    text = plan(sql, f"SELECT count(*) FROM {numbers}")
    assert "LocalTableScan" in text or "count of" in text
    assert "BatchScan" not in text
    assert sql.sql(f"SELECT count(*) FROM {numbers}").collect() == [(1000,)]
    filtered = f"SELECT count(*), count(1) FROM {numbers} WHERE id >= 500"
    assert "columns count_0, filter" in plan(sql, filtered)
    assert sql.sql(filtered).collect() == [(500, 500)]
    assert sql.sql(f"SELECT count(*) FROM {numbers} WHERE id < 0").collect() == [(0,)]
    assert sql.sql(f"SELECT count(*) FROM {numbers} WHERE id >= 500 AND x + 1 > 300").collect() == [(102,)]
    sql.sql(f"DELETE FROM {numbers} WHERE id % 2 = 0")
    assert sql.sql(filtered).collect() == [(250, 250)]
    with lance_transaction(sql):
        sql.sql(f"INSERT INTO {numbers} (id) VALUES (1000)")
        assert sql.sql(filtered).collect() == [(251, 251)]
        sql.sql(f"TRUNCATE TABLE {numbers}")
        assert sql.sql(filtered).collect() == [(0, 0)]


def test_the_planner_knows_the_size(sql: SparkSession, numbers: str, catalog: CatalogServer) -> None:
    state = catalog.table(tuple(numbers.split(".")[1:]))
    assert state is not None
    stored = sum(file.stat().st_size for file in (Path(urlsplit(state.uri).path) / "data").iterdir())
    described = sql.sql(f"DESCRIBE EXTENDED {numbers}").collect()
    [statistics] = [row.data_type for row in described if row.col_name == "Statistics"]
    size, _, counted = statistics.partition(" bytes, ")
    assert counted == "1000 rows"
    assert stored <= int(size) < 1000 * 100
    narrow = sql.sql(f"SELECT half FROM {numbers}")._jdf.queryExecution().optimizedPlan().stats()
    assert narrow.sizeInBytes() < int(size) / 2


def test_a_large_table_is_not_broadcast(sql: SparkSession, ns: str) -> None:
    sql.sql(f"CREATE TABLE {ns}.large AS SELECT id, id AS a, id AS b, id AS c FROM range(400000)")
    sql.sql(f"CREATE TABLE {ns}.small AS SELECT id FROM range(10)")
    text = plan(sql, f"SELECT * FROM {ns}.large a JOIN {ns}.large b ON a.id = b.id")
    assert "BroadcastHashJoin" not in text
    text = plan(sql, f"SELECT * FROM {ns}.large a JOIN {ns}.small b ON a.id = b.id")
    assert "BroadcastHashJoin" in text


def test_fragments_are_read_by_several_tasks(sql: SparkSession, ns: str) -> None:
    sql.sql(f"CREATE TABLE {ns}.wide AS SELECT /*+ COALESCE(1) */ id FROM range(1500000)")
    assert sql.table(f"{ns}.wide").rdd.getNumPartitions() > 1
    assert sql.sql(f"SELECT count(DISTINCT id), sum(id) FROM {ns}.wide").collect() == [(1500000, 1124999250000)]


def test_all_tables_of_a_query_are_of_one_catalog_version(sql: SparkSession, ns: str, server_url: str) -> None:
    sql.sql(f"CREATE TABLE {ns}.a AS SELECT 1 AS version")
    sql.sql(f"CREATE TABLE {ns}.b AS SELECT 1 AS version")
    path = ns.removeprefix("lance.")
    with Catalog.connect(server_url, namespace=[path]) as other:
        for number in range(2, 7):
            with other.begin() as tx:
                for name in ("a", "b"):
                    tx.overwrite(name, pa.table({"version": pa.array([number], pa.int32())}))
            joined = sql.sql(f"SELECT a.version, b.version FROM {ns}.a CROSS JOIN {ns}.b").collect()
            assert joined == [(number, number)]
    frame = sql.sql(f"SELECT a.version AS a, b.version AS b FROM {ns}.a CROSS JOIN {ns}.b")
    with Catalog.connect(server_url, namespace=[path]) as other, other.begin() as tx:
        tx.overwrite("b", pa.table({"version": pa.array([99], pa.int32())}))
    assert frame.collect() == [(6, 6)]  # resolved before, and read as resolved


def test_dataframes_of_different_times_are_read_at_one_catalog_version(
    sql: SparkSession, ns: str, server_url: str
) -> None:
    for name in ("a", "b", "c"):
        sql.sql(f"CREATE TABLE {ns}.{name} AS SELECT 1 AS version")
    first, third = sql.table(f"{ns}.a"), sql.table(f"{ns}.c")
    with Catalog.connect(server_url, namespace=[ns.removeprefix("lance.")]) as other, other.begin() as tx:
        for name in ("a", "b"):
            tx.overwrite(name, pa.table({"version": pa.array([2], pa.int32())}))
    second = sql.table(f"{ns}.b")
    assert first.collect() == [(1,)]
    assert first.crossJoin(second).collect() == [(2, 2)]
    assert first.crossJoin(third).crossJoin(second).collect() == [(2, 1, 2)]
    old = sql.read.option("versionAsOf", 1).table(f"{ns}.a")
    assert old.crossJoin(second).collect() == [(1, 2)]
    first.createOrReplaceTempView("first")
    assert sql.sql(f"SELECT * FROM first WHERE version IN (SELECT version FROM {ns}.b)").collect() == [(2,)]
    sql.sql(f"ALTER TABLE {ns}.a RENAME COLUMN version TO v")
    with pytest.raises(IllegalArgumentException, match="its columns have changed since this DataFrame was made"):
        first.crossJoin(sql.table(f"{ns}.b"))


def test_a_cached_table_is_used_until_it_changes(sql: SparkSession, ns: str) -> None:
    sql.sql(f"CREATE TABLE {ns}.a AS SELECT 1 AS x")
    cached = sql.table(f"{ns}.a").cache()
    assert cached.count() == 1
    assert "InMemoryTableScan" in plan(sql, f"SELECT x FROM {ns}.a")
    sql.sql(f"INSERT INTO {ns}.a VALUES (2)")
    assert sql.sql(f"SELECT x FROM {ns}.a ORDER BY x").collect() == [(1,), (2,)]
    cached.unpersist()


def test_catalog_versions(sql: SparkSession, ns: str, catalog: CatalogServer) -> None:
    sql.sql(f"CREATE TABLE {ns}.a AS SELECT 1 AS x")
    first = catalog.state().version
    sql.sql(f"INSERT INTO {ns}.a VALUES (2)")
    assert sql.sql(f"SELECT sum(x) FROM {ns}.a VERSION AS OF 'catalog:{first}'").collect() == [(1,)]
    assert sql.sql(f"SELECT sum(x) FROM {ns}.a VERSION AS OF 'catalog:{first + 1}'").collect() == [(3,)]
    assert sql.read.option("versionAsOf", f"catalog:{first}").table(f"{ns}.a").count() == 1
    with pytest.raises(IllegalArgumentException, match=f"9999: expected a number from 1 to {first + 1}"):
        sql.sql(f"SELECT * FROM {ns}.a VERSION AS OF 'catalog:9999'")
    both = f"SELECT a.x FROM {ns}.a a LEFT ANTI JOIN {ns}.a VERSION AS OF 'catalog:{first}' b ON a.x = b.x"
    assert sql.sql(both).collect() == [(2,)]


def test_timestamps(sql: SparkSession, ns: str) -> None:
    sql.sql(f"CREATE TABLE {ns}.a AS SELECT 1 AS x")
    sql.sql(f"INSERT INTO {ns}.a VALUES (2)")
    times = [row.timestamp for row in sql.sql(f"SELECT * FROM {ns}.a.versions ORDER BY version").collect()]
    assert len(times) == 2
    for expected, moment in enumerate(times, 1):
        text = moment.astimezone(dt.UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
        assert sql.sql(f"SELECT count(*) FROM {ns}.a TIMESTAMP AS OF '{text}'").collect() == [(expected,)]


def test_sql_reads_what_pylance_wrote(sql: SparkSession, ns: str, server_url: str) -> None:
    path = ns.removeprefix("lance.")
    written = pa.table(
        {
            "small": pa.array([1, 255], pa.uint8()),
            "large": pa.array([1, 2**64 - 1], pa.uint64()),
            "text": pa.array(["a", None], pa.large_string()),
            "vector": pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2)),
            "coded": pa.array(["x", "y"]).dictionary_encode(),
        }
    )
    with Catalog.connect(server_url, namespace=[path]) as other, other.begin() as tx:
        tx.create("made", written)
    assert sql.sql(f"SELECT small, int(large % 10), text, vector, coded FROM {ns}.made ORDER BY small").collect() == [
        (1, 1, "a", [1.0, 2.0], "x"),
        (255, 5, None, [3.0, 4.0], "y"),
    ]
    sql.sql(f"INSERT INTO {ns}.made VALUES (3, 3, 'c', array(5.0, 6.0), 'x')")
    sql.sql(f"UPDATE {ns}.made SET vector = array(7.0, 8.0) WHERE small = 1")
    assert sql.sql(f"SELECT vector FROM {ns}.made ORDER BY small").collect() == [
        ([7.0, 8.0],),
        ([5.0, 6.0],),
        ([3.0, 4.0],),
    ]


def test_pylance_reads_what_sql_wrote(sql: SparkSession, ns: str, catalog: CatalogServer) -> None:
    sql.sql(f"CREATE TABLE {ns}.t (id INT NOT NULL COMMENT 'key', at TIMESTAMP, s STRUCT<a: ARRAY<STRING>>)")
    sql.sql(f"INSERT INTO {ns}.t VALUES (1, TIMESTAMP'2020-01-01 00:00:00Z', named_struct('a', array('x')))")
    sql.sql(f"INSERT INTO {ns}.t VALUES (2, NULL, NULL), (3, NULL, NULL)")
    sql.sql(f"UPDATE {ns}.t SET at = TIMESTAMP'2021-01-01 00:00:00Z' WHERE id = 2")
    sql.sql(f"DELETE FROM {ns}.t WHERE id = 3")
    state = catalog.table((*ns.split(".")[1:], "t"))
    assert state is not None
    dataset = lance.dataset(state.uri)
    assert dataset.version == state.version == 5
    assert dataset.schema.field("id").nullable is False
    assert dataset.schema.field("id").metadata == {b"comment": b"key"}
    assert sorted(dataset.to_table(columns=["id", "at", "s"]).to_pylist(), key=lambda row: row["id"]) == [
        {"id": 1, "at": dt.datetime(2020, 1, 1, tzinfo=dt.UTC), "s": {"a": ["x"]}},
        {"id": 2, "at": dt.datetime(2021, 1, 1, tzinfo=dt.UTC), "s": None},
    ]
    dataset.validate()


@pytest.mark.parametrize(
    "rows",
    [
        "SELECT 0 AS id, named_struct('v', parse_json('1')) AS v UNION ALL SELECT 1, NULL",
        "SELECT 0 AS id, named_struct('s', named_struct('a', 1)) AS v UNION ALL SELECT 1, NULL",
        "SELECT 0 AS id, array(named_struct('v', parse_json('1')), NULL) AS v UNION ALL SELECT 1, NULL",
        "SELECT 0 AS id, array(named_struct('s', named_struct('a', 1)), NULL) AS v UNION ALL SELECT 1, NULL",
        "SELECT 0 AS id, map('a', named_struct('v', parse_json('1')), 'b', NULL) AS v UNION ALL SELECT 1, NULL",
        "SELECT 0 AS id, array(parse_json('1'), NULL) AS v UNION ALL SELECT 1, NULL",
    ],
)
def test_structs_that_are_null_hold_values_that_are_not(sql: SparkSession, ns: str, server_url: str, rows: str) -> None:
    """The parts of a VARIANT, and fields of a struct that is made in a query, are never null where it is not."""
    frame = sql.sql(rows).coalesce(1)
    expected = [str(row) for row in frame.orderBy("id").collect()]
    frame.writeTo(f"{ns}.t").create()
    frame.writeTo(f"{ns}.t").overwrite(F.lit(True))
    sql.sql(f"MERGE INTO {ns}.t t USING ({rows}) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *")
    with GraphWrite(sql, server_url, namespace=ns.split(".")[1:]) as write:
        write.append("g", frame)
    for table in ("t", "g"):
        assert [str(row) for row in sql.table(f"{ns}.{table}").orderBy("id").collect()] == expected


def test_dataframes_write(sql: SparkSession, ns: str) -> None:
    frame = sql.range(5).selectExpr("id", "id * id AS square")
    frame.writeTo(f"{ns}.squares").create()
    frame.writeTo(f"{ns}.squares").append()
    assert sql.table(f"{ns}.squares").count() == 10
    frame.limit(2).write.mode("overwrite").insertInto(f"{ns}.squares")
    assert sql.table(f"{ns}.squares").count() == 2
    frame.write.mode("append").saveAsTable(f"{ns}.squares")
    frame.writeTo(f"{ns}.others").createOrReplace()
    frame.limit(3).writeTo(f"{ns}.others").tableProperty("p", "q").createOrReplace()
    frame.limit(1).writeTo(f"{ns}.others").overwrite(F.col("id") < 2)
    assert sql.table(f"{ns}.squares").count() == 7
    assert sorted(row.id for row in sql.table(f"{ns}.others").collect()) == [0, 2]
    with pytest.raises(UnsupportedOperationException, match=r"USING parquet: expected lance; .*by format\('lance'\)"):
        frame.write.mode("overwrite").saveAsTable(f"{ns}.others")


def test_a_session_of_its_own_has_a_transaction_of_its_own(new_session: NewSession) -> None:
    one, two = new_session(), new_session()
    one.sql("CALL lance.system.begin()")
    two.sql("CALL lance.system.begin()")
    one.sql("CALL lance.system.rollback()")
    two.sql("CALL lance.system.rollback()")
