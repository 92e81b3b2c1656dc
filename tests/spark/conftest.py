"""One Spark session for all tests of this room."""

from __future__ import annotations

import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_catalog.server import CatalogServer
from spark_catalog.session import configure, start
from tests.spark.lossy_proxy import LossyProxy, serve_lossily

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def java() -> str:
    """The Java that Spark runs on."""
    found = shutil.which("java")
    if found is None:
        pytest.skip("needs Java")
    return found


@pytest.fixture(scope="session")
def spark(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    builder = configure(
        SparkSession.builder.master("local[2]"), shuffle_partitions=2, driver_memory="1g", quick_start=True
    )
    builder = builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
    session = start(builder, log_level="OFF")
    yield session
    session.stop()


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """Where a table could be; nothing is there yet."""
    return (tmp_path / "table").as_uri()


@pytest.fixture(scope="session")
def server_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real server process on a root of its own."""
    home = tmp_path_factory.mktemp("server")
    command = [sys.executable, "-m", "namespace_server", "serve", "--root", str(home / "catalog"), "--port", "0"]
    with (home / "log").open("w") as log:
        process = subprocess.Popen(
            [*command, "--durability", "none"], stdout=subprocess.PIPE, stderr=log, text=True, cwd=REPOSITORY
        )
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found is not None, (home / "log").read_text()
        yield found.group()
    finally:
        process.terminate()
        process.wait(timeout=30)
        if process.stdout is not None:
            process.stdout.close()


@pytest.fixture
def catalog(server_url: str) -> Iterator[CatalogServer]:
    with CatalogServer(server_url) as server:
        yield server


@pytest.fixture
def namespace(catalog: CatalogServer) -> list[str]:
    """A namespace that no other test uses."""
    name = [f"t{secrets.token_hex(4)}"]
    catalog.ensure_namespace(name)
    return name


@pytest.fixture
def proxy(server_url: str) -> Iterator[LossyProxy]:
    with serve_lossily(server_url) as state:
        yield state
