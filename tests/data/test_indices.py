"""Indices over HTTP and in process: those of pylance and of the stock server."""

from __future__ import annotations

import json
import threading
from typing import Any

import lance
import lance_namespace as models
import numpy as np
import pyarrow as pa
import pytest
from lance_namespace.errors import InvalidInputError, TableIndexAlreadyExistsError, TableIndexNotFoundError

from table_data.staging.index_parameters import FIELDS, PARAMETERS, index_type_of
from tests.data.two_servers import TwoServers, TwoTables, without

COUNT = 300
DIMENSION = 16
VECTORS = np.random.default_rng(7).random(COUNT * DIMENSION, dtype=np.float32)
ROWS = pa.table(
    {
        "id": pa.array(range(COUNT), pa.int64()),
        "text": [f"word{number % 7} the quick fox" for number in range(COUNT)],
        "kind": [f"k{number % 3}" for number in range(COUNT)],
        "labels": [[f"a{number % 3}", "b"] for number in range(COUNT)],
        "share": pa.array([number / COUNT for number in range(COUNT)]),
        "v": pa.FixedSizeListArray.from_arrays(pa.array(VECTORS), DIMENSION),
        "w": pa.FixedSizeListArray.from_arrays(pa.array(VECTORS[: COUNT * 6]), 6),
        "s": [{"x": number, "y.z": f"t{number}"} for number in range(COUNT)],
        "parts": [[{"t": "hello world"}, {"t": f"part{number}"}] for number in range(COUNT)],
    }
)
VECTOR_TYPES = ["IVF_FLAT", "IVF_SQ", "IVF_PQ", "IVF_RQ", "IVF_HNSW_FLAT", "IVF_HNSW_SQ", "IVF_HNSW_PQ"]
SCALARS = {
    "BTREE": ("id", "id = 17", "ScalarIndexQuery"),
    "BITMAP": ("kind", "kind = 'k1'", "ScalarIndexQuery"),
    "LABEL_LIST": ("labels", "array_has_any(labels, ['a1'])", "ScalarIndexQuery"),
    "NGRAM": ("text", "contains(text, 'word3')", "ScalarIndexQuery"),
    "ZONEMAP": ("share", "share < 0.1", "ScalarIndexQuery"),
    "BLOOMFILTER": ("id", "id = 17", "ScalarIndexQuery"),
}


@pytest.fixture
def table(servers: TwoServers, name: str) -> TwoTables:
    return servers.make(name, ROWS.slice(0, 200), ROWS.slice(200))


def comparable(index: dict[str, Any]) -> dict[str, Any]:
    """An entry of the list without what differs by nature, and its details as they are meant."""
    details = json.loads(index["index_details"])
    return {**without(index, "index_uuid", "created_at", "size_bytes"), "index_details": details}


def listed(table: TwoTables) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    ours, stock = table.both("index/list")
    return [comparable(index) for index in ours["indexes"]], [comparable(index) for index in stock["indexes"]]


@pytest.mark.parametrize("kind", SCALARS)
def test_scalar_indices_are_used_by_queries(table: TwoTables, kind: str) -> None:
    column, predicate, operator = SCALARS[kind]
    expected = table.open().to_table(filter=predicate).sort_by("id")
    ours, stock = table.both("create_scalar_index", {"column": column, "index_type": kind})
    assert ours.keys() == stock.keys() == {"transaction_id"}
    found, wanted = listed(table)
    assert found == wanted
    assert (found[0]["index_name"], found[0]["num_indexed_rows"]) == (f"{column}_idx", COUNT)
    for dataset in table.each():
        scanner = dataset.scanner(filter=predicate)
        assert operator in scanner.explain_plan()
        assert scanner.to_table().sort_by("id") == expected
    assert table.both(f"index/{column}_idx/stats") == (table.post_stock(f"index/{column}_idx/stats").json(),) * 2


