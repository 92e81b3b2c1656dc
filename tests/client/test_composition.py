"""Composition of the steps of one table: one transaction, or all steps with an assertion of the base version."""

from __future__ import annotations

from collections.abc import Callable

import lance
import pyarrow as pa
import pytest

from lance_core.errors import StorageError
from lance_core.proto import lance_table_pb2 as pb
from namespace_client import MultiTableTransaction
from table_data import table_changes
from table_data.batch_operations import BatchOperation, TableDeclaration, TransactionCommit, VersionAssertion
from table_data.errors import WorkFailed
from tests.client.scene import SCHEMA, Scene, rows

Block = Callable[[MultiTableTransaction], object]


def sent(scene: Scene, block: Block, **options: str) -> tuple[BatchOperation, ...]:
    """The batch that a block sends."""
    with scene.catalog.begin(**options) as tx:
        block(tx)
    return tx._operations


def kinds(operations: tuple[BatchOperation, ...]) -> list[str | None]:
    """The kind of every operation."""
    words: list[str | None] = []
    for operation in operations:
        match operation:
            case VersionAssertion(_, version):
                words.append(f"assert {version}")
            case TableDeclaration():
                words.append("declare")
            case TransactionCommit(_, transaction):
                words.append(transaction.WhichOneof("operation"))
    return words


def transaction(operations: tuple[BatchOperation, ...]) -> pb.Transaction:
    [operation] = operations
    assert isinstance(operation, TransactionCommit)
    return operation.transaction


ONE: dict[str, tuple[Block, str]] = {
    "appends": (lambda tx: (tx.append("t", rows(50)), tx.append("t", rows(51))), "append"),
    "deletes": (lambda tx: (tx.delete("t", "id = 1"), tx.delete("t", "id >= 10")), "delete"),
    "an append and a delete": (lambda tx: (tx.append("t", rows(50)), tx.delete("t", "id = 1")), "update"),
    "updates of different rows": (
        lambda tx: (tx.update("t", {"v": "0"}, where="id = 1"), tx.update("t", {"v": "0"}, where="id = 2")),
        "update",
    ),
    "rows added and removed again": (lambda tx: (tx.append("t", rows(50)), tx.delete("t", "id in (1, 50)")), "delete"),
    "merges on one key": (
        lambda tx: (tx.merge("t", rows(1, 50), on="id"), tx.merge("t", rows(2, 51), on="id")),
        "update",
    ),
    "a merge and a delete": (lambda tx: (tx.merge("t", rows(1, 50), on="id"), tx.delete("t", "id = 7")), "update"),
    "overwrite after anything": (
        lambda tx: (tx.add_columns("t", {"w": "v"}), tx.append("t", rows(9, v=0.0)), tx.overwrite("t", rows(7))),
        "overwrite",
    ),
    "rows after an overwrite": (lambda tx: (tx.overwrite("t", rows(7)), tx.append("t", rows(8))), "overwrite"),
    "restore alone": (lambda tx: tx.restore("t", 1), "restore"),
}


@pytest.mark.parametrize("name", ONE)
def test_row_changes_become_one_transaction(local: Scene, name: str) -> None:
    block, kind = ONE[name]
    local.make("t", *range(20))

    operations = sent(local, block)

    assert kinds(operations) == [kind]
    assert transaction(operations).read_version == 2
    assert local.version() == 3


def test_the_composed_transaction_is_the_difference_to_the_base_version(local: Scene) -> None:
    local.make("t", *range(20))

    def block(tx: MultiTableTransaction) -> None:
        tx.delete("t", "id = 1")
        tx.append("t", rows(50))
        tx.update("t", {"v": "0"}, where="id in (2, 3)")
        tx.delete("t", "id >= 10 and id < 20")
        tx.delete("t", "id = 50")

    update = transaction(sent(local, block)).update

    assert list(update.removed_fragment_ids) == [1]
    assert [(fragment.id, fragment.deletion_file.num_deleted_rows) for fragment in update.updated_fragments] == [(0, 3)]
    assert [fragment.physical_rows for fragment in update.new_fragments] == [2], (
        "rows that the block added and removed again"
    )
    assert not any(fragment.HasField("deletion_file") for fragment in update.new_fragments)


def test_claims_of_several_merges_are_joined(local: Scene) -> None:
    local.make("t", 1)
    block: Block = lambda tx: [tx.merge("t", rows(key), on="id") for key in (5, 6)]  # noqa: E731
    claims = transaction(sent(local, block)).update.inserted_rows
    assert len(set(claims.exact.key_hashes)) == 2
    assert list(claims.field_ids) == [0]


