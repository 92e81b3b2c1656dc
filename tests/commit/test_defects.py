"""Five defects of the stock engine: what stock pylance does, and what this engine does instead."""

from __future__ import annotations

from pathlib import Path

import lance
import pytest
from lance.lance import DatasetBasePath

from lance_core.commit.loop import commit_transaction
from lance_core.errors import IncompatibleTransaction, RetryableTransaction
from lance_core.format.manifest import encode_manifest_file
from lance_core.format.naming import manifest_name
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.operations import (
    MapUpdate,
    Operation,
    Update,
    UpdateBases,
    UpdateConfig,
    encode_transaction,
)
from tests.transaction.tables import Table, borrow, make_table, merge_rows, rows


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return make_table(tmp_path / "first", (0, 10), (10, 20))


def commit(table: Table, operation: Operation, read_version: int = 2) -> int:
    return commit_transaction(table.store, "t", encode_transaction(operation, read_version=read_version)).version


def test_an_index_on_a_dropped_field_is_refused(table: Table, tmp_path: Path) -> None:
    operation = borrow(table, lambda dataset: dataset.create_scalar_index("s", "BTREE"))
    other = table.copy(tmp_path / "other")
    stale = other.open()
    for place in (table, other):
        place.open().drop_columns(["s"])
    stale.create_scalar_index("s", "BTREE")
    (index,) = other.head().indices.indices if other.head().indices is not None else ()
    assert not set(index.fields) & {field.id for field in other.head().manifest.fields}

    with pytest.raises(RetryableTransaction, match="it dropped field 2"):
        commit(table, operation)
    assert table.head().indices is None


def test_metadata_of_a_dropped_field_is_refused(table: Table) -> None:
    stale = table.open()
    table.open().drop_columns(["s"])
    with pytest.raises(OSError, match="Field with id 2 does not exist"):  # not reported as a conflict
        stale.update_field_metadata({"s": {"k": "v"}})
    with pytest.raises(IncompatibleTransaction, match="it dropped field 2"):
        commit(table, UpdateConfig(field_metadata={2: MapUpdate({"k": "v"})}))


def test_two_concurrent_replacements_of_the_config_conflict(table: Table, tmp_path: Path) -> None:
    other = table.copy(tmp_path / "other")
    stale = other.open()
    for place in (table, other):
        place.open().update_config({"a": "1"}, replace=True)
    stale.update_config({"b": "2"}, replace=True)
    assert other.open().config() == {"b": "2"}, "the first is lost"

    with pytest.raises(IncompatibleTransaction, match="one replaces the whole config"):
        commit(table, UpdateConfig(MapUpdate({"b": "2"}, replace=True)))
    assert table.open().config() == {"a": "1"}


def test_two_concurrent_inserts_of_the_same_key_conflict(table: Table, tmp_path: Path) -> None:
    """Without a declared primary key pylance carries no filter of keys; ours is judged by that of the join keys."""
    other = table.copy(tmp_path / "other")
    stale = other.open()
    for dataset in (other.open(), stale):
        dataset.merge_insert("id").when_not_matched_insert_all().execute(rows(30, 31))
    assert other.ids()[-2:] == [30, 30]

    keys = pb.Transaction.KeyExistenceFilter(field_ids=[0], exact=pb.Transaction.ExactKeySetFilter(key_hashes=[30]))
    first, second = (
        Update(new=merge_rows(table.open(), rows(30, 31)).new, inserted_keys=keys, value_fields=(0, 1, 2))
        for _ in range(2)
    )
    commit(table, first)
    with pytest.raises(RetryableTransaction, match="both may insert the same key"):
        commit(table, second)
    table.open().validate()
    assert table.ids() == [*range(20), 30]


def test_base_paths_conflict_with_an_unknown_operation(table: Table, tmp_path: Path) -> None:
    head = table.head()
    manifest = pb.Manifest()
    manifest.CopyFrom(head.manifest)
    manifest.version = 3
    manifest.ClearField("transaction_file")
    unknown = pb.Transaction.FromString(pb.Transaction(read_version=2, uuid="u").SerializeToString() + b"\xc2\x3e\x00")
    stale = table.open()
    (table.path / "_versions" / manifest_name(3)).write_bytes(encode_manifest_file(manifest, unknown))
    other = table.copy(tmp_path / "other")
    lance.dataset(other.uri, version=stale.version).add_bases([DatasetBasePath("/elsewhere", name="n")])
    assert other.open().version == 4

    with pytest.raises(IncompatibleTransaction, match="of an unknown kind"):
        commit(table, UpdateBases((pb.BasePath(name="n", path="/elsewhere"),)))
