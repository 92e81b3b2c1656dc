"""Three writers of the same tables: daily updates by Spark, counts of views by pylance, likes from a stream."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from namespace_client import Catalog, RetryableConflict
from social_graph.generator import GRAPH, STEADY, TABLES, SocialGraph
from spark_catalog import GraphConflict, GraphWrite, StreamWriter

NAMESPACE = ["social"]
LIKES_OF_AN_EPOCH = 50
_VIEWED = 3
"""Messages of one count of views."""
_PAUSE = 1.0
_SECONDS_OF_AN_EPOCH = 6
_ATTEMPTS = 20


@dataclass(frozen=True)
class Commit:
    """One commit: who made it, when, at which catalog version, how long it took, what stood in its way.

    Attributes:
        writer: "daily update", "views" or "stream".
        at: Seconds since the start.
        version: Catalog version.
        seconds: From the first row read to the answer, without tries that conflicted.
        publish_ms: The batch alone, sent and answered.
        conflicts: Tries that lost against another writer.
        rebased: Tables that were rebased over another writer's version.
    """

    writer: str
    at: float
    version: int
    seconds: float
    publish_ms: float
    conflicts: int
    rebased: int


@dataclass
class Journal:
    """Commits of all writers. Thread-safe."""

    began: float = field(default_factory=time.perf_counter)
    commits: list[Commit] = field(default_factory=list)

    def seconds(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.began

    def of(self, writer: str) -> list[Commit]:
        """The commits of one writer, in order."""
        return [commit for commit in self.commits if commit.writer == writer]


def load(journal: Journal, spark: SparkSession, url: str, graph: SocialGraph) -> Commit:
    """Create all tables in one batch, with every key and both ends of every edge checked."""

    def fill(tx: GraphWrite) -> None:
        for table in TABLES:
            tx.append(table, graph.added(table, 0))

    return _write(journal, spark, url, "day 0", fill, check="full")


def update(journal: Journal, spark: SparkSession, url: str, graph: SocialGraph, day: int) -> Commit:
    """Delete what goes on a day with all edges at it, change homes, add what appears: one batch of all tables."""

    def fill(tx: GraphWrite) -> None:
        tx.delete_nodes("message", graph.gone("message", day))
        tx.delete_nodes("person", graph.gone("person", day))
        tx.upsert("is_located_in", graph.moved(day), on="src")
        for table in TABLES:
            if table not in STEADY:
                tx.append(table, graph.added(table, day))

    return _write(journal, spark, url, f"day {day}", fill)


def _write(
    journal: Journal,
    spark: SparkSession,
    url: str,
    message: str,
    fill: Callable[[GraphWrite], None],
    check: Literal["batch", "full"] = "batch",
) -> Commit:
    """Run a write until no other writer is in its way."""
    for conflicts in range(_ATTEMPTS):
        started = time.perf_counter()
        try:
            with GraphWrite(spark, url, namespace=NAMESPACE, graph=GRAPH, message=message, check=check) as tx:
                fill(tx)
        except GraphConflict:
            if conflicts + 1 == _ATTEMPTS:
                raise
            continue
        result = tx.result
        assert result.catalog_version is not None
        rebased = sum(table.rebased for table in result.tables.values())
        seconds, publish = time.perf_counter() - started, result.milliseconds["publish"]
        commit = Commit("daily update", journal.seconds(), result.catalog_version, seconds, publish, conflicts, rebased)
        journal.commits.append(commit)
        return commit
    raise AssertionError


class ViewCounter:
    """A competing pipeline without Spark: adds one to the views of some messages, again and again."""

    def __init__(self, journal: Journal, url: str, messages: Sequence[int]) -> None:
        self._journal = journal
        self._url = url
        self._messages = messages
        self._over = threading.Event()
        self._error: Exception | None = None
        self.counted = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count in a thread until the block ends. Raises what stopped the thread."""
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()
        if self._error is not None:
            raise self._error

    def viewed(self, number: int) -> list[int]:
        """Ids of the messages of a count."""
        return [self._messages[(number * _VIEWED + place) % len(self._messages)] for place in range(_VIEWED)]

    def _run(self) -> None:
        try:
            with Catalog.connect(self._url, namespace=NAMESPACE) as catalog:
                while not self._over.wait(_PAUSE):
                    self._count(catalog)
        except Exception as error:  # noqa: BLE001 - raised by the thread that waits
            self._error = error

    def _count(self, catalog: Catalog) -> None:
        ids = ", ".join(map(str, self.viewed(self.counted)))
        for conflicts in range(_ATTEMPTS):
            started = time.perf_counter()
            try:
                with catalog.begin(message=f"views {self.counted}") as tx:
                    tx.update("message", {"views": "views + 1"}, where=f"id IN ({ids})")
                    staged = time.perf_counter()
            except RetryableConflict:
                if conflicts + 1 == _ATTEMPTS:
                    raise
                continue
            ended = time.perf_counter()
            version = tx.result.catalog_version
            if version is not None:
                rebased = sum(table.rebased for table in tx.result.tables)
                publish = (ended - staged) * 1000
                self._journal.commits.append(
                    Commit("views", self._journal.seconds(), version, ended - started, publish, conflicts, rebased)
                )
            self.counted += 1
            return


class LikeStream:
    """A streaming query: each micro-batch appends likes in one batch of the catalog, once."""

    def __init__(self, journal: Journal, spark: SparkSession, url: str, likes: DataFrame, checkpoint: Path) -> None:
        self._journal = journal
        self._spark = spark
        self._likes = likes
        self._checkpoint = checkpoint
        self._writer = StreamWriter(url, namespace=NAMESPACE, query="likes", graph=GRAPH, check="none")
        self._busy = threading.Lock()
        self._over = threading.Event()
        self.epochs = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the query until the block ends. A micro-batch in progress is committed."""
        query = self._start()
        try:
            yield
        finally:
            self._over.set()
            with self._busy:
                pass  # waits for the micro-batch in progress; those after it do nothing
            query.stop()  # without the lock: it waits for the last of them, which takes the lock
        error = query.exception()
        if error is not None:
            raise error

    def _start(self) -> StreamingQuery:
        numbers = self._spark.readStream.format("rate-micro-batch").option("rowsPerBatch", LIKES_OF_AN_EPOCH).load()

        @self._writer.batch
        def append(tx: GraphWrite, rows: DataFrame, _epoch: int) -> None:
            new = self._likes.join(rows.select(rows.value.alias("number")), "number").select("src", "dst")
            tx.append("likes", new)
            self._write = tx

        def commit(rows: DataFrame, epoch: int) -> None:
            with self._busy:
                if not self._over.is_set():
                    started = time.perf_counter()
                    append(rows, epoch)
                    self._note(self._write, time.perf_counter() - started)
                    self.epochs = epoch + 1

        stream = numbers.writeStream.foreachBatch(commit).option("checkpointLocation", str(self._checkpoint))
        return stream.trigger(processingTime=f"{_SECONDS_OF_AN_EPOCH} seconds").start()

    def _note(self, write: GraphWrite, seconds: float) -> None:
        result = write.result
        assert result.catalog_version is not None
        rebased = sum(table.rebased for table in result.tables.values())
        publish = result.milliseconds["publish"]
        at = self._journal.seconds()
        self._journal.commits.append(Commit("stream", at, result.catalog_version, seconds, publish, 0, rebased))
