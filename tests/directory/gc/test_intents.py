"""Intents keep what a long job writes and reads (rules G2, G4, G11 and G12)."""

from __future__ import annotations

import shutil
import time
import uuid
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import lance
import pytest
from lance_namespace.errors import InvalidInputError, TableNotFoundError, TableVersionNotFoundError

from lance_core.storage.local import LocalStore
from namespace_server.directory.gc.run import Collector
from namespace_server.directory.model.collector_rows import IntendedChain, IntentEntry
from namespace_server.directory.model.entries import Changes, changes_of
from namespace_server.directory.model.intents import horizon_at, read_versions
from namespace_server.directory.model.snapshot import CatalogSnapshot
from tests.directory.gc.collecting import collect, let_pass
from tests.directory.gc.horizons import HOUR, WEEK, age, move_horizon
from tests.directory.tables import Ground, rows
from tests.storage.faults import FaultStore

T, U = ["g", "t"], ["g", "u"]
JOB = "00000000-0000-4000-8000-000000000001"
REFUSED = r"the file .* was written at .*, before .*, the horizon of the catalog; .* stage again"


@pytest.fixture
def filled(ground: Ground) -> Ground:
    """A catalog with `g.t` and `g.u`, collected once."""
    ground.make_table(*T)
    ground.make_table(*U)
    ground.catalog.sweep()
    collect(ground)
    return ground


def data_files(ground: Ground, table: list[str] = T) -> set[Path]:
    return set((ground.root / ground.location(table) / "data").iterdir())


def write_files(ground: Ground, table: list[str] = T) -> tuple[dict[str, Any], Path]:
    """The operation that commits an append, and the file that it adds."""
    before = data_files(ground, table)
    operation = ground.transaction(table, rows(3, 5))
    [file] = data_files(ground, table) - before
    return operation, file


def register(ground: Ground, *tables: list[str], intent: str = JOB, **fields: Any) -> dict[str, Any]:
    named = [{"id": table} for table in tables or (T,)]
    found: dict[str, Any] = ground.call("register_intent", intent_id=intent, tables=named, **fields)["intent"]
    return found


def end(intent: str = JOB) -> dict[str, Any]:
    return {"end_intent": {"intent_id": intent}}


def the_intent(ground: Ground) -> IntentEntry | None:
    return ground.again().catalog.snapshot().intent(JOB)


def change_intent(ground: Ground, **fields: Any) -> None:
    """Change the row of the intent, as time would."""

    def plan(snapshot: CatalogSnapshot) -> Changes:
        found = snapshot.intent(JOB)
        assert found is not None
        return changes_of([replace(found, **fields)])

    ground.catalog.committer.commit_changes(plan)


@pytest.mark.parametrize("registered", [True, False])
def test_a_job_longer_than_the_grace_time_commits_by_its_intent(filled: Ground, registered: bool) -> None:
    if registered:
        register(filled)
    operation, file = write_files(filled)
    let_pass(filled)
    report = collect(filled)
    assert file.exists() == registered
    if registered:
        assert list(report.held) == [filled.location(T)]
        assert report.held[filled.location(T)].files == 1
        assert any("by an intent" in line for line in report.lines())
        filled.batch(operation, end())
        assert filled.ids(T) == [0, 1, 2, 3, 4]
        assert the_intent(filled) is None
    else:
        with pytest.raises(InvalidInputError, match=r"stage again"):
            filled.batch(operation)


def test_a_batch_may_end_its_intent_before_it_commits(filled: Ground) -> None:
    """It is one flip."""
    register(filled)
    operation, _ = write_files(filled)
    let_pass(filled)
    collect(filled)
    filled.batch(end(), operation)
    assert (filled.ids(T), the_intent(filled)) == ([0, 1, 2, 3, 4], None)


def test_a_run_that_looks_at_changes_finds_what_an_intent_kept(filled: Ground) -> None:
    register(filled)
    _, file = write_files(filled)
    let_pass(filled)
    collector = Collector(filled.catalog, settle=timedelta(0))
    collector.collect()
    collector.collect(everywhere=False)
    assert file.exists()
    filled.call("end_intent", intent_id=JOB)
    collector.collect(everywhere=False)
    assert not file.exists()


def test_an_intent_keeps_the_files_of_its_tables_only(filled: Ground) -> None:
    register(filled)
    _, mine = write_files(filled)
    operation, other = write_files(filled, U)
    let_pass(filled)
    move_horizon(filled)
    with pytest.raises(InvalidInputError, match=REFUSED):
        filled.batch(operation)
    collect(filled)
    assert mine.exists()
    assert not other.exists()


