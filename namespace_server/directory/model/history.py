"""A batch in the history of the catalog: its principal, and its operations with their objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from namespace_server.access.subjects import ordered
from namespace_server.attempts import Authorization
from namespace_server.directory.model.entries import RecordEntry, VersionEntry
from namespace_server.directory.model.grant_operations import (
    EnableGrants,
    GrantOperation,
    GrantRole,
    RevokeRole,
)
from namespace_server.directory.model.operations import (
    AdvanceCursor,
    AlterBatch,
    AssertTableVersion,
    Batch,
    CloneTable,
    CommitTransaction,
    CreateBranch,
    CreateTableVersion,
    DeleteCursor,
    EndIntent,
    KeepAnswer,
    Operation,
    RegisterIntent,
    RemovePin,
    SetPin,
)

MOST_OPERATIONS: Final = 200
"""Operations of one batch that are listed. Their number counts all."""

PRIVATE: Final = ("origin", "granted")
"""Fields of the outline of a batch that are for auditors alone: no list of versions and no event has them."""

Body = dict[str, object]
Made = tuple[VersionEntry, str | None, int | None]
"""A version that a batch publishes, the name of the Lance operation that made it, and by how many rows it is larger."""


@dataclass(frozen=True, slots=True)
class FlipOutline:
    """The batches that made a catalog version, by their uuid, and the table versions that it adopted.

    Adopted versions are those that another writer committed without the catalog.
    """

    batches: Mapping[str, Body] = field(default_factory=dict)
    adopted: Sequence[Body] = ()


NO_OUTLINE: Final = FlipOutline()


def outline_of(batch: Batch, made: Iterable[Made], granted: Sequence[Authorization] = ()) -> Body:
    """The JSON of a batch in the history. `made` are the versions that it publishes, in the order of its operations.

    Assertions are left out: they change nothing. `granted` are the grants by which it was allowed.
    """
    waiting = list(made)
    operations = [each for each in batch.operations if not isinstance(each, AssertTableVersion | KeepAnswer)]
    outline: Body = {} if batch.principal is None else {"principal": batch.principal}
    if batch.origin is not None:
        outline["origin"] = batch.origin.as_json()
    outline["num_operations"] = len(operations)
    outline["operations"] = [_operation(each, waiting) for each in operations[:MOST_OPERATIONS]]
    if granted:
        outline["granted"] = [_authorization(each) for each in granted[:MOST_OPERATIONS]]
    return outline


def _authorization(granted: Authorization) -> Body:
    return {
        "operation_index": granted.operation_index,
        "privilege": granted.privilege,
        "kind": granted.kind,
        "object": list(granted.object),
        "reason": granted.reason,
    }


def outline_of_record(record: RecordEntry) -> Body:
    """The JSON of a batch of a release that wrote no outline, with the fields that its record has."""
    outline: Body = {} if record.principal is None else {"principal": record.principal}
    published = [
        {"id": list(party.table_id), "version": party.version, **({"branch": party.branch} if party.branch else {})}
        for party in record.participants
    ]
    names = [name for name in record.operation.split(",") if name]
    if len(names) == 1 and published:
        return outline | {"operations": [{"operation": names[0], **each} for each in published]}
    return outline | {"operations": [{"operation": name} for name in names] + [dict(each) for each in published]}


def without_private(outline: Mapping[str, object]) -> Body:
    """The outline of a batch as all may read it who read the history."""
    return {name: value for name, value in outline.items() if name not in PRIVATE}


def adopted_version(entry: VersionEntry) -> Body:
    """The JSON of a version of a table that another writer committed, and the catalog adopted."""
    branch = {} if entry.branch is None else {"branch": entry.branch}
    return {"id": list(entry.table_id), "version": entry.version, **branch}


def change_name(operation: str) -> str:
    """The name of a Lance operation as clients spell it: `data_replacement` is `DataReplacement`."""
    return "".join(word.capitalize() for word in operation.split("_"))


def _operation(operation: Operation, waiting: list[Made]) -> Body:
    described: Body = {"operation": operation.name}
    if isinstance(operation, GrantOperation):
        return described | _grant(operation)
    match operation:
        case SetPin() | RemovePin():
            return described | {"pin": operation.key}
        case AdvanceCursor() | DeleteCursor():
            return described | {"cursor": operation.key}
        case RegisterIntent() | EndIntent() | AlterBatch() | KeepAnswer():
            return described
    described["id"] = list(operation.id)
    for name in ("new_id", "branch", "tag", "version"):
        value = getattr(operation, name, None)
        if value is not None:
            described[name] = list(value) if name == "new_id" else value
    publishes = isinstance(operation, CommitTransaction | CreateTableVersion | CreateBranch | CloneTable)
    if publishes and waiting and waiting[0][0].table_id == operation.id:
        entry, change, rows = waiting.pop(0)
        described["version"] = entry.version
        if change is not None:
            described["change"] = change_name(change)
        if rows is not None:
            described["rows"] = rows
    return described


def _grant(operation: GrantOperation) -> Body:
    """What a change of grants is about."""
    if isinstance(operation, EnableGrants):
        return {"administrators": [{each.kind: each.name} for each in operation.administrators]}
    to = {operation.to.kind: operation.to.name}
    if isinstance(operation, GrantRole | RevokeRole):
        return {"role": operation.role, "to": to}
    on: Body = {operation.kind: list(operation.id) if operation.id else True}
    privileges = [] if operation.privileges is None else ordered(operation.privileges)
    return {"on": on, "to": to, **({"privileges": [str(each) for each in privileges]} if privileges else {})}
