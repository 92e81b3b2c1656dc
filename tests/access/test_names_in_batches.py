"""Batches that drop, rename, create, bring back and change tables: what every view of the catalog tells of them.

The model is that of `test_batches_against_a_model`, asked for a caller who may do all; here no grants are in force.
"""

from __future__ import annotations

import tempfile
import uuid
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lance_namespace.errors import LanceNamespaceError

from namespace_client import Catalog
from namespace_server.access.subjects import Privilege
from namespace_server.directory.model.object_ids import ObjectId
from namespace_server.directory.model.operations import (
    AssertTableVersion,
    Batch,
    CommitTransaction,
    CreateMode,
    CreateNamespace,
    Operation,
)
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning.plan_builder import Plan
from tests.access.team import ROOT, Guarded, principal
from tests.access.test_batches_against_a_model import (
    NAMESPACES,
    TABLES,
    PlainCatalog,
    Slot,
    chosen,
    expected,
    operations_without_grants,
    slots,
)
from tests.directory.invariants import check_quiet, check_same


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(slots(operations_without_grants()), min_size=6, max_size=14))
def test_every_view_agrees_with_the_model(batches: list[list[Slot]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        ground = Guarded(Path(directory) / "root", in_force=False)
        model = PlainCatalog()
        model.put((), principal("root"), frozenset({Privilege.OWN}), 0)
        for namespace in NAMESPACES:
            model = advance(ground, model, [CreateNamespace(namespace, {}, CreateMode.CREATE)])
        for places in batches:
            model = advance(ground, model, chosen(model, ROOT, places, ground.catalog.snapshot().version + 1))
        ground.catalog.sweep()
        check_same(ground.catalog.snapshot(), check_quiet(ground.root))
        ground.catalog.close()


def advance(ground: Guarded, model: PlainCatalog, operations: list[Any]) -> PlainCatalog:
    """Send a batch twice, the second time to another process, and compare what is there and what is told of it."""
    before = ground.catalog.snapshot()
    after, _, failure = expected(model, ROOT, operations, before.version + 1)
    first = send(ground, operations, key := str(uuid.uuid4()))
    other = ground.again()
    again = send(other, operations, key)
    now, cold = ground.catalog.snapshot(), other.catalog.snapshot()
    check_same(now, cold)
    other.catalog.close()
    if failure is not None:
        assert isinstance(first, LanceNamespaceError), (operations, failure)
        assert isinstance(again, LanceNamespaceError)
        assert (type(first), str(first)) == (type(again), str(again))
        assert now.version == before.version
        return model
    assert isinstance(first, Plan), (operations, first)
    assert isinstance(again, Plan), (operations, again)
    assert (again.transaction_id, again.results) == (first.transaction_id, first.results)
    assert now.version == before.version + 1
    for path in TABLES:
        head = now.head(path)
        assert (now.table(path) is not None) == (path in after.objects), (operations, path)
        assert (0 if head is None else head.version) == after.heads.get(path, 0), (operations, path)
    check_locations(before, now, after, operations)
    check_event(ground, before, after, operations)
    check_difference(ground, before, now)
    return after


def send(ground: Guarded, operations: list[Operation], key: str) -> Plan | LanceNamespaceError:
    batch = Batch(str(uuid.uuid4()), tuple(operations), key, key)
    [pending] = ground.catalog.commit_batches([batch])
    assert pending.verdict is not None
    return pending.verdict


def check_locations(before: CatalogSnapshot, now: CatalogSnapshot, after: PlainCatalog, operations: list[Any]) -> None:
    """A table keeps its place under each name, and no other one ever has it (N1, N3)."""
    for path in after.objects.intersection(TABLES):
        table, origin = now.table(path), after.origin[path]
        assert table is not None
        assert now.table_at(table.location) == path
        tombstone = now.tombstone_at(table.location)
        assert tombstone is None, (operations, path)
        if origin is not None:
            held = before.table(origin)
            assert held is not None
            assert held.location == table.location, (operations, path)
        else:
            assert before.table_at(table.location) is None


def check_event(ground: Guarded, before: CatalogSnapshot, after: PlainCatalog, operations: list[Any]) -> None:
    [event] = ground.read("list_catalog_events", since=before.version, limit=1)["events"]
    [batch] = event["data"]["batches"]
    sent = [each for each in operations if not isinstance(each, AssertTableVersion)]
    assert [(each["operation"], tuple(each["id"])) for each in batch["operations"]] == [
        (each.name, each.id) for each in sent
    ]
    told = {(tuple(each["id"]), each.get("dropped", False)): each for each in event["data"]["tables"]}
    gone = {(path, True): {"before": one.head} if one.head else {} for path, one in after.gone}
    made: dict[tuple[ObjectId, bool], dict[str, int]] = {}
    for each in sent:
        if isinstance(each, CommitTransaction):
            last = after.heads[each.id]
            count = sum(isinstance(other, CommitTransaction) and other.id == each.id for other in sent)
            made[each.id, False] = {"after": last} | ({"before": last - count} if last > count else {})
    numbers = {key: {name: each[name] for name in ("before", "after") if name in each} for key, each in told.items()}
    assert numbers == gone | made, operations


def check_difference(ground: Guarded, before: CatalogSnapshot, now: CatalogSnapshot) -> None:
    """The comparison of the two versions has each table that differs, once, by its place."""
    was, held = tables_by_place(before), tables_by_place(now)
    wanted = set[tuple[str, ObjectId, ObjectId | None]]()
    for at in was.keys() | held.keys():
        old, new = was.get(at), held.get(at)
        if new is None:
            assert old is not None
            wanted.add(("dropped", old[0], None))
        elif old is None:
            wanted.add(("added", new[0], None))
        elif old[0] != new[0]:
            wanted.add(("renamed", new[0], old[0]))
        elif old != new:
            wanted.add(("changed", new[0], None))
    with Catalog.connect(ground.namespace) as catalog:
        found = catalog.diff(before.version, now.version).tables
    told = [(each.kind, tuple(each.name), None if each.old_name is None else tuple(each.old_name)) for each in found]
    assert len(told) == len(set(told))
    assert set(told) == wanted


def tables_by_place(snapshot: CatalogSnapshot) -> dict[str, tuple[ObjectId, int, dict[str, str]]]:
    found = {}
    for path in snapshot.all_tables():
        table, head = snapshot.table(path), snapshot.head(path)
        assert table is not None
        found[table.location] = (path, 0 if head is None else head.version, dict(table.properties))
    return found
