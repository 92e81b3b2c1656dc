"""Operations on rows where the tables are in a bucket: over HTTP, by clients that cannot reach the bucket."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import lance
import lance_namespace as m
import numpy as np
import pyarrow as pa
import pyarrow.compute
import pytest
from lance.blob import blob_array, blob_field
from lance.namespace import DirectoryNamespace as StockNamespace

from namespace_client import Catalog
from tests.buckets.conftest import OnABucket, environment_of, start
from tests.clients.outcomes import differences
from tests.clients.test_rest_namespace import CASES, MORE, ROWS, Subject
from tests.data.arrow import ARROW, stream
from tests.emulators import Emulator

pytestmark = pytest.mark.services

LOCAL = {"namespace_id", "retrieve_ops_metrics", "reset_ops_metrics"}
"""Methods that send nothing."""


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> StockNamespace:
    """pylance's own catalog, in a directory."""
    made = StockNamespace(root=str(tmp_path_factory.mktemp("stock")))
    made.create_namespace(m.CreateNamespaceRequest(id=["w"]))
    return made


@pytest.mark.combinations
@pytest.mark.parametrize("name", sorted(CASES.keys() - LOCAL))
def test_a_method_does_what_it_does_on_a_local_catalog(
    on_a_bucket: OnABucket, stock: StockNamespace, name: str
) -> None:
    table_id = ["w", f"{name}_{on_a_bucket.emulator.scheme}"]
    ours = Subject(on_a_bucket.client(), table_id, on_a_bucket.emulator.storage_options)
    theirs = Subject(stock, table_id)
    for subject in (ours, theirs):
        subject.create()
    assert differences(CASES[name], ours, theirs) == []


def test_keys_that_are_in_the_environment_of_the_server_only(emulator: Emulator, tmp_path: Path) -> None:
    running = start(emulator, environment_of(emulator), tmp_path / "log")
    table = Subject(running.client(), ["w", "t"])
    table.create()
    table.ns.insert_into_table(m.InsertIntoTableRequest(id=table.id, mode="append"), stream(MORE))
    table.ns.create_table_scalar_index(m.CreateTableIndexRequest(id=table.id, column="id", index_type="BTREE"))
    table.ns.delete_from_table(m.DeleteFromTableRequest(id=table.id, predicate="id < 3"))
    assert [row["id"] for row in table.rows()] == [*range(3, 11), 10, 11, 11, 12]
    described = table.ns.describe_table(m.DescribeTableRequest(id=table.id))
    assert described.storage_options is None
    running.server.stop()


def _large(megabytes: int) -> pa.Table:
    """Random numbers, which no encoding makes shorter."""
    count = megabytes * 65_536
    return pa.table({"id": np.arange(count), "x": np.random.default_rng(1).random(count)})


def _insert(running: OnABucket, table: str, content: bytes | Iterator[bytes]) -> httpx.Response:
    return httpx.post(f"{running.server.url}/v1/table/w${table}/insert", content=content, headers=ARROW, timeout=300)


def test_a_large_insert(on_a_bucket: OnABucket) -> None:
    large = _large(64)
    table = Subject(on_a_bucket.client(), ["w", "large"])
    table.create(rows=large.slice(0, 1))
    answer = _insert(on_a_bucket, "large", stream(large.slice(1)))
    assert (answer.status_code, answer.json()["num_inserted_rows"]) == (200, large.num_rows - 1), answer.text
    assert table.ns.count_table_rows(m.CountTableRowsRequest(id=table.id)).count == large.num_rows
    found = table.query(filter="id % 1000003 = 7", columns={"column_names": ["id", "x"]}).sort_by("id")
    assert found.equals(large.filter(pyarrow.compute.equal(_remainder(large["id"]), 7)))


def _remainder(ids: pa.ChunkedArray) -> pa.Array:
    return pa.array(ids.to_numpy() % 1_000_003)


@pytest.mark.parametrize("megabytes", [1, 24], ids=["one part", "several parts"])
def test_a_client_that_goes_away_leaves_nothing_in_the_bucket(on_a_bucket: OnABucket, megabytes: int) -> None:
    name = f"gone{megabytes}"
    table = Subject(on_a_bucket.client(), ["w", name])
    location = table.create().location
    before = on_a_bucket.objects(location)
    body = stream(pa.table(_columns(megabytes)))

    def broken() -> Iterator[bytes]:
        for place in range(0, len(body) * 9 // 10, 1 << 20):
            yield body[place : place + (1 << 20)]
        raise ConnectionError

    with pytest.raises(ConnectionError):
        _insert(on_a_bucket, name, broken())
    assert _insert(on_a_bucket, name, stream(MORE)).json()["version"] == 2  # the worker that was left is done
    added = on_a_bucket.objects(location) - before
    kinds = sorted(path.partition("/")[0] for path in added if "latest_version_hint" not in path)
    assert kinds == ["_transactions", "_versions", "data"], added
    assert on_a_bucket.uploads() == []
    assert table.ns.count_table_rows(m.CountTableRowsRequest(id=table.id)).count == ROWS.num_rows + MORE.num_rows


def _columns(megabytes: int) -> dict[str, pa.Array]:
    count = megabytes << 13
    random = np.random.default_rng(2)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(random.random(4 * count), pa.float32()), 4)
    texts = [random.bytes(50).hex() for _ in range(count)]
    return {"id": np.arange(count), "x": random.random(count), "s": texts, "v": vectors}


