"""Each block of the page about engines reads the tables of its first block, in the engines that are installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.documentation.pages import REPOSITORY
from tests.server.servers import ServerProcess

PAGE = REPOSITORY / "docs" / "guide" / "engines.md"
WRITTEN_URL = "http://127.0.0.1:2333"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
MODULES = {
    "Polars": "polars",
    "DuckDB": "duckdb",
    "DataFusion": "datafusion",
    "Daft": "daft",
    "Ray": "ray",
    "PyTorch": "torch",
}
OWN = {"Polars", "DuckDB", "DataFusion", "Ray"}
"""Engines that development installs."""
LONG = {"Ray"}
"""It starts a cluster, as `tests/client/test_ray_data.py` does for more than the page has."""


def sections() -> dict[str, str]:
    """The block of each engine, by heading; the first one, with the tables, under ''."""
    first, *others = PAGE.read_text(encoding="utf-8").split("\n## ")
    parts = {"": first} | {part.partition("\n")[0]: part for part in others}
    return {heading: "".join(BLOCK.findall(part)) for heading, part in parts.items()}


def test_every_engine_of_the_page_is_run() -> None:
    assert set(sections()) == {"", *MODULES}
    assert all(sections().values())


@pytest.mark.slow
@pytest.mark.parametrize(
    "engine", [pytest.param(each, marks=[pytest.mark.long] if each in LONG else []) for each in MODULES]
)
def test_the_block_of_an_engine(engine: str, tmp_path: Path) -> None:
    if find_spec(MODULES[engine]) is None:
        assert engine not in OWN, "make setup installs it"
        pytest.skip(f"{engine} is not installed")
    script = tmp_path / "page.py"
    with ServerProcess(tmp_path / "catalog", log=tmp_path / "log") as server:
        script.write_text((sections()[""] + sections()[engine]).replace(WRITTEN_URL, server.url))
        done = subprocess.run(
            [sys.executable, str(script)],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(REPOSITORY), "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
    assert done.returncode == 0, done.stderr
