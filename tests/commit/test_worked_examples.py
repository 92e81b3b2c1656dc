"""The three conflict examples of the transaction specification, with real files and both orders of the engines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import lance
import pyarrow as pa
import pytest

from lance_core.commit.loop import commit_transaction
from lance_core.errors import IncompatibleTransaction, RetryableTransaction
from lance_core.transaction.operations import Operation, ReserveFragments, Restore, encode_transaction
from tests.transaction.tables import SCHEMA, Table, borrow, delete_rows, make_table, merge_rows, rows


class Retryable(Exception):
    """The engine says: do it again."""


class Incompatible(Exception):
    """The engine says: doing it again does not help."""


class Writer(Protocol):
    """A writer that read the table and has not yet committed."""

    def __init__(self, table: Table) -> None: ...
    def delete(self, predicate: str) -> Callable[[], None]: ...
    def update(self, new: pa.Table) -> Callable[[], None]: ...
    def compact(self, target_rows: int) -> Callable[[], None]: ...
    def restore(self, version: int) -> Callable[[], None]: ...


class Ours:
    """Each call makes a transaction on what was read; what it returns commits it."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.dataset = table.open()

    def commit(self, operation: Operation) -> None:
        transaction = encode_transaction(operation, read_version=self.dataset.version)
        try:
            commit_transaction(self.table.store, "t", transaction)
        except RetryableTransaction as error:
            raise Retryable(error.reason) from error
        except IncompatibleTransaction as error:
            raise Incompatible(error.reason) from error

    def delete(self, predicate: str) -> Callable[[], None]:
        operation = delete_rows(self.dataset, predicate)
        return lambda: self.commit(operation)

    def update(self, new: pa.Table) -> Callable[[], None]:
        operation = merge_rows(self.dataset, new)
        return lambda: self.commit(operation)

    def compact(self, target_rows: int) -> Callable[[], None]:
        operation = borrow(self.table, lambda dataset: _compact(dataset, target_rows))

        def run() -> None:
            self.commit(ReserveFragments(1))
            self.commit(operation)

        return run

    def restore(self, version: int) -> Callable[[], None]:
        return lambda: self.commit(Restore(version))


class Stock:
    """Stock pylance on the handle that it opened before."""

    def __init__(self, table: Table) -> None:
        self.dataset = table.open()

    def commit(self, action: Callable[[], object]) -> None:
        try:
            action()
        except OSError as error:
            if "Too many concurrent writers" in str(error):
                raise Retryable(str(error)) from error
            raise Incompatible(str(error)) from error

    def delete(self, predicate: str) -> Callable[[], None]:
        return lambda: self.commit(lambda: self.dataset.delete(predicate, conflict_retries=0))

    def update(self, new: pa.Table) -> Callable[[], None]:
        merge = self.dataset.merge_insert("id").when_matched_update_all().conflict_retries(0)
        return lambda: self.commit(lambda: merge.execute(new))

    def compact(self, target_rows: int) -> Callable[[], None]:
        return lambda: self.commit(lambda: _compact(self.dataset, target_rows))

    def restore(self, version: int) -> Callable[[], None]:
        table = lance.dataset(self.dataset.uri, version=version)
        return lambda: self.commit(table.restore)


def _compact(dataset: lance.LanceDataset, target_rows: int) -> None:
    dataset.optimize.compact_files(target_rows_per_fragment=target_rows)


ORDERS: dict[str, tuple[type[Writer], type[Writer]]] = {
    "ours over pylance's": (Stock, Ours),
    "pylance's over ours": (Ours, Stock),
    "ours over ours": (Ours, Ours),
}


@pytest.fixture(params=ORDERS)
def writers(request: pytest.FixtureRequest) -> tuple[type[Writer], type[Writer]]:
    return ORDERS[request.param]


def test_the_rebasable_example(tmp_path: Path, writers: tuple[type[Writer], type[Writer]]) -> None:
    """Two deletes of other rows of one fragment: the second merges the deletion vectors."""
    table = make_table(tmp_path, (0, 1000))
    table.open().update_config({"made": "version 2"})
    first, second = (writer(table) for writer in writers)
    delete_a, delete_b = first.delete("id >= 100 and id < 200"), second.delete("id >= 500 and id < 600")

    delete_a()
    assert table.open().version == 3
    delete_b()

    dataset = table.open()
    dataset.validate()
    assert dataset.version == 4
    assert table.ids(3) == [i for i in range(1000) if not 100 <= i < 200]
    assert table.ids() == [i for i in range(1000) if not (100 <= i < 200 or 500 <= i < 600)]
    (fragment,) = table.head().manifest.fragments
    assert fragment.deletion_file.num_deleted_rows == 200


def test_the_retryable_example(tmp_path: Path, writers: tuple[type[Writer], type[Writer]]) -> None:
    """An update of a fragment that was compacted away: done again on the newer version, it succeeds."""
    sizes = [100, 10, 10, 10, 10, 10, 100]
    bounds = [(sum(sizes[:place]), sum(sizes[: place + 1])) for place in range(7)]
    table = make_table(tmp_path, *bounds)
    changed = pa.table([pa.array([121, 125], pa.int64()), [-1.0, -2.0], ["new", "new"]], schema=SCHEMA)
    first, second = (writer(table) for writer in writers)
    compact, update = first.compact(50), second.update(changed)

    compact()
    compacted = table.open()
    assert [fragment.fragment_id for fragment in compacted.get_fragments()] == [0, 6, 7]
    with pytest.raises(Retryable):
        update()
    assert table.open().version == compacted.version

    writers[1](table).update(changed)()

    dataset = table.open()
    dataset.validate()
    assert dataset.version == compacted.version + 1
    expected = {row["id"]: row["x"] for row in rows(0, 250).to_pylist()} | {121: -1.0, 125: -2.0}
    assert {row["id"]: row["x"] for row in dataset.to_table().to_pylist()} == expected
    assert dataset.count_rows() == 250


def test_the_incompatible_example(tmp_path: Path, writers: tuple[type[Writer], type[Writer]]) -> None:
    """A delete of rows that a restore has taken away: done again it would be about other rows."""
    table = make_table(tmp_path, (0, 10), (10, 20), (20, 30))
    first, second = (writer(table) for writer in writers)
    restore, delete = first.restore(1), second.delete("id >= 10 and id < 25")

    restore()
    assert table.open().version == 4
    with pytest.raises(Incompatible, match=r"ncompatible|it replaced the table \(restore\)"):
        delete()

    dataset = table.open()
    dataset.validate()
    assert dataset.version == 4
    assert table.ids() == list(range(10))
    assert table.ids(3) == list(range(30))
