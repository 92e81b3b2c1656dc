"""Read-only mode: a server that takes no changes."""

from __future__ import annotations

import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from lance_core.storage.memory import MemoryStore
from namespace_server.app import create_app
from namespace_server.background.gc import GarbageCollection
from namespace_server.background.maintenance import TableMaintenance
from namespace_server.background.scheduler import JobResult, Scheduler
from namespace_server.directory.manifest_table.table import ManifestTable
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.observability.metrics.measures import ServerMetrics
from namespace_server.observability.observation import GcRun, Observer
from namespace_server.read_only import ReadOnlySwitch
from namespace_server.rest.identity import Authenticator
from tests.rest.conftest import EchoCatalog, RunningServer
from tests.rest.served import CHANGES, SERVED, Served
from tests.server.servers import ServerProcess

READS = [item for item in SERVED if item.read is not None]


@pytest.fixture(scope="module")
def refusing() -> Iterator[httpx.Client]:
    """A client of a server that is read-only."""
    server = RunningServer(create_app(EchoCatalog(), Authenticator({}), read_only=ReadOnlySwitch(always=True)))
    with httpx.Client(base_url=server.url, verify=False, timeout=60) as client:
        yield client
    server.stop()


def path_of(endpoint: Served) -> str:
    path = endpoint.path.replace("{id}", "a").replace("{version}", "1").replace("{index_name}", "i")
    path = path.replace("{column}", "c").replace("{row}", "0")
    needed = {"find_table_blob": "?filter=true", "find_tables": "?text=a"}
    return path + needed.get(endpoint.operation, "")


@pytest.mark.parametrize("endpoint", [item for item in CHANGES if not item.reads_rows], ids=lambda item: item.operation)
def test_each_change_is_refused_before_it_is_read(refusing: httpx.Client, endpoint: Served) -> None:
    answer = refusing.request(endpoint.method, path_of(endpoint), content=b"neither JSON nor rows")
    assert (answer.status_code, answer.headers.get("retry-after")) == (503, "60")
    assert answer.json() == {
        "code": 17,
        "error": "the server is read-only; nothing was done, try again later",
        "outcome": "nothing_done",
    }


@pytest.mark.parametrize("endpoint", READS, ids=lambda item: item.operation)
def test_each_read_is_answered(refusing: httpx.Client, endpoint: Served) -> None:
    body = {} if endpoint.read is not None and endpoint.read.body else None
    assert refusing.request(endpoint.method, path_of(endpoint), json=body).status_code == 200


@pytest.mark.parametrize("endpoint", [item for item in CHANGES if item.reads_rows], ids=lambda item: item.operation)
def test_each_read_of_a_table_is_answered(refusing: httpx.Client, endpoint: Served) -> None:
    query = {"k": 1, "vector": {}}
    given = {"query_table": query, "analyze_table_query_plan": query, "explain_table_query_plan": {"query": query}}
    given["read_table_changes"] = {"since": 0}
    given["diff_table_branch"] = {"from_branch": "b"}
    given["fetch_table_blobs"] = {"column": "c", "row_ids": []}
    body = given.get(endpoint.operation, {}) if endpoint.method == "POST" else None
    answer = refusing.request(endpoint.method, path_of(endpoint), json=body)
    assert (answer.status_code, answer.json()["code"]) == (404, 4), answer.text  # the echo has no table


def test_is_switched_while_the_server_runs(tmp_path: Path) -> None:
    file = tmp_path / "read-only"
    metrics = ServerMetrics()
    namespace = DirectoryNamespace(root=str(tmp_path / "root"), durability="none")
    app = create_app(namespace, Authenticator({}), read_only=ReadOnlySwitch(file=file), metrics=metrics)
    server = RunningServer(app)

    def change(name: str) -> int:
        return client.post(f"/v1/namespace/{name}/create", json={}).status_code

    def mode() -> tuple[int, str, bool]:
        ready = client.get("/health/ready")
        return ready.status_code, ready.json()["mode"], "lance_namespace_read_only 1.0" in client.get("/metrics").text

    with httpx.Client(base_url=server.url, verify=False, timeout=60) as client:
        assert (change("a"), mode()) == (200, (200, "read-write", False))
        file.touch()
        assert (change("b"), mode()) == (503, (200, "read-only", True))
        assert client.post("/v1/namespace/a/describe", json={}).status_code == 200
        file.unlink()
        assert (change("b"), mode()) == (200, (200, "read-write", False))
    server.stop()


def test_a_root_that_cannot_be_written_is_ready_for_reads(tmp_path: Path) -> None:
    catalog = EchoCatalog()
    catalog.unwritable = OSError("a read-only file system")
    server = RunningServer(create_app(catalog, Authenticator({}), read_only=ReadOnlySwitch(always=True)))
    assert httpx.get(f"{server.url}/health/ready", timeout=60).status_code == 200
    server.stop()


def test_no_maintenance_begins() -> None:
    store = MemoryStore()
    job = TableMaintenance(store, ManifestTable(store), lambda *_: pytest.fail("a change"), 1, paused=lambda: True)
    assert job.run(threading.Event()) is JobResult.IDLE
    assert list(store.list("")) == []  # no period was claimed


def test_a_collection_that_runs_is_ended_and_none_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[str]] = []
    popen = subprocess.Popen

    def sleep_instead(_command: list[str], **options: Any) -> subprocess.Popen[str]:
        started.append(popen(["sleep", "60"], **options))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", sleep_instead)
    ended: list[GcRun] = []
    observer = Observer()
    monkeypatch.setattr(observer, "garbage_collection", ended.append)
    file = tmp_path / "read-only"
    file.touch()
    switch = ReadOnlySwitch(file=file)
    job = GarbageCollection(MemoryStore(), 86_400, (), {}, look=0.02, observer=observer, paused=switch.is_on)
    scheduler = Scheduler()
    scheduler.start(job)
    time.sleep(0.3)
    assert not started
    file.unlink()
    deadline = time.monotonic() + 60
    while not started and time.monotonic() < deadline:
        time.sleep(0.01)
    file.touch()
    assert started[0].wait(60) == -signal.SIGTERM
    scheduler.stop()
    assert (len(started), ended) == (1, [])


@pytest.mark.slow
def test_a_read_only_server_needs_no_root_that_can_be_written(tmp_path: Path) -> None:
    namespace = DirectoryNamespace(root=str(tmp_path / "root"))
    namespace.write("create_namespace", {"id": ["shop"]})
    namespace.close()
    shutil.rmtree(tmp_path / "root/_staging", ignore_errors=True)
    (tmp_path / "root/_staging").touch()  # nothing can be written below it, by any user
    environment = {"LANCE_NAMESPACE_READ_ONLY": "true"}
    with ServerProcess(tmp_path / "root", log=tmp_path / "log", environment=environment) as server:
        assert server.call("GET", "/health/ready").body["mode"] == "read-only"
        assert server.call("POST", "/v1/namespace/shop/describe", {}).status == 200
