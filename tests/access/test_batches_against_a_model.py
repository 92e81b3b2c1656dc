"""No sequence of batches does what a plain model of grants forbids, or leaves other grants than the model's."""

from __future__ import annotations

import itertools
import tempfile
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lance_namespace.errors import LanceNamespaceError, NamespaceNotFoundError, TableNotFoundError

from lance_core.data import schema_fields
from lance_core.proto import lance_table_pb2 as pb
from namespace_server.access.subjects import EVERYONE, Grantee, Privilege, Subject
from namespace_server.directory.model.errors import AccessDenied
from namespace_server.directory.model.grant_operations import GrantPrivileges, GrantRole, RevokePrivileges, RevokeRole
from namespace_server.directory.model.limits import Limits
from namespace_server.directory.model.object_ids import ObjectId
from namespace_server.directory.model.operations import (
    AssertTableVersion,
    CommitTransaction,
    CreateMode,
    CreateNamespace,
    DeclareTable,
    DeregisterTable,
    DropNamespace,
    DropTable,
    Operation,
    RenameTable,
    SetTableProperties,
    UndropTable,
)
from tests.access.team import Guarded, principal, role
from tests.directory.tables import SCHEMA

SEE, READ, WRITE, ALTER = Privilege.SEE, Privilege.READ, Privilege.WRITE, Privilege.ALTER
CREATE, DROP, GRANT, OWN = Privilege.CREATE, Privilege.DROP, Privilege.GRANT, Privilege.OWN
SHOW_THE_HEAD = (READ, WRITE, ALTER, Privilege.MAINTAIN, Privilege.REFERENCE)
NAMESPACES: list[ObjectId] = [("a",), ("b",)]
TABLES: list[ObjectId] = [("a", "t"), ("a", "u"), ("b", "t")]
SUBJECTS = [Subject("alice"), Subject("bob"), Subject("carl", frozenset({"staff"})), Subject(None), Subject("root")]
GRANTEES = [principal("alice"), principal("bob"), role("staff"), role("editors"), EVERYONE]
_LOCATIONS = itertools.count(1)

SUBJECT = st.sampled_from([*SUBJECTS, *([Subject("root")] * 5)])
TABLE, NAMESPACE = st.sampled_from(TABLES), st.sampled_from(NAMESPACES)
SOME = st.frozensets(st.sampled_from([SEE, READ, WRITE, ALTER, CREATE, DROP, GRANT, OWN]), min_size=1, max_size=2)
ON = st.sampled_from([(), *NAMESPACES, *TABLES])


def kind_of(on: ObjectId) -> Any:
    return ("catalog", "namespace", "table")[len(on)]


def commit(on: ObjectId, change: str) -> CommitTransaction:
    """A transaction without files: the first version of a table, or another version of it."""
    transaction = pb.Transaction(read_version=0 if change == "overwrite" else 1, uuid=str(uuid.uuid4()))
    if change == "overwrite":
        transaction.overwrite.schema.extend(schema_fields(SCHEMA))
    elif change == "append":
        transaction.append.SetInParent()
    else:
        transaction.update_config.config_updates.update_entries.add(key=str(uuid.uuid4()), value="v")
    return CommitTransaction(on, None, transaction)


def operations_without_grants() -> st.SearchStrategy[Any]:
    """Operations on namespaces, tables and their versions."""
    return st.one_of(
        st.builds(lambda on: CreateNamespace(on, {}, CreateMode.CREATE), NAMESPACE),
        st.builds(lambda on: DeclareTable(on, f"{next(_LOCATIONS):08x}_{'$'.join(on)}", {}), TABLE),
        st.builds(lambda on: DeclareTable(on, f"{next(_LOCATIONS):08x}_{'$'.join(on)}", {}), TABLE),
        st.builds(DropTable, TABLE),
        st.builds(DropTable, TABLE),
        st.builds(DeregisterTable, TABLE),
        st.builds(commit, TABLE, st.sampled_from(["overwrite", "append", "append", "update_config"])),
        st.builds(commit, TABLE, st.sampled_from(["overwrite", "append", "append", "update_config"])),
        st.builds(AssertTableVersion, TABLE, st.none(), st.sampled_from([0, 1, 1, 2])),
        st.builds(RenameTable, TABLE, TABLE),
        st.builds(lambda on: DropNamespace(on, skip_missing=False, cascade=True), NAMESPACE),
        st.builds(RenameTable, TABLE, TABLE),
        st.builds(UndropTable, TABLE, TABLE),
        st.builds(lambda on: SetTableProperties(on, None, {"k": "v"}, frozenset(), None, Limits()), TABLE),
    )


