"""A process that does jobs, one at a time: `python -m table_data.worker DESCRIPTOR MEMORY`.

The parent holds the other end of the control connection. It sends one of

    ("change", job, has_rows)     then the descriptor of the rows; then ("stage", table) and, if that was rejected,
                                  ("discard",) any number of times; ("end",)
    ("read", job, table)          then the descriptor of the answer's rows

and gets for each stage and read one of

    ("staged", staged)            ("value", json)           ("discarded",)
    ("rows",)                     the answer's rows follow through their descriptor; at their end ("done",)
    ("error", error)              a `ClientError`; also instead of ("done",)

The worker ends when the parent does. It may allocate MEMORY bytes, 0 is no bound: a body that claims more is an error.
"""

from __future__ import annotations

import os
import resource
import select
import sys
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle
from typing import Any

import pyarrow as pa

from table_data.arrow_file import write_file
from table_data.batch_operations import DELIMITER, TableState
from table_data.errors import ClientError, WorkFailed
from table_data.frames import FrameReader
from table_data.jobs import Job
from table_data.open_tables import OpenTables
from table_data.operations import READS
from table_data.pylance_errors import explained
from table_data.sessions import ChangeSession

_NICE = 10
"""Work on rows gives way to the catalog, which answers in less than a millisecond."""


class Worker:
    """Does the jobs that come through a connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._tables = OpenTables()

    def run(self) -> None:
        """Do jobs until the parent closes the connection."""
        while True:
            try:
                message = self._connection.recv()
            except EOFError:
                return
            if message[0] == "change":
                self._change(message[1], has_rows=message[2])
            else:
                self._read(message[1], message[2])

    def _change(self, job: Job, *, has_rows: bool) -> None:
        source = FrameReader(recv_handle(self._connection)) if has_rows else None
        try:
            session = ChangeSession(job, source)
            while (message := self._connection.recv())[0] != "end":
                try:
                    if message[0] == "stage":
                        reply: tuple[Any, ...] = ("staged", session.stage(message[1]))
                    else:
                        session.discard()
                        reply = ("discarded",)
                    self._connection.send(reply)
                except Exception as error:  # noqa: BLE001 - the parent needs an answer, and the worker goes on
                    self._connection.send(("error", portable(error)))
        finally:
            if source is not None:
                source.close()

    def _read(self, job: Job, table: TableState) -> None:
        sink = os.fdopen(recv_handle(self._connection), "wb", buffering=1 << 20)
        try:
            with explained(f"{job.operation} of {DELIMITER.join(table.id)}"):
                answer = READS[job.operation](self._tables.open(table, job.options), job.request)
                if isinstance(answer, pa.RecordBatchReader):
                    self._write(answer, sink)
                    reply: tuple[Any, ...] = ("done",)
                else:
                    reply = ("value", answer)
        except Exception as error:  # noqa: BLE001 - as above
            reply = ("error", portable(error))
        finally:
            with suppress(OSError):  # the client went away, and what is buffered has no reader
                sink.close()
        self._connection.send(reply)

    def _write(self, reader: pa.RecordBatchReader, sink: Any) -> None:
        """Write rows as an Arrow IPC file. Announced with the first batch, so that errors before it have no answer."""
        write_file(reader, pa.PythonFile(sink, mode="w"), lambda: self._connection.send(("rows",)))
        sink.flush()


def portable(error: Exception) -> ClientError:
    """An error that the parent can be sent."""
    if isinstance(error, ClientError):
        return type(error)(str(error))
    return WorkFailed(f"{type(error).__name__}: {error}")


def _end_with_parent(connection: Connection) -> None:
    """End this process when the other end of the connection is closed, whatever it is doing."""
    poll = select.poll()
    poll.register(connection.fileno(), 0)  # a hang-up is always told
    poll.poll()
    os._exit(1)


def main() -> None:
    """Do jobs until the parent ends."""
    connection, memory = Connection(int(sys.argv[1])), int(sys.argv[2])
    if memory:
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    os.nice(_NICE)
    threading.Thread(target=_end_with_parent, args=(connection,), daemon=True).start()
    Worker(connection).run()


if __name__ == "__main__":
    main()
