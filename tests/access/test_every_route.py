"""Each privilege, alone, on each operation of the OpenAPI document: what does not suffice is refused."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import httpx
import pytest

from namespace_server.access.requirements import REQUIREMENTS
from namespace_server.access.subjects import Privilege
from namespace_server.rest.routers import ROUTES
from table_data.operations import CHANGES
from tests.access.granting import ADMIN, as_principal, granted, keys, switch_on
from tests.audit.lines import log_in
from tests.rest.promised import NAMESPACE, REQUESTS, Scene
from tests.rest.test_openapi import OPERATIONS
from tests.running import running

SINGLE = tuple(each for each in Privilege if each is not Privilege.OWN)
SEE, READ, WRITE, ALTER, CREATE, DROP, REFERENCE, MAINTAIN, GRANT = SINGLE
ANYBODY = frozenset[Privilege]()
SHOWN = frozenset({SEE})

NEEDS: dict[str, frozenset[Privilege]] = {
    "CreateNamespace": frozenset({CREATE}),
    "DropNamespace": frozenset({DROP}),
    "UndropNamespace": frozenset({Privilege.OWN}),
    "DeclareTable": frozenset({CREATE}),
    "CloneTable": frozenset({CREATE, READ}),
    "RegisterTable": frozenset({Privilege.OWN}),
    "DeregisterTable": frozenset({DROP}),
    "RenameTable": frozenset({DROP, CREATE}),
    "DropTable": frozenset({DROP}),
    "UndropTable": frozenset({Privilege.OWN}),
    "PinCatalogVersion": frozenset({MAINTAIN}),
    "UnpinCatalogVersion": frozenset({MAINTAIN}),
    "EnableGrants": frozenset({Privilege.OWN}),
    "ChangeGrants": frozenset({Privilege.OWN}),
    "AdvanceCursor": ANYBODY,
    "DeleteCursor": frozenset({MAINTAIN}),
    "EndIntent": ANYBODY,  # that of another one is answered as one that has ended
    "CreateTableVersion": frozenset({WRITE}),
    "BatchCreateTableVersions": frozenset({WRITE}),
    "BatchDeleteTableVersions": frozenset({MAINTAIN}),
    "BatchCommitTables": frozenset({CREATE}),
    "CreateTableTag": frozenset({REFERENCE, READ}),
    "UpdateTableTag": frozenset({REFERENCE, READ}),
    "DeleteTableTag": frozenset({REFERENCE}),
    "CreateTableBranch": frozenset({REFERENCE, READ}),
    "DeleteTableBranch": frozenset({REFERENCE}),
    "AlterTransaction": frozenset({READ, WRITE}),
    "CreateTable": frozenset({CREATE}),
    "StageRows": frozenset({CREATE}),
    "StageUpdate": frozenset({READ, WRITE}),
    "StageDelete": frozenset({READ, WRITE}),
    "StageMerge": frozenset({READ, WRITE}),
    "InsertIntoTable": frozenset({WRITE}),
    "CreateMultipartWrite": frozenset({WRITE}),
    "CompleteMultipartWrite": frozenset({WRITE}),
    "AbortMultipartWrite": frozenset({WRITE}),
    "MergeInsertIntoTable": frozenset({READ, WRITE}),
    "UpdateTable": frozenset({READ, WRITE}),
    "DeleteFromTable": frozenset({READ, WRITE}),
    "CherryPickTableBranch": frozenset({READ, WRITE}),
    "RestoreTable": frozenset({WRITE, ALTER}),
    **dict.fromkeys(
        (
            "UpdateTableSchemaMetadata",
            "UpdateFieldMetadata",
            "AlterTableDropColumns",
        ),
        frozenset({ALTER}),
    ),
    **dict.fromkeys(("AlterTableAddColumns", "AlterTableAlterColumns"), frozenset({READ, ALTER})),
    **dict.fromkeys(
        ("CreateTableIndex", "CreateTableScalarIndex", "DropTableIndex", "MaintainTable"), frozenset({MAINTAIN})
    ),
    **dict.fromkeys(
        ("ListNamespaces", "DescribeNamespace", "NamespaceExists", "ListTables", "DescribeTable", "TableExists"), SHOWN
    ),
    "DescribeCatalogFigures": SHOWN,
    **dict.fromkeys(
        (
            "ListTableVersions",
            "DescribeTableVersion",
            "ListTableFragments",
            "ListTableTags",
            "GetTableTagVersion",
            "ListTableBranches",
            "DescribeTransaction",
            "QueryTable",
            "ReadTableChanges",
            "CountTableRows",
            "ExplainTableQueryPlan",
            "AnalyzeTableQueryPlan",
            "GetTableStats",
            "ListTableIndices",
            "DescribeTableIndexStats",
            "FetchTableBlobs",
            "ReadTableBlob",
            "FindTableBlob",
            "DiffTableBranch",
        ),
        frozenset({READ}),
    ),
    **dict.fromkeys(("ListAuditedVersions", "ListRefusedAttempts"), frozenset({Privilege.GRANT})),
    **dict.fromkeys(
        (
            "ListAllTables",
            "WhoAmI",
            "DescribeCatalog",
            "ListCatalogVersions",
            "ListDroppedTables",
            "FindTables",
            "ListCatalogPins",
            "ListIntents",
            "ListCursors",
            "ListGrants",
            "CheckPrivilege",
            "ListCatalogEvents",
            "DescribeCatalogVersion",
            "HealthLive",
            "HealthReady",
        ),
        ANYBODY,
    ),
}
"""What each operation needs on the catalog. Those of `ANYBODY` tell what the caller may see."""
OF_THE_NAMESPACE = frozenset({"ListNamespaces", "DescribeNamespace", "NamespaceExists", "ListTables"})
"""Who may create sees the namespace once something in it is its own, by an operation before."""
IN_FORCE = frozenset({"EnableGrants"})
"""What is refused to who may do it: grants are in force already."""
OF_ITS_PRINCIPAL = frozenset({"CompleteMultipartWrite", "AbortMultipartWrite"})
"""What another one, who may write to the table, has begun, and is answered as absent."""
ANY_OF = {"RegisterIntent": frozenset({READ, WRITE})}
"""Operations that need one of several privileges."""


def principal_with(privileges: frozenset[Privilege]) -> str:
    return "has-" + ("+".join(sorted(privileges)) or "nothing")


GROUPS = {frozenset({each}) for each in SINGLE} | {frozenset(pair) for pair in combinations(SINGLE, 2)}
GROUPS |= {frozenset({Privilege.OWN})}


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A catalog on which each principal has one or two privileges, in the name of its administrator."""
    root: Path = tmp_path_factory.mktemp("routes") / "root"
    names = [ADMIN, *map(principal_with, GROUPS)]
    with (
        running(root, keys(*names), log_in(root.with_name("audit"))) as url,
        httpx.Client(base_url=url, timeout=60, headers=as_principal(ADMIN), verify=False) as http,
    ):
        made = Scene(http, root)
        made.ask(f"/v1/namespace/{NAMESPACE}/create", {})
        switch_on(root, *(granted("catalog", "", principal_with(each), *each) for each in GROUPS))
        yield made


