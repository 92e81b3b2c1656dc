"""The two wheels of this checkout: what is in each, and the client's alone in an environment without the server."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from namespace_server.store.schema import _scripts
from tests.server.servers import REPOSITORY, ServerProcess
from tests.wheels.building import CLIENT, SERVER, Environment, build_wheels, copy_sources, needed_by, pip

pytestmark = pytest.mark.slow

OF_THE_CLIENT = ("lance_core", "lance_namespace_server_client", "namespace_client", "spark_catalog", "table_data")
OF_THE_SERVER = ("namespace_console", "namespace_mcp", "namespace_server", "namespace_tck")
NOT_OF_THE_CLIENT = {"alembic", "fastapi", "granian", "orjson", "prometheus-client", "sqlalchemy", "typer", "uvloop"}
HEAD = _scripts().get_current_head()

BATCH = """
import sys
from namespace_client import Catalog, InvalidCall

with Catalog.connect(sys.argv[1], namespace="shop") as catalog:
    catalog.ensure_namespace()
    with catalog.begin(message="first load") as tx:
        tx.create("customers", {"id": [1, 2], "name": ["Ada", "Grace"]})
        tx.create("orders", {"order": [10, 11], "customer": [1, 2]})
    with catalog.begin(message="more") as tx:
        tx.append("customers", {"id": [3], "name": ["Edsger"]})
        tx.merge("orders", {"order": [11, 12], "customer": [3, 3]}, on="order")
    assert catalog.read("customers").num_rows == 3
    assert sorted(catalog.read("orders")["customer"].to_pylist()) == [1, 3, 3]
    batches = [batch for version in catalog.history(limit=10) for batch in version.batches]
    assert [batch.message for batch in batches if batch.message] == ["more", "first load"]
    print(len(catalog.tables()))
try:
    Catalog.connect(sys.argv[2])
except InvalidCall as error:
    print(error)
"""
EVERY_MODULE = """
import importlib, os, pkgutil, sys

for name in [name for name in vars(os) if name.startswith("O_") and name[2:] in sys.argv[1].split(",")]:
    delattr(os, name)
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
for package in sys.argv[2:]:
    for found in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        try:
            importlib.import_module(found.name)
        except (AttributeError, ImportError):
            print(found.name)
"""


def metadata_of(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return Parser().parsestr(archive.read(name).decode())


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheels of a copy of this checkout, without the jar, by project. An earlier build had other modules."""
    home = tmp_path_factory.mktemp("wheels")
    source = copy_sources(home / "source")
    for built_before in ("build/lib/namespace_server/moved.py", "client/build/lib/namespace_client/moved.py"):
        (source / built_before).parent.mkdir(parents=True)
        (source / built_before).touch()
    built = build_wheels(source, home, CLIENT, SERVER, LANCE_WHEEL_WITHOUT_JAR="1")
    assert built.returncode == 0, built.stderr
    client, server = sorted(home.glob("*.whl"))
    return {CLIENT: client, SERVER: server}


