"""Reads of one version of a table: queries and their plans, numbers of rows, statistics; and hints of reads to come."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote, urlsplit

import pyarrow as pa

from table_data.arrow.batch_sizes import batch_rows, in_fewer_rows
from table_data.batch_operations import Result
from table_data.errors import IndexNotFound, InvalidCall
from table_data.queries import fusion
from table_data.queries.scans import scan_of

if TYPE_CHECKING:
    import lance

    from table_data.requests.table_requests import (
        CountRows,
        DescribeIndex,
        Explain,
        PrewarmPages,
        QueryTable,
        ReadRequest,
    )

_URI = re.compile(r"\buri=[^\n]*?(?=, \w+=|$)", re.MULTILINE)
_ROW_ID: Final = "_rowid"
_SMALL_FRAGMENT = 1 << 20
"""Rows from which a fragment is not small. Pylance compacts to fragments of this size."""


def query_table(dataset: lance.LanceDataset, request: QueryTable) -> pa.RecordBatchReader:
    """The rows of a scan or a search."""
    scan = scan_of(dataset, request)
    if scan.is_fused:
        return fusion.fused(dataset, scan).to_reader()
    reader = scan.scanner(dataset).to_reader()
    if scan.is_search and not scan.hides_row_id:
        return reader
    batches: Iterable[pa.RecordBatch] = reader
    if not scan.is_search:
        batches = in_fewer_rows(reader, lambda most: scan.scanner(dataset, most).to_reader())
    if not scan.hides_row_id or _ROW_ID in (scan.columns or ()):
        return pa.RecordBatchReader.from_batches(reader.schema, batches)
    names = [name for name in reader.schema.names if name != _ROW_ID]
    schema = pa.schema([reader.schema.field(name) for name in names], reader.schema.metadata)
    return pa.RecordBatchReader.from_batches(schema, (batch.select(names) for batch in batches))


def explain_table_query_plan(dataset: lance.LanceDataset, request: Explain) -> str:
    """The plan of a query."""
    verbose = bool(request.get("verbose"))
    return _plan_text(dataset, request["query"], lambda scanner: scanner.explain_plan(verbose=verbose))


def analyze_table_query_plan(dataset: lance.LanceDataset, request: QueryTable) -> str:
    """The plan of a query with what it took to do it. The query is done; its rows are not kept."""
    return _plan_text(dataset, request, lambda scanner: scanner.analyze_plan())


def count_table_rows(dataset: lance.LanceDataset, request: CountRows) -> int:
    """The number of rows that match `predicate`, of all rows without one."""
    predicate = request.get("predicate")
    if predicate is None:
        return int(dataset.count_rows())
    # A scanner takes four fifths of the time of `count_rows` with a filter.
    rows = batch_rows(dataset.schema, [predicate])
    return int(dataset.scanner(columns=[], filter=predicate, with_row_id=True, batch_size=rows).count_rows())


def get_table_stats(dataset: lance.LanceDataset, _request: ReadRequest) -> Result:
    """Bytes of the columns, rows, indices, and the sizes of fragments in rows (deleted ones included)."""
    lengths = sorted(fragment.physical_rows for fragment in dataset.get_fragments())
    return {
        "total_bytes": sum(field.bytes_on_disk for field in dataset.stats.data_stats().fields),
        "num_rows": dataset.count_rows(),
        "num_indices": len(dataset.describe_indices()),
        "fragment_stats": {
            "num_fragments": len(lengths),
            "num_small_fragments": sum(length < _SMALL_FRAGMENT for length in lengths),
            "lengths": {
                "min": lengths[0] if lengths else 0,
                "max": lengths[-1] if lengths else 0,
                "mean": sum(lengths) // len(lengths) if lengths else 0,
                **{f"p{percent}": _percentile(lengths, percent) for percent in (25, 50, 75, 99)},
            },
        },
    }


def _percentile(ascending: Sequence[int], percent: int) -> int:
    return ascending[(len(ascending) - 1) * percent // 100] if ascending else 0


def _plan_text(dataset: lance.LanceDataset, request: QueryTable, text: Callable[[lance.LanceScanner], str]) -> str:
    """The plan of a QueryTable request, as `text` gets it of a scanner; paths are left out.

    A query that takes several searches has the plan of each.
    """
    scan = scan_of(dataset, request)
    plan = fusion.plan_of(dataset, scan, text) if scan.is_fused else text(scan.scanner(dataset))
    return _without_paths(plan, dataset.uri)


def _without_paths(plan: str, uri: str) -> str:
    """The plan without the location of the table, in any of the forms that pylance writes it in."""
    split = urlsplit(uri)
    path = (split.path if split.scheme else uri).rstrip("/")
    forms = {uri.rstrip("/"), path, path.lstrip("/")}
    forms |= {unquote(form) for form in forms} | {quote(form) for form in forms}
    for form in sorted(filter(None, forms), key=len, reverse=True):
        plan = plan.replace(form, "(table)")
    return _URI.sub("uri=(table)", plan)


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
