"""Settings of a Spark session that Lance staging requires."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

from pyspark.sql import SparkSession


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

    Workers run the interpreter of this process with this package. Timestamps are passed in UTC, so that they do not
    depend on the time zone of a machine. Sets the environment variables `PYSPARK_PYTHON`, `PYSPARK_DRIVER_PYTHON`,
    `PYTHONPATH` and `SPARK_LOCAL_IP` of this process if they are not set.

    Args:
        builder: Builder of the session.
        loopback: Whether the driver binds to 127.0.0.1. For `local[*]` masters; not for a cluster.
        ui: Whether Spark serves its web page and shows progress bars.
        quick_start: Whether Java compiles with its first tier only and collects garbage in one thread. This halves the
            processor time of the first minutes and is slower after that.
        shuffle_partitions: Number of partitions of a shuffle, and default parallelism.
        driver_memory: Heap size of the driver, such as `2g`.

    Returns:
        The builder.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    add_to_worker_path()
    builder = (
        builder.config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        .config("spark.ui.enabled", str(ui).lower())
        .config("spark.ui.showConsoleProgress", str(ui).lower())
    )
    if quick_start:
        builder = builder.config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
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
        log_level: Log level of Spark.

    Returns:
        The session.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="lance is not fork-safe", category=UserWarning)
        session: SparkSession = builder.getOrCreate()
    session.sparkContext.setLogLevel(log_level)
    return session


def add_to_worker_path() -> None:
    """Add this package to the path of the workers, since staging functions are pickled by reference."""
    home = str(Path(__file__).resolve().parent.parent)
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if home not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([*filter(None, paths), home])
