"""Work on rows in this process, for a catalog that is used without a server."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from namespace_server.answer import Answer
from namespace_server.data.change_request import ChangeRecord
from namespace_server.data.creation import TableCreation
from namespace_server.data.operations import DataOperations
from namespace_server.data.port import CommittedChange, Tables
from namespace_server.data.uploads import StagedUploads
from table_data.batch_operations import DELIMITER, StagedOperation, TableState
from table_data.errors import WorkFailed
from table_data.jobs.job import Job, Staged
from table_data.requests.table_requests import CreateTable, TableRequest

if TYPE_CHECKING:
    from namespace_server.directory.catalog_tables import CatalogTables
    from table_data.jobs.reading import OpenTables
    from table_data.jobs.sessions import ChangeSession


T = TypeVar("T")

ChangeCommit = Callable[[Sequence[StagedOperation], ChangeRecord], CommittedChange]
"""See `Tables.commit`."""


class InlineChanges:
    """Changes of rows of one catalog, done where they are called. Blocking; thread-safe.

    Raises the namespace errors of the operations.
    """

    def __init__(self, catalog: CatalogTables, commit: ChangeCommit) -> None:
        tables = inline_tables(catalog, commit)
        self._operations: DataOperations[bytes] = DataOperations(tables, InlineWork())
        self._creation = TableCreation(tables, self._operations)
        self._uploads = StagedUploads(tables, self._operations)

    def change(self, operation: str, request: TableRequest, rows: bytes | None = None) -> Answer:
        """Commit a change of a table, on its newest version. `rows` is an Arrow IPC stream or file."""
        return _finished(self._operations.change(operation, request, rows))

    def create_table(self, request: CreateTable, rows: bytes) -> Answer:
        """Create a table from rows."""
        return _finished(self._creation.create(request, rows))

    def stage_rows(self, request: CreateTable, rows: bytes) -> Answer:
        """Write rows for a batch that commits them."""
        return _finished(self._uploads.stage(request, rows))

    def stage_change(self, operation: str, request: TableRequest, rows: bytes | None = None) -> Answer:
        """Write the files of a change for a batch that commits it. A merge has `rows`."""
        return _finished(self._uploads.stage_change(operation, request, rows))


def inline_tables(catalog: CatalogTables, commit: ChangeCommit) -> Tables:
    """A catalog whose coroutines never wait."""

    async def commit_at_once(operations: Sequence[StagedOperation], record: ChangeRecord) -> CommittedChange:
        return commit(operations, record)

    return Tables(catalog, commit_at_once)


def _finished(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that waits for nothing, without an event loop."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError("work in this process waited for an event loop")


class _InlineChange:
    def __init__(self, session: ChangeSession) -> None:
        self._session = session

    async def stage(self, table: TableState, *, limit: float | None = None) -> Staged:
        del limit
        return self._session.stage(table)

    async def discard(self) -> None:
        self._session.discard()

    async def prepare(self, table: TableState) -> None:
        pass


class InlineWork:
    """Does jobs where it is called. Pylance is loaded by the first one. Thread-safe."""

    @asynccontextmanager
    async def change(
        self, job: Job, rows: bytes | None = None, principal: str | None = None
    ) -> AsyncIterator[_InlineChange]:
        """Begin a change. `rows` is an Arrow IPC stream or file. Here all of a process is its only principal's."""
        del principal
        from table_data.jobs.sessions import ChangeSession

        yield _InlineChange(ChangeSession(job, None if rows is None else pa.py_buffer(rows)))

    def value(self, job: Job, table: TableState) -> Any:
        """Do a read whose answer is a JSON value. Raises `ClientError`."""
        answer = self._read(job, table)
        if isinstance(answer, pa.RecordBatchReader):
            raise WorkFailed(f"{job.operation}: expected a value, found rows")
        return answer

    def rows(self, job: Job, table: TableState) -> bytes:
        """Do a read whose answer is rows, as an Arrow IPC file. Raises `ClientError`."""
        from table_data.arrow.file import table_or_stream, write_rows
        from table_data.pylance_errors import explained
        from table_data.table_changes import find_damage

        sink = io.BytesIO()
        with explained(f"{job.operation} of {DELIMITER.join(table.id)}", partial(find_damage, table, job.options)):
            found = self._read(job, table)
            write_rows(table_or_stream(found.schema, found), sink)
        return sink.getvalue()

    def stream(self, job: Job, table: TableState) -> pa.RecordBatchReader:
        """Do a read whose answer is rows, which are read as they are taken. Raises `ClientError`, then too."""
        from table_data.pylance_errors import explained
        from table_data.table_changes import find_damage

        found = self._read(job, table)

        def batches() -> Iterator[pa.RecordBatch]:
            with explained(f"{job.operation} of {DELIMITER.join(table.id)}", partial(find_damage, table, job.options)):
                yield from found

        return pa.RecordBatchReader.from_batches(found.schema, batches())

    def _read(self, job: Job, table: TableState) -> Any:
        from table_data.jobs.reading import answer_read
        from table_data.pylance_errors import explained
        from table_data.table_changes import find_damage

        with explained(f"{job.operation} of {DELIMITER.join(table.id)}", partial(find_damage, table, job.options)):
            return answer_read(self._tables, job, table)

    @cached_property
    def _tables(self) -> OpenTables:
        from table_data.jobs.reading import OpenTables

        return OpenTables()
