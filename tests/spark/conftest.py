"""Fixtures: one Spark session, a server, and a proxy that loses responses."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from namespace_client.http import CatalogServer
from scripts.build_jar import JAR, build
from spark_catalog.requirements import EXTENSIONS
from spark_catalog.spark_session import configure, start
from tests.emulators import Emulator
from tests.lossy_proxy import LossyProxy, serve_lossily
from tests.server.servers import ServerProcess
from tests.spark.social import Social


@pytest.fixture(scope="session")
def java() -> str:
    """Path of the Java command. Skips the test if there is none."""
    found = shutil.which("java")
    if found is None:
        pytest.skip("needs Java")
    return found


@pytest.fixture(scope="session")
def jar() -> str:
    """Path of the jar of the SQL catalog, built if it is not current."""
    build()
    return str(JAR)


@pytest.fixture(scope="session")
def spark(java: str, jar: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    builder = configure(
        SparkSession.builder.master("local[2]"), shuffle_partitions=2, driver_memory="1g", quick_start=True
    )
    builder = builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
    builder = builder.config("spark.jars", jar).config("spark.sql.extensions", EXTENSIONS)
    session = start(builder, log_level="OFF")
    yield session
    session.stop()


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """Location of a table that does not exist yet."""
    return (tmp_path / "table").as_uri()


@pytest.fixture(scope="session")
def server_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a server on a new local root."""
    home = tmp_path_factory.mktemp("server")
    with ServerProcess(home / "catalog", log=home / "server.log") as server:
        yield server.url


@pytest.fixture
def bucket(moto_server: Emulator, tmp_path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """URL of a server on a root in a bucket, and the storage options of that bucket."""
    storage = {f"LANCE_NAMESPACE_STORAGE__{name.upper()}": value for name, value in moto_server.storage_options.items()}
    with ServerProcess(moto_server.new_root(), log=tmp_path / "server.log", environment=storage) as server:
        yield server.url, moto_server.storage_options


@pytest.fixture
def catalog(server_url: str) -> Iterator[CatalogServer]:
    with CatalogServer(server_url) as server:
        yield server


@pytest.fixture
def namespace(catalog: CatalogServer) -> list[str]:
    """A new namespace."""
    name = [f"t{secrets.token_hex(4)}"]
    catalog.ensure_namespace(name)
    return name


@pytest.fixture
def proxy(server_url: str) -> Iterator[LossyProxy]:
    with serve_lossily(server_url) as state:
        yield state


@pytest.fixture
def social(spark: SparkSession, catalog: CatalogServer, namespace: list[str]) -> Social:
    """A graph without tables in a new namespace."""
    return Social(spark, catalog, namespace)
