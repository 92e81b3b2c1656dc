"""The data source `lance`: reads of pinned versions, options, and one commit for each write."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from namespace_client import Catalog
from namespace_client.http import CatalogServer
from spark_catalog import GraphWrite
from tests.lossy_proxy import LossyProxy

pytestmark = pytest.mark.spark


def load(spark: SparkSession, **options: Any) -> DataFrame:
    return spark.read.format("lance").options(**{name.replace("__", "."): v for name, v in options.items()}).load()


def ids(frame: DataFrame) -> list[int]:
    return sorted(row.id for row in frame.select("id").collect())


def write(frame: DataFrame, mode: str = "append", **options: Any) -> None:
    frame.write.format("lance").mode(mode).options(**options).save()


def numbers(spark: SparkSession, start: int, stop: int) -> DataFrame:
    return spark.range(start, stop, numPartitions=2).selectExpr("id", "concat('n', id) AS name")


@pytest.fixture
def rows(uri: str) -> str:
    """A table of ten rows in two fragments, two of them deleted, and a version more."""
    table = pa.table({"id": range(10), "name": [f"n{i}" for i in range(10)], "x": [i / 2 for i in range(10)]})
    dataset = lance.write_dataset(table, uri, max_rows_per_file=6)
    dataset.delete("id IN (2, 7)")
    lance.write_dataset(table.slice(0, 1), uri, mode="append")
    return uri


def test_a_table_is_found_by_its_path_or_uri(spark: SparkSession, rows: str) -> None:
    assert load(spark, uri=rows).dtypes == [("id", "bigint"), ("name", "string"), ("x", "double")]
    assert load(spark, uri=rows).count() == spark.read.format("lance").load(rows).count() == 9


def test_a_read_stays_at_its_version_while_others_commit(spark: SparkSession, rows: str) -> None:
    newest, named = load(spark, uri=rows), load(spark, uri=rows, version=1)
    assert newest.count() == 9
    lance.dataset(rows).delete("true")
    assert (newest.count(), named.count(), load(spark, uri=rows).count()) == (9, 10, 0)
    assert newest.where("id > 5").count() == 3


def test_tags_branches_and_timestamps_name_versions(spark: SparkSession, rows: str) -> None:
    dataset = lance.dataset(rows)
    dataset.tags.create("first", 1)
    branch = dataset.create_branch("trial", 2)
    lance.write_dataset(pa.table({"id": [99], "name": ["b"], "x": [0.0]}), branch, mode="append")
    times = {version["version"]: version["timestamp"] for version in dataset.versions()}
    before = (times[2].astimezone() + timedelta(microseconds=1)).isoformat()
    assert load(spark, uri=rows, tag="first").count() == 10
    assert ids(load(spark, uri=rows, branch="trial")) == [0, 1, 3, 4, 5, 6, 8, 9, 99]
    assert load(spark, uri=rows, branch="trial", version=2).count() == 8
    assert load(spark, uri=rows, timestamp=before).count() == 8


def test_columns_and_filters_are_applied_where_rows_are_read(spark: SparkSession, rows: str) -> None:
    assert load(spark, uri=rows, columns="name,id", filter="id >= 8").collect() == [("n8", 8), ("n9", 9)]
    pruned = spark.read.format("lance").schema("x double").option("filter", "id = 9").load(rows)
    assert pruned.collect() == [(4.5,)]
    assert load(spark, uri=rows, limit=3).count() == 3
    assert load(spark, uri=rows, limit=3, filter="id > 5").count() == 3
    assert load(spark, uri=rows, limit=0).count() == 0


def test_identities_and_histories_of_rows_are_columns(spark: SparkSession, rows: str) -> None:
    frame = load(spark, uri=rows, columns="id", with_row_id="true", with_row_address="true", with_row_versions="true")
    assert frame.columns == ["id", "_rowid", "_rowaddr", "_row_created_at_version", "_row_last_updated_at_version"]
    expected = lance.dataset(rows).to_table(columns=frame.columns).to_pylist()
    assert sorted(frame.collect()) == sorted(tuple(row.values()) for row in expected)


@pytest.mark.parametrize("enabled", ["true", "false"])
def test_a_query_is_not_narrowed_by_the_filters_of_another(spark: SparkSession, rows: str, enabled: str) -> None:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", enabled)
    try:
        frame = load(spark, uri=rows)
        assert (frame.where("id > 5").count(), frame.count()) == (3, 9)
        left, right = frame.where("id < 2").alias("l"), frame.where("id < 5").alias("r")
        assert left.join(right, F.expr("l.name < r.name")).where("l.id = 0").count() == 3 * 2
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_a_limit_comes_before_the_filters_of_a_query(spark: SparkSession, rows: str) -> None:
    assert load(spark, uri=rows, limit=2).where("id > 0").count() == 1


def test_a_vector_search_finds_what_pylance_finds(spark: SparkSession, uri: str) -> None:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([float(i * 7 % 23) for i in range(400)], pa.float32()), 4)
    dataset = lance.write_dataset(pa.table({"id": range(100), "v": vectors}), uri, max_rows_per_file=30)
    nearest = {"column": "v", "q": [1.0, 2.0, 3.0, 4.0], "k": 7, "metric": "cosine"}
    expected = dataset.to_table(columns=["id", "_distance"], nearest=nearest, filter="id > 3", prefilter=True)
    asked = {"nearest.column": "v", "nearest.vector": "[1, 2, 3, 4]", "nearest.k": "7", "nearest.metric": "cosine"}
    found = spark.read.format("lance").options(**asked, filter="id > 3").load(uri)
    assert found.columns == ["id", "v", "_distance"]
    assert [tuple(row) for row in found.select("id", "_distance").collect()] == [
        tuple(row.values()) for row in expected.to_pylist()
    ]


def test_a_text_search_finds_what_pylance_finds(spark: SparkSession, uri: str) -> None:
    words = ["apple pie", "apple", "pear", "pear apple tart", None]
    dataset = lance.write_dataset(pa.table({"id": range(5), "t": words}), uri)
    dataset.create_scalar_index("t", "INVERTED")
    expected = dataset.to_table(columns=["id", "_score"], full_text_query={"query": "apple", "columns": ["t"]})
    found = load(spark, uri=uri, search__query="apple", search__columns="t", columns="id,_score")
    assert sorted(found.collect()) == sorted(tuple(row.values()) for row in expected.to_pylist())
    assert found.count() == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "expected option uri"),
        ({"uri": "x", "verison": 3}, "verison: expected options among"),
        ({"uri": "x", "version": "new"}, "option version: expected a whole number, found 'new'"),
        ({"uri": "x", "version": 0}, "option version: expected a number from 1, found 0"),
        ({"uri": "x", "version": 1, "tag": "a"}, "version, tag: expected one of them"),
        ({"uri": "x", "catalog_version": 1}, "expected option server with it"),
        ({"uri": "x", "token": "secret"}, "option token: expected option server with it"),
        ({"uri": "x", "limit": "1_0"}, "option limit: expected a whole number, found '1_0'"),
        ({"uri": "ROWS", "filter": ""}, "option filter: expected an SQL expression, found ''"),
        ({"server": "x"}, "expected option table with it"),
        ({"uri": "ROWS", "columns": "nix"}, "expected columns among"),
        ({"uri": "ROWS", "columns": "id,id"}, "expected names, each once"),
        ({"uri": "ROWS", "tag": "nix"}, "nix"),
        ({"uri": "ROWS", "version": 77}, "version 77"),
        ({"uri": "ROWS", "filter": "nix = 1"}, "No field named nix"),
        ({"uri": "ROWS", "search.query": "a", "nearest.column": "x", "nearest.vector": "[1]"}, "found both"),
        ({"uri": "ROWS/nix"}, "expected a table"),
    ],
    ids=lambda value: json.dumps(value) if isinstance(value, dict) else "",
)
def test_what_cannot_be_read_is_refused_by_name(
    spark: SparkSession, rows: str, options: dict[str, Any], message: str
) -> None:
    given = {name: str(value).replace("ROWS", rows) for name, value in options.items()}
    with pytest.raises(Exception, match=message):
        spark.read.format("lance").options(**given).load().collect()


def test_a_schema_with_other_types_is_refused(spark: SparkSession, rows: str) -> None:
    with pytest.raises(Exception, match="column id: expected bigint, as it is stored, found string"):
        spark.read.format("lance").schema("id string").load(rows).collect()


@pytest.mark.parametrize(
    ("schema", "options"),
    [
        ("id long", {"columns": "name"}),
        ("id long", {"columns": "id,name"}),
        ("id long, name string", {"columns": "id"}),
        ("id long", {"with_row_id": "true"}),
        ("id long", {"columns": "id", "with_row_address": "true"}),
    ],
)
def test_a_schema_and_options_name_the_same_columns(
    spark: SparkSession, rows: str, schema: str, options: dict[str, str]
) -> None:
    with pytest.raises(Exception, match="expected those of the options"):
        spark.read.format("lance").schema(schema).options(**options).load(rows).collect()
    same = spark.read.format("lance").schema("id long").option("columns", "id").load(rows)
    assert same.count() == load(spark, uri=rows).count()


@pytest.mark.parametrize("option", ["message", "isolation"])
def test_options_of_a_batch_are_refused_where_there_is_none(
    spark: SparkSession, uri: str, tmp_path: Path, option: str
) -> None:
    given = {option: "serializable"}
    with pytest.raises(Exception, match=f"options {option}: expected in a write that commits a batch of a catalog"):
        write(numbers(spark, 0, 4), uri=uri, **given)
    with pytest.raises(Exception, match=f"options {option}: expected in a write that commits a batch of a catalog"):
        write(numbers(spark, 0, 4), uri=uri, table="t", staged=str(tmp_path / "staged.json"), **given)
    assert not (tmp_path / "staged.json").exists()


def test_rows_are_appended_and_replaced_at_a_uri(spark: SparkSession, uri: str) -> None:
    write(numbers(spark, 0, 5), uri=uri)
    write(numbers(spark, 5, 7), uri=uri)
    assert ids(load(spark, uri=uri)) == list(range(7))
    write(numbers(spark, 8, 9), "overwrite", uri=uri)
    write(numbers(spark, 8, 9).limit(0), uri=uri)
    assert ids(load(spark, uri=uri)) == [8]
    assert lance.dataset(uri).version == 3


def test_a_write_by_name_is_one_batch(spark: SparkSession, catalog: CatalogServer, namespace: list[str]) -> None:
    place = {"server": catalog.url, "table": "$".join([*namespace, "person"])}
    before = catalog.state().version
    write(numbers(spark, 0, 4), **place, message="from Spark")
    created = catalog.state().version
    write(numbers(spark, 4, 6), **place)
    write(numbers(spark, 9, 10), "overwrite", **place)
    assert (created, catalog.state().version) == (before + 1, before + 3)
    assert ids(load(spark, **place)) == [9]
    assert ids(load(spark, **place, version=1)) == ids(load(spark, **place, catalog_version=created)) == [0, 1, 2, 3]
    with pytest.raises(Exception, match="no such table at catalog version"):
        load(spark, **place, catalog_version=before)
    with pytest.raises(Exception, match="version 2: expected one that"):
        load(spark, **place, catalog_version=created, version=2)
    with pytest.raises(Exception, match=r"missing .*'name'"):
        write(spark.range(3), **place)


def test_a_pinned_read_by_name_sees_no_later_batch(
    spark: SparkSession, catalog: CatalogServer, namespace: list[str]
) -> None:
    place = {"server": catalog.url, "table": "$".join([*namespace, "person"])}
    write(numbers(spark, 0, 4), **place)
    frame = load(spark, **place)
    with GraphWrite(spark, catalog, namespace=namespace) as tx:
        tx.append("person", numbers(spark, 4, 6))
    assert (frame.count(), load(spark, **place).count()) == (4, 6)


def test_rows_can_be_staged_without_a_commit(spark: SparkSession, uri: str, tmp_path: Path) -> None:
    write(numbers(spark, 0, 4), uri=uri)
    document = tmp_path / "staged.json"
    write(numbers(spark, 4, 9), uri=uri, table="social$person", staged=str(document))
    staged = json.loads(document.read_text())
    assert lance.dataset(uri).version == 1
    assert (staged["table"], staged["mode"], staged["read_version"], staged["rows"]) == (
        ["social", "person"],
        "append",
        1,
        5,
    )
    fragments = [lance.fragment.FragmentMetadata.from_json(json.dumps(item)) for item in staged["fragments"]]
    lance.LanceDataset.commit(uri, lance.LanceOperation.Append(fragments), read_version=staged["read_version"])
    assert ids(load(spark, uri=uri)) == list(range(9))


def data_files(place: str) -> set[str]:
    return {path.name for path in Path(place.removeprefix("file://")).glob("data/*")}


def test_a_failed_write_leaves_no_row_and_no_reported_file(
    spark: SparkSession, catalog: CatalogServer, namespace: list[str]
) -> None:
    place = {"server": catalog.url, "table": "$".join([*namespace, "person"])}
    write(numbers(spark, 0, 4), **place)
    state = catalog.table((*namespace, "person"))
    assert state is not None
    before = data_files(state.uri)
    late = "IF(id = 1, raise_error('bad record'), name) AS name"
    with pytest.raises(Exception, match="bad record"):
        write(numbers(spark, 0, 4).repartition(1).sortWithinPartitions("id").selectExpr("id", late), **place)
    with pytest.raises(Exception, match=r"expected none|expected int64|CAST_INVALID"):
        write(numbers(spark, 0, 4).selectExpr("name AS id", "name"), **place)
    assert catalog.table((*namespace, "person")) == state
    assert data_files(state.uri) == before


def test_a_refused_batch_removes_its_files(spark: SparkSession, catalog: CatalogServer, namespace: list[str]) -> None:
    url, root = catalog.url, Path(catalog.state().root.removeprefix("file://"))

    def create_first(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with Catalog.connect(url, namespace=namespace) as other, other.begin() as tx:
            tx.create("person", {"id": [1], "name": ["other"]})
        yield from batches

    rows = numbers(spark, 0, 4).coalesce(1).mapInArrow(create_first, "id long, name string")
    with pytest.raises(Exception, match="RetryableConflict"):
        write(rows, server=url, table="$".join([*namespace, "person"]))
    state = catalog.table((*namespace, "person"))
    assert state is not None
    assert [path for path in root.rglob("data/*.lance") if f"{namespace[0]}$person" in str(path)] == [
        path for path in root.rglob("data/*.lance") if path.name in data_files(state.uri)
    ]


def test_a_batch_of_unknown_outcome_keeps_its_files(
    spark: SparkSession, proxy: LossyProxy, catalog: CatalogServer, namespace: list[str]
) -> None:
    table = (*namespace, "person")
    write(numbers(spark, 0, 4), server=catalog.url, table="$".join(table))
    state = catalog.table(table)
    assert state is not None
    proxy.lose, proxy.forward = 99, True
    with pytest.raises(Exception, match="the outcome is unknown"):
        write(numbers(spark, 4, 8), server=proxy.url, table="$".join(table))
    assert len(set(proxy.keys)) == 1
    assert len(data_files(state.uri)) == 2
    proxy.lose = 0
    assert ids(load(spark, server=catalog.url, table="$".join(table))) == list(range(8))
