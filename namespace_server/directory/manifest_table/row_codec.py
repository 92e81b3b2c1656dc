"""Rows of `__manifest`: entries to rows and back.

A row has an object id, a type, a location and metadata (JSON); `base_objects` is always null. For object ids see
`model.object_ids`. A row of another writer that is not recognised decodes to None and stays on disk as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import orjson

from lance_core.format.naming import MAIN_BRANCH, parse_manifest_name
from namespace_server.access.grants import (
    ACCESS_ID,
    GRANT_PREFIX,
    MEMBERSHIP_PREFIX,
    AccessRow,
)
from namespace_server.answer import json_bytes
from namespace_server.directory.manifest_table.access_codec import decode_access, encode_access
from namespace_server.directory.model.collector_rows import (
    COLLECTOR_ID,
    CURSOR_PREFIX,
    FIRST_VERSION,
    INTENT_PREFIX,
    PIN_PREFIX,
    CollectorEntry,
    CursorEntry,
    IntendedChain,
    IntentEntry,
    Lease,
    PinEntry,
)
from namespace_server.directory.model.entries import (
    NO_PROPERTIES,
    RECORD_STATES,
    Entry,
    NamespaceEntry,
    Participant,
    RecordEntry,
    TableEntry,
    VersionEntry,
)
from namespace_server.directory.model.object_ids import (
    DELIMITER,
    RECORD_PREFIX,
    ObjectId,
    chain_object_id,
    parse_id,
    split_version_id,
)

NAMESPACE: Final = "namespace"
TABLE: Final = "table"
TABLE_VERSION: Final = "table_version"
TRANSACTION: Final = "transaction"
"""Values of the column `object_type`."""
_COLLECTOR: Final = "collector"
_PIN: Final = "pin"
_INTENT: Final = "intent"
_CURSOR: Final = "cursor"
"""The values that the metadata of these rows have in the place of a record's state."""


class Row(NamedTuple):
    """The values of one row as they are on disk."""

    object_id: str
    object_type: str
    location: str | None
    metadata: str | None


def encode_entry(entry: Entry) -> Row:
    """The row of an entry."""
    if isinstance(entry, VersionEntry):
        return Row(entry.object_id, TABLE_VERSION, None, _encode_version(entry))
    if isinstance(entry, RecordEntry):
        return Row(RECORD_PREFIX + entry.batch_uuid, TRANSACTION, None, _encode_record(entry))
    if isinstance(entry, CollectorEntry):
        return Row(COLLECTOR_ID, TRANSACTION, None, _encode_collector(entry))
    if isinstance(entry, PinEntry):
        return Row(entry.object_id, TRANSACTION, None, _encode_pin(entry))
    if isinstance(entry, IntentEntry):
        return Row(entry.object_id, TRANSACTION, None, _encode_intent(entry))
    if isinstance(entry, CursorEntry):
        return Row(entry.object_id, TRANSACTION, None, _encode_cursor(entry))
    if isinstance(entry, AccessRow):
        return Row(entry.object_id, TRANSACTION, None, encode_access(entry))
    metadata = orjson.dumps(dict(entry.properties)).decode() if entry.properties else None
    if isinstance(entry, TableEntry):
        return Row(DELIMITER.join(entry.id), TABLE, entry.location, metadata)
    return Row(DELIMITER.join(entry.id), NAMESPACE, None, metadata)


def decode_row(row: Row) -> Entry | None:
    """The entry of a row, or None for a row that is not recognised.

    A version row decodes if its metadata has the path of its manifest in the form that this server writes; for rows of
    other writers see `decode_version`.
    """
    path, kind, location, metadata = row
    if path == ACCESS_ID:  # whatever else it says: if it is damaged, nothing is open to everybody
        return decode_access(path, metadata)
    if kind == TABLE:
        return None if location is None else TableEntry(parse_id(path), location, decode_properties(metadata))
    if kind == NAMESPACE:
        return NamespaceEntry(parse_id(path), decode_properties(metadata))
    if kind == TABLE_VERSION:
        return decode_version(path, metadata)
    return _decode_own(path, metadata) if kind == TRANSACTION and path.startswith(RECORD_PREFIX) else None


def _decode_own(path: str, metadata: str | None) -> Entry | None:
    """The entry of a row of the catalog's own: of its collector, of what it keeps, or of a batch."""
    if path == COLLECTOR_ID:
        return _decode_collector(metadata)
    if path.startswith(PIN_PREFIX):
        return _decode_pin(path[len(PIN_PREFIX) :], metadata)
    if path.startswith(INTENT_PREFIX):
        return _decode_intent(path[len(INTENT_PREFIX) :], metadata)
    if path.startswith(CURSOR_PREFIX):
        return _decode_cursor(path[len(CURSOR_PREFIX) :], metadata)
    if path.startswith((GRANT_PREFIX, MEMBERSHIP_PREFIX)):
        return decode_access(path, metadata)
    return _decode_record(path[len(RECORD_PREFIX) :], metadata)


