"""The thread of recovery ends with its catalog, with the process and with its root, without a word on stderr."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from namespace_server.background.scheduler import JobResult
from namespace_server.directory.catalog import CatalogOptions
from namespace_server.directory.manifest_table.table import ManifestTable
from namespace_server.directory.model.snapshot import CatalogSnapshot
from tests.directory.tables import Ground

BUSY = CatalogOptions(sweep_interval=timedelta(milliseconds=1))
SCRIPT = """
import os, sys, time
from lance_namespace import CreateNamespaceRequest
from namespace_server.directory.namespace import DirectoryNamespace
namespace = DirectoryNamespace(root=sys.argv[1], durability="none", sweep_interval_seconds="0.0001")
for name in "abc":
    namespace.create_namespace(CreateNamespaceRequest(id=[name]))
if sys.argv[2] == "removed":
    namespace.catalog.sweep()
    namespace.catalog.sweep()
    os.rename(sys.argv[1], sys.argv[1] + "-gone")
    time.sleep(0.2)
"""


def thread_of(ground: Ground) -> threading.Thread:
    ground.make_namespace("g")
    return ground.catalog.background._tasks["recovery"].thread


@pytest.mark.slow
@pytest.mark.parametrize("root", ["kept", "removed"])
def test_a_process_that_does_not_close_its_namespace(tmp_path: Path, root: str) -> None:
    for attempt in range(3):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(tmp_path / f"root{attempt}"), root],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0
        assert "Traceback" not in done.stderr
        assert done.stderr.count("\n") <= (1 if root == "removed" else 0), done.stderr


def test_a_namespace_that_is_dropped(tmp_path: Path) -> None:
    ground = Ground(tmp_path / "root", options=CatalogOptions(sweep_interval=timedelta(hours=1)))
    thread = thread_of(ground)

    del ground
    gc.collect()

    thread.join(10)
    assert not thread.is_alive()


def test_a_root_that_is_removed(tmp_path: Path) -> None:
    ground = Ground(tmp_path / "root", options=BUSY)
    thread = thread_of(ground)

    ground.catalog.sweep()
    ground.catalog.sweep()
    ground.root.rename(tmp_path / "gone")

    thread.join(60)
    assert not thread.is_alive()
    assert not (ground.root / "__manifest").exists()
    ground.namespace.close()


def test_a_root_that_is_removed_during_a_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ground = Ground(tmp_path / "root", options=BUSY)
    made, gone = threading.Event(), threading.Event()

    def write_late(_: object) -> None:
        if not made.is_set():  # sweeps begin before the first commit
            return
        if not gone.is_set():
            ground.root.rename(tmp_path / "gone")
            gone.set()
        (ground.root / "_staging").mkdir(parents=True, exist_ok=True)

    monkeypatch.setattr(ground.catalog.recovery._lost_version, "compare", write_late)
    thread = thread_of(ground)
    made.set()

    thread.join(60)
    assert gone.is_set()
    assert not thread.is_alive()
    ground.namespace.close()


def test_a_sweep_that_fails_is_followed_by_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ground = Ground(tmp_path / "root", options=BUSY)
    failed, swept = threading.Event(), threading.Event()

    def fail_once(_is_stopping: Callable[[], bool]) -> None:
        (swept if failed.is_set() else failed).set()
        if not swept.is_set():
            raise OSError("once")

    monkeypatch.setattr(ground.catalog.recovery, "sweep", fail_once)
    thread = thread_of(ground)

    assert swept.wait(10)
    assert thread.is_alive()
    ground.namespace.close()
    assert not thread.is_alive()


def test_a_root_that_is_being_made_was_not_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first commit makes the root between the two looks of a sweep."""
    ground = Ground(tmp_path / "root")
    current = ManifestTable.current.fget
    assert current is not None

    def make_first(table: ManifestTable) -> CatalogSnapshot:
        monkeypatch.undo()
        ground.make_namespace("g")
        return current(table)

    monkeypatch.setattr(ManifestTable, "current", property(make_first))
    assert ground.catalog.recovery.run(threading.Event()) is JobResult.DONE
    assert ground.catalog.snapshot().version


def test_a_problem_that_lasts_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ground = Ground(tmp_path / "root", options=CatalogOptions(sweep_interval=timedelta(0)))  # no thread sweeps beside
    ground.make_namespace("g")
    ground.catalog.sweep()
    versions = ground.root / "__manifest" / "_versions"

    versions.rename(tmp_path / "aside")
    for _ in range(3):
        ground.catalog.sweep()
    assert caplog.text.count("the catalog is damaged") == 1

    (tmp_path / "aside").rename(versions)
    ground.catalog.sweep()
    versions.rename(tmp_path / "aside")
    ground.catalog.sweep()
    assert caplog.text.count("the catalog is damaged") == 2
    (tmp_path / "aside").rename(versions)
    ground.namespace.close()
