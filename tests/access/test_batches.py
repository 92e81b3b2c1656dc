"""Each operation of a batch needs its privileges, alone and beside others; what is hidden is as what is not there.

A batch ends with an assertion that does not hold: what is allowed fails by that, and so changes nothing.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

import pytest
from lance_namespace.errors import LanceNamespaceError, PermissionDeniedError

from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.operations import Clone, encode_transaction
from namespace_server.access.subjects import Privilege
from namespace_server.attempts import authorizations_of
from namespace_server.directory.committing.group_planner import PendingBatch
from namespace_server.directory.model.errors import AccessDenied, BatchConflict
from namespace_server.directory.model.grant_operations import (
    EnableGrants,
    GrantPrivileges,
    GrantRole,
    RevokePrivileges,
    RevokeRole,
)
from namespace_server.directory.model.limits import Limits
from namespace_server.directory.model.object_ids import ChainKey, ObjectId
from namespace_server.directory.model.operations import (
    AdoptTableVersions,
    AdvanceCursor,
    AlterBatch,
    AssertTableVersion,
    Batch,
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
    IntendedTable,
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
from tests.access.team import ALICE, OPERATOR, Guarded, principal
from tests.directory.tables import rows

SEE, READ, WRITE, ALTER = Privilege.SEE, Privilege.READ, Privilege.WRITE, Privilege.ALTER
CREATE, DROP, REFERENCE = Privilege.CREATE, Privilege.DROP, Privilege.REFERENCE
MAINTAIN, GRANT, OWN = Privilege.MAINTAIN, Privilege.GRANT, Privilege.OWN
Needs = dict[ObjectId, set[Privilege]]
G, H, T, U, PROBE, NEW = ("g",), ("h",), ("g", "t"), ("h", "u"), ("probe",), ("g", "new")
UID, LIMITS = "11111111-2222-4333-8444-555555555555", Limits()
ME = principal("alice")


@dataclass(frozen=True)
class Case:
    """An operation and what it needs. `hides`: the object without which its answer is that of what is not there."""

    make: Callable[[Guarded], Operation]
    needs: Needs
    hides: ObjectId | None = T


def change(name: str) -> Callable[[Guarded], Operation]:
    """A transaction of a kind on the table; what is in it is not looked at before it is judged."""

    def make(team: Guarded) -> Operation:
        message = pb.Transaction(read_version=2, uuid=str(uuid.uuid4()))
        if name == "clone":
            clone = Clone(str(team.root / team.location(list(T))), 2, None, "dev")
            message = encode_transaction(clone, read_version=2, uuid=str(uuid.uuid4()))
            return CommitTransaction(T, "dev", message)
        getattr(message, name).SetInParent()
        return CommitTransaction(T, None, message)

    return make


def made(operation: Operation) -> Callable[[Guarded], Operation]:
    return lambda _: operation


def staged(team: Guarded) -> Operation:
    [operation] = team.operations(team.stage(list(T), rows(9, 10)))
    return operation


def cloning(team: Guarded) -> Operation:
    head = team.catalog.snapshot().head(T)
    assert head is not None
    return CloneTable(("h", "new"), "00000000_h$new", head.location, head.version, head.sha256, UID)


CHANGES: dict[str, frozenset[Privilege]] = {
    **dict.fromkeys(("append", "delete", "update"), frozenset({WRITE})),
    **dict.fromkeys(("data_replacement", "data_overlay", "update_mem_wal_state"), frozenset({WRITE})),
    "overwrite": frozenset({WRITE, DROP, CREATE}),
    "restore": frozenset({WRITE, ALTER}),
    **dict.fromkeys(("merge", "project", "update_config", "update_bases"), frozenset({ALTER})),
    **dict.fromkeys(("rewrite", "create_index", "reserve_fragments"), frozenset({MAINTAIN})),
    "clone": frozenset({REFERENCE, READ}),
}
"""What each operation of a transaction needs on its table."""
CASES: dict[str, Case] = {
    "create_namespace": Case(made(CreateNamespace(NEW, {}, CreateMode.CREATE)), {G: {CREATE}}, G),
    "create_namespace in the root": Case(made(CreateNamespace(("new",), {}, CreateMode.CREATE)), {(): {CREATE}}, None),
    "create_namespace overwrites": Case(
        made(CreateNamespace(G, {}, CreateMode.OVERWRITE)), {(): {CREATE}, G: {DROP}}, None
    ),
    "drop_namespace": Case(made(DropNamespace(G, skip_missing=False, cascade=True)), {G: {DROP}}, G),
    "declare_table": Case(made(DeclareTable(NEW, "00000000_g$new", {})), {G: {CREATE}}, G),
    "clone_table": Case(cloning, {H: {CREATE}, T: {READ}}),
    "register_table": Case(made(RegisterTable(NEW, "elsewhere", {}, overwrite=False)), {(): {OWN}}, None),
    "deregister_table": Case(made(DeregisterTable(T)), {T: {DROP}}),
    "drop_table": Case(made(DropTable(T)), {T: {DROP}}),
    "rename_table inside": Case(made(RenameTable(T, NEW)), {T: {DROP}, G: {CREATE}}),
    "rename_table elsewhere": Case(made(RenameTable(T, ("h", "t"))), {T: {OWN}, H: {CREATE}}),
    "set_table_properties": Case(made(SetTableProperties(T, {}, {}, frozenset(), None, LIMITS)), {T: {ALTER}}),
    "create_table_version": Case(staged, {T: {WRITE}}),
    "delete_table_versions": Case(made(DeleteTableVersions(T, None, ((1, 2),), "00000000_g$t")), {T: {MAINTAIN}}),
    "delete_table_versions of the head": Case(
        made(DeleteTableVersions(T, None, ((0, -1),), "00000000_g$t")), {T: {MAINTAIN, DROP}}
    ),
    "assert_table_version": Case(made(AssertTableVersion(T, None, 2)), {T: {READ}}),
    "create_table_branch": Case(made(CreateBranch(T, "dev", None, None, UID)), {T: {REFERENCE, READ}}),
    "delete_table_branch": Case(made(DeleteBranch(T, "old")), {T: {REFERENCE}}),
    "create_table_tag": Case(
        lambda team: ConfirmTag(T, None, 2, "tag", team.location(list(T)), "", "create_table_tag"), {T: {REFERENCE}}
    ),
    "delete_table_tag": Case(lambda team: DeleteTag(T, "tag", team.location(list(T)), ""), {T: {REFERENCE}}),
    "pin_catalog_version": Case(made(SetPin("mine", None, None, None)), {(): {MAINTAIN}}, None),
    "register_intent": Case(
        made(RegisterIntent(UID, (IntendedTable(T, None, None, 0),), 3_600, None)), {T: {READ}}, None
    ),
    "grant_privileges": Case(
        made(GrantPrivileges("table", T, principal("eve"), frozenset({READ}))), {T: {GRANT, READ}}
    ),
    "revoke_privileges": Case(
        made(RevokePrivileges("table", T, principal("bob"), None)), {T: {GRANT, READ}}
    ),  # which bob has
    "grant_role": Case(made(GrantRole("staff", principal("eve"))), {(): {OWN}}, None),
    "revoke_role": Case(made(RevokeRole("staff", principal("bob"))), {(): {OWN}}, None),
    "enable_grants": Case(made(EnableGrants((principal("eve"),))), {(): {OWN}}, None),
    **{f"commit_transaction: {name}": Case(change(name), {T: set(needs)}) for name, needs in CHANGES.items()},
}
ONE_OF = {"register_intent": {READ, WRITE}, "assert_table_version": {READ, WRITE, ALTER, MAINTAIN, REFERENCE}}
"""Operations for which one of several privileges is enough."""
UNCONDITIONAL = {KeepAnswer, AdoptTableVersions}
"""Made by the server itself."""
OF_ONES_OWN = {RemovePin, AdvanceCursor, DeleteCursor, EndIntent, AlterBatch, UndropTable, UndropNamespace}
"""Judged by whose they are, or were: they have tests of their own."""


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Guarded:
    team = Guarded(tmp_path_factory.mktemp("access") / "root")
    for namespace in (G, H):
        team.make_namespace(*namespace)
    for table in (T, U, PROBE):
        team.make_table(*table)
    team.write(list(T), rows(3, 6))
    team.send(OPERATOR, CreateBranch(T, "old", None, None, UID))
    team.grant(T, principal("bob"), READ)
    return team


def judged(team: Guarded, operation: Operation) -> tuple[str, set[tuple[ObjectId, Privilege]]]:
    """Whether an operation of alice is `allowed`, `denied` or `hidden`, and what is missing."""
    before = team.catalog.snapshot()
    verdict = team.verdict(ALICE, operation, AssertTableVersion(PROBE, None, 99))
    after = team.catalog.snapshot()
    assert after.version == before.version, "a batch that fails changes nothing"
    assert isinstance(verdict, LanceNamespaceError)
    if isinstance(verdict, AccessDenied):
        assert {each["operation_index"] for each in verdict.failures} == {0}
        return "denied", {(tuple(each["id"]), Privilege(each["privilege"])) for each in verdict.failures}
    missing = [each for each in authorizations_of(verdict) if not each.allowed]
    return ("hidden" if missing else "allowed"), {(each.object, Privilege(each.privilege)) for each in missing}


def with_probe(needs: Needs) -> list[tuple[ObjectId, set[Privilege]]]:
    return [*needs.items(), (PROBE, {READ})]


@pytest.mark.parametrize("name", CASES)
def test_an_operation_is_allowed_by_what_it_needs_and_by_nothing_less(team: Guarded, name: str) -> None:
    case = CASES[name]
    operation = case.make(team)
    team.reset(ME, with_probe(case.needs))
    assert judged(team, operation)[0] == "allowed"
    team.reset(ME, with_probe({on: {OWN} for on in case.needs}))
    assert judged(team, operation)[0] == "allowed"
    team.reset(ME, with_probe({(): {OWN}}))
    assert judged(team, operation)[0] == "allowed"
    for on, privileges in case.needs.items():
        for missing in privileges:
            left = {each: set(some) for each, some in case.needs.items()}
            left[on] = (privileges | {SEE}) - {missing}
            team.reset(ME, with_probe(left))
            found, lacks = judged(team, operation)
            assert found == "denied"
            assert (on, missing) in lacks


@pytest.mark.parametrize("name", CASES)
def test_each_single_privilege_suffices_only_where_it_is_all_that_is_needed(team: Guarded, name: str) -> None:
    case = CASES[name]
    operation = case.make(team)
    if len(case.needs) != 1:
        pytest.skip("it needs privileges on several objects, see above")
    [(on, needed)] = case.needs.items()
    for privilege in Privilege:
        team.reset(ME, with_probe({on: {privilege}}))
        suffices = privilege in ONE_OF[name] | {OWN} if name in ONE_OF else needed == {privilege} or privilege is OWN
        assert (judged(team, operation)[0] == "allowed") is suffices, privilege


@pytest.mark.parametrize("name", CASES)
def test_in_a_batch_all_that_is_missing_is_answered_by_operation_and_nothing_is_done(team: Guarded, name: str) -> None:
    case = CASES[name]
    operation = case.make(team)
    team.reset(ME, [(on, {SEE}) for on in {*case.needs, T, U}] + [((), {SEE})])
    before = team.catalog.snapshot().version
    batch = (
        AssertTableVersion(T, None, 2),
        DropTable(U),
        operation,
        SetTableProperties(U, {}, {}, frozenset(), None, LIMITS),
    )
    verdict = team.verdict(ALICE, *batch)
    assert isinstance(verdict, AccessDenied)
    assert isinstance(verdict, PermissionDeniedError)
    assert {each["operation_index"] for each in verdict.failures} == {0, 1, 2, 3}
    assert team.catalog.snapshot().version == before


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.hides])
def test_what_may_not_be_seen_answers_exactly_as_what_is_not_there(team: Guarded, name: str, tmp_path: Path) -> None:
    case = CASES[name]
    operation = case.make(team)
    others = {on: some for on, some in case.needs.items() if on not in {G, T}}
    team.reset(ME, with_probe(others))
    hidden = team.verdict(ALICE, operation)
    absent_from = bare(tmp_path)
    absent_from.reset(ME, with_probe(others))
    absent = absent_from.verdict(ALICE, operation)
    assert isinstance(hidden, LanceNamespaceError)
    assert not isinstance(hidden, AccessDenied)
    assert (type(hidden), str(hidden), hidden.code) == (type(absent), str(absent), absent.code)  # type: ignore[union-attr]


def bare(tmp_path: Path) -> Guarded:
    """A catalog without what is hidden in the other one."""
    team = Guarded(tmp_path / "root")
    team.make_namespace(*H)
    team.make_table(*U)
    team.make_table(*PROBE)
    return team


def test_every_operation_has_a_case() -> None:
    kinds = {
        type(case.make.__closure__[0].cell_contents)
        for case in CASES.values()
        if case.make.__closure__ and not isinstance(case.make.__closure__[0].cell_contents, str)
    }
    kinds |= {CloneTable, ConfirmTag, DeleteTag, CommitTransaction, CreateTableVersion}
    assert kinds | UNCONDITIONAL | OF_ONES_OWN == set(get_args(Operation))


def test_every_operation_of_a_transaction_has_its_needs() -> None:
    fields = {field.name for field in pb.Transaction.DESCRIPTOR.oneofs_by_name["operation"].fields}
    assert fields - set(CHANGES) == {"composite_operation"}, "which this release does not read, and needs `own`"


@pytest.mark.parametrize("version", [2, 99])
def test_an_assertion_tells_the_number_of_the_head_to_nobody_who_may_only_see_the_table(
    team: Guarded, version: int
) -> None:
    for others in ({SEE}, {SEE, DROP, CREATE, GRANT}):
        team.reset(ME, [(T, others)])
        with pytest.raises(AccessDenied) as denied:
            team.send(ALICE, AssertTableVersion(T, None, version))
        assert "2" not in str(denied.value)
        assert [each["privilege"] for each in denied.value.failures] == ["read"]


def test_skipping_what_is_missing_tells_nothing_of_what_is_hidden(team: Guarded) -> None:
    team.reset(ME, [(PROBE, {READ})])
    skipping = DropNamespace(G, skip_missing=True, cascade=True)
    assert isinstance(team.verdict(ALICE, skipping, AssertTableVersion(PROBE, None, 99)), BatchConflict)
    assert team.send(ALICE, skipping).results == ({},)
    assert team.catalog.snapshot().namespace(G) is not None
    team.reset(ME, [((), {CREATE})])
    for mode in (CreateMode.EXIST_OK, CreateMode.OVERWRITE, CreateMode.CREATE):
        error = team.verdict(ALICE, CreateNamespace(G, {}, mode))
        assert str(error) == "Namespace already exists: g"
    team.reset(ME, [(G, {CREATE})])
    assert str(team.verdict(ALICE, DeclareTable(T, "00000000_g$t", {}))) == "Table already exists: g$t"


def test_a_chosen_location_of_a_hidden_table_is_refused_without_its_name(team: Guarded) -> None:
    location = team.location(list(U))
    team.reset(ME, [(G, {CREATE})])
    error = team.verdict(ALICE, DeclareTable(NEW, location, {}, chosen=True))
    assert str(error) == f"table g$new: location {location!r} is or was in use, expected another one"


def test_an_assertion_on_a_hidden_table_whose_head_cannot_be_judged_now_is_on_one_that_is_not_there(
    team: Guarded,
) -> None:
    """Another batch of the group may be about that table."""
    team.reset(ME, [(H, {SEE})])
    snapshot, moving = team.catalog.snapshot(), [(T, None), (U, None)]

    def verdict(table_id: ObjectId, chains: frozenset[ChainKey]) -> str:
        operation = AssertTableVersion(table_id, None, 1)
        batch = Batch(UID, (operation,), UID, None, "alice", subject=ALICE)
        pending = PendingBatch(batch, {}, chains)
        [planned] = team.catalog.committer._planner.plan([pending], snapshot, {}, moving).batches
        return type(planned.verdict).__name__

    assert verdict(U, frozenset({(U, None)})) == "ServiceUnavailableError"
    assert verdict(T, frozenset()) == "TableNotFoundError"


def test_operations_are_judged_on_the_effects_of_those_before(team: Guarded) -> None:
    team.reset(ME, [(G, {CREATE})])
    batch = (
        CreateNamespace(("g", "x"), {}, CreateMode.CREATE),
        DeclareTable(("g", "x", "t"), "00000000_g$x$t", {}),
        SetTableProperties(("g", "x", "t"), {"a": "b"}, {}, frozenset(), None, LIMITS),
        GrantPrivileges("table", ("g", "x", "t"), principal("bob"), frozenset({READ})),
    )
    team.send(ALICE, *batch)
    assert team.owner(("g", "x")) == ["alice"]
    assert team.owner(("g", "x", "t")) == ["alice"]
    team.revoke(("g", "x"), ME, OWN)
    team.revoke(("g", "x", "t"), ME, OWN)
    again = team.verdict(ALICE, replace(batch[2], properties={"c": "d"}))
    assert str(again) == "Table not found: g$x$t does not exist"


@pytest.mark.parametrize(
    "operation",
    [
        lambda namespace: RenameTable(T, (namespace, "t")),
        lambda namespace: RegisterTable((namespace, "t"), "elsewhere", {}, overwrite=False),
        lambda namespace: DeclareTable((namespace, "t"), "00000000_x$t", {}),
        lambda namespace: DeclareTable((namespace, "t"), "00000000_x$t", {}, implicit_namespaces=True),
        lambda namespace: CreateNamespace((namespace, "t"), {}, CreateMode.EXIST_OK),
    ],
    ids=["rename", "register", "declare", "declare with namespaces", "create namespace"],
)
def test_a_hidden_namespace_is_no_other_target_than_one_that_is_not_there(
    team: Guarded, operation: Callable[[str], Operation]
) -> None:
    team.reset(ME, [(T, {DROP})])
    hidden, absent = (team.verdict(ALICE, operation(name)) for name in ("h", "zz"))
    assert isinstance(hidden, LanceNamespaceError)
    assert (type(hidden), str(hidden).replace("namespace h", "namespace zz").replace("h$t", "zz$t")) == (
        type(absent),
        str(absent),
    )
    assert getattr(hidden, "failures", None) == getattr(absent, "failures", None)


def test_a_base_path_needs_read_on_the_table_that_it_leads_into_or_on_the_catalog(team: Guarded) -> None:
    def missing(path: str) -> set[tuple[ObjectId, Privilege]]:
        message = pb.Transaction(read_version=2, uuid=str(uuid.uuid4()))
        message.update_bases.new_bases.add(id=7, path=path)
        found, lacks = judged(team, CommitTransaction(T, None, message))
        assert (found == "denied") is bool(lacks)
        return lacks

    table = f"{team.root}/{team.location(list(U))}"
    team.reset(ME, with_probe({T: {ALTER}}))
    for path in (table, f"file://{table}", f"{table}/data", str(team.root), "/elsewhere", f"{table}x"):
        assert missing(path) == {((), READ)}, "what is hidden is no table there"
    team.reset(ME, with_probe({T: {ALTER}, U: {SEE}}))
    assert missing(table) == {(U, READ)}
    assert missing(f"{table}/tree/dev") == {(U, READ)}
    assert missing(f"{table}x") == {((), READ)}
    team.reset(ME, with_probe({T: {ALTER}, U: {READ}}))
    assert missing(table) == set()
    assert missing(str(team.root)) == {((), READ)}
    own = f"{team.root}/{team.location(list(T))}"
    assert missing(own) == {(T, READ)}
    team.send(OPERATOR, DeclareTable(("h", "nested"), f"archive/{team.location(list(U))}", {}))
    nested = f"{team.root}/archive/{team.location(list(U))}"
    assert missing(nested) == {((), READ)}, "the place of a hidden table is not that of one whose place is a part of it"
    team.reset(ME, with_probe({T: {ALTER}, (): {READ}}))
    assert missing(str(team.root)) == missing("/elsewhere") == missing(table) == set()


def test_what_an_undrop_lacks_is_told_beside_other_denials(tmp_path: Path) -> None:
    """It is known once the catalog version before the drop was read, which is not done before a batch is judged."""
    ground = Guarded(tmp_path / "root")
    ground.make_namespace("g")
    ground.call("declare_table", id=["g", "t"])
    ground.grant(("g", "t"), principal("alice"), Privilege.SEE)
    ground.call("drop_table", id=["g", "t"])
    revoke = RevokePrivileges("catalog", (), principal("bob"), None)
    denied = ground.verdict(ALICE, UndropTable(("g", "t"), ("g", "t")), revoke)
    assert isinstance(denied, AccessDenied)
    assert [(each["operation_index"], each["privilege"]) for each in denied.failures] == [(0, "own"), (1, "grant")]
