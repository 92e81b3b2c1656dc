"""A process that does jobs, one at a time: `python -m table_data.worker.process DESCRIPTOR MEMORY`.

The parent holds the other end of the control connection. It sends tuples of

    ("change", number, job, length, piped) behind the tuple come the rows: so many bytes, or the descriptor of a pipe
    ("stage", number, table)               of a change that began; any number of times
    ("discard", number)                    what was staged last, which was rejected
    ("end", numbers)                       of changes; others may begin before it
    ("open", table, options)               a version that a change has just made, for the next change of the table
    ("read", job, table)

and gets for each stage, discard and read one of

    ("staged", staged)            ("value", json)           ("discarded",)
    ("file", length)              then so many bytes: all rows, where they are few
    ("rows",)                     then the descriptor to read the rows from; at their end ("done",)
    ("error", error)              a `ClientError`; also instead of ("done",)

The worker ends when the parent does. It may allocate MEMORY bytes, 0 is no bound: a body that claims more is an error.
"""

from __future__ import annotations

import io
import os
import resource
import select
import socket
import sys
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle, send_handle
from typing import Any

import pyarrow as pa

from table_data.arrow.few_rows import table_or_stream
from table_data.arrow.file import write_file
from table_data.batch_operations import DELIMITER, TableState
from table_data.errors import ClientError, WorkFailed
from table_data.operations import READS
from table_data.pylance_errors import explained
from table_data.worker.frames import FrameReader
from table_data.worker.jobs import Job
from table_data.worker.open_datasets import OpenDatasets
from table_data.worker.open_tables import OpenTables
from table_data.worker.open_versions import OpenVersions
from table_data.worker.pipes import CHUNK, open_pipe, widen
from table_data.worker.sessions import ChangeSession

_NICE = 10
"""Work on rows gives way to the catalog, which answers in less than a millisecond."""
_FEW = 2 * CHUNK
"""Bytes of rows that are answered whole: about what a stream has on its way to a client."""


class Worker:
    """Does the jobs that come through a connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._socket = socket.socket(fileno=os.dup(connection.fileno()))
        widen(self._socket)
        self._tables = OpenTables()
        self._layouts = OpenDatasets()
        self._versions = OpenVersions()
        self._changes: dict[int, tuple[ChangeSession, FrameReader | None]] = {}

    def run(self) -> None:
        """Do jobs until the parent closes the connection."""
        with suppress(EOFError):
            while True:
                for message in self._connection.recv():
                    self._do(message)

    def _do(self, message: tuple[Any, ...]) -> None:
        match message:
            case ("change", number, job, length, piped):
                pipe = FrameReader(recv_handle(self._connection)) if piped else None
                rows = pipe if length is None else io.BytesIO(self._receive(length))
                self._changes[number] = ChangeSession(job, rows, self._layouts, self._versions), pipe
            case ("end", numbers):
                for number in numbers:
                    _, pipe = self._changes.pop(number)
                    if pipe is not None:
                        pipe.close()
            case ("open", table, options):
                with suppress(Exception):  # the change that needs it says what is wrong
                    self._versions.open(table, options)
            case ("read", job, table):
                self._read(job, table)
            case _:
                self._change(message)

    def _receive(self, length: int) -> bytes:
        data = self._socket.recv(length, socket.MSG_WAITALL)
        if len(data) < length:  # the parent has ended: no signal is handled here, which could cut a call short
            raise EOFError
        return data

    def _change(self, message: tuple[Any, ...]) -> None:
        try:
            session, _ = self._changes[message[1]]
            if message[0] == "stage":
                reply: tuple[Any, ...] = ("staged", session.stage(message[2]))
            else:
                session.discard()
                reply = ("discarded",)
        except Exception as error:  # noqa: BLE001 - the parent needs an answer, and the worker goes on
            reply = ("error", portable(error))
        self._connection.send(reply)

    def _read(self, job: Job, table: TableState) -> None:
        whole: pa.Buffer | None = None
        try:
            with explained(f"{job.operation} of {DELIMITER.join(table.id)}"):
                answer = READS[job.operation](self._tables.open(table, job.options), job.request)
                if isinstance(answer, pa.RecordBatchReader):
                    rows = table_or_stream(answer.schema, answer, _FEW)
                    if isinstance(rows, pa.Table):
                        whole = _file(rows)
                        reply: tuple[Any, ...] = ("file", whole.size)
                    else:
                        self._stream(rows)
                        reply = ("done",)
                else:
                    reply = ("value", answer)
        except Exception as error:  # noqa: BLE001 - as above
            reply = ("error", portable(error))
        self._connection.send(reply)
        if whole is not None:
            self._socket.sendall(whole)

    def _stream(self, rows: pa.RecordBatchReader) -> None:
        """Write rows to a pipe, of which the parent is told first."""
        source, end = open_pipe()
        with source:
            self._connection.send(("rows",))
            send_handle(self._connection, source.fileno(), os.getppid())
        sink = io.BufferedWriter(end, CHUNK)
        try:
            write_file(rows, pa.PythonFile(sink, mode="w"))
            sink.flush()
        finally:
            with suppress(OSError):  # the client went away, and what is buffered has no reader
                sink.close()


def _file(rows: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    write_file(rows.to_reader(), sink)
    return sink.getvalue()


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
