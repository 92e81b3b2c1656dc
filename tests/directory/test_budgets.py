"""Serial storage round trips of a warm server without contention, as docs/design/000-architecture.md §9 allows them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import pytest
from lance_namespace.errors import InvalidInputError

from lance_core.storage.local import LocalStore
from lance_core.storage.wrappers.counting import CountingStore
from namespace_server.directory.catalog import CatalogOptions
from namespace_server.directory.manifest_table import table
from namespace_server.directory.root_check.speed import REQUESTS_OF_A_BATCH, REQUESTS_PER_TABLE, TO_ANSWER
from tests.directory.conftest import StillClock
from tests.directory.gc.horizons import move_horizon
from tests.directory.tables import QUIET, Capture, Ground, rows
from tests.storage.bucketlike import BucketLike
from tests.storage.faults import Crashed, Fault, FaultStore
from tests.storage.latency import LatencyStore

pytestmark = pytest.mark.usefixtures("still_clock")  # or else a slow machine takes more than a second for a batch


@pytest.fixture
def counted(tmp_path: Path) -> Ground:
    """See `make_counted`."""
    return make_counted(tmp_path)


def make_counted(tmp_path: Path, options: CatalogOptions = QUIET) -> Ground:
    """A warm catalog of ten tables with settled records, over a store that counts."""
    store = CountingStore(BucketLike(LocalStore(tmp_path / "root", "none")))
    ground = Ground(tmp_path / "root", store, options)
    ground.make_namespace("g")
    for number in range(10):
        ground.make_table("g", f"t{number}", count=1)
    move_horizon(ground)
    ground.catalog.sweep()
    ground.catalog.flush_record_housekeeping()
    return ground


def store_of(ground: Ground) -> CountingStore:
    assert isinstance(ground.store, CountingStore)
    return ground.store


READS: list[tuple[str, dict[str, Any]]] = [
    ("describe_namespace", {"id": ["g"]}),
    ("namespace_exists", {"id": ["g"]}),
    ("list_namespaces", {"id": []}),
    ("list_tables", {"id": ["g"]}),
    ("list_all_tables", {}),
    ("describe_table", {"id": ["g", "t0"]}),
    ("table_exists", {"id": ["g", "t0"]}),
    ("list_table_versions", {"id": ["g", "t0"], "limit": 1, "descending": True}),
    ("describe_table_version", {"id": ["g", "t0"]}),
    ("describe_table_version", {"id": ["g", "t0"], "version": 1}),
    ("describe_catalog", {}),
]


@pytest.mark.parametrize(("operation", "request_"), READS, ids=[operation for operation, _ in READS])
def test_a_read_is_one_round_trip(counted: Ground, operation: str, request_: dict[str, Any]) -> None:
    with store_of(counted).measure() as cost:
        counted.read(operation, **request_)

    head_only = operation == "list_table_versions" or (
        operation == "describe_table_version" and "version" not in request_
    )
    assert cost.round_trips == 1
    assert cost.by_verb == {"get": 2 if head_only else 1}  # of the head, and of head + 1 (P5: adopt versions above it)


def test_opening_a_table_as_of_a_catalog_version_is_one_round_trip(counted: Ground) -> None:
    at = counted.catalog.snapshot().version
    request = {"id": ["g", "t0"], "limit": 1, "descending": True}
    with store_of(counted).measure() as cost:
        answer = counted.namespace.read("list_table_versions", request, at=at)
    assert answer.body["versions"]
    assert cost.round_trips == 1
    assert cost.by_verb == {"head": 1, "get": 1}  # whether the head is still there, and whether a version is above it


def test_changes_of_another_server_come_inline_with_the_next_version(counted: Ground) -> None:
    counted.again().make_namespace("new")

    with store_of(counted).measure() as cost:
        counted.read("namespace_exists", id=["new"])

    assert cost.round_trips == 2
    # N + 1 with its changes; then that N is still there, that there is no N + 2, and that nothing else is newer (G8)
    assert cost.by_verb == {"get": 3, "list": 1}


@pytest.mark.parametrize("tables", [1, 2, 10])
def test_a_batch_of_transactions_is_two_round_trips_to_the_commit_point_and_three_in_all(
    counted: Ground, tables: int
) -> None:
    operations = [counted.transaction(["g", f"t{number}"], rows(5, 6)) for number in range(tables)]

    with store_of(counted).measure() as cost:
        counted.batch(*operations)

    assert cost.round_trips == len(TO_ANSWER) == 3  # stage beside looking, flip, promote beside proving it newest (G7)
    assert cost.requests == REQUESTS_OF_A_BATCH + tables * REQUESTS_PER_TABLE
    assert cost.by_verb["put"] == 2 + tables  # rows, one object with all staged manifests, transaction files
    assert cost.by_verb["put_if_absent"] == cost.by_verb["list"] == 1
    assert cost.by_verb["publish"] == tables


def test_a_batch_after_a_while_lists_beside_staging_in_place_of_a_look(
    counted: Ground, still_clock: StillClock
) -> None:
    """So that its base was proved to be the newest within a second of its flip."""
    operation = counted.transaction(["g", "t0"], rows(5, 6))
    still_clock.time += 30

    with store_of(counted).measure() as cost:
        counted.batch(operation)

    assert cost.round_trips == 3
    assert cost.requests == REQUESTS_OF_A_BATCH + REQUESTS_PER_TABLE
    assert cost.by_verb["list"] == 2


def test_a_batch_whose_flip_takes_more_than_a_second_is_proved_before_it_is_promoted(
    counted: Ground, still_clock: StillClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation = counted.transaction(["g", "t0"], rows(5, 6))
    monkeypatch.setattr(table, "elapsed_clock", lambda: still_clock.time + 1.1)

    with store_of(counted).measure() as cost:
        counted.batch(operation)

    assert cost.round_trips == 4


@pytest.mark.parametrize("tables", [1, 10])
def test_a_fenced_root_saves_a_request_for_each_table(tmp_path: Path, tables: int) -> None:
    """What other writers may have committed above heads is not looked for."""
    ground = make_counted(tmp_path, replace(QUIET, sole_writer=True))
    for operation, request in READS:
        with store_of(ground).measure() as cost:
            ground.read(operation, **request)
        assert cost.by_verb == {"get": 1}

    operations = [ground.transaction(["g", f"t{number}"], rows(5, 6)) for number in range(tables)]
    with store_of(ground).measure() as cost:
        ground.batch(*operations)
    assert cost.round_trips == 3
    assert cost.requests == REQUESTS_OF_A_BATCH + tables * (REQUESTS_PER_TABLE - 1)


@pytest.mark.parametrize("tables", [1, 10])
def test_manifests_that_are_not_in_memory_are_read_at_once(counted: Ground, tables: int) -> None:
    """Those of the heads, and of the versions that were committed since the transactions read theirs."""
    names = [["g", f"t{number}"] for number in range(tables)]
    operations = [counted.transaction(name, rows(5, 6)) for name in names]
    for _ in range(3):
        counted.batch(*(counted.transaction(name, rows(7, 8)) for name in names))
    counted.catalog.sweep()
    other = counted.again(counted.store)
    other.catalog.snapshot()

    with store_of(counted).measure() as cost:
        other.batch(*operations)

    assert cost.round_trips == 1 + 3
    assert [counted.head(name) for name in names] == [5] * tables


def test_a_manifest_that_many_batches_need_is_read_once(counted: Ground) -> None:
    """On a server that has none in memory; all of them build on one version, and requests are made at once."""
    other = counted.again(LatencyStore(counted.store, 0.01))
    other.catalog.snapshot()
    costs = []
    for many in (1, 8):
        bodies = [{"operations": [counted.transaction(["g", f"t{many}"], rows(n, n + 1))]} for n in range(many)]
        calls = [other.namespace.prepare("batch_commit_tables", body) for body in bodies]
        with store_of(counted).measure() as cost:
            answers = other.namespace.commit_calls(calls)
        assert not any(isinstance(answer, Exception) for answer in answers)
        costs.append(cost.by_verb["get"])
    assert costs[0] == costs[1]


def test_heads_that_another_server_has_not_promoted_are_promoted_at_once(tmp_path: Path) -> None:
    costs = []
    for tables in (1, 10):
        ground = make_counted(tmp_path / str(tables))
        names = [["g", f"t{number}"] for number in range(tables)]
        store = FaultStore(BucketLike(LocalStore(ground.root, "none")))
        store.fail(Fault.CRASH_AFTER, when=lambda write: write.path.startswith("__manifest/_versions/"))
        with pytest.raises(Crashed):
            ground.again(store).batch(*(ground.transaction(name, rows(7, 8)) for name in names))
        operations = [ground.transaction(name, rows(5, 6)) for name in names]
        other = ground.again(ground.store)
        assert [other.head(name) for name in names] == [2] * tables
        with store_of(ground).measure() as cost:
            other.batch(*operations)
        assert [ground.head(name) for name in names] == [3] * tables
        costs.append(cost.round_trips)
    assert costs[0] == costs[1]


@pytest.mark.parametrize("tables", [1, 10])
def test_a_batch_of_client_staged_versions_adds_the_round_trip_that_verifies_them(counted: Ground, tables: int) -> None:
    operations = [counted.stage(["g", f"t{number}"], rows(5, 6)) for number in range(tables)]

    with store_of(counted).measure() as cost:
        counted.batch(*operations)

    assert cost.round_trips == 4
    assert cost.by_verb["publish"] == tables


@pytest.mark.parametrize("tables", [1, 10])
@pytest.mark.parametrize("gone", ["id = 1", "id IN (1, 2)", "true"])
def test_deletions_of_clients_that_may_have_those_of_others_add_a_listing_of_the_quarantine(
    counted: Ground, tables: int, gone: str
) -> None:
    """Not where a fragment has its first deleted row (P16)."""
    operations = []
    for number in range(tables):
        capture = Capture(counted.namespace)
        counted.write(["g", f"t{number}"], rows(1, 4))
        counted.catalog.sweep()
        lance.dataset(namespace_client=capture, table_id=["g", f"t{number}"]).delete(gone)
        operations += [{"create_table_version": each} for each in capture.captured]
    counted.catalog.flush_record_housekeeping()

    with store_of(counted).measure() as cost:
        counted.batch(*operations)

    assert cost.by_verb["list"] == (1 if gone == "id = 1" else 2)
    assert cost.round_trips == (4 if gone == "id = 1" else 5)


@pytest.mark.parametrize("tables", [2, 10])
def test_a_sweep_clears_up_after_batches(counted: Ground, tables: int) -> None:
    counted.batch(*(counted.transaction(["g", f"t{number}"], rows(5, 6)) for number in range(tables)))

    with store_of(counted).measure() as cost:
        counted.catalog.sweep()
    assert cost.by_verb == {"delete": tables + 1, "put": 3, "put_if_absent": 1, "get": 2, "list": 2}
    assert cost.round_trips == 8

    with store_of(counted).measure() as cost:
        counted.catalog.sweep()
    assert cost.by_verb == {"get": 1, "list": 1}


def test_a_server_starts_in_at_most_four_round_trips(counted: Ground) -> None:
    for number in range(40):
        counted.make_namespace(f"n{number}")
    fresh = counted.again(counted.store)

    with store_of(counted).measure() as cost:
        fresh.catalog.snapshot()

    assert cost.round_trips <= 4
    assert cost.requests <= 12


def test_the_size_of_the_catalog_does_not_matter(counted: Ground) -> None:
    for number in range(40):
        counted.make_namespace(f"n{number}")
    operation = counted.transaction(["g", "t0"], rows(5, 6))

    with store_of(counted).measure() as cost:
        counted.batch(operation)

    assert cost.round_trips == 3


def test_a_transaction_whose_files_are_not_there_is_refused_on_every_store(counted: Ground) -> None:
    operation = counted.transaction(["g", "t0"], rows(5, 6))
    data = counted.root / counted.location(["g", "t0"]) / "data"
    newest = max(data.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    newest.unlink()

    with pytest.raises(InvalidInputError, match="is not there; stage again"):
        counted.batch(operation)

    assert counted.head(["g", "t0"]) == 1
