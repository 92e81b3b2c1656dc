"""Six processes, three of stock pylance and three of ours, commit to one table, on every kind of store.

150 commits on local disk, 500 by `make test-long`. The emulators answer one request at a time, slower with every
version to list, and each lost race costs half a dozen requests: there it is 60 commits, or `LANCE_RACE_COMMITS`; 500
take two minutes on each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from lance_core.storage.opening import open_store
from lance_core.transaction.lineage import lineage_break
from lance_core.versions import list_versions, read_manifest
from tests.emulators import REPOSITORY, Emulator

pytestmark = pytest.mark.slow

COMMITS_ON_EMULATORS = int(os.environ.get("LANCE_RACE_COMMITS", "60"))
WRITERS = 6
WRITER = Path(__file__).with_name("racing_writer.py")


def race(uri: str, options: Mapping[str, str] | None, commits: int) -> list[list[tuple[int, int]]]:
    """What each writer was told: version and row of each of its commits."""
    orders = [
        {
            "uri": uri,
            "engine": "ours" if number % 2 else "stock",
            "first": 1000 * (number + 1),
            "commits": commits // WRITERS + (number < commits % WRITERS),
            "options": options,
        }
        for number in range(WRITERS)
    ]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "TOKIO_WORKER_THREADS": "1", "LANCE_CPU_THREADS": "1"}
    command = [sys.executable, str(WRITER), json.dumps(orders)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=True)
    return [[(version, row) for version, row in writer] for writer in json.loads(done.stdout)]


def check(uri: str, options: Mapping[str, str] | None, commits: int) -> None:
    dataset = lance.write_dataset(pa.table({"id": pa.array([0], pa.int64())}), uri, storage_options=options)
    assert dataset.version == 1
    told = race(uri, options, commits)

    rows = dict(commit for writer in told for commit in writer)
    assert sum(map(len, told)) == len(rows) == commits, "a version was promised to two writers"
    assert sorted(rows) == list(range(2, commits + 2))
    store = open_store(uri, options)
    try:
        files = store.map(lambda location: read_manifest(store, location), list_versions(store, ""))
    finally:
        store.close()
    assert [file.version for file in files] == list(range(1, commits + 2))
    assert len({file.transaction_uuid for file in files}) == commits + 1
    for before, after in pairwise(files):
        assert lineage_break(before, after) is None
    dataset = lance.dataset(uri, storage_options=options)
    dataset.validate()
    assert dataset.version == commits + 1
    found = dataset.to_table(columns=["id"], with_row_address=True).to_pydict()
    assert sorted(found["id"]) == sorted([0, *rows.values()])
    # Fragments are numbered as they were committed: each row is in the version that its writer was told.
    assert {address >> 32: row for row, address in zip(found["id"], found["_rowaddr"], strict=True)} == {
        0: 0,
        **{version - 1: row for version, row in rows.items()},
    }


@pytest.mark.parametrize("commits", [150, pytest.param(500, marks=pytest.mark.long)])
def test_on_local_disk(tmp_path: Path, commits: int) -> None:
    check(str(tmp_path / "t"), None, commits)


@pytest.mark.timeout(900)
def test_on_s3(moto_server: Emulator) -> None:
    check(f"{moto_server.new_root()}/t", moto_server.storage_options, COMMITS_ON_EMULATORS)


@pytest.mark.timeout(900)
def test_on_azure(azurite: Emulator) -> None:
    check(f"{azurite.new_root()}/t", azurite.storage_options, COMMITS_ON_EMULATORS)
