"""The sink of the data source: `df.writeStream.format("lance")`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming import DataStreamWriter

from spark_catalog import CatalogServer, GraphWrite
from spark_catalog.options import stream_write_options
from spark_catalog.source.stream_sink import LanceStreamWriter, plan_stream
from spark_catalog.streaming.epochs import Epoch
from table_data.errors import InvalidCall
from tests.lossy_proxy import LossyProxy
from tests.spark.streaming.conftest import Stream

ADA, BOB, EVE = (1, "Ada"), (2, "Bob"), (3, "Eve")


def options(stream: Stream, **given: str) -> dict[str, str]:
    return {"server": stream.catalog.url, "table": "$".join([*stream.namespace, "person"])} | given


def sink(stream: Stream, **given: str) -> DataStreamWriter:
    return stream.source().writeStream.format("lance").options(**options(stream, **given))


def test_each_epoch_is_one_version_and_a_restart_goes_on(stream: Stream) -> None:
    stream.feed([ADA], [BOB])
    stream.finish(sink(stream, message="people"))
    assert stream.names() == [ADA, BOB]
    assert stream.versions() == {"person": 3}
    assert stream.open("person").read_transaction(3).transaction_properties == {"__lance_commit_message": "people"}
    checkpoint = json.loads((stream.checkpoint / "metadata").read_text())["id"]
    assert stream.marks() == {checkpoint: (2, "1")}
    stream.feed([EVE])
    stream.finish(sink(stream))
    assert stream.names() == [ADA, BOB, EVE]
    assert stream.marks() == {checkpoint: (3, "2")}


def test_an_epoch_whose_end_spark_has_lost_is_skipped_and_leaves_no_file(stream: Stream) -> None:
    stream.feed([ADA], [BOB])
    stream.finish(sink(stream, query="people"))
    stream.forget(1)
    stream.finish(sink(stream, query="people"))
    assert stream.names() == [ADA, BOB]
    assert stream.marks() == {"people": (2, "1")}
    assert stream.orphans() == []


def test_complete_mode_replaces_the_rows(stream: Stream) -> None:
    stream.feed([ADA, BOB], [ADA])
    counts = stream.source().groupBy("name").agg(F.count("*").alias("rows"))
    stream.finish(counts.writeStream.format("lance").outputMode("complete").options(**options(stream)))
    rows = stream.open("person").to_table().to_pylist()
    assert {row["name"]: row["rows"] for row in rows} == {"Ada": 2, "Bob": 1}


def test_rows_are_added_to_a_table_that_is_there(stream: Stream) -> None:
    with GraphWrite(stream.spark, stream.catalog, namespace=stream.namespace) as tx:
        tx.append("person", stream.rows(ADA))
    stream.feed([BOB])
    stream.finish(sink(stream))
    assert stream.names() == [ADA, BOB]
    assert stream.versions() == {"person": 2}


def test_other_columns_are_refused_at_the_start(stream: Stream) -> None:
    with GraphWrite(stream.spark, stream.catalog, namespace=stream.namespace) as tx:
        tx.append("person", stream.rows(ADA).withColumnRenamed("name", "title"))
    stream.feed([BOB])
    with pytest.raises(StreamingQueryException, match=r"expected columns \['id', 'title'\]"):
        stream.finish(sink(stream))


def test_a_new_checkpoint_under_an_old_name_is_refused(stream: Stream) -> None:
    stream.feed([ADA])
    stream.finish(sink(stream, query="people"))
    with pytest.raises(StreamingQueryException, match="give a query with a new checkpoint a new name"):
        stream.finish(sink(stream, query="people"), "other")
    assert stream.names() == [ADA]
    assert stream.orphans() == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"uri": "/t"}, "expected options server and table, found uri"),
        ({"server": "http://x", "table": "a", "version": "1"}, "options version: expected options among"),
        ({"server": "http://x", "table": "a", "isolation": "chaos"}, "expected snapshot or serializable"),
    ],
)
def test_options_that_a_sink_has_not_are_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidCall, match=message):
        stream_write_options(given)


# -- commit and abort as Spark calls them, in one process


def staged(stream: Stream, server: str, *rows: tuple[int, str]) -> tuple[LanceStreamWriter, list[object]]:
    frame = stream.rows(*rows)
    planned = plan_stream(
        stream_write_options(options(stream, query="q", server=server)), frame.schema, overwrite=False
    )
    writer = LanceStreamWriter(planned)
    return writer, [writer.write(iter(frame.toArrow().to_batches()))]


def test_an_aborted_epoch_leaves_no_file(stream: Stream) -> None:
    writer, messages = staged(stream, stream.catalog.url, ADA)
    assert len(stream.orphans()) == 1
    writer.abort([*messages, None], 0)
    assert stream.orphans() == []
    assert stream.names() == []


def test_an_unknown_outcome_removes_no_file(
    stream: Stream, proxy: LossyProxy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from namespace_client.errors import CommitUnknown

    monkeypatch.setattr(
        "spark_catalog.source.stream_sink.connect", lambda place: CatalogServer(place.server, retries=0)
    )
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    writer, messages = staged(stream, proxy.url, ADA)
    proxy.lose, proxy.forward = 9, False
    with pytest.raises(CommitUnknown):
        writer.commit(messages, 0)
    writer.abort(messages, 0)
    assert len(stream.orphans()) == 1
    proxy.lose = 0
    writer.commit(messages, 0)
    assert stream.names() == [ADA]
    assert not list(tmp_path.glob("*.sent"))


def test_an_interrupted_commit_removes_no_file(stream: Stream, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    writer, messages = staged(stream, stream.catalog.url, ADA)
    send = Epoch.commit

    def interrupted(*arguments: Any) -> bool:
        send(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Epoch, "commit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            writer.commit(messages, 0)
    writer.abort(messages, 0)
    assert stream.names() == [ADA]


def test_a_refused_epoch_leaves_no_file(stream: Stream) -> None:
    writer, messages = staged(stream, stream.catalog.url, ADA)
    with GraphWrite(stream.spark, stream.catalog, namespace=stream.namespace) as tx:
        tx.overwrite("person", stream.rows(BOB).withColumnRenamed("name", "title"))
    with pytest.raises(InvalidCall, match="its columns changed while the epoch was staged: restart the query"):
        writer.commit(messages, 0)
    writer.abort(messages, 0)
    assert stream.orphans() == []
    assert stream.marks() == {}


def test_a_table_that_was_made_again_is_refused(stream: Stream) -> None:
    from lance.namespace import RestNamespace
    from lance_namespace import DropTableRequest

    writer, messages = staged(stream, stream.catalog.url, ADA)
    RestNamespace(uri=stream.catalog.url).drop_table(DropTableRequest(id=[*stream.namespace, "person"]))
    with pytest.raises(InvalidCall, match="found it dropped: restart the query"):
        writer.commit(messages, 0)
    staged(stream, stream.catalog.url, BOB)
    with pytest.raises(InvalidCall, match="found it dropped and made again: restart the query"):
        writer.commit(messages, 0)
