"""A disk that fills and empties under load: what was acknowledged can be read, what was refused says why.

    LANCE_FULL_DISK_SECONDS=120 python -m pytest tests/server/test_full_disk.py --timeout 0 -s

A real file system of its own needs the right to mount one. Where that is not to be had, the tests of
`tests/directory/committing/test_claims.py` cut files short instead.
"""

from __future__ import annotations

import os
import random
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lance
import lance_namespace
import pyarrow as pa
import pytest

from namespace_client import Catalog
from namespace_client.errors import CommitUnknown
from tests.server.servers import Answer, ServerProcess, path_of, send

SECONDS = float(os.environ.get("LANCE_FULL_DISK_SECONDS", "8"))
CHANGES_OF_A_TABLE = 25


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system in memory."""
    place = tmp_path / "disk"
    place.mkdir()
    options = f"size={32 + int(4 * SECONDS)}m"
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", str(place)], capture_output=True, check=False)
    if made.returncode:
        pytest.skip("a file system cannot be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@contextmanager
def filling(disk: Path, seed: int) -> Iterator[None]:
    """Let something else take all room, but for some kilobytes at most, and give it back; again and again."""
    chance, ended, ballast = random.Random(seed), threading.Event(), disk / "ballast"

    def fill() -> None:
        while not ended.is_set():
            found = os.statvfs(disk)
            left = found.f_bavail * found.f_frsize - chance.choice((0, 4096, 16384, 65536))
            try:
                descriptor = os.open(ballast, os.O_CREAT | os.O_WRONLY)
                try:
                    if left > 0:
                        os.posix_fallocate(descriptor, 0, left)
                finally:
                    os.close(descriptor)
            except OSError:
                pass
            ended.wait(chance.uniform(0.002, 0.06))
            ballast.unlink(missing_ok=True)
            ended.wait(chance.uniform(0.002, 0.06))

    thread = threading.Thread(target=fill)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        ballast.unlink(missing_ok=True)


@dataclass
class Load:
    """Writers of several kinds, and what they were told."""

    url: str
    told: Counter[str] = field(default_factory=Counter)
    kept: dict[str, set[int]] = field(default_factory=dict)
    """Keys that were acknowledged, by table; keys are never removed."""
    wrong: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, kind: str, outcome: str, table: str = "", keys: range = range(0)) -> None:
        with self._lock:
            self.told[f"{kind}: {outcome}"] += 1
            if outcome == "done":
                self.kept.setdefault(table, set()).update(keys)

    def judge(self, kind: str, answer: Answer, table: str, keys: range = range(0)) -> bool:
        """Note the answer to a change over HTTP: done, or nothing was done for a reason that it names."""
        if answer.status == 200:
            self.note(kind, "done", table, keys)
            return True
        text = answer.body["error"]
        if (answer.status, answer.code) != (503, 17) or "unknown" in text or not _names_reason(text):
            self.wrong.append(f"{kind}: {answer.status} {answer.code} {text}")
        self.note(kind, "refused")
        return False


def _names_reason(text: str) -> bool:
    return "No space left on device" in text or "not written to its end" in text


def arrow_stream(data: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, data.schema) as writer:
        writer.write_table(data)
    return sink.getvalue().to_pybytes()


def rows(keys: range) -> pa.Table:
    return pa.table({"k": pa.array(keys, pa.int64()), "n": pa.array([0] * len(keys), pa.int64())})


def write_rows(load: Load, name: str, chance: random.Random) -> None:
    """One table over HTTP: created, then changed in all ways."""
    path = f"/v1/table/{path_of('d', name)}"
    arrow = {"content-type": "application/vnd.apache.arrow.stream"}
    top = 5
    created = send(load.url, "POST", f"{path}/create", arrow_stream(rows(range(top))), arrow)
    if not load.judge("create", created, name, range(top)):
        return
    for _ in range(CHANGES_OF_A_TABLE):
        keys = range(top, top + chance.choice((1, 3, 2000)))
        kind = chance.choice(("insert", "update", "merge", "delete"))
        if kind == "insert":
            if load.judge(kind, send(load.url, "POST", f"{path}/insert", arrow_stream(rows(keys)), arrow), name, keys):
                top = keys.stop
        elif kind == "merge":
            merge = f"{path}/merge_insert?on=k&when_matched_update_all=true&when_not_matched_insert_all=true"
            if load.judge(kind, send(load.url, "POST", merge, arrow_stream(rows(keys)), arrow), name, keys):
                top = keys.stop
        elif kind == "update":
            body = b'{"predicate": "k = 1", "updates": [["n", "n + 1"]]}'
            load.judge(kind, send(load.url, "POST", f"{path}/update", body), name)
        else:  # of rows that are never asked for again
            load.judge(kind, send(load.url, "POST", f"{path}/delete", b'{"predicate": "k < 0"}'), name)


def write_batches(load: Load, name: str, chance: random.Random) -> None:
    """Two tables by the project's client, in one transaction."""
    with Catalog.connect(load.url, namespace=["d"]) as catalog:
        append_to_two(load, catalog, name, chance)


