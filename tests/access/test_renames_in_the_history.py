"""What the history tells where tables are dropped and others take their names, in one catalog version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from namespace_server.access.subjects import Privilege, Subject
from namespace_server.directory.model.history import MOST_OPERATIONS
from tests.access.team import ALICE, BOB, OPERATOR, ROOT, Guarded, principal

A, B = ["g", "a"], ["g", "b"]


@pytest.fixture
def ground(tmp_path: Path) -> Guarded:
    """Alice reads `a`, and sees nothing of `b`, which is Bob's."""
    made = Guarded(tmp_path / "root")
    made.make_namespace("g")
    for table in (A, B):
        made.make_table(*table)
    made.grant(("g", "a"), principal("alice"), Privilege.READ)
    made.grant(("g", "b"), principal("bob"), Privilege.OWN)
    return made


def told(ground: Guarded, subject: Subject) -> tuple[list[Any], list[Any]]:
    """The operations and the tables of the newest catalog version, as its event and the list of versions have them."""
    version = ground.catalog.snapshot().version
    request = {"since": version - 1, "limit": 1}
    [event] = ground.namespace.read("list_catalog_events", request, subject=subject).body["events"]
    listed = ground.namespace.read("list_catalog_versions", {"limit": 1}, subject=subject).body["versions"][0]
    operations = [each for batch in event["data"]["batches"] for each in batch["operations"]]
    assert operations == [each for batch in listed.get("batches", ()) for each in batch["operations"]]
    return operations, event["data"]["tables"]


def test_who_reads_the_table_that_takes_a_name_is_not_told_what_had_it(ground: Guarded) -> None:
    properties = {"set_table_properties": {"id": B, "updates": {"k": "secret"}}}
    drop, rename = {"drop_table": {"id": B}}, {"rename_table": {"id": A, "new_table_name": "b"}}
    ground.ask(ROOT, properties, drop, rename, {"set_table_properties": {"id": B, "updates": {"k": "v"}}})
    assert ground.namespace.read("describe_table", {"id": B}, subject=ALICE).body["properties"] == {"k": "v"}
    operations, tables = told(ground, ALICE)
    assert operations == [{"operation": "set_table_properties", "id": B}]
    assert tables == []
    operations, tables = told(ground, ROOT)
    assert [each["operation"] for each in operations] == [
        "set_table_properties",
        "drop_table",
        "rename_table",
        "set_table_properties",
    ]
    assert tables == [{"id": B, "before": 1, "dropped": True}]
    assert told(ground, BOB) == ([], [])  # his grant ended with the table


def test_nor_is_who_gets_a_new_table_of_the_name(ground: Guarded) -> None:
    grant = {"grant_privileges": {"on": {"table": B}, "to": {"principal": "alice"}, "privileges": ["read"]}}
    ground.ask(ROOT, {"drop_table": {"id": B}}, {"declare_table": {"id": B}}, grant)
    operations, tables = told(ground, ALICE)
    assert [each["operation"] for each in operations] == ["declare_table"]
    assert tables == []


def test_where_the_history_lists_the_first_operations_alone(ground: Guarded) -> None:
    ground.ask(ROOT, *({"declare_table": {"id": ["g", f"x{number}"]}} for number in range(MOST_OPERATIONS)))
    renames = [
        {"rename_table": {"id": ["g", f"x{number}"], "new_table_name": f"y{number}"}}
        for number in range(MOST_OPERATIONS)
    ]
    ground.ask(ROOT, {"drop_table": {"id": B}}, *renames, {"rename_table": {"id": A, "new_table_name": "b"}})
    assert told(ground, ALICE) == ([], [])
    assert len(told(ground, ROOT)[0]) == MOST_OPERATIONS


def test_tables_that_stay_dropped_are_not_told_again(ground: Guarded) -> None:
    """One tombstone names the tables of a namespace; it is put again when one of them comes back."""
    ground.namespace.write("drop_namespace", {"id": ["g"], "behavior": "Cascade"})
    ground.make_namespace("h")
    ground.call("undrop_table", id=A, new_id=["h", "a"])
    request = {"since": ground.catalog.snapshot().version - 3}
    events = ground.namespace.read("list_catalog_events", request, subject=OPERATOR).body["events"]
    assert [sorted(each["id"] for each in event["data"]["tables"]) for event in events] == [[A, B], [], []]
    assert "undrop_table" in json.dumps(events[2])
