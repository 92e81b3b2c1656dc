"""Operations of a batch about one table, and their JSON."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lance_core.format.naming import branch_base
from lance_core.proto import lance_table_pb2 as pb

TableId = tuple[str, ...]
Json = dict[str, Any]
Result = Mapping[str, object]
"""The answer of an operation."""

DELIMITER = "$"


@dataclass(frozen=True, slots=True)
class VersionIdentity:
    """The identity of a version among others that have, or had, its place and number.

    There are such versions where a branch is deleted and made again, and where other files replace those of a table
    that is not registered.

    Attributes:
        sha256: SHA-256 of the manifest, in hexadecimal digits.
        committed_ms: When the version was committed, in milliseconds since the epoch.
    """

    sha256: str
    committed_ms: int

    @classmethod
    def of(cls, version: Mapping[str, object]) -> VersionIdentity | None:
        """The identity in a TableVersion of the catalog; None if it lacks the hash, as rows of stock writers do."""
        sha256, committed_ms = version.get("manifest_sha256"), version.get("timestamp_millis")
        return cls(sha256, committed_ms) if isinstance(sha256, str) and isinstance(committed_ms, int) else None


@dataclass(frozen=True, slots=True)
class TableState:
    """A table, or one of its branches, at one catalog version.

    Attributes:
        id: Path of the table.
        uri: Root of the table, the same for all branches.
        version: Number of the newest version, None while the table is only declared.
        properties: Properties that the catalog stores with the table.
        branch: Name of the branch, None for the main branch.
        storage_options: Options of Lance that the catalog hands out for the table, temporary credentials among them.
        layout: Digest of the layout of the version (`lance_core.format.outline`), None if it is not known.
        identity: Which version it is that has this number, None if the catalog does not know.
    """

    id: TableId
    uri: str
    version: int | None
    properties: Mapping[str, str] = field(default_factory=dict)
    branch: str | None = None
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    layout: bytes | None = field(default=None, repr=False, compare=False)
    identity: VersionIdentity | None = field(default=None, repr=False, compare=False)

    @property
    def root(self) -> str:
        """Root of the branch, which is the table's for the main branch."""
        return branch_base(self.uri, self.branch)

    def at(self, version: int, identity: VersionIdentity | None = None) -> TableState:
        """The table at the version with this number. What else is known of this version is not known of another."""
        if version == self.version:
            return self
        return replace(self, version=version, layout=None, identity=identity)


@dataclass(frozen=True, slots=True)
class TableDeclaration:
    """Operation of a batch: create a table at a location that the client chose.

    With `implicit_namespaces` those above it that are missing are created with it, which no client may ask for.
    """

    id: TableId
    location: str
    properties: Mapping[str, str]
    implicit_namespaces: bool = False


@dataclass(frozen=True, slots=True)
class TransactionCommit:
    """Operation of a batch: commit a Lance transaction, rebased onto the head by the catalog.

    With `stable_row_ids` the rows of a first version keep their ids; `data_storage_version` is the format of its data
    files, if it has none that state it. `location` is the expected URI of the table: a table that was dropped and
    created again has another one. `manifest_sha256` is the SHA-256 of the manifest that the transaction was
    computed on.
    """

    id: TableId
    transaction: pb.Transaction
    branch: str | None = None
    stable_row_ids: bool = False
    data_storage_version: str | None = None
    location: str | None = None
    manifest_sha256: str | None = None


@dataclass(frozen=True, slots=True)
class VersionAssertion:
    """Operation of a batch: fail it unless `version` (0: none) is the table's head.

    With `location` and `manifest_sha256` the table must lie there, and its head have that manifest.
    """

    id: TableId
    version: int
    branch: str | None = None
    location: str | None = None
    manifest_sha256: str | None = None


@dataclass(frozen=True, slots=True)
class PropertyChange:
    """Operation of a batch: change properties that the catalog stores with a table.

    With `replace` the `updates` are all that are left. Else they are set, `removals` are removed, and the others stay.
    The table must lie at `location`, if that is given.
    """

    id: TableId
    updates: Mapping[str, str]
    removals: frozenset[str] = frozenset()
    replace: bool = False
    location: str | None = None


@dataclass(frozen=True, slots=True)
class TableReturn:
    """Operation of a batch: bring back a dropped table under the name `new_id`.

    `tombstone` says which one, if several of this name were dropped; the last one if it is None.
    """

    id: TableId
    new_id: TableId
    tombstone: str | None = None


@dataclass(frozen=True, slots=True)
class VersionPin:
    """Operation of a batch: keep a catalog version under a name, the one that the batch makes if `version` is None.

    It is kept for so many `seconds`, or until the pin is removed.
    """

    name: str
    version: int | None = None
    seconds: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class PinRemoval:
    """Operation of a batch: remove a pin."""

    name: str


@dataclass(frozen=True, slots=True)
class CursorAdvance:
    """Operation of a batch: put a cursor at a catalog version, the one that the batch makes if `version` is None.

    `expected` is where it has to be now; None: anywhere. It goes back only if `backwards`.
    """

    name: str
    version: int | None = None
    expected: int | None = None
    backwards: bool = False


@dataclass(frozen=True, slots=True)
class CursorDeletion:
    """Operation of a batch: remove a cursor."""

    name: str


