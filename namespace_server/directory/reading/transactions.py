"""Answers about transactions: those that made the versions of a table, and batches of the catalog.

A transaction of a table is named by the table's id followed by a version of its main branch, or by the uuid of the
transaction. A batch is named by its uuid, the `transaction_id` of answers, alone or behind the id of a table that it
published a version of.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import orjson
from lance_namespace.errors import InvalidInputError, TransactionNotFoundError

from lance_core.errors import CorruptFile, NotFound
from lance_core.format.naming import join_key
from lance_core.versions import with_transaction
from namespace_server.access.subjects import Privilege
from namespace_server.directory.manifests.stored_versions import stored_entries
from namespace_server.directory.model import request_fields
from namespace_server.directory.model.entries import RecordEntry, TableEntry, VersionEntry
from namespace_server.directory.model.errors import shown, table_not_found
from namespace_server.directory.model.history import change_name
from namespace_server.directory.model.notes import SUCCEEDED
from namespace_server.directory.model.object_ids import ObjectId, join, parse_version
from namespace_server.directory.model.request_fields import Request
from namespace_server.directory.reading import table_versions
from namespace_server.directory.reading.read_context import ReadContext

Body = dict[str, object]

_FAILED = "Failed"
_READ: Final = frozenset({Privilege.READ})
NOTES_DIRECTORY = "_alter_transactions"


@dataclass(frozen=True, slots=True)
class FoundBatch:
    """The record of a batch."""

    record: RecordEntry


@dataclass(frozen=True, slots=True)
class FoundTransaction:
    """The version that a transaction of a table made."""

    entry: VersionEntry


def describe_transaction(context: ReadContext, request: Request) -> Body:
    """DescribeTransactionResponse; TransactionNotFoundError (10)."""
    return describe_found(context, find_transaction(context, request))


def find_transaction(context: ReadContext, request: Request) -> FoundBatch | FoundTransaction:
    """The transaction or batch that a request names.

    Raises TransactionNotFoundError (10), TableNotFoundError (4), InvalidInputError (13).
    """
    parts = request_fields.object_id(request, "transaction")
    if len(parts) < 2:
        if not parts or not _is_uuid(parts[0]):
            raise InvalidInputError(
                "transaction id: expected the id of a table and a transaction, or the uuid of a batch, found "
                f"{shown(join(parts))}"
            )
        return _batch(context, parts[0], None)
    table_id, name = parts[:-1], parts[-1]
    table = context.about(table_id).table(table_id)
    if table is None:
        raise table_not_found(table_id)
    if _is_uuid(name):
        context.require(_READ, table_id)
        made = _version_by(context, table, str(uuid.UUID(name)))
        return _batch(context, name, table_id) if made is None else FoundTransaction(made)
    version = parse_version(name)
    context.require(_READ, table_id)
    entry = None if version is None else table_versions.find(context, table, None, version)
    if entry is None:
        raise _no_transaction(name, table_id)
    return FoundTransaction(entry)


def describe_found(context: ReadContext, found: FoundBatch | FoundTransaction) -> Body:
    """DescribeTransactionResponse, or AlterTransactionResponse, of a batch or transaction."""
    if isinstance(found, FoundBatch):
        status = SUCCEEDED if found.record.is_batch else _FAILED
        return {"status": status, "properties": {**found.record.properties, **_batch_properties(found.record)}}
    return {"status": SUCCEEDED, "properties": {**_notes(context, found.entry), **_properties(context, found.entry)}}


def notes_path(entry: VersionEntry) -> str:
    """The key of the file with the properties noted on the transaction of a version, where stock servers keep it."""
    return join_key(entry.location, NOTES_DIRECTORY, f"{entry.transaction_uuid}.json")


def encode_notes(notes: Mapping[str, str], before: bytes | None = None) -> bytes:
    """The content of a file of notes. All else that stock servers had put into it `before` is kept."""
    contents: dict[str, object] = {"status": None, "properties": {}, "removed_properties": []}
    if before is not None:
        contents |= orjson.loads(before)
    return orjson.dumps({**contents, "properties": dict(notes)})


def decode_notes(path: str, data: bytes) -> dict[str, str]:
    """The properties in a file of notes, of this server or a stock one. Raises `CorruptFile`."""
    try:
        properties = orjson.loads(data).get("properties") or {}
        return {str(key): str(value) for key, value in properties.items()}
    except (orjson.JSONDecodeError, AttributeError) as error:
        reason = f"expected a JSON object with properties ({error})"
        raise CorruptFile(f"{path}: {reason}", key=path, reason=reason) from error


def _batch(context: ReadContext, name: str, table_id: ObjectId | None) -> FoundBatch:
    record = context.snapshot.record(str(uuid.UUID(name)))
    if record is None or not (record.is_batch or record.state == "foreign"):
        raise _no_transaction(name, table_id)
    if table_id is not None and all(party.table_id != table_id for party in record.participants):
        raise _no_transaction(name, table_id)
    return FoundBatch(record)


def _batch_properties(record: RecordEntry) -> dict[str, str]:
    versions = [
        {"id": list(party.table_id), "version": party.version, **({"branch": party.branch} if party.branch else {})}
        for party in record.participants
    ]
    described = {
        "uuid": record.batch_uuid,
        "state": record.state,
        "timestamp_millis": str(record.timestamp_ms),
        "versions": orjson.dumps(versions).decode(),
    }
    if record.operation:
        described["operation"] = record.operation
    if record.catalog_version:
        described["catalog_version"] = str(record.catalog_version)
    if record.message is not None:
        described["message"] = record.message
    return described


def _version_by(context: ReadContext, table: TableEntry, transaction_uuid: str) -> VersionEntry | None:
    """The version that a transaction made, on any branch; None if there is none."""
    snapshot = context.about(table.id)
    if not snapshot.managed:
        entries = iter(stored_entries(context.catalog.store, table, None))
    else:
        chains = snapshot.chains(table.id)
        entries = (row for branch in chains for row in snapshot.versions(table.id, branch, descending=True))
    found = next((entry for entry in entries if entry.transaction_uuid == transaction_uuid), None)
    return None if found is None else table_versions.find(context, table, found.branch, found.version)


def _properties(context: ReadContext, entry: VersionEntry) -> dict[str, str]:
    """The properties of the transaction itself. TransactionNotFoundError (10) if its manifest is gone (M5)."""
    catalog = context.catalog
    try:
        file = with_transaction(catalog.store, entry.base, catalog.load_manifest(entry))
    except NotFound as error:
        raise _no_transaction(str(entry.version), entry.table_id) from error
    described = {
        "uuid": file.transaction_uuid,
        "version": str(entry.version),
        "timestamp_millis": str(entry.timestamp_ms),
    }
    if entry.branch is not None:
        described["branch"] = entry.branch
    if file.transaction is None:
        return described
    described["read_version"] = str(file.transaction.read_version)
    if file.operation is not None:
        described["operation"] = change_name(file.operation)
    return {**file.transaction.transaction_properties, **described}


def _notes(context: ReadContext, entry: VersionEntry) -> dict[str, str]:
    """The properties noted on a transaction; none as of an earlier catalog version, because the file has no history."""
    if context.as_of:
        return {}
    path = notes_path(entry)
    data = context.catalog.store.find(path)
    return {} if data is None else decode_notes(path, data)


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False


def _no_transaction(name: str, table_id: ObjectId | None) -> TransactionNotFoundError:
    place = "the catalog" if table_id is None else f"table {join(table_id)}"
    return TransactionNotFoundError(f"transaction {shown(name)} of {place} does not exist, or is no longer kept")
