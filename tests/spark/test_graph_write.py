"""GraphWrite with a real server: commits, failures, checks, lost responses and reads."""

# ruff: noqa: PT012 - leaving the block is what raises

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import lance
import pyarrow as pa
import pytest
from lance.namespace import RestNamespace
from lance_namespace import DeclareTableRequest, DropTableRequest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from spark_catalog import (
    CatalogServer,
    Graph,
    GraphCheckFailed,
    GraphConflict,
    GraphWrite,
    InvalidWrite,
    Node,
    ServerUnreachable,
    StagedTable,
    StagingFailed,
    WriteRejected,
    WriteUnknown,
    read_graph,
    read_table,
)
from tests.directory.gc.collecting import collect, let_pass
from tests.directory.gc.unreferenced import check_and_remove
from tests.directory.tables import Ground
from tests.lossy_proxy import LossyProxy
from tests.running import running
from tests.spark.social import GRAPH, Social

pytestmark = pytest.mark.spark

# -- commits


def test_new_tables_appear_together(social: Social) -> None:
    reports: list[StagedTable] = []
    with social.write(message="first", progress=reports.append) as tx:
        tx.append("person", social.people(1, 2, 3))
        tx.append("knows", social.pairs((1, 2)))
        assert social.pinned() == {}
    result = tx.result
    assert result.catalog_version is not None
    assert social.pinned(result.catalog_version - 1) == {}
    assert social.pinned(result.catalog_version) == {"person": 1, "knows": 1}
    assert {name: (t.version, t.rows, t.new, t.rebased) for name, t in result.tables.items()} == {
        "person": (1, 3, True, False),
        "knows": (1, 1, True, False),
    }
    assert set(result.milliseconds) == {"stage", "check", "publish"}
    assert sorted((table.name, table.rows, table.files) for table in reports) == [("knows", 1, 1), ("person", 3, 1)]
    assert social.people_now() == {1: "p1", 2: "p2", 3: "p3"}
    assert social.open("person").read_transaction(1).transaction_properties == {"__lance_commit_message": "first"}
    assert not social.open("person").schema.field("id").nullable


@pytest.mark.parametrize("registered", [True, False])
def test_a_write_that_takes_longer_than_collections_allow_commits_by_its_intent(
    spark: SparkSession, tmp_path: Path, registered: bool
) -> None:
    root = tmp_path / "root"
    with running(root) as url, CatalogServer(url) as server:
        server.ensure_namespace(["g"])
        social, ground = Social(spark, server, ["g"]), Ground(root)
        social.load()
        collect(ground)

        def run() -> None:
            with social.write(intent_after=timedelta(0) if registered else None) as tx:
                tx.append("person", social.people(4))
                assert len(server.catalog_intents()) == int(registered)
                tx.preview()
                let_pass(ground)
                collect(ground)

        if registered:
            run()
            assert social.people_now() == {1: "p1", 2: "p2", 3: "p3", 4: "p4"}
        else:
            with pytest.raises(WriteRejected, match="stage again"):
                run()
        assert server.catalog_intents() == []


def test_a_write_that_fails_ends_its_intent(social: Social) -> None:
    social.load()
    with pytest.raises(KeyError), social.write(intent_after=timedelta(0)) as tx:
        tx.append("person", social.people(4))
        mine = [table.id[0] for intent in social.catalog.catalog_intents() for table in intent.tables]
        assert social.namespace[0] in mine
        raise KeyError("no more")
    mine = [table.id[0] for intent in social.catalog.catalog_intents() for table in intent.tables if table.id]
    assert social.namespace[0] not in mine


def test_the_catalog_keeps_the_message_with_the_batch(social: Social) -> None:
    with social.write(message="monthly load") as tx:
        tx.append("person", social.people(1))
    history = httpx.get(f"{social.catalog.url}/v1/catalog/versions").json()["versions"]
    made = {version["version"]: version["batches"] for version in history}[tx.result.catalog_version]
    [batch] = made
    assert (batch["transaction_id"], batch["message"]) == (tx.result.transaction_id, "monthly load")


def test_the_declaration_is_stored_and_used_by_later_writes(social: Social) -> None:
    social.load()
    state = social.catalog.table((*social.namespace, "knows"))
    assert state is not None
    assert state.properties == GRAPH.edges["knows"].properties()
    with pytest.raises(GraphCheckFailed, match="knows: end points"), social.write(graph=None, check="full") as tx:
        tx.append("knows", social.pairs((1, 9)))


