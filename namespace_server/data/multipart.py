"""Writes of rows in several parts, which are uploaded by themselves and committed together, as one version.

What is known of an upload lies in the store, so that each server of a root may take each of its requests:

    the upload   whose it is, and which table it is for; written once, when it begins
    its parts    the transaction that adds the rows of each; written once, when the files of its rows are there
    its end      that it is completed, or aborted, whichever request came first; written once

A part that was answered is in every completion: its own look for the end comes after it was written, and a completion
writes the end before it looks for parts. The id of the upload is the uuid of the transaction that commits it, and the
catalog commits a transaction once: so it is completed once, whatever is repeated, however late. No commit is made of an
upload that was aborted.

No lease says that an upload is under way: it is over within a time that is shorter than the least after which a garbage
collection takes files that nothing names. What is left of it is such files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any, Final, Generic, Literal, TypeVar, cast

from lance_namespace.errors import InvalidInputError, ServiceUnavailableError, TransactionNotFoundError

from lance_core.errors import OutcomeUnknown
from namespace_server.access.requirements import REQUIREMENTS
from namespace_server.answer import Answer
from namespace_server.data.change_request import Caller, ChangeRequest, RowsDigest
from namespace_server.data.operations import DataOperations, namespace_errors, require_overwrite
from namespace_server.data.port import Tables
from namespace_server.outcomes import before_commit
from table_data.batch_operations import TableState, TransactionCommit
from table_data.composition import join_parts
from table_data.jobs.job import Staged
from table_data.requests.table_requests import (
    AbortMultipartWrite,
    BeginMultipartWrite,
    CompleteMultipartWrite,
    Insert,
    TableRequest,
    mode_of,
)

T = TypeVar("T")
Rows = TypeVar("Rows")

LONGEST: Final = timedelta(hours=20)
"""How long an upload may take. Garbage collections take files that nothing names from an age of a day on at the least;
the rest is for clocks that differ, and for a commit that waits."""
End = Literal["completed", "aborted"]
_MODES: Final = ("append", "overwrite")
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_PART_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_SHOWN: Final = 80


@dataclass(frozen=True, slots=True)
class UploadBinding:
    """What an upload is bound to: its principal (None without authentication), and the URI and branch of its table."""

    principal: str | None
    location: str
    branch: str | None


@dataclass(frozen=True, slots=True)
class StoredUpload:
    """An upload as it is in the store.

    Attributes:
        upload: What it is bound to.
        age: How long ago it began, by the dates of the store.
        end: How it ended; None while it is open.
        parts: Those that are there, by their ids, in the order of these.
    """

    upload: UploadBinding
    age: timedelta
    end: End | None
    parts: Mapping[str, UploadedPart]


@dataclass(frozen=True, slots=True)
class UploadedPart:
    """A part whose rows are written.

    Attributes:
        mode: Whether its rows are added (`append`), or are those of the whole table (`overwrite`).
        rows_sha256: SHA-256 of its body, in hexadecimal digits.
        num_rows: Number of its rows.
        commit: The operation that commits it alone; None if there is nothing to append.
    """

    mode: str
    rows_sha256: str
    num_rows: int
    commit: TransactionCommit | None

    def is_of(self, other: UploadedPart) -> bool:
        """Whether both were sent in requests that say the same."""
        return (self.mode, self.rows_sha256) == (other.mode, other.rows_sha256)


class MultipartWrites(Generic[Rows]):
    """The writes in parts to the tables of one catalog."""

    def __init__(self, tables: Tables, operations: DataOperations[Rows]) -> None:
        self._tables = tables
        self._operations = operations

    async def begin(self, request: BeginMultipartWrite, *, caller: Caller) -> Answer:
        """Begin an upload of rows for a table or one of its branches. The answer has the `upload_id`."""
        with before_commit():  # nothing is changed that anybody sees
            table, catalog_version = await self._table("create_multipart_write", request, caller)
            upload = UploadBinding(caller.principal, table.uri, table.branch)
            upload_id = await self._tables.with_uploads(lambda store: store.begin(upload))
            return Answer({"upload_id": upload_id}, catalog_version)

    async def add(
        self, insert: Insert, upload_id: str, part_id: str, rows: Rows, digest: RowsDigest, *, caller: Caller
    ) -> Answer:
        """Write the rows of one part, which no reader sees before its upload is completed.

        The same part again, under the same id, is answered as before. A part that was answered is in every completion;
        of one that was not, a completion at the same time may have it.

        Raises:
            TransactionNotFoundError: no such upload of the caller for this table.
            InvalidInputError: an id that is none, or that of a part with other rows; an upload that is over.
            PermissionDeniedError: the caller may not write to the table, or not replace its rows (mode `overwrite`).
        """
        with before_commit():
            with namespace_errors():
                mode = mode_of(insert.get("mode"), _MODES)
            table, catalog_version = await self._table("insert_into_table", insert, caller, layout=mode == "append")
            if mode == "overwrite" and table.version is not None:
                require_overwrite(self._tables, caller, table)
            await self._open(upload_id, table, caller)
            if _PART_ID.fullmatch(part_id) is None:
                raise InvalidInputError(
                    f"upload_part_id: expected 1 to 64 letters, digits, - and _, found {part_id[:_SHOWN]!r}"
                )
            requested = ChangeRequest("insert_into_table", insert, caller)
        keep = partial(self._keep, upload_id, part_id, mode, await digest())
        part = await self._operations.keep(requested, table, rows, keep)
        return Answer({"num_inserted_rows": part.num_rows}, catalog_version)

    async def _keep(
        self, upload_id: str, part_id: str, mode: str, digest: str, staged: Staged
    ) -> tuple[UploadedPart, bool]:
        """Write what commits a part. Then the upload must be open still, as one that ended may have been without it."""
        commits = [each for each in staged.operations if isinstance(each, TransactionCommit)]
        rows = cast("int", staged.result["num_inserted_rows"])
        part = UploadedPart(mode, digest, rows, commits[0] if commits else None)
        kept = await self._tables.with_uploads(lambda store: store.keep(upload_id, part_id, part))
        if not kept.is_of(part):
            raise InvalidInputError(
                f"upload_part_id {part_id}: expected a new one, found that of a part with other rows"
            )
        found = await self._tables.with_uploads(lambda store: store.find(upload_id))
        if found is not None and found.end == "completed":
            raise PartUnknown(upload_id, part_id)
        _require_open(upload_id, found)
        return kept, kept == part

    async def complete(self, request: CompleteMultipartWrite, *, caller: Caller) -> Answer:
        """Commit the rows of all parts as one version of the table, once, however often that is asked for.

        With `parts`, these are the ids of all of them, in the order of their rows. Without rows to append nothing is
        committed. The answer is that of an insert.

        Raises:
            TransactionNotFoundError: no such upload of the caller for this table.
            InvalidInputError: there is no part, they make no one version, or `parts` are not all of them; an upload
                that was aborted, or took too long.
            ConcurrentModificationError: another commit is in the way. The rows have to be uploaded anew.
        """
        upload_id = request["upload_id"]
        keyed = replace(caller, idempotency_key=f"multipart-write-{upload_id}")
        requested = ChangeRequest("complete_multipart_write", cast("TableRequest", request), keyed)
        return await self._operations.once(requested, partial(self._complete, requested, request, upload_id))

    async def _complete(self, requested: ChangeRequest, request: CompleteMultipartWrite, upload_id: str) -> Answer:
        caller = requested.caller
        with before_commit():
            table, catalog_version = await self._table("complete_multipart_write", request, caller)
            await self._open(upload_id, table, caller, ended="completed")
            how = await self._tables.with_uploads(lambda store: store.end(upload_id, "completed"))
            if how != "completed":
                raise _over(upload_id, how)
            # From here on no part is answered that is not found now.
            found = await self._tables.with_uploads(lambda store: store.find(upload_id, parts=True))
            parts = _chosen({} if found is None else found.parts, request.get("parts"))
            if parts[0].mode == "overwrite" and table.version is not None:
                require_overwrite(self._tables, caller, table)
            result = {"num_inserted_rows": sum(part.num_rows for part in parts)}
            commits = [part.commit for part in parts if part.commit is not None]
            if not commits:
                unchanged = {"version": table.version or 0, **result}
            else:
                with namespace_errors():
                    joined = replace(join_parts(commits, upload_id), id=table.id)
        if not commits:
            return await self._operations.keep_answer(requested, unchanged, catalog_version)
        return await self._operations.commit_staged(requested, (joined,), result)

    async def abort(self, request: AbortMultipartWrite, *, caller: Caller) -> Answer:
        """Give an upload up: no part of it is committed from now on. One that was aborted is so still.

        Raises TransactionNotFoundError (10) as `complete` does, and InvalidInputError (13) for an upload that is
        completed, or may be being completed.
        """
        upload_id = request["upload_id"]
        with before_commit():
            table, catalog_version = await self._table("abort_multipart_write", request, caller)
            await self._open(upload_id, table, caller, ended="aborted")
        how = await self._tables.with_uploads(lambda store: store.end(upload_id, "aborted"))
        if how != "aborted":
            raise _over(upload_id, how)
        return Answer({}, catalog_version)

    async def _table(
        self,
        operation: str,
        request: TableRequest | BeginMultipartWrite | AbortMultipartWrite,
        caller: Caller,
        *,
        layout: bool = False,
    ) -> tuple[TableState, int]:
        asked = cast("Mapping[str, Any]", request)
        return await self._tables.find_table(
            {"id": asked.get("id"), "branch": asked.get("branch")},
            layout=layout,
            subject=caller.subject,
            privileges=REQUIREMENTS[operation].privileges,
        )

    async def _open(self, upload_id: str, table: TableState, caller: Caller, *, ended: End | None = None) -> None:
        """Raise unless an upload is the caller's, for this table, and open, or has `ended` in this way."""
        _check_id(upload_id)
        found = await self._tables.with_uploads(lambda store: store.find(upload_id))
        if found is None or found.upload.principal != caller.principal or found.upload.location != table.uri:
            raise _absent(upload_id)
        if ended != "aborted" and found.upload.branch != table.branch:  # who aborts one names no branch
            raise _absent(upload_id)
        if found.end is None or found.end != ended:
            _require_open(upload_id, found)


