"""A batch that drops, renames, creates and changes tables, with a fault at every storage write in turn.

Afterwards it is there as a whole or not at all (invariant 1), the root is sound, a repetition is one application, what
was dropped comes back, also after a garbage collection, and every writer can go on (12).
"""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from lance_namespace.errors import LanceNamespaceError, ServiceUnavailableError

from lance_core.data import schema_fields
from lance_core.proto import lance_table_pb2 as pb
from namespace_server.directory.model.errors import BatchUnknown
from tests.directory.gc.collecting import collect, let_pass
from tests.directory.invariants import check_always, check_progress, check_quiet
from tests.directory.scene import KEY, Scene, Try
from tests.directory.tables import Ground, as_operation, rows
from tests.staged_fragments import stage_fragments
from tests.steps import SOME_OR_EVERY, numbers
from tests.storage.faults import Crashed, Fault, FaultStore

pytestmark = pytest.mark.slow

A, B, C, D, X, Y, OLD = (["g", name] for name in ("a", "b", "c", "d", "x", "y", "old"))
NEW = "0a1b2c3d_g$b"
BEFORE = {"a": 1, "b": 2, "c": 3, "x": 4, "y": 5}
AFTER = {"a": 2, "b": 7, "c": 4, "d": 3, "x": 5, "y": 4}
"""The rows of each table: `a` is dropped, `b` and `c` move on by one name and have new tables, `x` and `y` exchange
their names; `c` is one that comes back, and gets no version by this batch."""


@pytest.fixture(scope="module", params=["directory", "bucket"])
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    place = tmp_path_factory.mktemp("names")
    ground = Ground(place / "root")
    ground.make_namespace("g")
    ground.make_table(*OLD, count=4)
    ground.catalog.sweep()
    ground.call("drop_table", id=OLD)
    for name, count in BEFORE.items():
        ground.make_table("g", name, count=count)
    ground.make_table("g", "k", count=1)
    first = pb.Transaction(uuid=str(uuid.uuid4()))
    first.overwrite.fragments.extend(stage_fragments(rows(0, 7), str(ground.root / NEW), mode="create"))
    first.overwrite.schema.extend(schema_fields(rows(0, 7).schema))
    operations = [
        {"drop_table": {"id": A}},
        _rename(B, "a"),
        _rename(C, "d"),
        {"declare_table": {"id": B, "location": f"{ground.catalog.store.uri}/{NEW}"}},
        as_operation(B, first),
        {"undrop_table": {"id": OLD, "new_id": C}},
        _rename(X, "t"),
        _rename(Y, "x"),
        _rename(["g", "t"], "y"),
        ground.transaction(["g", "k"], rows(1, 2)),
        {"set_table_properties": {"id": A, "updates": {"k": "v"}}},
    ]
    ground.catalog.sweep()
    return Scene(ground.root, operations, check_quiet(ground.root).version, bucket=request.param == "bucket")


def _rename(table: list[str], name: str) -> dict[str, object]:
    return {"rename_table": {"id": table, "new_table_name": name}}


def applied(attempt: Try) -> bool:
    """Whether the batch is there, the same at each catalog version; nothing between."""
    ground = attempt.open()
    newest = ground.catalog.snapshot().version
    found = [_parts(ground, version) for version in range(attempt.before, newest + 1)]
    assert found == sorted(found), f"1: the batch came in parts, or came and went: {found}"
    return found[-1]


def _parts(ground: Ground, version: int) -> bool:
    snapshot = ground.catalog.snapshot(version)
    tables = {table_id[-1]: snapshot.table(table_id) for table_id in snapshot.all_tables()}
    locations = {name: table.location for name, table in tables.items() if table is not None}
    names = {name: "new" if at == NEW else at.partition("$")[2] for name, at in locations.items()}
    k, named = snapshot.head((*A[:-1], names.pop("k"))), tables["a"]
    assert k is not None
    assert named is not None
    record = snapshot.record_by_key(KEY) is not None
    parts = (names, k.version, dict(named.properties), record)
    before = {name: name for name in BEFORE}
    after = {"a": "b", "b": "new", "c": "old", "d": "c", "x": "y", "y": "x"}
    assert parts in ((before, 1, {}, False), (after, 2, {"k": "v"}, True)), parts
    return record


