"""`kill -9` of the driver at every call of an epoch, before and after it; then the epoch again, as Spark repeats it."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from spark_catalog import StreamWriter
from tests.directory.gc.unreferenced import check_and_remove
from tests.server.servers import REPOSITORY
from tests.spark.streaming.conftest import Stream
from tests.spark.streaming.dying_driver import load

pytestmark = pytest.mark.long

DRIVERS = Path(__file__).with_name("dying_driver.py")
BATCH = "batch_commit_tables"


class Drivers:
    """Drivers that are told where to die."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        self._process = subprocess.Popen(
            [sys.executable, str(DRIVERS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def run(self, log: Path, **order: object) -> tuple[int, list[str]]:
        """The status of a driver, negative for a signal, and the kinds of the calls that it began."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order | {"log": str(log)}) + "\n")
        self._process.stdin.flush()
        status = int(self._process.stdout.readline().removeprefix("ended "))
        lines = [line.split(" ", 1) for line in log.read_text().splitlines()]
        return status, [line[1] for line in lines if line[0].isdigit()]

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        assert self._process.wait(60) == 0
        self._process.stdout.close()


@pytest.fixture(scope="module")
def drivers() -> Iterator[Drivers]:
    running = Drivers()
    yield running
    running.close()


def orphans(stream: Stream) -> list[Path]:
    """Files that no version refers to, when the jobs of a killed driver have ended: its JVM is still there."""
    tracker = stream.spark.sparkContext.statusTracker()
    deadline = time.monotonic() + 60
    while tracker.getActiveJobsIds():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return stream.orphans()


def gateway(stream: Stream) -> list[object]:
    parameters = stream.spark.sparkContext._gateway.gateway_parameters
    return [parameters.port, parameters.auth_token]


def row(epoch: int) -> tuple[int, str]:
    return epoch, f"p{epoch}"


def committed(calls: list[str], after: bool) -> bool:
    """Whether a driver that made these calls, the last of which is where it died, has committed its batch."""
    return BATCH in (calls if after else calls[:-1])


def check(stream: Stream, epochs: int) -> None:
    """Each epoch is there once: rows, sums and versions."""
    assert stream.names() == [row(epoch) for epoch in range(epochs)]
    assert stream.names("last") == [(0, str(epochs - 1))]
    assert stream.versions() == {"last": epochs, "person": epochs}
    assert stream.marks() == {"q": (epochs, str(epochs - 1))}


MORE_KILLS: Sequence[tuple[str, bool]] = (("epoch", False), ("job", True), (BATCH, False), ("epoch", True))


@pytest.mark.parametrize("after", [False, pytest.param(True, marks=pytest.mark.long)], ids=["before", "after"])
def test_a_kill_at_any_call_of_a_later_epoch(stream: Stream, drivers: Drivers, tmp_path: Path, after: bool) -> None:
    run = StreamWriter(stream.catalog, namespace=stream.namespace, query="q").batch(load)
    run(stream.rows(row(0)), 0)
    lost: list[Path] = []
    for number in itertools.count():
        epoch, log = number + 1, tmp_path / f"log{number}"
        status, calls = drivers.run(
            log, gateway=gateway(stream), server=stream.catalog.url, namespace=stream.namespace,
            kill=(number, after), armed=epoch, epochs={epoch: [row(epoch)]},
        )  # fmt: skip
        if status == 0:
            check(stream, epoch + 1)
            break
        assert status == -signal.SIGKILL, log.read_text()
        check(stream, epoch + committed(calls, after))
        now = orphans(stream)
        if committed(calls, after):
            assert now == lost, log.read_text()
        assert set(lost) <= set(now)
        lost = now
        run(stream.rows(row(epoch)), epoch)
        check(stream, epoch + 1)
        assert stream.orphans() == lost, log.read_text()
    assert {BATCH, "describe_catalog", "describe_table", "list_table_versions", "open", "get", "job"} <= set(calls)
    assert number == len(calls)
    assert after or lost  # files are certain only before the batch: the calls until then run beside the staging of rows
    root = Path(urlsplit(stream.catalog.state().root).path)
    tables = [table for table in stream.catalog.pins().tables if table[:1] == tuple(stream.namespace)]
    listed = {root / orphan.path for orphan in check_and_remove(root, *tables).orphans if orphan.table is not None}
    assert sorted(path for path in listed if path.parent.name in {"data", "_deletions"}) == lost


@pytest.mark.parametrize("after", [False, pytest.param(True, marks=pytest.mark.long)], ids=["before", "after"])
def test_a_kill_at_any_call_of_the_first_epoch(stream: Stream, drivers: Drivers, tmp_path: Path, after: bool) -> None:
    parent = stream.namespace
    for number in itertools.count():
        log = tmp_path / f"log{number}"
        stream.namespace = [f"{parent[0]}x{number}"]
        stream.catalog.ensure_namespace(stream.namespace)
        status, calls = drivers.run(
            log, gateway=gateway(stream), server=stream.catalog.url, namespace=stream.namespace,
            kill=(number, after), armed=0, epochs={0: [row(0)]},
        )  # fmt: skip
        if status == 0:
            check(stream, 1)
            break
        assert status == -signal.SIGKILL, log.read_text()
        if committed(calls, after):
            check(stream, 1)
        else:
            assert (stream.versions(), stream.marks()) == ({}, {})
        StreamWriter(stream.catalog, namespace=stream.namespace, query="q").batch(load)(stream.rows(row(0)), 0)
        check(stream, 1)
    assert "create_namespace" in calls
    assert number == len(calls)


@pytest.mark.parametrize(
    ("call", "after"),
    [
        (BATCH, True),
        *(pytest.param(*each, marks=pytest.mark.long) for each in MORE_KILLS),
    ],
)
def test_a_query_whose_driver_was_killed_goes_on_from_its_checkpoint(
    stream: Stream, drivers: Drivers, tmp_path: Path, call: str, after: bool
) -> None:
    stream.feed([row(0)], [row(1)], [row(2)])
    log = tmp_path / "log"
    status, calls = drivers.run(
        log, gateway=None, server=stream.catalog.url, namespace=stream.namespace,
        kill=(call, after), armed=1, source=str(stream.home / "source"), checkpoint=str(stream.checkpoint),
    )  # fmt: skip
    assert status == -signal.SIGKILL, log.read_text()
    check(stream, 1 + committed(calls, after=True) - (call == BATCH and not after))
    lost = orphans(stream)
    stream.run(StreamWriter(stream.catalog, namespace=stream.namespace, query="q").batch(load))
    check(stream, 3)
    assert stream.orphans() == lost
    if call != "job":  # the first job may have written files, or collected rows
        assert bool(lost) == ((call, after) == (BATCH, False))