class PartUnknown(ServiceUnavailableError, OutcomeUnknown):
    """A part was written while its upload was completed, which may have it or not (503)."""

    def __init__(self, upload_id: str, part_id: str) -> None:
        super().__init__(
            f"the outcome is unknown: upload {upload_id} was completed while part {part_id} was written; count the rows"
        )


def _chosen(parts: Mapping[str, UploadedPart], named: Sequence[str] | None) -> list[UploadedPart]:
    """The parts, in the order in which they are named. Raises InvalidInputError (13) unless each is named once."""
    if named is not None:
        once: set[str] = set()
        for part_id in named:
            if part_id in once:
                raise InvalidInputError(f"parts: expected each once, found {part_id[:_SHOWN]!r} twice")
            if part_id not in parts:
                raise InvalidInputError(f"parts: expected those of this upload, found {part_id[:_SHOWN]!r}")
            once.add(part_id)
        for part_id in parts:
            if part_id not in once:
                raise InvalidInputError(f"parts: expected all of this upload, found no {part_id}")
    if not parts:
        raise InvalidInputError("parts: expected at least one, found none")
    chosen = [parts[part_id] for part_id in (parts if named is None else named)]
    modes = {part.mode for part in chosen}
    if len(modes) > 1:
        raise InvalidInputError(f"parts: expected those of one mode, found {' and '.join(sorted(modes))}")
    return chosen


def _check_id(upload_id: str) -> None:
    if _UUID.fullmatch(upload_id) is None:
        raise InvalidInputError(f"upload_id: expected a UUID in lower case, found {upload_id[:_SHOWN]!r}")


def _require_open(upload_id: str, found: StoredUpload | None) -> None:
    if found is None:
        raise _absent(upload_id)
    if found.end is not None:
        raise _over(upload_id, found.end)
    if found.age > LONGEST:
        raise InvalidInputError(
            f"upload_id {upload_id}: expected an upload that began within {LONGEST}, found one that began {found.age} "
            "ago; begin anew"
        )


def _absent(upload_id: str) -> TransactionNotFoundError:
    return TransactionNotFoundError(
        f"upload_id {upload_id}: expected an upload of the caller for this table, found none"
    )


def _over(upload_id: str, end: End) -> InvalidInputError:
    found = "one that was aborted" if end == "aborted" else "one that is completed, or is being completed"
    return InvalidInputError(f"upload_id {upload_id}: expected an upload that is open, found {found}")
