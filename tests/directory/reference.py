"""The catalog as a plain dictionary: what a snapshot must answer, computed the slow way; and random changes to it."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterable
from dataclasses import replace

import orjson

from namespace_server.access.grants import ACCESS_ID, AccessEntry, GrantEntry, MembershipEntry
from namespace_server.access.policy import AccessPolicy
from namespace_server.access.subjects import Grantee, Privilege, Subject
from namespace_server.directory.model.collector_rows import (
    COLLECTOR_ID,
    NEVER_COLLECTED,
    CollectorEntry,
    CursorEntry,
    PinEntry,
)
from namespace_server.directory.model.entries import (
    DEREGISTERED,
    DROPPED,
    TOMBSTONES,
    Changes,
    Entry,
    NamespaceEntry,
    Participant,
    RecordEntry,
    TableEntry,
    VersionEntry,
    place_of,
)
from namespace_server.directory.model.object_ids import ObjectId
from namespace_server.directory.model.snapshot import CatalogSnapshot

BRANCHES = (None, None, None, "dev", "a/b", "5")
NAMES = ("a", "b", "é", "z z", "Z", "7", "名")


class ReferenceCatalog:
    """Entries by object id, and a seeded source of changes that a catalog would make."""

    def __init__(self, seed: int = 0) -> None:
        self.random = random.Random(seed)
        self.rows: dict[str, Entry] = {}
        self.locations = 0

    def apply(self, changes: Changes) -> None:
        for object_id in changes.removes:
            self.rows.pop(object_id, None)
        self.rows.update(changes.puts)

    def of(self, kind: type[Entry]) -> list[Entry]:
        return [entry for entry in self.rows.values() if isinstance(entry, kind)]

    def versions(self, table_id: ObjectId, branch: str | None) -> list[VersionEntry]:
        found = [entry for entry in self.rows.values() if isinstance(entry, VersionEntry)]
        mine = [entry for entry in found if (entry.table_id, entry.branch) == (table_id, branch)]
        return sorted(mine, key=lambda entry: entry.version)

    def uuid(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def version(self, table: TableEntry, branch: str | None, number: int) -> VersionEntry:
        entry = VersionEntry(
            table.id,
            branch,
            number,
            table.location,
            self.random.randrange(1, 9_000),
            self.random.randbytes(32).hex(),
            self.uuid(),
            self.random.randrange(1, 1 << 42),
            self.random.choice([None, f'"{self.random.getrandbits(40):x}"', ""]),
            self.random.choice(["V2", "V2", "V1"]),
            None,
            {"k": "v"} if self.random.random() < 0.05 else {},
        )
        staged = (
            None,
            f"{entry.canonical_path}-{self.uuid()}",
            f"_staging/{self.uuid()}/{number}",
            f"{entry.canonical_path}-x",
        )
        return VersionEntry(**{**fields_of(entry), "staged_path": self.random.choice(staged)})

    def record(self, versions: Iterable[VersionEntry] = ()) -> RecordEntry:
        parties = tuple(
            Participant(each.table_id, each.branch, each.version, each.location, each.staged_path) for each in versions
        )
        return RecordEntry(
            self.uuid(),
            "open" if parties else "closed",
            self.uuid(),
            self.random.choice([None, self.uuid()]),
            "principal",
            self.random.choice([None, "why"]),
            self.random.randrange(1, 1 << 42),
            self.uuid(),
            parties,
            orjson.dumps([{"version": each.version} for each in versions]),
            self.random.choice(["", "create_table_version"]),
            self.random.randrange(1 << 20),
            self.random.choice([{}, {"k": "v"}]),
        )

    def tombstone(self, table: TableEntry) -> RecordEntry:
        state = self.random.choice([DROPPED, DEREGISTERED])
        return replace(self.record(), state=state, participants=(Participant(table.id, None, 3, table.location, None),))

    def move_horizon(self) -> CollectorEntry:
        before = self.rows.get(COLLECTOR_ID, NEVER_COLLECTED)
        assert isinstance(before, CollectorEntry)
        return CollectorEntry(before.horizon + self.random.randrange(99), before.oldest, self.uuid(), 7)

    def access(self) -> list[Entry]:
        """Grants, mostly none; in force from some change on."""
        choice, to = self.random.random(), Grantee("principal", self.random.choice(NAMES))
        if choice < 0.03:
            return [AccessEntry("principal", 7)]
        if choice < 0.1:
            return [MembershipEntry(self.random.choice(NAMES), to, "principal", 7)]
        objects = [entry for entry in self.rows.values() if isinstance(entry, TableEntry | NamespaceEntry)]
        if choice > 0.2 or not objects:
            return []
        on = self.random.choice(objects)
        kind = "table" if isinstance(on, TableEntry) else "namespace"
        return [GrantEntry(kind, on.id, to, frozenset({self.random.choice(list(Privilege))}), 3, None, 7)]

    def step(self, size: int = 3) -> Changes:
        """Changes as a batch would make them: some operations, and a record."""
        before = dict(self.rows)
        changes = Changes()
        made: list[VersionEntry] = []
        for _ in range(self.random.randrange(size + 1)):
            part = self.operation(made)
            changes = changes.then(part)
            self.apply(part)
        puts: list[Entry] = [self.record([entry for entry in made if entry.object_id in self.rows])]
        puts += [
            RecordEntry(**{**fields_of(entry), "state": "closed"})
            for entry in self.of(RecordEntry)
            if entry.state == "open" and self.random.random() < 0.6
        ]
        if self.random.random() < 0.1:
            puts.append(self.move_horizon())
        if self.random.random() < 0.1:
            puts.append(PinEntry(f"p{self.random.randrange(3)}", self.random.randrange(1, 9), 0, None, "principal", 7))
        if self.random.random() < 0.1:
            puts.append(CursorEntry(f"c{self.random.randrange(3)}", self.random.randrange(1, 9), "principal", 7))
        puts += self.access()
        closed = [entry.object_id for entry in self.of(RecordEntry) if entry.state != "open"]
        pins = [
            entry.object_id for kind in (PinEntry, CursorEntry, GrantEntry, MembershipEntry) for entry in self.of(kind)
        ]
        expired = frozenset(self.random.sample(closed, len(closed) // 2) if len(closed) > 20 else [])
        if pins and self.random.random() < 0.3:
            expired |= {self.random.choice(pins)}
        part = Changes({entry.object_id: entry for entry in puts}, expired)
        changes = changes.then(part)
        self.rows = before
        self.apply(changes)
        return changes

    def operation(self, made: list[VersionEntry]) -> Changes:
        tables = [entry for entry in self.of(TableEntry) if isinstance(entry, TableEntry)]
        spaces: list[ObjectId] = [(), *(entry.id for entry in self.of(NamespaceEntry))]
        choice = self.random.random()
        if choice < 0.12 or not tables:
            parent = self.random.choice([path for path in spaces if len(path) < 3])
            path = (*parent, self.random.choice(NAMES))
            if NamespaceEntry(path).object_id in self.rows:
                return Changes()
            if choice < 0.05:
                return put([NamespaceEntry(path, {"owner": self.uuid()})])
            self.locations += 1
            return put(
                [TableEntry(path, f"{self.locations:08x}_{'$'.join(path)}", {"p": "q"} if choice < 0.07 else {})]
            )
        table = self.random.choice(tables)
        branch = self.random.choice(BRANCHES)
        rows = [row for row in self.of(VersionEntry) if isinstance(row, VersionEntry) and row.table_id == table.id]
        chain = self.versions(table.id, branch)
        if choice < 0.75:
            first = chain[-1].version + 1 if chain else self.random.choice([1, 1, 4])
            count = 1 if choice < 0.7 else 40
            new = [self.version(table, branch, first + at) for at in range(count)]
            made += new
            return put(new)
        if choice < 0.85:
            doomed = [row for row in chain[:-1] if self.random.random() < 0.4]
            return Changes({}, frozenset(row.object_id for row in doomed))
        if choice < 0.88:
            return put([self.version(table, branch, row.version) for row in chain if self.random.random() < 0.1])
        if choice < 0.94:
            path = (*table.id[:-1], self.random.choice(NAMES))
            moved = TableEntry(path, table.location, table.properties)
            if moved.object_id in self.rows:
                return put([TableEntry(table.id, table.location, {"n": self.uuid()})])
            gone = Changes({}, frozenset([table.object_id, *(row.object_id for row in rows)]))
            return gone.then(put([moved, *(VersionEntry(**{**fields_of(row), "table_id": path}) for row in rows)]))
        if choice < 0.97:
            gone = Changes({}, frozenset([table.object_id, *(row.object_id for row in rows)]))
            return gone.then(put([self.tombstone(table)]))
        empty = [path for path in spaces if path and not any(_below(path, entry) for entry in self.rows.values())]
        return Changes({}, frozenset(["$".join(self.random.choice(empty))] if empty else []))


def put(entries: Iterable[Entry]) -> Changes:
    return Changes({entry.object_id: entry for entry in entries})


def fields_of(entry: Entry) -> dict[str, object]:
    return {name: getattr(entry, name) for name in entry.__dataclass_fields__}


def _below(path: ObjectId, entry: Entry) -> bool:
    if not isinstance(entry, NamespaceEntry | TableEntry | VersionEntry):
        return False
    other = entry.table_id if isinstance(entry, VersionEntry) else entry.id
    return len(other) > len(path) and other[: len(path)] == path


def same(found: VersionEntry | None, expected: VersionEntry | None) -> bool:
    """Equal, where a snapshot that was loaded may keep a digest in the place of an unusual staged path."""
    if found is None or expected is None:
        return found is expected
    staged = expected.staged_path
    if (staged is not None) and not found.matches_staged_path(staged):
        return False
    return {**fields_of(found), "staged_path": staged, "staged_digest": None} == fields_of(expected)


def assert_grants_are(policy: AccessPolicy | None, rows: dict[str, Entry]) -> None:
    """The policy is that of all rows, once they are in force."""
    assert (policy is None) == (ACCESS_ID not in rows)
    if policy is None:
        return
    granted = [entry for entry in rows.values() if isinstance(entry, GrantEntry | MembershipEntry)]
    again = AccessPolicy.of(granted)
    assert {*policy.grants(), *policy.memberships()} == set(granted)
    for subject in map(Subject, NAMES):
        assert policy.grantees(subject) == again.grantees(subject)
        for path in {(), *(entry.on for entry in granted if isinstance(entry, GrantEntry))}:
            found, expected = policy.visible_children(subject, path), again.visible_children(subject, path)
            assert (found is None) == (expected is None)
            if found is not None and expected is not None:
                assert [*map(list, found)] == [*map(list, expected)]


def assert_snapshot_is(snapshot: CatalogSnapshot, reference: ReferenceCatalog) -> None:
    """Ask everything that a snapshot can be asked."""
    rows = reference.rows
    found = {entry.object_id: entry for entry in snapshot.entries()}
    assert found.keys() == rows.keys()
    for object_id, entry in rows.items():
        other = found[object_id]
        if isinstance(entry, VersionEntry):
            assert isinstance(other, VersionEntry)
            assert same(other, entry)
            assert same(snapshot.version_entry(entry.table_id, entry.branch, entry.version), entry)
        else:
            assert other == entry
    pins = [entry for entry in rows.values() if isinstance(entry, PinEntry)]
    assert snapshot.pins() == sorted(pins, key=lambda pin: pin.name)
    assert all(snapshot.pin(pin.name) == pin for pin in pins)
    cursors = [entry for entry in rows.values() if isinstance(entry, CursorEntry)]
    assert snapshot.cursors() == sorted(cursors, key=lambda cursor: cursor.name)
    assert all(snapshot.cursor(cursor.name) == cursor for cursor in cursors)
    assert snapshot.collector == rows.get(COLLECTOR_ID, NEVER_COLLECTED)
    assert_grants_are(snapshot.policy, rows)
    namespaces = {entry.id for entry in rows.values() if isinstance(entry, NamespaceEntry)}
    tables = {entry.id: entry for entry in rows.values() if isinstance(entry, TableEntry)}
    for path in {(), *namespaces, *tables}:
        assert snapshot.child_namespaces(path) == _children(path, namespaces)
        assert snapshot.child_tables(path) == _children(path, tables)
        assert (snapshot.namespace(path) is not None) == (path in namespaces or path == ())
    assert list(snapshot.all_tables()) == sorted(tables)
    for after in tables:
        assert list(snapshot.all_tables(after)) == [path for path in sorted(tables) if path > after]
    chains: dict[tuple[ObjectId, str | None], list[VersionEntry]] = {}
    for entry in rows.values():
        if isinstance(entry, VersionEntry):
            chains.setdefault((entry.table_id, entry.branch), []).append(entry)
    for (table_id, branch), entries in chains.items():
        entries.sort(key=lambda entry: entry.version)
        assert same(snapshot.head(table_id, branch), entries[-1])
        numbers = [entry.version for entry in entries]
        assert [entry.version for entry in snapshot.versions(table_id, branch)] == numbers
        assert [entry.version for entry in snapshot.versions(table_id, branch, descending=True)] == numbers[::-1]
        middle = numbers[len(numbers) // 2]
        assert [entry.version for entry in snapshot.versions(table_id, branch, start=middle)] == [
            number for number in numbers if number >= middle
        ]
        assert [entry.version for entry in snapshot.versions(table_id, branch, descending=True, start=middle)] == [
            number for number in numbers[::-1] if number <= middle
        ]
        assert snapshot.version_entry(table_id, branch, numbers[-1] + 1) is None
    for table_id, table in tables.items():
        branches = sorted(branch for path, branch in chains if path == table_id and branch is not None)
        assert snapshot.branches(table_id) == tuple(branches)
        assert snapshot.table_at(table.location) == table_id
        mine = [number for (path, _), entries in chains.items() if path == table_id for number in entries]
        assert set(snapshot.object_ids(table_id)) == {table.object_id, *(entry.object_id for entry in mine)}
        if (table_id, None) not in chains:
            assert snapshot.head(table_id) is None
    for entry in rows.values():
        if isinstance(entry, RecordEntry):
            assert snapshot.record(entry.batch_uuid) == entry
            assert snapshot.record_by_request(entry.request_hash) == entry
            if entry.idempotency_key is not None:
                assert snapshot.record_by_key(entry.idempotency_key, entry.principal) == entry
    pending = {entry for entry in rows.values() if isinstance(entry, RecordEntry) and entry.state == "open"}
    assert set(snapshot.open_records()) == pending
    places = {place_of(party) for record in pending for party in record.participants}
    assert set(snapshot.state.open_places) == places
    buried = {
        party.location: entry
        for entry in rows.values()
        if isinstance(entry, RecordEntry) and entry.state in TOMBSTONES
        for party in entry.participants
    }
    assert set(snapshot.state.used) == set(buried)
    for location, entry in buried.items():
        assert snapshot.tombstone_at(location) == entry


def _children(parent: ObjectId, paths: Iterable[ObjectId]) -> tuple[str, ...]:
    names = [path[-1] for path in paths if path[:-1] == parent]
    return tuple(sorted(names, key=str.encode))
