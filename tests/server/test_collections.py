"""Collections that a server starts, and the command."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import lance
import pyarrow as pa
import pytest
from lance_namespace import CreateNamespaceRequest
from typer.testing import CliRunner

from lance_core.storage.local import LocalStore
from namespace_server.background.gc import GarbageCollection
from namespace_server.background.scheduler import JobResult, Scheduler
from namespace_server.cli import cli
from namespace_server.directory.gc.plan import Removal, store_plans
from namespace_server.directory.gc.report import REASONS
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.observability.observation import SILENT, GarbageCount, GarbageReason, GcRun, Observer


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A catalog with a table, and a file that nothing names."""
    root = tmp_path / "catalog"
    with closing(DirectoryNamespace(root=str(root))) as made:
        made.create_namespace(CreateNamespaceRequest(id=["g"]))
        lance.write_dataset(pa.table({"x": [1]}), mode="create", namespace_client=made, table_id=["g", "t"])
    lost = lost_file(root)
    lost.write_bytes(b"no rows")
    os.utime(lost, (time.time() - 20 * 86_400,) * 2)
    return root


def lost_file(root: Path) -> Path:
    [table] = root.glob("*_g$t")
    return table / "data" / "lost.lance"


def version(root: Path) -> int:
    with closing(DirectoryNamespace(root=str(root), sweep_interval_seconds="0")) as namespace:
        return namespace.catalog.snapshot().version


def gc(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(cli, ["gc", *arguments], catch_exceptions=False)
    return done.exit_code, done.stdout, done.stderr


def test_the_command(root: Path) -> None:
    before = version(root)
    status, said, _ = gc(str(root), "--dry-run")
    assert (status, version(root)) == (0, before)
    assert "would go: 1 file, 7 bytes named by no manifest" in said
    status, said, _ = gc(str(root), "--max-removals", "0")
    assert "the rest is left to the next run" in said
    assert lost_file(root).exists()
    status, said, _ = gc(str(root), "--json", "--set", "gc.dropped.window=30d")
    assert status == 0
    assert '"gc.dropped.window": "30d"' in said
    assert not lost_file(root).exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--set", "gc.dropped.window"], "expected NAME=VALUE"),
        (["--set", "gc.dropped.window=1s"], "is too little"),
        (["--set", "gc.window=1d"], "no such setting"),
        (["--max-time", "soon"], "expected a number"),
    ],
)
def test_what_the_command_refuses(root: Path, arguments: list[str], said: str) -> None:
    before = version(root)
    status, _, errors = gc(str(root), *arguments)
    assert status == 2
    assert said in errors
    assert version(root) == before


def test_the_command_on_no_catalog(tmp_path: Path) -> None:
    assert "expected a catalog, found none" in gc(str(tmp_path / "none"))[2]
    assert not (tmp_path / "none").exists()


def job(root: Path, observer: Observer = SILENT) -> GarbageCollection:
    arguments = (str(root), "--durability", "none")
    return GarbageCollection(LocalStore(root, "none"), 86_400, arguments, {}, look=0.01, observer=observer)


@contextmanager
def running(root: Path) -> Iterator[Scheduler]:
    scheduler = Scheduler()
    scheduler.start(job(root))
    yield scheduler
    scheduler.stop()


