"""Operations on rows as the routes use them: admitted within bounds, done by worker processes beside the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeVar, cast

from starlette.types import Receive

from namespace_server.access.subjects import Privilege, Subject
from namespace_server.answer import Answer
from namespace_server.data.change_request import Caller, ChangeRecord, ChangeRequest, RowsDigest
from namespace_server.data.creation import TableCreation
from namespace_server.data.multipart import MultipartWrites
from namespace_server.data.operations import DataOperations, namespace_errors
from namespace_server.data.port import Commit, CommitChange, CommittedChange, Look, Tables
from namespace_server.data.reads import (
    NEWEST,
    PlannedRead,
    ReadPoint,
    explain_gone,
    plan_changes,
    plan_read,
)
from namespace_server.data.uploads import StagedUploads
from namespace_server.directory.catalog_tables import CatalogTables
from namespace_server.observability.observation import SILENT, Observer, PoolState
from namespace_server.rest.blob_pieces import PieceSpace
from namespace_server.rest.maintenance_runs import MaintenanceRuns
from namespace_server.rest.request.limits import DataLimits
from namespace_server.rest.request.rows import RowsBody
from namespace_server.rest.under_way import AskedChange, UnderWay, Work, taken, while_connected
from namespace_server.throttling import LimitReached
from namespace_server.workers.change_pool import ChangePool, Rows
from namespace_server.workers.process_pool import part_of_one
from namespace_server.workers.read_pool import ReadPool
from namespace_server.workers.spool import SpoolSpace
from namespace_server.workers.starter import WorkerStarter
from table_data.batch_operations import StagedOperation, TableState
from table_data.errors import VersionGone
from table_data.jobs.job import Job
from table_data.requests.table_requests import (
    AbortMultipartWrite,
    BeginMultipartWrite,
    CompleteMultipartWrite,
    CreateTable,
    Insert,
    ReadChanges,
    ReadRequest,
    TableRequest,
)

T = TypeVar("T")

_FINDING: Final = 32
"""Threads that find tables of a remote catalog."""

_WAITING: Final = "max_waiting_work"


@dataclass(frozen=True, slots=True)
class RowStream:
    """The bytes of an Arrow IPC file, and the versions that its rows were read at."""

    chunks: AsyncIterator[bytes]
    catalog_version: int
    table_version: int | None


class TableReading:
    """Reads of one version of a table for one request."""

    def __init__(
        self,
        catalog: CatalogTables,
        reads: ReadPool,
        planned: PlannedRead,
        caller: Caller,
        connection: asyncio.Timeout,
        limits: DataLimits,
    ) -> None:
        self._catalog = catalog
        self._reads = reads
        self._planned = planned
        self._caller = caller
        self._connection = connection
        self._patience = limits.chunk_timeout
        self.table = planned.table
        self.catalog_version = planned.catalog_version

    async def value(self, operation: str, request: ReadRequest) -> Any:
        """What a job answers. Raises `ClientError`, `WorkTimeout`, `ThrottlingError`."""
        return await self._reads.value(self._job(operation, request), self.table, self._caller.principal)

    @asynccontextmanager
    async def rows(self, operation: str, request: ReadRequest) -> AsyncIterator[RowStream]:
        """The rows that a job answers, as `DataService.rows`."""
        async with self._reads.rows(self._job(operation, request), self.table, self._caller.principal) as rows:
            chunks = taken(rows.chunks(), self._connection, self._patience)
            yield RowStream(chunks, self.catalog_version, self.table.version)

    def taken(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Pieces of an answer, each of which the client has to take in time."""
        return taken(chunks, self._connection, self._patience)

    def break_off(self) -> None:
        """End the answer as if its client had not taken a piece in time."""
        with suppress(RuntimeError):  # it ends already
            self._connection.reschedule(asyncio.get_running_loop().time())

    def blob_refusal(self, place: str) -> str | None:
        """As `CatalogTables.blob_refusal`."""
        return self._catalog.blob_refusal(place, self._caller.subject)

    def _job(self, operation: str, request: ReadRequest) -> Job:
        return replace(self._planned.job, operation=operation, request=request)


