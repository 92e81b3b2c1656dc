"""`spark.readStream.format("lance")`: rows that versions of a table add or change."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import lance
import pyarrow as pa
import pytest
from lance.namespace import RestNamespace
from lance_namespace import DropTableRequest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.datasource import ReadAllAvailable

from lance_core.format.naming import manifest_path
from namespace_client import Catalog, MultiTableTransaction
from spark_catalog.options import stream_read_options
from spark_catalog.source.data_source import LanceDataSource
from spark_catalog.source.stream_source import LanceStreamReader
from table_data.descriptions import update_operation
from table_data.errors import InvalidCall, VersionGone
from tests.spark.streaming.conftest import Stream

Row = dict[str, object]


class Feed:
    """The table `person`, changed through a client, and read as a stream in this process."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.catalog = Catalog.connect(stream.catalog.url, namespace=stream.namespace)
        self.table = "$".join([*stream.namespace, "person"])
        self.offset: Row | None = None

    def make(self, *ids: int, stable: bool = False) -> None:
        self.change(lambda tx: tx.create("person", rows(*ids), stable_row_ids=stable))

    def change(self, *calls: Callable[[MultiTableTransaction], object]) -> None:
        """Commit calls, each in a batch of its own."""
        for call in calls:
            with self.catalog.begin() as tx:
                call(tx)

    def reader(self, **options: str) -> LanceStreamReader:
        source = LanceDataSource({"server": self.stream.catalog.url, "table": self.table} | options)
        reader = source.streamReader(source.schema())
        assert isinstance(reader, LanceStreamReader)
        return reader

    def read(self, **options: str) -> list[Row]:
        """The rows of one micro-batch, from where the last one ended."""
        reader = self.reader(**options)
        start = self.offset or reader.initialOffset()
        self.offset = reader.latestOffset(start, reader.getDefaultReadLimit())
        found = []
        for partition in reader.partitions(start, self.offset):
            for batch in reader.read(partition):
                found += batch.to_pylist()
        return found

    def ids(self, **options: str) -> list[object]:
        return sorted(row["id"] for row in self.read(**options))

    def types(self, **options: str) -> list[tuple[object, object]]:
        return sorted((row["id"], row["_change_type"]) for row in self.read(updates="rows", **options))


def rows(*ids: int, name: str = "p") -> list[Row]:
    return [{"id": number, "name": f"{name}{number}"} for number in ids]


def append(*ids: int) -> Callable[[MultiTableTransaction], object]:
    return lambda tx: tx.append("person", rows(*ids))


def merge(*ids: int) -> Callable[[MultiTableTransaction], object]:
    return lambda tx: tx.merge("person", rows(*ids, name="q"), on="id")


def delete(where: str) -> Callable[[MultiTableTransaction], object]:
    return lambda tx: tx.delete("person", where)


@pytest.fixture
def feed(stream: Stream) -> Iterator[Feed]:
    opened = Feed(stream)
    yield opened
    opened.catalog.close()


# -- added rows


def test_all_rows_first_and_then_those_that_are_added(feed: Feed) -> None:
    feed.make(1, 2)
    feed.change(append(3))
    assert feed.ids() == [1, 2, 3]
    assert feed.ids() == []
    feed.change(append(4), append(5))
    assert feed.read() == rows(4, 5)
    assert feed.offset is not None
    assert feed.offset["table_version"] == 4


def test_the_rows_between_two_offsets_are_always_the_same(feed: Feed) -> None:
    feed.make(1)
    feed.change(append(2))
    reader = feed.reader(starting_version="1", deletes="ignore")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    feed.change(append(3), lambda tx: tx.compact("person"), delete("id = 2"))
    found = [row for part in reader.partitions(start, end) for batch in reader.read(part) for row in batch.to_pylist()]
    assert found == rows(1, 2)


@pytest.mark.parametrize(
    ("start", "expected"), [("1", [1, 2, 3]), ("2", [2, 3]), ("3", [3]), ("9", []), ("latest", [])]
)
def test_a_query_begins_at_a_version(feed: Feed, start: str, expected: list[int]) -> None:
    feed.make(1)
    feed.change(append(2), append(3))
    assert feed.ids(starting_version=start) == expected


def test_a_micro_batch_has_at_most_so_many_versions(feed: Feed) -> None:
    feed.make(1)
    feed.change(append(2), append(3), append(4))
    options = {"starting_version": "1", "max_versions_per_trigger": "2"}
    assert [feed.ids(**options) for _ in range(3)] == [[1, 2], [3, 4], []]


