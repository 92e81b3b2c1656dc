"""`fetch_blobs` and `fetch_blob_files` of the remote client."""

from __future__ import annotations

import os
from pathlib import Path

import lancedb
import pyarrow as pa
import pytest
from lance.blob import blob_array, blob_field

from namespace_client import Catalog
from tests.running import running

LONG = os.urandom(5_000_000)
VALUES = [b"short", os.urandom(200_000), LONG, None, b""]


def test_the_client_fetches_blobs(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", pa.int64()), blob_field("b")])
    with running(tmp_path) as url:
        with Catalog.connect(url, namespace="shop") as catalog:
            catalog.ensure_namespace()
            catalog.create("t", pa.table([pa.array(range(5)), blob_array(VALUES)], schema))
        table = lancedb.connect("db://shop", api_key="key", host_override=url).open_table("t")
        assert table.blob_columns() == ["b"]
        rows = [3, 0, 4, 1, 2, 0]
        assert table.fetch_blobs("b", rows).to_pylist() == [VALUES[row] for row in rows]
        # More than 64 MiB are split by the client.
        assert [len(value or b"") for value in table.fetch_blobs("b", [2, 3] * 14).to_pylist()] == [len(LONG), 0] * 14
        null, empty, long = table.fetch_blob_files("b", [3, 4, 2])
        assert null is None
        assert (empty.size(), empty.read()) == (0, b"")
        assert (long.size(), long.read(5), long.read_range(10, 5)) == (len(LONG), LONG[:5], LONG[10:15])
        long.seek(0)
        assert long.read() == LONG
        for fetch in (table.fetch_blobs, table.fetch_blob_files):
            with pytest.raises(Exception, match="expected row 99, found none"):
                fetch("b", [99])
            with pytest.raises(Exception, match="blob"):
                fetch("id", [0])
