"""No sequence of changes lets a caller see or change what a plain reading of all grants forbids.

The model holds objects and grants in dictionaries, and judges by walking over them. After each change what each caller
is answered is compared with it: lists, descriptions, and lists at earlier catalog versions.
"""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lance_namespace.errors import (
    InternalError,
    LanceNamespaceError,
    NamespaceNotFoundError,
    PermissionDeniedError,
    TableNotFoundError,
    TableVersionNotFoundError,
)

from namespace_server.access.subjects import Grantee, Privilege, Subject
from namespace_server.directory.model.grant_operations import (
    EnableGrants,
    GrantOperation,
    GrantPrivileges,
    GrantRole,
    RevokePrivileges,
)
from namespace_server.directory.model.object_ids import ObjectId
from namespace_server.directory.model.operations import Batch
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.directory.planning.plan_builder import Plan

ROOT: ObjectId = ()
NAMESPACES: list[ObjectId] = [("a",), ("b",), ("a", "n")]
TABLES: list[ObjectId] = [(*parent, name) for parent in NAMESPACES for name in ("t", "u")]
BOSS, ANN, BOB = Subject("boss"), Subject("ann"), Subject("bob", frozenset({"staff"}))
SUBJECTS = [BOSS, ANN, BOB]
TO = [Grantee("principal", "ann"), Grantee("principal", "bob"), Grantee("role", "staff"), Grantee("role", "team")]
GRANTED = list(Privilege)
_ROLES = {ANN: ["team", "everyone"], BOB: ["staff", "everyone"], BOSS: ["everyone"]}


@dataclass(frozen=True)
class Step:
    """A change: what is done, in whose name, to which object, and the rest of it."""

    what: str
    who: Subject
    on: ObjectId
    other: ObjectId = ()
    to: Grantee = TO[0]
    privileges: frozenset[Privilege] = frozenset()


_WHO = st.sampled_from([BOSS, BOSS, ANN, BOB])
_PRIVILEGES = st.frozensets(st.sampled_from(GRANTED), min_size=1, max_size=2)
STEPS = st.one_of(
    st.builds(Step, st.just("create_namespace"), _WHO, st.sampled_from(NAMESPACES)),
    st.builds(Step, st.just("declare_table"), _WHO, st.sampled_from(TABLES)),
    st.builds(Step, st.sampled_from(["drop_table", "undrop_table"]), _WHO, st.sampled_from(TABLES)),
    st.builds(Step, st.just("drop_namespace"), _WHO, st.sampled_from(NAMESPACES)),
    st.builds(Step, st.just("rename_table"), _WHO, st.sampled_from(TABLES), st.sampled_from(TABLES)).filter(
        lambda step: step.on != step.other
    ),
    st.builds(
        Step,
        st.sampled_from(["grant", "grant", "revoke"]),
        _WHO,
        st.sampled_from([ROOT, *NAMESPACES, *TABLES]),
        st.just(ROOT),
        st.sampled_from(TO),
        _PRIVILEGES,
    ),
    st.builds(Step, st.just("two"), _WHO, st.sampled_from(TABLES[:3]), st.sampled_from(TABLES[3:])),
)


@dataclass
class Held:
    """The privileges of a grantee on one object, and since which catalog version."""

    privileges: set[Privilege]
    since: int


@dataclass
class Thing:
    """A namespace or a table, as long as it is there, and the grants on it."""

    is_table: bool
    grants: dict[Grantee, Held] = field(default_factory=dict)


@dataclass
class Gone:
    """A dropped table: its grants, and the catalog version before."""

    thing: Thing
    version: int