def test_the_files_of_a_job_without_a_batch_go_once_its_intent_has_ended(filled: Ground) -> None:
    register(filled)
    _, file = write_files(filled)
    let_pass(filled)
    collect(filled)
    assert file.exists()
    assert filled.call("end_intent", intent_id=JOB)["intent"]["intent_id"] == JOB
    assert "intent" not in filled.call("end_intent", intent_id=JOB)
    collect(filled)
    assert not file.exists()


def test_an_intent_that_comes_after_a_horizon_flip_makes_nothing_fresh_again(filled: Ground) -> None:
    """G4: what stands on the list of a collection cannot be committed, whenever the job asked for its intent."""
    operation, file = write_files(filled)
    age(file)
    move_horizon(filled)
    intent = register(filled)
    assert intent["since_millis"] == filled.catalog.snapshot().collector.horizon * 1_000
    with pytest.raises(InvalidInputError, match=REFUSED):
        filled.batch(operation)
    with pytest.raises(InvalidInputError, match=REFUSED):
        filled.batch({"register_intent": {"intent_id": JOB, "tables": [{"id": T}]}}, operation)


def test_an_intent_that_is_planned_before_a_horizon_flip_and_flipped_after_it_begins_at_its_horizon(
    filled: Ground,
) -> None:
    operation, file = write_files(filled)
    age(file)
    store = FaultStore(LocalStore(filled.root, "none"))
    moves: list[str] = []

    def meanwhile(verb: str, path: str) -> None:
        if verb == "put" and path.startswith("__manifest/data/") and not moves:
            moves.append(path)
            move_horizon(filled)

    store.before(meanwhile)
    register(filled.again(store))
    assert moves
    with pytest.raises(InvalidInputError, match=REFUSED):
        filled.again().batch(operation)


def test_a_location_that_a_renewal_adds_is_kept_from_then_on(filled: Ground) -> None:
    register(filled)
    operation, _ = write_files(filled, U)
    let_pass(filled)
    move_horizon(filled)
    register(filled, U)
    snapshot = filled.catalog.snapshot()
    assert horizon_at(snapshot, filled.location(T)) < snapshot.collector.horizon
    assert horizon_at(snapshot, filled.location(U)) == snapshot.collector.horizon
    with pytest.raises(InvalidInputError, match=REFUSED):
        filled.batch(operation)


def test_a_horizon_flip_that_is_planned_before_an_intent_is_planned_again(filled: Ground) -> None:
    """The horizon of the location stays: the run looks by the rows of its own horizon flip."""
    operation, file = write_files(filled)
    let_pass(filled)
    move_horizon(filled, ahead=-2 * WEEK)  # the last collection was long ago
    store = FaultStore(LocalStore(filled.root, "none"))
    registered: list[str] = []

    def meanwhile(verb: str, path: str) -> None:
        if verb == "put" and path.startswith("__manifest/data/") and not registered:
            registered.append(path)
            register(filled)

    store.before(meanwhile)
    report = collect(filled.again(store))
    assert registered
    assert file.exists()
    assert report.held[filled.location(T)].files == 1
    filled.again().batch(operation, end())
    assert filled.ids(T) == [0, 1, 2, 3, 4]


def test_an_intent_ends_by_a_horizon_flip_after_its_time_and_by_nothing_else(filled: Ground) -> None:
    """G12: its time is over, and no server compares it with its clock."""
    register(filled)
    operation, file = write_files(filled)
    let_pass(filled)
    change_intent(filled, until_ms=int(time.time() * 1_000) - 2 * HOUR * 1_000, set_in=0)
    move_horizon(filled)  # moves the horizon, and ends nothing
    assert file.stat().st_mtime < filled.catalog.snapshot().collector.horizon
    for process in (filled, filled.again()):
        assert the_intent(process) is not None
        assert horizon_at(process.catalog.snapshot(), filled.location(T)) < file.stat().st_mtime
    collect(filled)
    assert the_intent(filled) is None
    with pytest.raises(InvalidInputError, match=r"stage again"):
        filled.batch(operation)


def test_a_job_whose_time_is_over_commits_before_the_horizon_flip(filled: Ground) -> None:
    register(filled)
    operation, _ = write_files(filled)
    let_pass(filled)
    collect(filled)
    change_intent(filled, until_ms=1, set_in=0)
    filled.batch(operation, end())
    assert filled.ids(T) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("local", [True, False])
