"""What code that gives rows raises ends the call as `WorkFailed`, whatever form the rows have; nothing is committed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

from namespace_client import Catalog, ClientError, MultiTableTransaction, NotFound, WorkFailed
from namespace_client.progress import with_progress
from tests.client.scene import Scene

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.list_(pa.float32()))])
ERRORS = (RuntimeError("no more"), ValueError("Not found: a/b.c"), KeyError("id"), OSError(28, "No space left"))


def batch(*ids: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"id": number, "v": [1.0, 2.0]} for number in ids], SCHEMA)


def batches(error: BaseException) -> Iterator[pa.RecordBatch]:
    yield batch(7)
    raise error


def reader(error: BaseException) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(SCHEMA, batches(error))


class Stream:
    """Rows by the stream interface of Arrow, which gives the text of an error only."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return reader(self._error).__arrow_c_stream__(requested_schema)


class Unwilling(Stream):
    """The same of which no stream is begun."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        raise self._error


class Row(dict[str, Any]):
    """A row that does not give its values."""

    error: BaseException

    def get(self, name: str, default: object = None) -> Any:
        raise self.error


def row(error: BaseException) -> list[Mapping[str, Any]]:
    found = Row(id=7, v=[1.0, 2.0])
    found.error = error
    return [found]


def columns(error: BaseException) -> dict[str, Any]:
    def numbers() -> Iterator[int]:
        yield 7
        raise error

    return {"id": numbers(), "v": [[1.0, 2.0]]}


SOURCES: dict[str, Callable[[BaseException], Any]] = {
    "reader": reader,
    "columns": columns,
    "rows": row,
    "stream": Stream,
    "unwilling stream": Unwilling,
    "with progress": lambda error: with_progress(batches(error), tell=lambda done, total: None),
}
CALLS: dict[str, Callable[[MultiTableTransaction, Any], Any]] = {
    "append": lambda tx, data: tx.append("t", data),
    "overwrite": lambda tx, data: tx.overwrite("t", data),
    "overwrite of a schema": lambda tx, data: tx.overwrite("t", data, schema=SCHEMA),
    "create": lambda tx, data: tx.create("new", data),
    "create vectors": lambda tx, data: tx.create("new", data, vectors={"v": 2}),
    "create found vectors": lambda tx, data: tx.create("new", data, vectors=["v"]),
    "merge": lambda tx, data: tx.merge("t", data, "id"),
    "writer": lambda tx, data: tx.row_writer("t").write(data),
    "writer of a table": lambda tx, data: tx.row_writer("t", mode="overwrite").write(data),
    "writer of a new table": lambda tx, data: tx.row_writer("new", mode="create", schema=SCHEMA).write(data),
    "columns": lambda tx, data: tx.add_columns("one", data),
}


@pytest.fixture
def tables(local: Scene) -> Scene:
    local.catalog.create("t", pa.Table.from_batches([batch(1, 2)]))
    local.catalog.create("one", {"key": [1, 2]})
    return local


@pytest.mark.parametrize(
    ("source", "call"),
    [(source, call) for source in SOURCES for call in CALLS if (source, call) != ("columns", "columns")],
)  # a dict of new columns has expressions
def test_every_call_raises_one_class_with_the_cause(tables: Scene, source: str, call: str) -> None:
    catalog, before = tables.catalog, tables.catalog_version()
    for error in ERRORS:
        name = "Arrow|OSError" if source == "stream" else type(error).__name__
        with (
            catalog.begin() as tx,
            pytest.raises(WorkFailed, match=f"the source of the rows raised ({name})") as failed,
        ):
            CALLS[call](tx, SOURCES[source](error))
        cause = failed.value.__cause__
        assert cause is error or (source == "stream" and str(error.args[-1]) in str(cause))
    assert tables.catalog_version() == before
    assert catalog.read("t", ["id"])["id"].to_pylist() == [1, 2]
    assert [str(name) for name in catalog.tables()] == ["ml.one", "ml.t"]


def test_a_function_for_new_columns(tables: Scene) -> None:
    error = RuntimeError("no more")

    def fails(_: pa.RecordBatch) -> pa.RecordBatch:
        raise error

    with (
        tables.catalog.begin() as tx,
        pytest.raises(WorkFailed, match=r"ml\.t: the function for new columns") as failed,
    ):
        tx.add_columns("t", fails)
    assert failed.value.__cause__ is error


def test_parts_of_a_writer(tables: Scene) -> None:
    error = RuntimeError("no more")
    for mode, parts in (("append", batches), ("overwrite", batches), ("append", lambda error: iter(Raising(error)))):
        with tables.catalog.begin() as tx, pytest.raises(WorkFailed, match=r"ml\.t: the source of the rows") as failed:
            tx.row_writer("t", mode=mode).write_parts(parts(error))  # type: ignore[arg-type]
        assert failed.value.__cause__ is error


class Raising:
    """Raises at once."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        raise self._error


def test_a_file_that_is_gone_and_a_frame_that_fails(tables: Scene, tmp_path: Path) -> None:
    gone = tmp_path / "gone.parquet"
    pa.parquet.write_table(pa.Table.from_batches([batch(7)]), gone)
    files = pa.dataset.dataset(gone)
    gone.unlink()
    frame = pl.LazyFrame({"id": [7]}).map_batches(lambda _: 1 / 0, schema=None)  # type: ignore[arg-type, return-value]
    for source in (files, files.scanner(), frame):
        with tables.catalog.begin() as tx, pytest.raises(WorkFailed, match="the source of the rows") as failed:
            tx.append("t", source)
        assert failed.value.__cause__ is not None


def test_an_error_of_this_package_stays_what_it_is(tables: Scene) -> None:
    """The source of the rows may read the catalog itself; a conflict there is for `retrying`."""
    for error in (NotFound("there is none", code=4), ClientError("else")):
        with tables.catalog.begin() as tx, pytest.raises(type(error)) as failed:
            tx.append("t", reader(error))
        assert failed.value is error


def test_an_interrupt_of_the_source_is_raised(tables: Scene) -> None:
    for call in ("append", "merge", "create", "writer"):
        with tables.catalog.begin() as tx, pytest.raises(KeyboardInterrupt):
            CALLS[call](tx, reader(KeyboardInterrupt()))


def test_the_transaction_goes_on_and_commits_what_was_whole(tables: Scene) -> None:
    with tables.catalog.begin() as tx:
        tx.append("t", [{"id": 3, "v": [1.0]}])
        with pytest.raises(WorkFailed):
            tx.append("t", reader(RuntimeError("no more")))
        tx.append("t", [{"id": 4, "v": [1.0]}])
    assert tables.catalog.read("t", ["id"])["id"].to_pylist() == [1, 2, 3, 4]


def test_single_changes(tables: Scene) -> None:
    catalog: Catalog = tables.catalog
    error = RuntimeError("no more")
    before = tables.catalog_version()
    calls: tuple[Callable[[Any], Any], ...] = (
        lambda data: catalog.append("t", data),
        lambda data: catalog.overwrite("t", data),
        lambda data: catalog.create("new", data),
        lambda data: catalog.merge("t", data, on="id"),
    )
    for call in calls:
        with pytest.raises(WorkFailed) as failed:
            call(reader(error))
        assert failed.value.__cause__ is error
    assert tables.catalog_version() == before
