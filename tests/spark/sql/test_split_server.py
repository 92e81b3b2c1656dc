"""The Python process of an executor: what tasks get from it, how it fails, and what memory readers hold."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_catalog.tables.pinned import PinnedTable, committed_ms
from spark_catalog.tables.reading import read_split
from spark_catalog.tables.scans import Scan
from spark_catalog.tables.split_server import SplitRead, SplitServer, encode_split
from spark_catalog.tables.splits import Piece, Split

ROWS = 1000
WHOLE = Split((Piece(0), Piece(1)), ROWS, 0)
SCHEMA = pa.schema([("id", pa.int64())])


@pytest.fixture
def server() -> Iterator[SplitServer]:
    found = SplitServer()
    found.start()
    yield found
    found.close()


@pytest.fixture
def table(tmp_path: Path) -> PinnedTable:
    """A table of two fragments."""
    path = str(tmp_path / "numbers")
    rows = pa.table({"id": pa.array(range(ROWS), pa.int64())})
    dataset = lance.write_dataset(rows, path, max_rows_per_file=ROWS // 2)
    return PinnedTable(path, 1, committed_ms=committed_ms(dataset))


def ask(server: SplitServer, read: SplitRead, split: Split) -> tuple[pa.Table, Any]:
    """The rows and the status of a split."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(server.path)
        connection.sendall(f"{read.encode()}\n{encode_split(split)}\n".encode())
        with connection.makefile("rb") as answer:
            return pa.ipc.open_stream(answer).read_all(), json.loads(answer.readline())


def test_columns_of_few_rows_that_a_filter_finds_are_read_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, rows = str(tmp_path / "wide"), 200_000
    numbers = np.random.default_rng(7).integers(0, 2**62, (8, rows))
    columns = {"id": np.arange(rows), "half": np.arange(rows) % 2} | {f"c{place}": numbers[place] for place in range(8)}
    dataset = lance.write_dataset(pa.table(columns), path)
    table = PinnedTable(path, 1, committed_ms=committed_ms(dataset))

    def read(where: str, limit: int | None = None) -> tuple[int, int]:
        """Rows and bytes of a read."""
        table.opened().io_stats_incremental()
        scan = Scan(tuple(columns), where, limit)
        found = list(read_split(table, scan, Split((Piece(0),), rows, 0), dataset.schema))
        assert all(batch.schema == dataset.schema for batch in found)
        stats = table.opened().io_stats_incremental()
        return sum(batch.num_rows for batch in found), stats.read_bytes

    _, scanned = read("(id >= 77) AND (id <= 77)")
    for where in ("(id = 77)", "(`id` = 77) AND (c0 > -1)"):
        found, sought = read(where)
        assert found == 1
        assert sought * 2 < scanned, (where, sought, scanned)
    assert read("(id = 77)", 1)[0] == 1
    assert read("(id = -1)")[0] == 0
    asked: list[Any] = []
    scanner = type(table.opened()).scanner

    def spy(dataset: lance.LanceDataset, **options: Any) -> lance.LanceScanner:
        asked.append(options.get("late_materialization"))
        return scanner(dataset, **options)

    monkeypatch.setattr(type(table.opened()), "scanner", spy)
    assert read("(half = 1)")[0] == rows // 2
    assert asked == [None, None]  # many rows that lie apart are read with all others


@pytest.mark.parametrize("manifest", [None, b"\0\xff"])
def test_a_read_and_a_split_survive_the_way_to_the_process(manifest: bytes | None) -> None:
    table = PinnedTable("s3://b/t", 7, {"region": "x"}, 1_700_000_000_123, manifest)
    read = SplitRead(table, Scan(("id",), "id > 'é\n'", 5), SCHEMA, counts=True)
    assert "\n" not in read.encode()
    assert SplitRead.decode(read.encode()) == read


def test_rows_and_counts_of_a_split(server: SplitServer, table: PinnedTable) -> None:
    read = SplitRead(table, Scan(("id",)), SCHEMA)
    assert ask(server, read, WHOLE)[0]["id"].to_pylist() == list(range(ROWS))
    assert ask(server, read, Split((Piece(1, 10, 3),), 3, 0))[0]["id"].to_pylist() == [510, 511, 512]
    counts = SplitRead(table, Scan((), "id >= 499"), pa.schema([("n", pa.int64()), ("m", pa.int64())]), counts=True)
    assert ask(server, counts, WHOLE) == (pa.table({"n": [501], "m": [501]}), {})
    assert ask(server, counts, Split((), 0, 0)) == (pa.table({"n": [0], "m": [0]}), {})