@pytest.mark.parametrize("kind", VECTOR_TYPES)
def test_vector_indices_are_used_by_queries(table: TwoTables, kind: str) -> None:
    table.both("create_index", {"column": "v", "index_type": kind.lower(), "name": "vectors"})
    found, wanted = listed(table)
    assert found == wanted
    assert found[0]["index_type"] == kind
    query = {"column": "v", "q": VECTORS[:DIMENSION], "k": 5, "nprobes": 10}
    for dataset in table.each():
        scanner = dataset.scanner(nearest=query)
        assert "ANN" in scanner.explain_plan()
        assert scanner.to_table().num_rows == 5
    ours, stock = table.both("index/vectors/stats")
    assert without(ours, "distance_type") == stock
    assert ours["distance_type"] == "l2"


def test_the_options_of_vectors_are_those_of_the_index(table: TwoTables) -> None:
    options = {"num_sub_vectors": 4, "num_partitions": 2, "sample_rate": 128, "max_iterations": 9}
    hnsw = {"m": 8, "ef_construction": 60, "distance_type": "Cosine"}
    body = {"column": "v", "index_type": "IVF_HNSW_PQ", "name": "i", "num_bits": 4}
    answer = table.post("create_index", {**body, **options, **hnsw})
    assert answer.status_code == 200, answer.text
    [index] = table.post("index/list").json()["indexes"]
    details = json.loads(index["index_details"])
    assert details["metric_type"] == "COSINE"
    assert details["compression"] == {"type": "pq", "num_bits": 4, "num_sub_vectors": 4}
    assert (details["hnsw"]["max_connections"], details["hnsw"]["construction_ef"]) == (8, 60)
    hints = details["runtime_hints"]
    assert (hints["lance.ivf.max_iters"], hints["lance.ivf.sample_rate"]) == ("9", "128")
    assert table.open().stats.index_stats("i")["indices"][0]["num_partitions"] == 2
    assert table.post("index/i/stats").json()["distance_type"] == "cosine"


def test_sixteen_sub_vectors_or_what_divides_the_dimension(table: TwoTables) -> None:
    assert table.post("create_index", {"column": "w", "index_type": "IVF_PQ"}).status_code == 200
    [index] = table.post("index/list").json()["indexes"]
    assert json.loads(index["index_details"])["compression"]["num_sub_vectors"] == 2


@pytest.mark.parametrize("kind", ["FTS", "inverted"])
def test_full_text_indices_are_used_by_queries(table: TwoTables, kind: str) -> None:
    options = {"with_position": True, "stem": False, "max_token_length": 20, "base_tokenizer": "whitespace"}
    table.both("create_index", {"column": "text", "index_type": kind, **options})
    found, wanted = listed(table)
    assert found == wanted
    for dataset in table.each():
        scanner = dataset.scanner(full_text_query="word3")
        assert "MatchQuery" in scanner.explain_plan()
        assert scanner.to_table().num_rows == len([number for number in range(COUNT) if number % 7 == 3])


@pytest.mark.parametrize(
    ("column", "kind"), [("s.x", "BTREE"), ("s.`y.z`", "BITMAP"), ("parts.t", "FTS"), ("`s`.x", "ZONE_MAP")]
)
def test_nested_fields(table: TwoTables, column: str, kind: str) -> None:
    body = {"column": column, "index_type": kind}
    assert table.post("create_index", body).status_code == 200
    if not column.startswith("`"):
        assert table.post_stock("create_index", body).status_code == 200
        found, wanted = listed(table)
        assert found == wanted
    table.open()


def test_rows_that_come_later_are_not_indexed_and_deleted_ones_are_not_counted(table: TwoTables) -> None:
    for body in ({"column": "id", "index_type": "SCALAR"}, {"column": "text", "index_type": "FTS"}):
        table.both("create_index", body)
    table.append(ROWS.slice(0, 50))
    for dataset in table.each():
        dataset.delete("id < 20")
    found, wanted = listed(table)
    assert found == wanted
    assert [(index["num_indexed_rows"], index["num_unindexed_rows"]) for index in found] == [(280, 30)] * 2
    for dataset in table.each():
        dataset.optimize.optimize_indices(num_indices_to_merge=0)
    found, wanted = listed(table)
    assert found == wanted
    assert {(index["num_segments"], index["num_unindexed_rows"]) for index in found} == {(2, 0)}
    assert [*table.both("index/id_idx/stats")] == [table.post_stock("index/id_idx/stats").json()] * 2


