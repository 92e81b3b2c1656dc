"""Operations of a batch about one table, and their JSON."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lance_core.proto import lance_table_pb2 as pb

TableId = tuple[str, ...]
Json = dict[str, Any]

DELIMITER = "$"


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
        layout: Digest of the layout of the version (`lance_core.format.layout`), None if it is not known.
        identity: What tells the version from another one that has its place and number: a branch is deleted and made
            again, other files replace a table that is not registered. None if it is not known. Identities that a
            server finds and those that a client finds are not comparable.
    """

    id: TableId
    uri: str
    version: int | None
    properties: Mapping[str, str] = field(default_factory=dict)
    branch: str | None = None
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    layout: bytes | None = field(default=None, repr=False, compare=False)
    identity: str | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class TableDeclaration:
    """Operation of a batch: create a table at a location that the client chose."""

    id: TableId
    location: str
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TransactionCommit:
    """Operation of a batch: commit a Lance transaction, rebased onto the head by the catalog.

    With `stable_row_ids` the rows of a first version keep their ids. `location` is the expected URI of the table: a
    table that was dropped and created again has another one.
    """

    id: TableId
    transaction: pb.Transaction
    branch: str | None = None
    stable_row_ids: bool = False
    location: str | None = None


@dataclass(frozen=True, slots=True)
class VersionAssertion:
    """Operation of a batch: fail it unless `version` (0: none) is the table's head, at `location` if given."""

    id: TableId
    version: int
    branch: str | None = None
    location: str | None = None


@dataclass(frozen=True, slots=True)
class PropertiesReplacement:
    """Operation of a batch: replace all properties that the catalog stores with a table."""

    id: TableId
    properties: Mapping[str, str]


BatchOperation = TableDeclaration | TransactionCommit | VersionAssertion | PropertiesReplacement


def operation_json(operation: BatchOperation) -> Json:
    """The operation as it stands in the list of a BatchCommitTables request."""
    match operation:
        case TableDeclaration(table_id, location, properties):
            declare: Json = {"id": list(table_id), "location": location}
            if properties:
                declare["properties"] = dict(properties)
            return {"declare_table": declare}
        case TransactionCommit(table_id, transaction, branch, stable_row_ids, location):
            encoded = base64.b64encode(transaction.SerializeToString()).decode()
            commit: Json = {"id": list(table_id), "transaction": encoded}
            if stable_row_ids:
                commit["stable_row_ids"] = True
            return {"commit_transaction": commit | _place(branch, location)}
        case VersionAssertion(table_id, version, branch, location):
            return {"assert_table_version": {"id": list(table_id), "version": version} | _place(branch, location)}
        case PropertiesReplacement(table_id, properties):
            return {"set_table_properties": {"id": list(table_id), "properties": dict(properties)}}


def _place(branch: str | None, location: str | None) -> Json:
    given = {"branch": branch, "location": location}
    return {name: value for name, value in given.items() if value is not None}