def test_what_adds_no_rows_gives_none(feed: Feed) -> None:
    feed.make(*range(100))
    feed.change(append(100), append(101))
    assert len(feed.ids()) == 102
    feed.change(
        lambda tx: tx.compact("person"),
        lambda tx: tx.create_index("person", "id", "BTREE"),
        lambda tx: tx.add_columns("person", {"twice": "id * 2"}),
        append_with_twice,
    )
    assert feed.ids() == [200]


def append_with_twice(tx: MultiTableTransaction) -> None:
    tx.append("person", [{"id": 200, "name": "p", "twice": 400}])


def test_columns_are_pruned_and_metadata_columns_added(feed: Feed) -> None:
    feed.make(1, stable=True)
    feed.change(append(2))
    found = feed.read(starting_version="1", columns="name", with_row_id="true", with_row_versions="true")
    assert found == [
        {"name": "p1", "_rowid": 0, "_row_created_at_version": 1, "_row_last_updated_at_version": 1},
        {"name": "p2", "_rowid": 1, "_row_created_at_version": 2, "_row_last_updated_at_version": 2},
    ]


def test_large_fragments_are_divided_and_small_versions_joined(feed: Feed) -> None:
    feed.make(0)
    feed.change(*(append(number) for number in range(1, 6)))
    feed.change(lambda tx: tx.append("person", {"id": list(range(200_000)), "name": ["n"] * 200_000}))
    reader = feed.reader(starting_version="1")
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    parts = [[part.split.rows for part in one.parts] for one in reader.partitions(reader.initialOffset(), end)]
    assert parts == [[1] * 6, [200_000]]


# -- changes that are more than added rows


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (merge(1, 9), r"version 2: updates rows: expected only added rows, or option updates=ignore or updates=rows"),
        (delete("id = 1"), r"version 2: deletes rows: expected only added rows, or option deletes=ignore"),
        (lambda tx: tx.overwrite("person", rows(7)), r"version 2: replaces all rows \(overwrite\)"),
        (lambda tx: tx.restore("person", 1), r"version 2: replaces all rows \(restore\)"),
    ],
    ids=["merge", "delete", "overwrite", "restore"],
)
def test_other_changes_are_refused_by_name_and_version(
    feed: Feed, change: Callable[[MultiTableTransaction], object], message: str, stable: bool
) -> None:
    feed.make(1, 2, stable=stable)
    feed.read()
    feed.change(change)
    with pytest.raises(InvalidCall, match=rf"{feed.stream.namespace[0]}\$person: {message}"):
        feed.read()


@pytest.mark.parametrize("stable", [False, True])
def test_deletes_and_overwrites_can_be_passed_over(feed: Feed, stable: bool) -> None:
    feed.make(1, 2, stable=stable)
    feed.read()
    feed.change(delete("id = 1"), append(3), lambda tx: tx.overwrite("person", rows(7)), append(8))
    assert feed.ids(deletes="ignore", overwrites="ignore") == [3, 8]


def test_with_stable_row_ids_inserted_and_updated_rows_are_told_apart(feed: Feed) -> None:
    feed.make(1, 2, stable=True)
    assert feed.types() == [(1, "insert"), (2, "insert")]
    feed.change(merge(2, 3), append(4))
    before = feed.offset
    assert feed.types() == [(2, "update"), (3, "insert"), (4, "insert")]
    feed.offset = before
    assert feed.ids(updates="ignore") == [3, 4]
    feed.change(lambda tx: tx.update("person", {"name": "'x'"}, where="id = 4"))
    [changed] = feed.read(updates="rows")
    assert changed == {"id": 4, "name": "x", "_change_type": "update", "_commit_version": 4}


def test_deleted_rows_come_as_they_were_with_their_type(feed: Feed) -> None:
    feed.make(1, 2, stable=True)
    options = {"deletes": "rows", "updates": "ignore"}
    assert [row["_change_type"] for row in feed.read(**options)] == ["insert", "insert"]
    feed.change(merge(2, 3), lambda tx: tx.compact("person"), delete("id < 3"), append(4))
    assert [(row["name"], row["_change_type"], row["_commit_version"]) for row in feed.read(**options)] == [
        ("q3", "insert", 2),
        ("p1", "delete", 4),
        ("q2", "delete", 4),
        ("p4", "insert", 5),
    ]