BLOBS = [b"inline", os.urandom(200_000), os.urandom(9_000_000), None, b""]


def test_blobs_of_all_kinds_and_their_ranges(on_a_bucket: OnABucket) -> None:
    legacy = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    ids = pa.array(range(len(BLOBS)))
    tables = {
        "v2": pa.table([ids, blob_array(BLOBS)], pa.schema([pa.field("id", pa.int64()), blob_field("b")])),
        "old": pa.table([ids, pa.array(BLOBS, pa.large_binary())], pa.schema([pa.field("id", pa.int64()), legacy])),
    }
    with httpx.Client(base_url=on_a_bucket.server.url, timeout=60) as http:
        for name, rows in tables.items():
            http.post(f"/v1/table/w${name}/create", content=stream(rows), headers=ARROW).raise_for_status()
            for row, value in enumerate(BLOBS):
                assert http.get(f"/v1/table/w${name}/blob/b/{row}/bytes").content == (value or b"")
            long = BLOBS[2] or b""
            part = http.get(
                f"/v1/table/w${name}/blob/b/bytes?filter=id = 2", headers={"Range": "bytes=7000000-7000009"}
            )
            assert (part.status_code, part.content) == (206, long[7_000_000:7_000_010])
    with Catalog.connect(on_a_bucket.server.url, namespace="w") as catalog:
        assert list(catalog.blobs("v2", "b", [2, 3, 0])) == [BLOBS[2], None, BLOBS[0]]


def test_a_blob_that_is_an_object_elsewhere_is_not_read(on_a_bucket: OnABucket) -> None:
    """The server could: its credentials are good for the whole bucket."""
    with httpx.Client(base_url=on_a_bucket.server.url, timeout=60) as http:
        rows = pa.table([blob_array([b"x"])], pa.schema([blob_field("b")]))
        http.post("/v1/table/w$near/create", content=stream(rows), headers=ARROW).raise_for_status()
        location = http.post("/v1/table/w$near/describe", json={}).json()["location"]
    secret = f"{location.rpartition('/')[0]}/__manifest/_versions/1.manifest"
    rows = pa.table([blob_array([secret])], pa.schema([blob_field("b")]))
    lance.write_dataset(
        rows,
        f"{location.rpartition('/')[0]}/far",
        storage_options=on_a_bucket.emulator.storage_options,
        data_storage_version="2.2",
        allow_external_blob_outside_bases=True,
    )
    with httpx.Client(base_url=on_a_bucket.server.url, timeout=60) as http:
        http.post("/v1/table/w$far/register", json={"location": "far"}).raise_for_status()
        began = time.monotonic()
        answer = http.get("/v1/table/w$far/blob/b/0/bytes")
        assert (answer.status_code, answer.json()["code"]) == (403, 15), answer.text
        assert time.monotonic() - began < 10


def test_rows_in_parts_are_one_version(on_a_bucket: OnABucket) -> None:
    table = Subject(on_a_bucket.client(), ["w", f"parts_{on_a_bucket.emulator.scheme}"])
    table.create()
    path = f"/v1/table/{'$'.join(table.id)}"
    with httpx.Client(base_url=on_a_bucket.server.url, timeout=60) as http:

        def ask(what: str, upload: str) -> httpx.Response:
            return http.post(f"{path}/multipart_write/{what}", params={"upload_id": upload})

        def begun_with(*parts: str) -> str:
            upload: str = http.post(f"{path}/multipart_write/create").json()["upload_id"]
            for part in parts:
                named = {"upload_id": upload, "upload_part_id": part}
                added = http.post(f"{path}/insert", params=named, content=stream(MORE), headers=ARROW)
                assert (added.status_code, added.json()["num_inserted_rows"]) == (200, MORE.num_rows), added.text
            return upload

        upload, given_up = begun_with("a", "b", "a"), begun_with("a")
        assert len(table.rows()) == ROWS.num_rows
        done = [ask("complete", upload).json() for _ in range(2)]
        assert done[0] == done[1]
        assert (done[0]["version"], done[0]["num_inserted_rows"]) == (2, 2 * MORE.num_rows)
        assert len(table.rows()) == ROWS.num_rows + 2 * MORE.num_rows
        assert [ask("abort", given_up).status_code for _ in range(2)] == [200, 200]
        for ended, word in ((upload, "completed"), (given_up, "aborted")):
            late = ask("abort" if word == "completed" else "complete", ended)
            assert (late.status_code, word in late.text) == (400, True)
