"""Work on rows in this process, for a catalog that is used without a server."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from table_data.batch_operations import DELIMITER, TableState
from table_data.errors import WorkFailed
from table_data.jobs import Job

if TYPE_CHECKING:
    from table_data.open_tables import OpenTables
    from table_data.sessions import ChangeSession


class InlineWork:
    """Does jobs where it is called. Pylance is loaded by the first one. Thread-safe."""

    @contextmanager
    def change(self, job: Job, rows: bytes | None = None) -> Iterator[ChangeSession]:
        """Begin a change. `rows` is an Arrow IPC stream or file."""
        from table_data.sessions import ChangeSession

        yield ChangeSession(job, None if rows is None else io.BytesIO(rows))

    def value(self, job: Job, table: TableState) -> Any:
        """Do a read whose answer is a JSON value. Raises `ClientError`."""
        answer = self._read(job, table)
        if isinstance(answer, pa.RecordBatchReader):
            raise WorkFailed(f"{job.operation}: expected a value, found rows")
        return answer

    def rows(self, job: Job, table: TableState) -> bytes:
        """Do a read whose answer is rows, as an Arrow IPC file. Raises `ClientError`."""
        from table_data.arrow_file import write_file
        from table_data.pylance_errors import explained

        sink = io.BytesIO()
        with explained(f"{job.operation} of {DELIMITER.join(table.id)}"):
            write_file(self._read(job, table), sink)
        return sink.getvalue()

    def _read(self, job: Job, table: TableState) -> Any:
        from table_data.operations import READS
        from table_data.pylance_errors import explained

        with explained(f"{job.operation} of {DELIMITER.join(table.id)}"):
            return READS[job.operation](self._tables.open(table, job.options), job.request)

    @cached_property
    def _tables(self) -> OpenTables:
        from table_data.open_tables import OpenTables

        return OpenTables()
