"""From a request to its answer: find the table, have the work done, commit it as a batch."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Final, Generic, TypeVar

from lance_namespace.errors import (
    ConcurrentModificationError,
    ErrorCode,
    LanceNamespaceError,
    from_error_code,
)

from namespace_server.answer import Answer
from namespace_server.data.change_request import ANONYMOUS, Caller, ChangeRequest, RowsDigest
from namespace_server.data.port import ChangeRunner, StagedChange, Tables
from table_data.batch_operations import Json, TableState, VersionIdentity
from table_data.errors import ClientError, VersionGone
from table_data.jobs.job import Job, Staged
from table_data.requests.durations import parse_duration

Rows = TypeVar("Rows")

_NO_VERDICT: Final = frozenset({ErrorCode.SERVICE_UNAVAILABLE, ErrorCode.INTERNAL, ErrorCode.THROTTLING})

_INSERT: Final = "insert_into_table"
MAX_TRIES: Final = 20
"""How often a change is staged before its conflict is answered."""


class DataOperations(Generic[Rows]):
    """The changes of rows of one catalog.

    A change is prepared on the newest version and committed as a batch of one transaction, which the catalog rebases
    over other commits or rejects. A rejected one is prepared again on the newer version if that can help.
    """

    def __init__(self, tables: Tables, runner: ChangeRunner[Rows]) -> None:
        self._tables = tables
        self._runner = runner

    async def change(
        self,
        operation: str,
        request: Json,
        rows: Rows | None = None,
        digest: RowsDigest | None = None,
        *,
        caller: Caller = ANONYMOUS,
    ) -> Answer:
        """Commit a change of a table, on its newest version. Raises the namespace errors of the operation."""
        requested = ChangeRequest(operation, request, caller, digest)
        return await self.once(requested, partial(self._change, requested, rows))

    async def once(self, requested: ChangeRequest, work: Callable[[], Awaitable[Answer]]) -> Answer:
        """Do the work of a change, unless it was committed before under its idempotency key: then answer that.

        The flip decides the same again. Looking before the work saves it, and looking after an error finds a request
        under the same key that was under way: what that one did may be what this one stumbled over.
        """
        if requested.caller.idempotency_key is None:
            return await work()
        if (answer := await self._answered(requested)) is not None:
            return answer
        try:
            return await work()
        except LanceNamespaceError:
            if (answer := await self._answered(requested)) is not None:
                return answer
            raise

    async def _answered(self, requested: ChangeRequest) -> Answer | None:
        """The answer of the same request before; its rows are read to their end only if the key is known."""
        if not await self._tables.is_answered(requested.caller):
            return None
        answered = await self._tables.answered(await requested.record())
        return None if answered is None else _again(requested, answered)

    async def _change(self, requested: ChangeRequest, rows: Rows | None) -> Answer:
        operation, request = requested.operation, requested.request
        newest = {name: value for name, value in request.items() if name != "version"}
        layout = operation == _INSERT
        table, catalog_version = await self._tables.find_table(newest, layout=layout)
        async with self._begin(operation, request, rows) as change:
            deadline = _Deadline(request.get("timeout"))
            for left in reversed(range(MAX_TRIES)):
                try:
                    staged = await change.stage(table, limit=deadline.left)
                except VersionGone:  # a branch was made again since it was found
                    gone = table.identity
                    table, catalog_version = await self._tables.find_table(newest, layout=layout)
                    if not left or rows is not None or table.identity == gone:
                        raise
                    continue
                if not staged.operations:
                    unchanged = {"version": table.version or 0, **staged.result}
                    return await self.keep_answer(requested, Answer(unchanged, catalog_version))
                try:
                    answer, made = await self._commit(list(staged.operations), requested, staged.result)
                    if made is None:
                        await change.discard()
                    else:
                        await change.prepare(table.at(made["version"], VersionIdentity.of(made)))
                    return answer
                except LanceNamespaceError as error:
                    if is_verdict(error):
                        await change.discard()
                    again = is_retryable(error, independent=staged.independent)
                    if not (left and staged.repeatable and again and not deadline.passed):
                        raise
                table, catalog_version = await self._tables.find_table(newest, layout=layout)
        raise AssertionError("the last try answers or raises")

    async def stage(self, operation: str, request: Json, table: TableState, rows: Rows, *, new: bool = False) -> Staged:
        """Write the files of a change that the client commits. Raises the namespace errors of the operation."""
        async with self._begin(operation, request, rows, new=new) as change:
            return await change.stage(table)

    async def keep_answer(self, requested: ChangeRequest, answer: Answer) -> Answer:
        """Record the answer of a change that found nothing to do, if it has an idempotency key."""
        if requested.caller.idempotency_key is None:
            return answer
        kept, _ = await self._commit([], requested, answer.body)
        return kept

    async def commit_once(
        self,
        requested: ChangeRequest,
        table: TableState,
        rows: Rows,
        compose: Callable[[Staged, TableState], list[Json]],
        answer: Json,
        *,
        new: bool = False,
    ) -> Answer:
        """Stage a change of this state of a table and commit it with what `compose` makes of it.

        It answers `answer`, with the version. A `new` table is declared in the same batch. Raises the namespace errors
        of the operation and of a batch.
        """
        async with self._begin(requested.operation, requested.request, rows, new=new) as change:
            staged = await change.stage(table)
            try:
                committed, made = await self._commit(compose(staged, table), requested, answer)
                if made is None:
                    await change.discard()
                return committed
            except LanceNamespaceError as error:
                if is_verdict(error):
                    await change.discard()
                raise

    @asynccontextmanager
    async def _begin(
        self, operation: str, request: Json, rows: Rows | None, *, new: bool = False
    ) -> AsyncIterator[StagedChange]:
        job = Job(operation, request, self._tables.storage_options, message_of(request), new)
        with namespace_errors():
            async with self._runner.change(job, rows) as change:
                yield change

    async def _commit(
        self, operations: list[Json], requested: ChangeRequest, answer: Json
    ) -> tuple[Answer, Json | None]:
        """The answer to a change, and the version that it was committed as.

        None where it changed nothing, or was committed under its idempotency key before: then nothing of these
        operations is.
        """
        request = batch_request(operations, message_of(requested.request))
        committed = await self._tables.commit(request, await requested.record(answer))
        body = committed.body
        if "answer" in body:
            return _again(requested, committed), None
        versions = [
            result["commit_transaction"]["version"] for result in body["results"] if "commit_transaction" in result
        ]
        made: Json | None = versions[-1] if versions else None
        number = {} if made is None else {"version": made["version"]}
        return Answer({"transaction_id": body["transaction_id"], **number, **answer}, committed.catalog_version), made


def _again(requested: ChangeRequest, kept: Answer) -> Answer:
    """The answer to a change that was committed before."""
    body = {"transaction_id": kept.body["transaction_id"], **requested.answer(kept.body["answer"])}
    return Answer(body, kept.catalog_version)


def batch_request(operations: list[Json], message: str | None) -> Json:
    """A BatchCommitTables request."""
    request: Json = {"operations": operations}
    if message:
        request["context"] = {"message": message}
    return request


def message_of(request: Json) -> str | None:
    """The text that a request wants to be stored with its batch."""
    message = (request.get("context") or {}).get("message")
    return message if isinstance(message, str) else None


class _Deadline:
    """The end of the time that a request gives itself, if it does. Raises `InvalidCall` for what is no time."""

    def __init__(self, timeout: str | None) -> None:
        self._end = None if timeout is None else time.monotonic() + parse_duration(timeout, "timeout")

    @property
    def left(self) -> float | None:
        """Seconds; None without a deadline."""
        return None if self._end is None else self._end - time.monotonic()

    @property
    def passed(self) -> bool:
        return self._end is not None and self._end <= time.monotonic()


def is_verdict(error: LanceNamespaceError) -> bool:
    """Whether an error of a batch says that it is not committed and will not be, whatever happens later."""
    return int(error.code) not in _NO_VERDICT


def is_retryable(error: LanceNamespaceError, *, independent: bool = False) -> bool:
    """Whether the change may succeed on a newer version: a conflict, of which nothing is called incompatible.

    An independent change may succeed after any conflict.
    """
    if not isinstance(error, ConcurrentModificationError):
        return False
    failures = getattr(error, "failures", None) or ()
    return independent or not any(str(failure.get("hint") or "").startswith("incompatible") for failure in failures)


@contextmanager
def namespace_errors() -> Iterator[None]:
    """Raise errors of work on rows in the block as the namespace errors of their codes."""
    try:
        yield
    except ClientError as error:
        raise from_error_code(getattr(error, "code", 18), str(error)) from error
