"""Transactions of several statements: what they read, what others see, conflicts, lost answers."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession

from namespace_client.errors import CommitUnknown, IncompatibleConflict, RetryableConflict
from namespace_client.http import CatalogServer
from namespace_client.leases import Intent
from namespace_client.staged_transaction import INTENT_AFTER
from spark_catalog.sql.blocks import lance_transaction
from spark_catalog.sql.sessions import Sessions, SqlSession
from tests.directory.gc.unreferenced import check_and_remove, check_exact, list_orphans
from tests.lossy_proxy import LossyProxy
from tests.running import running
from tests.spark.sql.conftest import NewSession


def rows(session: SparkSession, query: str) -> list[tuple[object, ...]]:
    return sorted((tuple(row) for row in session.sql(query).collect()), key=repr)


def files(catalog: CatalogServer, table: str) -> set[str]:
    """All data and deletion files below a table that is named as lance.namespace.table."""
    state = catalog.table(tuple(table.split(".")[1:]))
    assert state is not None
    root = Path(urlsplit(state.uri).path)
    return {str(file.relative_to(root)) for part in ("data", "_deletions") for file in (root / part).rglob("*.*")}


@pytest.fixture
def pair(sql: SparkSession, ns: str) -> tuple[str, str]:
    """Two tables of one row each."""
    names = f"{ns}.a", f"{ns}.b"
    for name in names:
        sql.sql(f"CREATE TABLE {name} AS SELECT 1 AS id, 'old' AS x")
    return names


def test_all_statements_of_a_block_are_one_batch(
    new_session: NewSession, proxy: LossyProxy, pair: tuple[str, str], catalog: CatalogServer
) -> None:
    a, b = pair
    before = catalog.state().version
    sql = new_session(proxy.url)
    with lance_transaction(sql, message="both"):
        sql.sql(f"INSERT INTO {a} VALUES (2, 'new')")
        sql.sql(f"UPDATE {b} SET x = 'new'")
        sql.sql(f"DELETE FROM {a} WHERE id = 1")
        sql.sql(f"INSERT INTO {a} VALUES (3, 'newer')")
    assert len(proxy.keys) == 1
    assert rows(sql, f"SELECT * FROM {a}") == [(2, "new"), (3, "newer")]
    assert rows(sql, f"SELECT * FROM {b}") == [(1, "new")]
    assert rows(sql, f"SELECT x FROM {a} VERSION AS OF 'catalog:{before}'") == [("old",)]
    assert rows(sql, f"SELECT x FROM {b} VERSION AS OF 'catalog:{before}'") == [("old",)]


@pytest.mark.parametrize("ends", ["commit", "rollback", "statement"])
def test_a_transaction_that_takes_long_is_registered_until_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    asked: list[timedelta] = []
    monkeypatch.setattr(Intent, "renew_after", lambda _self, pause: asked.append(pause))
    with running(tmp_path / "root") as url, CatalogServer(url) as server:
        server.ensure_namespace(["g"])
        sessions, session = Sessions(server, "snapshot", {}), SqlSession()
        if ends == "statement":
            statement = sessions.begin_statement(session)
            transaction = statement.transaction
        else:
            transaction = sessions.begin(session, "snapshot", None)
        transaction.add_table(("g", "t"), {}, stable_row_ids=False)
        assert asked == [INTENT_AFTER]
        transaction.register_intent()
        assert len(server.catalog_intents()) == 1
        match ends:
            case "commit":
                sessions.commit(session)
            case "rollback":
                sessions.rollback(session)
            case "statement":
                sessions.abort_statement(session, statement)
        assert server.catalog_intents() == []


def test_a_writing_statement_is_one_batch(
    new_session: NewSession, proxy: LossyProxy, pair: tuple[str, str], ns: str
) -> None:
    a, b = pair
    session = new_session(proxy.url)
    for statement in (
        f"INSERT INTO {a} SELECT * FROM {b}",
        f"INSERT OVERWRITE {a} VALUES (5, 'five')",
        f"INSERT INTO {a} REPLACE WHERE id = 5 VALUES (5, 'V')",
        f"UPDATE {a} SET x = 'y'",
        f"DELETE FROM {a} WHERE id = 5",
        f"MERGE INTO {a} t USING {b} s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
        f"CREATE TABLE {ns}.c AS SELECT * FROM {a}",
        f"CREATE OR REPLACE TABLE {ns}.c TBLPROPERTIES ('p' = 'q') AS SELECT * FROM {b}",
        f"CREATE TABLE {ns}.d (z INT)",
        f"ALTER TABLE {ns}.d ADD COLUMNS (y INT, x INT)",
        f"ALTER TABLE {ns}.d SET TBLPROPERTIES ('p' = 'q', 'r' = 's')",
        f"TRUNCATE TABLE {a}",
    ):
        before = len(proxy.keys)
        session.sql(statement)
        assert len(proxy.keys) == before + 1, statement
    session.sql(f"DROP TABLE {ns}.d")  # has a request of its own
    assert rows(session, f"SELECT * FROM {a}") == []
    assert rows(session, f"SELECT * FROM {ns}.c") == [(1, "old")]


def test_other_sessions_see_nothing_before_the_commit(
    sql: SparkSession, new_session: NewSession, pair: tuple[str, str], ns: str
) -> None:
    other = new_session()
    a, _ = pair
    sql.sql("CALL lance.system.begin()")
    sql.sql(f"INSERT INTO {a} VALUES (2, 'new')")
    sql.sql(f"CREATE TABLE {ns}.c AS SELECT * FROM {a}")
    assert rows(sql, f"SELECT id FROM {ns}.c") == [(1,), (2,)]
    assert rows(other, f"SELECT id FROM {a}") == [(1,)]
    assert not other.catalog.tableExists(f"{ns}.c")
    sql.sql("CALL lance.system.commit()")
    assert rows(other, f"SELECT id FROM {a}") == [(1,), (2,)]
    assert rows(other, f"SELECT id FROM {ns}.c") == [(1,), (2,)]


def test_a_transaction_does_not_see_later_commits(
    sql: SparkSession, new_session: NewSession, pair: tuple[str, str]
) -> None:
    other = new_session()
    a, b = pair
    sql.sql("CALL lance.system.begin()")
    other.sql(f"INSERT INTO {b} VALUES (2, 'later')")
    assert rows(sql, f"SELECT id FROM {b}") == [(1,)]
    sql.sql(f"INSERT INTO {a} SELECT id + 10, x FROM {b}")
    sql.sql("CALL lance.system.commit()")
    assert rows(sql, f"SELECT id FROM {a}") == [(1,), (11,)]
    assert rows(sql, f"SELECT id FROM {b}") == [(1,), (2,)]


def test_appends_of_two_sessions_are_both_kept(
    sql: SparkSession, new_session: NewSession, pair: tuple[str, str]
) -> None:
    other = new_session()
    a, _ = pair
    with lance_transaction(sql):
        sql.sql(f"INSERT INTO {a} VALUES (2, 'mine')")
        other.sql(f"INSERT INTO {a} VALUES (3, 'theirs')")
    assert rows(sql, f"SELECT id FROM {a}") == [(1,), (2,), (3,)]


def test_updates_of_different_rows_are_both_kept(
    sql: SparkSession, new_session: NewSession, pair: tuple[str, str]
) -> None:
    other = new_session()
    a, _ = pair
    sql.sql(f"INSERT INTO {a} VALUES (2, 'old')")
    with lance_transaction(sql):
        sql.sql(f"UPDATE {a} SET x = 'mine' WHERE id = 1")
        other.sql(f"UPDATE {a} SET x = 'theirs' WHERE id = 2")
    assert rows(sql, f"SELECT * FROM {a}") == [(1, "mine"), (2, "theirs")]


def test_updates_of_the_same_row_conflict(
    sql: SparkSession, new_session: NewSession, pair: tuple[str, str], catalog: CatalogServer
) -> None:
    other = new_session()
    a, b = pair
    kept: dict[str, set[str]] = {}

    def block() -> None:
        with lance_transaction(sql):
            sql.sql(f"INSERT INTO {b} VALUES (2, 'mine')")
            sql.sql(f"UPDATE {a} SET x = 'mine' WHERE id = 1")
            other.sql(f"UPDATE {a} SET x = 'theirs' WHERE id = 1")
            kept.update(a=files(catalog, a), b=files(catalog, b))

    with pytest.raises(RetryableConflict) as raised:
        block()
    assert "statement 2: UPDATE" in str(raised.value)
    assert a.removeprefix("lance.").replace(".", "$") in str(raised.value)
    assert rows(sql, f"SELECT * FROM {a}") == [(1, "theirs")]
    assert rows(sql, f"SELECT * FROM {b}") == [(1, "old")]
    # What the rejected transaction had written is gone.
    assert len(files(catalog, b)) == len(kept["b"]) - 1
    assert len(files(catalog, a)) < len(kept["a"])
    sql.sql(f"INSERT INTO {b} VALUES (3, 'again')")  # the session goes on


def test_two_merges_that_insert_the_same_key_conflict(
    sql: SparkSession, new_session: NewSession, pair: tuple[str, str]
) -> None:
    other = new_session()
    a, _ = pair
    merge = f"MERGE INTO {a} t USING (SELECT 7 AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"

    def block() -> None:
        with lance_transaction(sql):
            sql.sql(merge)
            other.sql(merge)

    with pytest.raises(RetryableConflict):
        block()
    assert rows(sql, f"SELECT id FROM {a}") == [(1,), (7,)]
    both = merge.replace("7 AS id", "8 AS id").replace("WHEN NOT", "WHEN MATCHED THEN UPDATE SET x = 'm' WHEN NOT")

    def again() -> None:
        with lance_transaction(sql):
            sql.sql(both)
            other.sql(both)

    with pytest.raises(RetryableConflict):
        again()
    assert rows(sql, f"SELECT id FROM {a}") == [(1,), (7,), (8,)]


def test_write_skew_is_a_conflict_if_serializable(
    sql: SparkSession, new_session: NewSession, pair: tuple[str, str]
) -> None:
    other = new_session()
    a, b = pair

    def block() -> None:
        with lance_transaction(sql, isolation="serializable"):
            sql.sql(f"INSERT INTO {a} SELECT count(*), 'rows of b' FROM {b}")
            with lance_transaction(other, isolation="serializable"):
                other.sql(f"INSERT INTO {b} SELECT count(*), 'rows of a' FROM {a}")

    with pytest.raises(RetryableConflict):
        block()
    assert rows(sql, f"SELECT id FROM {a}") == [(1,)]
    with lance_transaction(sql):  # under snapshot isolation both commit
        sql.sql(f"INSERT INTO {a} SELECT count(*), 'rows of b' FROM {b}")
        other.sql(f"INSERT INTO {b} SELECT count(*), 'rows of a' FROM {a}")
    assert rows(sql, f"SELECT id FROM {a}") == [(1,), (2,)]


def test_a_table_that_was_dropped_meanwhile_is_an_incompatible_conflict(
    sql: SparkSession, new_session: NewSession, pair: tuple[str, str]
) -> None:
    other = new_session()
    a, b = pair

    def block() -> None:
        with lance_transaction(sql):
            sql.sql(f"INSERT INTO {a} VALUES (2, 'mine')")
            sql.sql(f"INSERT INTO {b} VALUES (2, 'mine')")
            other.sql(f"DROP TABLE {b}")

    with pytest.raises(IncompatibleConflict):
        block()
    assert rows(sql, f"SELECT id FROM {a}") == [(1,)]


def test_an_exception_in_the_block_rolls_back_and_deletes_files(
    sql: SparkSession, pair: tuple[str, str], catalog: CatalogServer
) -> None:
    a, b = pair
    kept = files(catalog, a), files(catalog, b)

    def block() -> None:
        with lance_transaction(sql):
            sql.sql(f"INSERT INTO {a} VALUES (2, 'new')")
            sql.sql(f"UPDATE {b} SET x = 'new'")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        block()
    assert (files(catalog, a), files(catalog, b)) == kept
    assert rows(sql, f"SELECT x FROM {b}") == [("old",)]


def test_a_lost_answer_is_asked_for_again(new_session: NewSession, proxy: LossyProxy, pair: tuple[str, str]) -> None:
    """The client sends the same batch again under its key, and gets the first answer."""
    a, b = pair
    session = new_session(proxy.url)
    session.sql("CALL lance.system.begin()")
    session.sql(f"INSERT INTO {a} VALUES (2, 'new')")
    session.sql(f"INSERT INTO {b} VALUES (2, 'new')")
    proxy.lose = 2
    session.sql("CALL lance.system.commit()")
    assert len(proxy.keys) == 3
    assert len(set(proxy.keys)) == 1
    assert rows(session, f"SELECT id FROM {a}") == [(1,), (2,)]
    assert rows(session, f"SELECT id FROM {b}") == [(1,), (2,)]


def test_an_unknown_outcome_keeps_the_transaction_and_its_files(
    new_session: NewSession, proxy: LossyProxy, pair: tuple[str, str]
) -> None:
    a, _ = pair
    session = new_session(proxy.url)

    def block() -> None:
        with lance_transaction(session):
            session.sql(f"INSERT INTO {a} VALUES (2, 'new')")
            proxy.lose = 100

    with pytest.raises(CommitUnknown) as raised:
        block()
    assert raised.value.idempotency_key.startswith("spark-sql-")
    with pytest.raises(IllegalArgumentException, match="outcome of the commit of this transaction is unknown"):
        session.sql(f"INSERT INTO {a} VALUES (3, 'no')")
    with pytest.raises(IllegalArgumentException, match="outcome of the commit of this transaction is unknown"):
        session.sql(f"SELECT * FROM {a}")
    proxy.lose = 0
    committed = session.sql("CALL lance.system.commit()").collect()
    assert committed[0]["version"] == 2
    assert rows(session, f"SELECT id FROM {a}") == [(1,), (2,)]


def test_a_dataframe_of_a_transaction_that_is_over_says_so(sql: SparkSession, pair: tuple[str, str]) -> None:
    a, _ = pair
    sql.sql("CALL lance.system.begin()")
    sql.sql(f"INSERT INTO {a} VALUES (2, 'new')")
    inside = sql.table(a)
    assert inside.count() == 2
    sql.sql("CALL lance.system.rollback()")
    with pytest.raises(IllegalArgumentException, match="transaction that is over"):
        inside.filter("id > 0").collect()


def test_files_of_an_open_transaction_are_too_young_and_those_of_an_ended_one_are_gone(
    new_session: NewSession, pair: tuple[str, str], catalog: CatalogServer
) -> None:
    sql, a = new_session(), pair[0]
    root, table = Path(urlsplit(catalog.state().root).path), a.split(".")[1:]
    sql.sql("CALL lance.system.begin()")
    sql.sql(f"INSERT INTO {a} VALUES (2, 'new')")
    sql.sql(f"UPDATE {a} SET x = 'newer' WHERE id = 1")
    report = list_orphans(root, table, later=timedelta(0))
    assert [orphan for orphan in report.orphans if orphan.table is not None] == []
    assert {orphan.kind for orphan in report.young if orphan.table is not None} == {"data file"}
    sql.sql("CALL lance.system.rollback()")
    assert check_exact(root, table).young == ()
    with lance_transaction(sql):
        sql.sql(f"INSERT INTO {a} VALUES (2, 'new')")
        sql.sql(f"UPDATE {a} SET x = 'newer' WHERE id = 1")
    check_and_remove(root, table)
    assert rows(sql, f"SELECT * FROM {a}") == [(1, "newer"), (2, "new")]
