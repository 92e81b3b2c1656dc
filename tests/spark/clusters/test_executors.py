"""Executors with a Python environment of their own: how the package reaches them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.server.servers import REPOSITORY, ServerProcess
from tests.spark.clusters.conftest import Environment, Standalone

DRIVER = Path(__file__).with_name("driver.py")
pytestmark = [pytest.mark.long, pytest.mark.slow, pytest.mark.usefixtures("java", "jar")]


def drive(
    directory: Path, master: str, server: ServerProcess, python: str, *settings: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run the driver in a process of its own, in an empty directory. It finds the package by its path."""
    directory.mkdir(exist_ok=True)
    command = [sys.executable, "-W", "ignore", str(DRIVER), master, server.url, python, *settings]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "SPARK"))}
    environment = kept | {"PYTHONPATH": str(REPOSITORY)} | variables
    return subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, timeout=280, check=False
    )


def found(ended: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert ended.returncode == 0, ended.stderr[-3000:]
    report = json.loads(ended.stdout.splitlines()[-1])
    assert report["sql"] == [["graph", 90], ["graph!", 10], ["source", 5], ["sql", 45], ["sql!", 5]]
    assert report["graph"] == 45
    assert report["source"] == 5
    return report


def test_a_session_sends_the_package_to_a_local_cluster(
    tmp_path: Path, server: ServerProcess, bare_environment: Environment, spark_home: Path
) -> None:
    settings = ("send=yes", "spark.executorEnv.PYTHONPATH=")
    master, home = "local-cluster[2,1,1024]", str(spark_home)
    ended = drive(tmp_path / "here", master, server, bare_environment.python, *settings, SPARK_HOME=home)
    places = set(found(ended)["places"])
    assert {place.split()[0] for place in places} == {bare_environment.python}
    assert all(place.endswith("/lance-spark-catalog.zip/spark_catalog/__init__.py") for place in places)
    assert list((spark_home / "work").glob("app-*"))


@pytest.mark.long
def test_a_session_sends_the_package_to_a_standalone_cluster(
    tmp_path: Path, server: ServerProcess, standalone: Standalone, bare_environment: Environment
) -> None:
    ended = drive(tmp_path / "here", standalone.url, server, bare_environment.python, "send=yes")
    places = set(found(ended)["places"])
    assert all(place.endswith("/lance-spark-catalog.zip/spark_catalog/__init__.py") for place in places)


@pytest.mark.long
def test_an_archive_brings_environment_and_package(
    tmp_path: Path, server: ServerProcess, standalone: Standalone, packed_environment: Path
) -> None:
    """The driver has the environment below its directory, too: Spark plans scans of data sources with it."""
    here = tmp_path / "here"
    with tarfile.open(packed_environment) as archive:
        archive.extractall(here / "environment", filter="fully_trusted")
    settings = f"spark.archives={packed_environment}#environment"
    ended = drive(here, standalone.url, server, "./environment/bin/python", settings)
    for place in found(ended)["places"]:
        python, package = place.split()
        assert str(standalone.work) in python
        assert package.startswith(python.removesuffix("bin/python"))


def test_executors_without_the_package_are_named(
    tmp_path: Path, server: ServerProcess, standalone: Standalone, bare_environment: Environment
) -> None:
    ended = drive(tmp_path / "here", standalone.url, server, bare_environment.python)
    assert ended.returncode != 0
    assert "StagingFailed: 1 staging job(s) failed" in ended.stderr
    assert "ModuleNotFoundError: No module named 'spark_catalog'" in ended.stderr
