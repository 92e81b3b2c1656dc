"""Settings without which Spark and Lance do not meet."""

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
    """Set what Lance staging needs on a session builder, and return it.

    Workers run this interpreter with this package (they would start the first `python3` of the PATH otherwise). Time
    stamps travel in UTC, so that what a reader gets does not depend on the machine's time zone. Sets `PYSPARK_PYTHON`,
    `PYTHONPATH` and `SPARK_LOCAL_IP` of this process where they are not set.

    `loopback` binds the driver to 127.0.0.1, for `local[*]` masters; leave it out on a cluster. `ui` switches the web
    page and the console progress bar. With `quick_start` Java compiles lightly and collects garbage in one thread: half
    the processor time in the first minutes, slower after that.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    _let_workers_import_us()
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
    """Start the session, or get the one that runs.

    Starting Java forks this process and replaces the copy at once, which is no harm to Lance; its warning about forks
    is held back here and only here.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="lance is not fork-safe", category=UserWarning)
        session: SparkSession = builder.getOrCreate()
    session.sparkContext.setLogLevel(log_level)
    return session


def _let_workers_import_us() -> None:
    """Staging functions are pickled by reference, so a worker has to find this package where the driver did."""
    home = str(Path(__file__).resolve().parent.parent)
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if home not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([*filter(None, paths), home])
