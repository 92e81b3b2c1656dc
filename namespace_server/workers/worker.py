"""The main loop of a worker process: jobs, one at a time.

The server holds the other end of the control socket; `protocol` has the messages. The worker ends when the server does.
"""

from __future__ import annotations

import io
import os
import resource
import select
import socket
import threading
from contextlib import suppress
from functools import partial

import pyarrow as pa

from namespace_server.workers.fifos import FifoWatch
from namespace_server.workers.memory import give_back
from namespace_server.workers.pipes import CHUNK, open_pipe, widen
from namespace_server.workers.protocol import IN_FILE, Message, WorkerChannel
from table_data.arrow.claims import RowLimits
from table_data.arrow.file import table_or_stream, write_rows
from table_data.batch_operations import DELIMITER, TableState
from table_data.errors import ClientError, WorkFailed
from table_data.jobs.job import Job
from table_data.jobs.reading import OpenTables, OpenVersions, answer_read, is_stream
from table_data.jobs.sessions import ChangeSession
from table_data.open_datasets import OpenDatasets
from table_data.pylance_errors import explained
from table_data.table_changes import find_damage

_NICE = 10
"""Work on rows gives way to the catalog, which answers in less than a millisecond."""
_RESERVED = 2 << 30
_FEW = 2 * CHUNK
"""Bytes of rows that are answered whole: about what a stream has on its way to a client."""


class Worker:
    """Does the jobs that come through a channel."""

    def __init__(self, channel: WorkerChannel, memory: int, rows: int) -> None:
        self._channel = channel
        self._limits = RowLimits(rows, memory // 2 if memory else rows)
        self._tables = OpenTables()
        self._layouts = OpenDatasets()
        self._versions = OpenVersions()
        self._changes: dict[int, ChangeSession] = {}
        self._fifos = FifoWatch()

    def run(self) -> None:
        """Do jobs until the server closes the socket."""
        with suppress(EOFError):
            while True:
                for message in self._channel.receive():
                    self._do(message)

    def _do(self, message: Message) -> None:
        match message:
            case ("change", number, job, length):
                rows = None if length is None else self._rows(length)
                self._changes[number] = ChangeSession(job, rows, self._layouts, self._versions, self._limits)
            case ("end", numbers):
                for number in numbers:
                    del self._changes[number]
            case ("open", table, options):
                with suppress(Exception), self._fifos.job(table.uri):  # the change that needs it reports the error
                    self._versions.open(table, options)
            case ("give back",):
                give_back()
            case ("read", job, table):
                self._read(job, table)
            case _:
                self._change(message)

    def _rows(self, length: int) -> pa.Buffer:
        """The rows of a change. Those in a file are not copied into memory."""
        if length != IN_FILE:
            return pa.py_buffer(self._channel.receive_bytes(length))
        descriptor = self._channel.receive_descriptor()
        try:
            return pa.memory_map(f"/dev/fd/{descriptor}").read_buffer()
        finally:
            os.close(descriptor)

    def _change(self, message: Message) -> None:
        try:
            session = self._changes[message[1]]
            if message[0] == "stage":
                with self._fifos.job(message[2].uri):
                    reply: Message = ("staged", session.stage(message[2]))
            else:
                session.discard()
                reply = ("discarded",)
        except Exception as error:  # noqa: BLE001 - the server needs an answer, and the worker goes on
            reply = ("error", portable(error))
        self._channel.send(reply)

    def _read(self, job: Job, table: TableState) -> None:
        whole: pa.Buffer | None = None
        try:
            place = f"{job.operation} of {DELIMITER.join(table.id)}"
            with self._fifos.job(table.uri), explained(place, partial(find_damage, table, job.options)):
                answer = answer_read(self._tables, job, table)
                if isinstance(answer, pa.RecordBatchReader):
                    rows = table_or_stream(answer.schema, answer, _FEW)
                    if isinstance(rows, pa.Table):
                        whole = _whole(rows, as_stream=is_stream(job))
                        reply: Message = ("file", whole.size)
                    else:
                        self._stream(rows, as_stream=is_stream(job))
                        reply = ("done",)
                else:
                    reply = ("value", answer)
        except Exception as error:  # noqa: BLE001 - as above
            reply = ("error", portable(error))
        self._channel.send(reply, whole)

    def _stream(self, rows: pa.RecordBatchReader, *, as_stream: bool) -> None:
        """Write rows to a pipe, whose other end is sent to the server first."""
        source, end = open_pipe()
        with source:
            self._channel.send(("rows",), descriptor=source.fileno())
        sink = io.BufferedWriter(end, CHUNK)
        try:
            write_rows(rows, pa.PythonFile(sink, mode="w"), as_stream=as_stream)
            sink.flush()
        finally:
            with suppress(OSError):  # the client went away, and buffered bytes have no reader
                sink.close()


def _whole(rows: pa.Table, *, as_stream: bool) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    write_rows(rows, sink, as_stream=as_stream)
    return sink.getvalue()


def portable(error: Exception) -> ClientError:
    """An error that the server can be sent."""
    if isinstance(error, ClientError):
        return type(error)(str(error))
    return WorkFailed(f"{type(error).__name__}: {error}")


def _end_with_server(end: socket.socket) -> None:
    """End this process when the other end of the socket is closed, whatever it is doing."""
    poll = select.poll()
    poll.register(end.fileno(), 0)  # a hang-up is always reported
    poll.poll()
    os._exit(1)


def work(end: socket.socket, memory: int, rows: int) -> None:
    """Do jobs until the server ends.

    The server ends this process when a job takes more than `memory` bytes; 0 is no bound. A body may have `rows` bytes
    of rows when it is not compressed.
    """
    widen(end)
    if memory:  # an allocation far beyond the bound fails at once; pylance itself reserves more than it uses
        resource.setrlimit(resource.RLIMIT_DATA, (memory + _RESERVED, memory + _RESERVED))
    os.nice(_NICE)
    threading.Thread(target=_end_with_server, args=(end,), daemon=True).start()
    Worker(WorkerChannel(end), memory, rows).run()