@dataclass(frozen=True, slots=True)
class TableOfIntent:
    """A table, or one of its branches, that a job writes or reads.

    Attributes:
        id: Path of the table.
        location: URI of the table; where the table is if None.
        branch: Name of the branch, None for the main branch.
        read_version: Lowest version that the job reads, and that is kept for it; None if it reads none.
    """

    id: TableId
    location: str | None = None
    branch: str | None = None
    read_version: int | None = None


@dataclass(frozen=True, slots=True)
class IntentRegistration:
    """Operation of a batch: register a job that may take long, or renew its registration, for so many `seconds`."""

    intent: str
    tables: tuple[TableOfIntent, ...]
    seconds: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class IntentEnd:
    """Operation of a batch: end the registration of a job, if it is still there."""

    intent: str


@dataclass(frozen=True, slots=True)
class PrivilegeChange:
    """Operation of a batch: grant privileges on an object to a grantee, or revoke them.

    Attributes:
        on: The object, as a request has it: `{"table": [...]}`, `{"namespace": [...]}` or `{"catalog": true}`.
        to: The grantee, as a request has it: `{"principal": ...}` or `{"role": ...}`.
        privileges: The privileges; None to revoke all.
        granted: Whether they are granted.
    """

    on: Mapping[str, object]
    to: Mapping[str, object]
    privileges: tuple[str, ...] | None
    granted: bool = True


StagedOperation = TableDeclaration | TransactionCommit | VersionAssertion | PropertyChange
"""The operations with which work on the rows of one table is committed."""

BatchOperation = (
    StagedOperation
    | TableReturn
    | VersionPin
    | PinRemoval
    | CursorAdvance
    | CursorDeletion
    | IntentRegistration
    | IntentEnd
    | PrivilegeChange
)


def operation_json(operation: BatchOperation) -> Json:
    """The operation as it stands in the list of a BatchCommitTables request."""
    match operation:
        case TableDeclaration(table_id, location, properties):
            declare: Json = {"id": list(table_id), "location": location}
            if properties:
                declare["properties"] = dict(properties)
            return {"declare_table": declare}
        case TransactionCommit(table_id, transaction, branch, stable_row_ids, data_format, location, manifest):
            encoded = base64.b64encode(transaction.SerializeToString()).decode()
            commit: Json = {"id": list(table_id), "transaction": encoded}
            if stable_row_ids:
                commit["stable_row_ids"] = True
            if data_format is not None:
                commit["data_storage_version"] = data_format
            return {"commit_transaction": commit | _read(branch, location, manifest)}
        case VersionAssertion(table_id, version, branch, location, manifest):
            asserted: Json = {"id": list(table_id), "version": version}
            return {"assert_table_version": asserted | _read(branch, location, manifest)}
        case PropertyChange(table_id, updates, removals, replace, location):
            changed: Json = {"id": list(table_id), "location": location}
            if replace:
                changed["properties"] = dict(updates)
            else:
                changed |= {"updates": dict(updates), "removals": sorted(removals)}
            return {"set_table_properties": {name: value for name, value in changed.items() if value is not None}}
        case TableReturn(table_id, new_id, tombstone):
            returned: Json = {"id": list(table_id), "new_id": list(new_id), "tombstone_id": tombstone}
            return {"undrop_table": {name: value for name, value in returned.items() if value is not None}}
        case PrivilegeChange(on, to, privileges, granted):
            change: Json = {"on": dict(on), "to": dict(to)}
            change |= {} if privileges is None else {"privileges": list(privileges)}
            return {"grant_privileges" if granted else "revoke_privileges": change}
        case VersionPin() | PinRemoval() | CursorAdvance() | CursorDeletion() | IntentRegistration() | IntentEnd():
            return _need_json(operation)


def _need_json(
    operation: VersionPin | PinRemoval | CursorAdvance | CursorDeletion | IntentRegistration | IntentEnd,
) -> Json:
    """An operation on what the catalog keeps for somebody."""
    match operation:
        case VersionPin(pin, version, seconds, reason):
            asked: Json = {"name": pin, "version": version, "seconds": seconds, "reason": reason}
            return {"pin_catalog_version": {name: value for name, value in asked.items() if value is not None}}
        case PinRemoval(pin):
            return {"unpin_catalog_version": {"name": pin}}
        case CursorAdvance(cursor, version, expected, backwards):
            moved: Json = {"name": cursor, "version": version, "expected": expected, "backwards": backwards or None}
            return {"advance_cursor": {name: value for name, value in moved.items() if value is not None}}
        case CursorDeletion(cursor):
            return {"delete_cursor": {"name": cursor}}
        case IntentRegistration(intent, tables, seconds, reason):
            registered: Json = {"intent_id": intent, "tables": [_intended(table) for table in tables]}
            registered |= {"seconds": seconds} | ({} if reason is None else {"reason": reason})
            return {"register_intent": registered}
        case IntentEnd(intent):
            return {"end_intent": {"intent_id": intent}}


def _intended(table: TableOfIntent) -> Json:
    given = {"location": table.location, "branch": table.branch, "read_version": table.read_version}
    return {"id": list(table.id), **{name: value for name, value in given.items() if value is not None}}


def _read(branch: str | None, location: str | None, manifest_sha256: str | None) -> Json:
    """The fields that name the version that was read: branch, location of the table, hash of the manifest."""
    given = {"branch": branch, "location": location, "manifest_sha256": manifest_sha256}
    return {name: value for name, value in given.items() if value is not None}
