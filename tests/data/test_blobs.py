"""Values of columns of blobs over HTTP: each way they are stored, ranges, versions, and what is refused."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import lance
import lance_namespace
import pyarrow as pa
import pytest
from lance.blob import Blob, blob_array, blob_field

from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.rest import blob_pieces
from namespace_server.rest.blob_pieces import PieceSpace
from namespace_server.rest.request.limits import DataLimits
from namespace_server.workers.read_pool import ReadPool
from tests.data.queried import answered, served
from tests.data.test_query_streams import peak

INLINE, PACKED, DEDICATED = b"inline value", os.urandom(200_000), os.urandom(5_000_000)
VALUES = [INLINE, PACKED, DEDICATED, None, b""]
STORED = [0, 1, 2]
"""The kinds of storage that pylance chooses for the first three in format 2.2."""
V2, OLD = "/v1/table/w$v2", "/v1/table/w$old"
FIRST = "/v1/table/w$first"
LONG = 4 << 30
FETCH_LIMIT = 64 << 20


@dataclass(frozen=True, slots=True)
class Media:
    """A server, the directory beside its root from which blobs may be read, and one from which none may."""

    url: str
    allowed: Path
    secret: Path


@pytest.fixture(scope="module")
def media(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Media]:
    root, allowed, secret = (tmp_path_factory.mktemp(name) for name in ("root", "allowed", "secret"))
    (secret / "key").write_bytes(b"nobody reads this")
    (allowed / "clip").write_bytes(b"0123456789")
    with (allowed / "long").open("wb") as file:  # a sparse file
        file.truncate(LONG)
        file.seek(LONG - 4)
        file.write(b"last")
    namespace = DirectoryNamespace(root=str(root), durability="none", blob_locations=str(allowed))
    with served(namespace, DataLimits(read_workers=2)) as url:
        httpx.post(f"{url}/v1/namespace/w/create", json={}).raise_for_status()
        _write(url, "v2", _rows(VALUES), "2.2")
        legacy = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
        numbers = pa.array(range(len(VALUES)))
        for name, version in (("old", "2.1"), ("first", "2.0")):
            schema = pa.schema([pa.field("id", pa.int64()), legacy])
            _write(url, name, pa.table([numbers, pa.array(VALUES, pa.large_binary())], schema), version)
        yield Media(url, allowed, secret)


@pytest.fixture
def http(media: Media) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=media.url, timeout=60) as client:
        yield client


def _rows(values: list[Any], first: int = 0) -> pa.Table:
    """Rows whose values are blobs of the second kind: a column, a field, items of lists; and plain bytes."""
    blobs = blob_array(values)
    inner = pa.struct([pa.field("x", pa.int32()), blob_field("b")])
    count = len(values)
    nested = pa.StructArray.from_arrays([pa.array(range(count), pa.int32()), blobs], fields=list(inner))
    listed = pa.list_(blob_field("item"))
    lists = pa.ListArray.from_arrays(pa.array(range(count + 1), pa.int32()), blob_array([b"x"] * count), type=listed)
    schema = pa.schema(
        [
            pa.field("id", pa.int64()),
            blob_field("b"),
            blob_field("a b+c"),
            pa.field("s", inner),
            pa.field("l", listed),
            pa.field("raw", pa.large_binary()),
        ]
    )
    ids = pa.array(range(first, first + count))
    return pa.table([ids, blobs, blobs, nested, lists, pa.array([b"plain"] * count, pa.large_binary())], schema)


def _write(url: str, name: str, rows: pa.Table, version: str, **options: Any) -> None:
    client = lance_namespace.connect("rest", {"uri": url})
    lance.write_dataset(
        rows, namespace_client=client, table_id=["w", name], data_storage_version=version, mode="create", **options
    )


def _outside(media: Media, name: str, *uris: str | Blob) -> str:
    """The route of a table of blobs that are files elsewhere."""
    rows = pa.table([blob_array(list(uris))], pa.schema([blob_field("b")]))
    _write(media.url, name, rows, "2.2", allow_external_blob_outside_bases=True)
    return f"/v1/table/w${name}"


def _value(answer: httpx.Response) -> bytes | None:
    if answer.status_code == 204:
        assert "content-type" not in answer.headers
        return None
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-length"] == str(len(answer.content))
    return answer.content


def _refused(answer: httpx.Response, status: int, code: int, text: str) -> None:
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert re.search(text, answer.json()["error"]), answer.text


class TestOneBlob:
    @pytest.mark.parametrize("table", [V2, OLD, FIRST])
    def test_of_each_way_to_store_it(self, http: httpx.Client, table: str) -> None:
        for row, value in enumerate(VALUES):
            assert _value(http.get(f"{table}/blob/b/{row}/bytes")) == value

    def test_the_table_has_all_ways_to_store_it(self, http: httpx.Client) -> None:
        found = answered(http.post(f"{V2}/query", json={"k": 0, "columns": {"column_names": ["b"]}}))
        assert [value["kind"] for value in found["b"].to_pylist()[:3]] == STORED

    @pytest.mark.parametrize("column", ["s.b", "%60s%60.b", "a%20b%2Bc", "a b%2Bc"])
    def test_of_a_field_and_of_a_name_that_is_escaped(self, http: httpx.Client, column: str) -> None:
        for row, value in enumerate(VALUES):
            assert _value(http.get(f"{V2}/blob/{column}/{row}/bytes")) == value

    def test_of_the_row_that_a_filter_matches(self, http: httpx.Client) -> None:
        answer = http.get(f"{V2}/blob/b/bytes", params={"filter": "id = 1"})
        assert _value(answer) == PACKED
        again = http.get(answer.headers["content-location"], headers={"Range": "bytes=1-2"})
        assert (again.status_code, again.content) == (206, PACKED[1:3])
        assert again.headers["etag"] == answer.headers["etag"]
        _refused(
            http.get(f"{V2}/blob/b/bytes", params={"filter": "id = 99"}), 404, 13, "filter: expected one row.*none"
        )
        _refused(
            http.get(f"{V2}/blob/b/bytes", params={"filter": "id > 1"}), 409, 13, "filter: expected one row.*sever"
        )
        _refused(http.get(f"{V2}/blob/b/bytes"), 400, 13, "filter: expected a value, found none")
        _refused(http.get(f"{V2}/blob/b/bytes", params={"filter": "nope = 1"}), 404, 12, "nope")
        _refused(http.get(f"{V2}/blob/b/bytes", params={"filter": "id = 1 LIMIT 1"}), 400, 13, "LIMIT")

    def test_the_address_is_for_the_place_of_the_request(self, http: httpx.Client) -> None:
        """Of a database of lancedb ids are below it; an id with another delimiter needs that again."""
        for path, headers in (("/v1/table/v2", {"x-lancedb-database": "w"}), ("/v1/table/w.v2?delimiter=.", {})):
            place, _, query = path.partition("?")
            answer = http.get(f"{place}/blob/b/1/bytes?{query}", headers=headers)
            assert _value(answer) == PACKED
            address = answer.headers["content-location"]
            assert address.startswith(f"{place}/blob/b/1/bytes?version=1")
            assert _value(http.get(address, headers=headers)) == PACKED

    def test_head_says_what_get_would(self, http: httpx.Client) -> None:
        address = f"{V2}/blob/b/2/bytes"
        head, get = http.head(address, headers={"Range": "bytes=0-1"}), http.get(address)
        assert (head.status_code, head.content) == (200, b"")
        varying = {"date", "x-request-id"}
        assert {k: v for k, v in head.headers.items() if k not in varying} == {
            k: v for k, v in get.headers.items() if k not in varying
        }
        assert http.head(f"{V2}/blob/b/3/bytes").status_code == 204
        assert http.head(f"{V2}/blob/b/99/bytes").status_code == 404

    @pytest.mark.parametrize(
        ("path", "status", "code", "text"),
        [
            ("blob/b/99/bytes", 404, 13, "expected row 99, found none"),
            ("blob/b/18446744073709551615/bytes", 404, 13, "expected row 18446744073709551615, found none"),
            ("blob/b/18446744073709551616/bytes", 400, 13, "row_id"),
            ("blob/b/-1/bytes", 400, 13, "path: expected the id of a row"),
            ("blob/b/%D9%A1/bytes", 400, 13, "path: expected the id of a row"),
            ("blob/b/0x1/bytes", 400, 13, "path: expected the id of a row"),
            ("blob/none/0/bytes", 404, 12, "no field 'none'"),
            ("blob/s.none/0/bytes", 404, 12, "no field 'none'"),
            ("blob/raw/0/bytes", 400, 13, "expected a column of blobs, found large_binary; a query reads it"),
            ("blob/s/0/bytes", 400, 13, "expected a column of blobs, found struct"),
            ("blob/l/0/bytes", 400, 13, "expected a column of blobs, found list"),
            ("blob/l.item/0/bytes", 400, 13, "expected a field of a struct, found 'l'"),
            ("blob/b.data/0/bytes", 400, 13, "expected a field of a struct, found 'b' with blobs"),
            ("blob/%60/0/bytes", 400, 13, "expected the path of a field"),
            ("blob/a+b/0/bytes", 400, 13, r"column: a \+ may be a plus or a space"),
            ("blob/b/0/bytes?version=9", 404, 11, "version 9"),
            ("blob/b/0/bytes?version=x", 400, 13, "version: expected a number"),
            ("blob/b/0/bytes?branch=none", 404, 22, "none"),
            ("blob/b/0/bytes?tag=none", 404, 8, "none"),
            ("blob/b/0/bytes?tag=v&version=1", 400, 13, "tag: expected it without version"),
            ("blob/b/0/bytes?filter=true", 400, 13, "filter: expected no such field"),
        ],
    )
    def test_what_is_refused(self, http: httpx.Client, path: str, status: int, code: int, text: str) -> None:
        _refused(http.get(f"{V2}/{path}"), status, code, text)

    def test_only_get_and_head_and_no_body(self, http: httpx.Client) -> None:
        assert http.post(f"{V2}/blob/b/0/bytes").status_code == 405
        answer = http.request("GET", f"{V2}/blob/b/0/bytes", json={"version": 1})
        _refused(answer, 400, 13, "GET: expected no body")
        _refused(http.get("/v1/table/w$none/blob/b/0/bytes"), 404, 4, "w.none")


class TestRanges:
    @pytest.mark.parametrize(
        ("asked", "first", "last"),
        [
            ("bytes=0-0", 0, 0),
            ("bytes=199990-", 199_990, 199_999),
            ("bytes=5-300000", 5, 199_999),
            (f"bytes=7-{2**100}", 7, 199_999),
            ("bytes=-3", 199_997, 199_999),
            ("bytes=-300000", 0, 199_999),
            ("BYTES=1-2", 1, 2),
        ],
    )
    def test_are_answered_as_parts(self, http: httpx.Client, asked: str, first: int, last: int) -> None:
        answer = http.get(f"{V2}/blob/b/1/bytes", headers={"Range": asked})
        assert (answer.status_code, answer.content) == (206, PACKED[first : last + 1])
        assert answer.headers["content-range"] == f"bytes {first}-{last}/200000"
        assert answer.headers["content-length"] == str(last + 1 - first)
        assert answer.headers["x-lancedb-version"] == "1"

    @pytest.mark.parametrize("asked", ["bytes=200000-", "bytes=200001-200002", "bytes=-0", f"bytes={2**90}-"])
    def test_with_no_byte_of_the_blob(self, http: httpx.Client, asked: str) -> None:
        answer = http.get(f"{V2}/blob/b/1/bytes", headers={"Range": asked})
        _refused(answer, 416, 13, "expected some of the 200000 bytes")
        assert answer.headers["content-range"] == "bytes */200000"
        assert answer.headers["x-lancedb-version"] == "1"

    def test_of_an_empty_blob_and_of_null(self, http: httpx.Client) -> None:
        empty = http.get(f"{V2}/blob/b/4/bytes", headers={"Range": "bytes=0-0"})
        assert (empty.status_code, empty.headers["content-range"]) == (416, "bytes */0")
        assert http.get(f"{V2}/blob/b/3/bytes", headers={"Range": "bytes=0-0"}).status_code == 204

    @pytest.mark.parametrize(
        ("asked", "text"),
        [
            ("bytes=0-1,4-5", "expected one range, found 2"),
            ("bytes=" + ",".join(["0-"] * 5000), "expected one range, found 5000"),
            ("bytes=2-1", "expected bytes=first-last"),
            ("bytes=-", "expected bytes=first-last"),
            ("bytes=", "expected bytes=first-last"),
            ("bytes=a-b", "expected bytes=first-last"),
            ("bytes=0x1-2", "expected bytes=first-last"),
            ("bytes=+1-2", "expected bytes=first-last"),
            ("bytes=1-2-3", "expected bytes=first-last"),
            ("bytes=--1", "expected bytes=first-last"),
            ("bytes=" + "9" * 5000 + "-", "expected bytes=first-last"),
            ("bytes", "expected bytes=first-last"),
            ("0-1", "expected bytes=first-last"),
        ],
    )
    def test_that_are_none(self, http: httpx.Client, asked: str, text: str) -> None:
        _refused(http.get(f"{V2}/blob/b/1/bytes", headers={"Range": asked}), 400, 13, text)

    def test_of_a_unit_that_is_not_known_are_left_out(self, http: httpx.Client) -> None:
        """RFC 9110, section 14.2, has it so."""
        assert _value(http.get(f"{V2}/blob/b/1/bytes", headers={"Range": "rows=0-1"})) == PACKED

    def test_two_that_differ_are_refused(self, http: httpx.Client) -> None:
        headers = [("Range", "bytes=0-0"), ("Range", "bytes=1-1")]
        _refused(http.get(f"{V2}/blob/b/1/bytes", headers=headers), 400, 13, "range: expected one")

    def test_hold_for_the_blob_of_the_tag_alone(self, http: httpx.Client) -> None:
        address = f"{V2}/blob/b/1/bytes"
        tag = http.head(address).headers["etag"]
        assert tag != http.head(f"{V2}/blob/b/2/bytes").headers["etag"]
        assert tag != http.head(f"{V2}/blob/s.b/1/bytes").headers["etag"]
        for condition, status in (
            (tag, 206),
            ('"other"', 200),
            (f"W/{tag}", 200),
            ("Wed, 21 Oct 2015 07:28:00 GMT", 200),
        ):
            answer = http.get(address, headers={"Range": "bytes=0-1", "If-Range": condition})
            assert answer.status_code == status, condition
        for condition, status in ((tag, 304), (f'"x", W/{tag}', 304), ("*", 304), ('"x"', 200)):
            answer = http.get(address, headers={"If-None-Match": condition})
            assert (answer.status_code, answer.headers["etag"]) == (status, tag)


class TestVersions:
    def test_of_a_blob(self, http: httpx.Client, media: Media) -> None:
        """A number, a tag, a branch, and a catalog version find what was there then."""
        _write(media.url, "turns", _rows([b"one"]), "2.2")
        route = "/v1/table/w$turns"
        before = int(http.head(f"{route}/blob/b/0/bytes").headers["x-lance-catalog-version"])
        http.post(f"{route}/tags/create", json={"tag": "v", "version": 1}).raise_for_status()
        http.post(f"{route}/branches/create", json={"name": "dev"}).raise_for_status()
        first = http.get(f"{route}/blob/b/0/bytes")
        http.post(f"{route}/delete", json={"predicate": "true"}).raise_for_status()
        _refused(http.get(f"{route}/blob/b/0/bytes"), 404, 13, "version 2: expected row 0, found none")
        for parameters, headers in (
            ({"version": 1}, {}),
            ({"tag": "v"}, {}),
            ({"branch": "dev"}, {}),
            ({}, {"x-lance-catalog-version": str(before)}),
        ):
            found = http.get(f"{route}/blob/b/0/bytes", params=parameters, headers=headers)
            assert _value(found) == b"one"
            assert found.headers["x-lancedb-version"] == "1"
            assert _value(http.get(found.headers["content-location"])) == b"one"
        assert http.get(f"{route}/blob/b/0/bytes", params={"version": 1}).headers["etag"] == first.headers["etag"]
        answer = http.get(f"{route}/blob/b/0/bytes", headers={"x-lancedb-min-read-version": "9"})
        _refused(answer, 404, 11, "expected version 9")

    def test_a_table_that_was_made_again_has_other_tags(self, http: httpx.Client, media: Media) -> None:
        tags = []
        for value in (b"one", b"two"):
            _write(media.url, "again", _rows([value]), "2.2")
            tags.append(http.head("/v1/table/w$again/blob/b/0/bytes").headers["etag"])
            http.post("/v1/table/w$again/drop", json={}).raise_for_status()
        assert tags[0] != tags[1]


class TestManyBlobs:
    @pytest.mark.parametrize("table", [V2, OLD, FIRST])
    def test_come_in_the_order_of_the_ids(self, http: httpx.Client, table: str) -> None:
        ids = [3, 0, 4, 1, 0, 2]
        answer = http.post(f"{table}/fetch_blobs", json={"column": "b", "row_ids": ids})
        found = answered(answer)
        assert found.schema == pa.schema([pa.field("b", pa.large_binary())])
        assert found["b"].to_pylist() == [VALUES[row] for row in ids]
        assert answer.headers["x-lancedb-version"] == "1"
        assert answered(http.post(f"{table}/fetch_blobs", json={"column": "b", "row_ids": []})).num_rows == 0

    def test_of_a_field(self, http: httpx.Client) -> None:
        found = answered(http.post(f"{V2}/fetch_blobs", json={"column": "s.b", "row_ids": [1, 0]}))
        assert found["s.b"].to_pylist() == [PACKED, INLINE]

    def test_are_refused_beyond_the_bounds(self, http: httpx.Client) -> None:
        many = {"column": "b", "row_ids": [2] * 14}
        _refused(
            http.post(f"{V2}/fetch_blobs", json=many), 400, 13, f"at most {FETCH_LIMIT} total blob bytes.*70000000"
        )
        many = {"column": "b", "row_ids": [0] * 1025}
        _refused(http.post(f"{V2}/fetch_blobs", json=many), 400, 13, "at most 1024 row ids, found 1025")
        assert answered(http.post(f"{V2}/fetch_blobs", json={"column": "b", "row_ids": [0] * 1024})).num_rows == 1024

    @pytest.mark.parametrize(
        ("request_", "status", "code", "text"),
        [
            ({"column": "b", "row_ids": [0, 99]}, 404, 13, "expected row 99"),
            ({"column": "raw", "row_ids": [0]}, 400, 13, "expected a column of blobs"),
            ({"column": "raw", "row_ids": []}, 400, 13, "expected a column of blobs"),
            ({"column": "none", "row_ids": [0]}, 404, 12, "none"),
            ({"column": "b", "row_ids": [-1]}, 400, 13, "row_ids"),
            ({"column": "b", "row_ids": ["0"]}, 400, 13, "row_ids"),
            ({"column": "b", "row_ids": 0}, 400, 13, "row_ids"),
            ({"column": "b"}, 400, 13, "row_ids"),
            ({"row_ids": [0]}, 400, 13, "column"),
            ({"column": "b", "row_ids": [0], "filter": "true"}, 400, 13, "filter"),
        ],
    )
    def test_what_is_refused(self, http: httpx.Client, request_: Any, status: int, code: int, text: str) -> None:
        _refused(http.post(f"{V2}/fetch_blobs", json=request_), status, code, text)

    def test_of_an_older_version(self, http: httpx.Client, media: Media) -> None:
        _write(media.url, "gone", _rows([b"one"]), "2.2")
        http.post("/v1/table/w$gone/delete", json={"predicate": "true"}).raise_for_status()
        asked = {"column": "b", "row_ids": [0]}
        assert http.post("/v1/table/w$gone/fetch_blobs", json=asked).status_code == 404
        found = answered(http.post("/v1/table/w$gone/fetch_blobs", json={**asked, "version": 1}))
        assert found["b"].to_pylist() == [b"one"]


class TestFilesElsewhere:
    def test_are_read_below_the_locations_of_the_settings(self, http: httpx.Client, media: Media) -> None:
        clip = f"file://{media.allowed}/clip"
        table = _outside(media, "clips", clip, Blob.from_uri(clip, 2, 3))
        answer = http.get(f"{table}/blob/b/0/bytes")
        assert _value(answer) == b"0123456789"
        assert "etag" not in answer.headers, "the file may change"
        assert _value(http.get(f"{table}/blob/b/1/bytes")) == b"234"
        part = http.get(f"{table}/blob/b/0/bytes", headers={"Range": "bytes=-2"})
        assert (part.status_code, part.content, part.headers["content-range"]) == (206, b"89", "bytes 8-9/10")
        # Without a tag nothing says that the other bytes are of the same content.
        whole = http.get(f"{table}/blob/b/0/bytes", headers={"Range": "bytes=-2", "If-Range": '"any"'})
        assert whole.status_code == 200
        found = answered(http.post(f"{table}/fetch_blobs", json={"column": "b", "row_ids": [1, 0]}))
        assert found["b"].to_pylist() == [b"234", b"0123456789"]

    def test_are_not_read_elsewhere(self, http: httpx.Client, media: Media) -> None:
        (media.allowed / "link").symlink_to(media.secret / "key")
        (media.allowed / "out").symlink_to(media.secret)
        os.mkfifo(media.allowed / "pipe")
        root = httpx.post(f"{media.url}{V2}/describe", json={}).json()["location"].removeprefix("file://")
        hostile = [
            f"file://{media.secret}/key",
            f"file://{media.allowed}/../{media.secret.name}/key",
            f"file://{media.allowed}/%2e%2e/{media.secret.name}/key",
            f"file://{media.allowed}/link",
            f"file://{media.allowed}/out/key",
            f"file://{media.allowed}x/key",
            f"file://{media.allowed}/pipe",
            f"file://{media.allowed}",
            f"file-object-store://{media.secret}/key",
            f"file://{root}/_versions/1.manifest",
            "s3://bucket/key",
            "s3://127.0.0.1:1/key",
            "memory://key",
        ]
        table = _outside(media, "hostile", *hostile)
        for row, uri in enumerate(hostile):
            began = time.monotonic()
            answer = http.get(f"{table}/blob/b/{row}/bytes")
            _refused(answer, 403, 15, f"blob of row {row} is a file elsewhere, which is not read")
            assert http.head(f"{table}/blob/b/{row}/bytes").status_code == 403
            many = http.post(f"{table}/fetch_blobs", json={"column": "b", "row_ids": [row]})
            _refused(many, 403, 15, "which is not read")
            assert time.monotonic() - began < 5, uri

    def test_below_a_base_path_likewise(self, http: httpx.Client, media: Media) -> None:
        """A client that writes descriptions by itself may lead out of its base path, too."""
        root = Path(httpx.post(f"{media.url}{V2}/describe", json={}).json()["location"].removeprefix("file://")).parent
        bases = [
            lance.DatasetBasePath(str(place), name=place.name, id=1 + n)
            for n, place in enumerate((media.allowed, media.secret))
        ]
        rows = pa.table([blob_array([f"{media.allowed}/clip", f"{media.secret}/key"])], pa.schema([blob_field("b")]))
        lance.write_dataset(rows, str(root / "based"), data_storage_version="2.2", initial_bases=bases)
        namespace = DirectoryNamespace(
            root=str(root),
            durability="none",
            allowed_locations=f"{media.allowed},{media.secret}",
            blob_locations=str(media.allowed),
        )
        with served(namespace) as url, httpx.Client(base_url=url, timeout=60) as client:
            client.post("/v1/table/w$based/register", json={"location": "based"}).raise_for_status()
            assert _value(client.get("/v1/table/w$based/blob/b/0/bytes")) == b"0123456789"
            _refused(client.get("/v1/table/w$based/blob/b/1/bytes"), 403, 15, "outside the blob_locations")

    @pytest.mark.parametrize("linked", ["file", "directory"])
    def test_by_a_link_in_the_place_of_one_of_the_table(self, http: httpx.Client, media: Media, linked: str) -> None:
        """Somebody who can write into the directory of the table does not read by that what the server can."""
        name = f"linked-{linked}"
        _write(media.url, name, _rows([PACKED]), "2.2")
        route = f"/v1/table/w${name}"
        assert _value(http.get(f"{route}/blob/b/0/bytes")) == PACKED
        table = Path(http.post(f"{route}/describe", json={}).json()["location"].removeprefix("file://"))
        for file in list((table / "data").glob("*/*.blob")):
            if linked == "file":
                (media.secret / "large").write_bytes(bytes(1 << 20))
                file.unlink()
                file.symlink_to(media.secret / "large")
            elif not file.parent.is_symlink():
                moved = file.parent.rename(media.secret / file.parent.name)
                file.parent.symlink_to(moved)
        _refused(http.get(f"{route}/blob/b/0/bytes"), 403, 15, "outside the blob_locations")
        many = http.post(f"{route}/fetch_blobs", json={"column": "b", "row_ids": [0]})
        _refused(many, 403, 15, "outside the blob_locations")

    def test_of_the_table_that_is_lost_is_an_error_without_its_path(self, http: httpx.Client, media: Media) -> None:
        _write(media.url, "lost", _rows([PACKED]), "2.2")
        table = Path(http.post("/v1/table/w$lost/describe", json={}).json()["location"].removeprefix("file://"))
        for file in (table / "data").glob("*/*.blob"):
            file.unlink()
        answer = http.get("/v1/table/w$lost/blob/b/0/bytes")
        _refused(answer, 500, 18, "read_blob of w.lost")
        assert str(table) not in answer.text
        assert str(table)[1:] not in answer.text

    def test_that_is_gone_is_an_error(self, http: httpx.Client, media: Media) -> None:
        gone = media.allowed / "gone"
        gone.write_bytes(b"x")
        table = _outside(media, "gone-file", f"file://{gone}")
        assert _value(http.get(f"{table}/blob/b/0/bytes")) == b"x"
        gone.unlink()
        _refused(http.get(f"{table}/blob/b/0/bytes"), 403, 15, "expected a regular file, found none")

    def test_that_becomes_shorter_breaks_the_answer_off(self, http: httpx.Client, media: Media) -> None:
        shrinking = media.allowed / "shrinking"
        shrinking.write_bytes(bytes(64 << 20))
        table = _outside(media, "shrinking", f"file://{shrinking}")
        with http.stream("GET", f"{table}/blob/b/0/bytes") as answer:
            pieces = answer.iter_raw(1 << 16)
            next(pieces)
            os.truncate(shrinking, 1 << 10)
            with pytest.raises(httpx.RemoteProtocolError):
                list(pieces)


def _has_ended(answer: httpx.Response) -> bool:
    """Whether an answer ends within what the connection may hold, before its announced end."""
    read = 0
    try:
        for piece in answer.iter_raw():
            read += len(piece)
            if read > 64 << 20:
                return False
    except httpx.RemoteProtocolError:
        return True
    return False


class TestStreams:
    def test_a_long_blob_takes_no_memory_of_its_length(self, http: httpx.Client, media: Media) -> None:
        """A part of one of 4 GiB; the whole of it takes as much, and longer."""
        table = _outside(media, "long", f"file://{media.allowed}/long")
        end = http.get(f"{table}/blob/b/0/bytes", headers={"Range": "bytes=-4"})
        assert (end.content, end.headers["content-range"]) == (b"last", f"bytes {LONG - 4}-{LONG - 1}/{LONG}")
        assert int(http.head(f"{table}/blob/b/0/bytes").headers["content-length"]) == LONG
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        before, length = peak("self"), 0
        part = 320 << 20
        with http.stream("GET", f"{table}/blob/b/0/bytes", headers={"Range": f"bytes=1-{part}"}) as answer:
            for piece in answer.iter_raw(1 << 20):
                length += len(piece)
        assert length == part
        assert peak("self") - before < 100

    def test_a_slow_client_holds_no_worker_and_little_memory(
        self, http: httpx.Client, media: Media, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """While it does not read, no job is done for it; when it goes on it has all bytes."""
        table, part = _outside(media, "slow", f"file://{media.allowed}/long"), 128 << 20
        jobs = _jobs(monkeypatch)
        with http.stream("GET", f"{table}/blob/b/0/bytes", headers={"Range": f"bytes=-{part}"}) as answer:
            pieces = answer.iter_raw(1 << 16)
            found = [next(pieces)]
            time.sleep(1.0)
            done = sum(jobs)
            assert done < 48 << 20
            time.sleep(0.5)
            assert sum(jobs) == done
            found += pieces
        data = b"".join(found)
        assert (len(data), data[-4:], data.count(0)) == (part, b"last", part - 4)
        assert sum(jobs) == part

    def test_clients_that_stall_make_room_for_others(
        self, http: httpx.Client, media: Media, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The room is made small for it: by default some 500 of them would fill it."""
        spaces: set[PieceSpace] = set()
        try_hold = PieceSpace.try_hold

        def noted(space: PieceSpace, *arguments: Any, **given: Any) -> bool:
            spaces.add(space)
            return try_hold(space, *arguments, **given)

        monkeypatch.setattr(PieceSpace, "try_hold", noted)
        monkeypatch.setattr(blob_pieces, "_STALLED", 0.3)
        table = _outside(media, "stalled", f"file://{media.allowed}/long")
        assert len(http.get(f"{table}/blob/b/0/bytes", headers={"range": "bytes=-4"}).content) == 4
        [space] = spaces
        taken = space._left - 3 * (256 << 10)
        space._left -= taken
        try:
            with ExitStack() as stack:
                stalled = [stack.enter_context(http.stream("GET", f"{table}/blob/b/0/bytes")) for _ in range(3)]
                time.sleep(0.5)
                read = http.get(f"{table}/blob/b/0/bytes", headers={"range": f"bytes=-{4 << 20}"})
                assert (read.status_code, len(read.content)) == (206, 4 << 20)
                assert any(_has_ended(each) for each in stalled)
        finally:
            space._left += taken

    def test_work_ends_when_the_client_goes(
        self, http: httpx.Client, media: Media, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        table = _outside(media, "left", f"file://{media.allowed}/long")
        jobs = _jobs(monkeypatch)
        with http.stream("GET", f"{table}/blob/b/0/bytes") as answer:
            next(answer.iter_raw(1 << 16))
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            done = len(jobs)
            time.sleep(0.5)
            if len(jobs) == done:
                break
        assert len(jobs) == done
        assert sum(jobs) < 1 << 30

    def test_requests_that_are_broken_off_cost_no_worker(
        self, http: httpx.Client, media: Media, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """So do players at each jump in a video."""
        pools: set[ReadPool] = set()
        value = ReadPool.value

        async def noted(pool: ReadPool, *arguments: Any) -> Any:
            pools.add(pool)
            return await value(pool, *arguments)

        monkeypatch.setattr(ReadPool, "value", noted)
        table = _outside(media, "jumps", f"file://{media.allowed}/long")
        http.head(f"{table}/blob/b/0/bytes")
        [pool] = pools
        before = pool.state.lost
        for jump in range(20):
            with http.stream("GET", f"{table}/blob/b/0/bytes", headers={"Range": f"bytes={jump << 20}-"}) as answer:
                next(answer.iter_raw(1 << 10))
        assert http.get(f"{table}/blob/b/0/bytes", headers={"Range": "bytes=-4"}).content == b"last"
        assert pool.state.lost == before

    def test_many_at_once_are_all_whole(self, http: httpx.Client) -> None:
        failures: list[str] = []

        def read() -> None:
            answer = http.get(f"{V2}/blob/b/2/bytes")
            if answer.content != DEDICATED:
                failures.append(answer.text[:100])

        readers = [threading.Thread(target=read) for _ in range(16)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        assert not failures


def _jobs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of the parts that workers are asked for from now on."""
    lengths: list[int] = []
    value = ReadPool.value

    async def counted(pool: ReadPool, job: Any, *arguments: Any) -> Any:
        if job.operation == "read_blob":
            lengths.append(job.request["length"])
        return await value(pool, job, *arguments)

    monkeypatch.setattr(ReadPool, "value", counted)
    return lengths
