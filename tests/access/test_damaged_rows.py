"""Rows that grant, put into `__manifest` by a stock writer: what is damaged opens nothing, and stops nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import orjson
import pyarrow as pa
import pytest
from lance_namespace.errors import LanceNamespaceError

from namespace_server.access.grants import ACCESS_ID, GRANT_PREFIX, MEMBERSHIP_PREFIX, grant_id, membership_id
from namespace_server.access.subjects import Grantee, Privilege, Subject
from namespace_server.directory.manifest_table.rows import ROW_SCHEMA
from namespace_server.directory.model.operations import CreateMode, CreateNamespace
from tests.access.team import ALICE, ROOT, Guarded, principal

EVE = Subject("eve")
TO_EVE = Grantee("principal", "eve")
ALL_OF_IT = {
    "state": "grant",
    "kind": "catalog",
    "on": [],
    "to": ["principal", "eve"],
    "since": 0,
    "privileges": ["own"],
}
ON_CATALOG = grant_id((), TO_EVE)
ON_G = grant_id(("g",), TO_EVE)


@pytest.fixture
def team(tmp_path: Path) -> Guarded:
    team = Guarded(tmp_path / "root")
    team.make_namespace("g")
    team.make_table("g", "t")
    team.grant(("g", "t"), principal("alice"), Privilege.READ)
    return team


def append(team: Guarded, *rows: tuple[str, str, str | None, Any]) -> None:
    """What a stock writer does that knows the table alone: object id, type, location, metadata."""
    metadata = [row[3] if isinstance(row[3], str | None) else orjson.dumps(row[3]).decode() for row in rows]
    columns = [
        [row[0] for row in rows],
        [row[1] for row in rows],
        [row[2] for row in rows],
        metadata,
        [None] * len(rows),
    ]
    table = pa.Table.from_arrays(
        [pa.array(values, field.type) for values, field in zip(columns, ROW_SCHEMA, strict=True)], schema=ROW_SCHEMA
    )
    lance.write_dataset(table, team.root / "__manifest", mode="append")


def check_closed(team: Guarded) -> None:
    """Grants are in force as before, for a process that follows and for one that begins."""
    for each in (team, team.again()):
        each.catalog.snapshot()
        assert each.policy.allows(ALICE, Privilege.READ, ("g", "t"))
        for privilege in Privilege:
            for on in ((), ("g",), ("g", "t")):
                assert not each.policy.allows(EVE, privilege, on), (privilege, on)
        with pytest.raises(LanceNamespaceError):
            each.namespace.read("describe_table", {"id": ["g", "t"]}, subject=EVE)
    team.send(ROOT, CreateNamespace(("later",), {}, CreateMode.CREATE))
    assert isinstance(team.verdict(EVE, CreateNamespace(("mine",), {}, CreateMode.CREATE)), LanceNamespaceError)


@pytest.mark.parametrize(
    ("kind", "location", "metadata"),
    [
        ("transaction", None, "no json"),
        ("transaction", None, {"state": "committed", "participants": []}),
        ("table", "somewhere", None),
        ("table", None, None),
        ("namespace", None, {"state": "off"}),
        ("table_version", None, {"manifest_path": "x/_versions/1.manifest", "manifest_size": 1}),
        ("unknown", "", ""),
    ],
)
def test_a_second_row_in_place_of_the_one_that_puts_grants_in_force(
    team: Guarded, kind: str, location: str | None, metadata: Any
) -> None:
    append(team, (ACCESS_ID, kind, location, metadata))
    check_closed(team)


@pytest.mark.parametrize("kind", ["table", "namespace", "table_version", "unknown"])
def test_the_row_that_puts_grants_in_force_with_another_type(team: Guarded, kind: str) -> None:
    dataset = lance.dataset(team.root / "__manifest")
    dataset.update({"object_type": f"'{kind}'", "location": "'somewhere'"}, f"object_id = '{ACCESS_ID}'")
    check_closed(team)


@pytest.mark.parametrize(
    "row",
    [
        (ON_CATALOG, {**ALL_OF_IT, "since": 1e300}),
        (ON_CATALOG, {**ALL_OF_IT, "since": 2**63}),
        (ON_CATALOG, {**ALL_OF_IT, "since": "0"}),
        (ON_CATALOG, {**ALL_OF_IT, "since": None}),
        (ON_CATALOG, {**ALL_OF_IT, "kind": "table"}),
        (ON_CATALOG, {**ALL_OF_IT, "privileges": []}),
        (ON_CATALOG, {**ALL_OF_IT, "privileges": ["own", "everything"]}),
        (ON_CATALOG, {**ALL_OF_IT, "privileges": [["own"]]}),
        (ON_CATALOG, {**ALL_OF_IT, "to": ["principal"]}),
        (ON_CATALOG, {**ALL_OF_IT, "to": ["group", "eve"]}),
        (ON_CATALOG, {**ALL_OF_IT, "to": "eve"}),
        (ON_CATALOG, orjson.dumps(ALL_OF_IT).decode().replace('"since":0', '"since":1e999')),
        (ON_CATALOG, orjson.dumps(ALL_OF_IT).decode().replace("eve", "\\ud800")),
        (ON_G, ALL_OF_IT),
        (ON_G, {**ALL_OF_IT, "kind": "catalog", "on": ["g"]}),
        (ON_G, {**ALL_OF_IT, "kind": "namespace", "on": "g"}),
        (ON_G, {**ALL_OF_IT, "kind": "namespace", "on": [["g"]]}),
        (f"{GRANT_PREFIX}0", ALL_OF_IT),
        (f"{GRANT_PREFIX}", ALL_OF_IT),
        (f"{MEMBERSHIP_PREFIX}0", {"state": "membership", "role": "root", "to": ["principal", "eve"]}),
        (membership_id("x", TO_EVE), {"state": "membership", "role": ["x"], "to": ["principal", "eve"]}),
        (ON_CATALOG, {"state": "membership", "role": "root", "to": ["principal", "eve"]}),
        (ON_CATALOG, "[]"),
        (ON_CATALOG, None),
    ],
    ids=repr,
)
def test_a_grant_that_is_damaged_allows_nothing(team: Guarded, row: tuple[str, Any]) -> None:
    append(team, (row[0], "transaction", None, row[1]))
    check_closed(team)


def test_a_grant_with_another_type_allows_nothing(team: Guarded) -> None:
    for number, kind in enumerate(("table", "namespace", "unknown")):
        to = Grantee("principal", f"eve{number}")
        append(team, (grant_id((), to), kind, "somewhere", {**ALL_OF_IT, "to": list(to)}))
        for each in (team, team.again()):
            each.catalog.snapshot()
            assert not each.policy.allows(Subject(to.name), Privilege.SEE, ("g",))
    check_closed(team)
