"""Rows of a table that only one of two catalog versions has: how many, and some of them side by side.

Files of a table never change. So rows differ in the fragments alone that only one version has, and in those of which
one version has fewer rows: the lists of fragments say which these are, and at which places of a scan their rows come.
Of a fragment that lost rows the ids of its rows tell which ones. Only then values are compared.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lance_core.amounts import counted
from namespace_client.access import CatalogAccess
from namespace_client.display import ShownAsTable, folded, number, visible
from namespace_client.names import Name
from namespace_client.row_pages import COLUMNS, MOST_BYTES, PageRow, RowColumn, column_path, shown_columns, shown_rows
from namespace_client.row_streams import RowsTooLong
from namespace_client.table_overview import FragmentOverview, fragment_page, is_blob, table_schema
from table_data.batch_operations import Json, TableId
from table_data.errors import require_count
from table_data.values.written import json_column

ROWS: Final = 20
"""Rows of each side of a sample."""
COMPARED: Final = 5_000
"""Rows whose values are compared, on either side."""
_MOST_IDS: Final = 1_000_000
"""Rows of fragments that lost some, on either side: the ids of all are read."""
_ID_BYTES: Final = 16
_MOST_RUNS: Final = 100
"""Runs of rows that lie apart from each other: each is a query."""
_FRAGMENTS: Final = 1_000
"""Fragments of a page of their list."""
_BYTES: Final = 256
"""Bytes of a row that are reckoned with, where many are compared."""
_IDS_AT_ONCE: Final = 1_000
_ROW_ID: Final = "_rowid"
_WIDEST: Final = 60
_OF_BLOBS: Final = ("size", "blob_uri")
"""What tells two blobs apart; where they lie changes when they are written again."""

_Ids = np.ndarray[Any, np.dtype[np.uint64]]


@dataclass(frozen=True, slots=True, repr=False)
class RowDiff(ShownAsTable):
    """How the rows of a table differ between two catalog versions. As text it is a table.

    Rows are compared in the columns that both versions have; blobs by their size.

    Attributes:
        name: Path of the table, in the later version.
        before: The earlier catalog version.
        after: The later one.
        num_before: Rows of the table in the earlier one.
        num_after: Rows in the later one.
        num_removed: Rows that only the earlier one has; None if they were not compared.
        num_added: Rows that only the later one has; None if they were not compared. A changed row is among both.
        removed_rows: The first of those that only the earlier one has.
        added_rows: The first of those that only the later one has.
        not_compared: Why they were not compared, None if they were.
    """

    name: Name
    before: int
    after: int
    num_before: int
    num_after: int
    num_removed: int | None
    num_added: int | None
    removed_rows: pa.Table
    added_rows: pa.Table
    not_compared: str | None = None

    @property
    def columns(self) -> tuple[RowColumn, ...]:
        """The columns that are shown: the first 40 of those that both have."""
        return shown_columns(self.added_rows.schema)[:COLUMNS]

    @property
    def removed(self) -> tuple[PageRow, ...]:
        """`removed_rows` as they are shown."""
        return shown_rows(self.removed_rows.select(range(len(self.columns))))

    @property
    def added(self) -> tuple[PageRow, ...]:
        """`added_rows` as they are shown."""
        return shown_rows(self.added_rows.select(range(len(self.columns))))

    def _headers(self) -> Sequence[str]:
        return "", *(visible(each.name) for each in self.columns)

    def _title(self) -> str:
        rows = f"{visible(str(self.name))}: {counted(self.num_before, 'row')}, now {number(self.num_after)}"
        if self.not_compared is not None:
            return f"{rows}; {self.not_compared}"
        return f"{rows}; {number(self.num_added)} added, {number(self.num_removed)} removed"

    def _rows(self) -> Iterator[tuple[object, ...]]:
        for sign, rows in (("-", self.removed), ("+", self.added)):
            for row in rows:
                yield (sign, *(folded(visible(cell.text), _WIDEST) for cell in row.cells))


def compare_rows(
    access: CatalogAccess,
    table_id: TableId,
    before: int,
    after: int,
    *,
    old_id: TableId | None = None,
    limit: int = ROWS,
    compared: int = COMPARED,
) -> RowDiff:
    """Compare the rows of a table in two catalog versions, exactly or not at all.

    Args:
        access: The catalog.
        table_id: Path of the table in the later version.
        before: The earlier catalog version.
        after: The later one.
        old_id: Path of the table in the earlier version, if it is another one.
        limit: How many rows of each side are given at most.
        compared: How many rows are read of either version at most, where values have to be compared: of 16 MiB
            together, or of 256 bytes each if that is more. Rows that were only added, or only removed, are counted.

    Raises `CommitRejected`, `AccessRefused`, `CatalogUnreachable`; `NotFound` without a version on either side.
    """
    require_count("limit", limit)
    require_count("compared", compared)
    old = _ComparedVersion.found(access, table_id if old_id is None else old_id, before)
    new = _ComparedVersion.found(access, table_id, after)
    most_bytes = max(MOST_BYTES, compared * _BYTES)
    columns = [name for name in new.schema.names if name in old.schema.names]
    num_removed, num_added, reason = None, None, None
    try:
        removed, added = _differing(old, new, columns)
        num_removed, num_added = removed.count, added.count
        if num_removed and num_added:
            if max(num_removed, num_added) > compared:
                raise _NotCompared(f"{max(num_removed, num_added):,} may differ, of at most {compared:,}")
            was, now = old.read(removed, columns, most_bytes), new.read(added, columns, most_bytes)
            gone, come = _only(was, now), _only(now, was)
            num_removed, num_added = gone.num_rows, come.num_rows
        else:
            gone = old.read(removed.first(limit), columns, most_bytes)
            come = new.read(added.first(limit), columns, most_bytes)
    except (_NotCompared, RowsTooLong) as error:
        num_removed, num_added, reason = None, None, f"rows are not compared: {error}"
        gone, come = old.empty(columns), new.empty(columns)
    return RowDiff(
        Name(table_id),
        before,
        after,
        old.count,
        new.count,
        num_removed,
        num_added,
        gone.slice(0, limit),
        come.slice(0, limit),
        reason,
    )


class _NotCompared(Exception):
    """There are too many rows, or too many places of them."""


@dataclass(frozen=True, slots=True)
class _Places:
    """Rows of a version: runs of a scan, each with its first place and its length, and the ids of further rows."""

    runs: tuple[tuple[int, int], ...] = ()
    ids: _Ids = field(default_factory=lambda: np.empty(0, np.uint64))

    @property
    def count(self) -> int:
        """How many rows there are."""
        return sum(length for _, length in self.runs) + len(self.ids)

    def first(self, limit: int) -> _Places:
        """The first of them."""
        runs, left = [], limit
        for start, length in self.runs:
            if left:
                runs.append((start, min(length, left)))
                left -= runs[-1][1]
        return _Places(tuple(runs), self.ids[:left])


@dataclass(frozen=True, slots=True)
class _ComparedVersion:
    """A version of the table: its schema and its fragments, in the order in which a scan reads their rows."""

    access: CatalogAccess
    table_id: TableId
    at: int
    schema: pa.Schema
    fragments: tuple[FragmentOverview, ...]

    @classmethod
    def found(cls, access: CatalogAccess, table_id: TableId, at: int) -> _ComparedVersion:
        """That of a catalog version: a request for the schema, and one for each 1,000 fragments."""
        fragments: list[FragmentOverview] = []
        after: str | None = None
        while True:
            page = fragment_page(access, table_id, at, after=after, limit=_FRAGMENTS)
            fragments += page.fragments
            after = page.next
            if after is None:
                return cls(access, table_id, at, table_schema(access, table_id, at, {}), tuple(fragments))

    @property
    def count(self) -> int:
        """Rows of the version."""
        return sum(each.rows for each in self.fragments)

    def runs(self, wanted: Collection[int]) -> tuple[tuple[int, int], ...]:
        """The rows of fragments, by their places among the fragments. Raises `_NotCompared` for too many runs."""
        found: list[tuple[int, int]] = []
        start = 0
        for place, each in enumerate(self.fragments):
            if place in wanted and each.rows:
                if found and sum(found[-1]) == start:
                    found[-1] = (found[-1][0], found[-1][1] + each.rows)
                else:
                    found.append((start, each.rows))
            start += each.rows
        if len(found) > _MOST_RUNS:
            raise _NotCompared(f"they lie in {len(found):,} places, of at most {_MOST_RUNS}")
        return tuple(found)

    def row_ids(self, wanted: Collection[int]) -> _Ids:
        """The ids of the rows of fragments. Raises `_NotCompared` for too many."""
        places = _Places(self.runs(wanted))
        if places.count > _MOST_IDS:
            raise _NotCompared(f"{places.count:,} are in files of which some were deleted, of at most {_MOST_IDS:,}")
        if not places.count:
            return np.empty(0, np.uint64)
        found = self.read(places, [_ROW_ID], _MOST_IDS * _ID_BYTES)
        ids: _Ids = found.column(_ROW_ID).to_numpy().astype(np.uint64)
        return ids

    def read(self, places: _Places, columns: Sequence[str], most: int) -> pa.Table:
        """Rows in some columns. Raises `RowsTooLong` for more than `most` bytes of them."""
        shown = {"columns": {"column_names": [column_path(name) for name in columns]}}
        requests: list[Json] = [{"k": length, "offset": start} for start, length in places.runs]
        for start in range(0, len(places.ids), _IDS_AT_ONCE):
            ids = places.ids[start : start + _IDS_AT_ONCE].tolist()
            requests.append({"k": len(ids), "filter": f"{_ROW_ID} IN ({', '.join(map(str, ids))})"})
        left, parts = most, []
        for request in requests:
            parts.append(self.access.query(self.table_id, request | shown, at=self.at, most=max(left, 1)).read_all())
            left -= parts[-1].nbytes
        return pa.concat_tables(parts) if parts else self.empty(columns)

    def empty(self, columns: Sequence[str]) -> pa.Table:
        """No rows."""
        return pa.schema([self.schema.field(name) for name in columns]).empty_table()


def _differing(old: _ComparedVersion, new: _ComparedVersion, columns: Sequence[str]) -> tuple[_Places, _Places]:
    """Rows of both versions beyond which they have the same ones."""
    if not columns:
        raise _NotCompared("the versions have no column in common")
    was, now = _by_files(old.fragments, columns), _by_files(new.fragments, columns)
    if [old.schema.field(name) for name in old.schema.names if name in columns] != [*map(new.schema.field, columns)]:
        was = {("before", key): place for key, place in was.items()}  # renamed or cast: no file is alike
    thinned = [
        (place, now[key])
        for key, place in was.items()
        if key in now and old.fragments[place].deletion_file != new.fragments[now[key]].deletion_file
    ]
    before, after = old.row_ids({place for place, _ in thinned}), new.row_ids({place for _, place in thinned})
    return (
        _Places(old.runs({place for key, place in was.items() if key not in now}), np.setdiff1d(before, after)),
        _Places(new.runs({place for key, place in now.items() if key not in was}), np.setdiff1d(after, before)),
    )


def _by_files(fragments: Iterable[FragmentOverview], columns: Collection[str]) -> dict[object, int]:
    """The places of fragments by the files that hold some columns, each with those that it holds."""
    wanted = frozenset(columns)
    return {
        frozenset((file.path, held) for file in each.files if (held := wanted.intersection(file.columns))): place
        for place, each in enumerate(fragments)
    }


def _only(these: pa.Table, others: pa.Table) -> pa.Table:
    """The rows of one side that the other has not, each as often as it has it more."""
    left = Counter(_texts(others))
    places = []
    for place, text in enumerate(_texts(these)):
        if left[text]:
            left[text] -= 1
        else:
            places.append(place)
    return these.take(pa.array(places, pa.int64()))


def _texts(rows: pa.Table) -> Iterator[str]:
    """The values of each row as a text."""
    for batch in rows.to_batches():
        columns = [
            [_blob_text(value) for value in json_column(column)] if is_blob(column_field) else json_column(column)
            for column_field, column in zip(batch.schema, batch.columns, strict=True)
        ]
        yield from (json.dumps(row, ensure_ascii=False) for row in zip(*columns, strict=True))


def _blob_text(value: Any) -> object:
    return [value.get(name) for name in _OF_BLOBS] if isinstance(value, Mapping) else value
