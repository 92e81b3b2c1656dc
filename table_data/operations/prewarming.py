"""Hints: what queries will need is loaded before they come."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from table_data.batch_operations import Result
from table_data.errors import IndexNotFound, InvalidCall
from table_data.operations.kinds import Reads

if TYPE_CHECKING:
    import lance

    from table_data.requests.table_requests import DescribeIndex, PrewarmPages

_SECONDS: Final = 20.0
"""For which data is read at most."""


def prewarm_table_index(dataset: lance.LanceDataset, request: DescribeIndex) -> Result:
    """Load an index into the memory of this process, which keeps the table open. Raises `IndexNotFound`."""
    name = request["index_name"]
    if all(index.name != name for index in dataset.describe_indices()):
        raise IndexNotFound(f"index {name[:200]!r}: expected one of the table's, found none of this name")
    dataset.prewarm_index(name)
    return {}


def prewarm_table_pages(dataset: lance.LanceDataset, request: PrewarmPages) -> Result:
    """Read columns, all without any named, so that the system has their files in memory; for some seconds at most.

    Of a table in a bucket no data is kept in memory, so that none is read. Raises `InvalidCall` for other columns.
    """
    wanted = request.get("columns") or list(dataset.schema.names)
    unknown = [name for name in wanted if name not in dataset.schema.names]
    if unknown:
        raise InvalidCall(f"columns: expected some of the table's, found {unknown[0][:80]!r}")
    if urlsplit(dataset.uri).scheme not in {"", "file"}:
        return {}
    end = time.monotonic() + _SECONDS
    for _ in dataset.scanner(columns=wanted, batch_size_bytes=4 << 20, io_buffer_size=64 << 20).to_batches():
        if time.monotonic() > end:
            break
    return {}


READS: Reads = {"prewarm_table_index": prewarm_table_index, "prewarm_table_pages": prewarm_table_pages}