class DataService:
    """Operations on rows of one catalog. Belongs to one event loop.

    Changes and reads have worker processes of their own, so that a long insert keeps no query waiting. What cannot
    begin waits; if too many wait, the next is refused (`LimitReached`, 21).
    """

    def __init__(self, catalog: CatalogTables, commit: Commit, limits: DataLimits, observer: Observer = SILENT) -> None:
        self._catalog = catalog
        self._limits = limits
        self._space = SpoolSpace(limits.spool)
        memory, share = limits.worker_memory, limits.worker_share
        self._starter = WorkerStarter()
        self._changes = ChangePool(
            self._starter,
            limits.change_workers,
            timeout=limits.work_timeout,
            memory=memory,
            rows=limits.body,
            share=share,
            observer=observer,
        )
        self._reads = ReadPool(
            self._starter,
            limits.read_workers,
            waiting=limits.waiting,
            space=self._space,
            timeout=limits.query_timeout,
            memory=memory,
            share=share,
            observer=observer,
        )
        self.pieces = PieceSpace()
        self._finding = _BoundedThreads(_FINDING + limits.waiting)
        self._under_way = UnderWay()
        self._runs = MaintenanceRuns(limits.change_workers)
        tables = _Tables(catalog, commit, self._find, self._finding.run, self._under_way)
        self._operations: DataOperations[Rows] = DataOperations(tables, self._changes)
        self._creation = TableCreation(tables, self._operations)
        self._uploads = StagedUploads(tables, self._operations)
        self._multipart = MultipartWrites(tables, self._operations)

    async def change(self, operation: str, request: TableRequest, receive: Receive, caller: Caller) -> Answer:
        """Commit a change of a table without rows. Under an idempotency key it is made once.

        It ends when its client goes away, unless its batch is handed over to be committed already. One that has a key
        goes on for a minute, and a request that repeats it meanwhile waits for it. Raises the namespace errors of the
        operation, `ClientDisconnected`.
        """

        def begin() -> Work:
            self._admit(caller.principal)
            return self._operations.change(operation, request, caller=caller)

        return await self._finish(operation, request, begin, receive, caller)

    async def maintain(
        self, request: TableRequest, receive: Receive, caller: Caller, *, plans: bool, stopped: Callable[[], bool]
    ) -> Answer:
        """Maintain a table, or plan that; see `CatalogTables.maintain`. It ends when its client goes away.

        Its changes are the caller's, each a batch of its own. Under an idempotency key its answer is recorded at the
        end, and given again; one that `plans` records nothing. Raises as `change` does.
        """
        asked = replace(caller, idempotency_key=None) if plans else caller

        def begin() -> Work:
            self._admit(caller.principal)
            requested = ChangeRequest("maintain_table", request, asked)
            return self._operations.once(requested, partial(self._maintain, requested, stopped))

        return await self._finish("maintain_table", request, begin, receive, asked)

    async def _maintain(self, requested: ChangeRequest, stopped: Callable[[], bool]) -> Answer:
        caller = replace(requested.caller, idempotency_key=None)

        def run(change: CommitChange, is_over: Callable[[], bool]) -> Answer:
            return self._catalog.maintain(
                requested.request, change, subject=caller.subject, stopped=lambda: is_over() or stopped()
            )

        done = await self._runs.run(run, partial(self._operations.change, caller=caller), caller.principal)
        return await self._operations.keep_answer(requested, done.body, done.catalog_version)

    async def _finish(
        self, operation: str, request: object, begin: Callable[[], Work], receive: Receive, caller: Caller
    ) -> Answer:
        """Do work to its end; under an idempotency key all requests that ask for it meanwhile wait for the same."""
        key = caller.idempotency_key
        if key is None:
            return await self._under_way.finish(begin(), receive, caller.principal)
        asked = AskedChange((caller.principal, key), (operation, request))
        return await self._under_way.finish_once(asked, begin, receive, caller.principal)

    async def multipart(
        self,
        operation: str,
        request: BeginMultipartWrite | AbortMultipartWrite | CompleteMultipartWrite,
        receive: Receive,
        caller: Caller,
    ) -> Answer:
        """Begin, complete or abort an upload of rows in parts. Raises as `change` does."""
        self._admit(caller.principal)
        match operation:
            case "create_multipart_write":
                work = self._multipart.begin(cast("BeginMultipartWrite", request), caller=caller)
            case "complete_multipart_write":
                work = self._multipart.complete(cast("CompleteMultipartWrite", request), caller=caller)
            case _:
                work = self._multipart.abort(cast("AbortMultipartWrite", request), caller=caller)
        return await self._under_way.finish(work, receive, caller.principal)

    async def stage(self, operation: str, request: TableRequest, receive: Receive, caller: Caller) -> Answer:
        """Write the files of a change without rows, for a batch that commits it. Raises as `change` does."""
        self._admit(caller.principal)
        work = self._uploads.stage_change(operation, request, caller=caller)
        return await self._under_way.finish(work, receive, caller.principal)

    async def add_part(self, insert: Insert, upload_id: str, part_id: str, rows: RowsBody, caller: Caller) -> Answer:
        """Write one part of an upload with the rows of the body, which is digested. Raises as `change_with_rows`."""
        work = partial(self._multipart.add, insert, upload_id, part_id, caller=caller)
        return await self._with_rows(work, rows, caller.principal)

    async def change_with_rows(
        self,
        operation: str,
        request: TableRequest,
        rows: RowsBody,
        caller: Caller,
        *,
        implicit: tuple[str, ...] = (),
    ) -> Answer:
        """Commit a change of a table with the rows of the body.

        The namespace `implicit` and those above it are created with a new table in them. Raises as `change` does, and
        `BodyTooLarge`, `RequestTimeout`.
        """
        return await self._with_rows(self._work_on_rows(operation, request, caller, implicit), rows, caller.principal)

    def _work_on_rows(
        self, operation: str, request: TableRequest, caller: Caller, implicit: tuple[str, ...]
    ) -> Callable[[Rows, RowsDigest], Work]:
        match operation:
            case "create_table":
                creation = cast("CreateTable", request)
                return partial(self._creation.create, creation, caller=caller, implicit=implicit)
            case "stage_rows":  # for a batch that commits them: nothing is committed here
                return lambda rows, _: self._uploads.stage(cast("CreateTable", request), rows, caller=caller)
            case "stage_merge":
                return lambda rows, _: self._uploads.stage_change(operation, request, rows, caller=caller)
        return partial(self._operations.change, operation, request, caller=caller)

    async def value(
        self,
        operation: str,
        request: ReadRequest,
        receive: Receive,
        *,
        caller: Caller,
        at: ReadPoint = NEWEST,
    ) -> Answer[object]:
        """Answer a read whose answer is a JSON value. It ends when its client goes away.

        Raises the namespace errors of the operation, `ClientDisconnected`.
        """
        planned = await self._plan(operation, request, at, caller.subject)
        if planned.known is not None:
            return planned.answer(planned.known)
        async with while_connected(receive), self._errors(planned):
            return planned.answer(await self._reads.value(planned.job, planned.table, caller.principal))

    @asynccontextmanager
    async def rows(
        self,
        operation: str,
        request: ReadRequest,
        receive: Receive,
        *,
        caller: Caller,
        at: ReadPoint = NEWEST,
    ) -> AsyncIterator[RowStream]:
        """Answer a read with rows: the bytes of an Arrow IPC file, once its first rows are there.

        A client that goes away, or takes no bytes for `chunk_timeout` seconds, ends the block with
        `ClientDisconnected`. Raises the namespace errors of the operation, also while bytes are read.
        """
        async with self._streamed(receive, partial(self._plan, operation, request, at, caller.subject), caller) as rows:
            yield rows

    @asynccontextmanager
    async def changes(self, request: ReadChanges, receive: Receive, *, caller: Caller) -> AsyncIterator[RowStream]:
        """Answer the changed rows of a table: the bytes of an Arrow IPC stream. Raises as `rows` does."""
        plan = partial(self._finding.run, partial(plan_changes, self._catalog, request, subject=caller.subject))
        async with self._streamed(receive, plan, caller) as rows:
            yield rows

    @asynccontextmanager
    async def _streamed(
        self, receive: Receive, plan: Callable[[], Awaitable[PlannedRead]], caller: Caller
    ) -> AsyncIterator[RowStream]:
        async with while_connected(receive) as connection:
            planned = await plan()
            async with self._errors(planned), self._reads.rows(planned.job, planned.table, caller.principal) as rows:
                chunks = taken(rows.chunks(), connection, self._limits.chunk_timeout)
                yield RowStream(chunks, planned.catalog_version, planned.table.version)

    @asynccontextmanager
    async def reading(
        self,
        operation: str,
        request: ReadRequest,
        receive: Receive,
        *,
        caller: Caller,
        at: ReadPoint = NEWEST,
    ) -> AsyncIterator[TableReading]:
        """Several reads of one version of a table. They end when the client goes away, with `ClientDisconnected`.

        Raises the namespace errors of the operation, also those of reads in the block.
        """
        async with while_connected(receive) as connection:
            planned = await self._plan(operation, request, at, caller.subject)
            async with self._errors(planned):
                yield TableReading(self._catalog, self._reads, planned, caller, connection, self._limits)

    @asynccontextmanager
    async def _errors(self, planned: PlannedRead) -> AsyncIterator[None]:
        """Raise errors of a read in the block as namespace errors. The newest version of a table is never gone."""
        with namespace_errors():
            try:
                yield
            except VersionGone as error:
                await self._find(partial(explain_gone, self._catalog, planned, error))
                raise

    @property
    def pools(self) -> Mapping[str, PoolState]:
        """The present state of the workers, by the name of their pool. May be called by any thread."""
        return {"change": self._changes.state, "read": self._reads.state}

    def load(self) -> None:
        """Load the libraries of workers, so that the first request for one does not wait for that."""
        self._starter.load()

    async def close(self) -> None:
        """End the workers and their jobs; wait for commits under way."""
        self._runs.stop()
        await asyncio.gather(self._reads.close(), self._changes.close())
        await self._starter.close()
        await self._under_way.close()
        await self._runs.close()
        await self._finding.close()

    async def _plan(self, operation: str, request: ReadRequest, at: ReadPoint, subject: Subject | None) -> PlannedRead:
        plan = partial(plan_read, self._catalog, operation, request, at, subject=subject)
        return plan() if at.catalog_version is None and self._catalog.local else await self._finding.run(plan)

    async def _find(self, find: Callable[[], T]) -> T:
        """Find something in the newest version of the catalog."""
        return find() if self._catalog.local else await self._finding.run(find)

    def _admit(self, principal: str | None) -> None:
        """Raise `LimitReached` if as many changes as may wait are under way, or three quarters of one principal."""
        found, most = len(self._under_way), self._limits.change_workers + self._limits.waiting
        if found >= most:
            raise LimitReached(_WAITING, most, "changes of rows that wait or are done", found + 1)
        own = self._under_way.of(principal)
        if principal is not None and own >= part_of_one(most):
            raise LimitReached(_WAITING, part_of_one(most), "changes of rows of one principal", own + 1)

    async def _with_rows(
        self, work_on: Callable[[Rows, RowsDigest], Work], body: RowsBody, principal: str | None
    ) -> Answer:
        """Do work on the rows of a body and their digest, when all are there: no worker waits for a client."""
        self._admit(principal)
        async with body.read(self._limits, self._space) as rows:
            self._admit(principal)
            return await self._under_way.finish(work_on(rows, body.digest), body.receive, principal)