@pytest.mark.parametrize("kind", ["BTREE", "LABEL_LIST", "FTS", "NGRAM", "ZONEMAP", "BLOOM_FILTER", "IVF_PQ"])
def test_a_table_without_rows(servers: TwoServers, name: str, kind: str) -> None:
    table = servers.make(name, ROWS.slice(0, 0))
    column = {"LABEL_LIST": "labels", "FTS": "text", "NGRAM": "text", "IVF_PQ": "v"}.get(kind, "id")
    table.both("create_index", {"column": column, "index_type": kind})
    found, wanted = listed(table)
    assert found == wanted
    table.append(ROWS)
    for dataset in table.each():
        dataset.optimize.optimize_indices()
    found, wanted = listed(table)
    assert found == wanted
    table.open()


def test_a_bitmap_over_no_rows_is_used_for_those_that_come(servers: TwoServers, name: str) -> None:
    table = servers.make(name, ROWS.slice(0, 0))
    table.both("create_index", {"column": "kind", "index_type": "BITMAP"})
    table.append(ROWS)
    found = []
    for dataset in table.each():
        dataset.optimize.optimize_indices()
        scanner = dataset.scanner(filter="kind = 'k1'")
        assert "ScalarIndexQuery" in scanner.explain_plan()
        found.append(scanner.to_table().num_rows)
    assert found == [ROWS["kind"].to_pylist().count("k1")] * 2


def test_an_index_is_dropped(table: TwoTables) -> None:
    table.both("create_index", {"column": "id", "index_type": "BTREE"})
    ours, stock = table.both("index/id_idx/drop")
    assert ours.keys() == stock.keys() == {"transaction_id"}
    assert listed(table) == ([], [])
    assert table.refused("index/id_idx/drop")[:2] == (404, 6)
    assert table.refused("index/id_idx/stats")[:2] == (404, 6)
    assert "ScalarIndexQuery" not in table.open().scanner(filter="id = 3").explain_plan()


def test_a_name_is_taken_once(table: TwoTables) -> None:
    table.both("create_index", {"column": "id", "index_type": "BTREE"})
    for body in (
        {"column": "id", "index_type": "BTREE"},
        {"column": "kind", "index_type": "BITMAP", "name": "id_idx"},
    ):
        answer = table.post_stock("create_index", body)
        assert table.refused("create_index", body)[:2] == (answer.status_code, answer.json()["code"]) == (409, 7)


