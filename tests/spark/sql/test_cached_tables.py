"""CACHE TABLE and transactions: after the end of a transaction a session reads what is committed."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark program uses

from namespace_client import Catalog
from spark_catalog import GraphWrite
from spark_catalog.sql.blocks import lance_transaction
from tests.spark.sql.conftest import NewSession

COMMITTED = [(1, 10), (2, 20)]
CHANGES = (
    "INSERT INTO {t} VALUES (3, 30)",
    "UPDATE {t} SET v = 77",
    "DELETE FROM {t} WHERE id = 1",
    """MERGE INTO {t} t USING (SELECT 2 AS id UNION SELECT 5) s ON t.id = s.id
    WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 0)""",
    "INSERT OVERWRITE {t} VALUES (9, 90)",
    "TRUNCATE TABLE {t}",
)


def rows(session: SparkSession, table: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in session.sql(f"SELECT id, v FROM {table}").collect())


@pytest.fixture
def cached(sql: SparkSession, ns: str) -> Iterator[tuple[str, str]]:
    """A cached table, and a cached query over it."""
    table, query = f"{ns}.t", f"q{secrets.token_hex(4)}"
    sql.sql(f"CREATE TABLE {table} AS SELECT * FROM VALUES (1, 10), (2, 20) AS t(id, v)")
    sql.sql(f"CACHE TABLE {table}")
    sql.sql(f"CACHE TABLE {query} AS SELECT id, v FROM {table} WHERE id > 0")
    assert rows(sql, table) == rows(sql, query) == COMMITTED
    yield table, query
    sql.sql(f"UNCACHE TABLE IF EXISTS {table}")
    sql.sql(f"DROP VIEW {query}")


@pytest.mark.parametrize("is_read", [True, False], ids=["read inside", "not read inside"])
def test_rows_that_were_rolled_back_are_not_read(
    sql: SparkSession, new_session: NewSession, cached: tuple[str, str], is_read: bool
) -> None:
    other = new_session()
    for change in CHANGES:
        sql.sql("CALL lance.system.begin()")
        sql.sql(change.format(t=cached[0]))
        if is_read:
            assert rows(sql, cached[0]) == rows(sql, cached[1]) != COMMITTED, change
        sql.sql("CALL lance.system.rollback()")
        assert [rows(sql, name) for name in cached] == [COMMITTED] * 2, change
        assert rows(other, cached[0]) == COMMITTED
    assert sql.catalog.isCached(cached[0])


def test_rows_of_a_refused_commit_are_not_read(
    sql: SparkSession, new_session: NewSession, cached: tuple[str, str]
) -> None:
    sql.sql("CALL lance.system.begin()")
    sql.sql(f"UPDATE {cached[0]} SET v = 1000 WHERE id = 1")
    assert rows(sql, cached[1]) == [(1, 1000), (2, 20)]
    new_session().sql(f"UPDATE {cached[0]} SET v = 11 WHERE id = 1")
    with pytest.raises(PySparkException, match="RetryableConflict"):
        sql.sql("CALL lance.system.commit()")
    assert rows(sql, cached[0]) == rows(sql, cached[1]) == [(1, 11), (2, 20)]


def test_rows_of_others_beside_which_a_transaction_committed_are_read(
    sql: SparkSession, new_session: NewSession, cached: tuple[str, str]
) -> None:
    with lance_transaction(sql):
        sql.sql(f"INSERT INTO {cached[0]} VALUES (3, 30)")
        new_session().sql(f"INSERT INTO {cached[0]} VALUES (4, 40)")
    assert rows(sql, cached[0]) == rows(sql, cached[1]) == [*COMMITTED, (3, 30), (4, 40)]


def test_rows_of_a_refused_statement_are_not_read(sql: SparkSession, server_url: str, cached: tuple[str, str]) -> None:
    """Another client changes the row between the begin of the statement and its commit."""
    table = cached[0].removeprefix("lance.").replace(".", "$")

    def concurrent(value: int) -> int:
        change = {"predicate": "id = 1 AND v = 10", "updates": [["v", "11"]]}
        httpx.post(f"{server_url}/v1/table/{table}/update", json=change).raise_for_status()
        return value + 1

    sql.udf.register("concurrent", F.udf(concurrent, "int", useArrow=False))
    with pytest.raises(PySparkException, match="RetryableConflict"):
        sql.sql(f"UPDATE {cached[0]} SET v = concurrent(v) WHERE id = 1")
    assert rows(sql, cached[0]) == rows(sql, cached[1]) == COMMITTED  # changes of others are read after a REFRESH
    sql.sql(f"REFRESH TABLE {cached[0]}")
    assert rows(sql, cached[0]) == rows(sql, cached[1]) == [(1, 11), (2, 20)]


def test_rows_of_graph_writes_and_other_clients_are_read_after_a_refresh(
    sql: SparkSession, server_url: str, cached: tuple[str, str]
) -> None:
    """As in all tables of Spark: a cached table is what was read, until its session changes it or refreshes it."""
    namespace = cached[0].split(".")[1:-1]
    with GraphWrite(sql, server_url, namespace=namespace) as tx:
        tx.append("t", sql.sql("SELECT 3 AS id, 30 AS v"))
    with Catalog.connect(server_url, namespace=namespace) as catalog, catalog.begin() as change:
        change.delete("t", "id = 1")
    assert rows(sql, cached[0]) == rows(sql, cached[1]) == COMMITTED
    sql.sql(f"REFRESH TABLE {cached[0]}")
    assert rows(sql, cached[0]) == rows(sql, cached[1]) == [(2, 20), (3, 30)]
    assert sql.catalog.isCached(cached[0])


def test_rows_of_a_stream_are_read_after_a_refresh(sql: SparkSession, cached: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "1.json").write_text('{"id": 3, "v": 30}')
    stream = sql.readStream.schema("id int, v int").json(str(tmp_path / "rows")).writeStream.format("lance")
    stream = stream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    stream.toTable(cached[0]).awaitTermination()
    assert rows(sql, cached[0]) == COMMITTED
    sql.catalog.refreshTable(cached[0])
    assert rows(sql, cached[0]) == rows(sql, cached[1]) == [*COMMITTED, (3, 30)]


def test_a_table_that_was_taken_back_and_made_again_has_its_own_rows(sql: SparkSession, ns: str) -> None:
    sql.sql("CALL lance.system.begin()")
    sql.sql(f"CREATE TABLE {ns}.new AS SELECT 1 AS id, 10 AS v")
    sql.sql(f"CACHE TABLE {ns}.new")
    assert rows(sql, f"{ns}.new") == [(1, 10)]
    sql.sql("CALL lance.system.rollback()")
    sql.sql(f"CREATE TABLE {ns}.new AS SELECT 2 AS id, 20 AS v")
    assert rows(sql, f"{ns}.new") == [(2, 20)]


def test_rows_of_a_version_that_was_restored_are_read(sql: SparkSession, cached: tuple[str, str]) -> None:
    sql.sql(f"INSERT INTO {cached[0]} VALUES (3, 30)")
    assert rows(sql, cached[1]) == [*COMMITTED, (3, 30)]
    sql.sql(f"CALL lance.system.rollback_to_version('{cached[0].removeprefix('lance.')}', 1)")
    assert rows(sql, cached[0]) == rows(sql, cached[1]) == COMMITTED