class Model:
    """All objects and grants, read from the beginning each time."""

    def __init__(self) -> None:
        self.things: dict[ObjectId, Thing] = {ROOT: Thing(False)}
        self.gone: dict[ObjectId, list[Gone]] = {}
        self.earlier: dict[int, dict[ObjectId, Thing]] = {}

    @staticmethod
    def _grantees(who: Subject) -> list[Grantee]:
        return [Grantee("principal", who.principal or ""), *(Grantee("role", role) for role in _ROLES[who])]

    def allows(self, who: Subject, privilege: Privilege, on: ObjectId, at: int | None = None) -> bool:
        for depth in range(len(on) + 1):
            thing = self.things.get(on[:depth])
            for grantee in self._grantees(who) if thing is not None else ():
                held = thing.grants.get(grantee) if thing is not None else None
                if held is None or (at is not None and depth and held.since > at):
                    continue
                if {privilege, Privilege.OWN} & held.privileges:
                    return True
                if privilege is Privilege.SEE and (depth == len(on) or held.privileges != {Privilege.CREATE}):
                    return True
        return False

    def shows(self, who: Subject, on: ObjectId) -> bool:
        if self.allows(who, Privilege.SEE, on):
            return True
        below = (each for each in self.things if each[: len(on)] == on)
        return any(self.allows(who, Privilege.SEE, each) for each in below) or on == ROOT

    def tables(self, who: Subject) -> list[ObjectId]:
        found = (each for each, thing in self.things.items() if thing.is_table)
        return sorted(each for each in found if self.allows(who, Privilege.SEE, each))

    def tables_at(self, who: Subject, version: int) -> list[ObjectId]:
        """Tables of an earlier version that may be seen, as what they are today, or by grants of then.

        Lists lead to those whose namespaces show something today.
        """
        found = []
        for name, thing in self.earlier[version].items():
            now = next((each for each, other in self.things.items() if other is thing), None)
            if not thing.is_table:
                continue
            is_seen = (
                self.allows(who, Privilege.SEE, now)
                if now is not None
                else self._allowed_of_gone(who, Privilege.SEE, name, version)
            )
            is_led_to = all(self.shows(who, name[:depth]) for depth in range(1, len(name)))
            found += [name] if is_seen and is_led_to else []
        return sorted(found)

    def _allowed_of_gone(self, who: Subject, privilege: Privilege, name: ObjectId, version: int) -> bool:
        return self.allows(who, privilege, name, version)

    def may(self, step: Step) -> bool:
        """Whether a step is allowed, and possible."""
        who, on, things = step.who, step.on, self.things
        match step.what:
            case "create_namespace" | "declare_table":
                return self._may_create(who, on)
            case "drop_table":
                return on in things and self.allows(who, Privilege.DROP, on)
            case "drop_namespace":
                return on in things and self.allows(who, Privilege.DROP, on)
            case "rename_table":
                needed = Privilege.DROP if on[:-1] == step.other[:-1] else Privilege.OWN
                is_there = on in things and self.allows(who, needed, on)
                return is_there and self._may_create(who, step.other)
            case "undrop_table":
                if not self.gone.get(on):
                    return False
                gone = self.gone[on][-1]
                held = [gone.thing.grants[each] for each in self._grantees(who) if each in gone.thing.grants]
                owned = any(Privilege.OWN in each.privileges for each in held)
                owned = owned or self.allows(who, Privilege.OWN, on, gone.version)
                return owned and self._may_create(who, on)
            case "grant" | "revoke":
                if on not in things:
                    return False
                return all(self.allows(who, each, on) for each in (Privilege.GRANT, *step.privileges))
            case "two":
                return (
                    self._may_create(who, on) and step.other in things and self.allows(who, Privilege.DROP, step.other)
                )
        raise AssertionError(step.what)

    def _may_create(self, who: Subject, on: ObjectId) -> bool:
        parent = self.things.get(on[:-1])
        is_place = parent is not None and not parent.is_table and on not in self.things
        return is_place and self.allows(who, Privilege.CREATE, on[:-1])

    def do(self, step: Step, version: int) -> None:
        """Note what a step has done, in a catalog version."""
        on, things = step.on, self.things
        match step.what:
            case "create_namespace" | "declare_table":
                self._create(step, version)
            case "drop_table":
                self._drop(on, version)
            case "drop_namespace":
                for each in [name for name in things if name[: len(on)] == on]:
                    self._drop(each, version)
            case "rename_table":
                thing = things.pop(on)
                for held in thing.grants.values():
                    held.since = version
                things[step.other] = thing
            case "undrop_table":
                thing = self.gone[on].pop().thing
                for held in thing.grants.values():
                    held.since = version
                things[on] = thing
            case "grant":
                held = things[on].grants.setdefault(step.to, Held(set(), version))
                held.privileges |= step.privileges
            case "revoke":
                held_before = things[on].grants.get(step.to)
                if held_before is not None:
                    held_before.privileges -= step.privileges
                    if not held_before.privileges:
                        del things[on].grants[step.to]
            case "two":
                self._create(Step("declare_table", step.who, on), version)
                things.pop(step.other)

    def _create(self, step: Step, version: int) -> None:
        owner = {Grantee("principal", step.who.principal or ""): Held({Privilege.OWN}, version)}
        self.things[step.on] = Thing(step.what == "declare_table", owner)

    def _drop(self, name: ObjectId, version: int) -> None:
        thing = self.things.pop(name)
        if thing.is_table:
            self.gone.setdefault(name, []).append(Gone(thing, version - 1))

    def remember(self, version: int) -> None:
        self.earlier[version] = dict(self.things)


