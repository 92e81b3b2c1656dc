"""Rows in each form in which they are given: as an Arrow table, or a stream of batches."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from operator import itemgetter
from typing import Any, TypeAlias

import lance
import numpy as np
import pyarrow as pa

from lance_core.format.blobs import is_blob
from table_data.arrow.batch_sizes import BATCH_BYTES, in_fewer_rows
from table_data.arrow.exact import Misfit
from table_data.arrow.intake import given_by_caller
from table_data.arrow.python_values import array_of, of_numpy
from table_data.errors import InvalidCall, SchemaMismatch, WorkFailed

Rows: TypeAlias = pa.Table | pa.RecordBatchReader
_Column: TypeAlias = pa.Array | pa.ChunkedArray


def rows_of(data: Any, schema: pa.Schema | None = None) -> Rows:
    """The rows in Arrow data, a DataFrame of pandas or polars, a list of dicts or a dict of columns.

    Rows in memory are a table, all others a stream. `schema` gives the types of values of Python. A column or key that
    it does not name is kept, for the caller to refuse; one that the rows do not name is left out.
    Values of Arrow data are not looked at, see `intake`.

    Raises:
        InvalidCall: `data` is of another type, or has columns without a name that is a text, or with the same name.
        SchemaMismatch: A value of Python is of no Arrow type, or not of that of its column.
        WorkFailed: Code that gives the rows raised an error, which is the cause.
    """
    match data:
        case pa.RecordBatchReader() | pa.Table():
            return data
        case pa.RecordBatch():
            return pa.Table.from_batches([data])
        case list() | tuple():
            return _of_dicts(data, schema)
        case Mapping():
            return _of_columns(data, schema)
        case lance.LanceDataset():
            return _of_dataset(data)
    if _is_of("pandas", "DataFrame", data):
        return _of_pandas(data, schema)
    if _is_of("polars", "LazyFrame", data):
        with given_by_caller():
            data = data.collect()
    if _is_of("polars", "DataFrame", data):
        _check_no_objects(data)
    return _exported(data)


def _exported(data: Any) -> Rows:
    """The rows of an object that gives them as Arrow data."""
    kind = type(data)  # the columns of a frame may be attributes of it
    if hasattr(kind, "__arrow_c_stream__"):
        try:
            with given_by_caller():
                return pa.RecordBatchReader.from_stream(data)
        except WorkFailed as failure:
            if not isinstance(failure.__cause__, pa.ArrowInvalid):
                raise
            text = f"rows of type {kind.__name__}: expected columns of types of Arrow: {failure.__cause__}"
            raise InvalidCall(text) from None
    with given_by_caller():
        if hasattr(kind, "to_reader"):
            return data.to_reader()
        if hasattr(kind, "scanner"):
            return data.scanner().to_reader()
    raise InvalidCall(
        f"rows of type {kind.__name__}: expected Arrow data, a DataFrame, a list of dicts or a dict of columns"
    )


def _of_dataset(dataset: lance.LanceDataset) -> pa.RecordBatchReader:
    def scan(most: int | None = None) -> pa.RecordBatchReader:
        return dataset.scanner(batch_size=most, batch_size_bytes=BATCH_BYTES).to_reader()

    reader = scan()
    return pa.RecordBatchReader.from_batches(reader.schema, in_fewer_rows(reader, scan))


def _is_of(module: str, name: str, data: Any) -> bool:
    """Whether data is of a class of a package, which is not imported for it."""
    found = getattr(sys.modules.get(module), name, None)
    return isinstance(found, type) and isinstance(data, found)


def _of_dicts(rows: Sequence[Any], schema: pa.Schema | None) -> pa.Table:
    if not rows:
        return pa.table({}) if schema is None else schema.empty_table()
    only_dicts = set(map(type, rows)) == {dict}
    for number, row in enumerate([] if only_dicts else rows, 1):
        if not isinstance(row, Mapping):
            raise InvalidCall(f"row {number}: expected a dict, found {type(row).__name__}")
    names = list(rows[0])
    if len(set(names).union(*rows)) > len(names):
        names = list(dict.fromkeys(chain.from_iterable(rows)))
    if not names:
        raise InvalidCall(f"expected columns, found none in {len(rows)} rows")
    if schema is not None and (unknown := set(names).difference(schema.names)):
        number, name = next((number, name) for number, row in enumerate(rows, 1) for name in row if name in unknown)
        raise SchemaMismatch(f"row {number}: expected columns {_some(schema.names)}, found {name!r}")
    return _table({name: _values(rows, name, only_dicts=only_dicts) for name in names}, schema)


def _values(rows: Sequence[Mapping[str, Any]], name: str, *, only_dicts: bool) -> list[Any]:
    """The values of a key, None where a row does not have it. Other mappings may make values for such keys."""
    if only_dicts:
        with suppress(KeyError):
            return list(map(itemgetter(name), rows))  # in half the time
    with given_by_caller():
        return [row.get(name) for row in rows]


def _of_columns(columns: Mapping[Any, Any], schema: pa.Schema | None) -> pa.Table:
    if not columns:
        return pa.table({}) if schema is None else schema.empty_table()
    return _table(columns, schema)


def _of_pandas(frame: Any, schema: pa.Schema | None) -> pa.Table:
    """An index without a name is no column. One with a name is, unless there is a column of this name."""
    named = [name for name in frame.index.names if name is not None and name not in frame.columns]
    names = [*named, *frame.columns]
    for name in names:
        _check_name(name)
    if len(set(names)) < len(names):
        raise InvalidCall(f"expected columns with different names, found {names!r:.200}")
    if named:
        frame = frame.reset_index(level=named)
    if not names and len(frame):
        raise InvalidCall(f"expected columns, found none in {len(frame)} rows")
    return _table({name: frame[name] for name in frame.columns}, schema)


def _check_no_objects(frame: Any) -> None:
    """Polars gives objects of Python as addresses in memory."""
    for name, kind in frame.schema.items():
        if kind == sys.modules["polars"].Object:
            raise InvalidCall(f"column {name!r}: expected values of Arrow, found objects of Python")


def _table(columns: Mapping[Any, Any], schema: pa.Schema | None) -> pa.Table:
    kinds = {} if schema is None else {field.name: field.type for field in schema if not is_blob(field)}
    found: dict[str, _Column] = {}
    for name, values in columns.items():
        _check_name(name)
        try:
            found[name] = _column(values, kinds.get(name))
        except Misfit as misfit:
            raise misfit.refusal(name) from None
    lengths = {name: len(column) for name, column in found.items()}
    if len(set(lengths.values())) > 1:
        raise InvalidCall(f"expected columns of one length, found {_some(lengths.items())}")
    try:
        return pa.table(found)
    except UnicodeEncodeError as error:
        raise InvalidCall(f"column {error.object!r:.80}: expected a name in UTF-8: {error.reason}") from None


def _check_name(name: object) -> None:
    if not isinstance(name, str):
        raise InvalidCall(f"column {name!r:.80}: expected a text as its name, found {type(name).__name__}")


def _column(values: Any, kind: pa.DataType | None) -> _Column:
    """One column. Arrays keep their types."""
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    if isinstance(values, np.ndarray):
        return _of_numpy(values, kind)
    if _is_of("pandas", "Series", values) or _is_of("pandas", "Index", values):
        return _of_series(values, kind)
    if _is_of("pandas.api.extensions", "ExtensionArray", values):
        return _of_series(sys.modules["pandas"].Series(values), kind)
    if _is_of("polars", "Series", values) and values.dtype == sys.modules["polars"].Object:
        raise Misfit("values of Arrow", "objects of Python")
    if hasattr(type(values), "__arrow_c_stream__"):
        return pa.chunked_array(values)
    if isinstance(values, (str, bytes, bytearray, Mapping, set, frozenset)) or not isinstance(values, Iterable):
        raise Misfit("a list or an array of values", type(values).__name__)
    if not isinstance(values, (list, tuple)):
        with given_by_caller():
            values = list(values)
    return array_of(values, kind)


def _of_numpy(values: np.ndarray[Any, Any], kind: pa.DataType | None) -> _Column:
    """Rows of an array of two dimensions are vectors."""
    if values.ndim not in {1, 2}:
        raise Misfit("an array of one or two dimensions", f"one of {values.ndim}")
    if values.dtype == object:
        return array_of(list(values), kind)
    if values.ndim == 1:
        return of_numpy(values)
    if not values.shape[1]:
        raise Misfit("vectors of one value or more", f"an array of the shape {values.shape}")
    return pa.FixedSizeListArray.from_arrays(of_numpy(values.ravel()), values.shape[1])


def _of_series(values: Any, kind: pa.DataType | None) -> _Column:
    """A column of pandas, whose missing values are null."""
    if _is_of("pandas", "SparseDtype", values.dtype):
        values = values.sparse.to_dense()
    if isinstance(values.dtype, np.dtype) and not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    if values.dtype == object:
        missing = values.isna()
        given = values.tolist()
        if missing.any():
            given = [None if absent else value for value, absent in zip(given, missing, strict=True)]
        return array_of(given, kind)
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, ValueError, TypeError):
        raise Misfit("values of Arrow", f"a column of {values.dtype}") from None


def _some(names: Iterable[Any], most: int = 20) -> str:
    found = list(names)
    return f"{found[:most]}" + (f" and {len(found) - most} more" if len(found) > most else "")