def decode_properties(metadata: str | None) -> Mapping[str, str]:
    """Properties from a row's metadata; empty when it is none or no JSON object. Values become strings."""
    values = _load_object(metadata)
    if not values:
        return NO_PROPERTIES
    return {key: value if isinstance(value, str) else orjson.dumps(value).decode() for key, value in values.items()}


def decode_version(
    path: str, metadata: str | None, tables: Mapping[ObjectId, str] | None = None
) -> VersionEntry | None:
    """The entry of a version row, in the form of this server or of other writers.

    `tables` maps ids to locations; it is needed for rows that do not name their table (old Lance releases) or spell
    the path of the manifest relative to something else than the catalog's root. None if the row cannot be attributed
    to a table, or its path does not lie in that table's location (N1).
    """
    split = split_version_id(path)
    values = _load_object(metadata)
    manifest = values.get("manifest_path")
    if split is None or not isinstance(manifest, str):
        return None
    chain, version = split
    identified = values.get("table_id")
    branch = _string(values.get("branch"))
    table_id = tuple(map(str, identified)) if isinstance(identified, list) else parse_id(chain)
    if chain != chain_object_id(table_id, branch):
        return None
    directory, _, name = manifest.rpartition("/_versions/")
    named = parse_manifest_name(name)
    if named is None or named[0] != version:
        return None
    suffix = "" if branch is None else f"/tree/{branch}"
    if not directory.endswith(suffix) or (branch is not None and not _is_branch(branch)):
        return None
    location = directory.removesuffix(suffix)
    if tables is not None:
        expected = tables.get(table_id)
        if expected is None or not (location == expected or location.endswith("/" + expected)):
            return None
        location = expected
    client, staged_suffix = values.get("metadata"), _string(values.get("staged_suffix"))
    return VersionEntry(
        table_id,
        branch,
        version,
        location,
        _integer(values.get("manifest_size")),
        _string(values.get("sha256")) or "",
        _string(values.get("transaction_id")) or "",
        _integer(values.get("timestamp_millis")),
        _string(values.get("e_tag")),
        named[1].value,
        _string(values.get("staged_path")) if staged_suffix is None else f"{manifest}-{staged_suffix}",
        _properties(client),
    )


def _encode_version(entry: VersionEntry) -> str:
    values: dict[str, Any] = {"manifest_path": entry.canonical_path, "manifest_size": entry.size}
    if entry.e_tag is not None:
        values["e_tag"] = entry.e_tag
    values["naming_scheme"] = entry.naming_scheme
    if entry.metadata:
        values["metadata"] = dict(entry.metadata)
    # Stock clients stage beside the canonical name; the whole path would make a row a third longer.
    suffix = "" if entry.staged_path is None else entry.staged_path.removeprefix(f"{values['manifest_path']}-")
    if suffix and suffix != entry.staged_path:
        values["staged_suffix"] = suffix
    elif entry.staged_path is not None:
        values["staged_path"] = entry.staged_path
    values["transaction_id"] = entry.transaction_uuid
    values["timestamp_millis"] = entry.timestamp_ms
    values["sha256"] = entry.sha256
    values["table_id"] = entry.table_id
    if entry.branch is not None:
        values["branch"] = entry.branch
    return orjson.dumps(values).decode()


def _encode_record(entry: RecordEntry) -> str:
    values: dict[str, Any] = {"state": entry.state, "timestamp_millis": entry.timestamp_ms, "attempt": entry.attempt}
    if entry.request_hash:
        values["request_hash"] = entry.request_hash
    if entry.idempotency_key is not None:
        values["idempotency_key"] = entry.idempotency_key
    if entry.principal is not None:
        values["principal"] = entry.principal
    if entry.message is not None:
        values["message"] = entry.message
    values["participants"] = [
        [party.table_id, party.branch, party.version, party.location, party.staged_path] for party in entry.participants
    ]
    if entry.results:
        values["results"] = orjson.Fragment(entry.results)
    if entry.operation:
        values["operation"] = entry.operation
    if entry.catalog_version:
        values["catalog_version"] = entry.catalog_version
    if entry.properties:
        values["properties"] = dict(entry.properties)
    return orjson.dumps(values).decode()