OPERATION: st.SearchStrategy[Any] = st.one_of(
    operations_without_grants(),
    operations_without_grants(),
    st.builds(lambda on, to, some: GrantPrivileges(kind_of(on), on, to, some), ON, st.sampled_from(GRANTEES), SOME),
    st.builds(
        lambda on, to, some: RevokePrivileges(kind_of(on), on, to, some),
        ON,
        st.sampled_from([*GRANTEES, principal("root")]),
        st.none() | SOME,
    ),
    st.builds(GrantRole, st.just("editors"), st.sampled_from(GRANTEES[:3])),
    st.builds(RevokeRole, st.just("editors"), st.sampled_from(GRANTEES[:3])),
)
BEGINNING: list[tuple[Subject, Operation]] = [
    *((Subject("root"), CreateNamespace(path, {}, CreateMode.CREATE)) for path in NAMESPACES),
    (Subject("root"), GrantPrivileges("namespace", ("a",), principal("alice"), frozenset({CREATE, GRANT}))),
    (Subject("root"), GrantPrivileges("catalog", (), principal("bob"), frozenset({CREATE, DROP}))),
    (Subject("root"), GrantPrivileges("namespace", ("b",), role("staff"), frozenset({ALTER, CREATE}))),
    (Subject("alice"), DeclareTable(("a", "t"), "00000000_a$t", {})),
    (Subject("alice"), commit(("a", "t"), "overwrite")),
    (Subject("carl", frozenset({"staff"})), DeclareTable(("b", "t"), "00000000_b$t", {})),
]
Slot = tuple[int, list[Any]]


def slots(operations: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Slot]]:
    """For each place in a batch some operations: of these the first is taken that can be carried out there, if any.

    In one case of three it is the first one, whether it can be or not.
    """
    return st.lists(st.tuples(st.integers(0, 2), st.lists(operations, min_size=4, max_size=8)), min_size=1, max_size=6)


BATCHES = st.lists(st.tuples(SUBJECT, slots(OPERATION)), min_size=6, max_size=14)


@dataclass(frozen=True)
class DroppedOne:
    """A table that was dropped: its grants and its head, and the catalog version before."""

    grants: dict[Grantee, frozenset[Privilege]]
    head: int
    version: int


