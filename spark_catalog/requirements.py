"""The requirements of a session with the SQL catalog: pyspark, Java, the jar, a server that answers."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pyspark
from pyspark.sql import SparkSession

from spark_catalog.errors import InvalidWrite, ServerUnreachable

JAVA_PACKAGE: Final = "org.lancenamespace.spark"
EXTENSIONS: Final = f"{JAVA_PACKAGE}.LanceExtensions"
"""The extensions of a session with SQL. They are in the jar of the SQL catalog."""
JAR: Final = Path(__file__).resolve().parent / "sql" / "lance-catalog.jar"
_OLDEST_PYSPARK, _NEWEST_PYSPARK = (4, 1), (4, 3)
_WITH_TRANSACTIONS = (4, 2)
_OLDEST_JAVA = 17
_TIMEOUT = 10.0


def check_pyspark() -> None:
    """Raise `InvalidWrite` unless pyspark is of a version with which the catalog was tested."""
    if not _OLDEST_PYSPARK <= spark_version() <= _NEWEST_PYSPARK:
        oldest, newest = (".".join(map(str, version)) for version in (_OLDEST_PYSPARK, _NEWEST_PYSPARK))
        raise InvalidWrite(f"pyspark {pyspark.__version__}: expected a version from {oldest} to {newest}")


def has_transactions() -> bool:
    """Whether this Spark begins a transaction for each writing query."""
    return spark_version() >= _WITH_TRANSACTIONS


def spark_version() -> tuple[int, int]:
    """Major and minor version of pyspark."""
    major, minor = pyspark.__version__.split(".")[:2]
    return int(major), int(minor)


def check_java() -> None:
    """Raise `InvalidWrite` unless there is a Java that Spark would start, of version 17 or newer."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(str(Path(home) / "bin" / "java")) if home else shutil.which("java")
    if java is None:
        where = f"JAVA_HOME={home}" if home else "the path"
        raise InvalidWrite(f"Java: expected version {_OLDEST_JAVA} or newer, found none in {where}")
    command = [java, "-version"]
    printed = subprocess.run(command, capture_output=True, text=True, check=False).stderr  # noqa: S603 - Spark runs it, too
    version = printed.partition('"')[2].partition('"')[0]
    major = version.partition(".")[0]
    if not major.isdigit() or int(major) < _OLDEST_JAVA:
        raise InvalidWrite(f"{java}: expected Java {_OLDEST_JAVA} or newer, found {version or printed.strip()[:80]}")


def check_jar() -> None:
    """Raise `InvalidWrite` unless this package was built with the jar of the catalog."""
    if not JAR.exists():
        raise InvalidWrite(
            f"{JAR}: expected the jar of the catalog, found none: it is built where pyspark and a JDK are, by "
            "`pip install --no-build-isolation` of a checkout, or by scripts/build_jar.py in a source tree"
        )


def check_connect_server(session: SparkSession) -> None:
    """Raise `InvalidWrite` if a session of Spark Connect has a catalog of this package, and its server no extensions.

    Extensions are loaded when a server starts. Without them tables of one query may be of several catalog versions.
    """
    settings = session.conf.getAll
    catalogs = [name for name, value in settings.items() if value.startswith(JAVA_PACKAGE) and "catalog." in name]
    found = settings.get("spark.sql.extensions", "")
    if catalogs and EXTENSIONS not in found.split(","):
        raise InvalidWrite(
            f"{', '.join(catalogs)}: expected a server of Spark Connect with spark.sql.extensions={EXTENSIONS}, found "
            f"{found or 'none'}: it has to be started with the settings of shared_options()"
        )


def check_server(uri: str, token: str | None) -> None:
    """Raise `ServerUnreachable` unless a catalog server answers, and accepts the token."""
    import httpx

    headers = {"authorization": f"Bearer {token}"} if token else {}
    try:
        answer = httpx.get(f"{uri.rstrip('/')}/v1/catalog", headers=headers, timeout=_TIMEOUT)
    except (httpx.TransportError, httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
        raise ServerUnreachable(f"{uri}: expected a catalog server, found {type(error).__name__}: {error}") from error
    if not answer.is_success:
        raise ServerUnreachable(
            f"{uri}: expected a catalog server, found status {answer.status_code}: {answer.text[:200]}"
        )
