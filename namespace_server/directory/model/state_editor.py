"""Row changes on a catalog's state: values in, a new state out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from immutables import Map

from namespace_server.access.grants import ACCESS_ID, AccessEntry, AccessRow, GrantEntry, MembershipEntry
from namespace_server.access.policy import AccessPolicy
from namespace_server.directory.model.collector_rows import OwnEntry
from namespace_server.directory.model.entries import (
    NO_PROPERTIES,
    TOMBSTONES,
    Changes,
    NamespaceEntry,
    Place,
    RecordEntry,
    TableEntry,
    VersionEntry,
    names_its_table,
    place_of,
)
from namespace_server.directory.model.object_ids import ObjectId, parse_id, version_object_id
from namespace_server.directory.model.persistent.version_columns import NOT_STORED
from namespace_server.directory.model.persistent.version_index import Chain
from namespace_server.directory.model.state import (
    NO_CHILDREN,
    CatalogState,
    Children,
    Stored,
    StoredRecord,
    StoredTable,
    VersionKey,
)
from namespace_server.directory.model.table_names import IndexedNames

NO_SERIALS: Final[Mapping[str, int]] = {}
_NOWHERE: Final = ("", None)


def apply_changes(state: CatalogState, changes: Changes, serials: Mapping[str, int] = NO_SERIALS) -> CatalogState:
    """The state after these changes. `serials` gives the addresses of the rows put, where they are on disk.

    A version row whose table does not exist or has another location becomes an unrecognised one (N1).
    """
    editor = _Editor(state, serials)
    editor.remove(changes.removes)
    editor.put(changes)
    return editor.finish()


class _Editor:
    """One edit. The maps are immutable; the editor holds the newest of each.

    Those that each batch changes are changed in place until `finish`.
    """

    def __init__(self, state: CatalogState, serials: Mapping[str, int]) -> None:
        self.before = state
        self.serials = serials
        self.namespaces = state.namespaces
        self.tables = state.tables
        self.locations = state.locations
        self.records = state.records.mutate()
        self.keys = state.keys
        self.requests = state.requests.mutate()
        self.used = state.used
        self.open_records = state.open_records.mutate()
        self.opened: dict[Place, tuple[str, str | None]] = {}
        self.closed: list[RecordEntry] = []
        self.unrecognised_rows = state.unrecognised_rows
        self.own = state.own
        self.access = state.access
        self.granted: list[AccessRow] = []
        self.revoked: list[AccessRow] = []
        self.touched: set[ObjectId] = set()

    def remove(self, object_ids: Iterable[str]) -> None:
        """Remove rows, versions before their tables: the remaining version rows of a table become unrecognised ones."""
        versions: defaultdict[tuple[ObjectId, str | None], set[int]] = defaultdict(set)
        tables: list[StoredTable] = []
        for object_id in object_ids:
            if self.unrecognised_rows and object_id in self.unrecognised_rows:
                self.unrecognised_rows = self.unrecognised_rows.delete(object_id)
            holder = self.before.resolve(object_id)
            if isinstance(holder, VersionKey):
                versions[holder[:2]].add(holder.version)
            elif isinstance(holder, StoredTable):
                tables.append(holder)
            elif isinstance(holder, StoredRecord):
                self._remove_record(holder.entry)
            elif holder is not None:
                self._remove_other(object_id, holder.entry)
        for (table_id, branch), numbers in versions.items():
            table = self.tables[table_id]
            chain = table.chain(branch)
            if chain is not None:
                self.tables = self.tables.set(table_id, table.with_chain(branch, chain.without(numbers)))
        for table in tables:
            self._remove_table(table.id)

    def _remove_other(self, object_id: str, entry: NamespaceEntry | OwnEntry | AccessRow) -> None:
        if isinstance(entry, NamespaceEntry):
            self._remove_namespace(entry.id)
        elif isinstance(entry, OwnEntry):
            self.own = self.own.delete(object_id)
        else:
            self.access = self.access.delete(object_id)
            self.revoked.append(entry)

    def put(self, changes: Changes) -> None:
        """Put rows, tables before their versions."""
        versions: defaultdict[tuple[ObjectId, str | None], list[tuple[VersionEntry, int]]] = defaultdict(list)
        records: list[RecordEntry] = []
        for object_id, entry in changes.puts.items():
            if self.unrecognised_rows and object_id in self.unrecognised_rows:
                self.unrecognised_rows = self.unrecognised_rows.delete(object_id)
            if isinstance(entry, VersionEntry):
                self._vacate(parse_id(object_id))
                versions[entry.table_id, entry.branch].append((entry, self._serial(object_id)))
            elif isinstance(entry, RecordEntry):
                records.append(entry)
            elif isinstance(entry, OwnEntry):
                self.own = self.own.set(object_id, Stored(entry, self._serial(object_id)))
            elif isinstance(entry, AccessRow):
                self.access = self.access.set(object_id, Stored(entry, self._serial(object_id)))
                self.granted.append(entry)
            else:
                self._vacate_version(object_id)
                if isinstance(entry, TableEntry):
                    self._put_table(object_id, entry)
                else:
                    self._put_namespace(object_id, entry)
        for (table_id, branch), entries in versions.items():
            self._put_versions(table_id, branch, entries)
        for record in records:
            self._put_record(record)

    def finish(self) -> CatalogState:
        """The new state, with the lists of children brought up to date."""
        children, detached = self.before.children, self.before.detached
        namespaces: defaultdict[ObjectId, set[str]] = defaultdict(set)
        for path in self.touched:
            if path:
                namespaces[path[:-1]].add(path[-1])
        for parent, names in namespaces.items():
            old: Children = children.get(parent, NO_CHILDREN)
            new = Children(
                old.namespaces.edit(add=[name for name in names if (*parent, name) in self.namespaces], remove=names),
                old.tables.edit(add=[name for name in names if (*parent, name) in self.tables], remove=names),
            )
            if new.namespaces is old.namespaces and new.tables is old.tables:
                continue
            is_parent = new.namespaces or new.tables
            children = children.set(parent, new) if is_parent else children.delete(parent)
        for path in {*namespaces, *self.touched}:
            if path and path in children and path not in self.namespaces:
                if path not in detached:
                    detached |= {path}
            elif path in detached:
                detached -= {path}
        return CatalogState(
            self.namespaces,
            self.tables,
            children,
            self.locations,
            self.records.finish(),
            self.keys,
            self.requests.finish(),
            self.used,
            self.open_records.finish(),
            self._open_places() if self.opened or self.closed else self.before.open_places,
            self.unrecognised_rows,
            self.own,
            detached,
            self.access,
            self._policy() if self.granted or self.revoked else self.before.policy,
            self._names(),
        )

    def _names(self) -> IndexedNames:
        before = self.before.tables
        changed = {path: path in self.tables for path in self.touched if path in self.tables or path in before}
        return self.before.names.edited(changed) if changed else self.before.names

    def _serial(self, object_id: str) -> int:
        return self.serials.get(object_id, NOT_STORED)

    def _keep_unrecognised(self, object_id: str, serial: int) -> None:
        self.unrecognised_rows = self.unrecognised_rows.set(
            object_id, (*self.unrecognised_rows.get(object_id, ()), serial)
        )

    def _vacate(self, path: ObjectId) -> None:
        """Remove the object that had an id before: an object id names one row."""
        if path in self.tables:
            self._remove_table(path)
        elif path in self.namespaces:
            self._remove_namespace(path)

    def _vacate_version(self, object_id: str) -> None:
        key = self.before.resolve_version(object_id)
        table = None if key is None else self.tables.get(key.table_id)
        chain = None if key is None or table is None else table.chain(key.branch)
        if key is not None and table is not None and chain is not None:
            left = chain.without({key.version})
            self.tables = self.tables.set(key.table_id, table.with_chain(key.branch, left))

    def _put_namespace(self, object_id: str, entry: NamespaceEntry) -> None:
        if entry.id in self.tables:
            self._remove_table(entry.id)
        if entry.id not in self.namespaces:
            self.touched.add(entry.id)
        self.namespaces = self.namespaces.set(entry.id, Stored(entry, self._serial(object_id)))

    def _remove_namespace(self, path: ObjectId) -> None:
        self.namespaces = self.namespaces.delete(path)
        self.touched.add(path)

    def _put_table(self, object_id: str, entry: TableEntry) -> None:
        if entry.id in self.namespaces:
            self._remove_namespace(entry.id)
        old = self.tables.get(entry.id)
        if old is not None and old.location != entry.location:
            self._remove_table(entry.id)
            old = None
        serial, properties = self._serial(object_id), entry.properties or NO_PROPERTIES
        if old is None:
            table = StoredTable(self._shared_id(entry.id), entry.location, properties, serial)
        else:
            table = StoredTable(old.id, entry.location, properties, serial, old.chains)
        self.tables = self.tables.set(table.id, table)
        if old is None:
            self.touched.add(entry.id)
            if not names_its_table(entry.location, entry.id):
                self.locations = self.locations.set(entry.location, entry.id)

    def _shared_id(self, path: ObjectId) -> ObjectId:
        """The same id with the strings of its namespace, of which there may be a million copies otherwise."""
        parent = self.namespaces.get(path[:-1])
        return path if parent is None else (*parent.entry.id, path[-1])

    def _remove_table(self, path: ObjectId) -> None:
        table = self.tables[path]
        for chain in table.chains:
            for version in chain.numbers():
                serial = chain.serial(version)
                if serial is not None:
                    self._keep_unrecognised(version_object_id(path, chain.branch, version), serial)
        self.tables = self.tables.delete(path)
        self.touched.add(path)
        if self.locations.get(table.location) == path:
            self.locations = self.locations.delete(table.location)

    def _put_versions(self, table_id: ObjectId, branch: str | None, rows: list[tuple[VersionEntry, int]]) -> None:
        table = self.tables.get(table_id)
        location = None if table is None else table.location
        visible = [row for row in rows if row[0].location == location]
        if len(visible) < len(rows):
            for entry, serial in rows:
                if entry.location != location:
                    self._keep_unrecognised(entry.object_id, serial)
        if table is None or not visible:
            return
        if len(visible) > 1:
            visible.sort(key=lambda row: row[0].version)
        entries, serials = tuple(entry for entry, _ in visible), tuple(serial for _, serial in visible)
        chain = table.chain(branch)
        chain = Chain(branch, (), entries, serials).packed() if chain is None else chain.with_entries(entries, serials)
        self.tables = self.tables.set(table_id, table.with_chain(branch, chain))

    def _put_record(self, record: RecordEntry) -> None:
        uid = record.batch_uuid
        old = self.records.get(uid)
        if old is not None:
            self._forget_record(old.entry)
        self.records[uid] = StoredRecord(record, self._serial(record.object_id))
        if record.key is not None:
            self.keys = self.keys.set(record.key, uid)
        if record.request_hash and (old is None or record.request_hash not in self.requests):
            self.requests[record.request_hash] = uid
        if record.state == "open":
            self.open_records[uid] = None
            self.opened.update({place_of(party): (uid, party.staged_path) for party in record.participants})
        elif record.state in TOMBSTONES:
            self.used = self.used.update({party.location: uid for party in record.participants})

    def _remove_record(self, record: RecordEntry) -> None:
        del self.records[record.batch_uuid]
        self._forget_record(record)

    def _forget_record(self, record: RecordEntry) -> None:
        """Take a record out of the maps that lead to it."""
        if record.key is not None and self.keys.get(record.key) == record.batch_uuid:
            self.keys = self.keys.delete(record.key)
        if record.request_hash and self.requests.get(record.request_hash) == record.batch_uuid:
            del self.requests[record.request_hash]
        if record.state in TOMBSTONES:
            with self.used.mutate() as used:
                for party in record.participants:
                    if used.get(party.location) == record.batch_uuid:
                        del used[party.location]
                self.used = used.finish()
        if record.batch_uuid in self.open_records:
            del self.open_records[record.batch_uuid]
            self.closed.append(record)

    def _policy(self) -> AccessPolicy | None:
        """The next policy: that of before with what was granted and revoked, or of all rows once they are in force."""
        before = self.before.policy
        if before is None or ACCESS_ID not in self.access:
            return policy_of(self.access)
        return before.edit(put=_grants(self.granted), remove=_grants(self.revoked))

    def _open_places(self) -> Map[Place, tuple[str, str | None]]:
        """The next `open_places`, in one step for all records that were opened and closed."""
        with self.before.open_places.mutate() as places:
            for record in self.closed:
                for place in map(place_of, record.participants):
                    if places.get(place, _NOWHERE)[0] == record.batch_uuid:
                        del places[place]
            places.update(self.opened)
            return places.finish()


def policy_of(access: Mapping[str, Stored[AccessRow]]) -> AccessPolicy | None:
    """The policy of all rows that grant; None unless they are in force."""
    return AccessPolicy.of(_grants(stored.entry for stored in access.values())) if ACCESS_ID in access else None


def _grants(entries: Iterable[AccessRow]) -> Iterator[GrantEntry | MembershipEntry]:
    return (entry for entry in entries if not isinstance(entry, AccessEntry))