def suffices(name: str, held: frozenset[Privilege]) -> bool:
    if name in ANY_OF:
        return bool(ANY_OF[name] & held)
    needed = NEEDS[name]
    return needed <= held or Privilege.OWN in held or (needed == SHOWN and held != {CREATE})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "path", "name"),
    [(method, path, operation["operationId"]) for (method, path), operation in OPERATIONS.items()],
    ids=[operation["operationId"] for operation in OPERATIONS.values()],
)
def test_each_privilege_alone(scene: Scene, method: str, path: str, name: str) -> None:
    asked = REQUESTS[name](scene, f"{name.lower()}-1")

    def send(held: frozenset[Privilege]) -> httpx.Response:
        return asked.send(scene.http, method, path, as_principal(principal_with(held)))

    for privilege in SINGLE:
        held = frozenset({privilege})
        if suffices(name, held) or (privilege is CREATE and name in OF_THE_NAMESPACE):
            continue
        answer = send(held)
        hidden = answer.status_code == 404 and privilege is CREATE  # it shows nothing of what others have
        hidden = hidden or (answer.status_code == 404 and name.startswith(("Undrop", "Unpin", "DeleteCursor")))
        assert answer.status_code == 403 or hidden, (privilege, answer.status_code, answer.text)
    needed = min((group for group in GROUPS if suffices(name, group)), key=lambda group: (len(group), sorted(group)))
    answer = send(needed)
    expected = {400} if name in IN_FORCE else {404} if name in OF_ITS_PRINCIPAL else {200, 204, 206}
    assert answer.status_code in expected, (sorted(needed), answer.status_code, answer.text)


def test_every_route_declares_what_its_caller_needs() -> None:
    for route in ROUTES:
        assert route.requirement.rule in {"public", "shown", "granted", "planned", "refused"}, route.operation
        assert (route.requirement.rule == "granted") == bool(route.requirement.privileges), route.operation
    of_jobs = CHANGES.keys() - {route.operation for route in ROUTES}
    assert of_jobs == {"compact_table", "optimize_indices", "reserve_fragments"}
    described = {"describe_table_in_lance_types"}  # the work of a route for requests in another dialect
    known = {route.operation for route in ROUTES} | of_jobs | described
    assert set(REQUIREMENTS) <= known, "a line without a route"
    assert of_jobs <= REQUIREMENTS.keys()


def test_every_operation_of_the_document_is_judged_here() -> None:
    assert {operation["operationId"] for operation in OPERATIONS.values()} == NEEDS.keys() | ANY_OF.keys()
