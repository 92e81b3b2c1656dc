"""Many concurrent writers, half of them stock pylance, half of them this engine."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import lance
import pytest

from lance_core.commit.loop import commit_transaction
from lance_core.errors import RetryableTransaction
from lance_core.transaction.lineage import lineage_break
from lance_core.transaction.operations import Append, encode_transaction
from tests.transaction.tables import Table, delete_rows, make_table, rows

pytestmark = pytest.mark.slow

COMMITS = 25


def pylance_appends(table: Table, writer: int) -> None:
    for number in range(COMMITS):
        lance.write_dataset(rows(*span(writer, number)), table.uri, mode="append")


def our_appends(table: Table, writer: int) -> None:
    for number in range(COMMITS):
        read_version = table.open().version
        operation = Append(table.stage(rows(*span(writer, number))))
        transaction = encode_transaction(operation, read_version=read_version)
        commit_transaction(table.store, "t", transaction, max_retries=200)


def span(writer: int, number: int) -> tuple[int, int]:
    start = 1000 * (writer + 1) + 2 * number
    return start, start + 2


def run(table: Table, writers: list[Callable[[Table, int], None]]) -> None:
    failures: list[BaseException] = []

    def guard(writer: Callable[[Table, int], None], number: int) -> None:
        try:
            writer(table, number)
        except BaseException as error:  # noqa: BLE001 - reported below, in the thread that can fail the test
            failures.append(error)

    threads = [threading.Thread(target=guard, args=item[::-1]) for item in enumerate(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def check_chain(table: Table, versions: int) -> None:
    chain = table.manifests()
    assert list(chain) == list(range(1, versions + 1))
    for number in range(2, versions + 1):
        assert lineage_break(chain[number - 1], chain[number]) is None
        assert chain[number].timestamp_ns > chain[number - 1].timestamp_ns
    uuids = [file.identity.transaction_uuid for file in chain.values()]
    assert len(set(uuids)) == versions


@pytest.mark.parametrize("stable_row_ids", [False, True])
def test_no_row_is_lost_and_no_version_is_skipped(tmp_path: Path, stable_row_ids: bool) -> None:
    table = make_table(tmp_path, (0, 10), stable_row_ids=stable_row_ids)
    run(table, [pylance_appends, our_appends, pylance_appends, our_appends])
    table.open().validate()
    written = [i for writer in range(4) for number in range(COMMITS) for i in range(*span(writer, number))]
    assert table.ids() == sorted([*range(10), *written])
    check_chain(table, 1 + 4 * COMMITS)
    if stable_row_ids:
        identifiers = table.open().to_table(columns=["_rowid"]).column(0).to_pylist()
        assert sorted(identifiers) == list(range(10 + 8 * COMMITS))


def pylance_deletes(table: Table, writer: int) -> None:
    for row in range(writer, 4 * COMMITS, 4):
        table.open().delete(f"id = {row}")


def our_deletes(table: Table, writer: int) -> None:
    for row in range(writer, 4 * COMMITS, 4):
        while True:
            dataset = table.open()
            transaction = encode_transaction(delete_rows(dataset, f"id = {row}"), read_version=dataset.version)
            try:
                commit_transaction(table.store, "t", transaction, max_retries=200)
            except RetryableTransaction:
                continue
            break


def test_concurrent_deletes_in_one_fragment_are_all_applied(tmp_path: Path) -> None:
    table = make_table(tmp_path, (0, 4 * COMMITS + 10))
    run(table, [pylance_deletes, our_deletes, pylance_deletes, our_deletes])
    table.open().validate()
    assert table.ids() == list(range(4 * COMMITS, 4 * COMMITS + 10))
    check_chain(table, 1 + 4 * COMMITS)
