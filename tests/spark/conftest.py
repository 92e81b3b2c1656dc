"""One Spark session for all tests of this room."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_catalog.session import configure, start


@pytest.fixture(scope="session")
def java() -> str:
    """The Java that Spark runs on."""
    found = shutil.which("java")
    if found is None:
        pytest.skip("needs Java")
    return found


@pytest.fixture(scope="session")
def spark(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    builder = configure(SparkSession.builder.master("local[2]"), shuffle_partitions=2, driver_memory="1g")
    builder = builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
    session = start(builder, log_level="OFF")
    yield session
    session.stop()


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """Where a table could be; nothing is there yet."""
    return (tmp_path / "table").as_uri()
