"""Size of the Arrow batches in which Spark passes the rows of a job to Python.

Spark ends a batch at 10,000 rows or at 64 MB, and measures the batch after every row to know the latter. For rows of
some numbers that takes three times as long as to write them. Where the columns bound the size of a row, the number of
rows is limit enough. `UnmeasuredBatches.java` has the same rule for the tasks of SQL and of DataFrame writers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from pyspark.errors import PySparkAttributeError
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DayTimeIntervalType,
    NumericType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

_BYTES: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
_ROWS: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"
_UNMEASURED: Final = str(2**31 - 1)
"""With exactly this limit Spark does not measure batches."""
_FIXED_ROWS: Final = 65_536
_TEXT_ROWS: Final = 4_096
"""Rows with strings: a batch exceeds 64 MB only if they have more than 16 KB on average."""
_COLUMNS: Final = 64
"""Rows of more columns come in batches of fewer rows. 64 columns of 16 bytes fill 64 MB with `_FIXED_ROWS`."""
_IN_PYTHON: Final = ("ArrowEvalPython", "ArrowWindowPython", "ArrowAggregatePython", "InArrow", "InPandas")
"""Parts of the names of steps that pass batches to Python."""
_FIXED: Final = (BooleanType, DateType, DayTimeIntervalType, NumericType, TimestampNTZType, TimestampType)


@contextmanager
def unmeasured_batches(df: DataFrame, schema: StructType) -> Iterator[None]:
    """Run the jobs that this thread starts in the block with batches that are limited by rows alone.

    `schema` is that of the rows which the last step of `df` passes to Python. Only if these are numbers, times,
    booleans or strings, and if no other step of `df` passes batches to Python: its rows may have any size. Options that
    are set in the session have precedence. On Spark Connect the options stay as they are.
    """
    options = batch_options(schema)
    try:
        context = df.sparkSession.sparkContext
        if options and _steps_in_python(df._jdf.queryExecution().optimizedPlan()) > 1:  # noqa: SLF001 - no public way
            options = {}
    except (PySparkAttributeError, AttributeError):
        options = {}
    before = {name: context.getLocalProperty(name) for name in options}
    for name, value in options.items():
        context.setLocalProperty(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            context.setLocalProperty(name, value)


def _steps_in_python(plan: Any) -> int:
    """The number of steps of a plan that pass batches of Arrow to Python."""
    children = plan.children()
    below = sum(_steps_in_python(children.apply(place)) for place in range(children.size()))
    return below + any(kind in plan.nodeName() for kind in _IN_PYTHON)


def batch_options(schema: StructType) -> Mapping[str, str]:
    """The options of Spark for rows of a schema; none if a row may have any size."""
    kinds = list(_leaves(schema))
    if not all(isinstance(kind, (*_FIXED, StringType)) for kind in kinds):
        return {}
    rows = _TEXT_ROWS if any(isinstance(kind, StringType) for kind in kinds) else _FIXED_ROWS
    return {_BYTES: _UNMEASURED, _ROWS: str(max(1, rows * _COLUMNS // max(_COLUMNS, len(kinds))))}


def _leaves(kind: DataType) -> Iterator[DataType]:
    if isinstance(kind, StructType):
        for item in kind:
            yield from _leaves(item.dataType)
    else:
        yield kind
