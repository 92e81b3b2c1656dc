"""The same on an object store, where a move is a copy and a removal: held inside of it as well."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pytest

from lance_core.storage.opening import open_store
from lance_core.storage.port import ObjectStore
from namespace_server.directory.catalog import StoredCatalog
from namespace_server.directory.manifests.promoter import is_row
from namespace_server.directory.namespace import DirectoryNamespace
from tests.directory.tables import QUIET, Ground, rows
from tests.directory.taken_names import TABLE, append_above, take_name
from tests.emulators import Emulator
from tests.storage.faults import Crashed, Fault, FaultStore

pytestmark = pytest.mark.slow


class OpenMoves(FaultStore):
    """Its moves are made of single calls, so that a process can be held between them."""

    rename_if_absent = ObjectStore.rename_if_absent


class Bucket:
    """A catalog below a prefix of a bucket."""

    def __init__(self, emulator: Emulator) -> None:
        self.uri = emulator.new_root()
        self.options = emulator.storage_options
        self.stores: list[ObjectStore] = []

    def store(self) -> ObjectStore:
        if not self.stores or self.stores[-1].uri != self.uri:
            self.stores.append(open_store(self.uri, self.options))
        return self.stores[-1]

    def process(self, store: ObjectStore | None = None) -> DirectoryNamespace:
        return DirectoryNamespace(catalog=StoredCatalog(store or self.store(), QUIET))

    def upload(self, root: Path) -> None:
        store = self.store()
        for path in root.rglob("*"):
            if path.is_file():
                store.put(str(path.relative_to(root)), path.read_bytes())

    def open(self, key: str) -> lance.LanceDataset:
        return lance.dataset(f"{self.uri}/{key}", storage_options=self.options)


@pytest.fixture
def bucket(moto_server: Emulator) -> Iterator[Bucket]:
    made = Bucket(moto_server)
    yield made
    for store in made.stores:
        store.close()


def make_namespace(process: DirectoryNamespace, name: str) -> None:
    process.write("create_namespace", {"id": [name]})


def batch(process: DirectoryNamespace, *operations: dict[str, Any], key: str | None = None) -> dict[str, Any]:
    return process.commit_batch({"operations": list(operations)}, idempotency_key=key)


@pytest.mark.parametrize("when", ["before its look", "at its flip"])
def test_a_flip_in_a_slot_that_a_stock_clean_up_made_free_is_not_acknowledged(bucket: Bucket, when: str) -> None:
    ahead = bucket.process()
    make_namespace(ahead, "first")
    store = FaultStore(bucket.store())
    behind = bucket.process(store)
    behind.catalog.snapshot()

    def work() -> None:
        for number in range(10):
            make_namespace(ahead, f"a{number}")
        bucket.open("__manifest").cleanup_old_versions(older_than=timedelta(0))

    def arrive(verb: str, path: str) -> None:
        if verb == "put_if_absent" and path.startswith("__manifest/_versions/"):
            go_on()
            work()

    if when == "at its flip":
        go_on = store.before(arrive)
    else:
        work()
    declare = {"declare_table": {"id": ["from_b"]}}
    answer = batch(behind, declare, key="k")

    expected = {"first", *(f"a{number}" for number in range(10))}
    for process in (ahead, behind, bucket.process()):
        snapshot = process.catalog.snapshot()
        assert set(snapshot.child_namespaces(())) == expected
        assert snapshot.table(("from_b",)) is not None
    assert batch(ahead, declare, key="k")["transaction_id"] == answer["transaction_id"]


@pytest.mark.parametrize("die", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_repair_held_within_its_moves_loses_no_committed_manifest(bucket: Bucket, ground: Ground, die: bool) -> None:
    ground.make_table(*TABLE)
    ground.catalog.sweep()
    take_name(ground, then=append_above)
    operation = ground.transaction(TABLE, rows(300, 301), 1)
    at = 0
    while True:
        bucket.uri = f"{bucket.uri.rpartition('/')[0]}/try-{at}"
        bucket.upload(ground.root)
        store = OpenMoves(bucket.store())
        calls = [0]

        def arrive(verb: str, path: str, at: int = at, store: FaultStore = store, calls: list[int] = calls) -> None:
            if verb not in {"put_if_absent", "delete_if", "replace"} and not path.startswith("_staging/foreign"):
                return
            number, calls[0] = calls[0], calls[0] + 1
            if number == at:
                other = bucket.process()
                for _ in range(2):
                    other.catalog.sweep()
                batch(other, operation)
                other.catalog.sweep()
            elif number > at and die:
                store.crashed = True
            if number == at and die:
                store.fail(Fault.CRASH_AFTER)

        store.before(arrive)
        try:
            bucket.process(store).catalog.sweep()
        except Crashed:
            assert die
        if calls[0] <= at:
            break
        _check(bucket, f"held before call {at} of {calls[0]}")
        at += 1
    assert at > 5


def _check(bucket: Bucket, note: str) -> None:
    for _ in range(2):
        process = bucket.process()
        process.catalog.sweep()
        process.catalog.flush_record_housekeeping()
    snapshot = process.catalog.snapshot()
    table = snapshot.table(tuple(TABLE))
    assert table is not None
    for entry in snapshot.versions(tuple(TABLE)):
        data = process.catalog.store.find(entry.canonical_path)
        assert data is not None, f"version {entry.version} is under no name: {note}"
        assert is_row(entry, data), f"version {entry.version} is not the row's: {note}"
    found = sorted(bucket.open(table.location).to_table()["id"].to_pylist())
    assert found == [0, 1, 2, 3, 4, 10, 11, 300], note