def test_without_stable_row_ids_they_are_not(feed: Feed) -> None:
    feed.make(1, 2)
    feed.read()
    feed.change(merge(2, 3))
    before = feed.offset
    with pytest.raises(InvalidCall, match="which only stable row ids separate: expected option updates=rows"):
        feed.read(updates="ignore")
    feed.offset = before
    assert feed.types() == [(2, "upsert"), (3, "upsert")]


def test_columns_that_were_rewritten_in_place_are_updates(feed: Feed) -> None:
    feed.make(*range(5), stable=True)
    feed.read()
    stock = RestNamespace(uri=feed.stream.catalog.url)
    dataset = lance.dataset(namespace_client=stock, table_id=feed.table.split("$"))
    changed = pa.table({"id": [1, 3], "name": ["a", "b"]}, schema=dataset.schema)
    fragment, fields = dataset.get_fragment(0).update_columns(changed, "id", "id")
    update = lance.LanceOperation.Update(
        updated_fragments=[fragment], fields_modified=fields, update_mode="rewrite_columns"
    )
    feed.change(lambda tx: tx.stage("person", update_operation(update), call="rewrite"))
    before = feed.offset
    with pytest.raises(InvalidCall, match="version 2: updates rows"):
        feed.read()
    feed.offset = before
    assert feed.ids(updates="ignore") == []
    feed.offset = before
    found = feed.types()
    assert {(1, "update"), (3, "update")} <= set(found)
    assert {kind for _, kind in found} == {"update"}


@pytest.mark.parametrize("stable", [False, True])
def test_a_merge_that_only_inserts_adds_rows(feed: Feed, stable: bool) -> None:
    feed.make(1, 2, stable=stable)
    feed.read()
    feed.change(merge(8, 9))
    assert feed.ids() == [8, 9]


@pytest.mark.parametrize("stable", [False, True])
def test_rows_that_one_batch_deletes_and_adds(feed: Feed, stable: bool) -> None:
    feed.make(1, 2, stable=stable)
    feed.read()
    before = feed.offset

    def both(tx: MultiTableTransaction) -> None:
        tx.delete("person", "id = 1")
        tx.append("person", rows(5))

    feed.change(both)
    with pytest.raises(InvalidCall, match="deletes rows" if stable else "updates rows"):
        feed.read()
    expected = [(5, "insert")] if stable else [(5, "upsert")]
    feed.offset = before
    assert feed.types(deletes="ignore") == expected


# -- what cannot be read


def test_a_version_that_was_cleaned_up_is_named(feed: Feed) -> None:
    feed.make(1)
    feed.read()
    feed.change(append(2), append(3))
    home = Path(urlsplit(str((feed.offset or {})["location"])).path)
    (home / manifest_path("", 2)).unlink()
    with pytest.raises(VersionGone, match=r"person: version 2 was cleaned up before it was read"):
        feed.read()


def test_a_table_that_was_made_again_is_refused(feed: Feed) -> None:
    feed.make(1)
    feed.read()
    reader = feed.reader()
    RestNamespace(uri=feed.stream.catalog.url).drop_table(DropTableRequest(id=feed.table.split("$")))
    with pytest.raises(InvalidCall, match="expected a table with a version"):
        reader.latestOffset(feed.offset or {}, ReadAllAvailable())
    feed.make(1)
    with pytest.raises(InvalidCall, match="found it dropped and made again"):
        feed.read()


@pytest.mark.parametrize("versions", [1, 2, 3])
@pytest.mark.parametrize("limit", [None, "1"])
def test_a_table_whose_files_were_replaced_is_refused(feed: Feed, versions: int, limit: str | None) -> None:
    """It has the same location and, as the new table has more or fewer versions, the known one is there again."""
    limited = {} if limit is None else {"max_versions_per_trigger": limit}
    feed.stream.register("person", rows(1), rows(2), rows(3))
    assert feed.ids(starting_version="1", **limited) == ([1, 2, 3] if limit is None else [1])
    if limit is not None:
        assert feed.ids(starting_version="1", **limited) == [2]
    feed.stream.register("person", *(rows(number) for number in range(7, 7 + versions)))
    with pytest.raises(InvalidCall, match=r"another table took its place|was replaced by another one"):
        feed.read(starting_version="1", **limited)