def test_names_that_are_not_given(table: TwoTables) -> None:
    table.both("create_index", {"column": "kind", "index_type": "BTREE", "name": "id_idx"})
    kinds = [("id", "BTREE"), ("id", "BTREE"), ("id", "BITMAP"), ("id", "ZONEMAP"), ("id", "BITMAP"), ("text", "FTS")]
    kinds += [("text", "NGRAM"), ("text", "INVERTED"), ("v", "IVF_FLAT"), ("v", "IVF_SQ"), ("kind", "BTREE")]
    for column, kind in kinds:
        body = {"column": column, "index_type": kind}
        ours, stock = table.post("create_index", body), table.post_stock("create_index", body)
        assert (ours.status_code, ours.json().get("code")) == (stock.status_code, stock.json().get("code")), body
    found, wanted = listed(table)
    assert [(index["index_name"], index["index_type"]) for index in found] == [
        (index["index_name"], index["index_type"]) for index in wanted
    ]
    assert "id_idx_4" in {index["index_name"] for index in found}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"column": "nope", "index_type": "BTREE"}, 12),
        ({"column": "nope", "index_type": "FTS"}, 12),
        ({"column": "parts.nope", "index_type": "FTS"}, 12),
        ({"column": "s.nope", "index_type": "BTREE"}, 12),
        ({"column": "nope", "index_type": "IVF_PQ"}, 12),
        ({"column": "s..x", "index_type": "BTREE"}, 13),
        ({"column": "", "index_type": "BTREE"}, 13),
        ({"column": "id"}, 13),
        ({"column": "id", "index_type": "JSON"}, 13),
        ({"column": "id", "index_type": "x" * 100_000}, 13),
        ({"column": "id", "index_type": "FTS"}, 13),
        ({"column": "id", "index_type": "RTREE"}, 13),
        ({"column": "id", "index_type": "LABEL_LIST"}, 13),
        ({"column": "s", "index_type": "BTREE"}, 13),
        ({"column": "v", "index_type": "BTREE"}, 13),
        ({"column": "text", "index_type": "IVF_PQ"}, 13),
        ({"column": "v", "index_type": "IVF_FLAT", "distance_type": "far"}, 13),
        ({"column": "v", "index_type": "IVF_PQ", "num_sub_vectors": 5}, 13),
        ({"column": "v", "index_type": "IVF_PQ", "num_sub_vectors": 0}, 13),
        ({"column": "v", "index_type": "IVF_PQ", "num_bits": 3}, 13),
        ({"column": "v", "index_type": "IVF_PQ", "num_bits": 2**70}, 13),
        ({"column": "v", "index_type": "IVF_RQ", "num_bits": 16}, 13),
        ({"column": "v", "index_type": "IVF_HNSW_SQ", "m": 1}, 13),
        ({"column": "v", "index_type": "IVF_HNSW_SQ", "m": 100_000, "ef_construction": 1_000_000}, 13),
        ({"column": "text", "index_type": "FTS", "base_tokenizer": "../../etc/passwd"}, 13),
        ({"column": "text", "index_type": "FTS", "language": "Klingon"}, 13),
        ({"column": "text", "index_type": "FTS", "max_token_length": 2**63}, 13),
        ({"column": "id", "index_type": "BTREE", "name": "__lance_frag_reuse"}, 13),
        ({"column": "id", "index_type": "BTREE", "name": 1}, 13),
    ],
    ids=lambda value: json.dumps(value)[:80] if isinstance(value, dict) else "",
)
def test_what_cannot_be_built_changes_nothing(table: TwoTables, body: dict[str, Any], code: int) -> None:
    status, found, text = table.refused("create_index", body)
    assert (status, found) == (404 if code == 12 else 400, code), text
    assert len(text) < 1500
    assert table.post("index/list").json() == {"indexes": []}
    assert table.open().version == 2


def test_an_option_of_other_types_is_refused_by_name(table: TwoTables) -> None:
    """All of them are those of the table of parameters, which has a test of its own."""
    values: dict[str, Any] = {"distance_type": "l2", "base_tokenizer": "simple", "language": "English"}
    values |= dict.fromkeys(("with_position", "lower_case", "stem", "remove_stop_words", "ascii_folding"), True)
    values |= dict.fromkeys(("prefix_only", "split_identifiers", "split_on_numerics"), True)
    values |= {"preserve_original": True, "index_operators": True, "custom_stop_words": ["the"]}
    for kind, column in (("BTREE", "id"), ("FTS", "text"), ("IVF_FLAT", "v"), ("IVF_SQ", "v"), ("IVF_HNSW_SQ", "v")):
        found = index_type_of(kind)
        own = {each.field for each in PARAMETERS if found in each.types}
        for name in FIELDS - own:
            body = {"column": column, "index_type": kind, name: values.get(name, 8)}
            status, code, text = table.refused("create_index", body)
            assert (status, code) == (400, 13)
            assert f"{name}: not a parameter of an index of type {found}; expected " in text
        absent = dict.fromkeys(FIELDS - own)
        answer = table.post("create_index", {"column": column, "index_type": kind, "name": kind, **absent})
        assert answer.status_code == 200, answer.text
    sizes = {"target_partition_size": 9, "num_partitions": 2}
    text = table.refused("create_index", {"column": "w", "index_type": "IVF_PQ", **sizes})[2]
    assert "target_partition_size of an index of type IVF_PQ: expected none beside num_partitions" in text


def test_a_vector_index_is_no_scalar_one(table: TwoTables) -> None:
    assert table.refused("create_scalar_index", {"column": "v", "index_type": "IVF_PQ"})[:2] == (400, 13)


