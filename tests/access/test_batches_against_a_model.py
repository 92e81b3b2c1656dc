"""No sequence of batches does what a plain model of grants forbids, or leaves other grants than the model's."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lance_namespace.errors import LanceNamespaceError, NamespaceNotFoundError, TableNotFoundError

from namespace_server.access.subjects import EVERYONE, Grantee, Privilege, Subject
from namespace_server.directory.model.errors import AccessDenied
from namespace_server.directory.model.grant_operations import GrantPrivileges, GrantRole, RevokePrivileges, RevokeRole
from namespace_server.directory.model.limits import Limits
from namespace_server.directory.model.object_ids import ObjectId
from namespace_server.directory.model.operations import (
    CreateMode,
    CreateNamespace,
    DeclareTable,
    DropNamespace,
    DropTable,
    Operation,
    RenameTable,
    SetTableProperties,
    UndropTable,
)
from tests.access.team import Guarded, principal, role

SEE, ALTER, CREATE, DROP = Privilege.SEE, Privilege.ALTER, Privilege.CREATE, Privilege.DROP
GRANT, OWN = Privilege.GRANT, Privilege.OWN
NAMESPACES: list[ObjectId] = [("a",), ("b",)]
TABLES: list[ObjectId] = [("a", "t"), ("a", "u"), ("b", "t")]
SUBJECTS = [Subject("alice"), Subject("bob"), Subject("carl", frozenset({"staff"})), Subject(None), Subject("root")]
GRANTEES = [principal("alice"), principal("bob"), role("staff"), role("editors"), EVERYONE]
_LOCATIONS = itertools.count(1)

SUBJECT = st.sampled_from([*SUBJECTS, Subject("root")])
TABLE, NAMESPACE = st.sampled_from(TABLES), st.sampled_from(NAMESPACES)
SOME = st.frozensets(st.sampled_from([SEE, ALTER, CREATE, DROP, GRANT, OWN]), min_size=1, max_size=2)
ON = st.sampled_from([(), *NAMESPACES, *TABLES])


def kind_of(on: ObjectId) -> Any:
    return ("catalog", "namespace", "table")[len(on)]


OPERATION: st.SearchStrategy[Any] = st.one_of(
    st.builds(lambda on: CreateNamespace(on, {}, CreateMode.CREATE), NAMESPACE),
    st.builds(lambda on: DeclareTable(on, f"{next(_LOCATIONS):08x}_{'$'.join(on)}", {}), TABLE),
    st.builds(DropTable, TABLE),
    st.builds(lambda on: DropNamespace(on, skip_missing=False, cascade=True), NAMESPACE),
    st.builds(RenameTable, TABLE, TABLE),
    st.builds(UndropTable, TABLE, TABLE),
    st.builds(lambda on: SetTableProperties(on, None, {"k": "v"}, frozenset(), None, Limits()), TABLE),
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
    (Subject("carl", frozenset({"staff"})), DeclareTable(("b", "t"), "00000000_b$t", {})),
]
BATCHES = st.lists(st.tuples(SUBJECT, st.lists(OPERATION, min_size=1, max_size=3)), min_size=4, max_size=14)


@dataclass
class PlainCatalog:
    """Objects, grants and roles, and dropped tables: each with the grants that it had and the version before."""

    objects: set[ObjectId] = field(default_factory=lambda: {()})
    grants: dict[tuple[ObjectId, Grantee], frozenset[Privilege]] = field(default_factory=dict)
    since: dict[tuple[ObjectId, Grantee], int] = field(default_factory=dict)
    members: set[tuple[str, Grantee]] = field(default_factory=set)
    dropped: dict[ObjectId, tuple[dict[Grantee, frozenset[Privilege]], int]] = field(default_factory=dict)

    def copy(self) -> PlainCatalog:
        return PlainCatalog(
            set(self.objects), dict(self.grants), dict(self.since), set(self.members), dict(self.dropped)
        )

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
        case DropNamespace():
            if operation.id not in model.objects or not model.shows(subject, operation.id):
                raise Absent(missing)
            need(operation.id, DROP)
        case RenameTable():
            table(operation.id, DROP if operation.id[:-1] == operation.new_id[:-1] else OWN)
            create_in(operation.new_id[:-1])
        case UndropTable():
            saved, version = model.dropped.get(operation.id, ({}, 0))
            mine = [some for to, some in saved.items() if to in model.grantees(subject)]
            if operation.id not in model.dropped or not (mine or model.has(subject, SEE, operation.id, version)):
                raise Absent(missing)
            if not any(OWN in some for some in mine) and not model.has(subject, OWN, operation.id, version):
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
        case RenameTable():
            if operation.new_id == operation.id:
                return
            if operation.new_id in model.objects:
                raise Refused
            model.objects.remove(operation.id)
            model.objects.add(operation.new_id)
            for to, some in model.end(operation.id).items():
                model.put(operation.new_id, to, some, version)
        case UndropTable():
            if operation.new_id in model.objects:
                raise Refused
            saved, _ = model.dropped.pop(operation.id)
            model.objects.add(operation.new_id)
            for to, some in saved.items():
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
    model.objects.remove(path)
    model.dropped[path] = model.end(path), version - 1


def expected(
    model: PlainCatalog, subject: Subject, operations: list[Operation], version: int
) -> tuple[PlainCatalog, set[tuple[int, ObjectId, Privilege]], type[Exception] | None]:
    """The catalog after a batch, what is denied, and the first other failure."""
    work, denied, failure = model.copy(), set[tuple[int, ObjectId, Privilege]](), None
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
    return work, denied, failure


def undrops_alone(operations: list[Operation]) -> bool:
    """What a batch drops it cannot bring back, nor drop what it brought back: such batches are left to other tests."""
    kinds = {type(each) for each in operations}
    return UndropTable not in kinds or len(operations) == 1


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(BATCHES)
def test_batches_do_what_the_model_allows(batches: list[tuple[Subject, list[Any]]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        ground = Guarded(Path(directory) / "root")
        model = PlainCatalog()
        model.put((), principal("root"), frozenset({OWN}), ground.catalog.snapshot().version)
        for subject, operation in BEGINNING:
            model = advance(ground, model, subject, [operation])
        for subject, operations in batches:
            if undrops_alone(operations):
                check(ground, model := advance(ground, model, subject, operations))
        ground.catalog.close()


def advance(ground: Guarded, model: PlainCatalog, subject: Subject, operations: list[Any]) -> PlainCatalog:
    """Send a batch, compare its verdict, and return what the catalog has to be after it."""
    after, denied, failure = expected(model, subject, operations, ground.catalog.snapshot().version + 1)
    verdict = ground.verdict(subject, *operations)
    if denied:
        assert isinstance(verdict, AccessDenied), (operations, denied, verdict)
        found = {(each["operation_index"], tuple(each["id"]), each["privilege"]) for each in verdict.failures}
        assert found == denied, (operations, verdict)
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
    for subject in SUBJECTS:
        for path in [(), *NAMESPACES, *TABLES]:
            for privilege in (SEE, DROP, OWN):
                assert policy.allows(subject, privilege, path) is model.has(subject, privilege, path)
