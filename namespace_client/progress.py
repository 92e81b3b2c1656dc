"""How far rows are written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import chain
from typing import Any, Final

import pyarrow as pa
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from table_data.arrow.intake import given_by_caller
from table_data.arrow.sources import rows_of

Tell = Callable[[int, int | None], None]
"""Called with the number of rows that were taken so far, and how many there are, None if that is not known."""
_ROWS_AT_ONCE: Final = 65_536


def with_progress(data: Any, label: str = "rows", *, tell: Tell | None = None) -> pa.RecordBatchReader:
    """The same rows as a stream that shows how many of them were taken, in a terminal or a notebook.

    For any call that takes rows. The bar begins with the first rows, and ends with the last ones. Nothing is shown
    where standard error is no terminal.

    Example:
        ```python
        with catalog.begin() as tx:
            tx.append("features", with_progress(pyarrow.parquet.ParquetFile("features.parquet").iter_batches()))
        ```

    Args:
        data: Arrow data, a DataFrame of pandas or polars, a list of dicts, a dict of columns, or an iterator of record
            batches.
        label: Text beside the bar.
        tell: A callback that gets the numbers instead, in the thread that takes the rows.

    Raises:
        InvalidCall: The rows have another type.
        WorkFailed: The iterator raised an error, which is the cause.
    """
    rows = rows_of(_stream(data))
    total = rows.num_rows if isinstance(rows, pa.Table) else None
    reader = rows.to_reader(max_chunksize=_ROWS_AT_ONCE) if isinstance(rows, pa.Table) else rows

    def taken() -> Iterator[pa.RecordBatch]:
        done = 0
        with _bar(label, total) if tell is None else nullcontext(tell) as say:
            for batch in reader:
                yield batch
                done += batch.num_rows
                say(done, total)

    return pa.RecordBatchReader.from_batches(reader.schema, taken())


def _stream(data: Any) -> Any:
    """Record batches as a reader of them; other data as it is."""
    if not isinstance(data, Iterator) or isinstance(data, pa.RecordBatchReader):
        return data
    with given_by_caller():
        first = next(data, None)
    if not isinstance(first, pa.RecordBatch):
        return data
    return pa.RecordBatchReader.from_batches(first.schema, chain([first], data))


@contextmanager
def _bar(label: str, total: int | None) -> Iterator[Tell]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    shown = console.is_terminal or console.is_jupyter
    with Progress(*columns, console=console, transient=True, disable=not shown) as progress:
        task = progress.add_task(label, total=total)
        yield lambda done, _: progress.update(task, completed=done)
