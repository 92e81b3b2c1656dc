"""What the catalog holds, as values, and how each becomes a row of `__manifest`.

A row has an object id, a type, a location and metadata (JSON); `base_objects` is always null. On disk the components
of an id are joined by '$', whatever the delimiter on the wire:

    namespace, table     a$b
    table version        a$b$t$5, on branch `dev/x`: a$b$t$dev%2Fx$5
    batch record         $transactions$<batch uuid>

Reading tolerates what others wrote: a row that means nothing here decodes to None and stays as it is on disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import quote, unquote

import orjson

from lance_core.format.manifest import Identity
from lance_core.format.naming import MAIN_BRANCH, NamingScheme, branch_base, manifest_path, parse_manifest_name

TableId = tuple[str, ...]
Place = tuple[str, str | None, int]
"""Location, branch and version. A branch that a client deletes and makes again uses its places a second time, so a
place alone does not name a manifest: what is remembered of one is compared by hash or staged path."""
RecordState = Literal["open", "closed", "collected", "foreign", "dropped", "deregistered"]

NAMESPACE: Final = "namespace"
TABLE: Final = "table"
TABLE_VERSION: Final = "table_version"
TRANSACTION: Final = "transaction"

DELIMITER: Final = "$"
RECORD_PREFIX: Final = "$transactions$"
DROPPED: Final = "dropped"
DEREGISTERED: Final = "deregistered"
TOMBSTONES: Final[frozenset[str]] = frozenset({DROPPED, DEREGISTERED})
"""States of the records that name the locations of removed tables (N1, G15)."""
_STATES: Final[frozenset[str]] = frozenset({"open", "closed", "collected", "foreign"}) | TOMBSTONES
HASH_DIGITS: Final = 8
NO_PROPERTIES: Final[Mapping[str, str]] = MappingProxyType({})


def _no_properties() -> Mapping[str, str]:
    return NO_PROPERTIES


class Row(NamedTuple):
    """The values of one row as they are on disk."""

    object_id: str
    object_type: str
    location: str | None
    metadata: str | None


@dataclass(frozen=True, slots=True)
class NamespaceEntry:
    """A namespace. The root has no entry."""

    id: TableId
    properties: Mapping[str, str] = field(default_factory=_no_properties, hash=False)

    @property
    def object_id(self) -> str:
        """The key of the row."""
        return DELIMITER.join(self.id)


@dataclass(frozen=True, slots=True)
class TableEntry:
    """A table, declared or created. `location` is the key of its directory, relative to the catalog's root (N1)."""

    id: TableId
    location: str
    properties: Mapping[str, str] = field(default_factory=_no_properties, hash=False)

    @property
    def object_id(self) -> str:
        """The key of the row."""
        return DELIMITER.join(self.id)


@dataclass(frozen=True, slots=True)
class VersionEntry:
    """A committed version of a (table, branch).

    `location` is the table's, also on a branch (None is main). `size` is in bytes; with `sha256` (hexadecimal) and
    `transaction_uuid` it is the manifest's identity (P2). `e_tag` is the store's as clients spell it.

    `staged_path` is what the client sent, character for character (N5). A snapshot that was loaded from disk keeps
    only a digest of an unusual one: `staged_path` is then None and `staged_digest` is set.
    """

    table_id: TableId
    branch: str | None
    version: int
    location: str
    size: int
    sha256: str
    transaction_uuid: str
    timestamp_ms: int
    e_tag: str | None = None
    naming_scheme: str = "V2"
    staged_path: str | None = None
    metadata: Mapping[str, str] = field(default_factory=_no_properties, hash=False)
    staged_digest: bytes | None = field(default=None, compare=False)

    @property
    def object_id(self) -> str:
        """The key of the row."""
        return version_object_id(self.table_id, self.branch, self.version)

    @property
    def identity(self) -> Identity:
        """What the manifest must be to be this version."""
        return Identity(self.transaction_uuid, self.size, self.sha256)

    @property
    def base(self) -> str:
        """The key of the chain's root: the table's location, or its `tree/<branch>`."""
        return branch_base(self.location, self.branch)

    @property
    def canonical_path(self) -> str:
        """The key under which Lance looks for this version."""
        return _canonical_path(self.location, self.branch, self.version, self.naming_scheme)

    def matches_staged_path(self, path: str) -> bool:
        """Whether this version was staged under exactly this path."""
        if self.staged_path is not None:
            return self.staged_path == path
        return self.staged_digest is not None and self.staged_digest == digest_path(path)