def test_a_commit_that_is_held_while_its_intent_ends_names_no_removed_file(
    filled: Ground, tmp_path: Path, local: bool
) -> None:
    """Before each of its calls in turn: the intent ends by a horizon flip, and the run removes the file or not."""
    register(filled)
    operation, _ = write_files(filled)
    let_pass(filled)
    change_intent(filled, until_ms=1, set_in=0)
    outcomes: Counter[str] = Counter()
    for number in range(1_000):
        root = tmp_path / f"{number}"
        shutil.copytree(filled.root, root)
        store = FaultStore(LocalStore(root, "none"))
        store.local = local
        left = [number]

        def hold(_verb: str, _path: str, left: list[int] = left, root: Path = root) -> None:
            left[0] -= 1
            if left[0] == -1:
                collect(Ground(root))

        store.before(hold)
        try:
            Ground(root, store).batch(operation, end())
        except InvalidInputError:
            outcomes["refused"] += 1
            assert Ground(root).ids(T) == [0, 1, 2]
        else:
            outcomes["committed"] += 1
            assert Ground(root).ids(T) == [0, 1, 2, 3, 4]
        if left[0] >= 0:
            break
    assert outcomes["refused"] > 3
    assert outcomes["committed"] > 1


def test_a_renewal_keeps_the_beginning_and_shortens_nothing(filled: Ground) -> None:
    first = register(filled, seconds=7_200)
    move_horizon(filled, ahead=-HOUR)
    assert register(filled, seconds=3_600) == first
    longer = register(filled, seconds=86_400)
    assert longer["until_millis"] > first["until_millis"]
    assert longer["since_millis"] == first["since_millis"]


def test_renewals_that_come_together_share_a_flip(filled: Ground) -> None:
    before = filled.catalog.snapshot().version
    jobs = [str(uuid.uuid4()) for _ in range(5)]
    requests = [{"intent_id": job, "tables": [{"id": T}, {"id": U}]} for job in jobs]
    filled.namespace.commit_calls([filled.namespace.prepare("register_intent", request) for request in requests])
    assert filled.catalog.snapshot().version == before + 1
    assert {intent.intent for intent in filled.again().catalog.snapshot().intents()} == set(jobs)


def test_versions_that_a_job_reads_are_kept_though_their_rows_are_deleted(filled: Ground) -> None:
    for first in (3, 6, 9):
        filled.write(T, rows(first, first + 3))
    filled.catalog.sweep()
    filled.call("register_intent", intent_id=JOB, tables=[{"id": T, "read_version": 2}])
    assert read_versions(filled.catalog.snapshot()) == {(filled.location(T), None): 2}
    filled.call("batch_delete_table_versions", id=T, ranges=[{"start_version": 1, "end_version": 4}])
    forget(filled)
    let_pass(filled)
    change_intent(filled, chains=tuple(each._replace(since=2**40) for each in the_chains(filled)))  # versions alone
    collect(filled)
    assert filled.canonical(T) == [2, 3, 4]
    assert filled.open(T, 2).count_rows() == 6
    filled.call("end_intent", intent_id=JOB)
    collect(filled)
    assert filled.canonical(T) == [4]


def the_chains(ground: Ground) -> tuple[Any, ...]:
    found = the_intent(ground)
    assert found is not None
    return found.chains


def forget(ground: Ground) -> None:
    """Let the history of the catalog begin now."""

    def plan(snapshot: CatalogSnapshot) -> Changes:
        return changes_of([replace(snapshot.collector, oldest=snapshot.version + 1)])

    ground.catalog.committer.commit_changes(plan)


def test_a_version_that_is_to_be_read_has_to_be_there_when_it_is_registered(filled: Ground) -> None:
    filled.write(T, rows(3, 4))
    filled.call("register_intent", intent_id=JOB, tables=[{"id": T, "read_version": 1}])
    filled.write(T, rows(4, 5))
    filled.catalog.sweep()
    filled.call("batch_delete_table_versions", id=T, ranges=[{"start_version": 1, "end_version": 2}])
    filled.call("register_intent", intent_id=JOB, tables=[{"id": T, "read_version": 1}])  # kept since
    for version in (1, 9):
        tables = [{"id": T, "read_version": version}]
        with pytest.raises(TableVersionNotFoundError, match=f"has no version {version} to be kept"):
            filled.call("register_intent", intent_id=str(uuid.uuid4()), tables=tables)


def test_of_the_versions_that_jobs_read_the_lowest_counts_on_each_branch() -> None:
    chains = [IntendedChain("a", None, 1, 5), IntendedChain("a", "b", 1, 7), IntendedChain("a", "c", 1)]
    intents = [
        IntentEntry(JOB, tuple(chains), 1),
        IntentEntry(JOB.replace("1", "2"), (IntendedChain("a", None, 1, 3), IntendedChain("a", "b", 1, 9)), 1),
    ]
    assert read_versions(CatalogSnapshot().apply(changes_of(intents))) == {("a", None): 3, ("a", "b"): 7}


def test_a_version_of_a_branch_is_registered_by_its_branch(filled: Ground) -> None:
    filled.call("create_table_branch", id=T, name="dev", from_version=1)
    lance.write_dataset(rows(5, 6), filled.open(T).checkout_version(("dev", None)), mode="append")
    filled.read("list_table_versions", id=T, branch="dev")
    branch = {"id": T, "branch": "dev", "read_version": 2}
    filled.call("register_intent", intent_id=JOB, tables=[branch])
    with pytest.raises(TableVersionNotFoundError):
        filled.call("register_intent", intent_id=JOB, tables=[{"id": T, "read_version": 2}])


