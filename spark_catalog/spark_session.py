"""Settings of a Spark session that Lance staging requires."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from spark_catalog.errors import InvalidWrite
from spark_catalog.requirements import check_connect_server

WORKER_OPTIONS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}
"""Options of every session. Timestamps are passed in UTC, so that they do not depend on the time zone of a machine."""

_QUICK_START: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
"""With one tier Java reserves 48 MB for compiled code, which some minutes of queries fill. It compiles no more then."""


def configure(
    builder: SparkSession.Builder,
    *,
    loopback: bool = True,
    ui: bool = False,
    quick_start: bool = False,
    shuffle_partitions: int | None = None,
    driver_memory: str | None = None,
) -> SparkSession.Builder:
    """Set the options that Lance staging requires on a session builder.

    Workers run the interpreter of this process with this package. Sets the environment variables `PYSPARK_PYTHON`,
    `PYSPARK_DRIVER_PYTHON`, `PYTHONPATH` and `SPARK_LOCAL_IP` of this process if they are not set.

    Args:
        builder: Builder of the session.
        loopback: Whether the driver binds to 127.0.0.1. For masters on this machine; not for a cluster of several.
        ui: Whether Spark serves its web page and shows progress bars.
        quick_start: Whether Java compiles with its first tier only and collects garbage in one thread. This halves the
            processor time of the first minutes and is slower after that.
        shuffle_partitions: Number of partitions of a shuffle, and default parallelism.
        driver_memory: Heap size of the driver, such as `2g`.

    Returns:
        The builder.
    """
    choose_python()
    for name, value in WORKER_OPTIONS.items():
        builder = builder.config(name, value)
    builder = builder.config("spark.ui.enabled", str(ui).lower())
    builder = builder.config("spark.ui.showConsoleProgress", str(ui).lower())
    if quick_start:
        builder = builder.config("spark.driver.extraJavaOptions", _QUICK_START)
    if loopback:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    if shuffle_partitions is not None:
        builder = builder.config("spark.sql.shuffle.partitions", str(shuffle_partitions))
        builder = builder.config("spark.default.parallelism", str(shuffle_partitions))
    if driver_memory is not None:
        builder = builder.config("spark.driver.memory", driver_memory)
    return builder


def start(builder: SparkSession.Builder, *, log_level: str = "WARN") -> SparkSession:
    """Start the session, or get the active one.

    Starting Java forks this process and replaces the copy at once, which does not harm Lance. Its warning about forks
    is suppressed here only.

    Args:
        builder: Builder of the session.
        log_level: Log level of Spark. Not for Spark Connect, whose server has one of its own.

    Returns:
        The session.

    Raises:
        InvalidWrite: The session is one of Spark Connect with a catalog of `session`, and its server was started
            without the options of `shared_options`.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="lance is not fork-safe", category=UserWarning)
        session: SparkSession = builder.getOrCreate()
    if is_connect(session):
        try:
            check_connect_server(session)
        except InvalidWrite:
            session.stop()
            raise
    else:
        session.sparkContext.setLogLevel(log_level)
    return session


def is_connect(session: SparkSession) -> bool:
    """Whether the session is one of Spark Connect: a client without a JVM."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def option_of(builder: SparkSession.Builder, name: str) -> str | None:
    """An option that was set on a builder."""
    found = builder._options.get(name)  # noqa: SLF001 - a builder has no public reader
    return None if found is None else str(found)


def choose_python(worker_python: str | None = None) -> None:
    """Choose the interpreter of the workers, by default the one that is set, else that of this process."""
    if worker_python is not None:
        os.environ["PYSPARK_PYTHON"] = worker_python
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    _add_to_worker_path()


def _add_to_worker_path() -> None:
    """Add this package to the path of the workers, since staging functions are pickled by reference."""
    home = str(Path(__file__).resolve().parent.parent)
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if home not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([*filter(None, paths), home])
