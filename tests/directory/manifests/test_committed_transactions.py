"""A transaction of an old version is judged by the transactions since, which are in memory or read beside the flips."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from lance_namespace.errors import LanceNamespaceError

from lance_core.format.manifest import build_manifest_file
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.local import LocalStore
from lance_core.storage.memory import MemoryStore
from lance_core.storage.overlap import Overlap
from lance_core.storage.port import Results
from lance_core.storage.wrappers.counting import CountingStore
from lance_core.transaction.operations import encode_transaction
from namespace_server.directory.manifests.committed_transactions import CommittedTransactions
from namespace_server.directory.manifests.manifest_cache import ManifestCache
from namespace_server.directory.manifests.manifest_reader import ManifestReader
from namespace_server.directory.model.entries import VersionEntry
from namespace_server.directory.root_check.speed import REQUESTS_OF_A_BATCH, REQUESTS_PER_TABLE
from tests.directory.tables import QUIET, Ground, as_operation, rows
from tests.storage.bucketlike import BucketLike
from tests.transaction.tables import delete_rows

T = TypeVar("T")
R = TypeVar("R")
A, B = ["g", "a"], ["g", "b"]
VERSIONS = 12
LIMIT = 1 << 20
PATIENCE = 30.0


class Bucket(CountingStore):
    """A directory that is asked as a bucket is. Reads of the path `held` wait for `go`."""

    def __init__(self, root: Path) -> None:
        super().__init__(BucketLike(LocalStore(root, "none")))
        self.overlap = Overlap(16, "bucket")
        self.held: str | None = None
        self.is_held, self.go = threading.Event(), threading.Event()

    def map(self, call: Callable[[T], R], items: Sequence[T]) -> Results[R]:
        return self.overlap.map(call, items)

    def find(self, path: str) -> bytes | None:
        if path == self.held:
            self.is_held.set()
            assert self.go.wait(PATIENCE)
        return super().find(path)


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    """Two tables, of which the first has versions up to `VERSIONS`, each by an append."""
    made = Ground(tmp_path / "root")
    made.make_namespace("g")
    made.make_table(*A)
    made.make_table(*B)
    for number in range(VERSIONS - 1):
        made.batch(made.transaction(A, rows(10 + number, 11 + number)))
    made.catalog.sweep()
    made.catalog.flush_record_housekeeping()
    return made


@pytest.fixture
def bucket(ground: Ground) -> Iterator[Bucket]:
    made = Bucket(ground.root)
    yield made
    made.go.set()
    made.overlap.close()


def test_what_was_judged_once_is_not_read_again_though_manifests_do_not_fit(ground: Ground, bucket: Bucket) -> None:
    server = Ground(ground.root, bucket, replace(QUIET, manifest_cache_bytes=1 << 17))
    old = [ground.transaction(A, rows(n, n + 1), 1) for n in range(100, 104)]
    costs = []
    for operation in old:
        with bucket.measure() as cost:
            server.batch(operation)
        costs.append(cost)
    assert costs[0].by_verb["get"] >= VERSIONS
    assert [cost.requests for cost in costs[1:]] == [REQUESTS_OF_A_BATCH + REQUESTS_PER_TABLE] * 3
    kept = server.catalog.manifests
    assert sum(kept.get(row) is not None for row in server.catalog.snapshot().versions(tuple(A))) < VERSIONS // 2
    assert sorted(ground.ids(A))[-4:] == [100, 101, 102, 103]


def test_nobody_waits_while_transactions_are_read(ground: Ground, bucket: Bucket) -> None:
    """A batch of an old version on one table, with a server that has none of the versions since in memory."""
    server = Ground(ground.root, bucket)
    row = server.catalog.snapshot().version_entry(tuple(A), None, 5)
    assert row is not None
    bucket.held = row.canonical_path
    with ThreadPoolExecutor(2) as pool:
        old = pool.submit(server.batch, ground.transaction(A, rows(100, 101), 1))
        assert bucket.is_held.wait(PATIENCE)
        pool.submit(server.batch, ground.transaction(B, rows(200, 201))).result(PATIENCE)
        assert not old.done()
        bucket.go.set()
        old.result(PATIENCE)
    assert (100 in ground.ids(A), 200 in ground.ids(B)) == (True, True)


@pytest.mark.parametrize("limit", [1, 1 << 24], ids=["nothing kept", "all kept"])
def test_conflicts_are_the_same_whether_transactions_are_kept(ground: Ground, bucket: Bucket, limit: int) -> None:
    """Deletions of other rows of a fragment are merged, of the same row are refused; after appends in between."""
    server = Ground(ground.root, bucket, replace(QUIET, manifest_cache_bytes=1 << 17, transaction_cache_bytes=limit))
    read = ground.head(A)

    def deletion(row: int) -> dict[str, Any]:
        change = delete_rows(ground.open(A), f"id = {row}")
        return as_operation(A, encode_transaction(change, read_version=read))

    one, same, other = deletion(0), deletion(0), deletion(1)
    server.batch(one)
    for number in range(8):
        server.batch(ground.transaction(A, rows(300 + number, 301 + number), read))
    with pytest.raises(LanceNamespaceError, match="retryable"):
        server.batch(same)
    server.batch(other)
    dataset = ground.open(A)
    assert dataset.count_rows("id in (0, 1)") == 0
    assert dataset.count_rows("id in (2, 300, 307)") == 3
    dataset.validate()


def test_as_much_memory_is_counted_as_is_taken() -> None:
    store = MemoryStore()
    manifests = ManifestCache(ManifestReader(store), limit=LIMIT)
    versions = []
    for version in range(1, 5001):
        transaction = pb.Transaction(uuid=f"{version:032x}", read_version=1, append=pb.Transaction.Append())
        transaction.append.fragments.add(id=0, physical_rows=10).files.add(path=f"{version}.lance", fields=[0, 1])
        data, file = build_manifest_file(pb.Manifest(version=version), transaction)
        entry = VersionEntry(("t",), None, version, "t", len(data), file.identity.sha256, transaction.uuid, 0)
        versions.append((entry, file))
    kept = CommittedTransactions(manifests, limit=LIMIT)
    tracemalloc.start()
    try:
        for entry, file in versions:
            kept.keep(entry, file)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert LIMIT // 2 < taken < LIMIT * 1.1
    assert LIMIT * 0.9 < kept.state.size <= LIMIT
    newest, oldest = versions[-1][0], versions[0][0]
    assert not list(kept.reads([newest]))
    assert len(list(kept.reads([oldest]))) == 1
    assert kept.version(newest).transaction == versions[-1][1].transaction
