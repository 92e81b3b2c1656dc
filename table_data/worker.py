"""A process that does jobs, one at a time: `python -m table_data.worker DESCRIPTOR MEMORY`.

The parent holds the other end of the control connection. It sends one of

    ("change", number, job, length, piped) then the rows: so many bytes, or a descriptor if they come through a pipe
    ("stage", number, table)               of a change that began; any number of times
    ("discard", number)                    what was staged last, which was rejected
    ("end", numbers)                       of changes; others may begin before it
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

from table_data.arrow_file import write_file
from table_data.batch_operations import DELIMITER, TableState
from table_data.errors import ClientError, WorkFailed
from table_data.frames import FrameReader
from table_data.jobs import Job
from table_data.open_datasets import OpenDatasets
from table_data.open_tables import OpenTables
from table_data.operations import READS
from table_data.pipes import BUFFER, open_pipe
from table_data.pylance_errors import explained
from table_data.sessions import ChangeSession

_NICE = 10
"""Work on rows gives way to the catalog, which answers in less than a millisecond."""
_FEW = 1 << 18
"""Bytes of rows that are answered with the message that they are done."""


class Worker:
    """Does the jobs that come through a connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._socket = socket.socket(fileno=os.dup(connection.fileno()))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)  # as much of it as this system allows
        self._tables = OpenTables()
        self._layouts = OpenDatasets()
        self._changes: dict[int, tuple[ChangeSession, FrameReader | None]] = {}

    def run(self) -> None:
        """Do jobs until the parent closes the connection."""
        while True:
            try:
                message = self._connection.recv()
            except EOFError:
                return
            match message:
                case ("change", number, job, length, piped):
                    pipe = FrameReader(recv_handle(self._connection)) if piped else None
                    rows = pipe if length is None else io.BytesIO(self._socket.recv(length, socket.MSG_WAITALL))
                    self._changes[number] = ChangeSession(job, rows, self._layouts), pipe
                case ("end", numbers):
                    for number in numbers:
                        _, pipe = self._changes.pop(number)
                        if pipe is not None:
                            pipe.close()
                case ("read", job, table):
                    self._read(job, table)
                case _:
                    self._change(message)

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
        sink = _Sink(self._connection)
        try:
            with explained(f"{job.operation} of {DELIMITER.join(table.id)}"):
                answer = READS[job.operation](self._tables.open(table, job.options), job.request)
                if isinstance(answer, pa.RecordBatchReader):
                    write_file(answer, pa.PythonFile(sink, mode="w"))
                    reply = sink.end()
                else:
                    reply = ("value", answer)
        except Exception as error:  # noqa: BLE001 - as above
            reply = ("error", portable(error))
        finally:
            sink.close()
        self._connection.send(reply)
        if reply[0] == "file":
            for part in sink.few:
                self._socket.sendall(part)


class _Sink:
    """A file-like object for the rows of an answer: they go through a pipe, unless they are `few`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.few: list[bytes] = []
        self._size = 0
        self._pipe: io.BufferedWriter | None = None
        self.closed = False

    def write(self, data: Any) -> int:
        """Take bytes. The other end is told of the pipe before anything is in it."""
        if self._pipe is not None:
            return self._pipe.write(data)
        self.few.append(bytes(data))
        self._size += len(data)
        if self._size > _FEW:
            source, sink = open_pipe()
            with source:
                self._connection.send(("rows",))
                send_handle(self._connection, source.fileno(), os.getppid())
            self._pipe = io.BufferedWriter(sink, 1 << 20)
            self._pipe.writelines(self.few)
        return len(data)

    def end(self) -> tuple[Any, ...]:
        """Bring what is buffered on its way, and tell the answer."""
        if self._pipe is None:
            return ("file", self._size)
        self._pipe.flush()
        return ("done",)

    def close(self) -> None:
        """Close the pipe."""
        if self._pipe is not None:
            with suppress(OSError):  # the client went away, and what is buffered has no reader
                self._pipe.close()


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