def test_append_upsert_and_delete_in_one_batch(social: Social) -> None:
    social.load()
    with social.write() as tx:
        tx.upsert("person", social.people(2, 4, name="q"), on="id")
        tx.delete("knows", "a = 1")
        tx.append("visits", social.pairs((7, 8)))
        tx.append("visits", social.pairs((9, 9)))
    assert {name: (t.change, t.version, t.rows) for name, t in tx.result.tables.items()} == {
        "person": ("upsert", 2, 2),
        "knows": ("delete", 2, 1),
        "visits": ("append", 1, 2),
    }
    assert social.people_now() == {1: "p1", 2: "q2", 3: "p3", 4: "q4"}
    assert social.pairs_now() == [(2, 3)]
    assert social.open("visits").count_rows() == 2


def test_overwrite_replaces_rows_and_schema(social: Social) -> None:
    social.load()
    with social.write() as tx:
        tx.overwrite("person", social.spark.createDataFrame([(1, 2.5)], "id long, score double"))
        tx.append("person", social.spark.createDataFrame([(2, 0.5)], "id long, score double"))
    assert social.open("person").version == 2
    rows = social.open("person").to_table().to_pylist()
    assert sorted(rows, key=lambda row: row["id"]) == [{"id": 1, "score": 2.5}, {"id": 2, "score": 0.5}]


def test_an_append_of_no_rows_commits_nothing_and_creates_an_empty_table(social: Social) -> None:
    with social.write() as tx:
        tx.append("person", social.people(1).where("id > 1"))
    assert tx.result.tables["person"].version == 1
    assert social.people_now() == {}
    with social.write() as tx:
        tx.append("person", social.people(1).where("id > 1"))
    assert (tx.result.tables["person"].version, tx.result.transaction_id) == (1, None)
    assert social.pinned() == {"person": 1}


def test_a_table_that_was_only_declared_gets_its_first_version(social: Social) -> None:
    namespace = RestNamespace(uri=social.catalog.url)
    namespace.declare_table(DeclareTableRequest(id=[*social.namespace, "person"]))
    with social.write() as tx:
        tx.append("person", social.people(1))
    assert (tx.result.tables["person"].new, tx.result.tables["person"].version) == (False, 1)
    assert social.people_now() == {1: "p1"}


def test_several_appends_are_one_transaction_of_the_table(social: Social) -> None:
    social.load()
    with social.write() as tx:
        tx.append("person", social.people(4))
        tx.append("person", social.people(5))
    assert (tx.result.tables["person"].version, tx.result.tables["person"].rows) == (2, 2)
    assert len(social.open("person").read_transaction(2).operation.fragments) == 2
    assert sorted(social.people_now()) == [1, 2, 3, 4, 5]


def test_a_competing_stock_writer_is_rebased_over(social: Social) -> None:
    social.load()
    stock = RestNamespace(uri=social.catalog.url)
    with social.write() as tx:
        tx.append("knows", social.pairs((3, 1)))
        tx.upsert("person", social.people(2, name="ours"), on="id")
        person = lance.dataset(namespace_client=stock, table_id=[*social.namespace, "person"])
        person.update({"name": "'theirs'"}, where="id = 3")
        knows = lance.dataset(namespace_client=stock, table_id=[*social.namespace, "knows"])
        rows = social.pairs((1, 3)).toArrow().cast(knows.schema)
        lance.write_dataset(rows, namespace_client=stock, table_id=[*social.namespace, "knows"], mode="append")
    assert {name: (t.version, t.rebased) for name, t in tx.result.tables.items()} == {
        "knows": (3, True),
        "person": (3, True),
    }
    assert social.people_now() == {1: "p1", 2: "ours2", 3: "theirs"}
    assert social.pairs_now() == [(1, 2), (1, 3), (2, 3), (3, 1)]


# -- failures that leave nothing visible


def test_an_exception_in_the_block_leaves_nothing(social: Social) -> None:
    social.load()
    before, files = social.pinned(), social.files()
    with pytest.raises(ZeroDivisionError), social.write() as tx:
        tx.append("person", social.people(4))
        tx.append("visits", social.pairs((1, 2)))
        tx.upsert("knows", social.pairs((1, 2)), on=["a", "b"])
        raise ZeroDivisionError
    assert social.pinned() == before
    assert social.files() == files
    assert not list(Path(urlsplit(social.catalog.state().root).path).glob(f"*_{social.namespace[0]}$visits"))


