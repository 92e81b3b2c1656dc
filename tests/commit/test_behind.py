"""Stale transactions: how much is read to judge them, and that the verdict does not depend on it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lance
import pytest

from lance_core.commit import concurrent_commits
from lance_core.commit.loop import commit_transaction
from lance_core.commit.staged import stage_commit
from lance_core.errors import IncompatibleTransaction, InvalidTransaction, RetryableTransaction
from lance_core.format.manifest import encode_manifest_file
from lance_core.format.naming import manifest_name, manifest_path
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.memory import MemoryStore
from lance_core.storage.wrappers.counting import CountingStore
from lance_core.transaction.operations import Append, MapUpdate, Overwrite, UpdateConfig, encode_transaction
from tests.transaction.tables import Table, delete_rows, make_table, rows

BEHIND = 120


class MeasuringStore(MemoryStore):
    """Adds up the bytes that are read."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.bytes_read = 0

    def get(self, path: str, *, at_most: int | None = None) -> bytes:
        data = super().get(path, at_most=at_most)
        self.bytes_read += len(data)
        return data

    def get_range(self, path: str, offset: int, length: int) -> bytes:
        data = super().get_range(path, offset, length)
        self.bytes_read += len(data)
        return data


def fragment(name: str) -> pb.DataFragment:
    file = pb.DataFile(path=f"{name}.lance", fields=[0], column_indices=[0], file_major_version=2, file_minor_version=2)
    return pb.DataFragment(physical_rows=1, files=[file])


def append(names: list[str], read_version: int) -> pb.Transaction:
    return encode_transaction(Append(tuple(fragment(name) for name in names)), read_version=read_version)


def grow(store: MeasuringStore, fragments: int) -> None:
    """A table of that many fragments at version 2, and `BEHIND` appends of one more."""
    columns = (pb.Field(name="a", parent_id=-1, logical_type="int64"),)
    commit_transaction(store, "t", encode_transaction(Overwrite((), columns), read_version=0))
    commit_transaction(store, "t", append([f"first {number:04d}" for number in range(fragments)], 1))
    for number in range(BEHIND):
        commit_transaction(store, "t", append([f"late {number:04d}"], 2 + number))


@pytest.mark.parametrize("fragments", [1, 2_000])
def test_a_stale_transaction_costs_two_round_trips_and_one_request_per_version(fragments: int) -> None:
    inner = MeasuringStore("m")
    grow(inner, fragments)
    store = CountingStore(inner)
    store.local = False  # as a bucket
    head = inner.head(manifest_path("t", 2 + BEHIND)).size
    inner.bytes_read = 0
    with store.measure() as cost:
        committed = commit_transaction(store, "t", append(["ours"], 2))
    assert (committed.version, committed.rebased) == (3 + BEHIND, True)
    reads = {verb: count for verb, count in cost.by_verb.items() if not verb.startswith("put")}
    assert reads == {"list": 2, "get": 1, "get_range": BEHIND - 1}
    assert cost.round_trips == 5  # the listing, all versions at once, the transaction file, the slot, the listing again
    assert inner.bytes_read <= head + BEHIND * concurrent_commits.FRONT
    assert [entry.id for entry in committed.file.manifest.fragments] == list(range(fragments + BEHIND + 1))


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return make_table(tmp_path, (0, 10), (10, 20))