@dataclass
class PlainCatalog:
    """Objects, grants and roles, heads of tables, and tables that were dropped, the last ones of a name last.

    What a batch has done so far: `origin` has for each table the name that it had before, None if it is new. Tables
    that were `moved` had another name, or were dropped; those that are `published` got a version. What was `dropped`
    before comes back, once.
    """

    objects: set[ObjectId] = field(default_factory=lambda: {()})
    grants: dict[tuple[ObjectId, Grantee], frozenset[Privilege]] = field(default_factory=dict)
    since: dict[tuple[ObjectId, Grantee], int] = field(default_factory=dict)
    members: set[tuple[str, Grantee]] = field(default_factory=set)
    heads: dict[ObjectId, int] = field(default_factory=dict)
    dropped: dict[ObjectId, list[DroppedOne]] = field(default_factory=dict)
    gone: list[tuple[ObjectId, DroppedOne]] = field(default_factory=list)
    back: list[tuple[ObjectId, DroppedOne]] = field(default_factory=list)
    origin: dict[ObjectId, ObjectId | None] = field(default_factory=dict)
    moved: set[ObjectId] = field(default_factory=set)
    published: set[ObjectId] = field(default_factory=set)

    def before_a_batch(self) -> PlainCatalog:
        """A copy of which a batch has done nothing yet."""
        copied = PlainCatalog(set(self.objects), dict(self.grants), dict(self.since), set(self.members))
        copied.heads = dict(self.heads)
        copied.dropped = {path: list(some) for path, some in self.dropped.items()}
        copied.origin = {path: path for path in self.objects}
        return copied

    def end_batch(self) -> None:
        for path, one in self.back:
            self.dropped[path].remove(one)
        for path, one in self.gone:
            self.dropped.setdefault(path, []).append(one)

    def last_dropped(self, path: ObjectId) -> DroppedOne | None:
        """The one of that name that comes back: the last one that was dropped before this batch."""
        return self.dropped[path][-1] if self.dropped.get(path) else None

    def take(self, path: ObjectId) -> tuple[int, ObjectId | None]:
        """Take a table out; its head, and the name that it had before the batch."""
        self.objects.remove(path)
        self.moved.discard(path)
        return self.heads.pop(path, 0), self.origin.pop(path, None)

    def place(self, path: ObjectId, head: int, origin: ObjectId | None) -> None:
        """Put a table under a name that is free."""
        self.objects.add(path)
        self.heads[path], self.origin[path] = head, origin

    def grantees(self, subject: Subject) -> set[Grantee]:
        found = {EVERYONE, *(role(name) for name in subject.roles)}
        found |= set() if subject.principal is None else {principal(subject.principal)}
        while more := {role(name) for name, to in self.members if to in found} - found:
            found |= more
        return found

    def has(self, subject: Subject, privilege: Privilege, path: ObjectId, version: int | None = None) -> bool:
        mine = self.grantees(subject)
        for (on, to), privileges in self.grants.items():
            if to not in mine or path[: len(on)] != on:
                continue
            if version is not None and on and self.since[on, to] > version:
                continue
            if privileges & {privilege, OWN}:
                return True
            if privilege is SEE and (on == path or privileges != {CREATE}):
                return True
        return False

    def shows(self, subject: Subject, path: ObjectId) -> bool:
        mine = self.grantees(subject)
        below = any(to in mine and on[: len(path)] == path for on, to in self.grants)
        return not path or below or self.has(subject, SEE, path)

    def end(self, path: ObjectId) -> dict[Grantee, frozenset[Privilege]]:
        """Take the grants on an object away."""
        found = {to: some for (on, to), some in self.grants.items() if on == path}
        for to in found:
            del self.grants[path, to], self.since[path, to]
        return found

    def put(self, path: ObjectId, to: Grantee, some: frozenset[Privilege], version: int) -> None:
        self.grants[path, to] = some
        self.since[path, to] = version

    def make(self, path: ObjectId, subject: Subject, version: int) -> None:
        self.objects.add(path)
        self.heads[path], self.origin[path] = 0, None
        self.end(path)
        if subject.principal is not None:
            self.put(path, principal(subject.principal), frozenset({OWN}), version)


Denied = set[tuple[ObjectId, Privilege]]


class Absent(Exception):
    """What an operation names is not there, or may not be seen; what else is missing."""

    def __init__(self, missing: Denied) -> None:
        super().__init__()
        self.missing = missing


class Refused(Exception):
    """Something else stands in the way."""


def judge(model: PlainCatalog, subject: Subject, operation: Operation) -> Denied:  # noqa: C901 - a case for each
    """What is missing for an operation. Raises `Absent` for what may not be seen, or is not there."""
    missing: Denied = set()

    def need(path: ObjectId, *privileges: Privilege) -> None:
        missing.update((path, each) for each in privileges if not model.has(subject, each, path))

    def table(path: ObjectId, *privileges: Privilege) -> None:
        if path not in model.objects or not model.has(subject, SEE, path):
            raise Absent(missing)
        need(path, *privileges)

    def create_in(parent: ObjectId) -> None:
        there = parent in model.objects
        if not (there and model.has(subject, CREATE, parent)) and not (there and model.shows(subject, parent)):
            raise Absent(missing)
        need(parent, CREATE)

    match operation:
        case CreateNamespace() | DeclareTable():
            create_in(operation.id[:-1])
        case DropTable():
            table(operation.id, DROP)
        case SetTableProperties():
            table(operation.id, ALTER)
        case DeregisterTable():
            table(operation.id, DROP)
        case CommitTransaction():
            table(operation.id, *commit_needs(model, operation))
        case AssertTableVersion():
            table(operation.id)
            if not any(model.has(subject, each, operation.id) for each in SHOW_THE_HEAD):
                missing.add((operation.id, READ))
        case DropNamespace():
            if operation.id not in model.objects or not model.shows(subject, operation.id):
                raise Absent(missing)
            need(operation.id, DROP)
        case RenameTable():
            table(operation.id, DROP if operation.id[:-1] == operation.new_id[:-1] else OWN)
            create_in(operation.new_id[:-1])
        case UndropTable():
            last = model.last_dropped(operation.id)
            mine = [] if last is None else [some for to, some in last.grants.items() if to in model.grantees(subject)]
            if last is None or not (mine or model.has(subject, SEE, operation.id, last.version)):
                raise Absent(missing)
            if not any(OWN in some for some in mine) and not model.has(subject, OWN, operation.id, last.version):
                missing.add((operation.id, OWN))
            create_in(operation.new_id[:-1])
        case GrantRole() | RevokeRole():
            need((), OWN)
        case GrantPrivileges() | RevokePrivileges():
            if operation.id not in model.objects or not model.shows(subject, operation.id):
                raise Absent(missing)
            given = operation.privileges
            if given is None:
                given = model.grants.get((operation.id, operation.to), frozenset())
            need(operation.id, GRANT, *given)
    return missing


