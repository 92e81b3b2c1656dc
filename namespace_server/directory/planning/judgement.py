"""Whether the subject of a batch may do each of its operations, by the grants of the snapshot that is flipped.

An operation that is not allowed on an object that may be seen is denied. One on an object that may not be seen is
answered as if that were not there. What no case below names is denied, so that a new operation is not open to all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from lance_namespace.errors import (
    InvalidInputError,
    LanceNamespaceError,
    NamespaceNotFoundError,
    TableNotFoundError,
    TableVersionNotFoundError,
    TransactionNotFoundError,
)

from namespace_server.access.grants import GrantEntry, Kind
from namespace_server.access.policy import AccessPolicy
from namespace_server.access.subjects import Privilege, Subject
from namespace_server.attempts import Authorization, with_authorizations
from namespace_server.directory.model.entries import DROPPED, RecordEntry
from namespace_server.directory.model.errors import (
    clone_source_not_found,
    namespace_exists,
    namespace_not_found,
    parent_not_found,
    table_exists,
    table_not_found,
    version_not_kept,
)
from namespace_server.directory.model.grant_operations import (
    EnableGrants,
    GrantOperation,
    GrantPrivileges,
    GrantRole,
    RevokePrivileges,
    RevokeRole,
)
from namespace_server.directory.model.naming_rules import check_location
from namespace_server.directory.model.object_ids import ObjectId, join
from namespace_server.directory.model.operations import (
    AdoptTableVersions,
    AdvanceCursor,
    AlterBatch,
    AssertTableVersion,
    CloneTable,
    CommitTransaction,
    ConfirmTag,
    CreateBranch,
    CreateMode,
    CreateNamespace,
    CreateTableVersion,
    DeclareTable,
    DeleteBranch,
    DeleteCursor,
    DeleteTableVersions,
    DeleteTag,
    DeregisterTable,
    DropNamespace,
    DropTable,
    EndIntent,
    KeepAnswer,
    Operation,
    RegisterIntent,
    RegisterTable,
    RemovePin,
    RenameTable,
    SetPin,
    SetTableProperties,
    UndropNamespace,
    UndropTable,
)
from namespace_server.directory.model.reached_tables import ReachedObject, reached_objects
from namespace_server.directory.model.results import OperationResult
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning.dropped_grants import had_grants
from namespace_server.directory.planning.plan_builder import DroppedTables, Finding, StagedManifest

SEE, READ, WRITE, ALTER = Privilege.SEE, Privilege.READ, Privilege.WRITE, Privilege.ALTER
CREATE, DROP, REFERENCE = Privilege.CREATE, Privilege.DROP, Privilege.REFERENCE
MAINTAIN, GRANT, OWN = Privilege.MAINTAIN, Privilege.GRANT, Privilege.OWN
EXPLAINED: Final = 200
"""The operations of a batch, from the first on, for which the grants are noted by which they are allowed."""

_CHANGES: Final[dict[str, tuple[Privilege, ...]]] = {
    "append": (WRITE,),
    "delete": (WRITE,),
    "update": (WRITE,),
    "data_replacement": (WRITE,),
    "data_overlay": (WRITE,),
    "update_mem_wal_state": (WRITE,),
    "overwrite": (WRITE, DROP, CREATE),
    "restore": (WRITE, ALTER),
    "merge": (ALTER,),
    "project": (ALTER,),
    "update_config": (ALTER,),
    "update_bases": (ALTER,),
    "rewrite": (MAINTAIN,),
    "create_index": (MAINTAIN,),
    "reserve_fragments": (MAINTAIN,),
    "clone": (REFERENCE, READ),
}
"""What each operation of a Lance transaction needs on its table."""
_UNKNOWN_CHANGE: Final = (OWN,)
_FIRST: Final = (WRITE,)
_SHOWS_THE_HEAD: Final = (READ, WRITE, ALTER, MAINTAIN, REFERENCE)
"""Each of these shows its holder the number of the head: by a read, or by a change and its conflicts."""
_OF_TABLES: Final[dict[type[Operation], tuple[Privilege, ...]]] = {
    DeregisterTable: (DROP,),
    DropTable: (DROP,),
    SetTableProperties: (ALTER,),
    CreateBranch: (REFERENCE, READ),
    DeleteBranch: (REFERENCE,),
    ConfirmTag: (REFERENCE,),
    DeleteTag: (REFERENCE,),
}
"""What operations need that are about one table and need the same of each."""

Judged = Callable[[ObjectId], CatalogSnapshot]
"""The catalog by which an operation on an object is judged."""
KeyOf = Callable[[str], str | None]
"""The key below the root of the catalog to which a base path leads; None for one that leads elsewhere."""
Bases = Callable[[], Iterable[str]]
"""The base paths below which an operation brings its table files that it did not have; asked for where they count."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judgement of one operation.

    Attributes:
        checks: What was looked at: for a denied operation at least one is not allowed.
        refusal: The error of the operation where what it names may not be seen: that of what is not there.
        result: Its result, where absence is a success, and what it names may not be seen.
    """

    checks: tuple[Authorization, ...] = ()
    refusal: LanceNamespaceError | None = None
    result: OperationResult | None = None

    @property
    def denials(self) -> list[Authorization]:
        """The privileges that are missing, of what may be seen."""
        return [each for each in self.checks if not each.allowed]


UNJUDGED: Final = Judgement()


@dataclass(slots=True)
class Judge:
    """Judges the operations of one batch, in order.

    `judged` gives the catalog after the operations before, as far as it concerns an object.
    """

    subject: Subject
    judged: Judged
    key_of: KeyOf
    _checks: list[Authorization] = field(default_factory=list)
    _index: int = 0

    def judge(
        self,
        index: int,
        operation: Operation,
        finding: Finding | None = None,
        bases: Bases = tuple,
    ) -> Judgement:
        """Judge one operation.

        Args:
            index: Its position in the batch.
            operation: The operation.
            finding: What verification found, if it was verified.
            bases: The base paths below which it brings its table files, as far as they are known.
        """
        if self.judged(()).policy is None:
            return UNJUDGED
        self._index, self._checks = index, []
        try:
            result = self._look(operation, finding, bases)
        except LanceNamespaceError as error:
            return Judgement(tuple(self._checks), error)
        return Judgement(tuple(self._checks), None, result)

    def _look(self, operation: Operation, finding: Finding | None, bases: Bases) -> OperationResult | None:
        match operation:
            case KeepAnswer() | AdoptTableVersions():
                return None
            case CreateTableVersion() | CommitTransaction():
                self._change(operation, finding, bases)
            case DeleteTableVersions():
                self._delete_versions(operation)
            case CreateNamespace() | DeclareTable() | RegisterTable():
                self._creation(operation)
            case AssertTableVersion():
                self._table_by_one_of(operation.id, _SHOWS_THE_HEAD)
            case CloneTable():
                self._clone(operation, bases)
            case DropNamespace():
                return self._drop_namespace(operation)
            case RenameTable():
                is_inside = operation.id[:-1] == operation.new_id[:-1]
                if self._table(operation.id, (DROP,) if is_inside else (OWN,)):
                    self._creation_in(operation.new_id)
            case UndropTable() | UndropNamespace():
                self._undrop(operation, finding)
            case SetPin() | RemovePin() | AdvanceCursor() | DeleteCursor() | RegisterIntent() | EndIntent():
                return self._keeping(operation)
            case EnableGrants() | GrantPrivileges() | RevokePrivileges() | GrantRole() | RevokeRole():
                self._grants(operation)
            case AlterBatch():
                self._notes(operation)
            case _:
                self._table(operation.id, _OF_TABLES.get(type(operation), _UNKNOWN_CHANGE))
        return None

    # -- what is looked at

    def _policy(self, object_id: ObjectId) -> AccessPolicy:
        policy = self.judged(object_id).policy
        assert policy is not None, "grants do not go out of force within a batch"
        return policy

    def _check(self, kind: Kind, object_id: ObjectId, *privileges: Privilege) -> bool:
        """Note whether the subject has each of the privileges on an object."""
        policy, subject = self._policy(object_id), self.subject
        kind = kind if object_id else "catalog"
        for privilege in privileges:
            if self._index < EXPLAINED:
                decision = policy.judge(subject, privilege, object_id)
                allowed, reason = decision.allowed, decision.reason
            else:
                allowed, reason = policy.allows(subject, privilege, object_id), ""
            self._checks.append(Authorization(privilege, allowed, reason, kind, object_id, self._index))
        return all(each.allowed for each in self._checks)

    def _hidden(self, error: LanceNamespaceError, kind: Kind, object_id: ObjectId) -> LanceNamespaceError:
        """The error of what is not there, for what may not be seen; the log of refused attempts knows better."""
        reason = self._policy(object_id).judge(self.subject, SEE, object_id).reason
        check = Authorization(SEE, False, reason, kind, object_id, self._index)
        return with_authorizations(error, [*self._checks, check])

    def _table(self, table_id: ObjectId, privileges: Iterable[Privilege]) -> bool:
        """Look at an operation on a table. False if it is not there, which planning says."""
        if self.judged(table_id).table(table_id) is None:
            return False
        if not self._policy(table_id).allows(self.subject, SEE, table_id):
            raise self._hidden(table_not_found(table_id), "table", table_id)
        self._check("table", table_id, *privileges)
        return True

    def _table_by_one_of(self, table_id: ObjectId, privileges: Sequence[Privilege]) -> None:
        """Look at an operation on a table for which one of some privileges is enough; the first is that which lacks."""
        if self._table(table_id, ()):
            policy = self._policy(table_id)
            found = next((each for each in privileges if policy.allows(self.subject, each, table_id)), privileges[0])
            self._check("table", table_id, found)

    def _change(self, operation: CreateTableVersion | CommitTransaction, finding: Finding | None, bases: Bases) -> None:
        table_id = operation.id
        if isinstance(operation, CommitTransaction):
            change = operation.transaction.WhichOneof("operation") or ""
        elif isinstance(finding, StagedManifest):
            change = finding.file.operation or ""
        else:  # it was not read: who may change nothing of the table has nothing read for it
            self._table_by_one_of(table_id, (WRITE, ALTER, MAINTAIN, REFERENCE))
            return
        privileges = _CHANGES.get(change, _UNKNOWN_CHANGE)
        if change == "overwrite" and self.judged(table_id).top(table_id, operation.branch) is None:
            privileges = _FIRST
        if self._table(table_id, privileges):
            self._bases(bases)

    def _bases(self, bases: Bases) -> None:
        """Look at base paths: each leads into a table, which the subject may read, or has needed to before its drop.

        Of one that leads to what may not be seen, to no table or out of the root, the catalog has to be readable.
        """
        for base in sorted(set(bases())):
            key = self.key_of(base)
            for object_id, version in [ReachedObject(())] if key is None else reached_objects(self.judged(()), key):
                if version is None and self._sees(object_id):
                    self._check("table", object_id, READ)
                elif version is None or not self._policy(()).allowed_at(self.subject, READ, object_id, version):
                    self._check("catalog", (), READ)

    def _delete_versions(self, operation: DeleteTableVersions) -> None:
        top = self.judged(operation.id).top(operation.id, operation.branch)
        goes = top is not None and any(start <= top[0] and (end < 0 or top[0] < end) for start, end in operation.ranges)
        self._table(operation.id, (MAINTAIN, DROP) if goes else (MAINTAIN,))

    def _creation(self, operation: CreateNamespace | DeclareTable | RegisterTable) -> None:
        object_id = operation.id
        implicit = isinstance(operation, DeclareTable) and operation.implicit_namespaces
        if isinstance(operation, RegisterTable):  # no grant governs the files that it takes
            self._check("catalog", (), OWN)
        if not self._creation_in(object_id, implicit=implicit):
            return
        catalog, policy = self.judged(object_id), self._policy(object_id)
        is_seen = policy.allows(self.subject, SEE, object_id)
        if isinstance(operation, CreateNamespace) and catalog.namespace(object_id) is not None:
            if operation.mode is not CreateMode.CREATE and not is_seen:
                raise self._hidden(namespace_exists(object_id), "namespace", object_id)
            if operation.mode is CreateMode.OVERWRITE:
                self._check("namespace", object_id, DROP)
        elif isinstance(operation, RegisterTable) and operation.overwrite and catalog.table(object_id) is not None:
            if not is_seen:
                raise self._hidden(table_exists(object_id), "table", object_id)
            self._check("table", object_id, DROP)
        if isinstance(operation, DeclareTable) and operation.chosen:
            self._location(operation)

    def _clone(self, operation: CloneTable, bases: Bases) -> None:
        """Who makes a clone reads what it is made of, also the tables of which the source has files."""
        self._creation_in(operation.id, implicit=operation.implicit_namespaces)
        source = self.judged(()).table_at(operation.source)
        if source is None:
            return  # planning says so
        if not self._sees(source):
            raise self._hidden(clone_source_not_found(), "table", source)
        if self._check("table", source, READ):
            self._bases(bases)

    def _creation_in(self, object_id: ObjectId, *, implicit: bool = False) -> bool:
        """Look at a creation in the namespace above; of `implicit` ones in the nearest one that is there, and seen."""
        parent = object_id[:-1]
        catalog, policy = self.judged(parent), self._policy(parent)
        if policy.allows(self.subject, CREATE, parent) and catalog.namespace(parent) is not None:
            return self._check("namespace", parent, CREATE)
        while implicit and parent and not (catalog.namespace(parent) and policy.shows(self.subject, parent)):
            parent = parent[:-1]
        if not policy.shows(self.subject, parent):
            if catalog.namespace(parent) is None and catalog.table(parent) is None:
                return False  # planning says so
            kind: Kind = "namespace" if catalog.namespace(parent) is not None else "table"
            raise self._hidden(parent_not_found(object_id), kind, parent)
        if catalog.namespace(parent) is None:
            return False
        return self._check("namespace", parent, CREATE)

    def _location(self, operation: DeclareTable) -> None:
        """Refuse a location of another table, without its name if it may not be seen."""
        catalog = self.judged(operation.id)
        held, tombstone = catalog.table_at(operation.location), catalog.tombstone_at(operation.location)
        names = [] if held is None else [held]
        names += [party.table_id for party in tombstone.participants] if tombstone is not None else []
        if any(not self._policy(name).allows(self.subject, SEE, name) for name in names):
            raise InvalidInputError(
                f"table {join(operation.id)}: location {operation.location!r} is or was in use, expected another one"
            )

    def _drop_namespace(self, operation: DropNamespace) -> OperationResult | None:
        object_id = operation.id
        if self.judged(object_id).namespace(object_id) is None:
            return None
        if not self._policy(object_id).shows(self.subject, object_id):
            if operation.skip_missing:
                return {}
            raise self._hidden(namespace_not_found(object_id), "namespace", object_id)
        self._check("namespace", object_id, DROP)
        return None

    def _undrop(self, operation: UndropTable | UndropNamespace, finding: Finding | None) -> None:
        """Who owned what was dropped may bring it back: under a new name, or above new names, it may come into others'.

        Ownership of namespaces above counts if they are those of then. To read the catalog version of then takes time,
        so it is not read for callers who are known to have seen nothing of that name.
        """
        old, new = operation.id, operation.id if isinstance(operation, UndropNamespace) else operation.new_id
        kind: Kind = "namespace" if isinstance(operation, UndropNamespace) else "table"
        if finding is None and not self._may_have_seen(old):
            raise self._never_dropped(kind, old)
        if not isinstance(finding, DroppedTables):
            return
        grants = finding.grants if isinstance(operation, UndropNamespace) else finding.tables[0].grants
        record = self.judged(()).record(finding.tables[0].tombstone)
        version = 0 if record is None else record.catalog_version
        owns, sees = (self._had(privilege, old, version, grants) for privilege in (OWN, SEE))
        if not sees:
            raise self._never_dropped(kind, old)
        reason = "own at the time of the drop" if owns else "it was not owned when it was dropped"
        self._checks.append(Authorization(OWN, owns, reason, kind, old, self._index))
        self._creation_in(new)

    def _never_dropped(self, kind: Kind, old: ObjectId) -> LanceNamespaceError:
        place = f"{kind} {join(old)} cannot come back"
        absent: LanceNamespaceError
        if kind == "table":
            absent = TableNotFoundError(f"{place}: none of that name was dropped, or its files were removed")
        else:
            text = f"{place}: none of that name was dropped with tables, or their files are gone"
            absent = NamespaceNotFoundError(text)
        return self._hidden(absent, kind, old)

    def _may_have_seen(self, old: ObjectId) -> bool:
        """Whether something dropped has this name, or is below it, of which the subject may have known."""
        catalog, policy = self.judged(()), self._policy(())
        grantees = policy.grantees(self.subject)

        def was_told(record: RecordEntry, table_id: ObjectId) -> bool:
            version = record.catalog_version
            return had_grants(record, grantees) or policy.allowed_at(self.subject, SEE, table_id, version)

        return any(
            was_told(record, party.table_id)
            for record in catalog.records(DROPPED)
            for party in record.participants
            if party.table_id[: len(old)] == old
        )

    def _had(self, privilege: Privilege, object_id: ObjectId, version: int, grants: Iterable[GrantEntry]) -> bool:
        """Whether the subject had a privilege on an object when it was dropped, by grants on it or above it."""
        policy = self._policy(())
        grantees = policy.grantees(self.subject)
        on_it = (each.privileges for each in grants if each.to in grantees)
        held = any(privilege is SEE or {privilege, OWN} & privileges for privileges in on_it)
        return held or policy.allowed_at(self.subject, privilege, object_id, version)

    # -- what has to be kept, and notes: of its principal, or of who maintains the catalog

    def _keeping(
        self, operation: SetPin | RemovePin | AdvanceCursor | DeleteCursor | RegisterIntent | EndIntent
    ) -> OperationResult | None:
        catalog, name = self.judged(()), operation.key
        match operation:
            case SetPin():
                self._check("catalog", (), MAINTAIN)
            case RemovePin():
                pin = catalog.pin(name)
                if pin is not None and not self._is_its(pin.principal):
                    raise self._hidden(TableVersionNotFoundError(f"there is no pin {name}"), "catalog", ())
            case DeleteCursor():
                cursor = catalog.cursor(name)
                if cursor is not None and not self._is_its(cursor.principal):
                    raise self._hidden(TableVersionNotFoundError(f"there is no cursor {name}"), "catalog", ())
            case AdvanceCursor():
                cursor = catalog.cursor(name)
                self._keeps("cursor", name, None if cursor is None else cursor.principal, known=cursor is not None)
            case RegisterIntent():
                intent = catalog.intent(name)
                self._keeps("intent", name, None if intent is None else intent.principal, known=intent is not None)
                self._intended(operation)
            case EndIntent():
                intent = catalog.intent(name)
                return {} if intent is not None and not self._is_its(intent.principal) else None
        return None

    def _is_its(self, principal: str | None) -> bool:
        """Whether something of a principal is the subject's, who may be the one that maintains the catalog."""
        is_own = principal is not None and principal == self.subject.principal
        return is_own or self._policy(()).allows(self.subject, MAINTAIN, ())

    def _keeps(self, what: str, name: str, principal: str | None, *, known: bool) -> None:
        """A subject that is known, and has any grant, may put something of its own."""
        if known and not self._is_its(principal):
            raise InvalidInputError(f"{what} {name}: expected another name, this one is in use")
        allowed = self.subject.principal is not None and self._policy(()).knows(self.subject)
        if not allowed:
            reason = "a caller that is known, and has any grant, may have one"
            self._checks.append(Authorization(SEE, False, reason, "catalog", (), self._index))

    def _intended(self, operation: RegisterIntent) -> None:
        """A location may be that of a table to come: one that may not be seen, of that id or there, is not there.

        Then it has to be one of the table that the subject may create there, or each caller could keep the files of
        tables that were dropped, or are hidden. A renewal is not judged so: the table may have gone meanwhile.
        """
        own = self.judged(()).intent(operation.key)
        kept = frozenset() if own is None else {chain.location for chain in own.chains}
        for table in operation.tables:
            location, named = table.location, {table.id}
            if location is not None:
                lies_at = self.judged(()).table_at(location)
                is_there = lies_at is not None and self._sees(lies_at)
                if not is_there and location not in kept:
                    check_location(location, table.id)
                    self._creation_in(table.id, implicit=True)
                if lies_at is not None and table.read_version and not is_there:
                    error = version_not_kept(table.id, location, table.branch, table.read_version)
                    raise self._hidden(error, "table", lies_at)
                named = {each for each in (table.id, lies_at) if each is not None and self._sees(each)}
            for object_id in named:
                self._table_by_one_of(object_id, (READ, WRITE))

    def _sees(self, object_id: ObjectId) -> bool:
        return self._policy(object_id).allows(self.subject, SEE, object_id)

    def _notes(self, operation: AlterBatch) -> None:
        record = self.judged(()).record(operation.key)
        if record is not None and record.is_batch and not self._is_its(record.principal):
            error = TransactionNotFoundError(f"batch {operation.key} has no record, or none any more")
            raise self._hidden(error, "catalog", ())

    # -- grants

    def _grants(self, operation: GrantOperation) -> None:
        """To grant or revoke needs `grant`, and each privilege that is given or taken. Roles need `own` on the catalog.

        A role has privileges that the one who gives it may not have, so `grant` is not enough for that.
        """
        if isinstance(operation, GrantRole | RevokeRole | EnableGrants):
            self._check("catalog", (), OWN)
            return
        object_id, kind = operation.id, operation.kind
        catalog, policy = self.judged(object_id), self._policy(object_id)
        is_there = {"catalog": True, "namespace": bool(catalog.namespace(object_id))}.get(
            kind, catalog.table(object_id) is not None
        )
        if not is_there:
            return
        if not policy.shows(self.subject, object_id):
            error = table_not_found(object_id) if kind == "table" else namespace_not_found(object_id)
            raise self._hidden(error, kind, object_id)
        privileges = operation.privileges
        if privileges is None:
            held = policy.grant(object_id, operation.to)
            privileges = frozenset() if held is None else held.privileges
        self._check(kind, object_id, GRANT, *(each for each in Privilege if each in privileges))