class _Tables(Tables):
    """A catalog as changes use it whose clients may go away."""

    def __init__(
        self, catalog: CatalogTables, commit: Commit, find: Look, in_thread: Look, under_way: UnderWay
    ) -> None:
        super().__init__(catalog, commit, find, in_thread)
        self._under_way = under_way

    async def find_table(
        self,
        request: ReadRequest,
        *,
        layout: bool = False,
        subject: Subject | None = None,
        privileges: Collection[Privilege] = (),
    ) -> tuple[TableState, int]:
        self._under_way.check()
        return await super().find_table(request, layout=layout, subject=subject, privileges=privileges)

    async def commit(self, operations: Sequence[StagedOperation], record: ChangeRecord) -> CommittedChange:
        with self._under_way.committing():
            return await super().commit(operations, record)


class _BoundedThreads:
    """Threads that wait for workers, and a bound on what waits for the threads."""

    def __init__(self, capacity: int) -> None:
        self._executor = ThreadPoolExecutor(_FINDING, thread_name_prefix="find-table")
        self._capacity = capacity
        self._admitted = 0

    async def run(self, work: Callable[[], T]) -> T:
        if self._admitted >= self._capacity:
            raise LimitReached(_WAITING, self._capacity, "operations on rows that wait", self._admitted + 1)
        self._admitted += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, copy_context().run, work)
        finally:
            self._admitted -= 1

    async def close(self) -> None:
        await asyncio.to_thread(self._executor.shutdown, cancel_futures=True)
