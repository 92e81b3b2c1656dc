"""Python environments of executors, and clusters of Spark on this machine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest

from spark_catalog.sql.settings import package_zip
from tests.server.servers import ServerProcess

SPARK_HOME = Path(pyspark.__file__).parent
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Less to compile for processes of Java that run for a minute."""
_TIMEOUT = 90.0


@dataclass(frozen=True)
class Environment:
    """A Python environment below `directory`, with the dependencies of the package, with or without the package."""

    directory: Path

    @property
    def python(self) -> str:
        return str(self.directory / "bin" / "python")

    @property
    def site(self) -> Path:
        [site] = self.directory.glob("lib/python*/site-packages")
        return site

    def finds_the_package(self) -> bool:
        command = [self.python, "-c", "import pyarrow, lance, pyspark, pyroaring; import spark_catalog"]
        return subprocess.run(command, env={}, cwd="/", capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="session")
def bare_environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Without the package."""
    made = Environment(tmp_path_factory.mktemp("bare") / "environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", made.directory], check=True)
    (made.site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    assert not made.finds_the_package()
    return made


@pytest.fixture(scope="session")
def packed_environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of an environment with the package, as venv-pack makes it."""
    home = tmp_path_factory.mktemp("packed")
    made = Environment(home / "environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", made.directory], check=True)
    (made.site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    with zipfile.ZipFile(package_zip()) as package:
        package.extractall(made.site)
    assert made.finds_the_package()
    archive = home / "environment.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(made.directory, ".")
    return archive


@pytest.fixture
def spark_home(tmp_path: Path) -> Path:
    """The files of Spark in a directory of the test. A local cluster works in a directory of Spark's home."""
    home = tmp_path / "spark"
    home.mkdir()
    for file in SPARK_HOME.iterdir():
        if file.name != "work":
            (home / file.name).symlink_to(file)
    return home


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path / "catalog", log=tmp_path / "server.log") as running:
        yield running


@contextmanager
def spark_process(log: Path, expected: str, *command: str, **variables: str) -> Iterator[str]:
    """A process of Spark's scripts with few variables of the environment. Gives what `expected` finds in its log."""
    environment = {
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PATH": os.environ["PATH"],
        "JAVA_HOME": os.environ.get("JAVA_HOME", ""),
        **variables,
    }
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment, cwd=log.parent)
    try:
        yield _found(process, log, expected)
    finally:
        process.terminate()
        process.wait(_TIMEOUT)


def _found(process: subprocess.Popen[bytes], log: Path, expected: str) -> str:
    end = time.monotonic() + _TIMEOUT
    while time.monotonic() < end:
        if match := re.search(expected, log.read_text()):
            return match[0]
        assert process.poll() is None, log.read_text()[-3000:]
        time.sleep(0.2)
    raise AssertionError(f"{expected} is not in the log: {log.read_text()[-3000:]}")


@dataclass(frozen=True)
class Standalone:
    """A standalone cluster with one worker, and the directory in which it keeps the files of applications."""

    url: str
    work: Path


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory, java: str) -> Iterator[Standalone]:
    home = tmp_path_factory.mktemp("standalone")
    script = str(SPARK_HOME / "bin" / "spark-class")
    deploy = "org.apache.spark.deploy"
    on_loopback = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    quick_start = {"SPARK_DAEMON_JAVA_OPTS": QUICK_START}
    started = r"spark://127\.0\.0\.1:\d+"
    master = (script, f"{deploy}.master.Master", *on_loopback)
    with spark_process(home / "master.log", started, *master, **quick_start) as url:
        resources = ("--cores", "2", "--memory", "1g", "--work-dir", str(home / "work"))
        worker = (script, f"{deploy}.worker.Worker", *on_loopback, *resources, url)
        with spark_process(home / "worker.log", "Successfully registered with master", *worker, **quick_start):
            yield Standalone(url, home / "work")