def check_applied_once(attempt: Try) -> None:
    assert applied(attempt)
    ground = attempt.open()
    for name, count in AFTER.items():
        assert ground.ids(["g", name]) == list(range(count))
    assert ground.ids(["g", "k"]) == [0, 1]
    dropped = ground.read("list_dropped_tables")["tables"]
    assert [each["id"] for each in dropped] == [A]


def writes_of(scene: Scene, place: Path) -> int:
    attempt = scene.copy(place)
    ground, store = attempt.faulty()
    attempt.send(ground)
    return len(store.writes)


@SOME_OR_EVERY
@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER])
def test_a_crash_at_any_write(scene: Scene, tmp_path: Path, fault: Fault, step: int) -> None:
    outcomes = set()
    for number in numbers(writes_of(scene, tmp_path / "dry"), step):
        attempt = scene.copy(tmp_path / f"{number}")
        ground, store = attempt.faulty()
        store.fail(fault, nth=number)
        with pytest.raises(Crashed):
            attempt.send(ground)
        check_always(attempt.root, since=attempt.before)
        flipped = applied(attempt)
        outcomes.add(flipped)
        attempt.recover()
        check_quiet(attempt.root, since=attempt.before)
        assert applied(attempt) == flipped, f"{fault.name} at {store.writes[-1]}, recovered"
        attempt.send(attempt.open())
        check_applied_once(attempt)
        check_progress(attempt.root)
    assert outcomes == {False, True}


@SOME_OR_EVERY
@pytest.mark.parametrize("fault", [Fault.LOST_ANSWER, Fault.LOST_REQUEST, Fault.DELAYED])
def test_an_answer_that_does_not_come(scene: Scene, tmp_path: Path, fault: Fault, step: int) -> None:
    for number in numbers(writes_of(scene, tmp_path / "dry"), step):
        attempt = scene.copy(tmp_path / f"{number}")
        ground, store = attempt.faulty()
        store.fail(fault, nth=number)
        answer = _answer(attempt, ground, store)
        again = attempt.send(attempt.open())
        store.deliver()
        attempt.recover()
        check_quiet(attempt.root, since=attempt.before)
        check_applied_once(attempt)
        if answer is not None:
            assert again["transaction_id"] == answer["transaction_id"]


def _answer(attempt: Try, ground: Ground, store: FaultStore) -> dict[str, object] | None:
    try:
        answer = attempt.send(ground)
    except LanceNamespaceError as error:
        outcome = error
    else:
        assert applied(attempt)
        return answer
    assert isinstance(outcome, ServiceUnavailableError), "a silence is no rejection"
    assert isinstance(outcome, BatchUnknown) or not applied(attempt)
    assert not any(done.verb == "delete" for done in store.writes)
    return None


def test_what_was_dropped_comes_back_after_a_collection(scene: Scene, tmp_path: Path) -> None:
    attempt = scene.copy(tmp_path / "root")
    attempt.send(attempt.open())
    ground = attempt.open()
    ground.catalog.sweep()
    let_pass(ground)
    collect(ground, {"gc.dropped.window": "30d"})
    check_applied_once(attempt)
    ground.call("undrop_table", id=A, new_id=["g", "back"])
    assert ground.ids(["g", "back"]) == [0]
    check_quiet(attempt.root, since=ground.catalog.snapshot().version)
    check_progress(attempt.root)


def test_the_history_tells_each_operation(scene: Scene, tmp_path: Path) -> None:
    attempt = scene.copy(tmp_path / "root")
    ground = attempt.open()
    attempt.send(ground)
    [event] = ground.read("list_catalog_events", since=attempt.before, limit=1)["events"]
    [batch] = event["data"]["batches"]
    assert [(each["operation"], each["id"], each.get("new_id")) for each in batch["operations"]] == [
        (name, request["id"], request.get("new_id") or (["g", new] if (new := request.get("new_table_name")) else None))
        for operation in attempt.operations
        for name, request in operation.items()
    ]
    assert sorted(event["data"]["tables"], key=str) == sorted(
        [
            {"id": B, "rows": 7, "after": 1},
            {"id": ["g", "k"], "before": 1, "rows": 1, "after": 2},
            {"id": A, "before": 1, "dropped": True},
        ],
        key=str,
    )
