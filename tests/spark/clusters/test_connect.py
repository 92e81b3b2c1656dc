"""Spark Connect: clients without a JVM, on a server that was started with the options of the package or without."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from spark_catalog.sql.settings import catalog_options, shared_options
from tests.server.servers import REPOSITORY, ServerProcess
from tests.spark.clusters.conftest import SPARK_HOME, spark_process
from tests.spark.clusters.test_executors import DRIVER

pytestmark = [pytest.mark.long, pytest.mark.slow, pytest.mark.usefixtures("java", "jar")]


@contextmanager
def connect_server(home: Path, options: dict[str, str]) -> Iterator[str]:
    """A server of Spark Connect, whose Python has the package. Gives its URL."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    given = options | {
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": str(home / "warehouse"),
    }
    settings = [part for name, value in given.items() for part in ("--conf", f"{name}={value}")]
    name = "org.apache.spark.sql.connect.service.SparkConnectServer"
    command = (str(SPARK_HOME / "bin" / "spark-submit"), "--master", "local[2]", "--class", name, *settings)
    python = {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": f"{REPOSITORY}{os.pathsep}{DRIVER.parent}"}
    with spark_process(home / "connect.log", "Spark Connect server started", *command, "spark-internal", **python):
        yield f"sc://127.0.0.1:{port}"


def run_client(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "ignore", "-c", code, *arguments]
    environment = os.environ | {"PYTHONPATH": f"{REPOSITORY}{os.pathsep}{DRIVER.parent}"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200, check=False)


def test_a_client_writes_and_reads_in_each_way(tmp_path: Path, server: ServerProcess) -> None:
    client = """
import json, sys
from driver import report
from pyspark.sql import SparkSession
from spark_catalog import session, start

connect, server = sys.argv[1:]
spark = start(session(SparkSession.builder.remote(connect), uri=server))
print(json.dumps(report(spark, server)))
spark.stop()
"""
    with connect_server(tmp_path, shared_options() | catalog_options(server.url)) as url:
        ended = run_client(client, url, server.url)
    assert ended.returncode == 0, ended.stderr[-3000:]
    report = json.loads(ended.stdout)
    assert report["sql"] == [["graph", 90], ["graph!", 10], ["source", 5], ["sql", 45], ["sql!", 5]]
    assert report["graph"] == 45
    assert report["source"] == 5


def test_a_server_without_the_options_is_named_and_serves_graphs(tmp_path: Path, server: ServerProcess) -> None:
    client = """
import sys
from pyspark.sql import SparkSession
from spark_catalog import CatalogServer, GraphWrite, InvalidWrite, read_graph, session, start

connect, server = sys.argv[1:]
try:
    start(session(SparkSession.builder.remote(connect), uri=server))
except InvalidWrite as error:
    print(error)
spark = SparkSession.builder.remote(connect).getOrCreate()
with CatalogServer(server) as catalog:
    catalog.ensure_namespace(["n"])
with GraphWrite(spark, server, namespace=["n"]) as tx:
    tx.append("t", spark.range(10))
print(read_graph(spark, server, ["n"]).tables["t"].count())
spark.stop()
"""
    with connect_server(tmp_path, {}) as url:
        ended = run_client(client, url, server.url)
    assert ended.returncode == 0, ended.stderr[-3000:]
    error, rows = ended.stdout.splitlines()
    assert error.startswith("spark.sql.catalog.lance: expected a server of Spark Connect with spark.sql.extensions=")
    assert error.endswith("found none: it has to be started with the settings of shared_options()")
    assert rows == "10"
