"""The state of a write-ahead log, committed by this engine: stock pylance reads it and commits on it."""

from __future__ import annotations

import uuid
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.mem_wal import CompactedSsTable

from lance_core.errors import InvalidTransaction
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.apply import apply_transaction
from lance_core.transaction.operations import CreateIndex, Update, UpdateMemWalState
from tests.commit.flavours import Flavour, commit
from tests.commit.outcomes import outcome_of
from tests.transaction.tables import Table, borrow, rows

SHARDS = (str(uuid.UUID(int=1)), str(uuid.UUID(int=2)))
KEY = {b"lance-schema:unenforced-primary-key": b"true"}
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False, metadata=KEY), ("x", pa.float64())])


def data(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "x": [float(i) for i in ids]}, schema=SCHEMA)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    lance.write_dataset(data(1, 2, 3), tmp_path / "t").initialize_mem_wal(bucket_column="id", num_buckets=4)
    return Table(tmp_path)


def compact(dataset: lance.LanceDataset, *sstables: tuple[str, int], ids: tuple[int, ...] = (3, 4)) -> None:
    merge = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.mark_sstables_as_compacted([CompactedSsTable(*entry) for entry in sstables]).execute(data(*ids))


def log(*sstables: tuple[str, int]) -> UpdateMemWalState:
    return UpdateMemWalState(
        tuple(
            pb.CompactedSsTable(shard_id=pb.UUID(uuid=uuid.UUID(shard).bytes), generation=generation)
            for shard, generation in sstables
        )
    )


def state(table: Table) -> dict[str, int]:
    indices = table.head().indices
    assert indices is not None
    [index] = [entry for entry in indices.indices if entry.name == "__lance_mem_wal"]
    details = pb.MemWalIndexDetails.FromString(index.index_details.value)
    return {str(uuid.UUID(bytes=e.shard_id.uuid)): e.generation for e in details.compacted_sstables}


def comparable(indices: pb.IndexSection | None) -> list[tuple[str, int, bytes]]:
    """Without what is random, and the details in one order of fields."""
    assert indices is not None
    return [
        (
            entry.name,
            entry.dataset_version,
            pb.MemWalIndexDetails.FromString(entry.index_details.value).SerializeToString(deterministic=True),
        )
        for entry in indices.indices
    ]


def test_indices_are_those_of_pylance(table: Table) -> None:
    compact(table.open(), (SHARDS[0], 3), (SHARDS[1], 1))
    compact(table.open(), (SHARDS[0], 7), ids=(5,))
    files = table.manifests()
    for version in (3, 4):
        transaction = files[version].transaction
        assert transaction is not None
        built = apply_transaction(files[version - 1], transaction, version=version, now_ns=1)
        assert comparable(built.indices) == comparable(files[version].indices)


def test_commits_of_pylance_and_this_engine_alternate(table: Table) -> None:
    details = table.open().mem_wal_index_details()
    stale = table.open()
    commit(table, log((SHARDS[0], 3)), Flavour())
    assert state(table) == {SHARDS[0]: 3}
    table.open().validate()
    assert table.open().mem_wal_index_details() == details

    compact(table.open(), (SHARDS[0], 4), (SHARDS[1], 9))
    assert state(table) == {SHARDS[0]: 4, SHARDS[1]: 9}
    operation = borrow(table, lambda d: compact(d, (SHARDS[0], 5), ids=(8,)))
    assert isinstance(operation, Update)
    commit(table, operation, Flavour())
    assert state(table) == {SHARDS[0]: 5, SHARDS[1]: 9}
    commit(table, log((SHARDS[0], 2), (SHARDS[1], 10)), Flavour())
    assert state(table) == {SHARDS[0]: 5, SHARDS[1]: 10}
    assert table.open().mem_wal_index_details() == details
    table.open().validate()
    assert table.ids() == [1, 2, 3, 4, 8]
    with pytest.raises(OSError, match="incompatible with concurrent transaction UpdateMemWalState"):
        lance.write_dataset(data(20), stale, mode="append")


def test_operations_that_a_log_update_may_follow(table: Table) -> None:
    table.open().update_config({"k": "v"})
    assert outcome_of(table, log((SHARDS[0], 3)), 2) == "committed"
    assert outcome_of(table, log((SHARDS[0], 4)), 3) == "retryable"
    assert outcome_of(table, log((SHARDS[0], 3)), 3) == "incompatible"
    assert outcome_of(table, log((SHARDS[1], 3)), 3) == "committed"
    lance.write_dataset(data(20), table.uri, mode="append")
    assert outcome_of(table, log((SHARDS[0], 9)), 5) == "incompatible"


def test_a_log_without_an_index_gets_one(tmp_path: Path) -> None:
    lance.write_dataset(rows(0, 3), tmp_path / "t")
    table = Table(tmp_path)
    commit(table, log((SHARDS[0], 1)), Flavour())
    assert state(table) == {SHARDS[0]: 1}
    table.open().validate()
    assert table.ids() == [0, 1, 2]


def test_details_that_cannot_be_decoded_are_refused(tmp_path: Path) -> None:
    lance.write_dataset(rows(0, 3), tmp_path / "t")
    table = Table(tmp_path)
    index = pb.IndexMetadata(name="__lance_mem_wal", uuid=pb.UUID(uuid=b"u" * 16))
    index.index_details.value = b"\xff\xff"
    commit(table, CreateIndex((index,)), Flavour())
    with pytest.raises(InvalidTransaction, match="has details that cannot be decoded"):
        commit(table, log((SHARDS[0], 1)), Flavour())
