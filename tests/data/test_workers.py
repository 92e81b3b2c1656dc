"""The pool of worker processes for changes: lost, killed and late ones."""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from namespace_server.data.workers import WorkerPool, WorkTimeout
from table_data.batch_operations import TableState
from table_data.errors import ColumnNotFound, InvalidCall, WorkFailed
from table_data.frames import END, frame_head
from table_data.jobs import Job
from table_data.pipes import PipeEnd, open_pipe

pytestmark = pytest.mark.slow
NOTHING = Job("delete_from_table", {"predicate": "a > 100"})


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> TableState:
    uri = str(tmp_path_factory.mktemp("tables") / "t.lance")
    lance.write_dataset(pa.table({"a": range(10)}), uri)
    return TableState(("t",), uri, 1)


@pytest.fixture
def pool() -> Iterator[WorkerPool]:
    pool = WorkerPool(1, timeout=60)
    yield pool
    pool.close()


def works(pool: WorkerPool, table: TableState) -> bool:
    """Whether a change is staged, which finds nothing to change."""
    with pool.change(NOTHING) as change:
        return change.stage(table).operations == ()


def process_of(pool: WorkerPool) -> int:
    [worker] = pool._started
    return worker._process.pid


def test_one_worker_does_one_job_after_another(pool: WorkerPool, table: TableState) -> None:
    assert works(pool, table)
    first = process_of(pool)
    assert works(pool, table)
    assert process_of(pool) == first


def test_an_error_of_a_job_keeps_its_worker(pool: WorkerPool, table: TableState) -> None:
    wrong = Job("delete_from_table", {"predicate": "nope = 1"})
    with pytest.raises(ColumnNotFound, match="No field named nope"), pool.change(wrong) as change:
        change.stage(table)
    first = process_of(pool)
    assert works(pool, table)
    assert process_of(pool) == first


def test_a_worker_that_ended_while_idle_is_replaced(pool: WorkerPool, table: TableState) -> None:
    assert works(pool, table)
    first = process_of(pool)
    os.kill(first, signal.SIGKILL)
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
    assert works(pool, table)
    assert process_of(pool) != first


def test_a_worker_that_ends_in_its_job_is_told_and_replaced(pool: WorkerPool, table: TableState) -> None:
    assert works(pool, table)
    with pool.change(Job("insert_into_table", {})) as change:
        os.kill(process_of(pool), signal.SIGKILL)
        with pytest.raises(WorkFailed, match="found its end"):
            change.stage(table)
    assert works(pool, table)


def test_a_job_that_takes_too_long_ends_with_its_worker(pool: WorkerPool, table: TableState) -> None:
    assert works(pool, table)
    first = process_of(pool)
    os.kill(first, signal.SIGSTOP)
    pool._started.pop()._timeout = 0.2
    with pytest.raises(WorkTimeout, match=r"within 0\.2 s"):
        works(pool, table)
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)
    assert works(pool, table)


def test_a_change_that_needs_rows_and_has_none(pool: WorkerPool, table: TableState) -> None:
    with pytest.raises(InvalidCall, match="expected rows"), pool.change(Job("insert_into_table", {})) as change:
        change.stage(table)
    assert works(pool, table)


def rows_of(*values: int) -> PipeEnd:
    """A pipe with rows of the table, to its end."""
    rows = pa.table({"a": values})
    body = io.BytesIO()
    with pa.ipc.new_stream(body, rows.schema) as writer:
        writer.write_table(rows)
    source, sink = open_pipe()
    with sink:
        sink.write(frame_head(len(body.getvalue())) + body.getvalue() + END)
    return source


def data_files(table: TableState) -> set[str]:
    return {path.name for path in (Path(table.uri) / "data").iterdir()}


class TestAppends:
    """A change that only appends leaves its worker to others while it is committed."""

    INSERT = Job("insert_into_table", {"mode": "append"})

    def test_others_are_staged_before_it_ends(self, pool: WorkerPool, table: TableState) -> None:
        with pool.change(self.INSERT, rows_of(1, 2)) as first, pool.change(self.INSERT, rows_of(3)) as second:
            assert first.stage(table).result == {"num_inserted_rows": 2}
            assert second.stage(table).result == {"num_inserted_rows": 1}
            assert works(pool, table)

    def test_it_can_be_staged_again_and_discarded(self, pool: WorkerPool, table: TableState) -> None:
        before = data_files(table)
        with pool.change(self.INSERT, rows_of(1, 2)) as first, pool.change(self.INSERT, rows_of(3)) as second:
            one = first.stage(table)
            kept = data_files(table) - before
            second.stage(table)
            second.discard()
            assert data_files(table) - before == kept
            first.discard()
            again = first.stage(table)
            assert again.result == one.result == {"num_inserted_rows": 2}
            assert again.operations != one.operations
            first.discard()
        assert data_files(table) == before

    def test_the_worker_forgets_it_at_its_end(self, pool: WorkerPool, table: TableState) -> None:
        with pool.change(self.INSERT, rows_of(1)) as first:
            first.stage(table)
            with pool.change(self.INSERT, rows_of(2)) as second:
                second.stage(table)
        [worker] = pool._started
        assert not worker.ended
        worker.send(("stage", 1, table))
        with pytest.raises(WorkFailed, match="KeyError"):
            worker.answer()

    def test_it_cannot_be_staged_again_by_another_process(self, pool: WorkerPool, table: TableState) -> None:
        with pool.change(self.INSERT, rows_of(1)) as first:
            first.stage(table)
            os.kill(process_of(pool), signal.SIGKILL)
            [worker] = pool._started
            worker.wait()
            with pytest.raises(WorkFailed, match="found its end"):
                first.stage(table)
        assert works(pool, table)

    def test_any_other_change_keeps_its_worker_until_it_ends(self, pool: WorkerPool, table: TableState) -> None:
        with pool.change(Job("delete_from_table", {"predicate": "a = 1"})) as change:
            assert change.stage(table).operations
            assert pool._free == []
            change.discard()
        assert len(pool._free) == 1


def test_a_worker_ends_with_its_parent(table: TableState) -> None:
    pool = WorkerPool(1)
    assert works(pool, table)
    [worker] = pool._started
    worker._connection.close()
    worker.wait()


def test_a_closed_pool_has_no_processes(pool: WorkerPool, table: TableState) -> None:
    assert works(pool, table)
    process = process_of(pool)
    pool.close()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
