"""Pages of the rows of a table as one looks at them: at one version, in an order, of those that match; and searches.

Rows come from the catalog, bounded in number and bytes. What a value is shown as is decided here, for every reader.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Literal

import pyarrow as pa
from pyarrow import types

from namespace_client.access import CatalogAccess
from namespace_client.display import ShownAsTable
from namespace_client.errors import NotFound
from namespace_client.media_types import NEEDED, media_type
from namespace_client.names import Name
from namespace_client.table_overview import is_blob, table_schema
from namespace_client.wire import present
from table_data.batch_operations import Json, TableId
from table_data.errors import InvalidCall, require_count

ROWS: Final = 25
COLUMNS: Final = 40
"""Columns of a page, if none are named."""
MOST_ROWS: Final = 200
"""Rows of one page."""
MOST_BYTES: Final = 16 << 20
"""Bytes of Arrow of one page."""
_ROW_ID: Final = "_rowid"
_MOST_SHOWN: Final = 20_000
"""Characters of one value that are shown."""
_MOST_ITEMS: Final = 1_000
"""Items of one nested value that are shown."""
_MOST_NUMBERS: Final = 5_000
"""Numbers of a vector that are shown."""
_SHOWN_BYTES: Final = 64
_MOST_POINTS: Final = 256
"""Points of the picture of a vector."""
_SCORES: Final = ("_distance", "_score", "_relevance_score")

CellKind = Literal["null", "text", "number", "time", "nested", "vector", "bytes", "blob"]


@dataclass(frozen=True, slots=True)
class Cell:
    """A value of a row.

    Attributes:
        kind: How it is shown: a vector as a picture of its numbers, what is nested folded, blobs by what they are.
        text: The value as text; of one that is very long the beginning. What is nested is JSON in one line.
        lines: Of what is nested, the same JSON in lines.
        points: Of a vector, its numbers, or as many of them as make a picture.
        size: Of bytes and blobs, how many there are.
        is_cut: Whether the text is only the beginning.
        media: Of bytes that are a known image or sound, its type.
    """

    kind: CellKind
    text: str
    lines: str = ""
    points: tuple[float, ...] = ()
    size: int | None = None
    is_cut: bool = False
    media: str | None = None

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class PageRow:
    """A row: its id in the table, if it was asked for, and its values in the order of the columns."""

    id: int | None
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class RowColumn:
    """A column of a page: its name and type, whether rows can be ordered by it, and whether it has numbers."""

    name: str
    type: str
    sortable: bool
    numeric: bool = False


@dataclass(frozen=True, slots=True)
class RowQuery:
    """Which rows are wanted. At most one of `text` and `like` is given: a search has an order of its own.

    Attributes:
        filter: SQL expression.
        order: Name of the column by which they are ordered.
        descending: Whether from the greatest on.
        text: Words of a full-text search.
        like: Id of a row: those nearest to it by `vector` are wanted.
        vector: Name of the column of vectors.
        branch: Name of the branch.
        version: Number of a version of the table; that of the catalog version if None.
        columns: Names of the columns that are wanted; the first 40 of them without any.
        after: How many rows of the result come before the page.
        limit: How many rows the page has at most.
    """

    filter: str | None = None
    order: str | None = None
    descending: bool = False
    text: str | None = None
    like: int | None = None
    vector: str | None = None
    branch: str | None = None
    version: int | None = None
    columns: tuple[str, ...] = ()
    after: int = 0
    limit: int = ROWS


@dataclass(frozen=True, slots=True, repr=False)
class RowPage(ShownAsTable):
    """One page of rows.

    Attributes:
        table: Path of the table.
        catalog_version: The catalog version.
        query: What was wanted.
        columns: The columns.
        all_columns: Names of all columns of the table.
        rows: The rows.
        next: How many rows of the result come before the next page, None if this is the last.
        seconds: How long the catalog took.
    """

    table: Name
    catalog_version: int
    query: RowQuery
    columns: tuple[RowColumn, ...]
    all_columns: tuple[str, ...]
    rows: tuple[PageRow, ...]
    next: int | None
    seconds: float

    @property
    def previous(self) -> int | None:
        """How many rows come before the page before, None if this is the first."""
        return None if not self.query.after else max(self.query.after - self.query.limit, 0)

    def _headers(self) -> Sequence[str]:
        return [each.name for each in self.columns]

    def _rows(self) -> Iterable[Sequence[object]]:
        return [row.cells for row in self.rows]

    def _title(self) -> str:
        return f"{self.table} at catalog version {self.catalog_version}"


def row_page(access: CatalogAccess, table_id: TableId, catalog_version: int, query: RowQuery) -> RowPage:
    """One page of rows as of a catalog version: two requests, and one more for rows like another one.

    Args:
        access: The catalog.
        table_id: Path of the table.
        catalog_version: The catalog version.
        query: Which rows.

    Raises `CommitRejected`, `AccessRefused`, `CatalogUnreachable`, `NotFound` for a row that is not there, and
    `InvalidCall` for what does not go together, or rows of more than 16 MiB.
    """
    limit, after = require_count("limit", query.limit, 1), require_count("after", query.after)
    if limit > MOST_ROWS:
        raise InvalidCall(f"limit: expected at most {MOST_ROWS} rows, found {limit}")
    begun = time.perf_counter()
    request: Json = {"k": limit + 1, "offset": after, "with_row_id": True, "prefilter": True}
    request |= _place(query) | present(filter=query.filter)
    names = tuple(table_schema(access, table_id, catalog_version, _place(query)).names)
    if query.columns or len(names) > COLUMNS:
        wanted = query.columns or names[:COLUMNS]
        request["columns"] = {"column_names": [column_path(name) for name in wanted]}
    request |= _search(access, table_id, catalog_version, query)
    found = access.query(table_id, request, at=catalog_version, most=MOST_BYTES).read_all()
    seconds = time.perf_counter() - begun
    is_search = query.text is not None or query.like is not None
    described = tuple(_column(field, can_sort=not is_search) for field in found.schema if field.name != _ROW_ID)
    more = after + limit if found.num_rows > limit else None
    rows = shown_rows(found.slice(0, limit))
    return RowPage(Name(table_id), catalog_version, query, described, names, rows, more, seconds)


def shown_rows(found: pa.Table) -> tuple[PageRow, ...]:
    """Rows as they are shown. The column `_rowid`, if there is one, has their ids."""
    ids = found.column(_ROW_ID).to_pylist() if _ROW_ID in found.column_names else [None] * found.num_rows
    shown = found.select([name for name in found.column_names if name != _ROW_ID])
    cells = [list(map(_cell_maker(field), column)) for field, column in zip(shown.schema, shown.columns, strict=True)]
    return tuple(PageRow(row, tuple(values)) for row, *values in zip(ids, *cells, strict=True))


def shown_columns(schema: pa.Schema) -> tuple[RowColumn, ...]:
    """Columns as they are shown, by which rows are not ordered."""
    return tuple(_column(field, can_sort=False) for field in schema)


def column_path(name: str) -> str:
    """The path of a column at the top of a table, as requests have it: one with a dot is in backticks."""
    return str(Name((name,)))


def _place(query: RowQuery) -> Json:
    return present(branch=query.branch, version=query.version)


def _search(access: CatalogAccess, table_id: TableId, at: int, query: RowQuery) -> Json:
    """What makes a query a search, or gives its rows an order."""
    if [query.text is None, query.like is None, query.order is None].count(False) > 1:
        raise InvalidCall("rows: expected at most one of an order, words, and a row to be like")
    if query.order is not None:
        return {"order_by": [{"column_name": column_path(query.order), "ascending": not query.descending}]}
    if query.text is not None:
        return {"full_text_query": {"string_query": {"query": query.text}}}
    if query.like is None:
        return {}
    if query.vector is None:
        raise InvalidCall("rows like another one: expected the column of vectors, found none")
    column = column_path(query.vector)
    request: Json = {"filter": f"{_ROW_ID} = {query.like}", "columns": {"column_names": [column]}, "k": 1}
    found = access.query(table_id, request | _place(query), at=at, most=MOST_BYTES).read_all()
    vector = found.column(0)[0].as_py() if found.num_rows else None
    if not isinstance(vector, list) or not all(isinstance(each, int | float) for each in vector):
        raise NotFound(
            f"row {query.like} of {Name(table_id)}: expected a vector in {query.vector}, found none", code=None
        )
    return {"vector": {"single_vector": vector}, "vector_column": column}


def _column(field: pa.Field, *, can_sort: bool) -> RowColumn:
    kind = field.type
    plain = not (types.is_nested(kind) or types.is_null(kind) or is_blob(field) or field.name in _SCORES)
    return RowColumn(field.name, "blob" if is_blob(field) else str(kind), can_sort and plain, _is_number(kind))


def is_vector(kind: pa.DataType) -> bool:
    """Whether values of a type are vectors of numbers of one length."""
    return bool(types.is_fixed_size_list(kind)) and bool(
        types.is_floating(kind.value_type) or types.is_integer(kind.value_type)
    )


def _is_number(kind: pa.DataType) -> bool:
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def _cell_maker(field: pa.Field) -> Any:
    kind = field.type.storage_type if isinstance(field.type, pa.BaseExtensionType) else field.type
    if types.is_dictionary(kind):
        kind = kind.value_type
    if is_blob(field):
        return _blob
    if is_vector(kind):
        return _vector
    if types.is_nested(kind):
        return _nested
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return _bytes
    if _is_number(kind):
        return _number
    return _time if types.is_temporal(kind) else _text


_NULL: Final = Cell("null", "null")


def _cut(kind: CellKind, text: str) -> Cell:
    return Cell(kind, text[:_MOST_SHOWN], is_cut=len(text) > _MOST_SHOWN)


def _plain(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat(" ")
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _text(value: pa.Scalar) -> Cell:
    return _cut("text", _python_text(value)) if value.is_valid else _NULL


def _time(value: pa.Scalar) -> Cell:
    return Cell("time", _python_text(value)) if value.is_valid else _NULL


def _python_text(value: pa.Scalar) -> str:
    try:
        return _plain(value.as_py())
    except (ValueError, OverflowError):  # a time that Python has no value for
        return str(value)


def _number(value: pa.Scalar) -> Cell:
    return Cell("number", _python_text(value)) if value.is_valid else _NULL


def _bytes(value: pa.Scalar) -> Cell:
    if not value.is_valid:
        return _NULL
    data = value.as_py()
    begin = data[:_SHOWN_BYTES]
    is_cut = len(data) > _SHOWN_BYTES
    return Cell("bytes", begin.hex(" "), size=len(data), is_cut=is_cut, media=media_type(data[:NEEDED]))


def _blob(value: pa.Scalar) -> Cell:
    described = value.as_py() if value.is_valid else None
    if not isinstance(described, dict):
        return _NULL
    length, uri = described.get("size"), described.get("blob_uri")
    return _cut("blob", str(uri or "")) if length is None else replace(_cut("blob", str(uri or "")), size=int(length))


def _vector(value: pa.Scalar) -> Cell:
    if not value.is_valid:
        return _NULL
    numbers = _stored(value).values
    size = len(numbers)
    step = max(1, -(-size // _MOST_POINTS))
    points = numbers.take(pa.array(range(0, size, step), pa.int64())).to_pylist()
    finite = [float(each) if each is not None and math.isfinite(each) else 0.0 for each in points]
    shown = numbers.slice(0, _MOST_NUMBERS).to_pylist()
    cell = _cut("vector", ", ".join("null" if each is None else f"{each:.6g}" for each in shown))
    return replace(cell, points=tuple(finite), size=size, is_cut=cell.is_cut or size > _MOST_NUMBERS)


def _nested(value: pa.Scalar) -> Cell:
    if not value.is_valid:
        return _NULL
    beginning = _Beginning(_MOST_ITEMS)
    known = beginning.of(value)
    text = json.dumps(known, ensure_ascii=False, default=_json_value)
    lines = json.dumps(known, ensure_ascii=False, indent=2, default=_json_value)
    cell = _cut("nested", text)
    return replace(cell, lines=lines[:_MOST_SHOWN], is_cut=cell.is_cut or beginning.is_cut)


def _stored(value: pa.Scalar) -> pa.Scalar:
    return value.value if isinstance(value, pa.ExtensionScalar) else value


class _Beginning:
    """Makes Python values of nested ones, up to a number of items: a value may have millions, of which few are shown.

    Args:
        most: How many items at most.
    """

    def __init__(self, most: int) -> None:
        self._left = most
        self.is_cut = False

    def of(self, value: pa.Scalar) -> Any:
        """The beginning of a value."""
        value = _stored(value)
        if not value.is_valid:
            return None
        if types.is_struct(value.type):
            return {field.name: self.of(value[place]) for place, field in enumerate(value.type)}
        if types.is_map(value.type):
            return [list(each.values()) for each in self._items(value.values)]
        if types.is_nested(value.type) and not types.is_union(value.type):
            return self._items(value.values)
        return _begun(value.as_py())

    def _items(self, values: pa.Array) -> list[Any]:
        made: list[Any] = []
        if types.is_nested(values.type) or isinstance(values.type, pa.BaseExtensionType):
            for each in values:
                if self._left <= 0:
                    break
                self._left -= 1
                made.append(self.of(each))
        else:
            made += map(_begun, values.slice(0, self._left).to_pylist())
            self._left -= len(made)
        self.is_cut = self.is_cut or len(made) < len(values)
        return made


def _begun(leaf: Any) -> Any:
    return leaf[:_MOST_SHOWN] if isinstance(leaf, str | bytes) else leaf


def _json_value(value: Any) -> str:
    return value.hex(" ") if isinstance(value, bytes) else _plain(value)
