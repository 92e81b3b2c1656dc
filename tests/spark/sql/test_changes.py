"""`CHANGES`: rows that versions of a table inserted, updated or deleted."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import lance
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from lance_core.format.naming import manifest_path
from namespace_client.http import CatalogServer
from spark_catalog.requirements import has_transactions
from spark_catalog.sql.blocks import lance_transaction
from tests.spark.sql.conftest import NewSession

pytestmark = pytest.mark.skipif(not has_transactions(), reason="Spark 4.1 has no CHANGES")

STABLE = "TBLPROPERTIES ('lance.stable_row_ids' = 'true')"

Change = tuple[Any, ...]


@pytest.fixture
def table(sql: SparkSession, ns: str) -> str:
    """A table of six versions: the first has no rows, the last is a compaction."""
    name = f"{ns}.t"
    sql.sql(f"CREATE TABLE {name} (id INT, x STRING) {STABLE}")
    sql.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    sql.sql(f"UPDATE {name} SET x = 'B' WHERE id = 2")
    sql.sql(
        f"MERGE INTO {name} t USING (SELECT explode(array(2, 3, 4)) AS id) s ON t.id = s.id "
        "WHEN MATCHED AND t.id = 3 THEN DELETE WHEN MATCHED THEN UPDATE SET x = 'BB' "
        "WHEN NOT MATCHED THEN INSERT (id, x) VALUES (s.id, 'd')"
    )
    sql.sql(f"DELETE FROM {name} WHERE id = 1")
    sql.sql(f"CALL lance.system.compact('{name.removeprefix('lance.')}')")
    return name


def expected(catalog: CatalogServer, name: str, first: int, last: int) -> Counter[Change]:
    """The changes of some versions, found by comparing all rows of each version with those of the version before."""
    state = catalog.table(tuple(name.split(".")[1:]))
    assert state is not None
    found: Counter[Change] = Counter()
    for version in range(first, last + 1):
        before, after = ({} if at == 0 else _rows(state.uri, at) for at in (version - 1, version))
        for row in before.keys() | after.keys():
            old, new = before.get(row), after.get(row)
            if old is None or new is None:
                found[(*(old or new or ()), row, "delete" if new is None else "insert", version)] += 1
            elif old != new:
                found[(*old, row, "update_preimage", version)] += 1
                found[(*new, row, "update_postimage", version)] += 1
    return found


def _rows(uri: str, version: int) -> dict[int, tuple[Any, ...]]:
    rows = lance.dataset(uri, version=version).scanner(with_row_id=True).to_table().to_pylist()
    return {row.pop("_rowid"): tuple(row.values()) for row in rows}


def changes(frame: DataFrame) -> Counter[Change]:
    """Rows without their timestamps."""
    return Counter(tuple(row) for row in frame.drop("_commit_timestamp").collect())


def refusal(sql: SparkSession, query: str) -> str:
    with pytest.raises(PySparkException) as caught:
        sql.sql(query).collect()
    return str(caught.value)


# -- what is read


def test_every_change_of_every_version(sql: SparkSession, table: str, catalog: CatalogServer) -> None:
    frame = sql.sql(f"SELECT * FROM {table} CHANGES FROM VERSION 1")
    found = changes(frame)
    assert found == expected(catalog, table, 1, 6)
    assert Counter((change[-2], change[-1]) for change in found.elements()) == {
        ("insert", 2): 3,
        ("update_preimage", 3): 1,
        ("update_postimage", 3): 1,
        ("update_preimage", 4): 1,
        ("update_postimage", 4): 1,
        ("insert", 4): 1,
        ("delete", 4): 1,
        ("delete", 5): 1,
    }
    times = {row["version"]: row["timestamp"] for row in sql.table(f"{table}.versions").collect()}
    assert all(row["_commit_timestamp"] == times[row["_commit_version"]] for row in frame.collect())


BOUNDS = [
    ("FROM VERSION 3 TO VERSION 4", 3, 4),
    ("FROM VERSION 3 EXCLUSIVE TO VERSION 5 EXCLUSIVE", 4, 4),
    ("FROM VERSION 4", 4, 6),
    ("FROM VERSION 6 EXCLUSIVE", 7, 6),
    ("FROM VERSION 'before' EXCLUSIVE TO VERSION 'after'", 3, 4),
    ("FROM VERSION 'catalog:{at[3]}' TO VERSION 'catalog:{at[4]}'", 3, 4),
    ("FROM VERSION 'catalog:{at[3]}' EXCLUSIVE", 4, 6),
    ("FROM VERSION 'catalog:1' TO VERSION 'catalog:{at[5]}' EXCLUSIVE", 1, 4),
    ("FROM TIMESTAMP '{time[3]}' TO TIMESTAMP '{time[4]}'", 3, 4),
    ("FROM TIMESTAMP '{time[3]}' EXCLUSIVE TO TIMESTAMP '{time[5]}' EXCLUSIVE", 4, 4),
    ("FROM TIMESTAMP '2020-01-01'", 1, 6),
    ("FROM TIMESTAMP '2999-01-01'", 7, 6),
]


def test_bounds_are_versions_tags_catalog_versions_and_times(
    sql: SparkSession, table: str, catalog: CatalogServer
) -> None:
    bare, path = table.removeprefix("lance."), tuple(table.split(".")[1:])
    for tag, version in (("before", 2), ("after", 4)):
        sql.sql(f"CALL lance.system.create_tag('{bare}', '{tag}', {version})")
    times = {row["version"]: row["timestamp"] for row in sql.table(f"{table}.versions").collect()}
    first: dict[int, int] = {}
    for at in range(catalog.state().version, 0, -1):
        state = catalog.table(path, at=at)
        if state is None:
            break
        first[state.version or 0] = at
    for bounds, start, end in BOUNDS:
        found = changes(sql.sql(f"SELECT * FROM {table} CHANGES {bounds.format(at=first, time=times)}"))
        assert found == expected(catalog, table, start, end), bounds


def test_net_changes(sql: SparkSession, table: str) -> None:
    query = (
        f"SELECT id, x, _change_type FROM {table} CHANGES FROM VERSION {{}} WITH (deduplicationMode = 'netChanges'{{}})"
    )
    every = sql.sql(query.format(1, ""))
    assert changes(every) == {(2, "BB", "insert"): 1, (4, "d", "insert"): 1}
    later = sql.sql(query.format(3, ", computeUpdates = 'true'"))
    assert changes(later) == {
        (1, "a", "delete"): 1,
        (2, "b", "update_preimage"): 1,
        (2, "BB", "update_postimage"): 1,
        (3, "c", "delete"): 1,
        (4, "d", "insert"): 1,
    }


def test_columns_that_a_query_does_not_use_are_not_read(sql: SparkSession, table: str) -> None:
    reader = sql.read.option("startingVersion", "3").option("endingVersion", "4")
    frame = reader.changes(table).where("id = 2").groupBy("_change_type").agg({"id": "sum"})
    assert changes(frame) == {("update_preimage", 4): 1, ("update_postimage", 4): 1}
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "after version 2 up to version 4, columns id,_change_type" in plan
    assert sql.sql(f"SELECT 1 FROM {table} CHANGES FROM VERSION 2").count() == 10


def test_an_overwrite_deletes_and_inserts_and_a_restore_brings_rows_back(
    sql: SparkSession, ns: str, catalog: CatalogServer
) -> None:
    sql.sql(f"CREATE TABLE {ns}.t {STABLE} AS SELECT explode(sequence(1, 4)) AS id, 'a' AS x")
    sql.sql(f"UPDATE {ns}.t SET x = 'b' WHERE id <= 2")
    sql.sql(f"DELETE FROM {ns}.t WHERE id = 3")
    sql.sql(f"CALL lance.system.rollback_to_version('{ns.removeprefix('lance.')}.t', 1)")
    sql.sql(f"INSERT OVERWRITE {ns}.t VALUES (1, 'a')")
    found = changes(sql.sql(f"SELECT * FROM {ns}.t CHANGES FROM VERSION 1"))
    assert found == expected(catalog, f"{ns}.t", 1, 5)
    restored = Counter(change[-2] for change in found.elements() if change[-1] == 4)
    assert restored == {"insert": 1, "update_preimage": 2, "update_postimage": 2}


# -- statements that read changes


def test_changes_feed_other_tables(sql: SparkSession, table: str, ns: str) -> None:
    sql.sql(f"CREATE TABLE {ns}.log AS SELECT * FROM {table} CHANGES FROM VERSION 1 TO VERSION 3")
    sql.sql(f"INSERT INTO {ns}.log SELECT * FROM {table} CHANGES FROM VERSION 4")
    assert sql.table(f"{ns}.log").count() == 10
    sql.sql(f"CREATE TABLE {ns}.copy (id INT, x STRING)")
    merge = (
        f"MERGE INTO {ns}.copy t USING (SELECT * FROM {table} CHANGES FROM VERSION {{}} TO VERSION {{}} "
        "WITH (deduplicationMode = 'netChanges', computeUpdates = 'true') WHERE _change_type <> 'update_preimage') s "
        "ON t.id = s.id WHEN MATCHED AND s._change_type = 'delete' THEN DELETE WHEN MATCHED THEN UPDATE SET x = s.x "
        "WHEN NOT MATCHED THEN INSERT (id, x) VALUES (s.id, s.x)"
    )
    for first, last in ((1, 3), (4, 6)):
        sql.sql(merge.format(first, last))
    assert changes(sql.table(f"{ns}.copy")) == changes(sql.table(table)) == {(2, "BB"): 1, (4, "d"): 1}


def test_a_transaction_reads_published_changes(new_session: NewSession, table: str, ns: str) -> None:
    """Those of its own statements and those that are committed meanwhile are no part of the range."""
    own, other = new_session(), new_session()
    own.sql(f"CREATE TABLE {ns}.log (id INT)")
    query = f"SELECT id FROM {table} CHANGES FROM VERSION 5"
    with lance_transaction(own):
        own.sql(f"INSERT INTO {table} VALUES (7, 'own')")
        other.sql(f"INSERT INTO {table} VALUES (8, 'other')")
        own.sql(f"INSERT INTO {ns}.log {query}")
        assert changes(own.table(f"{ns}.log")) == changes(own.sql(query)) == {(1,): 1}
    assert changes(own.sql(query)) == {(1,): 1, (7,): 1, (8,): 1}


@pytest.mark.parametrize(("end", "is_conflict"), [("", True), (" TO VERSION 6", False)])
def test_changes_up_to_the_newest_version_are_a_read_of_the_table(
    new_session: NewSession, table: str, ns: str, end: str, is_conflict: bool
) -> None:
    own, other = new_session(isolation="serializable"), new_session()
    own.sql(f"CREATE TABLE {ns}.log (id INT)")
    own.sql("CALL lance.system.begin(isolation => 'serializable')")
    own.sql(f"INSERT INTO {ns}.log SELECT id FROM {table} CHANGES FROM VERSION 5{end}")
    other.sql(f"INSERT INTO {table} VALUES (8, 'other')")
    if is_conflict:
        assert "[RetryableConflict]" in refusal(own, "CALL lance.system.commit()")
    else:
        own.sql("CALL lance.system.commit()")
    assert own.table(f"{ns}.log").count() == (0 if is_conflict else 1)


# -- what is refused


def test_what_cannot_be_told_is_refused(sql: SparkSession, table: str, ns: str, catalog: CatalogServer) -> None:
    every = f"SELECT * FROM {table} CHANGES FROM VERSION"
    name = table.removeprefix("lance.").replace(".", "$")
    assert f"{name}: changes after version 6 up to version 4" in refusal(sql, f"{every} 7 TO VERSION 4")
    assert "after version 8 up to version 6: expected a range" in refusal(sql, f"{every} 9")
    assert "up to version 9: expected a range that ends" in refusal(sql, f"{every} 1 TO VERSION 9")
    assert "version 'nosuch': expected a number from 1, a tag of main" in refusal(sql, f"{every} 'nosuch'")
    assert "catalog version 99999: expected a number" in refusal(sql, f"{every} 'catalog:99999'")
    assert "TABLE_OR_VIEW_NOT_FOUND" in refusal(sql, f"SELECT * FROM {ns}.none CHANGES FROM VERSION 1")
    sql.sql(f"CREATE TABLE {ns}.plain AS SELECT 1 AS id")
    assert "plain: CHANGES: expected a table with stable row ids" in refusal(
        sql, f"SELECT * FROM {ns}.plain CHANGES FROM VERSION 1"
    )
    sql.sql(f"CREATE TABLE {ns}.taken (_commit_version INT) {STABLE}")
    assert "no column of the name _commit_version" in refusal(sql, f"SELECT * FROM {ns}.taken CHANGES FROM VERSION 1")
    sql.sql(f"ALTER TABLE {table} ADD COLUMN y INT")
    assert "version 6 has columns id int32, x string: expected those of the last" in refusal(sql, f"{every} 7")
    assert sql.sql(f"{every} 2 TO VERSION 6").count() == 10
    assert sql.sql(f"{every} 7 EXCLUSIVE").count() == 0
    sql.sql(f"CALL lance.system.cleanup('{table.removeprefix('lance.')}', older_than_hours => 0, retain_last => 1)")
    assert "version 3" in refusal(sql, f"SELECT * FROM {table} VERSION AS OF 3")
    assert sql.sql(f"{every} 2 TO VERSION 6").count() == 10  # the files of these versions are still there
    state = catalog.table(tuple(table.split(".")[1:]))
    assert state is not None
    (Path(urlsplit(state.uri).path) / manifest_path("", 3)).unlink()
    assert f"{name}: version 3 was cleaned up before it was read" in refusal(sql, f"{every} 4 TO VERSION 5")
    sql.sql(f"DROP TABLE {table}")
    at = catalog.state().version - 1
    sql.sql(f"CREATE TABLE {table} (id INT, x STRING) {STABLE}")
    assert "found one that was dropped since" in refusal(sql, f"{every} 'catalog:{at}'")


def test_a_table_is_followed_through_a_rename(sql: SparkSession, table: str, catalog: CatalogServer) -> None:
    at, new = catalog.state().version, f"{table}_new"
    sql.sql(f"ALTER TABLE {table} RENAME TO {new.removeprefix('lance.')}")
    sql.sql(f"DELETE FROM {new} WHERE id = 2")
    found = changes(sql.sql(f"SELECT * FROM {new} CHANGES FROM VERSION 'catalog:{at}' EXCLUSIVE"))
    assert found == expected(catalog, new, 7, 7)
    assert found.total() == 1


def test_a_stream_of_changes_is_refused(sql: SparkSession, table: str, tmp_path: Path) -> None:
    query = sql.readStream.option("startingVersion", "1").changes(table).writeStream.format("noop")
    query = query.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
    with pytest.raises(PySparkException, match="expected a batch query"):
        query.start().awaitTermination()