def test_a_table_is_not_purged_while_an_intent_names_it(filled: Ground) -> None:
    register(filled)
    location = filled.root / filled.location(T)
    filled.call("drop_table", id=T, purge=True)
    let_pass(filled)
    report = collect(filled)
    assert (report.purged, report.purges_held) == ((), (location.name,))
    assert f"kept: the dropped table at {location.name}" in "\n".join(report.lines())
    assert report.as_json()["purges_held"] == [location.name]
    assert location.exists()
    change_intent(filled, until_ms=1, set_in=0)
    assert collect(filled).purged == ()  # the horizon flip that ends the intent still honours it
    assert len(collect(filled).purged) == 1


def test_a_new_table_is_named_by_its_location(filled: Ground) -> None:
    location = f"{uuid.uuid4().hex[:8]}_g$new"
    with pytest.raises(TableNotFoundError):
        register(filled, ["g", "new"])
    tables = [{"id": ["g", "new"], "location": str(filled.root / location)}]
    filled.call("register_intent", intent_id=JOB, tables=tables)
    [listed] = filled.read("list_intents")["intents"][0]["tables"]
    assert listed == {"location": filled.catalog.store.object_uri(location), "since_millis": listed["since_millis"]}
    declare = {"declare_table": {"id": ["g", "new"], "location": location}}
    made = Ground(filled.root)
    made.batch(declare)
    operation = made.transaction(["g", "new"], rows(0, 2))
    let_pass(made)
    move_horizon(made)
    made.batch(operation, end())
    assert made.ids(["g", "new"]) == [0, 1]


@pytest.mark.parametrize("branch", [None, "b"])
def test_a_commit_by_path_is_adopted_while_an_intent_keeps_its_files(filled: Ground, branch: str | None) -> None:
    filled.call("create_table_branch", id=T, name="b", from_version=1)
    filled.catalog.sweep()
    register(filled)
    before = set(filled.root.rglob("*.lance"))
    lance.write_dataset(rows(3, 5), filled.open(T).checkout_version((branch, None)), mode="append")
    [file] = set(filled.root.rglob("*.lance")) - before
    age(file, 20 * 24 * HOUR)
    change_intent(filled, chains=tuple(each._replace(since=1) for each in the_chains(filled)))
    move_horizon(filled)
    filled.read("list_table_versions", id=T, branch=branch)
    assert filled.head(T, branch) == 2


def test_what_is_asked_is_checked(filled: Ground) -> None:
    wrongs: tuple[dict[str, Any], ...] = (
        {"intent_id": "x"},
        {"intent_id": JOB.upper().replace("0", "A")},
        {"tables": []},
        {"tables": [{}]},
        {"tables": [{"id": T, "read_version": 0}]},
        {"tables": [{"id": T, "location": "s3://elsewhere/t"}]},
        {"tables": [{"id": T, "location": "_staging/x"}]},
        {"seconds": 3_599},
        {"seconds": 2_592_001},
    )
    for wrong in wrongs:
        with pytest.raises(InvalidInputError):
            filled.call("register_intent", **({"intent_id": JOB, "tables": [{"id": T}]} | wrong))


def test_a_row_of_an_intent_is_read_back_as_it_was_written(filled: Ground) -> None:
    tables = [{"id": T, "read_version": 1}, {"id": U, "branch": "dev"}]
    filled.call("register_intent", intent_id=JOB, tables=tables, reason="nightly")
    written = filled.catalog.snapshot().intent(JOB)
    assert written is not None
    assert [(each.branch, each.read_version) for each in written.chains] == [(None, 1), ("dev", 0)]
    assert the_intent(filled) == written
    filled.batch(end())
    assert the_intent(filled) is None


def test_the_horizon_of_a_location_never_goes_back(filled: Ground) -> None:
    """G4, step by step: horizon flips, and intents that come, are renewed, and end, in a random order."""
    random = Random(24)
    seen, ahead = 0, -6 * 24 * HOUR
    for _ in range(40):
        job = f"00000000-0000-4000-8000-{random.randrange(3):012}"
        match random.randrange(3):
            case 0:
                ahead += random.randrange(HOUR)
                move_horizon(filled, ahead=ahead)
            case 1:
                register(filled, random.choice((T, U)), intent=job)
            case 2:
                filled.call("end_intent", intent_id=job)
        snapshot = filled.catalog.snapshot()
        horizon = horizon_at(snapshot, filled.location(T))
        assert seen <= horizon <= snapshot.collector.horizon
        seen = horizon
    assert seen > 0
