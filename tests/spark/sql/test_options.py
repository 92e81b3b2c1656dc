"""Options of reads and writes by name: each has the effect that it has on a path, or is refused by its name."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.errors import IllegalArgumentException, UnsupportedOperationException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from namespace_client import Catalog
from namespace_client.http import CatalogServer
from spark_catalog import lance_transaction
from tests.spark.sql.test_reading import plan

STABLE = "TBLPROPERTIES ('lance.stable_row_ids' = 'true')"


@pytest.fixture
def items(sql: SparkSession, ns: str) -> str:
    """A table with rows 1 to 3 in version 2 (tagged `first`), row 4 in version 3, and row 9 on branch `dev`."""
    name = f"{ns}.item"
    sql.sql(f"CREATE TABLE {name} (id BIGINT, v STRING) {STABLE}")
    sql.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    sql.sql(f"CALL lance.system.create_tag('{name}', 'first', 2)")
    sql.sql(f"CALL lance.system.create_branch('{name}', 'dev', 2)")
    sql.sql(f"INSERT INTO {name} VALUES (4, 'd')")
    return name


def ids(sql: SparkSession, table: str, **options: str) -> list[int]:
    return sorted(row.id for row in sql.read.options(**options).table(table).collect())


def test_a_version_is_read_by_each_of_its_names(sql: SparkSession, items: str, catalog: CatalogServer) -> None:
    head = catalog.state().version
    [[timestamp]] = sql.sql(f"SELECT string(timestamp) FROM {items}.versions WHERE version = 2").collect()
    for options in (
        {"version": "2"},
        {"tag": "first"},
        {"branch": "dev"},
        {"branch": "dev", "version": "2"},
        {"timestamp": timestamp},
        {"catalog_version": str(head - 1)},
        {"versionAsOf": "2", "split_rows": "1"},
    ):
        assert ids(sql, items, **options) == [1, 2, 3], options
        assert sql.read.options(**options).table(items).count() == 3, options
    assert ids(sql, items) == [1, 2, 3, 4]
    sql.sql(f"ALTER TABLE {items} RENAME COLUMN v TO w")
    assert sql.read.option("version", 2).table(items).columns == ["id", "v"]


def test_rows_and_columns_are_those_of_the_options(sql: SparkSession, items: str) -> None:
    read = sql.read
    assert ids(sql, items, filter="id > 2 -- a comment") == [3, 4]
    filtered = sql.read.option("filter", "id > 1").table(items)
    assert filtered.count() == 3
    assert filtered.where("v = 'd'").count() == 1
    assert 'options {"filter":"id > 1"}' in plan(sql, f"SELECT * FROM {items} WITH (`filter` = 'id > 1')")
    limited = sql.read.option("limit", "2").table(items)
    assert limited.count() == 2
    assert len(limited.collect()) == 2
    assert limited.where("id > 0").count() == 2
    assert limited.limit(1).count() == 1
    assert ids(sql, items, limit="1", filter="id = 4") == [4]
    assert sql.read.option("columns", "v").table(items).columns == ["v"]
    assert [row.v for row in sql.read.options(columns="v", filter="id = 3").table(items).collect()] == ["c"]
    with_ids = sql.read.options(with_row_id="true", with_row_address="true", with_row_versions="true").table(items)
    assert with_ids.columns[2:] == ["_rowid", "_rowaddr", "_row_created_at_version", "_row_last_updated_at_version"]
    assert sorted(row._row_created_at_version for row in with_ids.collect()) == [2, 2, 2, 3]
    assert with_ids.where("_rowid >= 0 AND _row_created_at_version = 3").select("id").collect() == [(4,)]
    assert sql.read.option("split_rows", "1").table(items).rdd.getNumPartitions() == 4
    assert read.table(items).count() == 4


def test_one_query_reads_a_table_in_several_ways(sql: SparkSession, items: str) -> None:
    found = sql.sql(
        f"SELECT a.id, b.id, c.id FROM {items} WITH (`filter` = 'id = 1') a, {items} WITH (`version` = '2') b, "
        f"{items} c WHERE b.id >= 3 AND c.id = 4 AND a.id IN (SELECT id FROM {items} WITH (`limit` = '4'))"
    )
    assert found.collect() == [(1, 3, 4)]
    assert sql.sql(f"SELECT max(id) FROM {items} VERSION AS OF 2 WITH (`filter` = 'id < 3')").collect() == [(2,)]
    name = items.rpartition(".")[2]
    sql.sql(f"USE {items.rpartition('.')[0]}")
    try:
        assert ids(sql, name, filter="id = 2") == [2]
        sql.sql(f"CREATE TEMP VIEW few AS SELECT * FROM {name} WITH (`filter` = 'id = 2')")
    finally:
        sql.sql("USE spark_catalog.default")
    assert sql.table("few").count() == 1
    sql.catalog.dropTempView("few")


def test_searches_are_read_by_name(sql: SparkSession, ns: str, server_url: str) -> None:
    points = pa.array([[float(number), 0.0] for number in range(20)], pa.list_(pa.float32(), 2))
    with Catalog.connect(server_url, namespace=ns.split(".")[1:]) as other, other.begin() as tx:
        tx.create("spot", pa.table({"id": pa.array(range(20), pa.int64()), "at": points}))
    search = {"nearest.column": "at", "nearest.vector": "[7, 0]", "nearest.k": "3"}
    found = sql.read.options(**search, columns="id", with_row_id="true").table(f"{ns}.spot")
    assert found.columns == ["id", "_rowid"]
    assert sorted(row.id for row in found.collect()) == [6, 7, 8]
    assert found.where("id > 100").count() == 0
    scored = sql.read.options(**search, filter="id > 7").table(f"{ns}.spot")
    assert scored.columns == ["id", "at", "_distance"]
    assert [(row.id, row._distance) for row in scored.orderBy("_distance").collect()] == [(8, 1.0), (9, 4.0), (10, 9.0)]
    with pytest.raises(IllegalArgumentException, match=r"nearest.column: expected nearest.column and nearest.vector"):
        sql.read.options(**{"nearest.column": "at"}).table(f"{ns}.spot")


def test_writes_read_dataframes_as_they_are(sql: SparkSession, ns: str, items: str) -> None:
    """Spark loads the tables of a writing query again, by their names alone."""
    for number, (options, expected) in enumerate(
        (({"filter": "id = 2"}, [2]), ({"version": "2"}, [1, 2, 3]), ({"versionAsOf": "2"}, [1, 2, 3]))
    ):
        frame = sql.read.options(**options).table(items)
        frame.writeTo(f"{ns}.copy{number}").create()
        assert ids(sql, f"{ns}.copy{number}") == expected
        sql.read.options(**options).table(items).writeTo(f"{ns}.copy{number}").append()
        assert ids(sql, f"{ns}.copy{number}") == sorted(expected * 2)
        frame.createOrReplaceTempView("source")
        sql.sql(f"INSERT OVERWRITE {ns}.copy{number} SELECT * FROM source")
        assert ids(sql, f"{ns}.copy{number}") == expected
    sql.sql(f"SELECT * FROM {items} VERSION AS OF 2").writeTo(f"{ns}.copy0").overwrite(F.lit(True))
    assert ids(sql, f"{ns}.copy0") == [1, 2, 3]
    sql.sql(f"INSERT INTO {ns}.copy0 SELECT * FROM {items} WITH (`filter` = 'id = 4')")
    assert ids(sql, f"{ns}.copy0") == [1, 2, 3, 4]


def test_options_in_a_transaction(sql: SparkSession, items: str) -> None:
    with lance_transaction(sql):
        sql.sql(f"INSERT INTO {items} VALUES (5, 'e')")
        assert ids(sql, items, filter="id > 3") == [4, 5]
        assert ids(sql, items, version="2", filter="id > 1") == [2, 3]
        with pytest.raises(IllegalArgumentException, match=r"options message: expected as arguments of system.begin"):
            sql.range(1).selectExpr("id", "'x' AS v").writeTo(items).option("message", "m").append()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"colour": "red"}, "options colour: expected options among branch, catalog_version"),
        ({"server": "http://127.0.0.1:9", "table": "a"}, "options server, table: expected options among"),
        ({"storage.region": "r"}, "options storage.region: expected options among"),
        ({"limit": "few"}, "option limit: expected a whole number, found 'few'"),
        ({"columns": "id,nothing"}, "option columns: expected columns among"),
        ({"columns": "id,id"}, "option columns: expected names, each once, .* found 'id,id'"),
        ({"filter": "nothing = 1"}, "nothing"),
        ({"version": "99"}, "version 99: expected one that"),
        ({"tag": "none"}, "there is no such tag"),
        ({"branch": "none"}, "branch none"),
        ({"version": "1", "tag": "first"}, "options version, tag: expected one of them"),
        ({"versionAsOf": "1", "branch": "dev"}, "expected one way to name a version"),
        ({"timestampAsOf": "2099-01-01", "limit": "1"}, "option timestampAsOf: expected option timestamp with"),
        ({"version": "1_0"}, "option version: expected a whole number, found '1_0'"),
        ({"limit": " 1"}, "option limit: expected a whole number, found ' 1'"),
        ({"filter": " "}, "option filter: expected an SQL expression, found ' '"),
    ],
)
def test_reads_refuse_what_they_cannot_do(sql: SparkSession, items: str, options: dict[str, str], error: str) -> None:
    with pytest.raises(IllegalArgumentException, match=error):
        sql.read.options(**options).table(items).collect()


def test_an_option_is_named_once(sql: SparkSession, items: str) -> None:
    with pytest.raises(IllegalArgumentException, match="options VERSION, version: expected each name once"):
        sql.sql(f"SELECT * FROM {items} WITH (version = '1', VERSION = '2')").collect()
    with pytest.raises(IllegalArgumentException, match="options MESSAGE, message: expected each name once"):
        sql.sql(f"INSERT INTO {items} WITH (message = 'a', MESSAGE = 'b') VALUES (9, 'x')")
    assert ids(sql, items) == [1, 2, 3, 4]
    assert sql.read.option("VERSION", "1").option("version", "2").table(items).count() == 3  # the later one counts


@pytest.mark.parametrize("change", ["UPDATE {} SET v = 'z'", "DELETE FROM {} WHERE id = 1"])
def test_changes_of_rows_refuse_options(sql: SparkSession, items: str, change: str) -> None:
    for options in ("branch = 'dev'", "`filter` = 'id > 1'"):
        with pytest.raises(UnsupportedOperationException, match=r"options .*: expected none where rows"):
            sql.sql(change.format(f"{items} WITH ({options})"))
    assert sql.table(items).where("id = 1").collect() == [(1, "a")]


def test_metadata_tables_refuse_options(sql: SparkSession, items: str) -> None:
    with pytest.raises(IllegalArgumentException, match="options limit: expected none for a metadata table"):
        sql.read.option("limit", "1").table(f"{items}.history")


def test_options_of_writes(sql: SparkSession, items: str) -> None:
    rows = sql.range(10, 20, 1, 1).selectExpr("id", "'x' AS v")
    rows.writeTo(items).option("message", "delivery").option("max_rows_per_file", "4").append()
    assert sql.sql(f"SELECT message FROM {items}.history ORDER BY version DESC LIMIT 1").collect() == [("delivery",)]
    assert sql.sql(f"SELECT count(*) FROM {items}.fragments").collect() == [(5,)]
    sql.sql(f"INSERT INTO {items} WITH (`message` = 'by SQL') VALUES (30, 'y')")
    assert sql.sql(f"SELECT message FROM {items}.history ORDER BY version DESC LIMIT 1").collect() == [("by SQL",)]


@pytest.mark.parametrize(
    ("option", "value", "error"),
    [
        ("branch", "dev", "options branch: expected options among isolation, max_rows_per_file, message"),
        ("version", "1", "options version: expected options among"),
        ("isolation", "", "option isolation: expected snapshot or serializable, found ''"),
        ("isolation", "bogus", "option isolation: expected snapshot or serializable, found 'bogus'"),
        ("max_rows_per_file", "0", "option max_rows_per_file: expected a number from 1, found 0"),
        ("storage.region", "r", "options storage.region: expected"),
        ("mergeSchema", "perhaps", "option mergeSchema: expected true or false, found perhaps"),
    ],
)
def test_writes_refuse_what_they_cannot_do(sql: SparkSession, items: str, option: str, value: str, error: str) -> None:
    rows = sql.range(1).selectExpr("id", "'x' AS v")
    for write in (
        lambda: rows.writeTo(items).option(option, value).append(),
        lambda: rows.writeTo(items).option(option, value).overwrite(F.col("id") == 0),
        lambda: rows.write.option(option, value).insertInto(items),
        lambda: rows.write.mode("append").option(option, value).saveAsTable(items),
        lambda: rows.writeTo(f"{items}_new").option(option, value).create(),
    ):
        with pytest.raises(IllegalArgumentException, match=error):
            write()
    assert ids(sql, items) == [1, 2, 3, 4]
    assert not sql.catalog.tableExists(f"{items}_new")


def test_an_isolation_of_a_write_is_that_of_its_batch(sql: SparkSession, ns: str, items: str, server_url: str) -> None:
    """A serializable write conflicts with a commit to a table that it has read, and one on a snapshot does not."""
    sql.sql(f"CREATE TABLE {ns}.copy (id BIGINT, v STRING) {STABLE}")
    namespace = ns.split(".")[1:]

    def with_a_commit(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with Catalog.connect(server_url, namespace=namespace) as other, other.begin() as tx:
            tx.append("item", pa.table({"id": pa.array([5], pa.int64()), "v": ["e"]}))
        yield from batches

    frame = sql.table(items).coalesce(1).mapInArrow(with_a_commit, "id long, v string")
    frame.writeTo(f"{ns}.copy").option("isolation", "snapshot").append()
    assert ids(sql, f"{ns}.copy") == [1, 2, 3, 4]
    with pytest.raises(IllegalArgumentException, match="RetryableConflict"):
        frame.writeTo(f"{ns}.copy").option("isolation", "serializable").append()
    assert ids(sql, f"{ns}.copy") == [1, 2, 3, 4]