def test_an_offset_of_an_earlier_release_is_continued(feed: Feed) -> None:
    feed.make(1)
    feed.read()
    assert feed.offset is not None
    assert isinstance(feed.offset.pop("committed_ms"), int)
    feed.change(append(2))
    assert feed.read() == rows(2)


def test_a_commit_between_the_target_and_the_start(feed: Feed) -> None:
    """The target is found before the start, which then is newer: there is nothing to read."""
    feed.make(1)
    reader = feed.reader(starting_version="latest")
    reader.prepareForTriggerAvailableNow()
    feed.change(append(2))
    start = reader.initialOffset()
    assert reader.latestOffset(start, ReadAllAvailable()) == start


def test_a_start_above_the_newest_version_is_waited_for(feed: Feed) -> None:
    feed.make(1)
    assert feed.read(starting_version="3") == []
    feed.change(append(2), append(3))
    assert feed.read(starting_version="3") == rows(3)


def test_a_column_that_a_version_does_not_have_is_named(feed: Feed) -> None:
    feed.make(1)
    feed.change(append(2), lambda tx: tx.add_columns("person", {"twice": "id * 2"}))
    with pytest.raises(InvalidCall, match=r"version 1: .*twice"):
        feed.read(starting_version="1")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"uri": "/t"}, "expected options server and table, found uri"),
        ({"updates": "some"}, "option updates: expected fail or ignore or rows, found 'some'"),
        ({"version": "1"}, "options version: expected options among"),
        ({"starting_version": "0"}, "expected a number from 1"),
    ],
)
def test_options_that_a_stream_has_not_are_refused(options: dict[str, str], message: str) -> None:
    place = {} if "uri" in options else {"server": "http://x", "table": "a"}
    with pytest.raises(InvalidCall, match=message):
        stream_read_options(place | options)


def test_options_of_a_stream_are_refused_for_a_batch_read(feed: Feed) -> None:
    feed.make(1)
    given = {"server": feed.stream.catalog.url, "table": feed.table, "starting_version": "1"}
    source = LanceDataSource(given)
    with pytest.raises(InvalidCall, match=r"options starting_version: expected with spark\.readStream"):
        source.reader(source.schema())


def test_another_pyspark_is_named(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    feed.make(1)
    monkeypatch.setitem(sys.modules, "pyspark.sql.streaming.datasource", None)
    for module in ("streaming.spark_limits", "source.stream_source"):
        monkeypatch.delitem(sys.modules, f"spark_catalog.{module}")
    with pytest.raises(InvalidCall, match=r"pyspark 4\.\d\.\d: expected 4\.2 or newer to read streams"):
        feed.reader()


# -- queries of Spark


def test_a_query_goes_on_from_its_checkpoint_once(feed: Feed) -> None:
    stream = feed.stream
    feed.make(1, stable=True)
    feed.change(append(2), append(3))
    seen: list[tuple[int, list[tuple[int, str]]]] = []

    def note(rows: DataFrame, epoch: int) -> None:
        seen.append((epoch, sorted((row["id"], row["_change_type"]) for row in rows.collect())))

    def run() -> None:
        given = {"server": stream.catalog.url, "table": feed.table, "updates": "rows"}
        source = stream.spark.readStream.format("lance").options(
            **given, starting_version=1, max_versions_per_trigger=2
        )
        stream.finish(source.load().writeStream.foreachBatch(note))

    run()
    assert seen == [(0, [(1, "insert"), (2, "insert")]), (1, [(3, "insert")])]
    feed.change(merge(3, 4))
    run()
    assert seen[2:] == [(2, [(3, "update"), (4, "insert")])]
    stream.forget(2)
    run()
    assert seen[3:] == seen[2:3]


def test_a_table_is_copied_by_a_stream(feed: Feed) -> None:
    stream = feed.stream
    feed.make(1, 2)
    server = {"server": stream.catalog.url}
    copy = "$".join([*stream.namespace, "copy"])

    def run() -> None:
        source = stream.spark.readStream.format("lance").options(**server, table=feed.table).load()
        stream.finish(source.writeStream.format("lance").options(**server, table=copy))

    run()
    feed.change(append(3), append(4))
    run()
    assert stream.names("copy") == [(number, f"p{number}") for number in (1, 2, 3, 4)]
    feed.change(delete("id = 1"))
    with pytest.raises(StreamingQueryException, match=r"person: version 4: deletes rows"):
        run()