def test_a_split_that_fails_says_why(server: SplitServer, table: PinnedTable) -> None:
    rows, status = ask(server, SplitRead(table, Scan(("id",), "none > 1"), SCHEMA), WHOLE)
    assert rows.num_rows == 0
    assert "none" in status["error"]
    gone = SplitRead(PinnedTable(table.uri, 9), Scan(("id",)), SCHEMA)
    assert "version 9" in ask(server, gone, WHOLE)[1]["error"]
    assert table.committed_ms is not None
    other = replace(table, committed_ms=table.committed_ms - 1)
    assert "replaced by another one" in ask(server, SplitRead(other, Scan(("id",)), SCHEMA), WHOLE)[1]["error"]


def test_a_task_that_leaves_ends_its_thread(server: SplitServer, tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"id": range(3_000_000)}), tmp_path / "many")
    before = threading.active_count()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(server.path)
        read = SplitRead(PinnedTable(str(tmp_path / "many"), 1), Scan(("id",)), SCHEMA)
        connection.sendall(f"{read.encode()}\n{encode_split(Split((Piece(0),), 3_000_000, 0))}\n".encode())
        connection.recv(1)
        assert threading.active_count() > before
    deadline = time.monotonic() + 30
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() == before


def held(spark: SparkSession) -> int:
    """Bytes of Arrow memory that readers hold."""
    return int(spark._jvm.org.lancenamespace.spark.SplitReader.allocatedBytes())


def cancel_when_rows_are_held(spark: SparkSession, group: str) -> None:
    deadline = time.monotonic() + 60
    while not held(spark) and time.monotonic() < deadline:
        time.sleep(0.05)
    try:
        assert held(spark) > 0
    finally:
        spark.sparkContext.cancelJobGroup(group)


def processes() -> list[int]:
    """Ids of the processes of this machine that serve splits to children of this one."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            arguments = (entry / "cmdline").read_bytes().split(b"\0")
            parent = (entry / "stat").read_text().rpartition(") ")[2].split()[1]
            grandparent = Path(f"/proc/{parent}/stat").read_text().rpartition(") ")[2].split()[1]
        except (OSError, IndexError):
            continue
        if b"spark_catalog.tables.split_server" in arguments and int(grandparent) == os.getpid():
            found.append(int(entry.name))
    return found


def test_readers_free_their_memory(sql: SparkSession, ns: str) -> None:
    """After rows, limits, tasks that fail, and a job that is cancelled."""
    sql.sql(f"CREATE TABLE {ns}.t AS SELECT id, string(id) AS s, array(id) AS a, id % 7 = 0 AS b FROM range(400000)")
    assert held(sql) == 0
    rows = sql.table(f"{ns}.t")
    assert rows.selectExpr("sum(id)", "max(s)", "sum(a[0])", "count_if(b)").collect()[0][0] == 79999800000
    for _ in range(5):
        assert len(rows.limit(3).collect()) == 3
        assert rows.where("id = 7").count() == 1
    with pytest.raises(Exception, match="now"):
        rows.selectExpr("if(id = 70000, raise_error('now'), id)").collect()
    sql.sparkContext.setJobGroup("slow", "slow", interruptOnCancel=True)
    cancelled = threading.Thread(target=cancel_when_rows_are_held, args=(sql, "slow"))
    cancelled.start()
    try:
        slow = rows.selectExpr("id", "reflect('java.lang.Thread', 'sleep', 1L)").write.format("noop")
        with pytest.raises(Exception, match="cancelled"):
            slow.mode("overwrite").save()
    finally:
        cancelled.join()
        sql.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    deadline = time.monotonic() + 30
    while held(sql) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert held(sql) == 0


def test_a_process_that_was_killed_is_replaced(sql: SparkSession, ns: str) -> None:
    sql.sql(f"CREATE TABLE {ns}.t AS SELECT id FROM range(10)")
    assert sql.sql(f"SELECT sum(id) FROM {ns}.t").collect() == [(45,)]
    [process] = processes()
    os.kill(process, signal.SIGKILL)
    deadline = time.monotonic() + 30
    while processes() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert sql.sql(f"SELECT sum(id) FROM {ns}.t").collect() == [(45,)]
    [other] = processes()
    assert other != process
