"""The catalog as one caller may see it: what is hidden is not there.

A read that is answered from a `VisibleSnapshot` cannot tell a hidden object from one that does not exist: both are
looked up by the same steps, and give the same answer. Grants are those of the newest snapshot, whatever version is
read: what may be seen is decided today.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final, Literal, NoReturn, TypeVar

from lance_namespace.errors import PermissionDeniedError, TableNotFoundError

from namespace_server.access.policy import AccessPolicy
from namespace_server.access.subjects import Privilege, Subject, ordered
from namespace_server.access.visible_names import MergedNames, VisibleNames
from namespace_server.attempts import Authorization, ObjectKind, with_authorizations
from namespace_server.credentials.vending import Permission
from namespace_server.directory.model.collector_rows import CollectorEntry, OwnEntry
from namespace_server.directory.model.entries import (
    NamespaceEntry,
    Participant,
    RecordEntry,
    RecordState,
)
from namespace_server.directory.model.object_ids import ObjectId, join
from namespace_server.directory.model.operations import CloneTable, CommitTransaction, CreateBranch, CreateTableVersion
from namespace_server.directory.model.persistent.name_index import NameIndex
from namespace_server.directory.model.persistent.sorted_names import SortedNames
from namespace_server.directory.model.snapshot import CatalogSnapshot, Own
from namespace_server.directory.model.state import Children, StoredTable
from namespace_server.outcomes import with_nothing_done

E = TypeVar("E", bound=Exception)

_MAKE_VERSIONS: Final = frozenset({CommitTransaction.name, CreateTableVersion.name, CreateBranch.name, CloneTable.name})
"""The operations that each have a participant in the record of their batch, which tells of others by name alone."""
_MOST_LOOKED_UP: Final = 10_000
"""Tables that a caller sees today of which the names in an earlier version are looked up: some 30 ms."""
_WRITES_FILES: Final = (Privilege.WRITE, Privilege.ALTER, Privilege.MAINTAIN)
"""Who has one of these on a table writes files below it."""


class Sight:
    """What one caller may see and do, by the grants of the newest snapshot, `today`."""

    __slots__ = ("policy", "subject", "today")

    def __init__(self, policy: AccessPolicy, subject: Subject, today: CatalogSnapshot) -> None:
        self.policy = policy
        self.subject = subject
        self.today = today

    def view(self, snapshot: CatalogSnapshot) -> VisibleSnapshot:
        """What the caller may see of a snapshot: of the newest one, or of an earlier version."""
        return VisibleSnapshot(snapshot, self) if snapshot is self.today else EarlierVisibleSnapshot(snapshot, self)

    def allows(self, privilege: Privilege, object_id: ObjectId) -> bool:
        """Whether the caller has a privilege on an object of today."""
        return self.policy.allows(self.subject, privilege, object_id)

    def require(self, privileges: Collection[Privilege], object_id: ObjectId) -> None:
        """Raise PermissionDeniedError (15), which names those of the privileges that the caller lacks on an object.

        The object is one that the caller may see.
        """
        missing = [each for each in ordered(privileges) if not self.allows(each, object_id)]
        if missing:
            raise self.denied(missing, object_id)

    def require_all(self, privileges: Collection[Privilege]) -> None:
        """Raise PermissionDeniedError (15) unless the caller has these privileges on all that is in the catalog.

        `create` on the catalog shows it, and nothing in it.
        """
        judged = {each: self.policy.judge(self.subject, each, ("",)) for each in ordered(privileges)}
        missing = [
            Authorization(each, decision.allowed, decision.reason, "catalog", ())
            for each, decision in judged.items()
            if not decision.allowed
        ]
        if missing:
            raise _denial(missing, "all of the catalog")

    def denied(self, missing: Collection[Privilege], object_id: ObjectId, more: str = "") -> PermissionDeniedError:
        """The error of the caller, who sees an object and lacks privileges on it; or on something `more`."""
        checks = [self._check(each, object_id) for each in ordered(missing)]
        name = f"{checks[0].kind} {join(object_id)}" if object_id else "the catalog"
        return _denial(checks, f"{more}{name}")

    def explained(self, error: E, object_id: ObjectId) -> E:
        """The error that an object is not there, with the check by which it is hidden, or would be if it were there."""
        if self.allows(Privilege.SEE, object_id):
            return error
        kind: ObjectKind = "table" if isinstance(error, TableNotFoundError) else "namespace"
        return with_authorizations(error, [self._check(Privilege.SEE, object_id, kind)])

    def _check(self, privilege: Privilege, object_id: ObjectId, kind: ObjectKind | None = None) -> Authorization:
        """A check of an object, whose kind is not looked up if it may not be seen: errors tell it."""
        decision = self.policy.judge(self.subject, privilege, object_id)
        if kind is None:
            is_table = self.allows(Privilege.SEE, object_id) and self.today.table(object_id) is not None
            kind = "table" if is_table else "namespace" if object_id else "catalog"
        return Authorization(privilege, decision.allowed, decision.reason, kind, object_id)

    def permission(self, table_id: ObjectId) -> Permission | None:
        """What storage options for a table of today may allow the caller; None: it is handed none."""
        return permission_of(lambda privilege: self.allows(privilege, table_id))

    def allowed_at(self, privilege: Privilege, object_id: ObjectId, version: int) -> bool:
        """Whether the caller has a privilege on what had this id in a catalog version, and may have gone since.

        A grant on a namespace or a table counts from the catalog version on in which it was given.
        """
        return self.policy.allowed_at(self.subject, privilege, object_id, version)

    @property
    def reads_all(self) -> bool:
        """Whether the caller may read all of the catalog."""
        return self.allows(Privilege.READ, ())

    def owns(self, principal: str | None) -> bool:
        """Whether something of a principal is the caller's own. What nobody is named for is of none."""
        return principal is not None and principal == self.subject.principal


