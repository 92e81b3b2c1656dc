"""Retries of blocks until they commit."""

# ruff: noqa: PT012 - leaving the block is what raises

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Literal

import pyarrow as pa
import pytest

from namespace_client import InvalidCall, MultiTableTransaction, RetryableConflict
from tests.client.scene import Scene, rows
from tests.server.servers import REPOSITORY

WRITERS = 4
ROUNDS = 5
COUNTER = pa.schema([("id", pa.int64()), ("n", pa.int64())])

WRITER = """
import sys
from namespace_client import Catalog
url, namespace, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
with Catalog.connect(url, namespace=[namespace]) as catalog:
    for _ in range(rounds):
        for attempt in catalog.retrying(attempts=60):
            with attempt as tx:
                [n] = tx.table("counter").to_table().column("n").to_pylist()
                tx.update("counter", {"n": str(n + 1)})
                tx.append("log", [{"id": n, "n": n}])
"""


def _count_up(tx: MultiTableTransaction) -> int:
    [n] = tx.table("counter").to_table().column("n").to_pylist()
    tx.update("counter", {"n": str(n + 1)})
    tx.append("log", [{"id": n, "n": n}])
    return n


def _check_count(scene: Scene, total: int) -> None:
    """Check that no update is lost and that both tables agree."""
    assert scene.open("counter").to_table().to_pylist() == [{"id": 1, "n": total}]
    assert sorted(scene.open("log").to_table().column("n").to_pylist()) == list(range(total))


def _make(scene: Scene) -> None:
    with scene.catalog.begin() as tx:
        tx.create("counter", [{"id": 1, "n": 0}], schema=COUNTER)
        tx.create("log", schema=COUNTER)


@pytest.mark.parametrize("isolation", ["snapshot", "serializable"])
def test_four_threads_lose_no_update(scene: Scene, isolation: Literal["snapshot", "serializable"]) -> None:
    _make(scene)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(ROUNDS):
                scene.catalog.run(_count_up, attempts=60, isolation=isolation)
        except BaseException as error:  # noqa: BLE001 - asserted by the test
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    _check_count(scene, WRITERS * ROUNDS)


@pytest.mark.slow
@pytest.mark.parametrize("scene", ["http"], indirect=True)
def test_four_processes_lose_no_update(scene: Scene) -> None:
    _make(scene)
    command = [sys.executable, "-c", WRITER, scene.target, scene.namespace, str(ROUNDS)]
    processes = [subprocess.Popen(command, cwd=REPOSITORY, stderr=subprocess.PIPE) for _ in range(WRITERS)]
    errors = [process.communicate(timeout=200)[1].decode() for process in processes]

    assert [process.returncode for process in processes] == [0] * WRITERS, errors
    _check_count(scene, WRITERS * ROUNDS)


@pytest.mark.parametrize("scene", ["http"], indirect=True)
def test_killed_writers_leave_all_or_nothing(scene: Scene) -> None:
    """Both tables agree after a kill at any time, and the next writer commits."""
    _make(scene)
    command = [sys.executable, "-c", WRITER, scene.target, scene.namespace, "100000"]
    writers = [subprocess.Popen(command, cwd=REPOSITORY, stderr=subprocess.DEVNULL) for _ in range(2)]
    try:
        while _total(scene) < 10:
            assert all(writer.poll() is None for writer in writers)
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()

    # A batch that was sent before its sender died may still be on its way through the server.
    total = _total(scene)
    while (later := _total(scene)) != total:
        total = later
    _check_count(scene, total)
    assert scene.catalog.run(_count_up, attempts=60) == total
    _check_count(scene, total + 1)


def _total(scene: Scene) -> int:
    """The count, on which both tables agree at any time."""
    with scene.catalog.begin() as tx:
        [n] = tx.table("counter").to_table().column("n").to_pylist()
        assert tx.table("log").count_rows() == n
    return int(n)


def test_every_attempt_reads_a_new_snapshot(scene: Scene) -> None:
    scene.make("t", 1)
    snapshots: list[int] = []
    for attempt in scene.catalog.retrying():
        with attempt as tx:
            snapshots.append(tx.catalog_version)
            tx.update("t", {"v": "v + 1"})
            if len(snapshots) < 3:
                with scene.catalog.begin() as other:
                    other.update("t", {"v": "v + 10"})

    assert len(snapshots) == 3
    assert snapshots == sorted(set(snapshots))
    assert scene.values() == {1: 22.0}
    assert tx.result.tables[0].version == 4


def test_the_last_conflict_is_raised_after_all_attempts(scene: Scene) -> None:
    scene.make("t", 1)
    runs = 0
    with pytest.raises(RetryableConflict):
        for attempt in scene.catalog.retrying(attempts=2):
            with attempt as tx:
                runs += 1
                tx.update("t", {"v": "0"})
                with scene.catalog.begin() as other:
                    other.update("t", {"v": "v + 1"})

    assert runs == 2
    assert scene.values() == {1: 3.0}


def test_other_exceptions_are_not_retried(scene: Scene) -> None:
    scene.make("t", 1)
    runs: list[int] = []

    def block(tx: MultiTableTransaction) -> None:
        runs.append(1)
        tx.append("t", rows(2))
        raise KeyError("not a conflict")

    with pytest.raises(KeyError, match="not a conflict"):
        scene.catalog.run(block)

    assert len(runs) == 1
    assert scene.ids() == [1]


def test_an_interrupt_is_raised(scene: Scene) -> None:
    with pytest.raises(KeyboardInterrupt):
        for attempt in scene.catalog.retrying():
            with attempt as tx:
                tx.create("t", rows(1))
                raise KeyboardInterrupt

    assert scene.catalog.access.table((scene.namespace, "t")) is None


def test_run_returns_the_value_of_the_committed_call(scene: Scene) -> None:
    _make(scene)
    assert [scene.catalog.run(_count_up, message="count") for _ in range(3)] == [0, 1, 2]
    _check_count(scene, 3)


def test_the_next_attempt_sees_a_concurrently_created_table(scene: Scene) -> None:
    for attempt in scene.catalog.retrying():
        with attempt as tx:
            if tx.exists("t"):
                tx.append("t", rows(1))
            else:
                tx.create("t", rows(1))
                with scene.catalog.begin() as other:
                    other.create("t", rows(2))

    assert scene.ids() == [1, 2]
    with pytest.raises(InvalidCall), scene.catalog.begin() as tx:
        tx.create("t", rows(3))


def test_a_used_reader_from_outside_the_block_is_refused(scene: Scene) -> None:
    """The next attempt would commit without the rows of the reader."""
    scene.make("t", 1)
    reader = rows(2, 3).to_reader()
    with pytest.raises(InvalidCall, match="make it inside the block"):
        for attempt in scene.catalog.retrying():
            with attempt as tx:
                tx.update("t", {"v": "v + 1"})
                tx.append("t", reader)
                with scene.catalog.begin() as other:
                    other.update("t", {"v": "v + 10"})

    assert scene.ids() == [1]


@pytest.mark.parametrize("call", ["append", "overwrite", "merge"])
def test_a_reader_is_read_once(scene: Scene, call: str) -> None:
    scene.make("t", 1)
    reader = rows(2).to_reader()
    with scene.catalog.begin() as tx:
        tx.create("other", reader)
        with pytest.raises(InvalidCall, match="was read before"):
            getattr(tx, call)("t", reader, **({"on": "id"} if call == "merge" else {}))
    assert scene.ids("other") == [2]