def _decode_record(batch_uuid: str, metadata: str | None) -> RecordEntry | None:
    values = _load_object(metadata)
    state = values.get("state")
    if state not in RECORD_STATES:
        return None
    try:
        participants = tuple(
            Participant(tuple(table_id), branch, version, location, staged)
            for table_id, branch, version, location, staged in values.get("participants", ())
        )
    except (TypeError, ValueError):
        return None
    results = values.get("results")
    return RecordEntry(
        batch_uuid,
        state,
        _string(values.get("request_hash")) or "",
        _string(values.get("idempotency_key")),
        _string(values.get("principal")),
        _string(values.get("message")),
        _integer(values.get("timestamp_millis")),
        _string(values.get("attempt")) or "",
        participants,
        b"" if results is None else json_bytes(results),
        sys.intern(_string(values.get("operation")) or ""),
        _integer(values.get("catalog_version")),
        _properties(values.get("properties")),
    )


def _encode_collector(entry: CollectorEntry) -> str:
    values: dict[str, Any] = {
        "state": _COLLECTOR,
        "horizon": entry.horizon,
        "oldest": entry.oldest,
        "run": entry.run,
        "timestamp_millis": entry.timestamp_ms,
        "grace": entry.grace,
    }
    if entry.settings:
        values["settings"] = dict(entry.settings)
    return orjson.dumps(values).decode()


def _decode_collector(metadata: str | None) -> CollectorEntry | None:
    values = _load_object(metadata)
    if values.get("state") != _COLLECTOR:
        return None
    return CollectorEntry(
        _integer(values.get("horizon")),
        max(_integer(values.get("oldest")), FIRST_VERSION),
        _string(values.get("run")) or "",
        _integer(values.get("timestamp_millis")),
        dict(_properties(values.get("settings"))),
        _integer(values.get("grace")),
    )


def _encode_pin(entry: PinEntry) -> str:
    values: dict[str, Any] = {"state": _PIN, "version": entry.version, "timestamp_millis": entry.timestamp_ms}
    return orjson.dumps(values | _encode_lease(entry)).decode()


def _decode_pin(name: str, metadata: str | None) -> PinEntry | None:
    values = _load_object(metadata)
    if values.get("state") != _PIN:
        return None
    return PinEntry(name, _integer(values.get("version")), *_decode_lease(values))


def _encode_intent(entry: IntentEntry) -> str:
    values: dict[str, Any] = {"state": _INTENT, "timestamp_millis": entry.timestamp_ms}
    values["chains"] = [list(chain) for chain in entry.chains]
    return orjson.dumps(values | _encode_lease(entry)).decode()


def _decode_intent(intent: str, metadata: str | None) -> IntentEntry | None:
    values = _load_object(metadata)
    if values.get("state") != _INTENT:
        return None
    try:
        chains = tuple(
            IntendedChain(str(location), _string(branch), int(since), int(version))
            for location, branch, since, version in values.get("chains", ())
        )
    except (TypeError, ValueError):
        return None
    return IntentEntry(intent, chains, *_decode_lease(values))


def _encode_cursor(entry: CursorEntry) -> str:
    values: dict[str, Any] = {"state": _CURSOR, "version": entry.version, "timestamp_millis": entry.timestamp_ms}
    return orjson.dumps(values | ({} if entry.principal is None else {"principal": entry.principal})).decode()


def _decode_cursor(name: str, metadata: str | None) -> CursorEntry | None:
    values = _load_object(metadata)
    if values.get("state") != _CURSOR:
        return None
    version, principal = _integer(values.get("version")), _string(values.get("principal"))
    return CursorEntry(name, version, principal, _integer(values.get("timestamp_millis")))


def _encode_lease(entry: Lease) -> dict[str, Any]:
    given = {"until_millis": entry.until_ms or None, "reason": entry.reason, "principal": entry.principal}
    given |= {"seconds": entry.seconds or None, "set_in": entry.set_in or None}
    return {name: value for name, value in given.items() if value is not None}


def _decode_lease(values: dict[str, Any]) -> tuple[int, str | None, str | None, int, int, int]:
    """The fields that pins and intents share, in their order."""
    return (
        _integer(values.get("until_millis")),
        _string(values.get("reason")),
        _string(values.get("principal")),
        _integer(values.get("timestamp_millis")),
        _integer(values.get("seconds")),
        _integer(values.get("set_in")),
    )


def _properties(values: object) -> Mapping[str, str]:
    return {key: str(value) for key, value in values.items()} if isinstance(values, dict) and values else NO_PROPERTIES


def _is_branch(branch: str) -> bool:
    return branch != MAIN_BRANCH and not {"", ".", ".."}.intersection(branch.split("/"))


def _load_object(metadata: str | None) -> dict[str, Any]:
    if not metadata:
        return {}
    try:
        values = orjson.loads(metadata)
    except orjson.JSONDecodeError:
        return {}
    return values if isinstance(values, dict) else {}


def _string(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _integer(value: object) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value)
    return value if isinstance(value, int) else 0