def test_a_failing_job_discards_the_files_of_all_jobs(social: Social) -> None:
    social.load()
    before, files = social.pinned(), social.files()
    broken = social.people(5).withColumn("name", F.raise_error(F.lit("bad record")))
    with pytest.raises(StagingFailed, match=r"person: .*bad record") as caught, social.write() as tx:
        tx.append("knows", social.pairs((3, 1)))
        tx.append("person", broken)
    assert list(caught.value.failures) == ["person"]
    assert social.pinned() == before
    assert social.files() == files


def test_the_error_of_a_failed_job_names_the_command_that_lists_what_it_left(social: Social) -> None:
    """The first partition is staged when the second one fails; only its task knows the name of its file."""
    social.load()
    there = social.files()
    root = Path(urlsplit(social.catalog.state().root).path)
    pattern = f"*_{social.namespace[0]}$person/data/*.lance"

    def failing_late(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Fail in the second partition, as soon as the file of the first one is there."""
        for batch in batches:
            if batch.column("id").to_pylist() == [1]:
                until = time.monotonic() + 60
                while set(root.glob(pattern)) <= there and time.monotonic() < until:
                    time.sleep(0.02)
                raise ValueError("bad record")
            yield pa.record_batch({"id": batch.column("id"), "name": ["p"] * len(batch)})

    spread = social.spark.range(2, numPartitions=2).mapInArrow(failing_late, "id long, name string")
    with pytest.raises(StagingFailed) as caught, social.write(driver_bytes=0) as tx:
        tx.append("person", spread)
        tx.append("knows", social.pairs((3, 1)))
    name = f"{social.namespace[0]}$person"
    state = social.catalog.table((*social.namespace, "person"))
    assert state is not None
    [note] = caught.value.__notes__
    assert note.startswith(f"person: files that are in no version may be left below {state.uri}; ")
    assert note.endswith(f"`lance-namespace gc ROOT --dry-run --table '{name}'` lists them")
    with pytest.raises(StagingFailed) as first, social.write(driver_bytes=0) as tx:
        tx.append("absent", spread)
    [note] = first.value.__notes__
    assert note.endswith("`lance-namespace gc ROOT --dry-run` lists them")
    report = check_and_remove(root, *([*social.namespace, table] for table in ("person", "knows")))
    assert {(orphan.table, orphan.kind) for orphan in report.orphans if orphan.table} == {(name, "data file")}
    assert social.people_now() == {1: "p1", 2: "p2", 3: "p3"}


def test_a_null_key_is_refused_by_the_task(social: Social) -> None:
    with (
        pytest.raises(StagingFailed, match="person: column 'id': expected no nulls, found 1 nulls among 2 rows"),
        social.write() as tx,
    ):
        tx.append("person", social.people(1, None))
    assert social.files() == set()


def test_a_conflict_on_the_same_row_is_typed_and_the_block_can_run_again(social: Social) -> None:
    social.load()
    files = social.files()
    late = social.write()
    with pytest.raises(GraphConflict) as caught, late as tx:
        tx.upsert("person", social.people(2, name="late"), on="id")
        tx.append("knows", social.pairs((1, 3)))
        with social.write() as first:
            first.upsert("person", social.people(2, name="first"), on="id")
        files = social.files()
    assert caught.value.code == 14
    assert caught.value.failures[0]["id"] == [*social.namespace, "person"]
    assert caught.value.conflicts[0].redo == ("upsert on id",)
    assert social.people_now()[2] == "first2"
    assert social.pairs_now() == [(1, 2), (2, 3)]
    assert social.files() <= files
    with social.write() as again:
        again.upsert("person", social.people(2, name="late"), on="id")
        again.append("knows", social.pairs((1, 3)))
    assert social.people_now()[2] == "late2"


def test_a_refused_write_is_not_sent_again(social: Social) -> None:
    """Its files are deleted, so a second request must not be applied."""
    social.load()
    with pytest.raises(GraphConflict), social.write() as tx:
        tx.delete("person", "id = 2")
        with social.write() as first:
            first.delete("person", "id = 2")
    with pytest.raises(InvalidWrite, match="nothing to send again"):
        tx.resend()


def test_serializable_is_refused_where_snapshot_is_rebased(social: Social) -> None:
    social.load()
    with pytest.raises(GraphConflict), social.write(isolation="serializable", check="full") as tx:
        tx.append("knows", social.pairs((3, 1)))
        with social.write() as other:
            other.append("person", social.people(9))  # only read by the first write
    assert social.pairs_now() == [(1, 2), (2, 3)]
    with social.write(isolation="serializable", check="full") as tx:
        tx.append("knows", social.pairs((9, 1)))
    assert social.pairs_now() == [(1, 2), (2, 3), (9, 1)]


def test_a_missing_namespace_is_refused_by_the_server(social: Social) -> None:
    elsewhere = GraphWrite(social.spark, social.catalog, namespace=[social.namespace[0], "nowhere"])
    with pytest.raises(WriteRejected) as caught, elsewhere as tx:
        tx.append("person", social.people(1))
    assert caught.value.code == 1
    assert social.files() == set()


def test_a_table_created_again_does_not_get_rows_of_the_dropped_one(social: Social) -> None:
    social.load()
    with pytest.raises(GraphConflict, match="the table of that name is at"), social.write() as tx:
        tx.append("person", social.people(4))
        RestNamespace(uri=social.catalog.url).drop_table(DropTableRequest(id=[*social.namespace, "person"]))
        with social.write() as again:
            again.append("person", social.people(7))
    assert social.people_now() == {7: "p7"}


# -- checks


def test_a_repeated_key_is_refused_with_count_and_samples(social: Social) -> None:
    with (
        pytest.raises(GraphCheckFailed, match=r"person: more than one row for a key \(id\)") as caught,
        social.write() as tx,
    ):
        tx.append("person", social.people(1, 2, 2, 3, 3))
    assert (caught.value.count, sorted(caught.value.samples)) == (2, [2, 3])
    assert social.files() == set()


def test_check_none_checks_nothing(social: Social) -> None:
    with social.write(check="none") as tx:
        tx.append("person", social.people(1, 1))
        tx.append("knows", social.pairs((1, 77)))
    assert tx.result.tables["person"].rows == 2


def test_full_refuses_an_appended_key_that_is_stored(social: Social) -> None:
    social.load()
    with pytest.raises(GraphCheckFailed, match="holds already") as caught, social.write(check="full") as tx:
        tx.append("person", social.people(3, 4))
    assert (caught.value.count, caught.value.samples) == (1, (3,))


def test_full_finds_end_points_among_stored_and_staged_nodes(social: Social) -> None:
    social.load()
    with social.write(check="full") as tx:
        tx.append("person", social.people(4))
        tx.append("knows", social.pairs((1, 4)))
    rule = r"knows: end points \(a, b\) that are not in person"
    with pytest.raises(GraphCheckFailed, match=rule) as caught, social.write(check="full") as tx:
        tx.append("knows", social.pairs((1, 8), (9, 4)))
    assert (caught.value.count, sorted(caught.value.samples)) == (2, [8, 9])


def test_full_refuses_to_delete_a_node_that_edges_need(social: Social) -> None:
    social.load()
    with pytest.raises(GraphCheckFailed, match="knows: end points") as caught, social.write(check="full") as tx:
        tx.delete("person", "id = 3")
    assert caught.value.samples == (3,)
    with social.write(check="full") as tx:
        tx.delete("person", "id = 3")
        tx.delete("knows", "a = 3 OR b = 3")
    assert sorted(social.people_now()) == [1, 2]
    assert social.pairs_now() == [(1, 2)]


# -- lost responses


def test_a_batch_with_a_lost_response_is_sent_again_and_applied_once(social: Social, proxy: LossyProxy) -> None:
    social.load()
    proxy.lose = 1
    with social.write(proxy.url) as tx:
        tx.append("person", social.people(4))
    assert tx.result.tables["person"].version == 2
    assert social.pinned() == {"person": 2, "knows": 1}
    assert proxy.keys == [tx.idempotency_key] * 2
    assert sorted(social.people_now()) == [1, 2, 3, 4]


@pytest.mark.parametrize("forward", [True, False])
def test_an_unknown_outcome_deletes_nothing_and_can_be_sent_again(
    social: Social, proxy: LossyProxy, forward: bool
) -> None:
    social.load()
    proxy.lose, proxy.forward = 2, forward
    files = social.files()
    with CatalogServer(proxy.url, retries=1) as server:
        with pytest.raises(WriteUnknown, match="Idempotency-Key graph-write-") as caught, social.write(server) as tx:
            tx.append("person", social.people(4))
        assert caught.value.idempotency_key == tx.idempotency_key
        assert social.files() > files
        result = tx.resend()
    assert result.tables["person"].version == 2
    assert sorted(social.people_now()) == [1, 2, 3, 4]
    with pytest.raises(InvalidWrite, match="nothing to send again"):
        tx.resend()


def test_a_write_that_was_never_sent_has_no_unknown_outcome(social: Social, proxy: LossyProxy) -> None:
    social.load()
    files = social.files()
    with CatalogServer(proxy.url, retries=0) as server, pytest.raises(ServerUnreachable), social.write(server) as tx:
        tx.append("person", social.people(4))
        server._backend._client._client.base_url = "http://127.0.0.1:9"  # the discard port: no listener
    assert social.files() == files


# -- invalid calls


def test_columns_are_compared_before_any_job_runs(social: Social) -> None:
    social.load()
    with pytest.raises(InvalidWrite, match=r"person: .*missing \['name'\]"), social.write() as tx:
        tx.append("person", social.people(1).drop("name"))
    with pytest.raises(InvalidWrite, match=r"the declared graph needs columns \['id'\]"), social.write() as tx:
        tx.overwrite("person", social.people(1).drop("id"))


def test_a_refused_first_call_leaves_the_table_free_for_another(social: Social) -> None:
    with social.write() as tx:
        with pytest.raises(InvalidWrite, match="the declared key is"):
            tx.upsert("person", social.people(1), on="name")
        with pytest.raises(InvalidWrite, match="expected columns among"):
            tx.upsert("visits", social.pairs((1, 2)), on="nosuch")
        tx.append("person", social.people(1))
    assert {name: table.new for name, table in tx.result.tables.items()} == {"person": True}
    assert social.pinned() == {"person": 1}


def test_an_unknown_isolation_is_refused(social: Social) -> None:
    with pytest.raises(InvalidWrite, match="expected snapshot or serializable"):
        social.write(isolation="chaos")


@pytest.mark.parametrize(
    ("on", "message"),
    [("nosuch", r"expected columns among \['id', 'name'\]"), ("name", r"the declared key is \['id'\]")],
)
def test_an_upsert_requires_the_declared_key(social: Social, on: str, message: str) -> None:
    social.load()
    with pytest.raises(InvalidWrite, match=message), social.write() as tx:
        tx.upsert("person", social.people(1), on=on)


def test_delete_of_a_missing_table_is_refused(social: Social) -> None:
    with pytest.raises(InvalidWrite, match="person: no version of it to delete from"), social.write() as tx:
        tx.delete("person", "id = 1")


def test_a_declaration_that_differs_from_the_stored_one_is_refused(social: Social) -> None:
    social.load()
    with (
        pytest.raises(InvalidWrite, match="person: declared as"),
        social.write(graph=Graph({"person": Node("name")})) as tx,
    ):
        tx.append("person", social.people(4))


def test_a_write_is_used_once_and_inside_its_block(social: Social) -> None:
    with social.write() as tx:
        tx.append("person", social.people(1))
    with pytest.raises(InvalidWrite, match="inside the `with` block"):
        tx.append("person", social.people(2))
    with pytest.raises(InvalidWrite, match="used once"), tx:
        pass
    unused = social.write()
    with pytest.raises(InvalidWrite, match="not been published"):
        _ = unused.result


# -- reading


def test_a_graph_is_read_as_of_a_catalog_version(social: Social) -> None:
    first = social.load()
    with social.write() as tx:
        tx.append("person", social.people(4))
        tx.delete("knows", "a = 1")
    then = read_graph(social.spark, social.catalog, social.namespace, catalog_version=first)
    now = read_graph(social.spark, social.catalog.url, social.namespace)
    assert (then.catalog_version, now.catalog_version) == (first, tx.result.catalog_version)
    assert then.graph == now.graph == GRAPH
    assert (then.versions, now.versions) == ({"knows": 1, "person": 1}, {"knows": 2, "person": 2})
    assert (then.nodes["person"].count(), now.nodes["person"].count()) == (3, 4)
    assert sorted(map(tuple, then.edges["knows"].collect())) == [(1, 2), (2, 3)]
    assert sorted(map(tuple, now.edges["knows"].collect())) == [(2, 3)]


def test_a_read_table_keeps_its_version_and_columns(social: Social) -> None:
    social.load()
    names = read_table(social.spark, social.catalog, [*social.namespace, "person"], columns=["name"])
    with social.write() as tx:
        tx.delete("person", "id = 1")
    assert names.columns == ["name"]
    assert sorted(row.name for row in names.collect()) == ["p1", "p2", "p3"]


def test_reads_of_missing_tables_and_columns_are_refused(social: Social) -> None:
    social.load()
    with pytest.raises(InvalidWrite, match="nosuch: no such table at catalog version"):
        read_table(social.spark, social.catalog, [*social.namespace, "nosuch"])
    with pytest.raises(InvalidWrite, match=r"expected columns among \['id', 'name'\]"):
        read_table(social.spark, social.catalog, [*social.namespace, "person"], columns=["nmae"])