class Catalog:
    """A real catalog with grants in force."""

    def __init__(self, root: Path) -> None:
        self.namespace = DirectoryNamespace(root=str(root), durability="none", sweep_interval_seconds="0")

    def commit(self, batch: Batch) -> Exception | None:
        [pending] = self.namespace.catalog.commit_batches([batch])
        if isinstance(pending.verdict, Plan):
            return None
        assert isinstance(pending.verdict, LanceNamespaceError)
        assert not isinstance(pending.verdict, InternalError), pending.verdict
        return pending.verdict

    def change(self, who: Subject | None, *operations: GrantOperation) -> Exception | None:
        name = str(uuid.uuid4())
        principal = None if who is None else who.principal
        return self.commit(Batch(name, operations, name, principal=principal, subject=who))

    def do(self, step: Step) -> Exception | None:
        on = list(step.on)
        match step.what:
            case "grant":
                return self.change(step.who, GrantPrivileges(_kind(step.on), step.on, step.to, step.privileges))
            case "revoke":
                return self.change(step.who, RevokePrivileges(_kind(step.on), step.on, step.to, step.privileges))
            case "two":
                operations = [{"declare_table": {"id": on}}, {"deregister_table": {"id": list(step.other)}}]
                return self._call(step.who, "batch_commit_tables", {"operations": operations})
            case "drop_namespace":
                return self._call(step.who, step.what, {"id": on, "behavior": "Cascade"})
            case "rename_table":
                *place, name = step.other
                return self._call(step.who, step.what, {"id": on, "new_namespace_id": place, "new_table_name": name})
        return self._call(step.who, step.what, {"id": on})

    def _call(self, who: Subject, operation: str, request: dict[str, Any]) -> Exception | None:
        return self.commit(self.namespace.prepare(operation, request, principal=who.principal, subject=who).batch)

    @property
    def version(self) -> int:
        return self.namespace.newest().version

    def tables(self, who: Subject, at: int | None = None) -> list[ObjectId]:
        """The ids of all tables, by pages of two."""
        found: list[str] = []
        token: str | None = None
        while True:
            request = {"limit": 2, **({} if token is None else {"page_token": token})}
            page: Any = self.namespace.read("list_all_tables", request, subject=who, at=at).body
            found += page["tables"]
            token = page.get("page_token")
            assert token is None or len(page["tables"]) == 2
            if token is None:
                return sorted(tuple(each.split("$")) for each in found)


def _kind(on: ObjectId) -> Any:
    return "catalog" if not on else "table" if on in TABLES else "namespace"


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("model")


def check(catalog: Catalog, model: Model, moments: Sequence[int]) -> None:
    """Each caller is answered what the model allows, about each object that ever had a name."""
    read = catalog.namespace.read
    for who in SUBJECTS:
        assert catalog.tables(who) == model.tables(who), who
        for name in [ROOT, *NAMESPACES]:
            thing = model.things.get(name)
            if thing is None or not model.shows(who, name):
                with pytest.raises(NamespaceNotFoundError):
                    read("list_tables", {"id": list(name)}, subject=who)
                continue
            below: Any = read("list_namespaces", {"id": list(name)}, subject=who).body
            wanted = [each[-1] for each in NAMESPACES if each[:-1] == name and each in model.things]
            assert below["namespaces"] == [each for each in sorted(wanted) if model.shows(who, (*name, each))]
        for name in TABLES:
            if name not in model.things or not model.allows(who, Privilege.SEE, name):
                expected: type[Exception] | None = TableNotFoundError
            elif model.allows(who, Privilege.READ, name):
                expected = TableVersionNotFoundError  # it has none yet
            else:
                expected = PermissionDeniedError
            with pytest.raises(expected):
                read("describe_table_version", {"id": list(name)}, subject=who)
        for moment in moments:
            assert catalog.tables(who, at=moment) == model.tables_at(who, moment), (who, moment)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.lists(STEPS, min_size=5, max_size=30))
def test_each_answer_is_that_of_the_model(places: Path, steps: list[Step]) -> None:
    catalog, model = Catalog(Path(tempfile.mkdtemp(dir=places))), Model()
    try:
        boss = Grantee("principal", "boss")
        assert catalog.change(None, EnableGrants((boss,)), GrantRole("team", Grantee("principal", "ann"))) is None
        model.things[ROOT].grants[boss] = Held({Privilege.OWN}, 0)
        begin = [Step("create_namespace", BOSS, name) for name in NAMESPACES]
        for step in [*begin, *(Step("declare_table", BOSS, name) for name in TABLES[::2]), *steps]:
            before = catalog.version
            is_allowed = model.may(step)
            error = catalog.do(step)
            assert (error is None) == is_allowed, (step, error)
            after = catalog.version
            if is_allowed:
                model.do(step, after)
            else:
                assert after == before, step
            model.remember(after)
        check(catalog, model, sorted(model.earlier)[-6:])
    finally:
        catalog.namespace.close()
