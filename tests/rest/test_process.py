"""Tuning of the process: by the server, never by the library."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from namespace_server.directory.manifest_table import bulk_load
from namespace_server.directory.namespace import DirectoryNamespace

LIBRARY = """
import ctypes, gc, json, sys
calls = []
class Libc(ctypes.CDLL):
    def mallopt(self, *arguments): calls.append("mallopt")
    def malloc_trim(self, size): calls.append("malloc_trim")
ctypes.CDLL = Libc
from namespace_server.directory.namespace import DirectoryNamespace
if sys.argv[2] == "serving":
    from namespace_server import process
    process.LARGE = 1
    process.tune_process()
    process.switch_often()
before = gc.get_freeze_count()
namespace = DirectoryNamespace(root=sys.argv[1], durability="none", sweep_interval_seconds="0")
namespace.newest()
found = {
    "calls": calls, "frozen": gc.get_freeze_count() > before, "enabled": gc.isenabled(),
    "threshold": gc.get_threshold(), "switch": sys.getswitchinterval(),
}
namespace.close()
print(json.dumps(found))
"""


def load(root: Path, mode: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", LIBRARY, str(root), mode], capture_output=True, text=True, check=True, timeout=60
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    namespace = DirectoryNamespace(root=str(tmp_path / "catalog"), durability="none")
    namespace.commit_batch({"operations": [{"declare_table": {"id": [name]}} for name in "abc"]})
    namespace.close()
    return tmp_path / "catalog"


@pytest.mark.slow
def test_the_library_leaves_the_process_alone(root: Path) -> None:
    assert load(root, "client") == {
        "calls": [],
        "frozen": False,
        "enabled": True,
        "threshold": [700, 10, 10],
        "switch": 0.005,
    }


@pytest.mark.slow
def test_serving_tunes_it(root: Path) -> None:
    found = load(root, "serving")
    assert found["calls"] == ["mallopt", "malloc_trim"]
    assert (found["frozen"], found["enabled"], found["threshold"]) == (True, True, [100_000, 20, 50])
    assert found["switch"] == pytest.approx(0.0005)


def test_a_hook_runs_around_each_load_of_a_whole_catalog(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, int]] = []

    @contextmanager
    def hook(rows: int) -> Iterator[None]:
        seen.append(("before", rows))
        yield
        seen.append(("after", rows))

    monkeypatch.setattr(bulk_load, "_hooks", [])
    bulk_load.add_load_hook(hook)
    bulk_load.add_load_hook(hook)
    namespace = DirectoryNamespace(root=str(root), durability="none")
    namespace.newest()
    namespace.newest()
    namespace.close()
    assert [when for when, _ in seen] == ["before", "after"]
    assert seen[0][1] >= 3
    assert gc.isenabled()
