"""Options of a Spark session with the SQL catalog."""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from namespace_client.staged_transaction import Isolation
from spark_catalog.requirements import (
    EXTENSIONS,
    JAR,
    JAVA_PACKAGE,
    check_jar,
    check_java,
    check_pyspark,
    check_server,
    has_transactions,
)
from spark_catalog.spark_session import WORKER_OPTIONS, choose_python, option_of

_LISTS = ("spark.jars", "spark.submit.pyFiles", "spark.sql.extensions")


def session(
    builder: SparkSession.Builder,
    *,
    uri: str,
    token: str | None = None,
    name: str = "lance",
    isolation: Isolation = "snapshot",
    storage_options: Mapping[str, str] | None = None,
    worker_python: str | None = None,
    send_package: bool = False,
    is_default: bool = False,
) -> SparkSession.Builder:
    """Set all options that Lance and SQL on a catalog server require on a session builder, whatever its master is.

    On a builder of Spark Connect only the catalog is set. The server has to be started with the options of
    `shared_options`, and Python interpreters are those of the server.

    Example:
        ```python
        builder = session(configure(SparkSession.builder.master("local[2]")), uri="http://127.0.0.1:2333")
        spark = start(builder)
        spark.sql("SHOW NAMESPACES IN lance").show()
        ```

    Args:
        builder: Builder of the session. Jars, packages and extensions that it has are kept.
        uri: Address of the server.
        token: API key, sent as bearer token.
        name: Name of the catalog in SQL.
        isolation: Isolation of statements outside of transactions, see `Catalog.begin`.
        storage_options: Options of Lance for the object store of the tables.
        worker_python: Python interpreter of the executors, by default `PYSPARK_PYTHON`, else the path of this one.
        send_package: Whether Spark sends this package to the executors, which then need its dependencies only.
        is_default: Whether names without a catalog are in this one.

    Returns:
        The builder.

    Raises:
        InvalidWrite: Java or the jar is missing, or pyspark is of another version.
        ServerUnreachable: The server does not respond, or refuses the token.
    """
    check_pyspark()
    catalog = catalog_options(
        uri,
        token=token,
        name=name,
        isolation=isolation,
        storage_options=storage_options,
        worker_python=worker_python,
    )
    if option_of(builder, "spark.remote") or os.environ.get("SPARK_REMOTE"):
        check_server(uri, token)
        options = WORKER_OPTIONS | {key: value for key, value in catalog.items() if key not in _of_this_machine(name)}
    else:
        check_java()
        check_jar()
        check_server(uri, token)
        choose_python(worker_python)
        options = shared_options(send_package=send_package) | catalog
    if is_default:
        options["spark.sql.defaultCatalog"] = name
    for key, value in options.items():
        given = option_of(builder, key) if key in _LISTS else None
        builder = builder.config(key, _joined(given, value))
    return builder


def shared_options(*, send_package: bool = False) -> dict[str, str]:
    """Options of a session for all catalogs: the jar, the extensions, and what tasks need.

    They are set when a session starts. A server of Spark Connect is started with these and with `catalog_options`.

    Args:
        send_package: Whether Spark sends this package to the executors.

    Returns:
        Settings of Spark by name.
    """
    options = WORKER_OPTIONS | {
        "spark.jars": str(JAR),
        "spark.sql.extensions": EXTENSIONS,
        "spark.sql.python.filterPushdown.enabled": "true",
    }
    if send_package:
        options["spark.submit.pyFiles"] = str(package_zip())
    return options


def catalog_options(
    uri: str,
    *,
    token: str | None = None,
    name: str = "lance",
    isolation: Isolation = "snapshot",
    storage_options: Mapping[str, str] | None = None,
    worker_python: str | None = None,
) -> dict[str, str]:
    """The options of one catalog, which can also be set on a running session that has the options of `shared_options`.

    Args:
        uri: Address of the server.
        token: API key, sent as bearer token.
        name: Name of the catalog in SQL.
        isolation: Isolation of statements outside of transactions.
        storage_options: Options of Lance for the object store of the tables.
        worker_python: Python interpreter of the executors, by default `PYSPARK_PYTHON`, else the path of this one.

    Returns:
        Settings of Spark by name.
    """
    prefix = f"spark.sql.catalog.{name}"
    options = {
        prefix: f"{JAVA_PACKAGE}.{'LanceTransactionalCatalog' if has_transactions() else 'LanceCatalog'}",
        f"{prefix}.uri": uri,
        f"{prefix}.isolation": isolation,
        f"{prefix}.python": sys.executable,
        f"{prefix}.worker-python": worker_python or os.environ.get("PYSPARK_PYTHON") or sys.executable,
        f"{prefix}.python-version": f"{sys.version_info.major}.{sys.version_info.minor}",
    }
    if token is not None:
        options[f"{prefix}.token"] = token
    return options | {f"{prefix}.storage.{key}": value for key, value in (storage_options or {}).items()}


def _of_this_machine(name: str) -> set[str]:
    """Options of a catalog that hold paths: the server of Spark Connect has its own."""
    return {f"spark.sql.catalog.{name}.{option}" for option in ("python", "worker-python", "python-version")}


def _joined(given: str | None, added: str) -> str:
    """A list of Spark with one more item."""
    items = given.split(",") if given else []
    return ",".join([*items, *([] if added in items else [added])])


_PACKAGES: Final = ("lance_core", "namespace_client", "spark_catalog", "table_data")
_MODULES: Final = ("pyspark_lance",)
_NAME: Final = "lance-spark-catalog.zip"


@cache
def package_zip() -> Path:
    """A zip file with the Python modules that tasks import, for `spark.submit.pyFiles`. Removed with this process."""
    directory = tempfile.TemporaryDirectory(prefix="lance-spark-")
    _kept.append(directory)
    file = Path(directory.name) / _NAME
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for source, name in _modules():
            archive.write(source, name)
    return file


_kept: Final[list[tempfile.TemporaryDirectory[str]]] = []
"""Directories that are removed when the interpreter ends."""


def _modules() -> Iterator[tuple[Path, str]]:
    """Files of the packages, each with its name in the zip file."""
    for name in _PACKAGES:
        root = _origin(name).parent
        for file in sorted(root.rglob("*.py")):
            yield file, f"{name}/{file.relative_to(root).as_posix()}"
    for name in _MODULES:
        yield _origin(name), f"{name}.py"


def _origin(name: str) -> Path:
    found = importlib.util.find_spec(name)
    assert found is not None
    assert found.origin is not None
    return Path(found.origin)
