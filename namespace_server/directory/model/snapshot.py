"""The catalog at one version, as an immutable value that readers and planners share freely."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

import orjson

from namespace_server.access.grants import AccessRow
from namespace_server.access.policy import AccessPolicy
from namespace_server.directory.model.collector_rows import (
    COLLECTOR_ID,
    CURSOR_PREFIX,
    INTENT_PREFIX,
    NEVER_COLLECTED,
    PIN_PREFIX,
    CollectorEntry,
    CursorEntry,
    IntentEntry,
    OwnEntry,
    PinEntry,
)
from namespace_server.directory.model.entries import (
    REMOVED,
    Changes,
    Entry,
    NamespaceEntry,
    Place,
    RecordEntry,
    RecordState,
    TableEntry,
    VersionEntry,
)
from namespace_server.directory.model.object_ids import ObjectId, version_object_id
from namespace_server.directory.model.persistent.name_index import NameIndex
from namespace_server.directory.model.persistent.sorted_names import SortedNames
from namespace_server.directory.model.state import NO_CHILDREN, CatalogState, Children, StoredTable
from namespace_server.directory.model.state_editor import apply_changes

ROOT: Final = NamespaceEntry(())
Own = TypeVar("Own", bound=OwnEntry)


class Disk:
    """The physical side of a snapshot; opaque here, known to the package `manifest_table` alone."""

    __slots__ = ()


class CatalogSnapshot:
    """Everything in the catalog at one version. Immutable; every method is pure and takes microseconds.

    `version` is that of `__manifest`, 0 before there is one: its tables are those that clients made by path.
    `timestamp_ms` is the time of its commit. `managed` says that the catalog, not the directory, is the truth about
    table versions. `listed_at` is the time, by `elapsed_clock`, at which this snapshot, or an earlier one that it
    continues, was last proved to be the newest (F6).

    `apply` gives an overlay: the catalog as it would be after some changes, at the same version.
    """

    __slots__ = ("_state", "disk", "listed_at", "managed", "overlay", "timestamp_ms", "version")

    def __init__(
        self,
        version: int = 0,
        timestamp_ms: int = 0,
        managed: bool = False,
        listed_at: float = 0.0,
        state: CatalogState | None = None,
        disk: Disk | None = None,
        overlay: bool = False,
    ) -> None:
        self.version = version
        self.timestamp_ms = timestamp_ms
        self.managed = managed
        self.listed_at = listed_at
        self._state = CatalogState() if state is None else state
        self.disk = disk
        self.overlay = overlay

    def proved(self, listed_at: float) -> CatalogSnapshot:
        """The same version, proved once more to be the newest at that time."""
        return CatalogSnapshot(
            self.version, self.timestamp_ms, self.managed, listed_at, self._state, self.disk, self.overlay
        )

    @property
    def is_empty_root(self) -> bool:
        """Whether there is no catalog yet, and no table that clients made by path: the first change makes a catalog."""
        return not self.version and not self._state.tables

    @property
    def state(self) -> CatalogState:
        """The maps behind this snapshot, for the code that makes the next one."""
        return self._state

    def namespace(self, namespace_id: ObjectId) -> NamespaceEntry | None:
        """The namespace, or None. The root always exists."""
        if not namespace_id:
            return ROOT
        stored = self._state.namespaces.get(namespace_id)
        return None if stored is None else stored.entry

    def table(self, table_id: ObjectId) -> TableEntry | None:
        """The table, or None."""
        stored = self._stored(table_id)
        return None if stored is None else stored.entry

    def location(self, table_id: ObjectId) -> str | None:
        """Where a table lies, or None where there is none; takes less than making its entry."""
        stored = self._stored(table_id)
        return None if stored is None else stored.location

    def table_at(self, location: str) -> ObjectId | None:
        """The id of the table that lives at a location."""
        return self._state.table_at(location)

    def table_below(self, location: str) -> ObjectId | None:
        """The id of a table whose location lies inside `location`; looks at all that are not directly at the root."""
        prefix = f"{location}/"
        return next((found for key, found in self._state.locations.items() if key.startswith(prefix)), None)

    def directories_of_tables(self) -> frozenset[str]:
        """The directories below the root that hold locations of tables, also of removed ones, at any depth."""
        parts = (key.split("/") for key in (*self._state.locations, *self._state.used))
        return frozenset("/".join(each[:end]) for each in parts for end in range(1, len(each)))

    def child_namespaces(self, namespace_id: ObjectId) -> SortedNames:
        """Names of the namespaces directly below, sorted as UTF-8 bytes."""
        return self._children(namespace_id).namespaces

    def child_tables(self, namespace_id: ObjectId) -> SortedNames:
        """Names of the tables directly below, sorted as UTF-8 bytes."""
        return self._children(namespace_id).tables

    def all_tables(self, after: ObjectId | None = None) -> Iterator[ObjectId]:
        """Ids of all tables, component by component in the order of UTF-8 bytes; only those behind `after`, if given.

        Nothing is sorted for it: taking the first hundred costs a hundred steps.
        """
        walks = [self._walk(parent, after) for parent in ((), *sorted(self._state.detached))]
        return walks[0] if len(walks) == 1 else heapq.merge(*walks)

    def find_tables(self, words: Sequence[str], most: int) -> list[ObjectId]:
        """The tables whose ids have all words, at most `most`, the best first; see `NameIndex.search`.

        The first search of a catalog makes its index, unless `prepare_search` did: a microsecond or two for each table.
        """
        return self._index().search(words, most)

    def prepare_search(self, stopping: threading.Event) -> bool:
        """Make what the next search needs, beside other work; see `IndexedNames.prepare`."""
        return self._state.names.prepare(self._state.children, stopping)

    def head(self, table_id: ObjectId, branch: str | None = None) -> VersionEntry | None:
        """The newest version of a chain, or None when the table or the chain does not exist."""
        stored = self._stored(table_id)
        chain = None if stored is None else stored.chain(branch)
        return None if stored is None or chain is None else chain.head(table_id, stored.location)

    def top(self, table_id: ObjectId, branch: str | None = None) -> tuple[int, str] | None:
        """Version and naming scheme of the head, or None where there is none; takes less than making its entry."""
        stored = self._stored(table_id)
        chain = None if stored is None else stored.chain(branch)
        return None if chain is None else chain.top()

    def version_entry(self, table_id: ObjectId, branch: str | None, version: int) -> VersionEntry | None:
        """One version of a chain, or None."""
        stored = self._stored(table_id)
        chain = None if stored is None else stored.chain(branch)
        return None if stored is None or chain is None else chain.find(version, table_id, stored.location)

    def version_at(self, location: str, branch: str | None, version: int) -> VersionEntry | None:
        """One version of a chain of the table at a location, under whatever name that table has here; or None."""
        table_id = self.table_at(location)
        return None if table_id is None else self.version_entry(table_id, branch, version)

    def head_at(self, location: str, branch: str | None) -> VersionEntry | None:
        """The newest version of a chain of the table at a location, or None."""
        table_id = self.table_at(location)
        return None if table_id is None else self.head(table_id, branch)

    def top_at(self, location: str, branch: str | None) -> tuple[int, str] | None:
        """Version and naming scheme of the head of a chain of the table at a location, or None; see `top`."""
        table_id = self.table_at(location)
        return None if table_id is None else self.top(table_id, branch)

    def has_version(self, entry: VersionEntry) -> bool:
        """Whether this very row is in the snapshot, under whatever name its table has here."""
        found = self.version_at(entry.location, entry.branch, entry.version)
        return found is entry or (found is not None and found.identity == entry.identity)

    def versions(
        self, table_id: ObjectId, branch: str | None = None, *, descending: bool = False, start: int | None = None
    ) -> Iterator[VersionEntry]:
        """The versions of a chain in order, from version `start` on (inclusive, in the direction of travel)."""
        stored = self._stored(table_id)
        chain = None if stored is None else stored.chain(branch)
        if stored is None or chain is None:
            return iter(())
        return chain.entries(table_id, stored.location, descending=descending, start=start)

    def branches(self, table_id: ObjectId) -> tuple[str, ...]:
        """The branches that hold versions, by name. Main is not among them."""
        stored = self._stored(table_id)
        return () if stored is None else tuple(chain.branch for chain in stored.chains if chain.branch is not None)

    def chains(self, table_id: ObjectId) -> tuple[str | None, ...]:
        """Main, which is None, and the branches that hold versions."""
        return (None, *self.branches(table_id))

    def all_branches(self) -> Iterator[tuple[ObjectId, str]]:
        """All branches that hold versions, each with its table, in no particular order."""
        for table_id, table in self._state.tables.items():
            for chain in table.chains:
                if chain.branch is not None:
                    yield table_id, chain.branch

    def object_ids(self, table_id: ObjectId) -> Iterator[str]:
        """The object ids of a table and of all its versions on all branches: the rows that a drop removes (N3)."""
        stored = self._stored(table_id)
        if stored is None:
            return
        yield stored.entry.object_id
        for chain in stored.chains:
            for version in chain.numbers():
                yield version_object_id(table_id, chain.branch, version)

    def record(self, batch_uuid: str) -> RecordEntry | None:
        """The record of a batch, or a collector's claim under that uuid."""
        stored = self._state.records.get(batch_uuid)
        return None if stored is None else stored.entry

    def record_by_key(self, idempotency_key: str, principal: str | None = None) -> RecordEntry | None:
        """The record of the batch for which a principal used an idempotency key; keys of others are other keys (A1)."""
        batch_uuid = self._state.keys.get((principal, idempotency_key))
        return None if batch_uuid is None else self.record(batch_uuid)

    def record_by_request(self, request_hash: str) -> RecordEntry | None:
        """The record of the latest batch with this request hash (P1)."""
        batch_uuid = self._state.requests.get(request_hash)
        return None if batch_uuid is None else self.record(batch_uuid)

    def tombstone_at(self, location: str) -> RecordEntry | None:
        """The record of the removal of the table that a location belonged to; None if none is kept (G15)."""
        batch_uuid = self._state.used.get(location)
        return None if batch_uuid is None else self.record(batch_uuid)

    def removed_versions(self, base: str) -> frozenset[str]:
        """SHA-256 of the manifests that branches had which were deleted at this root; looks at all records."""
        return frozenset(
            digest
            for record in self.records(REMOVED)
            if any(party.location == base for party in record.participants)
            for digest in orjson.loads(record.results)
        )

    def records(self, state: RecordState | None = None) -> Iterator[RecordEntry]:
        """All records, or those of one state, in no particular order."""
        return (stored.entry for stored in self._state.records.values() if state is None or stored.state == state)

    def open_records(self) -> tuple[RecordEntry, ...]:
        """The records whose promotions are not all verified, oldest first."""
        records = self._state.records
        found = [records[batch_uuid].entry for batch_uuid in self._state.open_records]
        return tuple(sorted(found, key=lambda record: (record.timestamp_ms, record.batch_uuid)))

    def open_path(self, place: Place) -> str | None:
        """The path at which the record that last published a version here staged it; None once it is closed."""
        found = self._state.open_places.get(place)
        return None if found is None else found[1]

    @property
    def collector(self) -> CollectorEntry:
        """The decisions of the last run; for a catalog that was never collected, everything is kept."""
        return self._own(COLLECTOR_ID, CollectorEntry) or NEVER_COLLECTED

    @property
    def collected(self) -> bool:
        """Whether the catalog was collected: then servers of releases without garbage collection do not write (G25)."""
        return COLLECTOR_ID in self._state.own

    def pin(self, name: str) -> PinEntry | None:
        """The pin of that name, or None."""
        return self._own(PIN_PREFIX + name, PinEntry)

    def pins(self) -> list[PinEntry]:
        """All pins, by name."""
        return self._all_own(PinEntry)

    def is_pinned(self, version: int) -> bool:
        """Whether a pin keeps this catalog version."""
        return any(pin.version == version for pin in self.pins())

    def intent(self, intent: str) -> IntentEntry | None:
        """The intent of that uuid, or None."""
        return self._own(INTENT_PREFIX + intent, IntentEntry)

    def intents(self) -> list[IntentEntry]:
        """All intents, by uuid."""
        return self._all_own(IntentEntry)

    def cursor(self, name: str) -> CursorEntry | None:
        """The cursor of that name, or None."""
        return self._own(CURSOR_PREFIX + name, CursorEntry)

    def cursors(self) -> list[CursorEntry]:
        """All cursors, by name."""
        return self._all_own(CursorEntry)

    def _own(self, object_id: str, kind: type[Own]) -> Own | None:
        stored = self._state.own.get(object_id)
        return stored.entry if stored is not None and isinstance(stored.entry, kind) else None

    def _all_own(self, kind: type[Own]) -> list[Own]:
        found = [stored.entry for stored in self._state.own.values() if isinstance(stored.entry, kind)]
        return sorted(found, key=lambda entry: entry.object_id)

    @property
    def policy(self) -> AccessPolicy | None:
        """The grants in force; None if none are: everybody may do everything.

        It is the same object in two snapshots if no grant was changed between them.
        """
        return self._state.policy

    def access_rows(self) -> Iterator[AccessRow]:
        """All rows that grant, and the one that puts them in force, in no particular order."""
        return (stored.entry for stored in self._state.access.values())

    def facts(self, object_id: ObjectId) -> tuple[object, ...]:
        """All facts about one id: its namespace or table with its versions, the names directly below it, all grants.

        Each is the same object in two snapshots, or None in both, if nothing of it was changed between them.
        """
        state = self._state
        return (
            self.managed,
            state.policy,
            state.namespaces.get(object_id),
            state.tables.get(object_id),
            state.children.get(object_id),
        )

    def apply(self, changes: Changes) -> CatalogSnapshot:
        """The overlay after these changes, at the same version; the next batch of a group is planned on it.

        A version row of a table that does not exist, or that lies outside its location (N1), stays invisible.
        """
        state = apply_changes(self._state, changes)
        return CatalogSnapshot(
            self.version, self.timestamp_ms, self.managed, self.listed_at, state, self.disk, overlay=True
        )

    def entries(self) -> Iterator[Entry]:
        """All recognised rows, in no particular order."""
        state = self._state
        yield from (namespace.entry for namespace in state.namespaces.values())
        for table_id, table in state.tables.items():
            yield table.entry
            for chain in table.chains:
                yield from chain.entries(table_id, table.location, descending=False)
        yield from self.records()
        yield from (stored.entry for stored in state.own.values())
        yield from self.access_rows()

    def _stored(self, table_id: ObjectId) -> StoredTable | None:
        found: StoredTable | None = self._state.tables.get(table_id)
        return found

    def _index(self) -> NameIndex:
        return self._state.names.index(self._state.children)

    def _children(self, namespace_id: ObjectId) -> Children:
        children: Children = self._state.children.get(namespace_id, NO_CHILDREN)
        return children

    def _walk(self, parent: ObjectId, after: ObjectId | None) -> Iterator[ObjectId]:
        children = self._children(parent)
        depth = len(parent)
        if after is not None and after[:depth] != parent:
            if after[:depth] > parent:
                return
            after = None
        if after is not None and depth < len(after):
            tables, namespaces = children.tables.after(after[depth]), children.namespaces.starting_at(after[depth])
        else:
            tables, namespaces = iter(children.tables), iter(children.namespaces)
        for name, is_table in heapq.merge(((name, True) for name in tables), ((name, False) for name in namespaces)):
            if is_table:
                yield (*parent, name)
            else:
                yield from self._walk((*parent, name), after)
