"""Properties of tables that several clients change."""

# ruff: noqa: PT012 - leaving the block is what raises

from __future__ import annotations

from typing import Any

import httpx
import pytest
from pyspark.sql import SparkSession

from namespace_client.errors import IncompatibleConflict
from spark_catalog import CatalogServer
from spark_catalog.sql.blocks import lance_transaction


def change(server_url: str, table: str, **request: Any) -> None:
    operation = {"set_table_properties": {"id": table.split(".")[1:], **request}}
    httpx.post(f"{server_url}/v1/table/batch-commit", json={"operations": [operation]}).raise_for_status()


def properties(catalog: CatalogServer, table: str) -> dict[str, str]:
    state = catalog.table(tuple(table.split(".")[1:]))
    assert state is not None
    return dict(state.properties)


def test_other_properties_stay(sql: SparkSession, ns: str, catalog: CatalogServer, server_url: str) -> None:
    table = f"{ns}.t"
    sql.sql(f"CREATE TABLE {table} (id INT) TBLPROPERTIES ('a' = '1', 'b' = '2', 'c' = '3')")
    with lance_transaction(sql):
        sql.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('a' = '5', 'd' = '4')")
        change(server_url, table, updates={"theirs": "x", "a": "6"}, removals=["b"])
        sql.sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('c')")
        found = {row.key: row.value for row in sql.sql(f"SHOW TBLPROPERTIES {table}").collect()}
        assert {name: found.get(name) for name in "abcd"} == {"a": "5", "b": "2", "c": None, "d": "4"}
    assert properties(catalog, table) == {"a": "5", "d": "4", "theirs": "x"}


def test_a_table_that_is_replaced_has_none_of_the_old_ones(
    sql: SparkSession, ns: str, catalog: CatalogServer, server_url: str
) -> None:
    table = f"{ns}.t"
    sql.sql(f"CREATE TABLE {table} (id INT) TBLPROPERTIES ('a' = '1')")
    with lance_transaction(sql):
        sql.sql(f"CREATE OR REPLACE TABLE {table} TBLPROPERTIES ('b' = '2') AS SELECT 1 AS x")
        sql.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('c' = '3')")
        change(server_url, table, updates={"theirs": "x"})
    assert properties(catalog, table) == {"b": "2", "c": "3"}


def test_another_table_of_the_name_is_not_changed(
    sql: SparkSession, ns: str, catalog: CatalogServer, server_url: str
) -> None:
    table = f"{ns}.t"
    sql.sql(f"CREATE TABLE {table} (id INT) TBLPROPERTIES ('team' = 'ann')")
    route = f"{server_url}/v1/table/{'$'.join(table.split('.')[1:])}"
    with pytest.raises(IncompatibleConflict, match="does not exist any more"), lance_transaction(sql):
        sql.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('note' = 'of the old one')")
        httpx.post(f"{route}/drop", json={}).raise_for_status()
        httpx.post(f"{route}/declare", json={"properties": {"team": "bob"}}).raise_for_status()
    assert properties(catalog, table) == {"team": "bob"}


def test_what_show_create_table_prints_makes_the_same_table(sql: SparkSession, ns: str) -> None:
    table = f"{ns}.t"
    sql.sql(
        f"CREATE TABLE {table} (id INT NOT NULL COMMENT 'it''s the key', m MAP<STRING, STRUCT<`a b`: DECIMAL(9, 2)>>) "
        "COMMENT 'a \"table\"' TBLPROPERTIES ('lance.stable_row_ids' = 'true', 'p' = 'q')"
    )
    [(text,)] = sql.sql(f"SHOW CREATE TABLE {table}").collect()
    described = f"DESCRIBE TABLE EXTENDED {table}"
    before = {(row[0], row[1], row[2]) for row in sql.sql(described).collect() if row[0] != "Location"}
    sql.sql(f"DROP TABLE {table}")
    sql.sql(text)
    assert {(row[0], row[1], row[2]) for row in sql.sql(described).collect() if row[0] != "Location"} == before
    [(again,)] = sql.sql(f"SHOW CREATE TABLE {table}").collect()
    assert again == text
