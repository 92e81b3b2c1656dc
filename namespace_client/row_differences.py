"""Rows of a table that only one of two catalog versions has: a sample, side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from namespace_client.access import CatalogAccess
from namespace_client.display import ShownAsTable, number
from namespace_client.names import Name
from namespace_client.row_pages import MOST_ROWS, PageRow, RowColumn, RowPage, RowQuery, row_page
from table_data.batch_operations import TableId
from table_data.errors import require_count

ROWS: Final = 20
"""Rows of each side of a sample."""
TextRow = tuple[tuple[str, ...], PageRow]
"""The values of a row as texts, and the row."""


@dataclass(frozen=True, slots=True, repr=False)
class RowDiff(ShownAsTable):
    """How the rows of a table differ between two catalog versions. As text it is a table.

    New and changed rows are at the end of a table. So of a large one the last rows of each version are compared, as
    they are shown, in the columns that both have.

    Attributes:
        name: Path of the table, in the later version.
        before: The earlier catalog version.
        after: The later one.
        num_before: Rows of the table in the earlier one.
        num_after: Rows in the later one.
        columns: The columns that both have.
        removed: Rows that only the earlier one has.
        added: Rows that only the later one has. A changed row is among both.
        num_compared: How many of the last rows of each were compared.
    """

    name: Name
    before: int
    after: int
    num_before: int
    num_after: int
    columns: tuple[RowColumn, ...]
    removed: tuple[PageRow, ...]
    added: tuple[PageRow, ...]
    num_compared: int

    @property
    def is_whole(self) -> bool:
        """Whether all rows were compared."""
        return max(self.num_before, self.num_after) <= self.num_compared

    def _headers(self) -> Sequence[str]:
        return "", *(each.name for each in self.columns)

    def _title(self) -> str:
        return f"{self.name}: {number(self.num_before)} rows, now {number(self.num_after)}"

    def _rows(self) -> Iterator[tuple[object, ...]]:
        for sign, rows in (("-", self.removed), ("+", self.added)):
            for row in rows:
                yield (sign, *row.cells)


def compare_rows(
    access: CatalogAccess,
    table_id: TableId,
    before: int,
    after: int,
    *,
    old_id: TableId | None = None,
    limit: int = ROWS,
    compared: int = MOST_ROWS,
) -> RowDiff:
    """Compare the rows of a table in two catalog versions: six requests.

    Args:
        access: The catalog.
        table_id: Path of the table in the later version.
        before: The earlier catalog version.
        after: The later one.
        old_id: Path of the table in the earlier version, if it is another one.
        limit: How many rows of each side are given at most.
        compared: How many of the last rows of each version are compared, at most 200.

    Raises as `row_page`.
    """
    require_count("limit", limit)
    old = _last_rows(access, table_id if old_id is None else old_id, before, compared)
    new = _last_rows(access, table_id, after, compared)
    names = {each.name for each in old.page.columns}
    columns = tuple(each for each in new.page.columns if each.name in names)
    was, now = _by_text(old.page, columns), _by_text(new.page, columns)
    return RowDiff(
        Name(table_id),
        before,
        after,
        old.count,
        new.count,
        columns,
        tuple(_only(was, now))[:limit],
        tuple(_only(now, was))[:limit],
        compared,
    )


@dataclass(frozen=True, slots=True)
class _LastRows:
    """The last rows of a version, and how many it has."""

    count: int
    page: RowPage


def _last_rows(access: CatalogAccess, table_id: TableId, at: int, most: int) -> _LastRows:
    count = int(access.table_value("count_table_rows", table_id, at=at))
    return _LastRows(count, row_page(access, table_id, at, RowQuery(after=max(count - most, 0), limit=most)))


def _by_text(page: RowPage, columns: Sequence[RowColumn]) -> list[TextRow]:
    """The rows with their values in some columns, as texts and as cells."""
    places = [[each.name for each in page.columns].index(column.name) for column in columns]
    rows = (PageRow(row.id, tuple(row.cells[place] for place in places)) for row in page.rows)
    return [(tuple(f"{cell.kind} {cell.text}" for cell in row.cells), row) for row in rows]


def _only(these: Sequence[TextRow], others: Sequence[TextRow]) -> Iterator[PageRow]:
    """The rows of one side that the other has not, each as often as it has it more."""
    left = Counter(text for text, _ in others)
    for text, row in these:
        if left[text]:
            left[text] -= 1
        else:
            yield row
