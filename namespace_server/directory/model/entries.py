"""The contents of the catalog as values: namespaces, tables, table versions, batch records, and changes of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from lance_core.format.manifest import Identity
from lance_core.format.naming import NamingScheme, branch_base, manifest_path
from namespace_server.access.grants import AccessRow
from namespace_server.directory.model.collector_rows import OwnEntry
from namespace_server.directory.model.object_ids import DELIMITER, RECORD_PREFIX, ObjectId, version_object_id

Place = tuple[str, str | None, int]
"""Location, branch and version. A branch that a client deletes and makes again uses its places a second time, so a
place alone does not identify a manifest: state that is kept by place is also compared by hash or staged path."""
RecordKey = tuple[str | None, str]
"""Principal and idempotency key: each principal has keys of its own (A1)."""
RecordState = Literal[
    "open", "closed", "expiring", "foreign", "dropped", "purging", "purged", "deregistered", "removing", "removed"
]

DROPPED: Final = "dropped"
PURGING: Final = "purging"
"""State of the tombstone of a dropped table that cannot come back, while its files are removed (G14)."""
PURGE: Final[Mapping[str, str]] = MappingProxyType({"purge": "true"})
"""Properties of the tombstone of a table that the next garbage collection purges."""
DATED: Final[Mapping[str, str]] = MappingProxyType({"dated": "store"})
"""Properties of a tombstone whose `timestamp_ms` is the store's date of the catalog version that wrote it (G30)."""
PURGED: Final = "purged"
"""State of the tombstone of a dropped table whose files are gone."""
DEREGISTERED: Final = "deregistered"
EXPIRING: Final = "expiring"
"""State of the record of table versions that a garbage collection removed, until references were read again (G17)."""
REMOVING: Final = "removing"
"""State of the record of a deleted branch until its files are gone (B2)."""
REMOVED: Final = "removed"
"""State of the record that has the hashes of a deleted branch's versions (`removed_hashes`)."""
TOMBSTONES: Final[frozenset[str]] = frozenset({DROPPED, PURGING, PURGED, DEREGISTERED, REMOVING})
"""States of the records that name the locations of removed tables and of deleted branches (N1, G15, B2)."""
RECORD_STATES: Final[frozenset[str]] = frozenset({"open", "closed", EXPIRING, "foreign", REMOVED}) | TOMBSTONES
HASH_DIGITS: Final = 8
"""Length of the random prefix of a table's location."""
NO_PROPERTIES: Final[Mapping[str, str]] = MappingProxyType({})


def _no_properties() -> Mapping[str, str]:
    return NO_PROPERTIES


@dataclass(frozen=True, slots=True)
class NamespaceEntry:
    """A namespace. The root has no entry."""

    id: ObjectId
    properties: Mapping[str, str] = field(default_factory=_no_properties, hash=False)

    @property
    def object_id(self) -> str:
        """The key of the row."""
        return DELIMITER.join(self.id)


@dataclass(frozen=True, slots=True)
class TableEntry:
    """A table, declared or created. `location` is the key of its directory, relative to the catalog's root (N1)."""

    id: ObjectId
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

    table_id: ObjectId
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
        """The identity that a manifest must have to be this version."""
        return Identity(self.transaction_uuid, self.size, self.sha256)

    @property
    def base(self) -> str:
        """The key of the chain's root: the table's location, or its `tree/<branch>`."""
        return branch_base(self.location, self.branch)

    @property
    def canonical_path(self) -> str:
        """The key under which Lance looks for this version."""
        return canonical_path(self.location, self.branch, self.version, self.naming_scheme)

    @property
    def was_adopted(self) -> bool:
        """Whether it had its canonical name before it had a row: another writer committed it (P5)."""
        return self.staged_path is None and self.staged_digest is None

    def matches_staged_path(self, path: str) -> bool:
        """Whether this version was staged under exactly this path."""
        if self.staged_path is not None:
            return self.staged_path == path
        return self.staged_digest is not None and self.staged_digest == digest_path(path)


class Participant(NamedTuple):
    """A version that a batch published; an open record waits for its promotion.

    In a tombstone it is a table that was removed: its head version, or 0, and no staged path. In the record of a
    deleted branch `location` is the root of the branch.
    """

    table_id: ObjectId
    branch: str | None
    version: int
    location: str
    staged_path: str | None


@dataclass(frozen=True, slots=True)
class RecordEntry:
    """The record of a batch: audit, idempotency (A1) and recovery (M7).

    `results` is compact JSON as orjson writes it, or empty. A `foreign` record reports a quarantined file (M6). A
    `dropped`, `purging`, `purged` or `deregistered` record is a tombstone: its participants are tables that were
    removed, and their locations are not used again (G15); of a `deregistered` one the results are the SHA-256 of the
    head of each participant, or null (P15). A `removing` record names a deleted branch whose files are
    not all removed yet (B2), a `removed` one the versions that it had, an `expiring` one versions of tables whose rows
    a garbage collection removed (G17).

    `operation` names what the batch did, `catalog_version` is the version that it made, in a tombstone and an
    `expiring` record the one before, or 0 in records of releases that did not write it. `properties` are what clients
    noted on the batch afterwards.
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
    operation: str = ""
    catalog_version: int = 0
    properties: Mapping[str, str] = field(default_factory=_no_properties, hash=False)

    @property
    def object_id(self) -> str:
        """The key of the row."""
        return RECORD_PREFIX + self.batch_uuid

    @property
    def is_batch(self) -> bool:
        """Whether it is the record of a batch that clients know by its uuid."""
        return self.state in {"open", "closed"}

    @property
    def key(self) -> RecordKey | None:
        """The key by which a repeated request finds this record; None for a batch without idempotency key."""
        return None if self.idempotency_key is None else (self.principal, self.idempotency_key)


@lru_cache(maxsize=2048)  # each step of a commit asks for it
def canonical_path(location: str, branch: str | None, version: int, scheme: str) -> str:
    """The key under which Lance looks for a version of a chain of the table at a location."""
    return manifest_path(branch_base(location, branch), version, NamingScheme(scheme))


def place_of(item: VersionEntry | Participant) -> Place:
    """The place of the manifest of a row, or of a record's participant."""
    return (item.location, item.branch, item.version)


Entry = NamespaceEntry | TableEntry | VersionEntry | RecordEntry | OwnEntry | AccessRow


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


def names_its_table(location: str, table_id: ObjectId) -> bool:
    """Whether a location is eight characters, '_' and the object id of its table: the form of new locations (N1).

    Ids that are long or not plain ASCII are spelt differently in the locations of their tables.
    """
    return location[HASH_DIGITS:] == "_" + DELIMITER.join(table_id)


def digest_path(path: str) -> bytes:
    """The 16 bytes that stand for a staged path in a loaded snapshot."""
    return blake2b(path.encode(), digest_size=16).digest()
