"""Databases on this machine: SQLite files, and a PostgreSQL cluster that lives as long as the tests."""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from namespace_server.store.schema import migrate

REPOSITORY = Path(__file__).parents[1]
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Cluster:
    """A running PostgreSQL server, reached through a socket in `directory`."""

    directory: Path
    process: subprocess.Popen[bytes]

    def new_database(self) -> str:
        """The URL of an empty database."""
        name = f"d{next(_numbers)}"
        with self.connect() as connection:
            connection.execute(f"CREATE DATABASE {name}")  # type: ignore[call-overload]
        return f"postgresql+psycopg://postgres@/{name}?host={self.directory}"

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(host=str(self.directory), user="postgres", dbname="postgres", autocommit=True)

    def drop_connections(self) -> None:
        """End every session, as a restart of the server does."""
        with self.connect() as connection:
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")


def _identity() -> dict[str, Any]:
    """Arguments that run a program as another user than root, whom PostgreSQL refuses."""
    if os.getuid() != 0:
        return {}
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = names.get("postgres") or names["nobody"]
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A PostgreSQL server of its own, thrown away at the end."""
    installed = subprocess.run([REPOSITORY / "scripts/postgres.sh"], capture_output=True, text=True, check=False)
    if installed.returncode:
        pytest.skip(f"postgres: {installed.stderr.strip().splitlines()[-1]}")
    programs = Path(installed.stdout.strip())
    # Not below pytest's own directory: only root may enter that, and sockets want short names.
    directory = Path(tempfile.mkdtemp(prefix="pg"))
    identity = _identity()
    if identity:
        os.chown(directory, identity["user"], identity["group"])
    data = directory / "data"
    run = {**identity, "cwd": directory, "stdout": subprocess.DEVNULL, "stderr": subprocess.STDOUT}
    try:
        initialise = [programs / "initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8"]
        subprocess.run(initialise, check=True, **run)
        options = ["-k", directory, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=200"]
        process = subprocess.Popen([programs / "postgres", "-D", data, *options], **run)
        found = Cluster(directory, process)
        try:
            _wait_for(found)
            yield found
        finally:
            process.send_signal(signal.SIGQUIT)
            process.wait()
    finally:
        shutil.rmtree(directory)


def _wait_for(cluster: Cluster) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            cluster.connect().close()
        except psycopg.OperationalError:
            if cluster.process.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


@pytest.fixture(params=["sqlite", "postgresql"])
def new_database(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """Gives the URL of an empty database, of each kind in turn."""
    if request.param == "sqlite":
        return lambda: f"sqlite:///{tmp_path}/manifests {next(_numbers)}%.db"
    cluster: Cluster = request.getfixturevalue("cluster")
    return cluster.new_database


@pytest.fixture
def database(new_database: Callable[[], str]) -> str:
    """The URL of a database with our schema, of each kind in turn."""
    url = new_database()
    migrate(url)
    return url