def sight_of(snapshot: CatalogSnapshot, subject: Subject | None) -> Sight | None:
    """What a caller may see, by the grants of the newest snapshot; None for the operator, and without grants."""
    policy = snapshot.policy
    return None if policy is None or subject is None else Sight(policy, subject, snapshot)


def permission_of(allows: Callable[[Privilege], bool]) -> Permission | None:
    """What storage options for a table may allow who has the privileges that `allows` says; None: who cannot read."""
    if not allows(Privilege.READ):
        return None
    return "write" if any(map(allows, _WRITES_FILES)) else "read"


def _not_for_callers(*_: object, **__: object) -> Any:
    """A method that callers of a server do not reach."""
    raise AssertionError("this is not for the callers of a server")


def _denial(missing: Sequence[Authorization], on: str) -> PermissionDeniedError:
    """The error that these privileges, in order, are missing."""
    needed = " and ".join(each.privilege for each in missing)
    error = PermissionDeniedError(f"permission denied, nothing was done: expected {needed} on {on}")
    return with_authorizations(with_nothing_done(error), missing)


class VisibleSnapshot(CatalogSnapshot):
    """A snapshot without what its caller may not see.

    A namespace that holds something visible is there by its name alone. Pins, intents and cursors are those of the
    caller; who may maintain the catalog sees all of them. Of a record those tables are told that may be seen.
    """

    __slots__ = ("_base", "_sight")

    # What looks at all of the catalog, or at the work of servers, is not for callers.
    table_below = directories_of_tables = all_branches = object_ids = removed_versions = _not_for_callers
    open_records = open_path = proved = apply = entries = access_rows = _not_for_callers

    def __init__(self, base: CatalogSnapshot, sight: Sight) -> None:
        super().__init__(
            base.version, base.timestamp_ms, base.managed, base.listed_at, base.state, base.disk, base.overlay
        )
        self._base = base
        self._sight = sight

    def allows(self, privilege: Privilege, table_id: ObjectId) -> bool:
        """Whether the caller has a privilege on the table that has this id here."""
        return self._sight.allows(privilege, table_id)

    @property
    def state(self) -> NoReturn:
        """Not for callers: it has all rows."""
        raise AssertionError("this is not for the callers of a server")

    def namespace(self, namespace_id: ObjectId) -> NamespaceEntry | None:
        """The namespace, without properties where only something in it may be seen."""
        sight = self._sight
        if not sight.policy.shows(sight.subject, namespace_id):
            return None
        found = self._base.namespace(namespace_id)
        if found is None or sight.allows(Privilege.SEE, namespace_id):
            return found
        return NamespaceEntry(namespace_id)

    def table_at(self, location: str) -> ObjectId | None:
        """The id of the table that lives at a location, or None."""
        found = self._base.table_at(location)
        return found if found is not None and self._sees(found) else None

    def find_tables(self, words: Sequence[str], most: int) -> list[ObjectId]:
        """The tables that may be seen whose ids have all words; what is hidden is not looked through."""
        roots = self._sight.policy.visible_roots(self._sight.subject)
        if roots is None:
            return self._index().search(words, most)
        return self._index().search(words, most, below=roots.namespaces, beside=roots.tables, wanted=self._holds)

    def record(self, batch_uuid: str) -> RecordEntry | None:
        """The record of a batch of the caller, or of one that changed a table that may be seen; with these tables."""
        found = self._base.record(batch_uuid)
        return None if found is None else self._shown(found)

    def record_by_key(self, idempotency_key: str, principal: str | None = None) -> RecordEntry | None:
        """The record of the batch for which the caller used an idempotency key."""
        return super().record_by_key(idempotency_key, principal) if self._sight.owns(principal) else None

    def records(self, state: RecordState | None = None) -> Iterator[RecordEntry]:
        """The records, or those of one state, of which something may be seen, in no particular order."""
        return (shown for record in self._base.records(state) if (shown := self._shown(record)) is not None)

    def _stored(self, table_id: ObjectId) -> StoredTable | None:
        """The table that has this id, if it may be seen, which is asked before it is looked up."""
        return super()._stored(table_id) if self._sees(table_id) else None

    def _own(self, object_id: str, kind: type[Own]) -> Own | None:
        found = super()._own(object_id, kind)
        return found if found is not None and self._is_own(found) else None

    def _all_own(self, kind: type[Own]) -> list[Own]:
        return [entry for entry in super()._all_own(kind) if self._is_own(entry)]

    def _children(self, namespace_id: ObjectId) -> Children | VisibleNames:  # type: ignore[override]
        """The names directly below that may be seen: by an index, not by a walk."""
        found = self._sight.policy.visible_children(self._sight.subject, namespace_id)
        return super()._children(namespace_id) if found is None else found

    def _sees(self, table_id: ObjectId) -> bool:
        """Whether a table of this id, if there is one, may be seen."""
        return self.allows(Privilege.SEE, table_id)

    def _holds(self, table_id: ObjectId) -> bool:
        """Whether there is a table of this id, seen or not."""
        return self._base.table(table_id) is not None

    def _is_own(self, entry: OwnEntry) -> bool:
        if isinstance(entry, CollectorEntry):
            return True  # what a run decided concerns all
        return self._sight.owns(entry.principal) or self._sight.allows(Privilege.MAINTAIN, ())

    def _shown(self, record: RecordEntry) -> RecordEntry | None:
        """What may be seen of a record: the tables, and the rest if that is all of the batch; None: nothing."""
        sight = self._sight
        if sight.reads_all:
            return record
        found = (self._shown_party(record, party) for party in record.participants)
        parties = tuple(party for party in found if party is not None)
        is_all_of_it = not record.is_batch or _MAKE_VERSIONS.issuperset(record.operation.split(","))
        if sight.owns(record.principal) or (parties and len(parties) == len(record.participants) and is_all_of_it):
            return replace(record, participants=parties)
        if not parties:
            return None
        return replace(record, participants=parties, operation="", message=None, properties={}, results=b"[]")

    def _shown_party(self, record: RecordEntry, party: Participant) -> Participant | None:
        """What may be seen of a table that a batch changed: as what it is today, or as what it was when it went.

        Its version is told to who may read it; of a batch nothing else is told.
        """
        sight = self._sight
        living = sight.today.table_at(party.location)

        def allows(privilege: Privilege) -> bool:
            if living is not None:
                return sight.allows(privilege, living)
            return sight.allowed_at(privilege, party.table_id, record.catalog_version)

        if allows(Privilege.READ):
            return party
        return None if record.is_batch or not allows(Privilege.SEE) else party._replace(version=0)


