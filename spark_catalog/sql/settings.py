"""Options of a Spark session with the SQL catalog."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import httpx
import pyspark
from pyspark.sql import SparkSession

from namespace_client.staged_transaction import Isolation
from spark_catalog.errors import InvalidWrite, ServerUnreachable
from spark_catalog.spark_session import add_to_worker_path

JAR = Path(__file__).resolve().parent / "lance-catalog.jar"
_CATALOG = "org.lancenamespace.spark.LanceTransactionalCatalog"
EXTENSIONS = "org.lancenamespace.spark.LanceExtensions"
_SUPPORTED = (4, 3)
_OLDEST_JAVA = 17
_TIMEOUT = 10.0


def session(
    builder: SparkSession.Builder,
    *,
    uri: str,
    token: str | None = None,
    name: str = "lance",
    isolation: Isolation = "snapshot",
    storage_options: Mapping[str, str] | None = None,
    worker_python: str | None = None,
    is_default: bool = False,
) -> SparkSession.Builder:
    """Set all options that SQL on a catalog server requires on a session builder.

    Example:
        ```python
        builder = session(configure(SparkSession.builder.master("local[2]")), uri="http://127.0.0.1:2333")
        spark = start(builder)
        spark.sql("SHOW NAMESPACES IN lance").show()
        ```

    Args:
        builder: Builder of the session.
        uri: Address of the server.
        token: API key, sent as bearer token.
        name: Name of the catalog in SQL.
        isolation: Isolation of statements outside of transactions, see `Catalog.begin`.
        storage_options: Options of Lance for the object store of the tables.
        worker_python: Python interpreter of the executors, by default the path of this one.
        is_default: Whether names without a catalog are in this one.

    Returns:
        The builder.

    Raises:
        InvalidWrite: Java or the jar is missing, or pyspark is of another version.
        ServerUnreachable: The server does not respond, or refuses the token.
    """
    check_pyspark()
    check_java()
    if not JAR.exists():
        raise InvalidWrite(f"{JAR}: expected the jar of the catalog, found none: run scripts/build_jar.py")
    check_server(uri, token)
    add_to_worker_path()
    options = catalog_options(
        uri,
        token=token,
        name=name,
        isolation=isolation,
        storage_options=storage_options,
        worker_python=worker_python,
    )
    options |= {
        "spark.jars": str(JAR),
        "spark.sql.extensions": EXTENSIONS,
        "spark.sql.python.filterPushdown.enabled": "true",
    }
    if is_default:
        options["spark.sql.defaultCatalog"] = name
    for key, value in options.items():
        builder = builder.config(key, value)
    return builder


def catalog_options(
    uri: str,
    *,
    token: str | None = None,
    name: str = "lance",
    isolation: Isolation = "snapshot",
    storage_options: Mapping[str, str] | None = None,
    worker_python: str | None = None,
) -> dict[str, str]:
    """The options of one catalog, which can also be set on a running session that has the jar and `EXTENSIONS`.

    Args:
        uri: Address of the server.
        token: API key, sent as bearer token.
        name: Name of the catalog in SQL.
        isolation: Isolation of statements outside of transactions.
        storage_options: Options of Lance for the object store of the tables.
        worker_python: Python interpreter of the executors, by default the path of this one.

    Returns:
        Settings of Spark by name.
    """
    prefix = f"spark.sql.catalog.{name}"
    options = {
        prefix: _CATALOG,
        f"{prefix}.uri": uri,
        f"{prefix}.isolation": isolation,
        f"{prefix}.python": sys.executable,
        f"{prefix}.worker-python": worker_python or sys.executable,
        f"{prefix}.python-version": f"{sys.version_info.major}.{sys.version_info.minor}",
    }
    if token is not None:
        options[f"{prefix}.token"] = token
    return options | {f"{prefix}.storage.{key}": value for key, value in (storage_options or {}).items()}


def check_pyspark() -> None:
    """Raise `InvalidWrite` unless pyspark is of a version that the jar was compiled for."""
    found = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
    if found != _SUPPORTED:
        expected = ".".join(map(str, _SUPPORTED))
        raise InvalidWrite(f"pyspark {pyspark.__version__}: expected {expected}, for which the catalog is compiled")


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


def check_server(uri: str, token: str | None) -> None:
    """Raise `ServerUnreachable` unless a catalog server answers, and accepts the token."""
    headers = {"authorization": f"Bearer {token}"} if token else {}
    try:
        answer = httpx.get(f"{uri.rstrip('/')}/v1/catalog", headers=headers, timeout=_TIMEOUT)
    except (httpx.TransportError, httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
        raise ServerUnreachable(f"{uri}: expected a catalog server, found {type(error).__name__}: {error}") from error
    if not answer.is_success:
        raise ServerUnreachable(
            f"{uri}: expected a catalog server, found status {answer.status_code}: {answer.text[:200]}"
        )
