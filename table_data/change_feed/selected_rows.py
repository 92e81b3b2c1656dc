"""Changed rows among those of a fragment, and the columns that tell their change."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from table_data.change_feed.version_changes import ChangedFragment, RowIds
from table_data.errors import InvalidCall

CHANGE_TYPE: Final = "_change_type"
COMMIT_VERSION: Final = "_commit_version"
COMMIT_TIMESTAMP: Final = "_commit_timestamp"
CHANGED_ROW: Final = "_row_id"
"""Stable id of a changed row. Lance reserves the name `_rowid`, so that changes could not be stored in a table."""
ROW_ID: Final = "_rowid"

TIMESTAMP: Final = pa.timestamp("us", "UTC")
_MICROSECONDS: Final = 1000
_SPARSE: Final = 16
"""A fragment of more than this number of rows for each changed one is not read as a whole."""
_MAX_IDS: Final = 8192
"""Ids in one filter."""

ReadRows = Callable[[Sequence[str], str | None], Iterator[pa.RecordBatch]]
"""Reads columns of the rows of some fragments that match a filter, or of all."""


def is_sparse(fragment: ChangedFragment) -> bool:
    """Whether the changed rows are so few of their fragment that they are looked up."""
    return fragment.rows * _SPARSE < fragment.among


def refuse_taken(name: str, stored: Collection[str], added: Collection[str]) -> None:
    """Raise `InvalidCall` if a table, called `name` in the message, has columns with names of those that are added."""
    taken = sorted({*stored} & {*added})
    if taken:
        raise InvalidCall(f"{name}: expected no column of the name {', '.join(taken)}, which changes add")


def rows_with_ids(ids: RowIds, names: Sequence[str], read: ReadRows, *, sparse: bool) -> Iterator[pa.RecordBatch]:
    """The rows with these ids. Those that are `sparse` are sought by filters, others among all that `read` gives."""
    wanted = np.frombuffer(ids, "<u8")
    if not sparse:
        for batch in read((*names, ROW_ID), None):
            found = batch.column(ROW_ID).to_numpy().view(np.uint64)
            yield batch.filter(pa.array(np.isin(found, wanted)))
        return
    for start in range(0, len(wanted), _MAX_IDS):
        listed = ", ".join(map(str, wanted[start : start + _MAX_IDS].tolist()))
        yield from read(names, f"{ROW_ID} IN ({listed})")


def repeated_version(version: int, rows: int) -> pa.Array:
    """The number of a version for each of some rows."""
    return pa.repeat(pa.scalar(version, pa.int64()), rows)


def repeated_time(milliseconds: int, rows: int) -> pa.Array:
    """The time of a commit for each of some rows."""
    return pa.repeat(pa.scalar(milliseconds * _MICROSECONDS, TIMESTAMP), rows)