def test_a_server_collects_once_in_a_period(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with running(root) as first:
        while "gc: removed" not in caplog.text:
            time.sleep(0.01)
        collected = version(root)
        second = job(root)
        assert [second.run(threading.Event()), second.run(threading.Event())] == [JobResult.IDLE] * 2
    assert first.states()["gc"].runs == 1
    assert "{'named by no manifest': 1}" in caplog.text
    assert not lost_file(root).exists()
    assert version(root) == collected
    assert len(list((root / "_staging/gc/periods").iterdir())) == 1


def test_what_a_collection_removed_is_measured_by_reason(root: Path) -> None:
    """Also what a plan of another release calls by a reason that this one does not have."""
    lost = root / "lost-by-another-release"
    lost.write_bytes(b"garbage")
    written = datetime.fromtimestamp(int(lost.stat().st_mtime), UTC)
    store_plans(LocalStore(root, "none"), str(uuid.uuid4()), [Removal(lost.name, 7, written, "as it was")])
    lost_file(root).with_name("young.lance").write_bytes(b"a row")
    size, runs = lost_file(root).stat().st_size, list[GcRun]()

    class Runs(Observer):
        def garbage_collection(self, run: GcRun) -> None:
            runs.append(run)

    assert job(root, Runs()).collect(threading.Event()) is JobResult.DONE
    [run] = runs
    assert dict(run.removed) == {"unreferenced": GarbageCount(1, size), "other": GarbageCount(1, 7)}
    assert (run.complete, run.young, run.left) == (True, GarbageCount(1, 5), 0)


def test_each_reason_has_a_word_of_its_own() -> None:
    assert {*REASONS.values(), "other"} == set(get_args(GarbageReason))
    assert len(set(REASONS.values())) == len(REASONS)


def test_a_collection_that_fails_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with running(tmp_path) as scheduler:
        while not scheduler.states()["gc"].failures:
            time.sleep(0.01)
    assert "gc failed" in caplog.text
    assert "expected a catalog, found none" in caplog.text


@pytest.mark.parametrize("output", ["", '{"removed": {'])
def test_a_process_that_dies_while_it_reports_is_told(
    tmp_path: Path, output: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\nprintf '{output}'; echo killed >&2; exit 137\n")
    program.chmod(0o755)
    monkeypatch.setattr("namespace_server.background.gc.sys", SimpleNamespace(executable=str(program)))
    assert job(tmp_path).collect(threading.Event()) is JobResult.FAILED
    assert "gc failed with status 137: killed" in caplog.text


def test_a_collection_tells_what_it_did_not_judge_or_remove(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Its process ends with another status then, and has a report all the same."""
    [table] = root.glob("*_g$t")
    [written] = (table / "_versions").glob("*.manifest")
    written.unlink()
    assert job(root).collect(threading.Event()) is JobResult.DONE
    assert f"gc: the table at {table.name} was not judged: version 1 of g$t" in caplog.text
    assert lost_file(root).exists()


def test_the_command_looks_where_something_changed(root: Path) -> None:
    status, said, _ = gc(str(root), "--changed")
    assert status == 0
    assert "not looked at" not in said
    assert not lost_file(root).exists()
    gc(str(root), "--changed")
    lost_file(root).write_bytes(b"no rows")
    for arguments in (["--dry-run"], []):
        status, said, _ = gc(str(root), "--changed", *arguments)
        assert "not looked at: 1 location of tables that did not change" in said
        assert "not referenced yet" not in said
    assert "kept: 1 file, 7 bytes not referenced yet" in gc(str(root))[1]


def test_the_command_looks_at_one_table(root: Path) -> None:
    with closing(DirectoryNamespace(root=str(root))) as made:
        lance.write_dataset(pa.table({"x": [1]}), mode="create", namespace_client=made, table_id=["g", "u"])
    assert gc(str(root), "--table", "g$u")[0] == 0
    assert lost_file(root).exists()
    assert gc(str(root), "--table", "g$none")[0] == 2
    assert "1 file" in gc(str(root), "--table", "g$t")[1]
    assert not lost_file(root).exists()


def test_the_end_of_a_server_ends_its_collection(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that does not end when it is told to is killed."""
    program, began = tmp_path / "program", tmp_path / "began"
    program.write_text(
        f"#!{sys.executable}\nimport signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"open({str(began)!r}, 'w').close()\ntime.sleep(600)\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr("namespace_server.background.gc.sys", SimpleNamespace(executable=str(program)))
    monkeypatch.setattr("namespace_server.background.gc._LAST_SECONDS", 0.1)
    made: list[subprocess.Popen[str]] = []
    popen = subprocess.Popen

    def note(*arguments: Any, **options: Any) -> subprocess.Popen[str]:
        made.append(popen(*arguments, **options))
        return made[0]

    monkeypatch.setattr("namespace_server.background.gc.subprocess.Popen", note)
    with running(root) as scheduler:
        while not began.exists():
            time.sleep(0.001)
    assert made[0].returncode == -signal.SIGKILL
    assert scheduler.states()["gc"].runs == 0
