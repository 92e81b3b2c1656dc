"""Catalog request and response types, and their JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from namespace_client.error_codes import ErrorCode
from namespace_client.errors import (
    AccessRefused,
    AlreadyExists,
    CatalogUnavailable,
    CommitRejected,
    Conflict,
    EventsGone,
    IncompatibleConflict,
    NotFound,
    RetryableConflict,
)
from namespace_client.history import moment
from namespace_client.names import Name
from table_data.batch_operations import (
    BatchOperation,
    Json,
    TableId,
    TableOfIntent,
    TableState,
    TransactionCommit,
    operation_json,
)

_CONFLICT_CODES = frozenset(
    {
        ErrorCode.NAMESPACE_ALREADY_EXISTS,
        ErrorCode.NAMESPACE_NOT_EMPTY,
        ErrorCode.TABLE_ALREADY_EXISTS,
        ErrorCode.TABLE_INDEX_ALREADY_EXISTS,
        ErrorCode.TABLE_TAG_ALREADY_EXISTS,
        ErrorCode.CONCURRENT_MODIFICATION,
        ErrorCode.INVALID_TABLE_STATE,
        ErrorCode.TABLE_BRANCH_ALREADY_EXISTS,
    }
)
_GONE_CODES = frozenset({ErrorCode.TABLE_NOT_FOUND, ErrorCode.TABLE_BRANCH_NOT_FOUND})
_ACCESS_CODES = frozenset({ErrorCode.PERMISSION_DENIED, ErrorCode.UNAUTHENTICATED})
_MISSING_CODES = frozenset(
    {
        ErrorCode.NAMESPACE_NOT_FOUND,
        ErrorCode.TABLE_NOT_FOUND,
        ErrorCode.TABLE_INDEX_NOT_FOUND,
        ErrorCode.TABLE_TAG_NOT_FOUND,
        ErrorCode.TRANSACTION_NOT_FOUND,
        ErrorCode.TABLE_VERSION_NOT_FOUND,
        ErrorCode.TABLE_COLUMN_NOT_FOUND,
        ErrorCode.TABLE_BRANCH_NOT_FOUND,
    }
)
_TAKEN_CODES = frozenset(
    {
        ErrorCode.NAMESPACE_ALREADY_EXISTS,
        ErrorCode.TABLE_ALREADY_EXISTS,
        ErrorCode.TABLE_INDEX_ALREADY_EXISTS,
        ErrorCode.TABLE_TAG_ALREADY_EXISTS,
        ErrorCode.TABLE_BRANCH_ALREADY_EXISTS,
    }
)
_UNAVAILABLE_CODES = frozenset({ErrorCode.SERVICE_UNAVAILABLE, ErrorCode.THROTTLING})
NOTHING_DONE = "nothing_done"
INCOMPATIBLE = "incompatible"
_SERVER_FAILURE = 500
_GONE = 410
_NOT_FOUND = 404


@dataclass(frozen=True, slots=True)
class CatalogHead:
    """The catalog's root, a URI without trailing slash, and its newest version.

    `managed` is false for tables and catalogs that others made and that are not adopted: they are only read.
    """

    root: str
    version: int
    managed: bool = True


@dataclass(frozen=True, slots=True)
class CatalogPins:
    """Every table at one catalog version."""

    version: int
    tables: Mapping[TableId, TableState]


@dataclass(frozen=True, slots=True)
class CommittedTable:
    """The version of a committed transaction, and whether it was rebased over other commits."""

    id: TableId
    version: int
    rebased: bool
    branch: str | None = None


@dataclass(frozen=True, slots=True)
class CommittedBatch:
    """A batch committed in `catalog_version`. `tables` has one entry for each transaction of the batch."""

    transaction_id: str | None
    catalog_version: int | None
    tables: tuple[CommittedTable, ...]


@dataclass(frozen=True, slots=True)
class CallerIdentity:
    """Who a server takes the caller for.

    Attributes:
        principal: The name of the caller; None if the server knows no callers.
        means: What the caller has shown: "api_key", "token", or "none".
        issuer: The issuer of the token; None without one.
        roles: What the token says of the caller's roles.
        expires_at: When the token ends; None without one.
    """

    principal: str | None
    means: str
    issuer: str | None = None
    roles: frozenset[str] = frozenset()
    expires_at: datetime | None = None

    @classmethod
    def of(cls, answer: Json) -> CallerIdentity:
        """The answer of a server. Raises `KeyError`, `TypeError` or `ValueError` if it is none."""
        until = answer.get("expires_at")
        return cls(
            answer.get("principal"),
            answer["means"],
            answer.get("issuer"),
            frozenset(answer.get("roles", ())),
            None if until is None else moment(1000 * until),
        )


@dataclass(frozen=True, slots=True)
class CatalogPin:
    """A catalog version that is kept with all rows and files.

    Attributes:
        name: What the pin is called.
        version: The catalog version.
        pinned_at: When it was pinned.
        until: When the pin may end; None if it stays until it is removed.
        reason: Text that was given with it.
        principal: The principal that pinned it, None if the server knows no principals.
    """

    name: str
    version: int
    pinned_at: datetime
    until: datetime | None
    reason: str | None
    principal: str | None

    @classmethod
    def of(cls, row: Json) -> CatalogPin:
        """A row of the list of pins. Raises `KeyError`, `TypeError` or `ValueError` if it is none."""
        until = row.get("until_millis")
        return cls(
            row["name"],
            int(row["version"]),
            moment(row["timestamp_millis"]),
            None if until is None else moment(until),
            row.get("reason"),
            row.get("principal"),
        )


@dataclass(frozen=True, slots=True)
class CatalogIntent:
    """A registered job: its files, and the versions that it reads, are kept.

    Attributes:
        id: UUID that the job chose.
        tables: What it named; the id is empty if there is no table at the location.
        since: Files that it writes from then on, by the clock of the store, may be committed.
        until: When a garbage collection may end it.
        registered_at: When it was registered.
        reason: Text that was given with it.
        principal: The principal that registered it, None if the server knows no principals.
    """

    id: str
    tables: tuple[TableOfIntent, ...]
    since: datetime
    until: datetime
    registered_at: datetime
    reason: str | None
    principal: str | None

    @classmethod
    def of(cls, row: Json) -> CatalogIntent:
        """A row of the list of intents. Raises `KeyError`, `TypeError` or `ValueError` if it is none."""
        tables = tuple(
            TableOfIntent(tuple(each.get("id") or ()), each["location"], each.get("branch"), each.get("read_version"))
            for each in row["tables"]
        )
        return cls(
            row["intent_id"],
            tables,
            moment(row["since_millis"]),
            moment(row["until_millis"]),
            moment(row["timestamp_millis"]),
            row.get("reason"),
            row.get("principal"),
        )


@dataclass(frozen=True, slots=True)
class CatalogCursor:
    """How far a consumer of events has come.

    Attributes:
        name: Name of the cursor.
        version: Catalog version up to which the consumer is done.
        moved_at: When it was put there.
        principal: The principal that put it there, None if the server knows no principals.
        lag: How many catalog versions there are above it.
        expired: Whether some of these are not kept any more.
    """

    name: str
    version: int
    moved_at: datetime
    principal: str | None
    lag: int
    expired: bool

    @classmethod
    def of(cls, row: Json) -> CatalogCursor:
        """A row of the list of cursors. Raises `KeyError`, `TypeError` or `ValueError` if it is none."""
        return cls(
            row["name"],
            int(row["version"]),
            moment(row["timestamp_millis"]),
            row.get("principal"),
            int(row["lag"]),
            bool(row.get("expired")),
        )


@dataclass(frozen=True, slots=True)
class FoundTables:
    """The tables that a search of names has found, the best first.

    Attributes:
        names: Their paths.
        more: Whether there are more than were asked for.
    """

    names: tuple[Name, ...]
    more: bool

    @classmethod
    def of(cls, answer: Json) -> FoundTables:
        """The answer of the catalog. Raises `KeyError` or `TypeError` if it is none."""
        return cls(tuple(Name(path) for path in answer["tables"]), bool(answer["more"]))

    def __iter__(self) -> Iterator[Name]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return "\n".join([*map(str, self.names), *(["... and more"] if self.more else [])])


@dataclass(frozen=True, slots=True)
class DroppedTable:
    """A dropped table that can come back.

    Attributes:
        id: Path that the table had.
        location: URI of the table.
        tombstone: What names this drop, should several tables of one name have been dropped.
        dropped_at: When it was dropped.
        catalog_version: Catalog version before the drop.
        version: Newest version of the table, None if it was only declared.
        principal: The principal that dropped it, None if the server knows no principals.
    """

    id: TableId
    location: str
    tombstone: str
    dropped_at: datetime
    catalog_version: int
    version: int | None
    principal: str | None

    @classmethod
    def of(cls, row: Json) -> DroppedTable:
        """A row of the list of dropped tables. Raises `KeyError`, `TypeError` or `ValueError` if it is none."""
        return cls(
            tuple(row["id"]),
            row["location"],
            row["tombstone_id"],
            moment(row["timestamp_millis"]),
            int(row["catalog_version"]),
            row.get("version"),
            row.get("principal"),
        )


def present(**fields: Any) -> Json:
    """The fields of a request that are not None: absent ones are left out."""
    return {name: value for name, value in fields.items() if value is not None}


def batch_request(operations: Sequence[BatchOperation], message: str | None) -> Json:
    """The body of a BatchCommitTables request."""
    request: Json = {"operations": [operation_json(operation) for operation in operations]}
    if message:
        request["context"] = {"message": message}
    return request


def committed_batch(operations: Sequence[BatchOperation], body: Json, catalog_version: int | None) -> CommittedBatch:
    """Parse the response to a BatchCommitTables request.

    Raises `KeyError`, `TypeError`, `ValueError` or `AttributeError` if the body is no such response.
    """
    tables = []
    for operation, result in zip(operations, body["results"], strict=True):
        if isinstance(operation, TransactionCommit):
            committed = result["commit_transaction"]
            tables.append(
                CommittedTable(
                    operation.id,
                    int(committed["version"]["version"]),
                    bool(committed.get("rebased")),
                    operation.branch,
                )
            )
    return CommittedBatch(body.get("transaction_id"), catalog_version, tuple(tables))


def refused(
    error: str, code: int, failures: Sequence[Json] = (), status: int | None = None
) -> CommitRejected | AccessRefused:
    """The exception for an error response to a read, or to a change that is not a batch."""
    if code in _ACCESS_CODES:
        return AccessRefused(_text(error, code, failures), code=code, status=status)
    kind = CommitRejected
    if code in _UNAVAILABLE_CODES:
        kind = CatalogUnavailable
    elif code in _MISSING_CODES or (code == ErrorCode.INVALID_INPUT and status == _NOT_FOUND):  # no such row
        kind = EventsGone if status == _GONE else NotFound
    elif code in _TAKEN_CODES:
        kind = AlreadyExists
    return kind(_text(error, code, failures), code=code, failures=failures, status=status, reason=error)


def access_refused(server: str, status: int) -> AccessRefused | None:
    """The exception for a response without a body of a catalog, as a proxy gives it; None for other statuses."""
    code = {401: ErrorCode.UNAUTHENTICATED, 403: ErrorCode.PERMISSION_DENIED}.get(status)
    return None if code is None else AccessRefused(f"{server}: answered {status}", code=code, status=status)


def change_refused(
    operation: str, error: str, code: int, failures: Sequence[Json] = (), status: int | None = None
) -> CommitRejected | AccessRefused:
    """The exception for an error response to a change."""
    found = batch_refused if operation == "batch_commit_tables" else refused
    return found(error, code, failures, status)


def batch_refused(
    error: str, code: int, failures: Sequence[Json] = (), status: int | None = None
) -> CommitRejected | AccessRefused:
    """The exception for an error response to a batch.

    Codes about concurrent changes become conflicts. So do missing tables and branches, which existed at the begin.
    """
    if code not in _CONFLICT_CODES | _GONE_CODES:
        return refused(error, code, failures, status)
    conflicts = tuple(_conflict(failure) for failure in failures)
    lost = code in _GONE_CODES or any(conflict.kind == INCOMPATIBLE for conflict in conflicts)
    kind = IncompatibleConflict if lost else RetryableConflict
    conflict = kind(_text(error, code, failures), code=code, failures=failures, status=status, reason=error)
    conflict.conflicts = conflicts
    return conflict


def pages_of(ask: Callable[[Json], Json]) -> Iterator[Json]:
    """All pages of a list. `ask` gets one, with the fields that a request for it has beyond the first one."""
    token: str | None = None
    while True:
        page = ask({"page_token": token} if token else {})
        yield page
        token = page.get("page_token")
        if not token:
            return


def with_outcome(error: Json, status: int) -> Json:
    """The body of an error answer with `outcome`, and with the `kind` of each failure, also of an older server.

    A server of the release 0.1.0 and before says them in the words of its texts alone. This function is the only
    place where words decide. It goes with release 0.3.0, on 1 July 2027 at the earliest.
    """
    if "outcome" in error:
        return error
    unknown = status >= _SERVER_FAILURE and "nothing was done" not in str(error.get("error"))
    failures = [
        failure | {"kind": INCOMPATIBLE if str(failure.get("hint") or "").startswith("incompatible") else "retryable"}
        for failure in error.get("failures") or ()
    ]
    return error | {"outcome": "unknown" if unknown else NOTHING_DONE, "failures": failures}


def _text(error: str, code: int, failures: Sequence[Json]) -> str:
    hints = "; ".join(str(failure["hint"]) for failure in failures if failure.get("hint"))
    return f"{error} (code {code})" + (f": {hints}" if hints and hints not in error else "")


def _conflict(failure: Json) -> Conflict:
    return Conflict(
        table=tuple(failure.get("id") or ()),
        branch=failure.get("branch"),
        expected=failure.get("expected"),
        actual=failure.get("actual"),
        winner=failure.get("winner_transaction_id"),
        reason=str(failure.get("hint") or ""),
        kind=str(failure.get("kind") or "retryable"),
    )
