"""Queries of tables with dictionary columns, each fragment of which has a dictionary of its own."""

from __future__ import annotations

import io

import httpx
import lance
import lance_namespace
import lancedb
import pyarrow as pa
import pytest

from namespace_server.directory.namespace import DirectoryNamespace
from table_data.arrow.file import write_rows
from tests.data.arrow import table_id

TEXT = pa.dictionary(pa.int32(), pa.string())
NARROW = pa.dictionary(pa.int8(), pa.string())


def encoded(values: list[str | None], kind: pa.DataType = TEXT) -> pa.Array:
    return pa.array(values, pa.string()).dictionary_encode().cast(kind)


def in_struct(values: list[str | None]) -> pa.Array:
    return pa.StructArray.from_arrays([encoded(values)], fields=[pa.field("k", TEXT)], mask=pa.array([False, True]))


def in_list(values: list[str | None], array: type[pa.Array] = pa.ListArray) -> pa.Array:
    return array.from_arrays([0, 1, len(values)], encoded(values))


FRAGMENTS: dict[str, list[pa.Array]] = {
    "nulls first": [pa.nulls(2, TEXT), encoded(["x", None]), encoded(["y"])],
    "nulls alone": [pa.nulls(2, TEXT), pa.nulls(1, TEXT)],
    "an empty text first": [encoded([None, ""]), encoded(["x", ""])],
    "numbers": [pa.array([7]).dictionary_encode(), pa.array([None, 8, 7]).dictionary_encode()],
    "in structs": [in_struct(["a", "b"]), in_struct(["c", "a"])],
    "nulls in structs first": [in_struct([None, None]), in_struct(["c", "a"])],
    "in lists": [in_list(["a", None, "b"]), in_list(["c", "a"])],
    "nulls in large lists first": [in_list([None, None], pa.LargeListArray), in_list(["c", "a"], pa.LargeListArray)],
    "few values for narrow indices": [encoded(["a", "b"], NARROW), encoded(["c", None], NARROW)],
    "more values than narrow indices count": [
        encoded([f"{letter}{number}" for number in range(100)], NARROW) for letter in "vw"
    ],
}


@pytest.fixture(params=FRAGMENTS, ids=[name.replace(" ", "-") for name in FRAGMENTS])
def fragments(request: pytest.FixtureRequest) -> list[pa.Array]:
    return FRAGMENTS[request.param]


@pytest.fixture
def made(url: str, request: pytest.FixtureRequest, fragments: list[pa.Array]) -> tuple[str, lance.LanceDataset]:
    """The route of a table with these fragments, and the table as pylance reads it."""
    name = request.node.callspec.id + ("-db" if "lancedb" in request.node.name else "")
    client = lance_namespace.connect("rest", {"uri": url})
    for place, column in enumerate(fragments):
        mode = "append" if place else "create"
        made = lance.write_dataset(pa.table({"d": column}), namespace_client=client, table_id=["w", name], mode=mode)
    return f"/v1/table/w${name}", made


def is_widened(fragments: list[pa.Array]) -> bool:
    return len(fragments[0]) == 100


def test_a_query_gives_the_rows_of_pylance(
    http: httpx.Client, made: tuple[str, lance.LanceDataset], fragments: list[pa.Array]
) -> None:
    route, dataset = made
    answer = http.post(f"{route}/query", json={})
    assert answer.status_code == 200, answer.text
    found, expected = pa.ipc.open_file(answer.content).read_all(), dataset.to_table()
    assert found.to_pylist() == expected.to_pylist()
    assert found.schema.equals(expected.schema) != is_widened(fragments)
    assert pa.types.is_dictionary(found.schema.field("d").type) == pa.types.is_dictionary(fragments[0].type)


def test_lancedb_pushes_the_query_down(url: str, made: tuple[str, lance.LanceDataset]) -> None:
    route, dataset = made
    connection = lancedb.connect_namespace("rest", {"uri": url}, namespace_client_pushdown_operations=["QueryTable"])
    table = connection.open_table(table_id(route)[1], namespace_path=["w"])
    assert table.search().limit(1000).to_arrow().to_pylist() == dataset.to_table().to_pylist()


def test_a_stream_that_is_written_as_it_comes(fragments: list[pa.Array]) -> None:
    parts = [pa.record_batch({"d": column}) for column in fragments]
    parts.insert(1, parts[0].slice(0, 0))
    sink = io.BytesIO()
    write_rows(pa.RecordBatchReader.from_batches(parts[0].schema, iter(parts)), sink)
    found = pa.ipc.open_file(sink.getvalue()).read_all()
    found.validate(full=True)
    assert found.to_pylist() == pa.Table.from_batches(parts).to_pylist()
    assert [len(chunk) for chunk in found.column("d").chunks] == [len(column) for column in fragments]


def test_a_catalog_in_process_does_the_same(tmp_path) -> None:
    namespace = DirectoryNamespace(root=str(tmp_path), durability="none")
    for mode, letter in (("create", "v"), ("append", "w")):
        part = pa.table({"d": encoded([f"{letter}{number}" for number in range(100)], NARROW)})
        lance.write_dataset(part, namespace_client=namespace, table_id=["t"], mode=mode)
    request = lance_namespace.QueryTableRequest(id=["t"], k=1000, vector={})
    found = pa.ipc.open_file(namespace.query_table(request).data).read_all()
    assert found.column("d").to_pylist() == [f"{letter}{number}" for letter in "vw" for number in range(100)]
    namespace.close()
