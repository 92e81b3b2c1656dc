"""One journey of three clients of lancedb, unchanged: Python in two versions, and Node.js from npm."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import metadata
from typing import Final

import pytest

from tests.lancedb_remote.remote import new_name
from tests.server.servers import REPOSITORY

EXPECTED: Final = {
    "empty": [],
    "created": 3,
    "exists": True,
    "names": ["t"],
    "added": 2,
    "columns": ["id", "text", "vector"],
    "updated": 2,
    "deleted": 1,
    "merged": [1, 1],
    "filtered": [3, 5],
    "ordered": [5, 3],
    "nearest": [2, 3, 1],
    "bounded": [3, 1],
    "explained": True,
    "indices": ["ids id", "near vector", "words text"],
    "metric": "cosine",
    "words": [1, 3, 5],
    "left": 2,
    "doubled": 5,
    "tag": 1,
    "then": 3,
    "branch": [4, 5],
    "restored": 3,
    "taken": [0, 2],
    "inner": ["u"],
    "renamed": ["renamed"],
    "column": True,
    "missing": True,
}
_HERE: Final = REPOSITORY / "tests" / "lancedb_remote"


def installed(script: str) -> str:
    """The directory where a script has installed a client. The test is skipped where it cannot be had."""
    done = subprocess.run(
        [REPOSITORY / "scripts" / script, sys.executable], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"{script}: {done.stderr.strip().splitlines()[-1]}")
    return done.stdout.strip().splitlines()[-1]


def journey(command: list[str], **environment: str) -> list[str]:
    """What a client prints."""
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip().splitlines()


@pytest.fixture(scope="session")
def lancedb_node() -> str:
    return installed("lancedb_node.sh")


@pytest.fixture(scope="session")
def lancedb_before() -> str:
    return installed("lancedb_before.sh")


def test_the_client_in_node(remote_url: str, lancedb_node: str) -> None:
    printed = journey(["node", str(_HERE / "journey.mjs"), remote_url, f"db://{new_name()}", lancedb_node])
    assert json.loads(printed[-1]) == EXPECTED


def test_the_client_in_python(remote_url: str) -> None:
    printed = journey([sys.executable, str(_HERE / "journey.py"), remote_url, f"db://{new_name()}"])
    assert printed[0] == metadata.version("lancedb")
    assert json.loads(printed[-1]) == EXPECTED


def test_the_client_in_python_before(remote_url: str, lancedb_before: str) -> None:
    """The newest version before 0.40, which has no catalogs of databases."""
    command = [sys.executable, str(_HERE / "journey.py"), remote_url, f"db://{new_name()}"]
    printed = journey(command, PYTHONPATH=lancedb_before)
    assert printed[0] == "0.39.0"
    assert json.loads(printed[-1]) == EXPECTED
