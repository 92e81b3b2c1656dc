"""Rows within bounds, as JSON.

Rows are taken one after another until a bound is reached. A value that is longer than the bound of cells is replaced by
its beginning, and the answer says so. What is read of the catalog is bounded, too: the reader is dropped then.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

import pyarrow as pa
from pydantic import BaseModel, Field

from namespace_client.display import text_table, visible
from namespace_client.errors import InvalidCall
from namespace_client.table_overview import is_blob
from table_data.values.written import json_column

DEFAULT_ROWS: Final = 50
MOST_ROWS: Final = 1000
DEFAULT_BYTES: Final = 32 << 10
MOST_BYTES: Final = 1 << 20
DEFAULT_CELL: Final = 500
MOST_CELL: Final = 100_000
ARROW_BYTES: Final = 32 << 20
"""Bytes of rows that are read for one answer, before they are cut."""
_SLICE: Final = 64
"""Rows that are made into JSON at a time."""

RowLimit = Annotated[
    int, Field(ge=1, le=MOST_ROWS, description=f"At most so many rows; {MOST_ROWS:,} are the most that one call gives.")
]
Bytes = Annotated[
    int,
    Field(
        ge=256,
        le=MOST_BYTES,
        description=f"At most so many bytes of rows as JSON; {MOST_BYTES:,} are the most. The answer says where it was "
        "cut, and how to go on.",
    ),
]
CellLength = Annotated[
    int,
    Field(
        ge=16,
        le=MOST_CELL,
        description="A value whose JSON has more characters is replaced by its beginning as a text; `shortened` says "
        f"which ones. {MOST_CELL:,} is the largest bound. Name the column and give a larger bound for whole values.",
    ),
]


class Column(BaseModel):
    """A column of an answer."""

    name: str
    type: str


class ShortenedValue(BaseModel):
    """A value that is replaced by its beginning."""

    row: int = Field(description="Place of its row in `rows`, from 0 on.")
    column: str
    characters: int = Field(description="Characters of its JSON as a whole.")


@dataclass(slots=True)
class BoundedRows:
    """Rows of an answer.

    Attributes:
        columns: The columns.
        rows: The rows, each a value of JSON by column.
        shortened: Values that are replaced by their beginning.
        has_more: Whether there are rows behind them.
        cut_by: The bound that ended them, None if they are all.
    """

    columns: list[Column]
    rows: list[dict[str, Any]] = field(default_factory=list)
    shortened: list[ShortenedValue] = field(default_factory=list)
    has_more: bool = False
    cut_by: str | None = None


def take_rows(reader: pa.RecordBatchReader, *, limit: int, most_bytes: int, cell: int) -> BoundedRows:
    """The first rows of a reader, within bounds. The reader is dropped, or read to its end.

    Args:
        reader: The rows, at least one more than `limit` if there are more.
        limit: How many rows at most.
        most_bytes: How many bytes their JSON has at most.
        cell: How many characters the JSON of a value has at most.

    Raises:
        InvalidCall: The first row alone is larger.
    """
    found = BoundedRows(
        [Column(name=each.name, type="blob" if is_blob(each) else str(each.type)) for each in reader.schema]
    )
    size = 0
    for row in _json_rows(reader):
        if len(found.rows) == limit:
            found.has_more, found.cut_by = True, f"limit of {limit:,} rows"
            break
        shown, shortened = _shortened(row, len(found.rows), cell)
        size += len(json.dumps(shown, ensure_ascii=False).encode("utf-8", "surrogatepass"))
        if size > most_bytes:
            if not found.rows:
                raise InvalidCall(
                    f"rows: expected a row of at most {most_bytes:,} bytes, found one of {size:,}: name fewer columns, "
                    "or give a smaller max_cell or a larger max_bytes"
                )
            found.has_more, found.cut_by = True, f"limit of {most_bytes:,} bytes"
            break
        found.rows.append(shown)
        found.shortened += shortened
    return found


def _json_rows(reader: pa.RecordBatchReader) -> Iterator[dict[str, Any]]:
    names = reader.schema.names
    for batch in reader:
        for start in range(0, batch.num_rows, _SLICE):
            columns = [json_column(column) for column in batch.slice(start, _SLICE).columns]
            for values in zip(*columns, strict=True):
                yield dict(zip(names, values, strict=True))


def _shortened(row: dict[str, Any], place: int, cell: int) -> tuple[dict[str, Any], list[ShortenedValue]]:
    shown: dict[str, Any] = {}
    shortened = []
    for name, value in row.items():
        if value is None or isinstance(value, bool | int | float):
            shown[name] = value
            continue
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if len(text) <= cell:
            shown[name] = value
        else:
            shown[name] = f"{text[:cell]}…"
            shortened.append(ShortenedValue(row=place, column=name, characters=len(text)))
    return shown, shortened


def rows_text(columns: Sequence[str], rows: Iterable[dict[str, Any]]) -> str:
    """Rows as a table of text, a line each, which begins with a bar: no value can look like a line of ours."""
    cells = ([_cell(row.get(name)) for name in columns] for row in rows)
    return "\n".join(f"| {line}" for line in text_table([visible(name) for name in columns], cells).split("\n"))


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return visible(value)
    return visible(json.dumps(value, ensure_ascii=False))
