"""What is asked of a catalog and what it answers: plain values, and their JSON."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lance_core.proto import lance_table_pb2 as pb
from namespace_client.errors import (
    CommitRejected,
    Conflict,
    IncompatibleConflict,
    RetryableConflict,
)

TableId = tuple[str, ...]
Json = dict[str, Any]

DELIMITER = "$"

TABLE_NOT_FOUND = 4
TABLE_ALREADY_EXISTS = 5
CONCURRENT_MODIFICATION = 14
THROTTLED = 21
BRANCH_NOT_FOUND = 22
_CONFLICT_CODES = frozenset({2, 3, TABLE_ALREADY_EXISTS, 7, 9, CONCURRENT_MODIFICATION, 19, 23})
_GONE_CODES = frozenset({TABLE_NOT_FOUND, BRANCH_NOT_FOUND})


@dataclass(frozen=True, slots=True)
class CatalogState:
    """The catalog's root as a URI without trailing slash, and its newest version."""

    root: str
    version: int


@dataclass(frozen=True, slots=True)
class TableState:
    """A table, or a branch of it, at one catalog version.

    `uri` is the root of the table, whatever the branch. `version` is None while the table is only declared.
    """

    id: TableId
    uri: str
    version: int | None
    properties: Mapping[str, str] = field(default_factory=dict)
    branch: str | None = None


@dataclass(frozen=True, slots=True)
class CatalogPins:
    """Every table at one catalog version."""

    version: int
    tables: Mapping[TableId, TableState]


@dataclass(frozen=True, slots=True)
class DeclareTable:
    """Put a new table into the catalog, at a location that the client chose."""

    id: TableId
    location: str
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CommitTransaction:
    """Commit a Lance transaction, rebased onto the head by the catalog.

    `stable_row_ids` makes the first version of a table one whose rows keep their ids. `location` is the table's URI:
    another table of the same name is elsewhere.
    """

    id: TableId
    transaction: pb.Transaction
    branch: str | None = None
    stable_row_ids: bool = False
    location: str | None = None


@dataclass(frozen=True, slots=True)
class AssertVersion:
    """Fail the batch unless the table's head is `version` (0: none) when the batch commits, at `location` if given."""

    id: TableId
    version: int
    branch: str | None = None
    location: str | None = None


Operation = DeclareTable | CommitTransaction | AssertVersion


@dataclass(frozen=True, slots=True)
class CommittedTable:
    """The version that a transaction became. `rebased` tells that others had committed since its read version."""

    id: TableId
    version: int
    rebased: bool
    branch: str | None = None


@dataclass(frozen=True, slots=True)
class CommittedBatch:
    """A batch that is committed, in catalog version `catalog_version`. `tables` has an entry for each transaction."""

    transaction_id: str | None
    catalog_version: int | None
    tables: tuple[CommittedTable, ...]


def batch_request(operations: Sequence[Operation], message: str | None) -> Json:
    """The body of a BatchCommitTables request."""
    request: Json = {"operations": [_operation(operation) for operation in operations]}
    if message:
        request["context"] = {"message": message}
    return request


def committed_batch(operations: Sequence[Operation], body: Json, catalog_version: int | None) -> CommittedBatch:
    """What the answer to such a request says. Raises `KeyError` or `TypeError` when it is not one."""
    tables = []
    for operation, result in zip(operations, body["results"], strict=True):
        if isinstance(operation, CommitTransaction):
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


def refused(error: str, code: int, failures: Sequence[Json] = (), status: int | None = None) -> CommitRejected:
    """The typed form of an error answer. What others committed is a conflict, and a table that is gone is one, too."""
    hints = "; ".join(str(failure["hint"]) for failure in failures if failure.get("hint"))
    text = f"{error} (code {code})" + (f": {hints}" if hints and hints not in error else "")
    if code not in _CONFLICT_CODES | _GONE_CODES:
        return CommitRejected(text, code=code, failures=failures, status=status)
    conflicts = tuple(_conflict(failure) for failure in failures)
    lost = code in _GONE_CODES or any(conflict.reason.startswith("incompatible") for conflict in conflicts)
    kind = IncompatibleConflict if lost else RetryableConflict
    conflict = kind(text, code=code, failures=failures, status=status)
    conflict.conflicts = conflicts
    return conflict


def _operation(operation: Operation) -> Json:
    match operation:
        case DeclareTable(table_id, location, properties):
            declare: Json = {"id": list(table_id), "location": location}
            if properties:
                declare["properties"] = dict(properties)
            return {"declare_table": declare}
        case CommitTransaction(table_id, transaction, branch, stable_row_ids, location):
            encoded = base64.b64encode(transaction.SerializeToString()).decode()
            commit: Json = {"id": list(table_id), "transaction": encoded}
            if stable_row_ids:
                commit["stable_row_ids"] = True
            return {"commit_transaction": commit | _place(branch, location)}
        case AssertVersion(table_id, version, branch, location):
            return {"assert_table_version": {"id": list(table_id), "version": version} | _place(branch, location)}


def _place(branch: str | None, location: str | None) -> Json:
    given = {"branch": branch, "location": location}
    return {name: value for name, value in given.items() if value is not None}


def _conflict(failure: Json) -> Conflict:
    return Conflict(
        table=tuple(failure.get("id") or ()),
        branch=failure.get("branch"),
        expected=failure.get("expected"),
        actual=failure.get("actual"),
        winner=failure.get("winner_transaction_id"),
        reason=str(failure.get("hint") or ""),
    )
