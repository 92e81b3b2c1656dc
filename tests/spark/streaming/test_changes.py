"""Changes of one table between two versions, and of several tables in step."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lance.namespace import RestNamespace
from lance_namespace import DropTableRequest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles

from namespace_client import Catalog, MultiTableTransaction
from spark_catalog import GraphWrite, InvalidWrite, StreamWriter, graph_changes, read_changes
from spark_catalog.streaming.graph_changes import GraphChanges
from spark_catalog.streaming.steps import COLUMNS, StepOptions, StepReader
from table_data.errors import InvalidCall, VersionGone
from tests.spark.streaming.conftest import Stream


@pytest.fixture
def client(stream: Stream) -> Iterator[Catalog]:
    with Catalog.connect(stream.catalog.url, namespace=stream.namespace) as catalog:
        yield catalog


def person(*ids: int, name: str = "p") -> list[dict[str, object]]:
    return [{"id": number, "name": f"{name}{number}"} for number in ids]


def found(frame: DataFrame, *columns: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in frame.select(*columns).collect())


# -- one table


def test_changes_between_two_versions(stream: Stream, client: Catalog) -> None:
    with client.begin() as tx:
        tx.create("person", person(1, 2), stable_row_ids=True)
    with client.begin() as tx:
        tx.append("person", person(3))
    with client.begin() as tx:
        tx.merge("person", person(3, 4, name="q"), on="id")
    path = [*stream.namespace, "person"]
    every = read_changes(stream.spark, stream.catalog, path, 0)
    assert found(every, "id", "name", "_change_type", "_commit_version") == [
        (1, "p1", "insert", 1),
        (2, "p2", "insert", 1),
        (3, "p3", "insert", 2),
        (3, "q3", "update", 3),
        (4, "q4", "insert", 3),
    ]
    assert found(read_changes(stream.spark, stream.catalog.url, path, 1, 2), "id") == [(3,)]
    assert read_changes(stream.spark, stream.catalog, path, 3).count() == 0
    assert read_changes(stream.spark, stream.catalog, path, 0, 1, columns=["name"]).columns == [
        "name",
        "_change_type",
        "_commit_version",
    ]
    inserted = read_changes(stream.spark, stream.catalog, path, 1, updates="ignore")
    assert found(inserted, "id", "name") == [(3, "p3"), (4, "q4")]
    assert inserted.columns == ["id", "name"]
    with pytest.raises(InvalidWrite, match="version 3: updates rows"):
        read_changes(stream.spark, stream.catalog, path, 1, updates="fail")


def test_deleted_rows_are_read_as_they_were(stream: Stream, client: Catalog) -> None:
    with client.begin() as tx:
        tx.create("person", person(1, 2, 3), stable_row_ids=True)
    with client.begin() as tx:
        tx.merge("person", person(1, name="q"), on="id")
    with client.begin() as tx:
        tx.delete("person", "id IN (1, 2)")
    path = [*stream.namespace, "person"]
    every = read_changes(stream.spark, stream.catalog, path, 1, deletes="rows")
    assert found(every, "id", "name", "_change_type", "_commit_version") == [
        (1, "q1", "delete", 3),
        (1, "q1", "update", 2),
        (2, "p2", "delete", 3),
    ]
    deleted = read_changes(stream.spark, stream.catalog, path, 1, updates="ignore", deletes="rows")
    assert found(deleted, "id", "_change_type") == [(1, "delete"), (2, "delete")]
    with client.begin() as tx:
        tx.create("plain", person(1))
        tx.create("log", [{"id": 1, "_commit_version": 7}])
    with pytest.raises(InvalidWrite, match="plain: version 1: expected stable row ids"):
        read_changes(stream.spark, stream.catalog, [*stream.namespace, "plain"], 0, deletes="rows")
    log = [*stream.namespace, "log"]
    assert found(read_changes(stream.spark, stream.catalog, log, 0, updates="fail"), "_commit_version") == [(7,)]
    with pytest.raises(InvalidWrite, match="log: expected no column of the name _commit_version, which changes add"):
        read_changes(stream.spark, stream.catalog, log, 0)


@pytest.mark.parametrize(("first", "last"), [(3, 2), (-1, 2), (0, 3), (0, 0)])
def test_a_range_that_is_none_is_refused(stream: Stream, client: Catalog, first: int, last: int) -> None:
    for call in ("create", "append"):
        with client.begin() as tx:
            getattr(tx, call)("person", person(1))
    with pytest.raises(InvalidWrite, match="expected numbers in order, at most 2"):
        read_changes(stream.spark, stream.catalog, [*stream.namespace, "person"], first, last)


def test_changes_of_no_table_are_refused(stream: Stream) -> None:
    with pytest.raises(InvalidWrite, match="expected a table with a version, found none"):
        read_changes(stream.spark, stream.catalog, [*stream.namespace, "nosuch"], 0)


# -- several tables


def both(tx: MultiTableTransaction, *ids: int) -> None:
    """A person and a visit with each id: never one without the other."""
    tx.append("person", person(*ids))
    tx.append("visit", person(*ids, name="v"))


def load(client: Catalog, *ids: int) -> None:
    with client.begin() as tx:
        tx.create("person", person(*ids))
        tx.create("visit", person(*ids, name="v"))


def changes(stream: Stream, *tables: str, **options: object) -> GraphChanges:
    names = tables or ("person", "visit")
    return graph_changes(stream.spark, stream.catalog, stream.namespace, names, **options)


def test_all_tables_of_a_micro_batch_are_at_one_catalog_version(stream: Stream, client: Catalog) -> None:
    load(client, 1, 2)
    for number in (3, 4, 5):
        with client.begin() as tx:
            both(tx, number)
    seen: list[tuple[int, list[object], list[object]]] = []

    def note(rows: DataFrame, epoch: int) -> None:
        step = steps.read(rows)
        people, visits = (found(step.tables[name], "id") for name in ("person", "visit"))
        pinned = stream.catalog.pins(step.to_catalog_version).tables
        assert {pinned[(*stream.namespace, name)].version for name in step.tables} == {len(seen) + 4}
        seen.append((epoch, people, visits))

    steps = changes(stream)
    stream.finish(steps.stream.writeStream.foreachBatch(note))
    assert seen == [(0, [(1,), (2,), (3,), (4,), (5,)], [(1,), (2,), (3,), (4,), (5,)])]
    with client.begin() as tx:
        both(tx, 6)
    stream.finish(changes(stream).stream.writeStream.foreachBatch(note))
    assert seen[1:] == [(1, [(6,)], [(6,)])]
    stream.forget(1)
    seen.pop()
    stream.finish(changes(stream).stream.writeStream.foreachBatch(note))
    assert seen[1:] == [(1, [(6,)], [(6,)])]


def test_steps_are_written_once_as_one_batch_each(stream: Stream, client: Catalog) -> None:
    load(client, 1)
    steps = changes(stream, columns={"visit": ["id"]})

    def copy(tx: GraphWrite, rows: DataFrame, epoch: int) -> None:
        step = steps.read(rows)
        tx.append("names", step.tables["person"])
        tx.append("ids", step.tables["visit"])

    writer = StreamWriter(stream.catalog, namespace=stream.namespace)
    stream.finish(steps.stream.writeStream.foreachBatch(writer.batch(copy)))
    with client.begin() as tx:
        both(tx, 2)
    stream.finish(steps.stream.writeStream.foreachBatch(writer.batch(copy)))
    stream.forget(1)
    stream.finish(steps.stream.writeStream.foreachBatch(writer.batch(copy)))
    assert stream.names("names") == [(1, "p1"), (2, "p2")]
    assert [row["id"] for row in stream.open("ids").to_table().to_pylist()] == [1, 2]
    assert stream.versions() == {"ids": 2, "names": 2, "person": 2, "visit": 2}


def reader(stream: Stream, *tables: str, start: object = None, limit: int | None = None) -> StepReader:
    names = tables or ("person", "visit")
    given = StepOptions(stream.catalog.url, tuple(stream.namespace), names, start, limit, None)  # type: ignore[arg-type]
    assert StepOptions.unpack(given.pack()) == given
    return StepReader(given)


def ranges(steps: StepReader, start: dict[str, object], end: dict[str, object]) -> dict[str, tuple[object, object]]:
    rows = [row for part in steps.partitions(start, end) for row in steps.read(part)]
    return {row[2]: (row[4], row[6]) for row in rows}  # type: ignore[misc]


@pytest.mark.parametrize("versions", [1, 2, 3])
def test_a_table_whose_files_were_replaced_is_refused(stream: Stream, versions: int) -> None:
    """It has the same location and, as the new table has more or fewer versions, the known one is there again."""
    stream.register("person", person(1), person(2))
    changes = graph_changes(stream.spark, stream.catalog, stream.namespace, ["person"])
    steps = reader(stream, "person")
    start = steps.latestOffset(steps.initialOffset(), ReadAllAvailable())
    stream.register("person", *(person(number) for number in range(7, 7 + versions)))
    if versions < 3:
        with pytest.raises(InvalidCall, match="another table took its place; start again without a checkpoint"):
            steps.latestOffset(start, ReadAllAvailable())
        return
    end = steps.latestOffset(start, ReadAllAvailable())
    rows = [row for part in steps.partitions(start, end) for row in steps.read(part)]
    step = stream.spark.createDataFrame(rows, COLUMNS)
    with pytest.raises(VersionGone, match="person: version 2 was replaced by another one"):
        changes.read(step)
    assert steps.latestOffset({**start, "times": {}}, ReadAllAvailable()) == end, "an offset of an earlier release"


def test_a_limit_goes_past_catalog_versions_without_changes(stream: Stream, client: Catalog) -> None:
    load(client, 1)
    steps = reader(stream, start="latest", limit=1)
    start = steps.initialOffset()
    for number in range(5):
        with client.begin() as tx:
            (tx.create if number == 0 else tx.append)("other", person(number))
    for number in (2, 3):
        with client.begin() as tx:
            both(tx, number)
    limit = steps.getDefaultReadLimit()
    assert limit == ReadMaxFiles(1)
    first = steps.latestOffset(start, limit)
    second = steps.latestOffset(first, limit)
    assert [ranges(steps, *each)["person"] for each in ((start, first), (first, second))] == [(1, 2), (2, 3)]
    assert steps.latestOffset(second, limit) == second
    assert ranges(steps, second, second) == {"person": (3, 3), "visit": (3, 3)}
    assert ranges(steps, start, steps.latestOffset(start, ReadAllAvailable()))["visit"] == (1, 3)


def test_a_table_that_is_made_later_is_read_from_its_first_version(stream: Stream, client: Catalog) -> None:
    with client.begin() as tx:
        tx.create("person", person(1))
    steps = reader(stream)
    start = steps.latestOffset(steps.initialOffset(), ReadAllAvailable())
    assert ranges(steps, steps.initialOffset(), start) == {"person": (None, 1)}
    with client.begin() as tx:
        tx.create("visit", person(1))
    assert ranges(steps, start, steps.latestOffset(start, ReadAllAvailable())) == {"person": (1, 1), "visit": (0, 1)}


def test_a_catalog_version_whose_rows_are_known(stream: Stream, client: Catalog) -> None:
    load(client, 1)
    known = stream.catalog.state().version
    with client.begin() as tx:
        both(tx, 2)
    steps = reader(stream, start=known)
    end = steps.latestOffset(steps.initialOffset(), ReadAllAvailable())
    assert ranges(steps, steps.initialOffset(), end) == {"person": (1, 2), "visit": (1, 2)}


def test_a_dropped_table_is_named(stream: Stream, client: Catalog) -> None:
    load(client, 1)
    steps = reader(stream)
    start = steps.latestOffset(steps.initialOffset(), ReadAllAvailable())
    RestNamespace(uri=stream.catalog.url).drop_table(DropTableRequest(id=[*stream.namespace, "visit"]))
    with pytest.raises(InvalidCall, match=rf"{stream.namespace[0]}\$visit: .* found it dropped in catalog version"):
        steps.latestOffset(start, ReadAllAvailable())


def test_changes_that_the_options_do_not_allow_fail_the_query(stream: Stream, client: Catalog) -> None:
    load(client, 1, 2)
    steps = changes(stream, starting_version="latest")
    counts: list[int] = []

    def note(rows: DataFrame, epoch: int) -> None:
        counts.append(sum(table.count() for table in steps.read(rows).tables.values()))

    query = steps.stream.writeStream.foreachBatch(note)
    stream.finish(query)
    assert counts == [0]
    with client.begin() as tx:
        tx.delete("visit", "id = 1")
    with pytest.raises(StreamingQueryException, match="visit: version 2: deletes rows"):
        stream.finish(query)


def test_what_no_stream_can_be_made_of_is_refused(stream: Stream) -> None:
    with pytest.raises(InvalidWrite, match="expected names of tables"):
        changes(stream, "person", columns={"visit": ["id"]})
    with pytest.raises(InvalidWrite, match="expected names of tables"):
        graph_changes(stream.spark, stream.catalog, stream.namespace, [])


def test_a_step_of_tables_that_are_not_there_is_empty(stream: Stream) -> None:
    steps = reader(stream)
    start = steps.initialOffset()
    assert steps.latestOffset(start, ReadAllAvailable()) == start
    assert ranges(steps, start, start) == {}
    assert changes(stream).read(stream.rows((1, "x")).where("id > 1")).tables == {}


def test_a_version_that_was_cleaned_up_is_named(stream: Stream, client: Catalog) -> None:
    from pathlib import Path
    from urllib.parse import urlsplit

    from lance_core.format.naming import manifest_path

    load(client, 1)
    with client.begin() as tx:
        both(tx, 2)
    state = stream.catalog.table((*stream.namespace, "person"))
    assert state is not None
    (Path(urlsplit(state.uri).path) / manifest_path("", 1)).unlink()
    with pytest.raises(VersionGone, match=r"\$person: version 1 was cleaned up before it was read"):
        read_changes(stream.spark, stream.catalog, [*stream.namespace, "person"], 0)