@pytest.fixture(params=["whole files", "fronts of files"])
def front(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Small tables are read as large ones are when the front is short."""
    if request.param == "fronts of files":
        monkeypatch.setattr(concurrent_commits, "FRONT", 300)
    return str(request.param)


def test_an_append_is_rebased_over_compatible_versions(table: Table, front: str) -> None:
    ours = encode_transaction(Append(table.stage(rows(20, 22))), read_version=2)
    table.open().delete("id = 3")
    table.open().create_scalar_index("id", "BTREE")
    lance.write_dataset(rows(30, 31), table.uri, mode="append")
    table.open().update_config({"k": "v"})
    committed = commit_transaction(table.store, "t", ours)
    assert (committed.version, committed.rebased) == (7, True)
    table.open().validate()
    assert table.ids() == [i for i in [*range(22), 30] if i != 3]
    assert [index.name for index in table.open().describe_indices()] == ["id_idx"]
    assert table.open().to_table(filter="id = 21").num_rows == 1


def test_an_index_section_before_the_transaction_costs_one_more_short_request(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(concurrent_commits, "FRONT", 300)
    table.open().create_scalar_index("id", "BTREE")
    ours = encode_transaction(Append(table.stage(rows(20, 22))), read_version=3)
    lance.write_dataset(rows(30, 31), table.uri, mode="append")
    table.open().update_config({"k": "v"})
    store = CountingStore(table.store)
    store.local = False  # as a bucket
    commit_transaction(store, "t", ours)
    assert (store.cost.by_verb["get_range"], store.cost.by_verb["get"]) == (2, 1)


def test_an_append_conflicts_with_an_overwrite(table: Table, front: str) -> None:
    ours = encode_transaction(Append(table.stage(rows(20, 22))), read_version=2)
    lance.write_dataset(rows(0, 5), table.uri, mode="overwrite")
    table.open().update_config({"k": "v"})
    with pytest.raises(IncompatibleTransaction, match=r"overwrite") as caught:
        commit_transaction(table.store, "t", ours)
    assert caught.value.version == 3


def test_deletions_are_merged_whether_versions_are_read_partly_or_completely(table: Table, front: str) -> None:
    ours = delete_rows(table.open(), "id in (4, 14)")
    table.open().delete("id = 1")
    table.open().delete("id in (2, 12)")
    table.open().update_config({"k": "v"})
    commit_transaction(table.store, "t", encode_transaction(ours, read_version=2))
    table.open().validate()
    assert table.ids() == [i for i in range(20) if i not in (1, 2, 4, 12, 14)]


def test_a_deleted_row_conflicts_whether_versions_are_read_partly_or_completely(table: Table, front: str) -> None:
    ours = delete_rows(table.open(), "id = 4")
    table.open().delete("id in (3, 4)")
    table.open().update_config({"k": "v"})
    with pytest.raises(RetryableTransaction, match="row 4 of fragment 0") as caught:
        commit_transaction(table.store, "t", encode_transaction(ours, read_version=2))
    assert caught.value.version == 3


def test_a_transaction_that_was_committed_long_ago_is_found(table: Table, front: str) -> None:
    ours = encode_transaction(Append(table.stage(rows(20, 22))), read_version=2)
    first = commit_transaction(table.store, "t", ours)
    lance.write_dataset(rows(30, 31), table.uri, mode="append")
    again = commit_transaction(table.store, "t", ours)
    assert (again.version, again.path, again.rebased) == (3, first.path, False)
    assert again.file.identity == first.file.identity
    assert again.file.manifest == first.file.manifest
    with pytest.raises(InvalidTransaction, match="is committed already, as version 3"):
        stage_commit(table.store, "t", ours)


WITHOUT: dict[str, Callable[[pb.Manifest], object]] = {
    "an inline transaction": lambda m: None,
    "any transaction": lambda m: m.ClearField("transaction_file"),
}


@pytest.mark.parametrize("name", WITHOUT)
def test_a_version_without_an_inline_transaction_is_read_completely(table: Table, front: str, name: str) -> None:
    ours = encode_transaction(Append(table.stage(rows(20, 22))), read_version=2)
    table.open().create_scalar_index("id", "BTREE")
    path = table.path / "_versions" / manifest_name(3)
    file = table.head()
    WITHOUT[name](file.manifest)
    path.write_bytes(encode_manifest_file(file.manifest, None, file.indices))
    table.open().update_config({"k": "v"})
    if name == "an inline transaction":
        assert commit_transaction(table.store, "t", ours).version == 5
        assert table.ids() == list(range(22))
    else:
        with pytest.raises(IncompatibleTransaction) as caught:
            commit_transaction(table.store, "t", ours)
        assert caught.value.version == 3


def test_a_removed_version_between_is_reported(table: Table, front: str) -> None:
    ours = encode_transaction(UpdateConfig(MapUpdate({"k": "v"})), read_version=2)
    lance.write_dataset(rows(30, 31), table.uri, mode="append")
    lance.write_dataset(rows(31, 32), table.uri, mode="append")
    (table.path / "_versions" / manifest_name(3)).unlink()
    with pytest.raises(RetryableTransaction, match="can no longer be read") as caught:
        commit_transaction(table.store, "t", ours)
    assert caught.value.version == 3
