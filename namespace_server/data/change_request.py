"""A requested change, and the part of it that its record keeps: principal, request and idempotency key."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, cast

from namespace_server.access.subjects import Subject
from namespace_server.attempts import RequestOrigin
from table_data.batch_operations import Result, TableState
from table_data.requests.table_requests import TableRequest

_REPEATED: Final = "as_asked"

RowsDigest = Callable[[], Awaitable[str]]
"""The SHA-256, in hexadecimal digits, of all bytes of a body of rows; waits for the end of the body."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The principal of a request, and the key by which a repetition of it is known. None where there is none.

    `origin` is where it came from; None for work in this process. Grants are judged for `subject`; None is the
    operator, who is not judged.
    """

    principal: str | None = None
    idempotency_key: str | None = None
    origin: RequestOrigin | None = field(default=None, compare=False)
    subject: Subject | None = None


OPERATOR: Final = Caller()
"""The process that has the root: no request of a client."""


@dataclass(frozen=True, slots=True)
class ChangeRecord:
    """The fields of the record of a change beside its batch.

    Attributes:
        caller: Its principal and idempotency key.
        operation: Name of the operation.
        request: What is asked for, with the digest of the rows; of a change under a key.
        answer: What the operation answers beside the version that the batch commits; of a change under a key.
        message: Text that the request wants to be stored with its batch.
    """

    caller: Caller = OPERATOR
    operation: str = ""
    request: Mapping[str, object] = field(default_factory=dict)
    answer: Result = field(default_factory=dict)
    message: str | None = None


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """A change that a caller requests; `rows_digest` is that of its rows, if it has rows.

    `source` is the version of a branch that the change reads, if it reads one beside its own line.
    """

    operation: str
    request: TableRequest
    caller: Caller = OPERATOR
    rows_digest: RowsDigest | None = None
    source: TableState | None = None

    @property
    def work(self) -> TableRequest:
        """The request as the work gets it."""
        if self.source is None:
            return self.request
        return cast("TableRequest", {**self.request, "source": self.source})

    async def record(self, answer: Result | None = None) -> ChangeRecord:
        """The fields of the record of the change. Under a key this waits for the end of the rows."""
        if self.caller.idempotency_key is None:
            return ChangeRecord(self.caller, self.operation, message=self.message)
        request: Mapping[str, object] = self.request
        if self.rows_digest is not None:
            request = {**request, "rows_sha256": await self.rows_digest()}
        return ChangeRecord(self.caller, self.operation, request, self._kept(answer or {}), self.message)

    @property
    def message(self) -> str | None:
        """The text that the request wants to be stored with its batch."""
        return (self.request.get("context") or {}).get("message")

    def _kept(self, answer: Result) -> Result:
        """An answer as it is recorded: what repeats the request, such as long metadata, is not written again."""
        asked: Mapping[str, object] = self.request
        repeated = [name for name, value in answer.items() if name in asked and asked[name] == value]
        kept = {name: value for name, value in answer.items() if name not in repeated}
        return {**kept, _REPEATED: repeated} if repeated else kept

    def answer(self, kept: Mapping[str, object]) -> Result:
        """The answer of which this was recorded."""
        asked: Mapping[str, object] = self.request
        repeated = kept.get(_REPEATED)
        names = repeated if isinstance(repeated, list) else []
        return {name: asked[name] for name in names} | {n: v for n, v in kept.items() if n != _REPEATED}
