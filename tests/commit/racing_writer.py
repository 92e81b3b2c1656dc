"""Processes that commit to one table concurrently; started by `test_race_of_processes.py`.

Its argument is a JSON list of orders, one for each process. Everything is imported once, and then forked. The processes
begin to commit when all have written their data files. It prints the version and the row of every commit of each, as
a JSON list.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import time
import warnings
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from threading import Barrier
from typing import Any

import lance
import pyarrow as pa
from lance.commit import CommitConflictError
from lance.fragment import write_fragments

from lance_core.commit.loop import commit_transaction
from lance_core.data import fragment_message
from lance_core.errors import RetryableTransaction
from lance_core.storage.opening import open_store
from lance_core.transaction.operations import Append, encode_transaction

TIMEOUT = 800.0


def commit_rows(
    uri: str, engine: str, first: int, commits: int, options: Mapping[str, str] | None, all_ready: Barrier
) -> list[tuple[int, int]]:
    """The version and the row of each commit of this process."""
    fragments = write_fragments(
        pa.table({"id": pa.array(range(first, first + commits), pa.int64())}),
        uri,
        mode="append",
        max_rows_per_file=1,
        max_rows_per_group=1,
        storage_options=options,
    )
    assert len(fragments) == commits
    version = 1
    commit = Ours(uri, options) if engine == "ours" else Stock(uri, options)
    all_ready.wait(TIMEOUT)
    made: list[tuple[int, int]] = []
    until = time.monotonic() + TIMEOUT
    for place, fragment in enumerate(fragments):
        while (found := commit(fragment, version)) is None:
            assert time.monotonic() < until, f"{len(made)} commits in {TIMEOUT} s"
        version = found
        made.append((version, first + place))
    return made


class Ours:
    def __init__(self, uri: str, options: Mapping[str, str] | None) -> None:
        self.store = open_store(uri, options)

    def __call__(self, fragment: Any, version: int) -> int | None:
        transaction = encode_transaction(Append((fragment_message(fragment),)), read_version=version)
        try:
            return commit_transaction(self.store, "", transaction).version
        except RetryableTransaction as error:
            if "committed first" not in error.reason:  # an append has no other conflict here
                raise
            return None


class Stock:
    def __init__(self, uri: str, options: Mapping[str, str] | None) -> None:
        self.uri, self.options = uri, options

    def __call__(self, fragment: Any, version: int) -> int | None:
        operation = lance.LanceOperation.Append([fragment])
        try:
            done = lance.LanceDataset.commit(
                self.uri, operation, read_version=version, storage_options=self.options, max_retries=20
            )
        except CommitConflictError:  # it lost 20 races in turn; an append has no other conflict here
            return None
        except OSError as error:
            if "oo many concurrent writers" not in str(error) and "etryable" not in str(error):
                raise
            return None
        return int(done.version)


def main(orders: list[dict[str, Any]]) -> None:
    warnings.filterwarnings("ignore", "lance is not fork-safe")  # it is until its first use, which is in the child
    forking = multiprocessing.get_context("fork")
    with forking.Manager() as manager, ProcessPoolExecutor(len(orders), forking) as pool:
        all_ready = manager.Barrier(len(orders))
        running = [pool.submit(commit_rows, **order, all_ready=all_ready) for order in orders]
        print(json.dumps([writer.result() for writer in running]), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
