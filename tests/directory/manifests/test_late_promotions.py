"""A process is held on a bucket between its flip and the promotion, and its version is removed meanwhile (G21).

Others promote the version, supersede it, and clean up after more than a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from lance_core.errors import StorageError, StorageUnknown
from namespace_server.directory.manifests import promoter
from tests.directory.committing.test_proof import VERSIONS, A, Bucket
from tests.directory.conftest import StillClock
from tests.directory.tables import Ground, rows
from tests.storage.faults import Fault


class LateBucket(Bucket):
    """`meanwhile` is called once after a slot was written."""

    meanwhile: Callable[[], object] | None = None

    def put_if_absent(self, path: str, data: bytes, *, durable: bool = True) -> str | None:
        e_tag = super().put_if_absent(path, data, durable=durable)
        if path.startswith(VERSIONS) and self.meanwhile is not None:
            work, self.meanwhile = self.meanwhile, None
            work()
        return e_tag


class Scene:
    """A catalog of the table A at version 1, on which one process is about to commit version 2."""

    def __init__(self, root: Path, clock: StillClock) -> None:
        self.clock = clock
        self.other = Ground(root)
        self.other.make_namespace("g")
        self.other.make_table(*A)
        self.settle(self.other)
        self.store = LateBucket(root)
        self.ground = Ground(root, self.store)
        self.ground.catalog.snapshot()

    def commit(self) -> None:
        self.ground.batch(self.other.transaction(A, rows(10, 11), 1))

    def wait(self) -> None:
        self.clock.time += 1.5

    def settle(self, ground: Ground) -> None:
        for _ in range(2):
            ground.catalog.sweep()
        ground.catalog.flush_record_housekeeping()

    def remove_version_2(self) -> None:
        """Others promote version 2, close its record, overwrite the table, and clean up; version 3 is left alone."""
        helper = self.other.again()
        self.settle(helper)
        assert helper.canonical(A) == [1, 2]
        helper.write(A, rows(100, 101), "overwrite")
        self.settle(helper)
        self.wait()
        helper.open(A).cleanup_old_versions(older_than=timedelta(0))
        assert helper.canonical(A) == [3]

    def at_publish(self, act: Callable[[], None]) -> None:
        """Hold the process once, right before its promotion, which comes late and after the proof of its flip."""
        self.store.meanwhile = self.wait

        def arrive(verb: str, _path: str) -> None:
            if verb == "publish":
                go_on()
                act()

        go_on = self.store.before(arrive)

    def fail_checks(self, error: Exception) -> Callable[[], None]:
        """From now on the newest catalog version cannot be read. Returns a function that ends this."""

        def arrive(verb: str, path: str) -> None:
            if verb in {"find", "get", "list"} and path.startswith("__manifest"):
                raise error

        return self.store.before(arrive)


@pytest.fixture
def scene(tmp_path: Path, still_clock: StillClock) -> Iterator[Scene]:
    made = Scene(tmp_path / "root", still_clock)
    yield made
    made.store.overlap.close()


@pytest.mark.parametrize("lost", [False, True])
def test_a_late_answer_of_the_slot_is_no_recent_flip(scene: Scene, lost: bool) -> None:
    def work() -> None:
        scene.remove_version_2()
        if lost:
            raise StorageUnknown("no answer")

    scene.store.meanwhile = work
    scene.commit()

    assert scene.other.canonical(A) == [3]


def test_a_process_that_dies_after_a_late_promotion_has_looked_before(scene: Scene) -> None:
    scene.store.meanwhile = scene.remove_version_2
    scene.store.fail(Fault.CRASH_AFTER, when=lambda write: write.verb == "publish")
    scene.commit()

    assert "publish" not in [write.verb for write in scene.store.writes]
    assert scene.other.canonical(A) == [3]


@pytest.mark.parametrize("error", [StorageError("no answer"), RuntimeError("can't start new thread")])
def test_a_check_that_failed_is_made_by_the_next_sweep(scene: Scene, error: Exception) -> None:
    """Also when the record of the version is closed by then, so that nothing else is left to be done for it."""
    ends = []

    def work() -> None:
        scene.remove_version_2()
        ends.append(scene.fail_checks(error))

    scene.at_publish(work)
    scene.commit()
    assert scene.other.canonical(A) == [2, 3]

    [end] = ends
    end()
    scene.ground.catalog.sweep()
    assert scene.other.canonical(A) == [3]


def test_a_version_counts_as_promoted_only_after_its_check(scene: Scene) -> None:
    """Its record stays open, and who needs it promoted has it checked."""
    promoter, ends = scene.ground.catalog.promoter, []
    scene.at_publish(lambda: ends.append(scene.fail_checks(StorageError("no answer"))))
    scene.commit()
    snapshot = scene.other.again().catalog.snapshot()
    head, records = snapshot.head(tuple(A)), list(snapshot.open_records())
    assert scene.other.canonical(A) == [1, 2]
    assert head is not None
    assert len(records) == 1

    assert promoter.finish_records(records, snapshot) == []
    assert not promoter.is_promoted(head, snapshot)
    [end] = ends
    end()
    promoter.promote([head], snapshot)

    assert promoter.is_promoted(head, snapshot)
    assert promoter.finish_records(records, snapshot) == records


def test_each_of_two_late_promotions_is_checked_where_a_version_of_others_lies_between(scene: Scene) -> None:
    ends = []

    def work() -> None:
        scene.remove_version_2()
        ends.append(scene.fail_checks(StorageError("no answer")))

    scene.at_publish(work)
    scene.commit()
    ends.pop()()
    scene.ground.catalog.snapshot()  # the record of version 2 is closed: the next batch does not promote it
    scene.at_publish(lambda: ends.append(scene.fail_checks(StorageError("no answer"))))
    scene.ground.batch(scene.other.transaction(A, rows(20, 21)))
    assert scene.other.canonical(A) == [2, 3, 4]

    ends.pop()()
    scene.ground.catalog.sweep()
    assert scene.other.canonical(A) == [3, 4]
    assert scene.other.ids(A) == [20, 100]


def test_another_promotion_of_a_version_does_not_stand_for_its_check(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One thread gives a version its name, and cannot check it; another one, which began before, finds the name."""
    promoter, table = scene.ground.catalog.promoter, scene.ground.catalog.table
    heads = []

    def fail() -> None:
        raise StorageError("no answer")

    def work() -> None:
        snapshot = scene.other.again().catalog.snapshot()
        heads.append(snapshot.head(tuple(A)))
        monkeypatch.setattr(table, "refresh", fail)
        promoter.promote(heads, snapshot)
        assert scene.other.canonical(A) == [1, 2]

    scene.at_publish(work)
    scene.commit()

    assert not promoter.is_done(*heads)


def test_a_server_that_takes_over_promotes_without_a_listing_of_all_versions(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That would take as long as there are versions, for each table whose last commit another one left."""

    def fail(verb: str, _path: str) -> None:
        if verb == "publish":
            raise StorageError("the process is cut off")

    def refuse(*_: object) -> None:
        raise AssertionError("all versions are listed")

    scene.store.before(fail)
    scene.commit()
    assert scene.other.canonical(A) == [1]
    store = LateBucket(scene.other.root)
    monkeypatch.setattr(promoter, "list_versions", refuse)
    Ground(scene.other.root, store).catalog.sweep()
    store.overlap.close()
    assert scene.other.canonical(A) == [1, 2]
