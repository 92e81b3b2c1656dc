"""Drivers of a streaming query that die by SIGKILL at a chosen call to the server, to storage or to Spark.

Everything is imported once; each line on standard input is a driver to fork, a JSON object:

gateway     null for a JVM of its own, or port and secret of a JVM that runs a session already
server      URL of the catalog server
namespace   namespace of the tables
log         file that names each call before it is made, and gets standard output
kill        [call, whether after it]; a call is a number, or the name of its kind, from epoch `armed` on
armed       epoch from which calls are counted
epochs      with a gateway: rows of the epochs to run, by number
source      without a gateway: directory of files, one for each epoch
checkpoint  without a gateway: the checkpoint

On standard output: `ended <status>`, as `waitpid` has it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from lance.file import LanceFileSession
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from lance_core.storage.port import ObjectStore
from lance_core.storage.wrappers.delegation import WrappedStore
from namespace_client.http import HttpBackend
from spark_catalog.graph_writes.graph_write import GraphWrite
from spark_catalog.spark_session import configure, start
from spark_catalog.streaming.stream_writer import StreamWriter
from spark_catalog.tables.pinned import PinnedTable
from table_data import table_changes

R = TypeVar("R")


class Death:
    """Counts the calls of the driver's main work, and ends the process at one of them."""

    def __init__(self, log: int, kill: tuple[int | str, bool]) -> None:
        self._log = log
        self._at, self._after = kill
        self._made = 0
        self._lock = threading.RLock()
        self.armed = False

    def call(self, kind: str, request: Callable[[], R]) -> R:
        if not self.armed:
            return request()
        with self._lock:
            number, self._made = self._made, self._made + 1
            os.write(self._log, f"{number} {kind}\n".encode())
        chosen = self._at in (number, kind)
        if chosen and not self._after:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            return request()
        finally:
            if chosen:
                os.kill(os.getpid(), signal.SIGKILL)

    def watch(self, owner: Any, name: str, kind: str = "") -> None:
        """Count the calls of a function. The kind is that of its first argument if none is given."""
        original = getattr(owner, name)

        def watched(*arguments: Any, **options: Any) -> Any:
            return self.call(kind or str(arguments[1]), lambda: original(*arguments, **options))

        setattr(owner, name, watched)


class WatchedStore(WrappedStore):
    def __init__(self, inner: ObjectStore, death: Death) -> None:
        super().__init__(inner)
        self._death = death

    def _call(self, verb: str, path: str, request: Callable[[], R]) -> R:
        return self._death.call(verb, request)


def load(tx: GraphWrite, rows: DataFrame, epoch: int) -> None:
    """The rows to one table, and one row of another that is changed in every epoch."""
    tx.append("person", rows)
    tx.upsert("last", rows.sparkSession.createDataFrame([(0, str(epoch))], "id long, name string"), on="id")


def drive(order: dict[str, Any], log: int) -> None:
    """Be a driver, until its end or its death."""
    death = Death(log, tuple(order["kill"]))
    opened = table_changes.open_store
    table_changes.open_store = lambda *given, **options: WatchedStore(opened(*given, **options), death)  # type: ignore[assignment]
    death.watch(HttpBackend, "ask")
    death.watch(HttpBackend, "send")
    death.watch(PinnedTable, "open", "open")
    death.watch(LanceFileSession, "delete_file", "discard")
    for job in ("collect", "toArrow"):
        death.watch(ClassicDataFrame, job, "job")

    def watched(tx: GraphWrite, rows: DataFrame, epoch: int) -> None:
        death.call("function", lambda: load(tx, rows, epoch))

    run = StreamWriter(order["server"], namespace=order["namespace"], query="q").batch(watched)

    def epoch(rows: DataFrame, number: int) -> None:
        death.armed = number >= order["armed"]
        death.call("epoch", lambda: run(rows, number))

    if order["gateway"] is not None:
        session = attach(*order["gateway"])
        for number, rows in order["epochs"].items():
            epoch(session.createDataFrame(rows, "id long, name string").coalesce(1), int(number))
    else:
        builder = SparkSession.builder.master("local[2]")
        builder = configure(builder, shuffle_partitions=2, driver_memory="512m", quick_start=True)
        session = start(builder, log_level="OFF")
        reader = session.readStream.schema("id long, name string").option("maxFilesPerTrigger", 1)
        query = reader.json(order["source"]).writeStream.foreachBatch(epoch)
        query.option("checkpointLocation", order["checkpoint"]).trigger(availableNow=True).start().awaitTermination()


def attach(port: int, secret: str) -> SparkSession:
    """The session of a JVM that another process started."""
    os.environ |= {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    gateway = launch_gateway()
    running = gateway.jvm.org.apache.spark.sql.SparkSession.getDefaultSession().get()
    context = gateway.jvm.JavaSparkContext(running.sparkContext())
    sc = SparkContext(gateway=gateway, jsc=context, conf=SparkConf(_jconf=context.getConf()))
    return SparkSession(sc, running)


def main() -> None:
    """Fork drivers, one after another, until standard input ends."""
    warnings.filterwarnings("ignore", "lance is not fork-safe")  # it is until its first use, which is in the child
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(log, 1)
            os.dup2(log, 2)
            os.close(0)
            try:
                drive(order, log)
            except BaseException:  # noqa: BLE001 - this process must not go on as the parent does
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print("ended", os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
