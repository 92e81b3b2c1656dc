"""A bounded pool of worker processes for changes. See `table_data.worker` for what they are told."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from multiprocessing.reduction import send_handle
from typing import Any

from lance_namespace.errors import ServiceUnavailableError

from namespace_server.data.worker_process import WorkTimeout, ended_early, start_worker, took_too_long
from table_data.batch_operations import TableState
from table_data.errors import ClientError, WorkFailed
from table_data.jobs import Job, Staged
from table_data.pipes import PipeEnd

_log = logging.getLogger(__name__)


class WorkerPool:
    """Up to `size` processes, started when they are needed. Blocking; thread-safe.

    A job has `timeout` seconds for each of its steps, and may allocate `memory` bytes; 0 is no bound. A worker whose
    job did not end as it should is killed, and another takes its place: it can hold nothing that others need.
    """

    def __init__(self, size: int, *, timeout: float = 3600.0, memory: int = 0) -> None:
        self._timeout = timeout
        self._memory = memory
        self._free: list[Worker | None] = [None] * size
        self._lock = threading.Lock()
        self._freed = threading.Condition(self._lock)
        self._one_freed = threading.Condition(self._lock)
        """For those that wait for a worker of their own; the others are woken one by one."""
        self._starting = threading.Lock()
        self._started: set[Worker] = set()
        self._closed = False

    @contextmanager
    def change(self, job: Job, rows: PipeEnd | None = None) -> Iterator[_RemoteChange]:
        """Begin a change. `rows` is a pipe with frames of an Arrow IPC stream or file; it is closed here."""
        change = _RemoteChange(self, job, rows)
        try:
            yield change
        finally:
            change.end()

    def close(self) -> None:
        """End the workers. Jobs in progress are ended too, as those of a client that went away."""
        with self._starting:
            self._closed = True
            for worker in self._started:
                worker.interrupt()
            for worker in self._started:
                worker.wait()

    def hold(self) -> Worker:
        """Wait for a free worker and take it. `release` it afterwards."""
        with self._freed:
            self._freed.wait_for(lambda: self._free)
            worker = self._free.pop()
        if worker is not None and worker.is_alive():
            return worker
        try:
            return self._start()
        except BaseException:
            self._put_back(None)
            raise

    def hold_again(self, worker: Worker) -> None:
        """Wait for this worker and take it. Raises `WorkFailed` if its process has ended."""
        with self._lock:
            self._one_freed.wait_for(lambda: worker in self._free or not worker.is_alive())
            if worker.is_alive():
                self._free.remove(worker)
                return
        raise WorkFailed("work on rows: expected the process that began it, found its end; nothing was changed")

    def release(self, worker: Worker) -> None:
        """Give a worker back. One that owes an answer is ended."""
        if worker.owes_answer:
            worker.kill()
        worker.end_changes()
        self._put_back(worker)

    def end_change(self, worker: Worker, number: int) -> None:
        """Let a worker that is not held forget a change, now or before it is given back."""
        worker.ended.append(number)
        with self._freed:
            if worker not in self._free:
                return
            self._free.remove(worker)
        self.release(worker)

    def _put_back(self, worker: Worker | None) -> None:
        with self._lock:
            self._free.append(worker)
            self._freed.notify()
            self._one_freed.notify_all()

    def _start(self) -> Worker:
        with self._starting:
            if self._closed:
                raise ServiceUnavailableError("the server is shutting down; nothing was done")
            self._started = {worker for worker in self._started if worker.is_alive()}
            worker = Worker(self._timeout, self._memory)
            self._started.add(worker)
            return worker


class Worker:
    """One process and the connection to it."""

    def __init__(self, timeout: float, memory: int) -> None:
        self._timeout = timeout
        self._process, ours = start_worker(memory)
        self._connection = Connection(ours.detach())
        self.owes_answer = False
        self.ended: deque[int] = deque()
        """Changes that the process may forget; it is told when it has time."""
        self._changes = 0
        self._was_interrupted = False

    def begin_change(self, job: Job, rows: PipeEnd | None) -> int:
        """Begin a change, whose rows are closed here. Returns its number."""
        self._changes += 1
        self.send(("change", self._changes, job, rows is not None))
        if rows is not None:
            self.send_descriptor(rows.fileno())
            rows.close()
        return self._changes

    def end_changes(self) -> None:
        """Tell the process which changes it may forget."""
        with suppress(WorkFailed):  # it ends just now
            while self.ended and self.is_alive():
                self.send(("end", self.ended.popleft()))

    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def send(self, message: tuple[Any, ...]) -> None:
        """Tell the worker something; stages and discards are answered."""
        self.owes_answer = message[0] in {"stage", "discard"}
        try:
            self._connection.send(message)
        except OSError as error:
            raise self._lost() from error

    def send_descriptor(self, descriptor: int) -> None:
        """Give the worker a duplicate of a descriptor."""
        send_handle(self._connection, descriptor, self._process.pid)

    def answer(self, timeout: float | None = None) -> tuple[Any, ...]:
        """What the worker answers; an error that it answers is raised. Raises `ClientError`, `WorkTimeout`."""
        limit = self._timeout if timeout is None else min(timeout, self._timeout)
        try:
            if not self._connection.poll(max(0.0, limit)):
                raise self.late(limit)
            reply: tuple[Any, ...] = self._connection.recv()
        except (EOFError, OSError) as error:
            raise self._lost() from error
        self.owes_answer = False
        if reply[0] == "error":
            raise reply[1]
        return reply

    def late(self, limit: float) -> WorkTimeout:
        """End the process, which had so many seconds, and say so."""
        self.kill()
        return took_too_long(limit)

    def interrupt(self) -> None:
        """Have the process end soon. For another thread than the one that waits for its answer."""
        self._was_interrupted = True
        self._process.kill()

    def wait(self) -> None:
        """Wait for the end of the process."""
        self._process.wait()

    def kill(self) -> None:
        """End the process, and close what it is spoken to through. May be called more than once."""
        self.owes_answer = False
        self._process.kill()
        self.wait()
        with suppress(OSError):
            self._connection.close()

    def _lost(self) -> WorkFailed:
        self.kill()
        if not self._was_interrupted:
            _log.error("a worker process ended in its job, with status %s", self._process.returncode)
        return ended_early()


class _RemoteChange:
    """A change under way in a worker.

    A change that only appends rows is committed while the worker does other jobs: several of them can then share a
    flip. Any other keeps its worker until it ends: what another change of the table staged meanwhile would conflict.
    """

    def __init__(self, pool: WorkerPool, job: Job, rows: PipeEnd | None) -> None:
        self._pool = pool
        self._job = job
        self._rows = rows
        self._worker: Worker | None = None
        self._number = 0
        self._held = False
        self._keeps = False

    def stage(self, table: TableState, *, timeout: float | None = None) -> Staged:
        """Stage it on a version. Raises `ClientError`, `WorkTimeout`."""
        with self._turn() as worker:
            worker.send(("stage", self._number, table))
            staged: Staged = worker.answer(timeout)[1]
            self._keeps = not staged.appends
        return staged

    def discard(self) -> None:
        """Remove the files that were staged last; what a worker leaves is collected later."""
        with suppress(ClientError, WorkTimeout), self._turn() as worker:
            worker.send(("discard", self._number))
            worker.answer()

    def end(self) -> None:
        """Let the worker forget the change."""
        if self._worker is None:
            return
        if self._held:
            self._worker.ended.append(self._number)
            self._pool.release(self._worker)
        else:
            self._pool.end_change(self._worker, self._number)

    @contextmanager
    def _turn(self) -> Iterator[Worker]:
        """Hold the worker, the same each time."""
        if self._worker is None:
            self._worker = self._pool.hold()
            self._held = True
            self._number = self._worker.begin_change(self._job, self._rows)
        elif not self._held:
            self._pool.hold_again(self._worker)
            self._held = True
        try:
            yield self._worker
        finally:
            if not self._keeps:
                self._held = False
                self._pool.release(self._worker)