@pytest.fixture(scope="module")
def environment(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The client's wheel, and what its metadata requires."""
    required = needed_by(metadata_of(wheels[CLIENT]).get_all("Requires-Dist", []))
    made = Environment(tmp_path_factory.mktemp("environment"), required)
    made.install(wheels[CLIENT])
    return made


def test_each_file_is_in_one_wheel(wheels: dict[str, Path]) -> None:
    files = {project: set(zipfile.ZipFile(wheel).namelist()) for project, wheel in wheels.items()}
    assert files[CLIENT] & files[SERVER] == set()
    tops = {
        project: {name.split("/")[0] for name in names if ".dist-info/" not in name} for project, names in files.items()
    }
    assert tops == {CLIENT: {*OF_THE_CLIENT, "pyspark_lance.py"}, SERVER: set(OF_THE_SERVER)}
    sources = {
        path.relative_to(REPOSITORY).as_posix()
        for package in (*OF_THE_CLIENT, *OF_THE_SERVER)
        for path in (REPOSITORY / package).rglob("*.py*")
        if "__pycache__" not in path.parts
    }
    assert len(sources) > 500
    assert sources - files[CLIENT] - files[SERVER] == set()
    built = {name for names in files.values() for name in names if name.endswith((".py", ".pyi"))}
    elsewhere = ("lance_namespace_server_client/", "namespace_server/store/migrations/")
    others = {name for name in built - sources if not name.startswith(elsewhere)}
    assert others == {"pyspark_lance.py"}  # none of tests, and none of an earlier build
    assert {f"{package}/py.typed" for package in (*OF_THE_CLIENT, *OF_THE_SERVER)} <= files[CLIENT] | files[SERVER]


def test_the_distributions_are_of_one_version(wheels: dict[str, Path]) -> None:
    told = {project: metadata_of(wheel) for project, wheel in wheels.items()}
    [version] = {found["Version"] for found in told.values()}
    needed = [Requirement(each) for each in told[SERVER].get_all("Requires-Dist", [])]
    [client] = [each for each in needed if each.name == "lance-namespace-client" and each.marker is None]
    assert str(client.specifier) == f"=={version}"
    for project, wheel in wheels.items():
        assert told[project]["License-Expression"] == "Apache-2.0"
        with zipfile.ZipFile(wheel) as archive:
            [name] = [name for name in archive.namelist() if name.endswith("/licenses/LICENSE")]
            assert archive.read(name) == (REPOSITORY / "LICENSE").read_bytes()


def test_the_client_works_without_the_server(environment: Environment, tmp_path: Path) -> None:
    assert NOT_OF_THE_CLIENT & environment.names() == set()
    assert {"lance-namespace-client", "pylance", "httpx"} <= environment.names()
    with ServerProcess(tmp_path / "catalog", log=tmp_path / "log") as server:
        printed = environment.run(BATCH, server.url, "./elsewhere", cwd=tmp_path)
    assert printed == (
        "2\n./elsewhere: a catalog in this process needs lance-namespace-server, which is not installed: "
        "install it, or give the URL of a server\n"
    )


def test_its_modules_need_no_system_calls_of_posix(environment: Environment, tmp_path: Path) -> None:
    """All but stores in directories, and what extras are for, can be imported where POSIX is missing, as on Windows."""
    flags = "CLOEXEC,DIRECTORY,NOCTTY,NOFOLLOW,NONBLOCK,PATH,SYNC"
    failed = environment.run(EVERY_MODULE, flags, "lance_core", "table_data", "namespace_client", cwd=tmp_path).split()
    of_directories = [f"lance_core.storage.{name}" for name in ("durability", "file_bytes", "local", "renaming")]
    of_extras = [f"lance_core.storage.services.{name}" for name in ("azure", "bucket", "gcs", "obstore_errors", "s3")]
    of_engines = [f"namespace_client.{name}" for name in ("lancedb_past", "ray_data", "torch_data")]
    assert sorted(failed) == sorted([*of_directories, *of_extras, *of_engines, "lance_core.storage.bucket_store"])


def migrated_with(path: Path, database: Path, cwd: Path) -> list[str]:
    """Where the package was found when only `path` was given, and the revisions before and after."""
    code = "from namespace_server.store import schema as s; import sys; print(s.__file__, *s.migrate(sys.argv[1]))"
    command = [sys.executable, "-c", code, f"sqlite:///{database}"]
    done = subprocess.run(command, cwd=cwd, env={"PYTHONPATH": str(path)}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_wheel_brings_the_migrations(wheels: dict[str, Path], tmp_path: Path) -> None:
    site = tmp_path / "site"
    pip("install", "--no-index", "--no-deps", "--target", str(site), str(wheels[SERVER]))
    assert not (site / "migrations").exists()
    found, before, after = migrated_with(site, tmp_path / "x.db", tmp_path)
    assert Path(found).is_relative_to(site)
    assert (before, after) == ("None", HEAD)


def test_a_checkout_brings_the_migrations(tmp_path: Path) -> None:
    found, before, after = migrated_with(REPOSITORY, tmp_path / "x.db", tmp_path)
    assert Path(found).is_relative_to(REPOSITORY)
    assert (before, after) == ("None", HEAD)
