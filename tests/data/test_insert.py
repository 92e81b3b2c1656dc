"""Inserts of every shape of rows, compared with the stock server; and the names in errors."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import lance
import lance_namespace
import numpy as np
import pyarrow as pa
import pytest

from tests.data.arrow import ARROW, files, location, read, stream, table_id

SCHEMA = pa.schema(
    [
        pa.field("a", pa.int64(), nullable=False),
        pa.field("s", pa.string()),
        pa.field("f", pa.float32()),
        pa.field("n", pa.struct([("k", pa.int64()), ("v", pa.string())])),
    ]
)
FIRST = pa.table(
    [pa.array([1]), pa.array(["q"]), pa.array([0.5], pa.float32()), pa.array([{"k": 1, "v": "x"}])], SCHEMA
)


def rows(**columns: Any) -> pa.Table:
    return pa.table(columns)


FITTING = {
    "a column less": rows(a=[2]),
    "another order": rows(f=pa.array([1.5], pa.float32()), s=["x"], a=[2]),
    "string view": rows(a=[2], s=pa.array(["x"], pa.string_view())),
    "no rows": SCHEMA.empty_table(),
    "nulls": rows(a=[2], s=pa.array([None], pa.string()), n=pa.array([None], SCHEMA.field("n").type)),
    "many batches": pa.concat_tables([rows(a=[2], s=["x"])] * 5),
}
REFUSED = {
    "null where none is allowed": (rows(a=pa.array([None], pa.int64())), "column 'a', row 1: expected no nulls"),
    "required column missing": (rows(s=["x"]), "missing ['a']"),
    "wrong type": (rows(a=["t"]), "column 'a': expected int64, found string"),
    "unknown column": (rows(a=[3], more=[1]), "surplus ['more']"),
    "wrong type inside": (
        rows(a=[3], n=pa.array([{"k": "x", "v": "y"}])),
        "column 'n.k': expected int64, found string",
    ),
}
KINDS = {
    "large string": pa.array(["x", None], pa.large_string()),
    "binary": pa.array([b"x", None], pa.large_binary()),
    "dictionary": pa.array(["x", "y"]).dictionary_encode(),
    "float16": pa.array(np.array([1.5, 2.5], np.float16)),
    "vector": pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2)),
    "list of structs": pa.array([[{"k": 1}], None]),
    "struct of lists": pa.array([{"k": [1, 2], "v": {"w": "x"}}, None]),
    "timestamp": pa.array([0, None], pa.timestamp("us", "UTC")),
    "decimal": pa.array([1, 2], pa.decimal128(20, 3)),
    "bool": pa.array([True, None]),
    "large list": pa.array([[1], []], pa.large_list(pa.int32())),
    "date": pa.array([1, 2], pa.date32()),
    "map": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64())),
}


@pytest.fixture
def both(url: str, http: httpx.Client, stock: httpx.Client, table: str) -> str:
    """The route of the same table on both servers."""
    route = f"{table}-both"
    namespace = lance_namespace.connect("rest", {"uri": url})
    lance.write_dataset(FIRST, namespace_client=namespace, table_id=table_id(route), mode="create")
    stock.post(f"{route}/create", content=stream(FIRST), headers=ARROW).raise_for_status()
    return route


def found(client: httpx.Client, route: str) -> list[dict[str, Any]]:
    described = client.post(f"{route}/describe", json={}).json()
    return lance.dataset(described["location"].removeprefix("file://")).to_table().to_pylist()


@pytest.mark.parametrize("given", FITTING.values(), ids=FITTING.keys())
def test_rows_that_fit(http: httpx.Client, stock: httpx.Client, both: str, given: pa.Table) -> None:
    ours = http.post(f"{both}/insert", content=stream(given), headers=ARROW)
    theirs = stock.post(f"{both}/insert", content=stream(given), headers=ARROW)
    assert ours.status_code == theirs.status_code == 200, ours.text
    assert ours.json()["num_inserted_rows"] == theirs.json()["num_inserted_rows"] == given.num_rows
    assert ours.json()["version"] == (2 if given.num_rows else 1)
    assert found(http, both) == found(stock, both)


@pytest.mark.parametrize(("given", "named"), REFUSED.values(), ids=REFUSED.keys())
def test_rows_that_do_not_fit(http: httpx.Client, stock: httpx.Client, both: str, given: pa.Table, named: str) -> None:
    before = files(location(http, both))
    assert stock.post(f"{both}/insert", content=stream(given), headers=ARROW).status_code != 200
    answer = http.post(f"{both}/insert", content=stream(given), headers=ARROW)
    assert (answer.status_code, answer.json()["code"]) == (400, 20), answer.text
    assert named in answer.json()["error"]
    assert files(location(http, both)) == before


@pytest.mark.parametrize("column", KINDS.values(), ids=KINDS.keys())
def test_kinds_of_columns(url: str, http: httpx.Client, table: str, column: pa.Array) -> None:
    route, given = f"{table}-kind", pa.table({"id": [1, 2], "c": column})
    http.post(f"{route}/declare", json={}).raise_for_status()
    for version in (1, 2):
        answer = http.post(f"{route}/insert", content=stream(given), headers=ARROW)
        assert answer.status_code == 200, answer.text
        assert (answer.json()["version"], answer.json()["num_inserted_rows"]) == (version, 2)
    assert read(url, route).to_pylist() == given.to_pylist() * 2
    assert read(url, route).schema.field("c").type == column.type


def test_blobs(url: str, http: httpx.Client, table: str) -> None:
    blob = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    given = pa.table([pa.array([b"x" * 100_000, b"y"], pa.large_binary())], schema=pa.schema([blob]))
    http.post(f"{table}-blob/declare", json={}).raise_for_status()
    for version in (1, 2):
        answer = http.post(f"{table}-blob/insert", content=stream(given), headers=ARROW)
        assert answer.json().get("version") == version, answer.text
    dataset = lance.dataset(str(location(http, f"{table}-blob")))
    assert [blob.read() for blob in dataset.take_blobs("b", indices=[0, 3])] == [b"x" * 100_000, b"y"]


def test_inserts_at_one_time_are_all_there(url: str, http: httpx.Client, table: str) -> None:
    def insert(number: int) -> int:
        with httpx.Client(base_url=url, timeout=60) as client:
            given = pa.table({"a": list(range(number * 10, number * 10 + 10)), "s": ["-"] * 10})
            answer = client.post(f"{table}/insert", content=stream(given), headers=ARROW)
            assert answer.status_code == 200, answer.text
            return answer.json()["version"]

    with ThreadPoolExecutor(16) as pool:
        versions = list(pool.map(insert, range(1, 33)))
    assert sorted(versions) == list(range(2, 34))
    assert sorted(read(url, table).column("a").to_pylist()) == [1, 2, *range(10, 330)]


def test_an_insert_is_repeated_after_the_schema_changed(http: httpx.Client, url: str, table: str) -> None:
    """Appends and overwrites at one time: each is committed, or told that the rows do not fit any more."""

    def insert(number: int) -> tuple[int, int]:
        query = "?mode=overwrite" if number % 4 == 0 else ""
        given = pa.table({"a": [number], "s": ["-"]}) if number % 8 else pa.table({"a": [number], "t": [1.5]})
        with httpx.Client(base_url=url, timeout=60) as client:
            answer = client.post(f"{table}/insert{query}", content=stream(given), headers=ARROW)
            return answer.status_code, answer.json().get("code", 0)

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(insert, range(24)))
    assert set(outcomes) <= {(200, 0), (400, 20), (409, 14)}, outcomes
    dataset = lance.dataset(str(location(http, table)))
    assert dataset.version == 1 + sum(status == 200 for status, _ in outcomes)
    named = {
        f"data/{part.path}"
        for version in range(1, dataset.version + 1)
        for fragment in dataset.checkout_version(version).get_fragments()
        for part in fragment.data_files()
    }
    assert {name for name in files(location(http, table)) if name.startswith("data/")} == named


def test_a_declared_table_that_an_old_version_of_lance_wrote(http: httpx.Client, table: str) -> None:
    old = f"{table}_old"
    declared = http.post(f"{old}/declare", json={}).raise_for_status().json()["location"]
    lance.write_dataset(pa.table({"a": [1]}), declared, enable_v2_manifest_paths=False)
    answer = http.post(f"{old}/insert", content=stream(pa.table({"a": [2]})), headers=ARROW)
    assert (answer.status_code, answer.json()["code"]) == (409, 14), answer.text
    assert "Dataset already exists: (path)" in answer.json()["error"]
    assert lance.dataset(declared).to_table()["a"].to_pylist() == [1]
