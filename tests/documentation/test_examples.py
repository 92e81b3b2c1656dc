"""The Python blocks of the README, the first page and the guide run, page by page, against a real server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE

import pytest

from tests.documentation.pages import PAGES, REPOSITORY, blocks, name_of
from tests.server.servers import ServerProcess

WRITTEN_URL = "http://127.0.0.1:2333"
NEEDS_SPARK = {f"docs/guide/{name}.md" for name in ("clusters", "spark", "spark-tables", "sql", "streaming")}
FIRST = {"README.md", "docs/index.md"}
RUN = [page for page in PAGES if name_of(page) in FIRST or name_of(page).startswith("docs/guide/")]
OWN_TEST = {
    f"docs/guide/{name}.md" for name in ("audit", "authentication", "engines", "from-lancedb-cloud", "grants", "tokens")
}
WITH_PYTHON = [page for page in RUN if blocks(page, "python") and name_of(page) not in OWN_TEST]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One for all pages, as a reader has it: a page also runs after the others."""
    home = tmp_path_factory.mktemp("server")
    with ServerProcess(home / "catalog", log=home / "log") as running:
        yield running


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[str]]:
    """Runs scripts. Its JVM has the jar: the first page about Spark is one that asks for it."""
    command = [sys.executable, "-m", "tests.documentation.page_runner"]
    given = os.environ | {"PYTHONPATH": str(REPOSITORY), "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"}
    with (tmp_path_factory.mktemp("pages") / "log").open("w+") as log:
        process = subprocess.Popen(
            command, cwd=log.name.rpartition("/")[0], env=given, stdin=PIPE, stdout=PIPE, stderr=log, text=True
        )
        with process:
            yield process


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.spark] if name_of(page) in NEEDS_SPARK else []) for page in WITH_PYTHON],
    ids=map(name_of, WITH_PYTHON),
)
def test_the_blocks_of_a_page_run_one_after_another(
    page: Path, tmp_path: Path, server: ServerProcess, runner: subprocess.Popen[str]
) -> None:
    assert runner.stdin is not None
    assert runner.stdout is not None
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks(page, "python")).replace(WRITTEN_URL, server.url))
    print(script, file=runner.stdin, flush=True)

    answer = runner.stdout.readline()

    assert answer == "\n", json.loads(answer)


def test_the_first_examples_are_among_them() -> None:
    names = {name_of(page) for page in WITH_PYTHON}

    assert FIRST | {"docs/guide/tutorial.md", "docs/guide/transactions.md", "docs/guide/spark.md"} <= names