class Participant(NamedTuple):
    """A version that a batch published; its promotion is what an open record waits for.

    In a tombstone it is a table that was removed: its head version, or 0, and no staged path.
    """

    table_id: TableId
    branch: str | None
    version: int
    location: str
    staged_path: str | None


@dataclass(frozen=True, slots=True)
class RecordEntry:
    """The record of a batch: audit, idempotency (A1) and recovery (M7).

    `results` is compact JSON as orjson writes it, or empty. A `collected` record is a collector's claim (G1), a
    `foreign` one reports a file that was set aside (M6). A `dropped` or `deregistered` record is a tombstone: its
    participants are tables that were removed, and their locations are not used again (G15).
    """

    batch_uuid: str
    state: RecordState
    request_hash: str = ""
    idempotency_key: str | None = None
    principal: str | None = None
    message: str | None = None
    timestamp_ms: int = 0
    attempt: str = ""
    participants: tuple[Participant, ...] = ()
    results: bytes = b""

    @property
    def object_id(self) -> str:
        """The key of the row."""
        return RECORD_PREFIX + self.batch_uuid


@lru_cache(maxsize=2048)  # each step of a commit asks for it
def _canonical_path(location: str, branch: str | None, version: int, scheme: str) -> str:
    return manifest_path(branch_base(location, branch), version, NamingScheme(scheme))


def place_of(item: VersionEntry | Participant) -> Place:
    """Where the manifest of a row, or of a record's participant, belongs."""
    return (item.location, item.branch, item.version)


Entry = NamespaceEntry | TableEntry | VersionEntry | RecordEntry


@dataclass(frozen=True, slots=True)
class Changes:
    """Row changes of one flip, by object id. A put replaces the row of that id; a removal of no row is no error."""

    puts: Mapping[str, Entry] = field(default_factory=dict)
    removes: frozenset[str] = frozenset()

    def then(self, *others: Changes) -> Changes:
        """These changes, followed by `others` in order."""
        puts, removes = dict(self.puts), set(self.removes)
        for other in others:
            for key in other.removes:
                puts.pop(key, None)
            removes |= other.removes
            puts.update(other.puts)
            if removes:
                removes.difference_update(other.puts)
        return Changes(puts, frozenset(removes))

    def __bool__(self) -> bool:
        return bool(self.puts or self.removes)


def changes_of(puts: Iterable[Entry] = (), removes: Iterable[str] = ()) -> Changes:
    """Changes that put these entries, and remove these object ids unless they are put as well."""
    by_id = {entry.object_id: entry for entry in puts}
    return Changes(by_id, frozenset(removes).difference(by_id))


def parse_id(path: str) -> TableId:
    """The components of a namespace's or table's object id."""
    return tuple(path.split(DELIMITER))


def names_its_table(location: str, table_id: TableId) -> bool:
    """Whether a location is eight characters, '_' and the object id of its table: the form of new locations (N1).

    Ids that are long or not plain ASCII are spelt differently in the locations of their tables.
    """
    return location[HASH_DIGITS:] == "_" + DELIMITER.join(table_id)


def escape_branch(branch: str) -> str:
    """A branch name as one component of an object id; reversible by percent-decoding."""
    return quote(branch, safe="")


def unescape_branch(component: str) -> str:
    """Inverse of `escape_branch`."""
    return unquote(component)


def version_object_id(table_id: TableId, branch: str | None, version: int) -> str:
    """The object id of a table version."""
    return f"{chain_object_id(table_id, branch)}${version}"


