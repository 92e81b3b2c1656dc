"""A process that commits to a table concurrently with others; started by `test_race_of_processes.py`.

Its argument is a JSON object. It prints `ready` when its data files are written, waits for a line on standard input,
and then prints the version and the row of every commit.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from typing import Any

import lance
import pyarrow as pa
from lance.commit import CommitConflictError
from lance.fragment import write_fragments

from lance_core.commit.loop import commit_transaction
from lance_core.data import fragment_message
from lance_core.errors import RetryableConflict
from lance_core.storage.opening import open_store
from lance_core.transaction.operations import Append, encode_transaction

PATIENCE = 800.0


def main(uri: str, engine: str, first: int, commits: int, options: Mapping[str, str] | None) -> None:
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
    print("ready", flush=True)
    sys.stdin.readline()
    made: list[tuple[int, int]] = []
    until = time.monotonic() + PATIENCE
    for place, fragment in enumerate(fragments):
        while (found := commit(fragment, version)) is None:
            assert time.monotonic() < until, f"{len(made)} commits in {PATIENCE} s"
        version = found
        made.append((version, first + place))
    print(json.dumps(made), flush=True)


class Ours:
    def __init__(self, uri: str, options: Mapping[str, str] | None) -> None:
        self.store = open_store(uri, options)

    def __call__(self, fragment: Any, version: int) -> int | None:
        transaction = encode_transaction(Append((fragment_message(fragment),)), read_version=version)
        try:
            return commit_transaction(self.store, "", transaction).version
        except RetryableConflict as error:
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


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
