"""Options of a session, and what is refused before a session starts."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from scripts.build_jar import JAR, build
from spark_catalog import requirements
from spark_catalog.errors import InvalidWrite, ServerUnreachable
from spark_catalog.requirements import check_java, check_pyspark, check_server
from spark_catalog.sql import settings
from spark_catalog.sql.settings import catalog_options
from tests.wheels.building import CLIENT, build_wheels, copy_sources


def test_the_jar_is_built_once(tmp_path: Path, jar: str) -> None:
    assert jar == str(JAR)
    other = tmp_path / "other.jar"
    assert build(other)
    assert not build(other)
    assert other.read_bytes() == JAR.read_bytes()
    with zipfile.ZipFile(other) as archive:
        assert "org/lancenamespace/spark/LanceTransactionalCatalog.class" in archive.namelist()


def _build_wheel(directory: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Build a wheel of the client, without the jar of the source tree, in an environment that has pyspark."""
    source = copy_sources(directory / "source")
    return build_wheels(source, directory, CLIENT, **environment)


def _jar_of(directory: Path) -> bytes | None:
    [wheel] = directory.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        name = "spark_catalog/sql/lance-catalog.jar"
        return archive.read(name) if name in archive.namelist() else None


def test_a_wheel_brings_the_jar(tmp_path: Path, jar: str) -> None:
    built = _build_wheel(tmp_path)
    assert built.returncode == 0, built.stderr
    assert _jar_of(tmp_path) == Path(jar).read_bytes()


def test_without_a_compiler_a_wheel_has_no_jar_unless_it_must_have_it(tmp_path: Path) -> None:
    without_jdk = {"JAVA_HOME": str(tmp_path), "PATH": str(tmp_path)}
    refused = _build_wheel(tmp_path / "refused", **without_jdk, LANCE_WHEEL_WITH_JAR="1")
    assert refused.returncode != 0
    assert "the jar of the SQL catalog of Spark cannot be built: javac was not found" in refused.stderr
    assert list((tmp_path / "refused").glob("*.whl")) == []
    built = _build_wheel(tmp_path / "built", **without_jdk)
    assert built.returncode == 0, built.stderr
    assert _jar_of(tmp_path / "built") is None


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("isolaton", "snapshot", r"spark.sql.catalog.lance.isolaton: expected a setting among isolation, python"),
        ("url", "http://x", r"spark.sql.catalog.lance.url: expected a setting among"),
        ("worker_python", "python3", r"spark.sql.catalog.lance.worker_python: expected a setting among"),
        ("storage_options", "{}", r"spark.sql.catalog.lance.storage_options: expected a setting among"),
        ("isolation", "Serializable", r"isolation: expected snapshot or serializable, found 'Serializable'"),
    ],
)
def test_a_setting_of_a_catalog_that_there_is_not_is_refused(
    spark: SparkSession, name: str, value: str, error: str
) -> None:
    session = spark.newSession()
    for option, given in {**catalog_options("http://127.0.0.1:9"), f"spark.sql.catalog.lance.{name}": value}.items():
        session.conf.set(option, given)
    with pytest.raises(Exception, match=error):
        session.sql("SHOW NAMESPACES IN lance")


def test_options_of_a_catalog() -> None:
    options = catalog_options("http://x", token="secret", name="c", storage_options={"region": "r"})
    assert options["spark.sql.catalog.c.uri"] == "http://x"
    assert options["spark.sql.catalog.c.token"] == "secret"
    assert options["spark.sql.catalog.c.storage.region"] == "r"
    assert options["spark.sql.catalog.c.python"] == sys.executable


def test_a_server_that_does_not_answer_is_named() -> None:
    with pytest.raises(
        ServerUnreachable, match=r"http://127\.0\.0\.1:9: expected a catalog server, found ConnectError"
    ):
        check_server("http://127.0.0.1:9", None)
    with pytest.raises(ServerUnreachable, match="expected a catalog server"):
        check_server("no address", None)


def test_a_server_of_another_kind_is_named(server_url: str) -> None:
    with pytest.raises(ServerUnreachable, match="found status 404"):
        check_server(f"{server_url}/somewhere", None)


def test_a_missing_java_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(InvalidWrite, match="Java: expected version 17 or newer, found none in JAVA_HOME="):
        check_java()
    (tmp_path / "bin").mkdir()
    old = tmp_path / "bin" / "java"
    old.write_text("#!/bin/sh\necho 'java version \"1.8.0_292\"' >&2\n")
    old.chmod(0o755)
    with pytest.raises(InvalidWrite, match=r"expected Java 17 or newer, found 1.8.0_292"):
        check_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InvalidWrite, match="found none in the path"):
        check_java()


def test_another_pyspark_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    check_pyspark()
    monkeypatch.setattr("pyspark.__version__", "4.0.2")
    with pytest.raises(InvalidWrite, match=r"pyspark 4.0.2: expected a version from 4.1 to 4.3"):
        check_pyspark()


def test_a_missing_jar_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, java: str) -> None:
    monkeypatch.setattr(requirements, "JAR", tmp_path / "none.jar")
    with pytest.raises(InvalidWrite, match=r"none.jar: expected the jar of the catalog, found none: it is built"):
        settings.session(SparkSession.builder, uri="http://127.0.0.1:9")


def test_the_token_is_no_argument_of_a_process(spark: SparkSession, server_url: str) -> None:
    session = spark.newSession()
    for name, value in catalog_options(server_url, token="very-secret-token").items():
        session.conf.set(name, value)
    session.sql("SHOW NAMESPACES IN lance").collect()
    printed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert "spark_catalog.sql.process" in printed
    assert "very-secret-token" not in printed
