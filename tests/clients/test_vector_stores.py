"""The vector stores of LangChain and LlamaIndex on `db://`: they do what they do in a directory, unchanged."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.running import running

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name("vector_stores.py")


@pytest.mark.services
def test_vector_stores_do_the_same_as_in_a_directory(tmp_path: Path) -> None:
    script = REPOSITORY / "scripts" / "vector_stores.sh"
    installed = subprocess.run([script, sys.executable], capture_output=True, text=True, check=False)
    if installed.returncode:
        pytest.skip(f"vector stores: {installed.stderr.strip().splitlines()[-1]}")
    environment = os.environ | {"LANCEDB_API_KEY": "any", "HOME": str(tmp_path)}
    with running(tmp_path / "root") as url:
        done = subprocess.run(
            [installed.stdout.strip(), "-W", "ignore", PROGRAM, url, tmp_path / "local"],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "community: 10 results equal",
        "langchain: 3 results equal",
        "llama: 7 results equal",
    ]
