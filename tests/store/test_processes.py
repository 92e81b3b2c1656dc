"""Processes that commit to one table over a database: killed at every step, and racing."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import lance
import pytest

import lance_core
from lance_core.commit.handlers import ExternalManifestHandler
from lance_core.storage.port import ObjectStore
from lance_core.tables.dataset import Dataset
from lance_core.transaction.lineage import lineage_break
from lance_core.transaction.operations import MapUpdate, UpdateConfig, encode_transaction
from namespace_server.store.manifests import SqlManifestStore, open_manifest_store
from tests.server.servers import REPOSITORY
from tests.storage.limited import PlainStore
from tests.store.writer import STEPS
from tests.transaction.tables import Table, make_table, rows

pytestmark = pytest.mark.slow

RACE = 100
LAST = 1 + 2 * (RACE + 1)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return make_table(tmp_path / "root", (0, 10))


@pytest.fixture
def manifests(database: str) -> Iterator[SqlManifestStore]:
    store = open_manifest_store(database)
    yield store
    store.close()


def over(table: Table, manifests: SqlManifestStore) -> ObjectStore:
    return ExternalManifestHandler(manifests).over(PlainStore(table.store))


def start(*arguments: object) -> subprocess.Popen[str]:
    """A writer that waits for a line before it begins."""
    command = [sys.executable, "-m", "tests.store.writer", *map(str, arguments)]
    process = subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    while (line := process.stdout.readline()) != "ready\n":
        assert line, "it ended"
    return process


def go(process: subprocess.Popen[str]) -> tuple[int, list[int]]:
    """Let a writer run to its end: its status, and the versions that it was told it had committed."""
    said, _ = process.communicate("go\n", timeout=120)
    return process.returncode, [int(line) for line in said.splitlines() if line.isdigit()]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("next_one", ["reader", "writer", "reader of a copy"])
def test_a_writer_killed_after_any_step(
    table: Table, manifests: SqlManifestStore, database: str, step: str, next_one: str, tmp_path: Path
) -> None:
    status, told = go(start(table.root, database, "dead", 1, step))
    assert (status, told) == (-signal.SIGKILL, [])
    committed = step != "staged"
    shown = table.open().version
    assert shown == (2 if step in {"finalised", "updated"} else 1), "stock pylance is one version behind at most"

    if next_one == "reader of a copy":
        copy = Table(shutil.copytree(table.root, tmp_path / "copy"))
        assert (copy.open().version, Dataset.open(copy.uri).version) == (shown, shown)
        message = encode_transaction(UpdateConfig(MapUpdate({"copy": "1"})), read_version=1)
        assert lance_core.commit_transaction(copy.uri, message).version == shown + 1
        copy.open().validate()
        return
    if next_one == "writer":
        assert go(start(table.root, database, "next", 1)) == (0, [3 if committed else 2])
    dataset = Dataset.open(over(table, manifests), location="t")
    keys = ["dead0"] * committed + ["next0"] * (next_one == "writer")
    assert sorted(dataset.manifest.config) == keys
    assert table.open().version == dataset.version == 1 + len(keys)
    assert list(table.manifests()) == list(range(1, 2 + len(keys)))
    assert manifests.staged(table.store.uri, below=True) == []
    lance.write_dataset(rows(10, 11), table.uri, mode="append")
    table.open().validate()


def test_two_processes_race_for_200_versions(table: Table, manifests: SqlManifestStore, database: str) -> None:
    writers = [start(table.root, database, name, RACE) for name in ("a", "b")]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    told, lost = [], 0
    for writer in writers:
        said, _ = writer.communicate(timeout=240)
        assert writer.returncode == 0
        *versions, last = said.splitlines()
        told.append([int(line) for line in versions])
        lost += int(last.removeprefix("lost "))
    chain = table.manifests()
    assert list(chain) == list(range(1, LAST + 1))
    assert sorted(told[0] + told[1]) == list(range(4, LAST + 1)), "each version has one winner"
    assert all(lineage_break(chain[number - 1], chain[number]) is None for number in list(chain)[1:])
    assert len({file.identity.transaction_uuid for file in chain.values()}) == LAST
    assert lost > 0, "they raced"
    dataset = table.open()
    dataset.validate()
    assert set(dataset.config()) == {f"{name}{number}" for name in "ab" for number in range(-1, RACE)}
    found = [manifests.get(table.store.object_uri("t"), version) for version in range(2, LAST + 1)]
    assert all(row is not None and not row.staged and row.size > 0 for row in found)
    assert not list((table.path / "_versions").glob("*.manifest-*"))
