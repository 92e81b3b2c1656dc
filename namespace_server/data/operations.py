"""From a request to its answer: find the table, have the work done, commit it as a batch."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Final, Generic, TypeVar, cast

from lance_namespace.errors import (
    ConcurrentModificationError,
    ErrorCode,
    LanceNamespaceError,
    from_error_code,
)

from lance_core.format.naming import branch_base, manifest_path
from namespace_server.access.requirements import REQUIREMENTS
from namespace_server.access.subjects import Privilege
from namespace_server.answer import Answer
from namespace_server.data.change_request import OPERATOR, Caller, ChangeRequest, RowsDigest
from namespace_server.data.port import ChangeRunner, CommittedChange, StagedChange, Tables
from namespace_server.durations import parse_duration
from namespace_server.outcomes import before_commit, with_nothing_done
from table_data.batch_operations import Result, StagedOperation, TableState
from table_data.errors import BaseVersionGone, ClientError, InvalidCall, VersionGone, WorkFailed
from table_data.jobs.job import PICK_OF_BRANCH, Job, Staged
from table_data.requests.table_requests import Insert, PickBranch, ReadRequest, TableRequest

T = TypeVar("T")
Rows = TypeVar("Rows")

_NO_VERDICT: Final = frozenset({ErrorCode.SERVICE_UNAVAILABLE, ErrorCode.INTERNAL, ErrorCode.THROTTLING})

_INSERT: Final = "insert_into_table"
_MERGE: Final = "merge_insert_into_table"
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
        request: TableRequest,
        rows: Rows | None = None,
        digest: RowsDigest | None = None,
        *,
        caller: Caller = OPERATOR,
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
        with before_commit():
            answer = await self._answered(requested)
        if answer is not None:
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
        return None if answered is None else _answer(requested, answered, {})

    async def _change(self, requested: ChangeRequest, rows: Rows | None) -> Answer:
        operation, request = requested.operation, requested.request
        newest: ReadRequest = {"id": request.get("id"), "branch": request.get("branch")}
        layout = operation == _INSERT
        find = partial(
            self._find, newest, caller=requested.caller, privileges=REQUIREMENTS[operation].privileges, layout=layout
        )
        table, catalog_version = await find()
        if operation == PICK_OF_BRANCH:
            requested = await self._with_branch(requested)
        if layout and _replaces_rows(request) and table.version is not None:
            with before_commit():
                require_overwrite(self._tables, requested.caller, table)
        async with self._begin(requested, rows) as change:
            deadline = _Deadline(request.get("timeout"))
            for left in reversed(range(MAX_TRIES)):
                try:
                    staged = await change.stage(table, limit=deadline.left)
                except VersionGone as error:  # a branch was made again since it was found
                    gone = table.identity
                    table, catalog_version = await find()
                    if isinstance(error, BaseVersionGone) and gone is not None and table.identity == gone:
                        raise lost(error, table) from error
                    if not left or rows is not None or table.identity == gone:
                        raise
                    continue
                tries = {"num_attempts": MAX_TRIES - left} if operation == _MERGE else {}
                if not staged.operations:
                    unchanged = {"version": table.version or 0, **staged.result, **tries}
                    return await self.keep_answer(requested, unchanged, catalog_version)
                try:
                    made = await self._tables.commit(staged.operations, await requested.record(staged.result))
                    if made.version is None:
                        await change.discard()
                    else:
                        await change.prepare(table.at(made.version, made.identity))
                    return _answer(requested, made, {**staged.result, **tries})
                except LanceNamespaceError as error:
                    if is_verdict(error):
                        await change.discard()
                    again = is_retryable(error, independent=staged.independent)
                    if not (left and staged.repeatable and again and not deadline.passed):
                        raise
                table, catalog_version = await find()
        raise AssertionError("the last try answers or raises")

    async def _find(
        self, request: ReadRequest, *, caller: Caller, privileges: Collection[Privilege], layout: bool
    ) -> tuple[TableState, int]:
        with before_commit():  # or after a batch that was rejected for certain
            return await self._tables.find_table(request, layout=layout, subject=caller.subject, privileges=privileges)

    async def _with_branch(self, requested: ChangeRequest) -> ChangeRequest:
        """The change with the newest version of the branch that it reads."""
        picked = cast("PickBranch", requested.request)
        request: ReadRequest = {"id": picked.get("id"), "branch": picked["from_branch"]}
        needed = REQUIREMENTS[requested.operation].privileges
        source, _ = await self._find(request, caller=requested.caller, privileges=needed, layout=False)
        return replace(requested, source=source)

    async def stage(
        self, requested: ChangeRequest, table: TableState, rows: Rows | None = None, *, new: bool = False
    ) -> Staged:
        """Write the files of a change that the client commits. Raises the namespace errors of the operation."""
        async with self._begin(requested, rows, new=new) as change:
            return await change.stage(table)

    async def keep(
        self,
        requested: ChangeRequest,
        table: TableState,
        rows: Rows,
        keep: Callable[[Staged], Awaitable[tuple[T, bool]]],
    ) -> T:
        """Stage a change, and have `keep` note it for a later commit: what that gives, and whether it noted the change.

        Files that nothing has noted are removed, also where `keep` refuses them. Raises as `stage`, and as `keep`.
        """
        async with self._begin(requested, rows) as change:
            staged = await change.stage(table)
            try:
                result, is_noted = await keep(staged)
            except LanceNamespaceError as error:
                if is_verdict(error):
                    await change.discard()
                raise
            if not is_noted:
                await change.discard()
            return result

    async def commit_staged(
        self, requested: ChangeRequest, operations: Sequence[StagedOperation], result: Result
    ) -> Answer:
        """Commit what was staged before. The files stay where that is rejected. Raises the errors of a batch."""
        return _answer(requested, await self._tables.commit(operations, await requested.record(result)), result)

    async def keep_answer(self, requested: ChangeRequest, result: Result, catalog_version: int) -> Answer:
        """Answer a change that found nothing to do; the answer is recorded if it has an idempotency key."""
        if requested.caller.idempotency_key is None:
            return Answer(result, catalog_version)
        return _answer(requested, await self._tables.commit((), await requested.record(result)), result)

    async def commit_once(
        self,
        requested: ChangeRequest,
        table: TableState,
        rows: Rows,
        compose: Callable[[Staged, TableState], Sequence[StagedOperation]],
        answer: Result,
        *,
        new: bool = False,
    ) -> Answer:
        """Stage a change of this state of a table and commit it with the operations that `compose` makes of it.

        It answers `answer`, with the version. A `new` table is declared in the same batch. Raises the namespace errors
        of the operation and of a batch.
        """
        async with self._begin(requested, rows, new=new) as change:
            staged = await change.stage(table)
            try:
                made = await self._tables.commit(compose(staged, table), await requested.record(answer))
                if made.version is None:
                    await change.discard()
                return _answer(requested, made, answer)
            except LanceNamespaceError as error:
                if is_verdict(error):
                    await change.discard()
                raise

    @asynccontextmanager
    async def _begin(
        self, requested: ChangeRequest, rows: Rows | None, *, new: bool = False
    ) -> AsyncIterator[StagedChange]:
        options = self._tables.storage_options
        job = Job(requested.operation, requested.work, options, requested.message, new)
        with namespace_errors():
            async with self._runner.change(job, rows, requested.caller.principal) as change:
                yield change


def require_overwrite(tables: Tables, caller: Caller, table: TableState) -> None:
    """Raise PermissionDeniedError (15) if a caller may not replace a table by one with other rows and another schema.

    That takes what it takes to drop it, and to create it.
    """
    tables.require(caller.subject, {Privilege.DROP, Privilege.CREATE}, table.id)


def _replaces_rows(insert: TableRequest) -> bool:
    """Whether an insert replaces all rows. A mode that is none is refused by the work."""
    return (cast("Insert", insert).get("mode") or "").lower() == "overwrite"


def _answer(requested: ChangeRequest, made: CommittedChange, result: Result) -> Answer:
    """The answer to a change that is in the catalog, with its fields beside the version."""
    if made.kept is not None:
        result = requested.answer(made.kept)
    number = {} if made.version is None else {"version": made.version}
    return Answer({"transaction_id": made.transaction_id, **number, **result}, made.catalog_version)


def _parsed(timeout: str) -> timedelta:
    try:
        return parse_duration(timeout)
    except ValueError as error:
        raise InvalidCall(f"timeout: {error}") from None


class _Deadline:
    """The end of the time that a request gives itself, if it does. Raises `InvalidCall` for what is no time."""

    def __init__(self, timeout: str | None) -> None:
        self._end = None if timeout is None else time.monotonic() + _parsed(timeout).total_seconds()

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
    return independent or not any(failure.get("kind") == "incompatible" for failure in failures)


def lost(error: VersionGone, table: TableState) -> WorkFailed:
    """The error where a file of the newest version of a table, or its manifest, is not found on storage."""
    key = manifest_path(branch_base("", table.branch), table.version or 1)
    return WorkFailed(
        f"{error}; files of the newest version are never removed: {key} or a file that it names is damaged"
    )


@contextmanager
def namespace_errors() -> Iterator[None]:
    """Raise errors of work on rows in the block as the namespace errors of their codes.

    Nothing was done then: work that writes is done before a commit, and nothing raises a `ClientError` after one.
    """
    try:
        yield
    except ClientError as error:
        raise with_nothing_done(from_error_code(getattr(error, "code", 18), str(error))) from error
