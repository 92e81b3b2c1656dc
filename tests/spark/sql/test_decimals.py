"""Decimals behind strings: Spark passes them at addresses that Lance does not read, so every write copies them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from namespace_client.http import CatalogServer
from spark_catalog import GraphWrite
from table_data.arrow.memory import readable_by_lance

pytestmark = pytest.mark.spark

WORDS = ("", "a", "bcd", "efghi", "jklmnop")
SCHEMA = "id BIGINT, name STRING, price DECIMAL(10, 2), deal STRUCT<note: STRING, price: DECIMAL(38, 18)>, \
prices ARRAY<DECIMAL(7, 1)>, by_name MAP<STRING, DECIMAL(20, 4)>"
ROWS = 41
Way = Callable[[SparkSession, CatalogServer, str, DataFrame], None]


def sample(spark: SparkSession, rows: int = ROWS) -> DataFrame:
    """Rows whose strings have another length each, so that what follows them lies anywhere."""
    return spark.range(0, rows, 1, 1).selectExpr(
        "id",
        "repeat('n', int(id % 7)) AS name",
        "if(id % 5 = 0, NULL, CAST(id / 7 AS DECIMAL(10, 2))) AS price",
        "named_struct('note', repeat('x', int(id % 3)), 'price', CAST(id / 9 AS DECIMAL(38, 18))) AS deal",
        "array(NULL, CAST(id AS DECIMAL(7, 1))) AS prices",
        "map(repeat('k', int(id % 4)), CAST(-id AS DECIMAL(20, 4))) AS by_name",
    )


def name_of(table: str) -> tuple[list[str], str]:
    _, namespace, name = table.split(".")
    return [namespace], name


def insert(spark: SparkSession, _: CatalogServer, table: str, rows: DataFrame) -> None:
    rows.createOrReplaceTempView("decimals")
    spark.sql(f"CREATE TABLE {table} ({SCHEMA})")
    spark.sql(f"INSERT INTO {table} SELECT * FROM decimals")


def create_as(spark: SparkSession, _: CatalogServer, table: str, rows: DataFrame) -> None:
    rows.createOrReplaceTempView("decimals")
    spark.sql(f"CREATE TABLE {table} AS SELECT * FROM decimals")


def write_to(_spark: SparkSession, _: CatalogServer, table: str, rows: DataFrame) -> None:
    rows.writeTo(table).create()


def data_source(_spark: SparkSession, catalog: CatalogServer, table: str, rows: DataFrame) -> None:
    namespace, name = name_of(table)
    place = {"server": catalog.url, "table": "$".join((*namespace, name))}
    rows.write.format("lance").mode("append").options(**place).save()


def append_in_driver(spark: SparkSession, catalog: CatalogServer, table: str, rows: DataFrame) -> None:
    namespace, name = name_of(table)
    with GraphWrite(spark, catalog, namespace=namespace) as tx:
        tx.append(name, rows)


def upsert_in_driver(spark: SparkSession, catalog: CatalogServer, table: str, rows: DataFrame) -> None:
    append_in_driver(spark, catalog, table, rows.where("id < 9"))
    namespace, name = name_of(table)
    with GraphWrite(spark, catalog, namespace=namespace) as tx:
        tx.upsert(name, rows, on="id")


def upsert_in_tasks(spark: SparkSession, catalog: CatalogServer, table: str, rows: DataFrame) -> None:
    namespace, name = name_of(table)
    for frame in (rows.where("id < 9"), rows):
        with GraphWrite(spark, catalog, namespace=namespace, driver_bytes=0) as tx:
            tx.upsert(name, frame, on="id")


def change_rows(spark: SparkSession, _: CatalogServer, table: str, rows: DataFrame) -> None:
    """UPDATE, and a MERGE that updates rows of stable ids and inserts others."""
    rows.createOrReplaceTempView("decimals")
    stable = "TBLPROPERTIES ('lance.stable_row_ids' = 'true')"
    spark.sql(f"CREATE TABLE {table} {stable} AS SELECT * FROM decimals WHERE id < 9")
    spark.sql(f"UPDATE {table} SET name = 'longer', price = price + 1 WHERE id > 3")
    spark.sql(
        f"MERGE INTO {table} t USING decimals s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )


WAYS = (insert, create_as, write_to, data_source, append_in_driver, upsert_in_driver, upsert_in_tasks, change_rows)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_decimals_behind_strings_are_written(sql: SparkSession, catalog: CatalogServer, ns: str, way: Way) -> None:
    rows = sample(sql)
    way(sql, catalog, f"{ns}.t", rows)
    assert sql.table(f"{ns}.t").orderBy("id").collect() == rows.collect()


def test_streams_write_decimals_behind_strings(
    sql: SparkSession, catalog: CatalogServer, ns: str, tmp_path: Path
) -> None:
    rows = sample(sql)
    rows.write.parquet(str(tmp_path / "source"))
    stream = sql.readStream.schema(rows.schema).parquet(str(tmp_path / "source"))
    place = {
        "server": catalog.url,
        "table": f"{ns.split('.')[1]}$t",
        "checkpointLocation": str(tmp_path / "checkpoint"),
    }
    query = stream.writeStream.format("lance").options(**place).trigger(availableNow=True).start()
    query.awaitTermination()
    assert sql.table(f"{ns}.t").orderBy("id").collect() == rows.collect()


def at_odd_multiple_of_8(table: pa.Table) -> pa.Table:
    """The table in a stream of Arrow whose buffers are at multiples of 8 bytes, and not all of them of 16."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    stream = sink.getvalue().to_pybytes()
    room = pa.allocate_buffer(len(stream) + 64)
    skip = -room.address % 64 + 8
    ctypes.memmove(room.address + skip, stream, len(stream))
    return pa.ipc.open_stream(room.slice(skip, len(stream))).read_all()


@pytest.mark.parametrize(
    "kind",
    [
        pa.decimal128(1, 0),
        pa.decimal128(38, 18),
        pa.list_(pa.decimal128(10, 2)),
        pa.struct([("text", pa.string()), ("price", pa.decimal128(10, 2))]),
        pa.map_(pa.string(), pa.decimal128(10, 2)),
        pa.list_(pa.struct([("prices", pa.list_(pa.decimal128(10, 2)))])),
    ],
    ids=str,
)
@pytest.mark.parametrize("rows", [1, 2, 3, 7, 64, 1001])
def test_decimals_anywhere_in_memory_are_written(tmp_path: Path, kind: pa.DataType, rows: int) -> None:
    text = pa.array([WORDS[number % len(WORDS)] for number in range(rows)])
    table = pa.table({"text": text, "x": pa.array([value(kind, number) for number in range(rows)], kind)})
    for read in (at_odd_multiple_of_8(table), at_odd_multiple_of_8(table).slice(rows // 2)):
        fitted = pa.table([readable_by_lance(column) for column in read.columns], schema=read.schema)
        stored = lance.write_dataset(fitted, tmp_path / "t", mode="overwrite", data_storage_version="2.2").to_table()
        assert stored.to_pylist() == read.to_pylist()


def value(kind: pa.DataType, number: int) -> object:
    """A value of a type, or None for every third number."""
    if number % 3 == 2:
        return None
    if pa.types.is_struct(kind):
        return {item.name: value(item.type, number) for item in kind}
    if pa.types.is_map(kind):
        return [(WORDS[number % len(WORDS)], value(kind.item_type, number))]
    if pa.types.is_list(kind):
        return [value(kind.value_type, number + place) for place in range(number % 3)]
    return WORDS[number % len(WORDS)] if pa.types.is_string(kind) else number % 10
