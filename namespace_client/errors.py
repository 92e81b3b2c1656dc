"""Exceptions of `namespace_client`, grouped by what a handler would do.

ClientError
├── InvalidCall               the call contradicts the table, the block or itself; nothing was changed
├── WorkFailed                rows could not be read or written, for a reason outside of the call; an error of the
│                             code that gives them, such as a generator, is the `__cause__`
├── AccessRefused             the server does not know the caller, or does not let it do this; nothing was done
├── CommitRejected            the catalog refused the request: of a change nothing is visible
│   ├── NotFound              ... because there is no such namespace, table, version, branch or tag
│   │   └── EventsGone        ... any more: events or changes that were not seen are not kept
│   ├── AlreadyExists         ... because the name is taken
│   ├── CatalogUnavailable    ... for now: the same request can succeed later
│   └── CommitConflict        ... because of other commits; `conflicts` describes them, table by table
│       ├── RetryableConflict     run the block again: it reads the newer versions and can succeed
│       └── IncompatibleConflict  conflicts irreconcilably: check the table before running the block again
├── CommitUnknown             the change may or may not be made, or may be made later: `resend` the batch
└── CatalogUnreachable        no response from the catalog; a batch that ends so was never sent
    └── CatalogClosed         ... because the connection was closed before
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lance_core.errors import OutcomeUnknown
from table_data.errors import ClientError, InvalidCall, WorkFailed
from table_data.requests.field_paths import dotted

__all__ = [
    "AccessRefused",
    "AlreadyExists",
    "CatalogClosed",
    "CatalogUnavailable",
    "CatalogUnreachable",
    "ClientError",
    "CommitConflict",
    "CommitRejected",
    "CommitUnknown",
    "Conflict",
    "EventsGone",
    "IncompatibleConflict",
    "InvalidCall",
    "NotFound",
    "RetryableConflict",
    "TableTaken",
    "WorkFailed",
]


@dataclass(frozen=True, slots=True)
class Conflict:
    """One table with a concurrent change that the batch cannot be rebased over.

    Attributes:
        table: Path of the table.
        branch: Name of the branch, None for the main branch.
        expected: Version that the batch was built on.
        actual: Head version that the catalog found.
        winner: Uuid of the transaction that made the head version.
        reason: Explanation by the catalog.
        redo: Calls of the block on this table, which have to be repeated.
        kind: "retryable", or "incompatible" where the same transaction can never be committed.
    """

    table: tuple[str, ...]
    branch: str | None
    expected: int | None
    actual: int | None
    winner: str | None
    reason: str
    redo: tuple[str, ...] = ()
    kind: str = "retryable"

    def __str__(self) -> str:
        name = dotted(self.table) + (f" (branch {self.branch})" if self.branch else "")
        redo = f"; redo {', '.join(self.redo)}" if self.redo else ""
        return f"{name}: built on version {self.expected}, found {self.actual}: {self.reason}{redo}"


class TableTaken(InvalidCall):
    """A transaction creates a table that has a version already."""


class AccessRefused(ClientError):
    """The server does not know the caller (code 16, status 401) or does not let it do this (15, 403).

    Nothing was done. `api_key=` and `token=` of `Catalog.connect` say who the caller is.

    Attributes:
        code: Error code of the namespace specification.
        status: HTTP status, None for a catalog in this process.
    """

    def __init__(self, message: str, *, code: int, status: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.status = status


class CommitRejected(ClientError):
    """The catalog refused the request: a read, or a change, of which nothing is visible then.

    Attributes:
        code: Error code of the namespace specification.
        failures: Conflicts as the catalog sent them.
        status: HTTP status, None for a catalog in this process.
        reason: Explanation by the catalog, without the code and the conflicts.
    """

    def __init__(
        self,
        message: str,
        *,
        code: int | None,
        failures: Sequence[Mapping[str, Any]] = (),
        status: int | None = None,
        reason: str | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = message if reason is None else reason
        self.status = status
        self.failures = tuple(dict(failure) for failure in failures)


class NotFound(CommitRejected):
    """There is no such namespace, table, version, branch, tag, index or row. A batch raises conflicts instead."""


class EventsGone(NotFound):
    """Events or changes of rows that were not seen are not kept any more (status 410): later ones would hide that.

    Take a baseline: pin a catalog version, read the tables as of it, go on since it, and remove the pin.
    """


class AlreadyExists(CommitRejected):
    """There is a namespace, table, branch, tag or index of that name. A batch raises conflicts instead."""


class CatalogUnavailable(CommitRejected):
    """The catalog cannot serve the request for now (codes 17 and 21), and nothing was done.

    For a batch it is raised after the last retry. Running the block again later can succeed.

    Attributes:
        retry_after: Seconds after which the server wants to be asked again, None if it has not said it.
    """

    retry_after: int | None = None


class CommitConflict(CommitRejected):
    """The batch conflicts with other commits, which `conflicts` describes."""

    conflicts: tuple[Conflict, ...] = ()


class RetryableConflict(CommitConflict):
    """The batch conflicts with other commits. Running the block again on the newer versions can succeed."""


class IncompatibleConflict(CommitConflict):
    """The batch conflicts irreconcilably: the table was overwritten, restored or dropped, or lost a column.

    The same transaction can never be committed after that. Running the block again computes another transaction on
    the present table. Whether that is wanted needs a decision outside of the client, so `retrying` raises this.
    """


class CommitUnknown(ClientError, OutcomeUnknown):
    """The outcome of a change is unknown: it may be made, or may be made later. Files of a batch are kept.

    The same request under the same key (`resend`) is applied at most once. Running the block again can apply the
    changes twice.

    Attributes:
        batch: Transaction id of the batch, None if the catalog did not name it.
        idempotency_key: Key that the change was sent under, None for one that may be made twice.
    """

    def __init__(self, message: str, *, batch: str | None, idempotency_key: str | None) -> None:
        super().__init__(message)
        self.batch = batch
        self.idempotency_key = idempotency_key


class CatalogUnreachable(ClientError):
    """No connection to the catalog, or a response that cannot be understood. A batch that ends so was never sent."""


class CatalogClosed(CatalogUnreachable):
    """The connection was closed before the call. Nothing was sent."""