def chain_object_id(table_id: TableId, branch: str | None) -> str:
    """What the object ids of a chain's versions begin with, before the last '$'."""
    table = DELIMITER.join(table_id)
    return table if branch is None else f"{table}${escape_branch(branch)}"


def record_object_id(batch_uuid: str) -> str:
    """The object id of a batch record."""
    return RECORD_PREFIX + batch_uuid


def digest_path(path: str) -> bytes:
    """The 16 bytes that stand for a staged path in a loaded snapshot."""
    return blake2b(path.encode(), digest_size=16).digest()


def encode_entry(entry: Entry) -> Row:
    """The row of an entry."""
    if isinstance(entry, VersionEntry):
        return Row(entry.object_id, TABLE_VERSION, None, _encode_version(entry))
    if isinstance(entry, RecordEntry):
        return Row(RECORD_PREFIX + entry.batch_uuid, TRANSACTION, None, _encode_record(entry))
    metadata = orjson.dumps(dict(entry.properties)).decode() if entry.properties else None
    if isinstance(entry, TableEntry):
        return Row(DELIMITER.join(entry.id), TABLE, entry.location, metadata)
    return Row(DELIMITER.join(entry.id), NAMESPACE, None, metadata)


def decode_row(row: Row) -> Entry | None:
    """The entry of a row, or None for a row that means nothing here.

    A version row decodes if its metadata says where its manifest lies in the form that we write; for other writers'
    rows see `decode_version`.
    """
    path, kind, location, metadata = row
    if kind == TABLE:
        return None if location is None else TableEntry(parse_id(path), location, decode_properties(metadata))
    if kind == NAMESPACE:
        return NamespaceEntry(parse_id(path), decode_properties(metadata))
    if kind == TABLE_VERSION:
        return decode_version(path, metadata)
    if kind == TRANSACTION and path.startswith(RECORD_PREFIX):
        return _decode_record(path[len(RECORD_PREFIX) :], metadata)
    return None


def decode_properties(metadata: str | None) -> Mapping[str, str]:
    """Properties from a row's metadata; empty when it is none or no JSON object. Values become strings."""
    values = _load_object(metadata)
    if not values:
        return NO_PROPERTIES
    return {key: value if isinstance(value, str) else orjson.dumps(value).decode() for key, value in values.items()}


def split_version_id(path: str) -> tuple[str, int] | None:
    """The object id of the chain (`a$t` or `a$t$dev`) and the number, zero-padded or not. None for other ids."""
    chain, separator, digits = path.rpartition(DELIMITER)
    version = parse_version(digits) if separator else None
    return None if version is None else (chain, version)


def parse_version(digits: str) -> int | None:
    """The number of a version, zero-padded or not. None for what is none."""
    if not digits.isascii() or not digits.isdigit() or len(digits) > 20:
        return None
    version = int(digits)
    return version if 0 < version < 1 << 63 else None


def decode_version(path: str, metadata: str | None, tables: Mapping[TableId, str] | None = None) -> VersionEntry | None:
    """A version row as we or others wrote it.

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
        {key: str(value) for key, value in client.items()} if isinstance(client, dict) and client else NO_PROPERTIES,
    )


def _encode_version(entry: VersionEntry) -> str:
    values: dict[str, Any] = {"manifest_path": entry.canonical_path, "manifest_size": entry.size}
    if entry.e_tag is not None:
        values["e_tag"] = entry.e_tag
    values["naming_scheme"] = entry.naming_scheme
    if entry.metadata:
        values["metadata"] = dict(entry.metadata)
    # What stock clients do, and what would make a row a third longer if it were spelled out.
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
    return orjson.dumps(values).decode()


def _decode_record(batch_uuid: str, metadata: str | None) -> RecordEntry | None:
    values = _load_object(metadata)
    state = values.get("state")
    if state not in _STATES:
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
        b"" if results is None else orjson.dumps(results),
    )


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
