"""Uncommitted results of pylance as transactions, committed by the engine and read by pylance."""

from __future__ import annotations

import time
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.fragment import FragmentMetadata, write_fragments

from lance_core.commit.prepare import History, TableFiles, prepare_commit
from lance_core.errors import RetryableTransaction
from lance_core.format.naming import NamingScheme, manifest_path
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.opening import open_store
from table_data.composition import MESSAGE_PROPERTY, transaction_message
from table_data.descriptions import append_operation, delete_operation, overwrite_operation, update_operation

SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("tags", pa.list_(pa.string()))], metadata={"owner": "tests"}
)


class Table:
    """A table on disk. `commit` commits a transaction as the server does."""

    def __init__(self, path: Path) -> None:
        self.uri = path.as_uri()
        self.files = TableFiles(open_store(path.parent.as_uri()), path.name)

    def rows(self, *ids: int) -> pa.Table:
        return pa.Table.from_pylist([{"id": n, "tags": [str(n)]} for n in ids], schema=SCHEMA)

    def write(self, *ids: int, new: bool = False) -> list[FragmentMetadata]:
        return write_fragments(self.rows(*ids), self.uri, schema=SCHEMA, mode="overwrite" if new else "append")

    def commit(self, transaction: pb.Transaction) -> int:
        known = sorted(version["version"] for version in self.open().versions()) if transaction.read_version else []
        head = self.files.manifest(known[-1]) if known else None
        concurrent = [self.files.manifest(version) for version in known if version > transaction.read_version]
        prepared = prepare_commit(transaction, History(head, concurrent), self.files, now_ns=time.time_ns())
        for key, data in prepared.files:
            self.files.store.put(key, data)
        key = manifest_path(self.files.base, prepared.version, NamingScheme.V2)
        self.files.store.put_if_absent(key, prepared.manifest)
        return prepared.version

    def open(self, version: int | None = None) -> lance.LanceDataset:
        return lance.dataset(self.uri, version=version)

    def ids(self) -> list[int]:
        dataset = self.open()
        dataset.validate()
        return sorted(dataset.to_table()["id"].to_pylist())


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path / "1a2b3c4d_t")


def test_the_first_version_of_a_new_table(table: Table) -> None:
    fragments = [*table.write(1, 2, new=True), *table.write(3, new=True)]
    assert table.commit(transaction_message(overwrite_operation(SCHEMA, fragments), 0, "load")) == 1
    assert table.ids() == [1, 2, 3]
    assert table.open().schema == SCHEMA
    assert table.open().schema.metadata == SCHEMA.metadata
    assert table.open().read_transaction(1).transaction_properties == {MESSAGE_PROPERTY: "load"}
    lance.write_dataset(table.rows(4), table.uri, mode="append")
    assert table.ids() == [1, 2, 3, 4]


def test_a_new_table_without_rows(table: Table) -> None:
    assert table.commit(transaction_message(overwrite_operation(SCHEMA, []), 0, None)) == 1
    assert table.ids() == []


def test_an_append_is_rebased_over_other_appends(table: Table) -> None:
    table.commit(transaction_message(overwrite_operation(SCHEMA, table.write(1, new=True)), 0, None))
    ours = transaction_message(append_operation(table.write(2)), 1, None)
    lance.write_dataset(table.rows(3), table.uri, mode="append")
    assert table.commit(ours) == 3
    assert table.ids() == [1, 2, 3]


def test_an_overwrite_replaces_rows_and_schema(table: Table) -> None:
    table.commit(transaction_message(overwrite_operation(SCHEMA, table.write(1, new=True)), 0, None))
    other = pa.schema([("id", pa.int32()), ("x", pa.float64())])
    rows = pa.Table.from_pylist([{"id": 9, "x": 1.5}], schema=other)
    fragments = write_fragments(rows, table.uri, schema=other, mode="overwrite")
    assert table.commit(transaction_message(overwrite_operation(other, fragments), 1, None)) == 2
    assert table.open().to_table().to_pylist() == [{"id": 9, "x": 1.5}]
    assert table.open(1).to_table().num_rows == 1


def upsert(table: Table, version: int, *ids: int) -> pb.Transaction:
    rows = pa.Table.from_pylist([{"id": n, "tags": ["new"]} for n in ids], schema=SCHEMA)
    merge = table.open(version).merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    transaction, _ = merge.execute_uncommitted(rows)
    return transaction_message(update_operation(transaction.operation), version, None)


def test_an_upsert_replaces_and_adds(table: Table) -> None:
    table.commit(transaction_message(overwrite_operation(SCHEMA, table.write(1, 2, 3, new=True)), 0, None))
    assert table.commit(upsert(table, 1, 2, 4)) == 2
    assert table.ids() == [1, 2, 3, 4]
    new = table.open().to_table(filter="array_has(tags, 'new')")["id"].to_pylist()
    assert sorted(new) == [2, 4]


def test_an_upsert_is_rebased_over_changes_of_other_rows(table: Table) -> None:
    table.commit(transaction_message(overwrite_operation(SCHEMA, table.write(1, 2, 3, new=True)), 0, None))
    ours = upsert(table, 1, 2)
    table.open().delete("id = 1")
    assert table.commit(ours) == 3
    assert table.ids() == [2, 3]


def test_an_upsert_of_a_concurrently_changed_row_is_refused(table: Table) -> None:
    table.commit(transaction_message(overwrite_operation(SCHEMA, table.write(1, 2, 3, new=True)), 0, None))
    ours = upsert(table, 1, 2)
    table.open().update({"tags": "make_array('theirs')"}, where="id = 2")
    with pytest.raises(RetryableTransaction):
        table.commit(ours)


def test_a_delete_marks_rows_and_drops_empty_fragments(table: Table) -> None:
    fragments = [*table.write(1, 2, new=True), *table.write(3, new=True)]
    table.commit(transaction_message(overwrite_operation(SCHEMA, fragments), 0, None))
    whole, part = table.open().get_fragment(1), table.open().get_fragment(0).delete("id = 2")
    assert whole.delete("id = 3") is None
    assert table.commit(transaction_message(delete_operation([part], [1], "id > 1"), 1, None)) == 2
    assert table.ids() == [1]
    assert [fragment.fragment_id for fragment in table.open().get_fragments()] == [0]
