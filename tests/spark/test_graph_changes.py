"""Changes of a graph write: several of one table, upserts, deletions, overwrites by predicate, new columns."""

# ruff: noqa: PT012, SIM117 - leaving the block is what raises

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import lance
import pyarrow as pa
import pytest
from lance.namespace import RestNamespace
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from spark_catalog import (
    CatalogServer,
    GraphCheckFailed,
    GraphConflict,
    GraphWrite,
    InvalidWrite,
    StagingFailed,
    WriteUnknown,
)
from spark_catalog.graph_writes import checks
from spark_catalog.graph_writes.calls import merges
from tests.lossy_proxy import LossyProxy
from tests.spark.social import Social

pytestmark = pytest.mark.spark

IN_DRIVER, IN_TASKS = 32 << 20, 0


@pytest.fixture(params=["driver", "tasks"])
def bound(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Where rows are written and merged and where checks are made: in the driver, or by Spark."""
    if request.param == "driver":
        return IN_DRIVER
    monkeypatch.setattr(merges, "DRIVER_JOIN_BYTES", -1)
    monkeypatch.setattr(checks, "DRIVER_CHECK_BYTES", -1)
    return IN_TASKS


def stock(social: Social, table: str) -> lance.LanceDataset:
    """A table as a stock client opens it through the server."""
    return lance.dataset(namespace_client=RestNamespace(uri=social.catalog.url), table_id=[*social.namespace, table])


def referenced(social: Social, table: str) -> set[str]:
    """Names of the data and deletion files of the newest version."""
    found = set()
    for fragment in social.open(table).get_fragments():
        found |= {f"data/{file.path}" for file in fragment.metadata.files}
        if fragment.metadata.deletion_file is not None:
            found.add(fragment.metadata.deletion_file.path(fragment.fragment_id))
    return found


def on_disk(social: Social, table: str) -> set[str]:
    root = Path(urlsplit(social.open(table).uri).path)
    return {f"{path.parent.name}/{path.name}" for part in ("data", "_deletions") for path in (root / part).glob("*")}


# -- several changes of one table


def test_rows_are_deleted_and_added_again_in_one_version(social: Social) -> None:
    social.load()
    with social.write(check="full") as tx:
        tx.delete("person", "id = 2")
        tx.append("person", social.people(2, 4, name="new"))
    assert social.people_now() == {1: "p1", 2: "new2", 3: "p3", 4: "new4"}
    table = tx.result.tables["person"]
    assert (table.version, table.rows, table.calls) == (2, 3, ("delete where id = 2", "append"))


def test_calls_apply_in_order_each_to_what_the_one_before_left(social: Social) -> None:
    social.load()
    with social.write(driver_bytes=IN_TASKS) as tx:
        tx.upsert("person", social.people(3, 4, name="q"), on="id")
        tx.append("person", social.people(5, 6))
        tx.delete("person", "id IN (1, 5) OR name = 'q4'")
        tx.upsert("person", social.people(6, name="r"), on="id")
    assert social.people_now() == {2: "p2", 3: "q3", 6: "r6"}


def test_a_new_table_is_filled_changed_and_published_once(social: Social) -> None:
    with social.write() as tx:
        tx.append("person", social.people(1, 2, 3))
        tx.upsert("person", social.people(3, 4, name="q"), on="id")
        tx.delete("person", social.people(1))
        assert social.pinned() == {}
    assert social.people_now() == {2: "p2", 3: "q3", 4: "q4"}


def test_an_overwrite_is_changed_in_the_same_write(social: Social) -> None:
    social.load()
    with social.write() as tx:
        tx.append("person", social.people(77))
        tx.overwrite("person", social.people(7, 8))
        tx.upsert("person", social.people(8, 9, name="q"), on="id")
        tx.append("person", social.people(10))
    assert social.people_now() == {7: "p7", 8: "q8", 9: "q9", 10: "p10"}
    assert on_disk(social, "person") >= referenced(social, "person")


def test_files_that_a_later_call_supersedes_are_removed(social: Social) -> None:
    social.load()
    with social.write() as tx:
        tx.delete("person", "id = 1")
        tx.delete("person", "id = 2")
    assert social.people_now() == {3: "p3"}
    assert on_disk(social, "person") == referenced(social, "person")
    assert tx.result.files_left == ()


def test_batch_refuses_a_key_that_two_calls_add(social: Social) -> None:
    social.load()
    with pytest.raises(GraphCheckFailed, match=r"person: more than one row for a key \(id\)"), social.write() as tx:
        tx.append("person", social.people(4))
        tx.append("person", social.people(4))


def test_full_refuses_an_appended_key_unless_the_same_write_deletes_it(social: Social) -> None:
    social.load()
    with pytest.raises(GraphCheckFailed, match="holds already"), social.write(check="full") as tx:
        tx.delete("person", "id = 9")
        tx.append("person", social.people(3))
    assert social.people_now() == {1: "p1", 2: "p2", 3: "p3"}


def test_a_failing_call_is_named_once_and_the_calls_after_it_leave_nothing(social: Social) -> None:
    social.load()
    files = social.files()
    with pytest.raises(StagingFailed, match=r"person: .*bad record") as caught, social.write() as tx:
        tx.append("person", social.people(5).withColumn("name", F.raise_error(F.lit("bad record"))))
        tx.upsert("person", social.people(5), on="id")
        tx.delete("person", "id = 1")
    assert list(caught.value.failures) == ["person"]
    assert social.files() == files


# -- checks in the driver and in Spark


def test_failing_checks_have_a_number_and_samples(social: Social, bound: int) -> None:
    social.load()
    with pytest.raises(GraphCheckFailed, match=r"more than one row for a key \(id\)") as caught:
        with social.write(driver_bytes=bound) as tx:
            tx.append("person", social.people(*range(10, 20), *range(10, 17)))
    assert (caught.value.count, set(caught.value.samples) <= set(range(10, 17))) == (7, True)
    with pytest.raises(GraphCheckFailed, match="holds already") as caught:
        with social.write(check="full", driver_bytes=bound) as tx:
            tx.append("person", social.people(2, 3, 4))
    assert (caught.value.count, sorted(caught.value.samples)) == (2, [2, 3])
    with pytest.raises(GraphCheckFailed, match=r"end points \(a, b\) that are not in person") as caught:
        with social.write(check="full", driver_bytes=bound) as tx:
            tx.append("knows", social.pairs((1, 8), (9, 2), (8, 8)))
    assert (caught.value.count, sorted(caught.value.samples)) == (2, [8, 9])
    with pytest.raises(GraphCheckFailed, match="end points") as caught:
        with social.write(check="full", driver_bytes=bound) as tx:
            tx.overwrite("person", social.people(1))
    assert (caught.value.count, sorted(caught.value.samples)) == (2, [2, 3])
    with social.write(check="full", driver_bytes=bound) as tx:
        tx.append("person", social.people(8))
        tx.append("knows", social.pairs((1, 8)))
    assert social.pairs_now() == [(1, 2), (1, 8), (2, 3)]


def test_end_points_are_looked_up_in_tasks_without_a_join(social: Social, monkeypatch: pytest.MonkeyPatch) -> None:
    social.load()
    joined: list[str] = []
    refuse = checks._refuse_frame

    def watched(check: checks.GraphCheck, wrong: DataFrame) -> None:
        joined.append(check.table)
        refuse(check, wrong)

    monkeypatch.setattr(checks, "_refuse_frame", watched)
    monkeypatch.setattr(checks, "DRIVER_SCAN_BYTES", -1)
    with social.write(check="full", driver_bytes=IN_TASKS) as tx:
        tx.append("person", social.people(8))
        tx.append("knows", social.pairs((1, 8), (8, 3)))
    assert joined == []
    with pytest.raises(GraphCheckFailed, match="end points") as caught:
        with social.write(check="full", driver_bytes=IN_TASKS) as tx:
            tx.append("knows", social.pairs((1, 8), (9, 2), (8, 7)))
    assert (caught.value.count, sorted(caught.value.samples), joined) == (2, [7, 9], ["knows"])


# -- conflicts with a stock writer, and lost answers, for each kind of change

Change = Callable[[Social, GraphWrite], None]

CHANGES: dict[str, Change] = {
    "upsert": lambda social, tx: tx.upsert("person", social.people(2, name="q"), on="id"),
    "delete where": lambda _, tx: tx.delete("person", "id = 2"),
    "delete by keys": lambda social, tx: tx.delete("person", social.people(2, 99), on="id"),
    "delete nodes": lambda social, tx: tx.delete_nodes("person", social.people(2)),
    "overwrite where": lambda social, tx: tx.overwrite("person", social.people(2, name="q"), where="id = 2"),
    "delete and append": lambda social, tx: (tx.delete("person", "id = 2"), tx.append("person", social.people(2)))[0],
}


@pytest.mark.parametrize("kind", CHANGES)
def test_a_change_of_other_rows_is_rebased_over_and_one_of_the_same_rows_conflicts(
    social: Social, kind: str, bound: int
) -> None:
    social.load()
    expected = social.people_now()
    with social.write(driver_bytes=bound) as tx:
        CHANGES[kind](social, tx)
        stock(social, "person").update({"name": "'theirs'"}, where="id = 3")
    seen = social.people_now()
    assert (tx.result.tables["person"].rebased, seen.pop(3), seen.pop(1)) == (True, "theirs", "p1")
    assert seen.get(2) != expected[2] or kind == "delete and append"

    with pytest.raises(GraphConflict), social.write(driver_bytes=bound) as tx:
        tx.delete("person", "id = 3")
        tx.upsert("person", social.people(1, name="late"), on="id")
        stock(social, "person").update({"name": "'again'"}, where="id = 3")
    assert (social.people_now()[3], social.people_now()[1]) == ("again", "p1")


@pytest.mark.parametrize("kind", CHANGES)
def test_a_change_whose_answer_is_lost_is_applied_once(social: Social, proxy: LossyProxy, kind: str) -> None:
    social.load()
    proxy.lose = 2
    with CatalogServer(proxy.url, retries=1) as server:
        with pytest.raises(WriteUnknown), social.write(server, driver_bytes=IN_TASKS) as tx:
            CHANGES[kind](social, tx)
            tx.append("visits", social.pairs((7, 8)))
        result = tx.resend()
    assert result.tables["person"].version == 2
    assert social.open("visits").count_rows() == 1
    assert social.open("person").count_rows() == len(social.people_now())
    assert {1: "p1", 3: "p3"}.items() <= social.people_now().items()
    assert social.people_now().get(2) != "p2" or kind == "delete and append"


# -- deletions by key


def test_rows_are_deleted_by_the_keys_of_a_data_frame(social: Social) -> None:
    social.load()
    with social.write() as tx:
        tx.delete("knows", social.pairs((1, 2), (9, 9)), on=["a", "b"])
        tx.delete("person", social.people(2, 2, 5).select("id"))
    assert social.pairs_now() == [(2, 3)]
    assert sorted(social.people_now()) == [1, 3]
    assert {name: table.rows for name, table in tx.result.tables.items()} == {"knows": 1, "person": 1}


def test_a_deletion_by_keys_names_what_it_lacks(social: Social) -> None:
    social.load()
    with pytest.raises(InvalidWrite, match=r"person: delete on \['id'\], expected columns"), social.write() as tx:
        tx.delete("person", social.pairs((1, 2)))
    with pytest.raises(InvalidWrite, match=r"knows: delete on \[\]"), social.write() as tx:
        tx.delete("knows", social.pairs((1, 2)))
    with pytest.raises(InvalidWrite, match="is for a DataFrame of keys"), social.write() as tx:
        tx.delete("person", "id = 1", on="id")


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("by", ["keys", "predicate"])
def test_nodes_are_deleted_with_their_edges(social: Social, by: str, declared: bool) -> None:
    social.load()
    with social.write() as tx:
        tx.append("knows", social.pairs((3, 1), (3, 3)))
    options = {} if declared else {"graph": None}
    with social.write(check="full", **options) as tx:
        tx.delete_nodes("person", "id = 2" if by == "predicate" else social.people(2, 50))
    assert sorted(social.people_now()) == [1, 3]
    assert social.pairs_now() == [(3, 1), (3, 3)]
    assert {name: table.rows for name, table in tx.result.tables.items()} == {"person": 1, "knows": 2}


@pytest.mark.parametrize("declared", [True, False])
def test_full_refuses_nodes_that_go_without_their_edges(social: Social, declared: bool) -> None:
    social.load()
    options = {} if declared else {"graph": None}
    with (
        pytest.raises(GraphCheckFailed, match="knows: end points") as caught,
        social.write(check="full", **options) as tx,
    ):
        tx.delete_nodes("person", social.people(1, 3), cascade=False)
    assert (caught.value.count, sorted(caught.value.samples)) == (2, [1, 3])
    assert sorted(social.people_now()) == [1, 2, 3]


def test_nodes_of_the_same_write_are_deleted_with_edges_of_the_same_write(social: Social) -> None:
    social.load()
    with social.write(check="full") as tx:
        tx.append("person", social.people(4))
        tx.append("knows", social.pairs((4, 1), (1, 3)))
        tx.delete_nodes("person", "id = 4")
    assert sorted(social.people_now()) == [1, 2, 3]
    assert social.pairs_now() == [(1, 2), (1, 3), (2, 3)]


def test_only_nodes_are_deleted_as_nodes(social: Social) -> None:
    social.load()
    with pytest.raises(InvalidWrite, match="knows: expected a node table, found Edge"), social.write() as tx:
        tx.delete_nodes("knows", "a = 1")


# -- overwrites by predicate


def test_an_overwrite_by_predicate_replaces_the_rows_that_match(social: Social, bound: int) -> None:
    social.load()
    with social.write(driver_bytes=bound, check="full") as tx:
        tx.overwrite("person", social.people(2, 4, name="q"), where="id IN (2, 4)")
    assert social.people_now() == {1: "p1", 2: "q2", 3: "p3", 4: "q4"}
    assert (tx.result.tables["person"].version, tx.result.tables["person"].calls) == (
        2,
        ("overwrite where id IN (2, 4)",),
    )


def test_an_overwrite_by_predicate_refuses_rows_that_do_not_match(social: Social) -> None:
    social.load()
    files = social.files()
    rule = r"do not match the predicate of their overwrite \(name = 'q2'\): 1 distinct, for example \(5, 'q5'\)"
    with pytest.raises(StagingFailed, match=rule), social.write() as tx:
        tx.overwrite("person", social.people(2, 5, name="q"), where="name = 'q2'")
    assert social.people_now() == {1: "p1", 2: "p2", 3: "p3"}
    assert social.files() == files


def test_an_overwrite_by_a_predicate_that_does_not_fit_is_refused(social: Social) -> None:
    social.load()
    with pytest.raises(StagingFailed, match="predicate 'nosuch = 1'"), social.write() as tx:
        tx.overwrite("person", social.people(2), where="nosuch = 1")
    with pytest.raises(InvalidWrite, match="a schema is for an overwrite of all rows"), social.write() as tx:
        tx.overwrite("person", social.people(2), where="id = 2", schema=pa.schema([("id", pa.int64())]))


# -- columns


@pytest.mark.parametrize("call", ["append", "upsert"])
def test_new_columns_are_added_and_missing_ones_are_null(social: Social, call: str, bound: int) -> None:
    social.load()
    wider = social.spark.createDataFrame([(4, 1.5)], "id long, score double").coalesce(1)
    with social.write(driver_bytes=bound) as tx:
        if call == "append":
            tx.append("person", wider, schema="merge")
        else:
            tx.upsert("person", wider, on="id", schema="merge")
        tx.append("person", social.people(5), schema="merge")
    rows = {row["id"]: (row["name"], row["score"]) for row in social.open("person").to_table().to_pylist()}
    assert rows == {1: ("p1", None), 2: ("p2", None), 3: ("p3", None), 4: (None, 1.5), 5: ("p5", None)}
    assert social.open("person").schema.field("score").nullable


def test_columns_are_added_without_writing_the_old_rows(social: Social) -> None:
    social.load()
    before = referenced(social, "person")
    with social.write() as tx:
        tx.append("person", social.people(4).withColumn("score", F.lit(1.5)), schema="merge")
    assert before < referenced(social, "person")
    assert len(referenced(social, "person")) == len(before) + 1


def test_merged_schemas_refuse_other_types_and_missing_keys_by_name(social: Social) -> None:
    social.load()
    with pytest.raises(InvalidWrite, match=r"person\.name: expected string, found int64"), social.write() as tx:
        tx.append("person", social.people(4).withColumn("name", F.lit(1).cast("long")), schema="merge")
    with (
        pytest.raises(InvalidWrite, match=r"expected the columns \['id'\], which must not be null"),
        social.write() as tx,
    ):
        tx.append("person", social.people(4).drop("id"), schema="merge")
    with pytest.raises(InvalidWrite, match="surplus"), social.write() as tx:
        tx.append("person", social.people(4).withColumn("score", F.lit(1.5)))


# -- sizes of files


def test_tiny_partitions_become_one_file(social: Social) -> None:
    rows = social.spark.range(0, 1000, 1, 100).selectExpr("id", "concat('n', id) AS name")
    with social.write() as tx:
        tx.append("person", rows)
    assert (social.open("person").count_rows(), len(referenced(social, "person"))) == (1000, 1)
    assert tx.result.tables["person"].files == 1


def test_partitions_are_joined_for_the_tasks_and_large_ones_divided_into_files(social: Social) -> None:
    rows = social.spark.range(0, 1000, 1, 100).selectExpr("id", "concat('n', id) AS name")
    with social.write(driver_bytes=IN_TASKS, max_rows_per_file=100) as tx:
        tx.append("person", rows)
    fragments = [fragment.metadata.physical_rows for fragment in social.open("person").get_fragments()]
    assert sum(fragments) == 1000
    assert max(fragments) == 100
    assert len(fragments) < 20
    assert {row["id"] for row in social.open("person").to_table().to_pylist()} == set(range(1000))
    assert tx.result.tables["person"].rows == 1000
    with social.write(driver_bytes=IN_TASKS, max_rows_per_file=60) as tx:
        tx.upsert("person", rows, on="id", when_matched="source.name = target.name")
    fragments = [fragment.metadata.physical_rows for fragment in social.open("person").get_fragments()]
    assert (sum(fragments), max(fragments)) == (1000, 60)


# -- preview and results


def test_a_preview_shows_the_write_and_lets_it_go_on(social: Social) -> None:
    social.load()
    phases: list[str] = []
    with social.write(check="full", phases=phases.append) as tx:
        tx.append("person", social.people(4))
        tx.delete("knows", "a = 1")
        shown = tx.preview()
        tx.append("knows", social.pairs((4, 1)))
    assert {name: (t.rows, t.rows_after, t.version) for name, t in shown.tables.items()} == {
        "person": (1, 4, 1),
        "knows": (1, 1, 1),
    }
    assert shown.checks == (
        "person: more than one row for a key (id) in this write",
        "person: appended keys (id) that the table holds already",
    )
    assert social.pairs_now() == [(2, 3), (4, 1)]
    assert phases == ["stage", "check", "check", "publish"]
    table = tx.result.tables["knows"]
    assert (table.rows, table.files, table.calls) == (2, 2, ("delete where a = 1", "append"))
    assert table.milliseconds > 0


def test_a_preview_raises_what_the_write_would(social: Social) -> None:
    social.load()
    with pytest.raises(GraphCheckFailed, match="knows: end points"), social.write(check="full") as tx:
        tx.append("knows", social.pairs((1, 99)))
        tx.preview()
    assert social.pairs_now() == [(1, 2), (2, 3)]


def test_a_schema_may_come_with_each_call_that_makes_a_table(social: Social) -> None:
    schema = pa.schema([("id", pa.int32()), ("name", pa.string())])
    with social.write(graph=None) as tx:
        tx.append("visits", social.people(1), schema=schema)
        tx.append("visits", social.people(2), schema=schema)
    assert social.open("visits").schema.field("id").type == pa.int32()
    assert social.open("visits").count_rows() == 2
    with pytest.raises(InvalidWrite, match="visits: it has a schema"), social.write(graph=None) as tx:
        tx.append("visits", social.people(3), schema=schema)
