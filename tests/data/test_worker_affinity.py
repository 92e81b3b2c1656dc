"""A read goes to a free worker that has the table open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from namespace_server.data.workers import WorkerPool
from table_data.batch_operations import TableState
from table_data.jobs import Job

COUNT = Job("count_table_rows", {})


@pytest.fixture
def pool() -> Iterator[WorkerPool]:
    found = WorkerPool(2)
    yield found
    found.close()


def table(directory: Path, name: str, rows: int) -> TableState:
    uri = str(directory / name)
    lance.write_dataset(pa.table({"a": list(range(rows))}), uri)
    return TableState((name,), uri, 1)


def worker_of(pool: WorkerPool, wanted: TableState) -> object:
    with pool._worker(wanted.uri) as worker:
        return worker


def test_of_two_workers_each_keeps_its_table(pool: WorkerPool, tmp_path: Path) -> None:
    one, other = table(tmp_path, "one", 1), table(tmp_path, "other", 2)
    with ExitStack() as both_busy:  # so that each table is opened by another worker
        first = both_busy.enter_context(pool._worker(one.uri))
        second = both_busy.enter_context(pool._worker(other.uri))
    assert first is not second
    for _ in range(3):
        assert (pool.value(COUNT, one), pool.value(COUNT, other)) == (1, 2)
        assert (worker_of(pool, one), worker_of(pool, other)) == (first, second)


def test_a_busy_worker_is_not_waited_for(pool: WorkerPool, tmp_path: Path) -> None:
    one = table(tmp_path, "one", 1)
    with pool._worker(one.uri) as busy:
        assert worker_of(pool, one) is not busy


def test_a_worker_that_ended_has_no_table(pool: WorkerPool, tmp_path: Path) -> None:
    one = table(tmp_path, "one", 1)
    assert pool.value(COUNT, one) == 1
    with pool._worker(one.uri) as worker:
        worker.kill()
    assert pool.value(COUNT, one) == 1
