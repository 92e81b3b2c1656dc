"""Nothing rests on a flip before it is proved to be a commit (G7), except what it published on a bucket.

That is promoted beside the proof, if its base was proved to be the newest within a second before.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import lance
import pytest
from lance_namespace.errors import LanceNamespaceError, ServiceUnavailableError

from lance_core.errors import StorageError
from lance_core.storage.local import LocalStore
from lance_core.storage.overlap import Overlap
from lance_core.storage.port import Results
from namespace_server.directory.manifest_table import table as table_module
from namespace_server.directory.model.root_layout import TURN_REQUESTS
from tests.directory.conftest import StillClock
from tests.directory.invariants import check_always, check_progress, check_quiet
from tests.directory.tables import Ground, rows
from tests.storage.bucketlike import BucketLike
from tests.storage.faults import Crashed, FaultStore, Write

T = TypeVar("T")
R = TypeVar("R")
A, B = ["g", "a"], ["g", "b"]
VERSIONS = "__manifest/_versions"
PATIENCE = 30.0
SHORT = 0.3
"""Seconds in which what must not happen would have happened."""


class Bucket(FaultStore):
    """A directory that is asked as a bucket is, with several calls at one time."""

    def __init__(self, root: Path) -> None:
        super().__init__(BucketLike(LocalStore(root, "none")))
        self.overlap = Overlap(16, "bucket")

    def map(self, call: Callable[[T], R], items: Sequence[T]) -> Results[R]:
        return self.overlap.map(call, items)

    def beside(self, call: Callable[[], object]) -> AbstractContextManager[None]:
        return self.overlap.beside(call)

    def slots(self) -> int:
        """How many flips were sent."""
        return sum(write.verb == "put_if_absent" and write.path.startswith(VERSIONS) for write in self.writes)

    def staged(self) -> list[Write]:
        """The manifests of tables that were staged."""
        puts = [write for write in self.writes if write.verb == "put" and write.path.startswith("_staging/")]
        return [write for write in puts if not write.path.startswith(TURN_REQUESTS)]


class Scene:
    """A catalog of two tables, and one process on it whose batches come from several threads.

    `believed`: the base of each flip was proved to be the newest version within a second.
    """

    def __init__(self, root: Path, believed: bool) -> None:
        self.believed = believed
        self.other = Ground(root)
        self.other.make_namespace("g")
        self.other.make_table(*A)
        self.other.make_table(*B)
        self.other.catalog.sweep()
        self.other.catalog.flush_record_housekeeping()
        self.store = Bucket(root)
        self.ground = Ground(root, self.store)
        self.first = self.ground.catalog.snapshot().version
        self.promoted_early = [1, 2] if believed else [1]
        self.pool = ThreadPoolExecutor(4)

    def close(self) -> None:
        self.pool.shutdown()
        self.store.overlap.close()

    def append(self, table: list[str], start: int) -> dict[str, Any]:
        return self.other.transaction(table, rows(start, start + 1), 1)

    def start(self, *operations: dict[str, Any], key: str | None = None) -> Future[dict[str, Any]]:
        return self.pool.submit(self.ground.batch, *operations, key=key)

    def start_and_hold(self, change: dict[str, Any], key: str | None = None) -> Future[dict[str, Any]]:
        """A batch whose flip is held before its proof by now."""
        started = self.start(change, key=key)
        assert self.held.wait(PATIENCE)
        return started

    def start_two(
        self, a: dict[str, Any], b: dict[str, Any], keys: tuple[str | None, str | None] = (None, None)
    ) -> list[Future[dict[str, Any]]]:
        """A batch whose flip is held before its proof, and one that waits for the next flip."""
        started = [self.start_and_hold(a, keys[0]), self.start(b, key=keys[1])]
        wait_for(lambda: self.ground.catalog.committer._queue.is_awaited)
        return started

    def made(self, *answers: Future[dict[str, Any]]) -> list[int]:
        """The catalog versions that batches made."""
        uuids = [uuid_of(each) for each in answers]
        snapshot = self.other.again().catalog.snapshot()
        return [record.catalog_version for uuid in uuids if (record := snapshot.record(uuid)) is not None]

    @contextmanager
    def held_at_proof(self) -> Iterator[threading.Event]:
        """The next flip is held before its proof (`held` is set then) within the block, or until the event is set."""
        reached, go_on = threading.Event(), threading.Event()

        def arrive(verb: str, path: str) -> None:
            if verb == "list" and path == VERSIONS and self.store.slots() and not reached.is_set():
                reached.set()
                assert go_on.wait(PATIENCE)

        remove = self.store.before(arrive)
        self.held = reached
        try:
            yield go_on
        finally:
            go_on.set()
            remove()

    def check(self, a: Sequence[int], b: Sequence[int]) -> None:
        """Both tables have these rows, everything is promoted, and stock pylance agrees."""
        self.other.catalog.sweep()
        self.other.catalog.flush_record_housekeeping()
        check_quiet(self.other.root)
        assert self.other.ids(A) == sorted(a)
        assert self.other.ids(B) == sorted(b)
        check_progress(self.other.root)


@pytest.fixture(params=[True, False], ids=["believed", "proved first"])
def scene(
    tmp_path: Path, still_clock: StillClock, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Scene]:
    del still_clock  # a slow machine may hold a batch for a second
    if not request.param:
        monkeypatch.setattr(table_module, "SAME_SECOND", 0.0)
    made = Scene(tmp_path / "root", request.param)
    yield made
    made.close()


def uuid_of(answer: Future[dict[str, Any]]) -> str:
    uuid = answer.result(PATIENCE)["transaction_id"]
    assert isinstance(uuid, str)
    return uuid


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.005)


def test_the_next_group_is_planned_after_the_proof(scene: Scene) -> None:
    with scene.held_at_proof() as go_on:
        first, second = scene.start_two(scene.append(A, 10), scene.append(B, 20))
        wait_for(lambda: scene.other.canonical(A) == scene.promoted_early)
        time.sleep(SHORT)
        assert scene.store.slots() == len(scene.store.staged()) == 1
        assert scene.other.canonical(A) == scene.promoted_early
        assert not first.done()
        assert not second.done()
        go_on.set()
        versions = scene.made(first, second)

    assert versions == [scene.first + 1, scene.first + 2]
    assert len(scene.store.staged()) == 2
    scene.check([0, 1, 2, 10], [0, 1, 2, 20])


def test_promotion_does_not_hold_up_a_proof_for_which_others_wait(scene: Scene) -> None:
    """It comes after the proof then, whose request would stand behind those of promotion."""
    queue, sent = scene.ground.catalog.committer._queue, threading.Event()

    def arrive(verb: str, path: str) -> None:
        if verb == "put_if_absent" and path.startswith(VERSIONS) and not sent.is_set():
            sent.set()
            wait_for(lambda: queue.is_awaited)

    scene.store.before(arrive)
    with scene.held_at_proof() as go_on:
        first = scene.start(scene.append(A, 10))
        assert sent.wait(PATIENCE)
        second = scene.start(scene.append(B, 20))
        assert scene.held.wait(PATIENCE)
        time.sleep(SHORT)
        assert scene.other.canonical(A) == [1]
        go_on.set()
        assert scene.made(first, second) == [scene.first + 1, scene.first + 2]
    scene.check([0, 1, 2, 10], [0, 1, 2, 20])


def test_the_next_group_is_flipped_while_this_one_is_promoted(scene: Scene) -> None:
    promoting, go_on = threading.Event(), threading.Event()

    def arrive(verb: str, path: str) -> None:
        if verb == "publish" and not promoting.is_set():
            promoting.set()
            assert go_on.wait(PATIENCE)

    scene.store.before(arrive)
    first = scene.start(scene.append(A, 10))
    assert promoting.wait(PATIENCE)
    second = scene.start(scene.append(B, 20))
    assert second.result(PATIENCE)
    assert not first.done()
    go_on.set()
    assert scene.made(first, second) == [scene.first + 1, scene.first + 2]
    scene.check([0, 1, 2, 10], [0, 1, 2, 20])


def test_many_groups_follow_each_other(scene: Scene) -> None:
    tables = [scene.other.make_table("g", f"t{number}", count=1) for number in range(8)]
    scene.ground.catalog.snapshot()
    appends = [[scene.other.transaction(table, rows(n, n + 1), 1) for n in range(10, 16)] for table in tables]

    def work(operations: list[dict[str, Any]]) -> None:
        for operation in operations:
            scene.ground.batch(operation)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, appends))

    for table in tables:
        assert scene.other.ids(table) == [0, *range(10, 16)]
    scene.check([0, 1, 2], [0, 1, 2])


def test_a_verdict_is_not_given_before_the_proof(scene: Scene) -> None:
    wrong = {"assert_table_version": {"id": B, "version": 7}}
    with scene.held_at_proof() as go_on:
        first = scene.start_and_hold(scene.append(A, 10))
        second = scene.start(wrong)
        time.sleep(SHORT)
        assert not second.done()
        go_on.set()
        with pytest.raises(LanceNamespaceError, match="7"):
            second.result(PATIENCE)
        first.result(PATIENCE)
    scene.check([0, 1, 2, 10], [0, 1, 2])


def test_a_proof_that_fails_has_the_group_planned_again(scene: Scene) -> None:
    """The slot had been freed by a clean-up: what was won there is in no history.

    Where a clean-up removed a version within a second, what was promoted is another writer's file for the catalog: the
    outcome is unknown, and the same batch again finds what became of it.
    """
    worked = threading.Event()

    def arrive(verb: str, path: str) -> None:
        if verb == "put_if_absent" and path.startswith(VERSIONS) and not worked.is_set():
            worked.set()
            for number in range(10):
                scene.other.make_namespace(f"n{number}")
            lance.dataset(str(scene.other.root / "__manifest")).cleanup_old_versions(older_than=timedelta(0))

    scene.store.before(arrive)
    changes = {"first": scene.append(A, 10), "second": scene.append(B, 20)}
    with scene.held_at_proof() as go_on:
        first, second = scene.start_two(changes["first"], changes["second"], ("first", "second"))
        if scene.believed:
            wait_for(lambda: scene.other.canonical(A) == [1, 2])
        go_on.set()
        if scene.believed:
            with pytest.raises(ServiceUnavailableError, match="unknown"):
                first.result(PATIENCE)
        decided = [second] if scene.believed else [first, second]
        versions = sorted(scene.made(*decided))

    assert versions[0] > scene.first + 10
    assert len({write.path for write in scene.store.staged()}) == 1 + len(decided)  # anew, under other names
    repeated = [scene.other.batch(change, key=key)["transaction_id"] for key, change in changes.items()]
    assert repeated[-len(decided) :] == [uuid_of(each) for each in decided]
    check_always(scene.other.root, since=versions[0], cleaned=True)
    assert scene.other.ids(A) == [0, 1, 2, 10]
    assert scene.other.ids(B) == [0, 1, 2, 20]


def test_a_proof_that_cannot_be_had_makes_one_outcome_unknown_and_not_the_next(scene: Scene) -> None:
    failed = threading.Event()

    def arrive(verb: str, path: str) -> None:
        if verb == "list" and path == VERSIONS and scene.store.slots() == 1 and not failed.is_set():
            failed.set()
            raise StorageError("the store cannot be listed")

    with scene.held_at_proof() as go_on:
        scene.store.before(arrive)
        first, second = scene.start_two(scene.append(A, 10), scene.append(B, 20))
        go_on.set()
        with pytest.raises(ServiceUnavailableError, match="unknown"):
            first.result(PATIENCE)
        second.result(PATIENCE)

    scene.check([0, 1, 2, 10], [0, 1, 2, 20])


def test_a_process_that_dies_before_the_proof_has_committed_what_it_won_alone(scene: Scene) -> None:
    with scene.held_at_proof() as go_on:
        first, second = scene.start_two(scene.append(A, 10), scene.append(B, 20))
        scene.store.crashed = True
        go_on.set()
        for each in (first, second):
            with pytest.raises(Crashed):
                each.result(PATIENCE)

    scene.check([0, 1, 2, 10], [0, 1, 2])
