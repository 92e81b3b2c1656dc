"""Everything that `namespace_client` raises, grouped by what a handler would do.

ClientError
├── InvalidCall               the call contradicts the table, the block or itself; it changed nothing
├── CommitRejected            the catalog refused the batch: nothing of it is visible
│   └── CommitConflict        ... because of what others committed; `conflicts` says what, table by table
│       ├── RetryableConflict     run the block again: it reads the newer versions and can succeed
│       └── IncompatibleConflict  another commit removed the ground: look before running it again
├── CommitUnknown             the batch may or may not have committed, now or later; repeat the same request
└── CatalogUnreachable        the catalog could not be asked; a batch that ends so was never sent
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


class ClientError(Exception):
    """Root of the tree."""


class InvalidCall(ClientError, ValueError):
    """The call contradicts the table, the block that it is made in, or itself. It changed nothing."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """One table that others changed in a way that this batch cannot follow.

    `expected` is the version that the batch was built on, `actual` the head that it met, `winner` the uuid of the
    transaction that made that. `redo` names the calls of the block that would have to be made again.
    """

    table: tuple[str, ...]
    branch: str | None
    expected: int | None
    actual: int | None
    winner: str | None
    reason: str
    redo: tuple[str, ...] = ()

    def __str__(self) -> str:
        name = "$".join(self.table) + (f" (branch {self.branch})" if self.branch else "")
        redo = f"; redo {', '.join(self.redo)}" if self.redo else ""
        return f"{name}: built on version {self.expected}, found {self.actual}: {self.reason}{redo}"


class CommitRejected(ClientError):
    """The catalog refused the batch, so nothing of it is visible.

    `code` is the namespace specification's error code, `failures` the explained conflicts as the catalog sent them.
    `status` is the HTTP status, None in process.
    """

    def __init__(
        self, message: str, *, code: int | None, failures: Sequence[Mapping[str, Any]] = (), status: int | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.failures = tuple(dict(failure) for failure in failures)


class CommitConflict(CommitRejected):
    """What others committed stands in the way."""

    conflicts: tuple[Conflict, ...] = ()


class RetryableConflict(CommitConflict):
    """Running the block again on the newer versions can succeed."""


class IncompatibleConflict(CommitConflict):
    """Another commit removed the ground of this one: the table was overwritten, restored or dropped, or lost a column.

    The same transaction can never follow it. Running the block again would compute another one, on what is there now;
    whether that is still wanted is not for a machine to say.
    """


class CommitUnknown(ClientError):
    """The answer was lost: the batch may have committed, or may still. Its files are kept for that case.

    `batch` is the batch's transaction id if the catalog told it, `idempotency_key` the key that was sent. Repeating the
    same request under the same key (`resend`) cannot apply it twice; running the block again can.
    """

    def __init__(self, message: str, *, batch: str | None, idempotency_key: str) -> None:
        super().__init__(message)
        self.batch = batch
        self.idempotency_key = idempotency_key


class CatalogUnreachable(ClientError):
    """No connection to the catalog, or an answer that is none. A batch that ends so was never sent."""