def test_the_list_has_pages_and_versions(table: TwoTables) -> None:
    for column in ("id", "kind", "share"):
        table.both("create_index", {"column": column, "index_type": "BTREE"})
    for body in ({"limit": 0}, {"limit": 2}, {"limit": -1}, {"page_token": "id_idx"}, {"version": 3}, {"version": 2}):
        ours, stock = table.both("index/list", body)
        names = [[index["index_name"] for index in answer["indexes"]] for answer in (ours, stock)]
        assert names[0] == names[1], body
    first = table.post("index/list", {"limit": 2}).json()
    rest = table.post("index/list", {"limit": 2, "page_token": first["page_token"]}).json()
    assert [index["index_name"] for index in (*first["indexes"], *rest["indexes"])] == [
        "id_idx",
        "kind_idx",
        "share_idx",
    ]
    assert "page_token" not in rest
    assert table.refused("index/list", {"version": 77})[:2] == (404, 11)
    assert table.post("index/share_idx/stats", {"version": 3}).json()["code"] == 6


def test_no_body_is_needed_for_the_list_and_to_drop(table: TwoTables) -> None:
    table.both("create_index", {"column": "id", "index_type": "BTREE"})
    path = f"/v1/table/w${table.name}/index"
    assert len(table.servers.ours.post(f"{path}/list").json()["indexes"]) == 1
    assert table.servers.ours.post(f"{path}/id_idx/drop").status_code == 200


@pytest.mark.parametrize("name_", ["i x", "i/x", "ü$", "i+x"])
def test_names_in_the_path_are_decoded(table: TwoTables, name_: str) -> None:
    request = models.CreateTableIndexRequest(id=table.id, column="id", index_type="BTREE", name=name_)
    assert table.client.create_table_index(request).transaction_id
    stats = models.DescribeTableIndexStatsRequest(id=table.id, index_name=name_)
    assert table.client.describe_table_index_stats(stats).num_indexed_rows == COUNT
    assert table.refused("index/other/stats", {"index_name": name_})[:2] == (400, 13)


def test_in_process(table: TwoTables) -> None:
    namespace = table.servers.namespace
    request = models.CreateTableIndexRequest(id=table.id, column="id", index_type="BTREE")
    assert namespace.create_table_scalar_index(request).transaction_id
    request = models.CreateTableIndexRequest(id=table.id, column="v", index_type="IVF_FLAT", name="vectors")
    assert namespace.create_table_index(request).transaction_id
    found = namespace.list_table_indices(models.ListTableIndicesRequest(id=table.id)).indexes
    assert [(index.index_name, index.num_indexed_rows) for index in found] == [("id_idx", COUNT), ("vectors", COUNT)]
    stats = models.DescribeTableIndexStatsRequest(id=table.id, index_name="vectors")
    assert namespace.describe_table_index_stats(stats).distance_type == "l2"
    with pytest.raises(TableIndexAlreadyExistsError):
        namespace.create_table_index(request)
    drop = models.DropTableIndexRequest(id=table.id, index_name="vectors")
    assert namespace.drop_table_index(drop).transaction_id
    with pytest.raises(TableIndexNotFoundError):
        namespace.drop_table_index(drop)
    with pytest.raises(InvalidInputError):
        namespace.drop_table_index(models.DropTableIndexRequest(id=table.id))
    assert table.client.drop_table_index(models.DropTableIndexRequest(id=table.id, index_name="id_idx")).transaction_id


def test_indices_over_different_columns_are_built_at_one_time(table: TwoTables) -> None:
    def create(column: str) -> None:
        body = {"column": column, "index_type": "BTREE"}
        answers.append(table.post("create_index", body).status_code)

    def append() -> None:
        for _ in range(3):
            lance.write_dataset(ROWS.slice(0, 10), namespace_client=table.client, table_id=table.id, mode="append")

    answers: list[int] = []
    threads = [threading.Thread(target=create, args=(column,)) for column in ("id", "kind", "share")]
    threads += [threading.Thread(target=append)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [200] * 3
    assert [index.name for index in table.open().describe_indices()] == ["id_idx", "kind_idx", "share_idx"]
    assert table.open().count_rows() == COUNT + 30


def test_one_of_two_indices_of_one_name_wins(table: TwoTables) -> None:
    def create(column: str) -> None:
        body = {"column": column, "index_type": "BTREE", "name": "same"}
        answer = table.post("create_index", body)
        answers.append((answer.status_code, answer.json().get("code")))

    answers: list[tuple[int, int | None]] = []
    threads = [threading.Thread(target=create, args=(column,)) for column in ("id", "kind", "share")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers, key=str) == [(200, None), (409, 7), (409, 7)]