class EarlierVisibleSnapshot(VisibleSnapshot):
    """What a caller may see of an earlier catalog version, by the grants of today.

    A table is judged as what it is today, whatever its name was. One that has gone is judged by its name, and then
    grants on namespaces and tables count only if they were there in that version: who has a new table or namespace of
    an old name does not see what had that name before.

    Lists lead to the namespaces that show something today. So a table that was renamed out of all that its caller sees
    is found in an earlier version by its name, and in no list.
    """

    __slots__ = ("_former",)

    def __init__(self, base: CatalogSnapshot, sight: Sight) -> None:
        super().__init__(base, sight)
        self._former: Mapping[ObjectId, list[str]] | Literal["many"] | None = None

    def allows(self, privilege: Privilege, table_id: ObjectId) -> bool:
        """Whether the caller has a privilege on the table that has this id here."""
        sight, table = self._sight, self._base.table(table_id)
        living = None if table is None else sight.today.table_at(table.location)
        if living is not None:
            return sight.allows(privilege, living)
        return sight.allowed_at(privilege, table_id, self.version)

    def find_tables(self, words: Sequence[str], most: int) -> list[ObjectId]:
        """The tables that may be seen whose ids have all words; of who sees all or many, all that have them."""
        roots, former = self._sight.policy.visible_roots(self._sight.subject), self._former_names()
        if roots is None or former == "many":
            return self._index().search(words, most, wanted=self._sees)
        beside = roots.tables.edited({(*parent, name): True for parent, names in former.items() for name in names})
        index = self._index() if roots.namespaces else NameIndex(())  # it takes seconds where there are a million
        return index.search(
            words,
            most,
            below=roots.namespaces,
            beside=beside,
            wanted=lambda table_id: self._holds(table_id) and self._sees(table_id),
        )

    def namespace(self, namespace_id: ObjectId) -> NamespaceEntry | None:
        """The namespace, with the properties that it had if it is the one that the caller may see today."""
        found = super().namespace(namespace_id)
        if found is None or self._sight.allowed_at(Privilege.SEE, namespace_id, self.version):
            return found
        return NamespaceEntry(namespace_id)

    def _children(self, namespace_id: ObjectId) -> Children | VisibleNames:  # type: ignore[override]
        """The names directly below that may be seen: of those to which grants lead, and that tables had of today.

        Who sees all of the namespace, or many tables, has all names looked at.
        """
        sight = self._sight
        spaces, tables = self._base.child_namespaces(namespace_id), self._base.child_tables(namespace_id)

        def shows(name: str) -> bool:
            return sight.policy.shows(sight.subject, (*namespace_id, name)) and name in spaces

        def sees(name: str) -> bool:
            return self._sees((*namespace_id, name)) and name in tables

        granted = sight.policy.visible_children(sight.subject, namespace_id)
        former = "many" if granted is None else self._former_names()
        if granted is None or former == "many":
            return VisibleNames(_FilteredNames(spaces, shows), _FilteredNames(tables, sees))
        had = SortedNames.from_sorted(former.get(namespace_id, []))
        return VisibleNames(
            _FilteredNames(MergedNames(granted), shows), _FilteredNames(MergedNames([*granted, had]), sees)
        )

    def _former_names(self) -> Mapping[ObjectId, list[str]] | Literal["many"]:
        """The names that tables had here which the caller sees today, by namespace, sorted; unless they are many."""
        if self._former is None:
            today, found = self._sight.today, defaultdict[ObjectId, list[str]](list)
            for count, table_id in enumerate(self._sight.view(today).all_tables()):
                if count == _MOST_LOOKED_UP:
                    self._former = "many"
                    return self._former
                table = today.table(table_id)
                held = None if table is None else self._base.table_at(table.location)
                if held is not None:
                    found[held[:-1]].append(held[-1])
            self._former = {parent: sorted(names) for parent, names in found.items()}
        return self._former


class _FilteredNames(MergedNames):
    """The names of a set that are wanted. It reads as `SortedNames` does."""

    __slots__ = ("_names", "_wanted")

    def __init__(self, names: SortedNames | MergedNames, wanted: Callable[[str], bool]) -> None:
        super().__init__([names])
        self._names = names
        self._wanted = wanted

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._names and self._wanted(name)

    def __iter__(self) -> Iterator[str]:
        return filter(self._wanted, self._names)

    def __bool__(self) -> bool:
        return next(iter(self), None) is not None

    def after(self, name: str) -> Iterator[str]:
        """The wanted names that follow `name`."""
        return filter(self._wanted, self._names.after(name))

    def starting_at(self, name: str) -> Iterator[str]:
        """The wanted names from `name` on."""
        return filter(self._wanted, self._names.starting_at(name))

    def first(self, count: int, *, after: str | None = None) -> list[str]:
        """The first `count` wanted names, of those that follow `after` if it is given."""
        return list(islice(iter(self) if after is None else self.after(after), count))
