"""The same catalog for asyncio: each call of `Catalog` and its transactions in a thread.

The work of a call is that of pylance, which has threads of its own, and of one request. So a thread costs less than a
second client would. A call whose await is cancelled goes on in its thread: whether its change is made is unknown then.
"""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from functools import update_wrapper
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, cast

import pyarrow as pa
from tenacity import AsyncRetrying, AttemptManager

from namespace_client.blobs import BlobFile
from namespace_client.catalog import Catalog, retry_options
from namespace_client.events import CatalogEvent, EventFeed
from namespace_client.leases import Intent, Lease, PinnedVersion
from namespace_client.names import AnyName
from namespace_client.reading import TableReader
from namespace_client.reads import CatalogReads, CatalogView
from namespace_client.results import TransactionResult
from namespace_client.transaction import MultiTableTransaction
from table_data.batch_operations import TableOfIntent

if TYPE_CHECKING:
    from namespace_client.staged_transaction import Isolation

P = ParamSpec("P")
R = TypeVar("R")
S_co = TypeVar("S_co", covariant=True)
T = TypeVar("T")
L = TypeVar("L", bound=Lease)

_SHORT_WAIT = 3
"""Seconds of a request for events: a program that ends waits for as long for the thread that made it."""


class _Threaded(Generic[S_co]):
    """An object whose methods are called in threads: one at a time if there is a lock."""

    def __init__(self, blocking: S_co, lock: AbstractContextManager[Any] | None = None) -> None:
        self._blocking = blocking
        self._lock = nullcontext() if lock is None else lock

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._blocking!r}>"

    async def _call(self, method: Callable[P, R], *args: P.args, **named: P.kwargs) -> R:
        def call() -> R:
            with self._lock:
                return method(*args, **named)

        return await asyncio.to_thread(call)


def _threaded(
    method: Callable[Concatenate[S_co, P], R],
) -> Callable[Concatenate[_Threaded[S_co], P], Coroutine[Any, Any, R]]:
    """The method of a blocking object as a coroutine, with its signature and documentation."""

    async def call(self: _Threaded[S_co], /, *args: P.args, **named: P.kwargs) -> R:
        return await self._call(method, self._blocking, *args, **named)

    update_wrapper(call, method)
    return call


class AsyncTableReader(_Threaded[TableReader]):
    """See `TableReader`."""

    count_rows = _threaded(TableReader.count_rows)
    to_pylance = _threaded(TableReader.to_pylance)

    async def to_table(
        self,
        columns: Sequence[str] | None = None,
        filter: Any = None,  # noqa: A002 - the name in pylance
        **options: Any,
    ) -> pa.Table:
        """See `TableReader.to_table`."""
        return await self._call(self._blocking.to_table, columns, filter, **options)

    @property
    def version(self) -> int | None:
        """See `TableReader.version`."""
        return self._blocking.version

    async def schema(self) -> pa.Schema:
        """See `TableReader.schema`."""
        return await self._call(lambda: self._blocking.schema)


