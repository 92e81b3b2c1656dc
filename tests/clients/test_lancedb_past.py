"""A connection of lancedb to the catalog as of one version: all tables of one moment, and nothing is changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance_namespace
import pyarrow as pa
import pytest
from lance_namespace.errors import TableNotFoundError, UnsupportedOperationError
from lancedb.db import DBConnection
from lancedb.namespace import LanceNamespaceDBConnection
from lancedb.table import Branches, LanceTable, Tags

import namespace_client
from namespace_client import Catalog, InvalidCall, NotFound, lancedb_past
from tests.running import running

VECTOR = pa.list_(pa.float32(), 2)
READS_OF_TABLES = {
    *("blob_columns", "branches", "checkout", "checkout_latest", "count_rows", "current_branch", "embedding_functions"),
    *("fetch_blob_files", "fetch_blob_ranges", "fetch_blobs", "function_errors", "get_lsm_stats", "get_lsm_write_spec"),
    *("head", "id", "index_stats", "infer_tokenizer_configs", "initial_storage_options", "latest_storage_options"),
    *("list_indices", "list_versions", "name", "namespace", "prewarm_data", "prewarm_index", "schema", "search"),
    *("stats", "tags", "take_offsets", "take_row_ids", "to_arrow", "to_lance", "to_pandas", "to_polars", "tokenize"),
    *("uri", "uses_v2_manifest_paths", "version", "wait_for_index"),
}
MAKE_TABLES = {"create", "from_inner", "open"}
READS_OF_CONNECTIONS = {
    *("describe_namespace", "describe_query", "describe_secret", "describe_view", "execute_query"),
    *("execute_query_async", "get_function", "list_functions", "list_jobs", "list_materialized_views"),
    *("list_namespaces", "list_secrets", "list_tables", "list_views", "namespace_client", "namespace_exists"),
    *("open_job", "open_materialized_view", "open_table", "serialize", "table_exists", "table_names", "uri"),
}


@dataclass
class Past:
    """A catalog, the version before its last changes, the connection as of that, and where its files are."""

    catalog: Catalog
    version: int
    connection: DBConnection
    root: Path

    def open(self, name: str) -> Any:
        return self.connection.open_table(name, namespace_path=["lab"])

    def files(self) -> set[str]:
        return {str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_file()}


def rows(*ids: int) -> pa.Table:
    vectors = pa.array([[1.0, float(each)] for each in ids], VECTOR)
    return pa.table({"id": list(ids), "vector": vectors, "text": ["word"] * len(ids)})


@pytest.fixture(scope="module", params=["http", "in process"])
def past(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Past]:
    root = tmp_path_factory.mktemp("root")
    if request.param == "http":
        with running(root) as url, Catalog.connect(url) as catalog:
            yield _past(catalog, root)
    else:
        with Catalog.connect(str(root)) as catalog:
            yield _past(catalog, root)


def _past(catalog: Catalog, root: Path) -> Past:
    catalog.ensure_namespace("lab")
    with catalog.begin() as tx:
        tx.create("lab.a", rows(0, 1))
        tx.create("lab.b", rows(5))
    with catalog.begin() as tx:
        tx.append("lab.a", rows(2))
    catalog.create_tag("lab.a", "first", version=1)
    version = catalog.access.state().version
    with catalog.begin() as tx:
        tx.append("lab.a", rows(3))
        tx.append("lab.b", rows(6))
    catalog.create_tag("lab.a", "later", version=3)
    catalog.rename("lab.b", "lab.renamed")
    catalog.create("lab.later", rows(9))
    catalog.create_namespace("other")
    catalog.pin("then", version)
    return Past(catalog, version, namespace_client.lancedb(catalog, at=version), root)


def test_all_tables_are_of_that_version(past: Past) -> None:
    connection = past.connection
    assert isinstance(connection, LanceNamespaceDBConnection)
    assert connection.list_tables(namespace_path=["lab"]).tables == ["a", "b"]
    assert connection.list_namespaces().namespaces == ["lab"]
    first, second = past.open("a"), past.open("b")
    assert isinstance(first, LanceTable)
    assert first.to_arrow()["id"].to_pylist() == [0, 1, 2]
    assert second.to_arrow()["id"].to_pylist() == [5]
    assert (first.version, first.count_rows(), first.count_rows("id > 0")) == (2, 3, 2)
    assert first.search([1.0, 1.0]).limit(2).to_arrow()["id"].to_pylist()[0] == 1
    assert sorted(first.search().where("id > 0").to_arrow()["id"].to_pylist()) == [1, 2]
    assert first.to_lance().count_rows() == 3
    for name in ("later", "renamed"):
        with pytest.raises(TableNotFoundError):
            past.open(name)


def test_a_pin_or_a_time_names_the_version(past: Past) -> None:
    by_pin = namespace_client.lancedb(past.catalog, at="then")
    assert by_pin.open_table("b", namespace_path=["lab"]).count_rows() == 1
    with pytest.raises(NotFound, match="no pin"):
        namespace_client.lancedb(past.catalog, at="none")
    with pytest.raises(NotFound):
        namespace_client.lancedb(past.catalog, at=past.version + 1000)


def test_versions_of_a_table_end_with_that_of_then(past: Past) -> None:
    table = past.open("a")
    assert [each["version"] for each in table.list_versions()] == [1, 2]
    table.checkout(1)
    assert table.to_arrow()["id"].to_pylist() == [0, 1]
    assert table.to_lance().count_rows() == 2
    table.checkout("first")
    assert table.count_rows() == 2
    table.checkout_latest()
    assert table.count_rows() == 3
    for later in (3, "later"):
        with pytest.raises(Exception, match="version 3"):
            table.checkout(later)
        assert table.count_rows() == 3
    for given in ({"version": 1}, {"branch": "dev"}):
        with pytest.raises(InvalidCall, match="expected no branch and no version"):
            past.connection.open_table("a", namespace_path=["lab"], **given)
    with pytest.raises(InvalidCall, match="to_lance: expected no options"):
        table.to_lance(index_cache_size=1)


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_every_method_of_lancedb_is_known_to_read_or_to_change() -> None:
    """One that a newer release has must be placed here, and refused if it changes something."""
    changes = set(lancedb_past.CHANGES_OF_TABLES)
    assert public(LanceTable) == READS_OF_TABLES | MAKE_TABLES | changes
    assert not READS_OF_TABLES & changes
    changes = set(lancedb_past.CHANGES_OF_CONNECTIONS)
    assert public(LanceNamespaceDBConnection) == READS_OF_CONNECTIONS | changes
    assert not READS_OF_CONNECTIONS & changes
    assert public(Tags) == {"create", "delete", "get_version", "list", "update"}
    assert public(Branches) == {"checkout", "cherry_pick", "create", "delete", "diff", "list"}


def test_every_change_is_refused_by_its_name_and_writes_nothing(past: Past) -> None:
    table, before = past.open("a"), past.files()
    version = past.catalog.access.state().version

    def refused(name: str, call: Callable[[], object]) -> None:
        with pytest.raises(InvalidCall, match=rf"^{name}: expected a read: the connection is to catalog version \d+"):
            call()

    for name in lancedb_past.CHANGES_OF_TABLES:
        refused(name, getattr(table, name))
    for name in lancedb_past.CHANGES_OF_CONNECTIONS:
        refused(name, getattr(past.connection, name))
    for name in ("create", "delete", "update"):
        refused(f"tags.{name}", lambda name=name: getattr(table.tags, name)("x", 1))
    for name in ("checkout", "cherry_pick", "create", "delete", "diff"):
        refused(f"branches.{name}", lambda name=name: getattr(table.branches, name)("x"))
    refused("add", lambda: table.add(rows(7)))
    refused("merge_insert", lambda: table.merge_insert("id").when_not_matched_insert_all().execute(rows(7)))
    refused("create_table", lambda: past.connection.create_table("new", rows(7), namespace_path=["lab"]))
    client = past.connection.namespace_client()
    with pytest.raises(UnsupportedOperationError):
        client.drop_table(lance_namespace.DropTableRequest(id=["lab", "a"]))
    with pytest.raises(InvalidCall):
        table.to_lance().delete("true")
    assert set(table.tags.list()) == {"first", "later"}
    assert table.branches.list() == {}
    assert past.files() == before
    assert past.catalog.access.state().version == version
    assert past.open("a").count_rows() == 3


def test_names_without_a_path_are_in_the_default_namespace(tmp_path: Path) -> None:
    with Catalog.connect(str(tmp_path), namespace="lab") as catalog:
        catalog.ensure_namespace("inner")
        catalog.create("a", rows(0))
        catalog.create(("top",), rows(1, 2))
        db = namespace_client.lancedb(catalog, at=catalog.access.state().version)
        assert db.open_table("a").count_rows() == 1
        assert db.open_table("top", namespace_path=[]).count_rows() == 2
        assert db.list_tables().tables == ["a"]
        assert db.list_tables([]).tables == ["top"]
        with pytest.warns(DeprecationWarning, match="table_names"):
            assert list(db.table_names()) == ["a"]
        assert db.list_namespaces().namespaces == ["inner"]
        assert db.list_namespaces(namespace_path=[]).namespaces == ["lab"]
