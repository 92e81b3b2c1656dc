"""Tables that stock clients write by path: `CREATE TABLE` of the stock Spark connector makes a first version so."""

from __future__ import annotations

from collections.abc import Callable

import lance
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from namespace_client import Catalog
from table_data.batch_operations import TableDeclaration

SCHEMA = pa.schema([("id", pa.int64())])
Statement = Callable[[SparkSession, str], object]


def make_by_path(url: str, table: str, *ids: int) -> str:
    path = tuple(table.removeprefix("lance.").split("."))
    with Catalog.connect(url) as catalog:
        location = f"{catalog.access.state().root}/0123abcd_{'$'.join(path)}"
        catalog.access.commit([TableDeclaration(path, location, {})], idempotency_key=location, message=None)
    lance.write_dataset(pa.table({"id": list(ids)}, schema=SCHEMA), location)
    return location


def ids(sql: SparkSession, table: str) -> list[int]:
    return [row.id for row in sql.sql(f"SELECT id FROM {table} ORDER BY id").collect()]


STATEMENTS: dict[str, tuple[str, list[int]]] = {
    "SELECT": ("SELECT * FROM {}", [1, 2]),
    "INSERT": ("INSERT INTO {} VALUES (3)", [1, 2, 3]),
    "INSERT OVERWRITE": ("INSERT OVERWRITE {} VALUES (3)", [3]),
    "DELETE": ("DELETE FROM {} WHERE id = 1", [2]),
    "UPDATE": ("UPDATE {} SET id = id + 10", [11, 12]),
    "ALTER": ("ALTER TABLE {} ADD COLUMNS (w BIGINT)", [1, 2]),
    "REPLACE": ("CREATE OR REPLACE TABLE {} USING lance AS SELECT 5L AS id", [5]),
}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_table_whose_first_version_came_by_path_is_used_at_once(
    sql: SparkSession, ns: str, server_url: str, statement: str
) -> None:
    make_by_path(server_url, f"{ns}.t", 1, 2)
    text, expected = STATEMENTS[statement]
    sql.sql(text.format(f"{ns}.t")).collect()
    assert ids(sql, f"{ns}.t") == expected


def test_a_query_over_several_such_tables(sql: SparkSession, ns: str, server_url: str) -> None:
    sql.sql(f"CREATE TABLE {ns}.a USING lance AS SELECT 1L AS id")
    make_by_path(server_url, f"{ns}.b", 1, 2)
    make_by_path(server_url, f"{ns}.c", 1, 3)
    found = sql.sql(f"SELECT a.id FROM {ns}.a JOIN {ns}.b USING (id) JOIN {ns}.c USING (id)")
    assert [row.id for row in found.collect()] == [1]


def test_a_transaction_of_several_statements_uses_such_tables(sql: SparkSession, ns: str, server_url: str) -> None:
    sql.sql(f"CREATE TABLE {ns}.a USING lance AS SELECT 1L AS id")
    make_by_path(server_url, f"{ns}.b", 1)
    sql.sql("CALL lance.system.begin()")
    sql.sql(f"INSERT INTO {ns}.a VALUES (2)")
    sql.sql(f"INSERT INTO {ns}.b SELECT id + 10 FROM {ns}.a")
    sql.sql("CALL lance.system.commit()")
    assert (ids(sql, f"{ns}.a"), ids(sql, f"{ns}.b")) == ([1, 2], [1, 11, 12])


def test_later_commits_by_path_are_seen_by_the_next_statement(sql: SparkSession, ns: str, server_url: str) -> None:
    location = make_by_path(server_url, f"{ns}.t", 1)
    assert ids(sql, f"{ns}.t") == [1]
    lance.dataset(location).add_columns({"w": "id * 2"})
    assert [tuple(row) for row in sql.sql(f"SELECT * FROM {ns}.t").collect()] == [(1, 2)]
    lance.write_dataset(pa.table({"id": [2], "w": [4]}, schema=lance.dataset(location).schema), location, mode="append")
    name = ns.removeprefix("lance.")
    read = sql.read.format("lance").options(server=server_url, table=f"{name}$t").load()
    assert sorted(row.id for row in read.collect()) == [1, 2]
    assert ids(sql, f"{ns}.t") == [1, 2]