class AsyncBlobFile(_Threaded[BlobFile]):
    """See `BlobFile`. Its calls are made one after the other. An asynchronous context manager."""

    def __init__(self, blocking: BlobFile) -> None:
        super().__init__(blocking, Lock())
        self.size = blocking.size
        self.row = blocking.row
        self.version = blocking.version
        self.tag = blocking.tag

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    read_range = _threaded(BlobFile.read_range)

    async def read(self, size: int = -1) -> bytes:
        """Bytes from the position on, all that are left if `size` is negative."""
        return await self._call(self._blocking.read, size)

    async def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Change the position, and return it."""
        return await self._call(self._blocking.seek, offset, whence)

    async def tell(self) -> int:
        """The position."""
        return await self._call(self._blocking.tell)

    async def close(self) -> None:
        """Close the file."""
        await self._call(self._blocking.close)

    async def pieces(self, offset: int = 0) -> AsyncIterator[bytes]:
        """See `BlobFile.pieces`."""
        async for piece in _iterated(await self._call(self._blocking.pieces, offset)):
            yield piece


async def _iterated(blocking: Iterator[T]) -> AsyncIterator[T]:
    """What an iterator gives, each in a thread."""
    end = object()
    try:
        while (found := await asyncio.to_thread(next, blocking, end)) is not end:
            yield cast("T", found)
    finally:
        if isinstance(blocking, Generator):
            await asyncio.to_thread(blocking.close)


class AsyncTransaction(_Threaded[MultiTableTransaction]):
    """See `MultiTableTransaction`. Its calls are made one after the other, whatever is awaited at once."""

    def __init__(self, blocking: MultiTableTransaction) -> None:
        super().__init__(blocking, Lock())

    async def __aenter__(self) -> Self:
        await self._call(self._blocking.__enter__)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._call(self._blocking.__exit__, kind, error, trace)

    append = _threaded(MultiTableTransaction.append)
    overwrite = _threaded(MultiTableTransaction.overwrite)
    create = _threaded(MultiTableTransaction.create)
    delete = _threaded(MultiTableTransaction.delete)
    update = _threaded(MultiTableTransaction.update)
    merge = _threaded(MultiTableTransaction.merge)
    add_columns = _threaded(MultiTableTransaction.add_columns)
    drop_columns = _threaded(MultiTableTransaction.drop_columns)
    compact = _threaded(MultiTableTransaction.compact)
    restore = _threaded(MultiTableTransaction.restore)
    exists = _threaded(MultiTableTransaction.exists)
    describe = _threaded(MultiTableTransaction.describe)
    declare = _threaded(MultiTableTransaction.declare)
    stage = _threaded(MultiTableTransaction.stage)
    row_writer = _threaded(MultiTableTransaction.row_writer)
    add_written = _threaded(MultiTableTransaction.add_written)
    mark_read = _threaded(MultiTableTransaction.mark_read)
    advance_cursor = _threaded(MultiTableTransaction.advance_cursor)
    grant = _threaded(MultiTableTransaction.grant)
    commit = _threaded(MultiTableTransaction.commit)
    resend = _threaded(MultiTableTransaction.resend)
    abandon = _threaded(MultiTableTransaction.abandon)
    register_intent = _threaded(MultiTableTransaction.register_intent)

    async def create_index(
        self,
        table: AnyName,
        column: str,
        index_type: str,
        *,
        name: str | None = None,
        replace: bool = False,
        branch: str | None = None,
        **parameters: Any,
    ) -> None:
        """See `MultiTableTransaction.create_index`."""
        options: dict[str, Any] = {"name": name, "replace": replace, "branch": branch, **parameters}
        await self._call(self._blocking.create_index, table, column, index_type, **options)

    async def table(
        self, table: AnyName, *, branch: str | None = None, tag: str | None = None, version: int | None = None
    ) -> AsyncTableReader:
        """See `MultiTableTransaction.table`."""
        reader = await self._call(self._blocking.table, table, branch=branch, tag=tag, version=version)
        return AsyncTableReader(reader, self._lock)

    @property
    def catalog_version(self) -> int:
        """See `MultiTableTransaction.catalog_version`."""
        return self._blocking.catalog_version

    @property
    def begin(self) -> Any:
        """See `MultiTableTransaction.begin`."""
        return self._blocking.begin

    @property
    def idempotency_key(self) -> str:
        """See `MultiTableTransaction.idempotency_key`."""
        return self._blocking.idempotency_key

    @property
    def result(self) -> TransactionResult:
        """See `MultiTableTransaction.result`."""
        return self._blocking.result


class AsyncAttempt:
    """One attempt of `AsyncCatalog.retrying`, see `Attempt`."""

    def __init__(self, attempt: AttemptManager, transaction: AsyncTransaction) -> None:
        self._attempt = attempt
        self._transaction = transaction

    async def __aenter__(self) -> AsyncTransaction:
        self._attempt.__enter__()
        return await self._transaction.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        try:
            await self._transaction.__aexit__(kind, error, trace)
        except Exception as raised:  # noqa: BLE001 - the loop raises it unless it is retried
            kind, error, trace = type(raised), raised, raised.__traceback__
        return self._attempt.__exit__(kind, error, trace)


def _next_batch(reader: pa.RecordBatchReader) -> pa.RecordBatch | None:
    return next(reader, None)


class AsyncLease(Generic[L]):
    """An asynchronous context manager that gives an `Intent` or a `PinnedVersion`."""

    def __init__(self, lease: L) -> None:
        self._lease = lease

    async def __aenter__(self) -> L:
        return await asyncio.to_thread(self._lease.__enter__)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self._lease.__exit__, kind, error, trace)


class _AsyncReads(_Threaded[S_co]):
    """The reads that `CatalogReads` describes."""

    namespaces = _threaded(CatalogReads.namespaces)
    tables = _threaded(CatalogReads.tables)
    find = _threaded(CatalogReads.find)
    describe = _threaded(CatalogReads.describe)
    show = _threaded(CatalogReads.show)
    read = _threaded(CatalogReads.read)
    search = _threaded(CatalogReads.search)
    dataset = _threaded(CatalogReads.dataset)
    datasets = _threaded(CatalogReads.datasets)

    async def blob(
        self: _Threaded[CatalogReads], table: AnyName, column: str, row: int | None = None, **named: Any
    ) -> AsyncBlobFile | None:
        """See `CatalogReads.blob`, whose arguments these are."""
        found = await self._call(self._blocking.blob, table, column, row, **named)
        return None if found is None else AsyncBlobFile(found)

    async def blobs(
        self: _Threaded[CatalogReads], table: AnyName, column: str, rows: Iterable[int], **named: Any
    ) -> AsyncIterator[bytes | None]:
        """See `CatalogReads.blobs`, whose arguments these are. For use in an `async for` statement."""
        async for value in _iterated(await self._call(self._blocking.blobs, table, column, rows, **named)):
            yield value

    async def changes(self: _Threaded[CatalogReads], table: AnyName, **named: Any) -> AsyncIterator[pa.RecordBatch]:
        """See `CatalogReads.changes`, whose arguments these are. For use in an `async for` statement."""
        reader = await self._call(self._blocking.changes, table, **named)
        while (batch := await self._call(_next_batch, reader)) is not None:
            yield batch


for _name in ("blob", "blobs", "changes"):
    update_wrapper(getattr(_AsyncReads, _name), getattr(CatalogReads, _name))


class AsyncCatalogView(_AsyncReads[CatalogView]):
    """See `CatalogView`."""

    @property
    def version(self) -> int:
        """The catalog version."""
        return self._blocking.version


class AsyncCatalog(_AsyncReads[Catalog]):
    """See `Catalog`, whose methods these are. Made by `AsyncCatalog.connect`; an asynchronous context manager.

    Example:
        ```python
        async with AsyncCatalog.connect("http://127.0.0.1:2333", namespace="ml") as catalog:
            async with catalog.begin(message="nightly") as tx:
                await tx.append("features", features)
                await tx.merge("labels", labels, on="id")
            print(tx.result.catalog_version)
        ```
    """

    @classmethod
    def connect(cls, target: str | os.PathLike[str] | Any | None = None, **options: Any) -> AsyncCatalog:
        """Connect as `Catalog.connect` does, with its arguments. Nothing is sent before the first call."""
        return cls(Catalog.connect(target, **options))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    close = _threaded(Catalog.close)
    log = _threaded(Catalog.log)
    diff = _threaded(Catalog.diff)
    row_diff = _threaded(Catalog.row_diff)
    event = _threaded(Catalog.event)
    maker = _threaded(Catalog.maker)
    health = _threaded(Catalog.health)
    figures = _threaded(Catalog.figures)
    create_namespace = _threaded(Catalog.create_namespace)
    ensure_namespace = _threaded(Catalog.ensure_namespace)
    drop_namespace = _threaded(Catalog.drop_namespace)
    undrop_namespace = _threaded(Catalog.undrop_namespace)
    create = _threaded(Catalog.create)
    append = _threaded(Catalog.append)
    overwrite = _threaded(Catalog.overwrite)
    update = _threaded(Catalog.update)
    merge = _threaded(Catalog.merge)
    delete = _threaded(Catalog.delete)
    register = _threaded(Catalog.register)
    drop = _threaded(Catalog.drop)
    clone = _threaded(Catalog.clone)
    rename = _threaded(Catalog.rename)
    undrop = _threaded(Catalog.undrop)
    dropped_tables = _threaded(Catalog.dropped_tables)
    maintain = _threaded(Catalog.maintain)
    tags = _threaded(Catalog.tags)
    create_tag = _threaded(Catalog.create_tag)
    move_tag = _threaded(Catalog.move_tag)
    delete_tag = _threaded(Catalog.delete_tag)
    branches = _threaded(Catalog.branches)
    create_branch = _threaded(Catalog.create_branch)
    delete_branch = _threaded(Catalog.delete_branch)
    whoami = _threaded(Catalog.whoami)
    history = _threaded(Catalog.history)
    refused_attempts = _threaded(Catalog.refused_attempts)
    enable_grants = _threaded(Catalog.enable_grants)
    grant = _threaded(Catalog.grant)
    revoke = _threaded(Catalog.revoke)
    grant_role = _threaded(Catalog.grant_role)
    revoke_role = _threaded(Catalog.revoke_role)
    grants = _threaded(Catalog.grants)
    can = _threaded(Catalog.can)
    pins = _threaded(Catalog.pins)
    pin = _threaded(Catalog.pin)
    unpin = _threaded(Catalog.unpin)
    intents = _threaded(Catalog.intents)
    cursors = _threaded(Catalog.cursors)
    advance_cursor = _threaded(Catalog.advance_cursor)
    delete_cursor = _threaded(Catalog.delete_cursor)

    async def at(self, point: int | datetime | str) -> AsyncCatalogView:
        """See `Catalog.at`."""
        return AsyncCatalogView(await self._call(self._blocking.at, point))

    async def events(
        self,
        *,
        since: int | None = None,
        cursor: str | None = None,
        follow: bool = False,
        kinds: Sequence[str] | None = None,
    ) -> AsyncIterator[CatalogEvent]:
        """See `Catalog.events`. For use in an `async for` statement. One that is cancelled ends within seconds."""
        feed = EventFeed(
            self._blocking.access, since=since, cursor=cursor, follow=follow, kinds=kinds, wait=_SHORT_WAIT
        )
        try:
            while (page := await self._call(feed.page)) is not None:
                for event in page:
                    yield event
                    await self._call(feed.done, event)
        except BaseException:
            await self._call(feed.leave)
            raise
        await self._call(feed.close)

    def keeping(self, version: int | None = None, *, reason: str | None = None) -> AsyncLease[PinnedVersion]:
        """See `Catalog.keeping`."""
        return AsyncLease(self._blocking.keeping(version, reason=reason))

    def intent(
        self,
        tables: Sequence[AnyName | TableOfIntent],
        *,
        lasting: timedelta | None = None,
        reason: str | None = None,
    ) -> AsyncLease[Intent]:
        """See `Catalog.intent`."""
        return AsyncLease(self._blocking.intent(tables, lasting=lasting, reason=reason))

    def begin(self, *, message: str | None = None, isolation: Isolation = "snapshot") -> AsyncTransaction:
        """See `Catalog.begin`. For use in an `async with` statement."""
        return AsyncTransaction(self._blocking.begin(message=message, isolation=isolation))

    async def retrying(
        self, *, attempts: int = 10, message: str | None = None, isolation: Isolation = "snapshot"
    ) -> AsyncIterator[AsyncAttempt]:
        """See `Catalog.retrying`. For use in an `async for` statement."""
        used_readers: list[object] = []
        async for attempt in AsyncRetrying(**retry_options(attempts)):
            transaction = self._blocking._transaction(message, isolation, used_readers)  # noqa: SLF001
            yield AsyncAttempt(attempt, AsyncTransaction(transaction))

    async def run(
        self,
        block: Callable[[AsyncTransaction], Awaitable[T]],
        *,
        attempts: int = 10,
        message: str | None = None,
        isolation: Isolation = "snapshot",
    ) -> T:
        """See `Catalog.run`. The block is a coroutine function."""
        async for attempt in self.retrying(attempts=attempts, message=message, isolation=isolation):
            async with attempt as tx:
                returned = await block(tx)
        return returned