GUARDED: dict[str, tuple[Block, list[str]]] = {
    "own rows deleted": (
        lambda tx: (tx.append("t", rows(50, 51)), tx.delete("t", "id = 50")),
        ["append", "delete"],
    ),
    "own rows merged again": (
        lambda tx: (tx.merge("t", rows(50, 51), on="id"), tx.merge("t", rows(51, 52), on="id")),
        ["update", "update"],
    ),
    "merges on different keys": (
        lambda tx: (tx.merge("t", rows(50), on="id"), tx.merge("t", rows(51), on="v")),
        ["update", "update"],
    ),
    "a merge beside an append": (
        lambda tx: (tx.merge("t", rows(50), on="id"), tx.append("t", rows(51))),
        ["update", "append"],
    ),
    "columns and rows": (
        lambda tx: (tx.add_columns("t", {"w": "v"}), tx.delete("t", "id = 1")),
        ["merge", "delete"],
    ),
    "an index and rows": (
        lambda tx: (tx.append("t", rows(50)), tx.create_index("t", "id", "BTREE")),
        ["append", "create_index"],
    ),
    "columns in the place of others": (
        lambda tx: (tx.drop_columns("t", ["v"]), tx.add_columns("t", pa.schema([("v", pa.string())]))),
        ["project", "merge"],
    ),
    "rows after a restore": (
        lambda tx: (tx.restore("t", 1), tx.append("t", rows(50))),
        ["restore", "append"],
    ),
    "an overwrite after a restore": (
        lambda tx: (tx.restore("t", 1), tx.overwrite("t", rows(50))),
        ["restore", "overwrite"],
    ),
    "own overwritten rows deleted": (
        lambda tx: (tx.overwrite("t", rows(50, 51)), tx.delete("t", "id = 50")),
        ["overwrite", "delete"],
    ),
}


@pytest.mark.parametrize("name", GUARDED)
def test_other_sequences_assert_the_base_version(local: Scene, name: str) -> None:
    block, steps = GUARDED[name]
    local.make("t", *range(20))

    operations = sent(local, block)

    assert kinds(operations) == ["assert 2", *steps]
    assert local.version() == 2 + len(steps)
    local.open()


def test_a_new_table_needs_no_assertion(local: Scene) -> None:
    block: Block = lambda tx: (tx.create("t", rows(1, 2)), tx.delete("t", "id = 1"))  # noqa: E731
    assert kinds(sent(local, block)) == ["declare", "overwrite", "delete"]


def test_serializable_asserts_tables_that_were_read_or_written(local: Scene) -> None:
    local.make("read", 1)
    local.make("written", 1)
    local.make("neither", 1)

    def block(tx: MultiTableTransaction) -> None:
        tx.table("read").count_rows()
        tx.append("written", rows(2))
        tx.create("new", schema=SCHEMA)
        tx.exists("neither")

    operations = sent(local, block, isolation="serializable")
    asserted = {operation.id[-1] for operation in operations if isinstance(operation, VersionAssertion)}
    assert asserted == {"read", "written"}
    assert kinds(operations) == ["assert 1", "assert 1", "append", "declare", "overwrite"]


def test_an_overwrite_after_a_read_is_guarded(local: Scene) -> None:
    local.make("t", 1)

    def reading_first(tx: MultiTableTransaction) -> None:
        tx.table("t").count_rows()
        tx.overwrite("t", rows(2))

    def reading_after(tx: MultiTableTransaction) -> None:
        tx.overwrite("t", rows(3))
        tx.table("t").count_rows()

    assert kinds(sent(local, reading_first)) == ["assert 1", "overwrite"]
    assert kinds(sent(local, reading_after)) == ["overwrite"]


def test_local_row_ids_are_not_sent(local: Scene) -> None:
    """With stable row ids, a row that the block added has a local id, which a concurrent commit may assign, too."""
    lance.write_dataset(
        rows(1, 2), namespace_client=local.stock(), table_id=["ml", "t"], mode="create", enable_stable_row_ids=True
    )

    def block(tx: MultiTableTransaction) -> None:
        tx.append("t", rows(50))
        tx.update("t", {"v": "0"}, where="id = 50")

    assert kinds(sent(local, block)) == ["assert 1", "append", "update"]
    ids = local.open().to_table(with_row_id=True).column("_rowid").to_pylist()
    assert len(set(ids)) == 3


def test_a_compaction_that_fails_takes_no_step(local: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    local.make("t", *range(20))

    def fail(*_: object, reserve: Callable[[int], int], **__: object) -> None:
        assert reserve(3) == 2
        raise StorageError("the disk is full")

    monkeypatch.setattr(table_changes, "prepare_compaction", fail)

    def block(tx: MultiTableTransaction) -> None:
        with pytest.raises(WorkFailed, match="the disk is full"):
            tx.compact("t")
        tx.append("t", rows(50))

    assert kinds(sent(local, block)) == ["append"]
