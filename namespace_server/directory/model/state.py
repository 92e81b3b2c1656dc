"""The maps that make up a catalog snapshot, and their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, Generic, NamedTuple, TypeVar

import pyarrow as pa
from immutables import Map

from namespace_server.access.grants import AccessRow
from namespace_server.access.policy import AccessPolicy
from namespace_server.directory.model.collector_rows import OwnEntry
from namespace_server.directory.model.entries import (
    HASH_DIGITS,
    NamespaceEntry,
    Place,
    RecordEntry,
    RecordKey,
    RecordState,
    TableEntry,
)
from namespace_server.directory.model.object_ids import (
    RECORD_PREFIX,
    ObjectId,
    parse_id,
    parse_version,
    unescape_branch,
)
from namespace_server.directory.model.persistent.layered_map import LayeredMap
from namespace_server.directory.model.persistent.sorted_names import SortedNames
from namespace_server.directory.model.persistent.version_columns import NOT_STORED
from namespace_server.directory.model.persistent.version_index import Chain
from namespace_server.directory.model.table_names import NO_TABLES, IndexedNames

LONG_RESULTS: Final = 4_096
"""Results of a batch of more bytes than this are compressed in memory."""
_CODEC: Final = "zstd"
E = TypeVar("E")


class Stored(NamedTuple, Generic[E]):
    """An entry, and the serial of its row."""

    entry: E
    serial: int


class StoredRecord:
    """A batch record and the serial of its row. Immutable.

    Long results, of batches of many operations, are kept compressed: they are needed again only if the batch is.
    """

    __slots__ = ("_compressed", "_entry", "serial")

    def __init__(self, entry: RecordEntry, serial: int) -> None:
        self._compressed: tuple[bytes, int] | None = None
        if len(entry.results) > LONG_RESULTS:
            compressed = pa.compress(entry.results, codec=_CODEC, asbytes=True)
            self._compressed = compressed, len(entry.results)
            entry = replace(entry, results=b"")
        self._entry = entry
        self.serial = serial

    @property
    def state(self) -> RecordState:
        """The state of the record."""
        return self._entry.state

    @property
    def entry(self) -> RecordEntry:
        """The record as a value."""
        if self._compressed is None:
            return self._entry
        compressed, size = self._compressed
        return replace(self._entry, results=pa.decompress(compressed, size, codec=_CODEC, asbytes=True))


class StoredTable:
    """A table, the serial of its row, and its chains: main first, then branches by name. Immutable.

    A catalog may hold a million of them: the entry is made when it is asked for.
    """

    __slots__ = ("chains", "id", "location", "properties", "serial")

    def __init__(
        self,
        table_id: ObjectId,
        location: str,
        properties: Mapping[str, str],
        serial: int,
        chains: tuple[Chain, ...] = (),
    ) -> None:
        self.id = table_id
        self.location = location
        self.properties = properties
        self.serial = serial
        self.chains = chains

    @property
    def entry(self) -> TableEntry:
        """The table as a value, without its versions."""
        return TableEntry(self.id, self.location, self.properties)

    def chain(self, branch: str | None) -> Chain | None:
        """The chain of a branch (None is main)."""
        for chain in self.chains:
            if chain.branch == branch:
                return chain
        return None

    def with_chain(self, branch: str | None, chain: Chain | None) -> StoredTable:
        """The table with this chain in the place of the branch's; None removes it."""
        chains = [other for other in self.chains if other.branch != branch]
        if chain is not None:
            chains.append(chain)
            if len(chains) > 1:
                chains.sort(key=lambda each: each.branch or "")
        return self.with_chains(tuple(chains))

    def with_chains(self, chains: tuple[Chain, ...]) -> StoredTable:
        """The table with these chains, which are in order."""
        return StoredTable(self.id, self.location, self.properties, self.serial, chains)


class Children(NamedTuple):
    """The names directly below a namespace."""

    namespaces: SortedNames = SortedNames()
    tables: SortedNames = SortedNames()