def commit_needs(model: PlainCatalog, operation: CommitTransaction) -> tuple[Privilege, ...]:
    match operation.transaction.WhichOneof("operation"):
        case "overwrite":
            return (WRITE, DROP, CREATE) if model.heads.get(operation.id) else (WRITE,)
        case "append":
            return (WRITE,)
        case _:
            return (ALTER,)


def change_versions(model: PlainCatalog, operation: CommitTransaction | AssertTableVersion) -> None:
    """Commit a transaction that read no version, or version 1; or look whether an assertion holds."""
    path = operation.id
    head = model.heads[path]
    if path in model.moved:
        raise Refused
    if isinstance(operation, AssertTableVersion):
        if operation.version != head:
            raise Refused
        return
    reads = operation.transaction.read_version
    if bool(reads) != bool(head):
        raise Refused
    model.heads[path] = head + 1
    model.published.add(path)


def apply(model: PlainCatalog, subject: Subject, operation: Operation, version: int) -> None:  # noqa: C901 - as above
    """Do it. `version` is the one that the batch makes. Raises `Refused`."""
    match operation:
        case CreateNamespace() | DeclareTable():
            if operation.id in model.objects:
                raise Refused
            model.make(operation.id, subject, version)
        case DropTable():
            drop(model, operation.id, version)
        case DropNamespace():
            for path in [path for path in model.objects if path[:1] == operation.id and len(path) == 2]:
                drop(model, path, version)
            model.objects.discard(operation.id)
            model.end(operation.id)
        case DeregisterTable():
            if operation.id in model.published:
                raise Refused
            model.take(operation.id)
            model.end(operation.id)
        case CommitTransaction() | AssertTableVersion():
            change_versions(model, operation)
        case RenameTable():
            if operation.new_id == operation.id:
                return
            if operation.new_id in model.objects or operation.id in model.published:
                raise Refused
            model.place(operation.new_id, *model.take(operation.id))
            model.moved.add(operation.new_id)
            for to, some in model.end(operation.id).items():
                model.put(operation.new_id, to, some, version)
        case UndropTable():
            last = model.last_dropped(operation.id)
            assert last is not None
            if (operation.id, last) in model.back or operation.new_id in model.objects:
                raise Refused
            model.back.append((operation.id, last))
            model.place(operation.new_id, last.head, None)
            model.moved.add(operation.new_id)
            for to, some in last.grants.items():
                model.put(operation.new_id, to, some, version)
        case GrantPrivileges():
            key = operation.id, operation.to
            model.since.setdefault(key, version)
            model.grants[key] = model.grants.get(key, frozenset()) | operation.privileges
        case RevokePrivileges():
            key = operation.id, operation.to
            held = model.grants.get(key, frozenset())
            left = held - (held if operation.privileges is None else operation.privileges)
            if left:
                model.grants[key] = left
            elif key in model.grants:
                del model.grants[key], model.since[key]
        case GrantRole():
            model.members.add((operation.role, operation.to))
        case RevokeRole():
            model.members.discard((operation.role, operation.to))


