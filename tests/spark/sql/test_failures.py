"""Statements that fail: what stays of them. Each leaves no name, no rows and no reported files behind."""

from __future__ import annotations

import secrets
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from pyspark.errors import IllegalArgumentException, PySparkException, UnsupportedOperationException
from pyspark.sql import SparkSession

from namespace_client import Catalog
from namespace_client.http import CatalogServer
from tests.lossy_proxy import LossyProxy
from tests.spark.sql.conftest import NewSession
from tests.spark.sql.test_transactions import files, rows


@pytest.fixture
def root(catalog: CatalogServer) -> Path:
    return Path(urlsplit(catalog.state().root).path)


def test_a_ctas_whose_task_fails_leaves_nothing(sql: SparkSession, ns: str, root: Path, catalog: CatalogServer) -> None:
    before = set(root.glob("*$t"))
    with pytest.raises(PySparkException, match="no"):
        sql.sql(f"CREATE TABLE {ns}.t AS SELECT if(id = 19999, raise_error('no'), id) AS x FROM range(0, 20000, 1, 2)")
    assert catalog.table((*ns.split(".")[1:], "t")) is None
    assert not sql.catalog.tableExists(f"{ns}.t")
    assert sql.sql(f"SHOW TABLES IN {ns}").collect() == []
    # A task that was killed while it wrote reports no file. Nothing of the table can be opened.
    left = set(root.glob("*$t")) - before
    assert [file for place in left for file in place.rglob("*") if file.is_file() and file.suffix != ".lance"] == []
    sql.sql(f"CREATE TABLE {ns}.t AS SELECT 1 AS x")
    assert rows(sql, f"SELECT * FROM {ns}.t") == [(1,)]


def test_a_write_whose_task_fails_changes_nothing(sql: SparkSession, ns: str, catalog: CatalogServer) -> None:
    sql.sql(f"CREATE TABLE {ns}.t AS SELECT id FROM range(10)")
    kept = files(catalog, f"{ns}.t")
    failing = "if(id > 5, raise_error('no'), id)"
    for statement in (
        f"INSERT INTO {ns}.t SELECT {failing} FROM {ns}.t",
        f"INSERT OVERWRITE {ns}.t SELECT {failing} FROM {ns}.t",
        f"UPDATE {ns}.t SET id = {failing}",
        f"DELETE FROM {ns}.t WHERE {failing} > 3",
        f"MERGE INTO {ns}.t t USING (SELECT {failing} AS id FROM {ns}.t) s ON t.id = s.id WHEN MATCHED THEN DELETE",
        f"REPLACE TABLE {ns}.t AS SELECT {failing} AS id FROM {ns}.t",
    ):
        with pytest.raises(PySparkException, match="no"):
            sql.sql(statement)
        state = catalog.table((*ns.split(".")[1:], "t"))
        assert state is not None
        assert state.version == 1, statement
        assert files(catalog, f"{ns}.t") == kept, statement
    assert rows(sql, f"SELECT count(*), sum(id) FROM {ns}.t") == [(10, 45)]


def test_a_rejected_statement_deletes_its_files(
    sql: SparkSession, ns: str, server_url: str, catalog: CatalogServer
) -> None:
    """Between the plan of the statement and its commit another client updates the same rows."""
    sql.sql(f"CREATE TABLE {ns}.t AS SELECT id, 0 AS x FROM range(10)")
    path, first = ns.removeprefix("lance."), files(catalog, f"{ns}.t")

    def meddle(batches):  # type: ignore[no-untyped-def]
        with Catalog.connect(server_url, namespace=[path]) as other, other.begin() as tx:
            tx.update("t", {"x": "1"}, where="id = 3")
        yield from batches

    sql.range(0, 10, 1, 1).mapInArrow(meddle, "id long").createOrReplaceTempView("source")
    with pytest.raises(IllegalArgumentException, match=r"\[RetryableConflict\].*t: built on version 1, found 2"):
        sql.sql(f"MERGE INTO {ns}.t t USING source s ON t.id = s.id WHEN MATCHED THEN UPDATE SET x = 2")
    assert rows(sql, f"SELECT DISTINCT x FROM {ns}.t") == [(0,), (1,)]
    # The other client wrote one data file and one deletion file.
    assert len(files(catalog, f"{ns}.t")) == len(first) + 2


def test_a_statement_of_unknown_outcome_says_so_and_keeps_its_files(
    new_session: NewSession, proxy: LossyProxy, ns: str, catalog: CatalogServer
) -> None:
    session = new_session(proxy.url)
    session.sql(f"CREATE TABLE {ns}.t AS SELECT 1 AS x")
    proxy.lose, proxy.forward = 100, False
    with pytest.raises(IllegalArgumentException, match=r"\[CommitUnknown\].*Idempotency-Key spark-sql-"):
        session.sql(f"INSERT INTO {ns}.t VALUES (2)")
    assert len(files(catalog, f"{ns}.t")) == 2
    proxy.lose = 0
    assert rows(session, f"SELECT * FROM {ns}.t") == [(1,)]
    session.sql(f"INSERT INTO {ns}.t VALUES (3)")
    assert rows(session, f"SELECT * FROM {ns}.t") == [(1,), (3,)]


def test_a_python_process_that_ended_is_replaced(sql: SparkSession, ns: str, new_session: NewSession) -> None:
    session = new_session(token=secrets.token_hex(4))  # settings of its own, so a process of its own
    session.sql(f"CREATE TABLE {ns}.t AS SELECT 1 AS x")
    session.sql("CALL lance.system.begin()")
    session.sql(f"INSERT INTO {ns}.t VALUES (2)")
    wanted = ["pgrep", "-n", "-P", str(_java_process(session)), "-f", "spark_catalog.sql.process"]
    newest = subprocess.run(wanted, capture_output=True, text=True, check=True).stdout.strip()
    subprocess.run(["kill", "-9", newest], check=True)
    with pytest.raises(IllegalArgumentException, match=r"\[TransactionLost\].*nothing of it was committed"):
        session.sql(f"INSERT INTO {ns}.t VALUES (3)")
    assert rows(session, f"SELECT * FROM {ns}.t") == [(1,)]
    assert rows(sql, f"SELECT * FROM {ns}.t") == [(1,)]


def _java_process(session: SparkSession) -> int:
    return int(session._jvm.java.lang.ProcessHandle.current().pid())


def test_values_that_do_not_fit_are_named(sql: SparkSession, ns: str, server_url: str) -> None:
    with Catalog.connect(server_url, namespace=[ns.removeprefix("lance.")]) as other, other.begin() as tx:
        vectors = pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2))
        tx.create("made", pa.table({"small": pa.array([1], pa.uint8()), "v": vectors}))
    with pytest.raises(PySparkException, match="made: column 'small': expected uint8, found 300"):
        sql.sql(f"INSERT INTO {ns}.made VALUES (300, array(1.0, 2.0))")
    with pytest.raises(PySparkException, match="made: column 'v': expected fixed_size_list"):
        sql.sql(f"INSERT INTO {ns}.made VALUES (3, array(1.0, 2.0, 3.0))")
    assert rows(sql, f"SELECT small FROM {ns}.made") == [(1,)]


def test_earlier_versions_cannot_be_changed(sql: SparkSession, ns: str) -> None:
    sql.sql(f"CREATE TABLE {ns}.t AS SELECT 1 AS x")
    with pytest.raises((UnsupportedOperationException, PySparkException)):
        sql.sql(f"INSERT INTO {ns}.t VERSION AS OF 1 VALUES (2)")
