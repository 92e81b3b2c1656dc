"""Bodies that break in every way: typed answers, nothing changed, and the next request is served."""

from __future__ import annotations

import gzip
import io
import json
import socket
import struct
import time
from collections.abc import Iterator
from http.client import HTTPResponse

import httpx
import numpy as np
import pyarrow as pa
import pytest

from table_data.arrow.body import ArrowBody
from tests.data.arrow import ARROW, file, files, location, read, stream

LENGTH = 123_457
ROWS = pa.table({"a": [1, 2], "s": ["x", "y"]})
LONG = pa.table({"a": np.arange(LENGTH), "s": ["text"] * LENGTH})


def replaced(data: bytes, old: bytes, new: bytes) -> bytes:
    assert old in data
    return data.replace(old, new)


def claiming_rows(rows: int) -> bytes:
    return replaced(stream(LONG), struct.pack("<q", LENGTH), struct.pack("<q", rows))


def claiming_body(size: int) -> bytes:
    data = stream(LONG)
    reader = pa.BufferReader(data)
    pa.ipc.read_message(reader)
    body = pa.ipc.read_message(reader).body.size
    return replaced(data, struct.pack("<q", body), struct.pack("<q", size))


def compressed(size: int) -> bytes:
    """One buffer says that it has `size` bytes when it is not compressed."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, LONG.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(LONG)
    return replaced(sink.getvalue(), struct.pack("<q", LENGTH * 8), struct.pack("<q", size))


def dictionary(indices: list[int]) -> bytes:
    array = pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), ["p", "q"], safe=False)
    return stream(pa.table({"a": [1] * len(indices), "s": array}))


def offsets(last: int) -> bytes:
    rows = pa.table({"a": [1, 2], "s": ["x" * 1111, "y" * 1111]})
    return replaced(stream(rows), struct.pack("<iii", 0, 1111, 2222), struct.pack("<iii", 0, 1111, last))


def nested(depth: int) -> bytes:
    kind = pa.int64()
    for _ in range(depth):
        kind = pa.list_(kind)
    return stream(pa.schema([("a", kind)]).empty_table())


def double() -> bytes:
    return stream(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]))


WHOLE, WHOLE_FILE = stream(LONG), file(LONG)
BODIES = {
    **{f"cut at {part} eighths": WHOLE[: len(WHOLE) * part // 8] for part in range(8)},
    **{f"file cut at {part} eighths": WHOLE_FILE[: len(WHOLE_FILE) * part // 8] for part in range(1, 8)},
    "magic": b"ARROW2\0\0" + WHOLE_FILE[8:],
    "two streams": stream(ROWS) + stream(ROWS),
    "two long streams": WHOLE + WHOLE,
    "bytes after its end": stream(ROWS) + b"more",
    "two files": file(ROWS) + file(ROWS),
    "two long files": WHOLE_FILE + WHOLE_FILE,
    "a file and a stream": file(ROWS) + stream(ROWS),
    "bytes after a file": file(ROWS) + b"more",
    "a file without its last byte": WHOLE_FILE[:-1],
    "only magic": b"ARROW1\0\0",
    "zeros": bytes(1 << 20),
    "all ones": b"\xff" * (1 << 20),
    "json": b'{"a": 1}',
    "metadata of 2 GiB": b"\xff\xff\xff\xff" + struct.pack("<i", 0x7FFFFFF8) + WHOLE[8:],
    "metadata of -8": b"\xff\xff\xff\xff" + struct.pack("<i", -8) + WHOLE[8:],
    "2^31 rows": claiming_rows(1 << 31),
    "2^62 rows": claiming_rows(1 << 62),
    "-1 rows": claiming_rows(-1),
    "body of 4 GiB": claiming_body(4 << 30),
    "body of 1 TiB": claiming_body(1 << 40),
    "body of -8": claiming_body(-8),
    "buffer of 1 TiB": compressed(1 << 40),
    "buffer of -2": compressed(-2),
    "dictionary ids": dictionary([0, 1, 77]),
    "negative dictionary ids": dictionary([0, -5]),
    "offsets beyond": offsets(1 << 30),
    "offsets backwards": offsets(5),
    "nested 200 deep": nested(200),
    "no columns": stream(pa.table({})),
    "a name twice": double(),
    "no utf-8": replaced(stream(ROWS), b"xy\0\0\0\0\0\0", b"\xff\xfe\0\0\0\0\0\0"),
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
@pytest.mark.parametrize("route", ["insert", "merge_insert?on=a&when_matched_update_all=true"])
def test_a_hostile_body_is_refused(url: str, http: httpx.Client, table: str, body: bytes, route: str) -> None:
    before = files(location(http, table))
    answer = http.post(f"{table}/{route}", content=body, headers=ARROW)
    assert answer.status_code == 400, answer.text
    assert answer.json()["code"] in {13, 20}, answer.text
    assert len(answer.text) < 2000
    assert not any(word in answer.text for word in (".rs", "/home", "/tmp", "/work", "Traceback"))
    assert read(url, table).to_pydict() == ROWS.to_pydict()
    assert files(location(http, table)) == before


def test_the_worker_is_the_same_after_all(http: httpx.Client, table: str) -> None:
    assert http.post(f"{table}/insert", content=stream(ROWS), headers=ARROW).json()["version"] == 2


def test_a_body_that_never_ends_is_refused_where_it_breaks(http: httpx.Client, table: str) -> None:
    def endless() -> Iterator[bytes]:
        yield stream(ROWS)[:-8]
        for _ in range(1000):
            yield b"\x01" * 65536

    answer = http.post(f"{table}/insert", content=endless(), headers=ARROW)
    assert (answer.status_code, answer.json()["code"]) == (400, 13)


_RUNS = pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), pa.array([1, 2]))
UNKNOWN_TYPES = {
    "run ends": _RUNS,
    "nested": pa.StructArray.from_arrays([_RUNS], ["runs"]),
    "view": pa.array([[1], [2]], pa.list_view(pa.int64())),
    "interval": pa.array([(1, 2, 3)] * 2, pa.month_day_nano_interval()),
    "decimal": pa.array([1, 2], pa.decimal64(12, 1)),
    "union": pa.UnionArray.from_sparse(pa.array([0, 0], pa.int8()), [pa.array([1, 2])]),
}


@pytest.mark.parametrize("values", UNKNOWN_TYPES.values(), ids=UNKNOWN_TYPES.keys())
@pytest.mark.parametrize("route", ["new/create", "insert", "merge_insert?on=a&when_matched_update_all=true"])
def test_a_type_that_lance_does_not_have_is_named(http: httpx.Client, table: str, route: str, values: pa.Array) -> None:
    path = f"/v1/table/w$unknown-types/{route[4:]}" if route.startswith("new") else f"{table}/{route}"
    answer = http.post(path, content=stream(pa.table({"a": [1, 2], "s": values})), headers=ARROW)
    assert (answer.status_code, answer.json()["code"]) == (400, 13), answer.text
    assert f"column 's' has type {values.type}" in answer.json()["error"]


@pytest.mark.parametrize("route", ["insert", "stage?mode=append", "count_rows", "describe"])
def test_a_body_that_is_compressed_as_a_whole_is_refused(http: httpx.Client, table: str, route: str) -> None:
    rows = not route.startswith(("count", "describe"))
    body, kind = (stream(ROWS), ARROW) if rows else (b"{}", {"content-type": "application/json"})
    refused = http.post(f"{table}/{route}", content=gzip.compress(body), headers={**kind, "content-encoding": "gzip"})
    assert (refused.status_code, refused.json()["code"]) == (400, 13), refused.text
    assert refused.json()["error"] == "content-encoding: expected none, found 'gzip'"
    plain = http.post(f"{table}/{route}", content=body, headers={**kind, "content-encoding": "identity"})
    assert plain.status_code == 200, plain.text


@pytest.mark.parametrize("route", ["insert", "count_rows", "describe"])
@pytest.mark.parametrize("chunks", [b"zz\r\n", b"-1\r\n", b"5\r\nabcdeXX", b"f" * 18 + b"\r\n"])
def test_malformed_chunks_are_refused(url: str, http: httpx.Client, table: str, route: str, chunks: bytes) -> None:
    kind = ARROW["content-type"] if route == "insert" else "application/json"
    head = f"POST {table}/{route} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked"
    port = httpx.URL(url).port
    with socket.create_connection(("127.0.0.1", port or 80), timeout=30) as connection:
        connection.sendall(head.encode() + b"\r\n\r\n" + chunks)
        answer = HTTPResponse(connection)
        answer.begin()
        assert (answer.status, json.loads(answer.read())["code"]) == (400, 13)
    assert http.post(f"{table}/count_rows", json={}).json() == ROWS.num_rows


def test_many_columns_take_no_time_of_their_own() -> None:
    """The check of names took the square of their number: a minute for these."""
    wide = pa.table({f"c{number}": pa.nulls(1, pa.int8()) for number in range(20_000)})
    began = time.monotonic()
    ArrowBody(pa.py_buffer(stream(wide))).rows()
    assert time.monotonic() - began < 5