def append_to_two(load: Load, catalog: Catalog, name: str, chance: random.Random) -> None:
    top = 0
    for step in range(CHANGES_OF_A_TABLE):
        keys = range(top, top + chance.choice((1, 500)))
        try:
            with catalog.begin() as transaction:
                for table in (f"{name}a", f"{name}b"):
                    (transaction.append if step else transaction.create)(table, rows(keys))
        except CommitUnknown as error:
            load.wrong.append(f"batch: {error}")
            return
        except Exception:  # noqa: BLE001 - pylance says in many ways that the disk is full
            load.note("batch", "refused")
            if not step:
                return
        else:
            top = keys.stop
            for table in (f"{name}a", f"{name}b"):
                load.note("batch", "done", table, keys)


def write_stock(load: Load, name: str, chance: random.Random) -> None:
    """One table by stock pylance through the catalog."""
    client = lance_namespace.connect("rest", {"uri": load.url})
    top = 0
    for step in range(CHANGES_OF_A_TABLE):
        keys = range(top, top + chance.choice((1, 500)))
        try:
            mode = "append" if step else "create"
            lance.write_dataset(rows(keys), namespace_client=client, table_id=["d", name], mode=mode)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            load.note("stock", "refused")
            if not step:
                return
        else:
            top = keys.stop
            load.note("stock", "done", name, keys)


def test_no_version_is_unreadable_and_no_acknowledged_row_is_lost(disk: Path, tmp_path: Path) -> None:
    with ServerProcess(disk / "root", log=tmp_path / "log") as server:
        assert send(server.url, "POST", f"/v1/namespace/{path_of('d')}/create", b"{}").status == 200
        load, until = Load(server.url), time.monotonic() + SECONDS

        def work(number: int, write: Callable[[Load, str, random.Random], None]) -> None:
            chance, tables = random.Random(number), 0
            while time.monotonic() < until:
                write(load, f"t{number}x{tables}", chance)
                tables += 1

        writers = (write_rows, write_rows, write_batches, write_stock)
        threads = [threading.Thread(target=work, args=item) for item in enumerate(writers)]
        with filling(disk, seed=1):
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        read, unreadable = read_back(server, load)
        print(f"\n{dict(sorted(load.told.items()))}; {read} versions read, {len(unreadable)} cannot be")
        assert not unreadable, unreadable[:5]
        assert read >= len(load.kept) > 0
        assert not load.wrong, load.wrong[:5]
        assert any(outcome.endswith("done") for outcome in load.told)
        assert any(outcome.endswith("refused") for outcome in load.told)


def read_back(server: ServerProcess, load: Load) -> tuple[int, list[str]]:
    """Read every version of every table whole; the number of versions, and what is wrong with those that are not."""
    read, unreadable = 0, []
    listed = send(server.url, "GET", f"/v1/namespace/{path_of('d')}/table/list").body["tables"]
    for name in listed:
        path = f"/v1/table/{path_of('d', name)}"
        location = send(server.url, "POST", f"{path}/describe", b"{}").body["location"]
        versions = send(server.url, "POST", f"{path}/version/list").body["versions"]
        for version in sorted(entry["version"] for entry in versions):
            try:
                found: Any = lance.dataset(location, version=version).to_table()
                read += 1
            except BaseException as error:  # noqa: BLE001 - also panics of pylance
                unreadable.append(f"{name} {version}: {error}")
                break
        if versions and not unreadable:
            lost = load.kept.get(name, set()) - set(found["k"].to_pylist())
            if lost:
                unreadable.append(f"{name}: {len(lost)} acknowledged rows are gone")
    return read, unreadable


def test_a_full_root_is_not_ready_and_says_why(disk: Path, tmp_path: Path) -> None:
    with ServerProcess(disk / "root", log=tmp_path / "log") as server:
        assert send(server.url, "POST", f"/v1/namespace/{path_of('d')}/create", b"{}").status == 200
        found = os.statvfs(disk)
        with (disk / "ballast").open("wb") as ballast:
            os.posix_fallocate(ballast.fileno(), 0, found.f_bavail * found.f_frsize)

        refused = send(server.url, "GET", "/health/ready")
        assert (refused.status, refused.code) == (503, 17)
        assert refused.body["error"] == "the root cannot be written: No space left on device"
        batch = send(server.url, "POST", f"/v1/namespace/{path_of('e')}/create", b"{}")
        assert (batch.status, batch.code) == (503, 17)
        assert "nothing was done" in batch.body["error"]
        assert "No space left on device" in batch.body["error"]
        path = f"/v1/table/{path_of('d', 't')}/create"
        arrow = {"content-type": "application/vnd.apache.arrow.stream"}
        created = send(server.url, "POST", path, arrow_stream(rows(range(3))), arrow)
        assert (created.status, created.code) == (503, 17)
        assert "nothing was done" in created.body["error"]

        (disk / "ballast").unlink()
        assert send(server.url, "GET", "/health/ready").status == 200
        assert send(server.url, "POST", path, arrow_stream(rows(range(3))), arrow).status == 200
