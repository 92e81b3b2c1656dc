"""`StreamWriter`: each epoch is one batch of the catalog, once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import httpx
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame

from spark_catalog import (
    CatalogServer,
    EpochTaken,
    GraphCheckFailed,
    GraphConflict,
    GraphWrite,
    InvalidWrite,
    StreamWriter,
    WriteUnknown,
)
from tests.lossy_proxy import LossyProxy
from tests.spark.streaming.conftest import Stream

ADA, BOB, EVE = (1, "Ada"), (2, "Bob"), (3, "Eve")


def load(tx: GraphWrite, rows: DataFrame, epoch: int) -> None:
    tx.append("person", rows)
    tx.append("epochs", rows.selectExpr("id", f"CAST({epoch} AS STRING) AS name"))


def writer(stream: Stream, server: CatalogServer | str | None = None, **options: object) -> StreamWriter:
    return StreamWriter(server or stream.catalog, namespace=stream.namespace, **options)


# -- queries of Spark with a checkpoint


def test_each_micro_batch_is_one_batch_of_all_tables(stream: Stream) -> None:
    stream.feed([ADA], [BOB, EVE])
    stream.run(writer(stream, stream.catalog.url).batch(load))
    assert stream.names() == [ADA, BOB, EVE]
    assert stream.names("epochs") == [(1, "0"), (2, "1"), (3, "1")]
    assert stream.versions() == {"epochs": 2, "person": 2}
    assert list(stream.marks().values()) == [(2, "1")]
    history = httpx.get(f"{stream.catalog.url}/v1/catalog/versions").json()["versions"]
    before, after = (
        min(v["version"] for v in history if stream.catalog.pins(v["version"]).tables.get((*stream.namespace, name)))
        for name in ("person", "epochs")
    )
    assert before == after
    stream.feed([(4, "Kim")])
    stream.run(writer(stream).batch(load))
    assert stream.names("epochs")[-1] == (4, "2")
    assert stream.versions() == {"epochs": 3, "person": 3}
    assert list(stream.marks().values()) == [(3, "2")]


def test_an_epoch_whose_end_spark_has_lost_is_skipped(stream: Stream) -> None:
    calls: list[int] = []

    def counted(tx: GraphWrite, rows: DataFrame, epoch: int) -> None:
        calls.append(epoch)
        load(tx, rows, epoch)

    stream.feed([ADA], [BOB])
    stream.run(writer(stream).batch(counted))
    stream.forget(1)
    stream.feed([EVE])
    stream.run(writer(stream).batch(counted))
    assert calls == [0, 1, 2]
    assert stream.names() == [ADA, BOB, EVE]
    assert stream.versions() == {"epochs": 3, "person": 3}


def test_a_failed_epoch_leaves_nothing_and_is_done_after_the_restart(stream: Stream) -> None:
    def fails(tx: GraphWrite, rows: DataFrame, epoch: int) -> None:
        load(tx, rows, epoch)
        if epoch == 1:
            raise ZeroDivisionError

    stream.feed([ADA], [BOB])
    with pytest.raises(StreamingQueryException, match="ZeroDivisionError"):
        stream.run(writer(stream).batch(fails))
    assert stream.names() == [ADA]
    assert list(stream.marks().values()) == [(1, "0")]
    assert stream.orphans() == []
    stream.run(writer(stream).batch(load))
    assert stream.names("epochs") == [(1, "0"), (2, "1")]


def test_a_new_checkpoint_under_an_old_name_is_refused(stream: Stream) -> None:
    named = writer(stream, query="people")
    stream.feed([ADA])
    stream.run(named.batch(load))
    assert stream.marks() == {"people": (1, "0")}
    with pytest.raises(StreamingQueryException, match="give a query with a new checkpoint a new name"):
        stream.finish(stream.source().writeStream.foreachBatch(named.batch(load)), "other")
    assert stream.names() == [ADA]


# -- one driver


def test_a_committed_epoch_runs_no_function(stream: Stream) -> None:
    run = writer(stream, query="q").batch(load)
    run(stream.rows(ADA), 0)
    run(stream.rows(BOB), 1)
    version = stream.catalog.state().version

    def never(tx: GraphWrite, rows: DataFrame, epoch: int) -> None:
        raise AssertionError(epoch)

    again = writer(stream, query="q").batch(never)
    again(stream.rows(BOB), 1)
    again(stream.rows(ADA), 0)
    assert stream.catalog.state().version == version
    assert stream.names() == [ADA, BOB]


def test_an_epoch_without_rows_is_marked(stream: Stream) -> None:
    run = writer(stream, query="q").batch(load)
    run(stream.rows(ADA), 0)
    run(stream.rows(ADA).where("id > 9"), 1)
    assert stream.marks() == {"q": (2, "1")}
    assert stream.versions() == {"epochs": 1, "person": 1}


def test_a_failed_check_leaves_no_mark(stream: Stream) -> None:
    from spark_catalog import Graph, Node

    run = writer(stream, query="q", graph=Graph({"person": Node("id")})).batch(
        lambda tx, rows, _: tx.append("person", rows)
    )
    with pytest.raises(GraphCheckFailed):
        run(stream.rows(ADA, (1, "Ann")), 0)
    assert stream.marks() == {}
    run(stream.rows(ADA), 0)
    assert stream.marks() == {"q": (1, "0")}


@pytest.mark.parametrize("name", ["", "a$b", "a/b", "x" * 201])
def test_a_name_that_no_table_can_have_is_refused(stream: Stream, name: str) -> None:
    with pytest.raises(InvalidWrite, match="expected at most 200 letters"):
        writer(stream, query=name)


def test_a_query_without_a_name_is_refused_outside_of_foreach_batch(stream: Stream) -> None:
    with pytest.raises(InvalidWrite, match="expected a name"):
        writer(stream).batch(load)(stream.rows(ADA), 0)


def test_a_table_without_a_mark_is_refused(stream: Stream) -> None:
    stream.catalog.ensure_namespace([*stream.namespace, "_streams"])
    with GraphWrite(stream.spark, stream.catalog, namespace=[*stream.namespace, "_streams"]) as tx:
        tx.append("q", stream.rows(ADA))
    with pytest.raises(InvalidWrite, match="expected the mark of a stream in its config"):
        writer(stream, query="q").batch(load)(stream.rows(ADA), 0)


# -- other writers


def test_a_conflict_with_another_writer_runs_the_function_again(stream: Stream) -> None:
    writer(stream, query="q").batch(load)(stream.rows(ADA), 0)
    calls: list[int] = []

    def upsert(tx: GraphWrite, rows: DataFrame, epoch: int) -> None:
        calls.append(epoch)
        tx.upsert("person", rows, on="id")
        if len(calls) == 1:
            with GraphWrite(stream.spark, stream.catalog, namespace=stream.namespace) as other:
                other.upsert("person", stream.rows((1, "other")), on="id")

    writer(stream, query="q").batch(upsert)(stream.rows((1, "ours")), 1)
    assert calls == [1, 1]
    assert stream.names() == [(1, "ours")]
    assert stream.marks() == {"q": (2, "1")}

    def always(tx: GraphWrite, rows: DataFrame, epoch: int) -> None:
        calls.clear()
        upsert(tx, rows, epoch)

    with pytest.raises(GraphConflict):
        writer(stream, query="q", attempts=2).batch(always)(stream.rows((1, "ours")), 2)
    assert stream.marks() == {"q": (2, "1")}


@pytest.mark.parametrize("epoch", [0, 1])
def test_of_two_drivers_one_commits_the_epoch(stream: Stream, epoch: int) -> None:
    for number in range(epoch):
        writer(stream, query="q").batch(load)(stream.rows(ADA), number)

    def late(tx: GraphWrite, rows: DataFrame, number: int) -> None:
        load(tx, rows, number)
        writer(stream, query="q").batch(load)(rows, number)

    with pytest.raises(EpochTaken, match=rf"_streams\$q: epoch {epoch}: another driver has committed epoch {epoch}"):
        writer(stream, query="q").batch(late)(stream.rows(BOB), epoch)
    assert stream.names() == [ADA, BOB][1 - epoch :]
    assert stream.marks() == {"q": (epoch + 1, str(epoch))}
    assert stream.orphans() == []


def test_two_drivers_at_once_commit_each_epoch_once(stream: Stream) -> None:
    started = Barrier(2)

    def drive() -> list[int]:
        """Run all epochs as a driver that is restarted whenever the other one was first."""
        run, taken = writer(stream, query="q").batch(load), []
        for epoch in range(4):
            started.wait(60)
            try:
                run(stream.rows((epoch, f"p{epoch}")), epoch)
            except EpochTaken:
                taken.append(epoch)
                run(stream.rows((epoch, f"p{epoch}")), epoch)
        return taken

    with ThreadPoolExecutor(2) as pool:
        taken = [pool.submit(drive) for _ in range(2)]
        lost = [epoch for each in taken for epoch in each.result()]
    assert len(lost) == len(set(lost))
    assert stream.names() == [(epoch, f"p{epoch}") for epoch in range(4)]
    assert stream.names("epochs") == [(epoch, str(epoch)) for epoch in range(4)]
    assert stream.versions() == {"epochs": 4, "person": 4}
    assert stream.marks() == {"q": (4, "3")}
    assert stream.orphans() == []


def test_two_queries_do_not_wait_for_each_other(stream: Stream) -> None:
    def nested(tx: GraphWrite, rows: DataFrame, epoch: int) -> None:
        load(tx, rows, epoch)
        writer(stream, query="b").batch(load)(stream.rows(BOB), 7)

    writer(stream, query="a").batch(load)(stream.rows(EVE), 0)
    writer(stream, query="a").batch(nested)(stream.rows(ADA), 1)
    assert stream.names() == [ADA, BOB, EVE]
    assert stream.marks() == {"a": (2, "1"), "b": (1, "7")}


# -- lost responses


@pytest.mark.parametrize("forward", [True, False], ids=["applied", "not applied"])
def test_a_lost_response_is_found_out(stream: Stream, proxy: LossyProxy, forward: bool) -> None:
    proxy.lose, proxy.forward = 1, forward
    with CatalogServer(proxy.url, retries=0) as server:
        writer(stream, server, query="q").batch(load)(stream.rows(ADA), 0)
    assert stream.names() == [ADA]
    assert stream.marks() == {"q": (1, "0")}
    assert len(proxy.keys) == (1 if forward else 2)
    assert len(set(proxy.keys)) == 1


def test_an_unknown_outcome_is_raised_and_deletes_nothing(stream: Stream, proxy: LossyProxy) -> None:
    writer(stream, query="q").batch(load)(stream.rows(ADA), 0)
    proxy.lose, proxy.forward = 9, False
    with CatalogServer(proxy.url, retries=0) as server, pytest.raises(WriteUnknown):
        writer(stream, server, query="q").batch(load)(stream.rows(BOB), 1)
    assert len(stream.orphans()) == 2
    writer(stream, query="q").batch(load)(stream.rows(BOB), 1)
    assert stream.names() == [ADA, BOB]
    assert stream.versions() == {"epochs": 2, "person": 2}
    assert len(stream.orphans()) == 2


def test_a_delayed_batch_of_an_earlier_driver_is_refused(stream: Stream, proxy: LossyProxy) -> None:
    run = writer(stream, query="q").batch(load)
    run(stream.rows(ADA), 0)
    proxy.lose, proxy.forward = 9, False
    held: list[GraphWrite] = []

    def keep(tx: GraphWrite, rows: DataFrame, epoch: int) -> None:
        held.append(tx)
        load(tx, rows, epoch)

    with CatalogServer(proxy.url, retries=0) as server:
        with pytest.raises(WriteUnknown):
            writer(stream, server, query="q").batch(keep)(stream.rows(BOB), 1)
        run(stream.rows(BOB), 1)
        proxy.lose = 0
        with pytest.raises(GraphConflict):
            held[0].resend()
    assert stream.names() == [ADA, BOB]
    assert stream.marks() == {"q": (2, "1")}