class CatalogState(NamedTuple):
    """The maps behind a snapshot."""

    namespaces: Map[ObjectId, Stored[NamespaceEntry]] = Map()
    tables: LayeredMap[ObjectId, StoredTable] = LayeredMap()
    children: Map[ObjectId, Children] = Map()
    locations: Map[str, ObjectId] = Map()
    """Tables by location, without those whose location has their id (see `names_its_table`)."""
    records: Map[str, StoredRecord] = Map()
    keys: Map[RecordKey, str] = Map()
    """Principal and idempotency key -> batch uuid."""
    requests: Map[str, str] = Map()
    """Request hash -> uuid of the latest batch that had it."""
    used: Map[str, str] = Map()
    """Location of a table that was removed -> uuid of its tombstone (G15)."""
    open_records: Map[str, None] = Map()
    open_places: Map[Place, tuple[str, str | None]] = Map()
    """Versions that open records published: batch uuid and staged path. Of two records for a place the later counts."""
    unrecognised_rows: Map[str, tuple[int, ...]] = Map()
    """Unrecognised or shadowed rows: object id -> serials. They stay on disk until the id is put."""
    own: Map[str, Stored[OwnEntry]] = Map()
    """Rows by which garbage collection decides, by their object ids."""
    detached: frozenset[ObjectId] = frozenset()
    """Parents that have children and are no namespace: other writers do not check for one."""
    access: Map[str, Stored[AccessRow]] = Map()
    """Rows that grant by their object ids, and the one that puts them in force."""
    policy: AccessPolicy | None = None
    """What the rows of `access` grant; None unless they are in force."""
    names: IndexedNames = NO_TABLES
    """The index of `tables` by parts of their names."""

    def table_at(self, location: str) -> ObjectId | None:
        """The id of the table that lives at a location."""
        found: ObjectId | None = self.locations.get(location)
        if found is None and location[HASH_DIGITS : HASH_DIGITS + 1] == "_":
            path = parse_id(location[HASH_DIGITS + 1 :])
            table = self.tables.get(path)
            found = path if table is not None and table.location == location else None
        return found

    def serials(self, object_id: str) -> tuple[int, ...]:
        """The serials of all rows on disk that have this object id: normally one or none."""
        unrecognised: tuple[int, ...] = self.unrecognised_rows.get(object_id, ())
        found = tuple(serial for serial in unrecognised if serial != NOT_STORED) if unrecognised else unrecognised
        holder = self.resolve(object_id)
        serial: int | None
        if holder is None:
            return found
        if isinstance(holder, VersionKey):
            chain = self.tables[holder.table_id].chain(holder.branch)
            serial = None if chain is None else chain.serial(holder.version)
        else:
            serial = holder.serial
        return found if serial is None or serial == NOT_STORED else (*found, serial)

    def resolve(
        self, object_id: str
    ) -> Stored[NamespaceEntry] | StoredTable | StoredRecord | Stored[OwnEntry] | Stored[AccessRow] | VersionKey | None:
        """The object that an id names. Of the readings of an id that ends in digits, the one that exists."""
        if object_id.startswith(RECORD_PREFIX):
            own: Stored[OwnEntry] | Stored[AccessRow] | None = self.own.get(object_id) or self.access.get(object_id)
            if own is not None:
                return own
            record: StoredRecord | None = self.records.get(object_id[len(RECORD_PREFIX) :])
            if record is not None:
                return record
        path = parse_id(object_id)
        found: StoredTable | Stored[NamespaceEntry] | None = self.tables.get(path) or self.namespaces.get(path)
        return self._version_at(path) if found is None else found

    def resolve_version(self, object_id: str) -> VersionKey | None:
        """The version that an object id names, if it exists."""
        return self._version_at(parse_id(object_id))

    def _version_at(self, path: ObjectId) -> VersionKey | None:
        version = parse_version(path[-1])
        chain = path[:-1]
        if version is None or not chain:
            return None
        if self._has_version(chain, None, version):
            return VersionKey(chain, None, version)
        if chain[:-1] in self.tables:
            branch = unescape_branch(chain[-1])
            if self._has_version(chain[:-1], branch, version):
                return VersionKey(chain[:-1], branch, version)
        return None

    def _has_version(self, table_id: ObjectId, branch: str | None, version: int) -> bool:
        table = self.tables.get(table_id)
        chain = None if table is None else table.chain(branch)
        return chain is not None and chain.serial(version) is not None


class VersionKey(NamedTuple):
    """Names one version of a chain."""

    table_id: ObjectId
    branch: str | None
    version: int


NO_CHILDREN: Final = Children()
