"""The example of the social graph at a small scale. It compares every number with its generator."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.server.servers import REPOSITORY


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("java", "jar")
def test_three_writers_agree_with_the_generator(tmp_path: Path) -> None:
    options = ["--edges", "2000", "--days", "3", "--memory", "1g", "--out", str(tmp_path / "out")]
    command = [sys.executable, "-m", "social_graph", *options]
    path = os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "examples")])
    environment = os.environ | {"PYTHONPATH": path}
    ended = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=880, check=False
    )
    assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-2000:]
    assert "every number agrees with the generator" in ended.stdout
    assert ended.stdout.count("day ") == 4
    page = (tmp_path / "out" / "index.html").read_text()
    for plot in ("rows", "latency", "conflicts", "degrees"):
        assert f'src="{plot}.svg"' in page
        assert (tmp_path / "out" / f"{plot}.svg").read_text().startswith("<?xml")
