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


def _write(page: Path, directory: Path, url: str) -> Path:
    """The blocks of a page as a script."""
    script = directory / "page.py"
    script.write_text("\n".join(blocks(page, "python")).replace(WRITTEN_URL, url))
    return script


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in WITH_PYTHON if name_of(page) not in NEEDS_SPARK], ids=name_of)
def test_the_blocks_of_a_page_run_one_after_another(page: Path, tmp_path: Path, server: ServerProcess) -> None:
    script = _write(page, tmp_path, server.url)

    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )

    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def spark_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[str]]:
    """A process that runs scripts in one JVM, which has the jar: the first page is one that asks for it."""
    command = [sys.executable, "-m", "tests.documentation.spark_pages"]
    given = os.environ | {"PYTHONPATH": str(REPOSITORY), "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"}
    with (tmp_path_factory.mktemp("spark") / "log").open("w+") as log:
        process = subprocess.Popen(
            command, cwd=log.name.rpartition("/")[0], env=given, stdin=PIPE, stdout=PIPE, stderr=log, text=True
        )
        with process:
            yield process


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("page", [page for page in WITH_PYTHON if name_of(page) in NEEDS_SPARK], ids=name_of)
def test_the_blocks_of_a_page_about_spark_run_one_after_another(
    page: Path, tmp_path: Path, server: ServerProcess, spark_process: subprocess.Popen[str]
) -> None:
    assert spark_process.stdin is not None
    assert spark_process.stdout is not None
    print(_write(page, tmp_path, server.url), file=spark_process.stdin, flush=True)

    answer = spark_process.stdout.readline()

    assert answer == "\n", json.loads(answer)


def test_the_first_examples_are_among_them() -> None:
    names = {name_of(page) for page in WITH_PYTHON}

    assert FIRST | {"docs/guide/tutorial.md", "docs/guide/transactions.md", "docs/guide/spark.md"} <= names
