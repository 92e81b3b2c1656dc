"""Bodies that break in every way: typed answers, nothing changed, and the next request is served."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator

import httpx
import numpy as np
import pyarrow as pa
import pytest

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