def drop(model: PlainCatalog, path: ObjectId, version: int) -> None:
    if model.origin[path] != path or path in model.published:
        raise Refused
    head, _ = model.take(path)
    model.gone.append((path, DroppedOne(model.end(path), head, version - 1)))


def expected(
    model: PlainCatalog, subject: Subject, operations: list[Operation], version: int
) -> tuple[PlainCatalog, set[tuple[int, ObjectId, Privilege]], type[Exception] | None]:
    """The catalog after a batch, what is denied, and the first other failure."""
    work, denied, failure = model.before_a_batch(), set[tuple[int, ObjectId, Privilege]](), None
    for index, operation in enumerate(operations):
        try:
            missing = judge(work, subject, operation)
            denied |= {(index, *each) for each in missing}
            if not denied and failure is None:
                apply(work, subject, operation, version)
        except Absent as error:
            denied |= {(index, *each) for each in error.missing}
            failure = failure or Absent
        except Refused:
            failure = failure or Refused
    work.end_batch()
    return work, denied, failure


def chosen(model: PlainCatalog, subject: Subject, places: list[Slot], version: int) -> list[Operation]:
    """A batch of which more is carried out than of one that is drawn blindly; see `slots`."""
    found: list[Operation] = []
    for number, slot in places:
        tried = ([*found, each] for each in slot)
        allowed = (each for each in tried if not number or expected(model, subject, each, version)[1:] == (set(), None))
        found = next(allowed, found)
    return found or [places[0][1][0]]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(BATCHES)
def test_batches_do_what_the_model_allows(batches: list[tuple[Subject, list[Slot]]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        ground = Guarded(Path(directory) / "root")
        model = PlainCatalog()
        model.put((), principal("root"), frozenset({OWN}), ground.catalog.snapshot().version)
        for subject, operation in BEGINNING:
            model = advance(ground, model, subject, [operation])
        for subject, places in batches:
            operations = chosen(model, subject, places, ground.catalog.snapshot().version + 1)
            check(ground, model := advance(ground, model, subject, operations))
        ground.catalog.close()


def advance(ground: Guarded, model: PlainCatalog, subject: Subject, operations: list[Any]) -> PlainCatalog:
    """Send a batch, compare its verdict, and return what the catalog has to be after it."""
    after, denied, failure = expected(model, subject, operations, ground.catalog.snapshot().version + 1)
    verdict = ground.verdict(subject, *operations)
    if denied:
        assert isinstance(verdict, AccessDenied), (operations, denied, verdict)
        found = {(each["operation_index"], tuple(each["id"]), each["privilege"]) for each in verdict.failures}
        assert found == denied, (subject, operations, denied, verdict.failures)
        return model
    if failure is not None:
        assert isinstance(verdict, LanceNamespaceError), (subject, operations, failure)
        assert not isinstance(verdict, AccessDenied), (subject, operations, verdict)
        if failure is Absent:
            assert isinstance(verdict, TableNotFoundError | NamespaceNotFoundError), (operations, verdict)
        return model
    assert not isinstance(verdict, LanceNamespaceError), (subject, operations, verdict)
    return after


def check(ground: Guarded, model: PlainCatalog) -> None:
    """The catalog has the objects, grants and roles of the model, and judges as that does."""
    snapshot, policy = ground.catalog.snapshot(), ground.policy
    assert {(each.on, each.to): each.privileges for each in policy.grants()} == model.grants
    assert {(each.on, each.to): each.since for each in policy.grants()} == model.since
    assert {(each.role, each.to) for each in policy.memberships()} == model.members
    there: Callable[[ObjectId], bool] = lambda path: bool(snapshot.namespace(path) or snapshot.table(path))  # noqa: E731
    assert {path for path in [(), *NAMESPACES, *TABLES] if there(path)} == model.objects
    for path in TABLES:
        if path in model.objects:
            head = snapshot.head(path)
            assert (0 if head is None else head.version) == model.heads[path]
    for subject in SUBJECTS:
        for path in [(), *NAMESPACES, *TABLES]:
            for privilege in (SEE, DROP, OWN):
                assert policy.allows(subject, privilege, path) is model.has(subject, privilege, path)
