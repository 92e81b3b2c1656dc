"""Isolation: reads during concurrent commits, rebase and conflicts."""

# ruff: noqa: PT012 - leaving the block is what raises

from __future__ import annotations

from collections.abc import Callable

import pytest
from lance_namespace import DropTableRequest

from namespace_client import (
    CommitRejected,
    IncompatibleConflict,
    InvalidCall,
    MultiTableTransaction,
    RetryableConflict,
)
from table_data.staging import MAX_CLAIMED_KEYS
from tests.client.scene import SCHEMA, Scene, rows, seen

Change = Callable[[MultiTableTransaction], object]


def test_all_reads_are_as_of_the_begin(scene: Scene) -> None:
    scene.make("a", 1)
    scene.make("b", 1)
    with scene.catalog.begin() as tx:
        assert seen(tx, "a") == [1]
        with scene.catalog.begin() as other:
            other.append("a", rows(2))
            other.append("b", rows(2))
            other.create("c", rows(1))
        assert seen(tx, "a") == [1]
        assert seen(tx, "b") == [1], "read for the first time after the other commit"
        assert not tx.exists("c")

    assert tx.result.catalog_version == tx.catalog_version == other.result.catalog_version - 1


def test_reads_show_the_begin_with_the_changes_of_the_block(scene: Scene) -> None:
    scene.make("t", *range(5))
    with scene.catalog.begin() as tx:
        tx.delete("t", "id = 0")
        with scene.catalog.begin() as other:
            other.append("t", rows(10))
            other.delete("t", "id = 4")
        tx.append("t", rows(20))
        tx.update("t", {"v": "-1"}, where="id = 1")
        assert seen(tx) == [1, 2, 3, 4, 20]

    assert scene.values() == {1: -1.0, 2: 2.0, 3: 3.0, 10: 10.0, 20: 20.0}
    assert tx.result.tables[0].rebased


def test_an_exception_in_the_block_publishes_nothing(scene: Scene) -> None:
    scene.make("a", 1)
    before = scene.catalog_version()
    with pytest.raises(RuntimeError, match="changed my mind"), scene.catalog.begin() as tx:
        tx.append("a", rows(2))
        tx.create("b", rows(1))
        raise RuntimeError("changed my mind")

    assert scene.catalog_version() == before
    assert scene.ids("a") == [1]
    assert scene.catalog.access.table((scene.namespace, "b")) is None
    with pytest.raises(InvalidCall, match="has not been committed"):
        _ = tx.result
    with pytest.raises(InvalidCall, match="nothing to send"):
        tx.resend()


def test_a_conflict_on_one_table_rejects_all(scene: Scene) -> None:
    scene.make("a", 1)
    scene.make("b", 1)
    with pytest.raises(RetryableConflict), scene.catalog.begin() as tx:
        tx.append("a", rows(2))
        tx.update("b", {"v": "5"})
        tx.create("c", rows(1))
        with scene.catalog.begin() as other:
            other.update("b", {"v": "6"})

    assert scene.ids("a") == [1]
    assert scene.values("b") == {1: 6.0}
    assert scene.catalog.access.table((scene.namespace, "c")) is None


REBASED: dict[str, tuple[Change, Change, dict[int, float]]] = {
    "both append": (
        lambda tx: tx.append("t", rows(10)),
        lambda tx: tx.append("t", rows(11)),
        {1: 1.0, 2: 2.0, 10: 10.0, 11: 11.0},
    ),
    "other rows of one fragment": (
        lambda tx: tx.update("t", {"v": "10"}, where="id = 1"),
        lambda tx: tx.update("t", {"v": "20"}, where="id = 2"),
        {1: 10.0, 2: 20.0},
    ),
    "delete beside upsert": (
        lambda tx: tx.delete("t", "id = 1"),
        lambda tx: tx.merge("t", rows(2, 3, v=0.0), on="id"),
        {2: 0.0, 3: 0.0},
    ),
    "upserts of other keys": (
        lambda tx: tx.merge("t", rows(1, 3, v=0.5), on="id"),
        lambda tx: tx.merge("t", rows(2, 4, v=0.25), on="id"),
        {1: 0.5, 2: 0.25, 3: 0.5, 4: 0.25},
    ),
    "several calls on each side": (
        lambda tx: (tx.append("t", rows(10)), tx.delete("t", "id = 1"), tx.append("t", rows(11))),
        lambda tx: (tx.append("t", rows(12)), tx.update("t", {"v": "7"}, where="id = 2")),
        {2: 7.0, 10: 10.0, 11: 11.0, 12: 12.0},
    ),
    "a blind overwrite": (
        lambda tx: tx.overwrite("t", rows(9)),
        lambda tx: tx.append("t", rows(11)),
        {9: 9.0},
    ),
}


@pytest.mark.parametrize("name", REBASED)
def test_changes_that_do_not_conflict_are_rebased(scene: Scene, name: str) -> None:
    ours, theirs, expected = REBASED[name]
    scene.make("t", 1, 2)
    with scene.catalog.begin() as tx:
        ours(tx)
        with scene.catalog.begin() as other:
            theirs(other)

    assert tx.result.tables[0].rebased
    assert scene.values() == expected


def test_a_compaction_is_rebased_over_new_rows_and_other_fragments(scene: Scene) -> None:
    scene.make("t", *range(20))
    with scene.catalog.begin() as tx:
        tx.compact("t")
        with scene.catalog.begin() as other:
            other.append("t", rows(30))

    assert tx.result.tables[0].rebased
    assert len(scene.open().get_fragments()) == 2
    assert scene.ids() == [*range(20), 30]


RETRYABLE: dict[str, tuple[Change, Change, str]] = {
    "the same row": (
        lambda tx: tx.update("t", {"v": "10"}, where="id = 1"),
        lambda tx: tx.delete("t", "id = 1"),
        "update v",
    ),
    "the same new key": (
        lambda tx: tx.merge("t", rows(5), on="id"),
        lambda tx: tx.merge("t", rows(5, v=0.0), on="id"),
        "merge on id",
    ),
    "a key that an append may have": (
        lambda tx: tx.merge("t", rows(5), on="id"),
        lambda tx: tx.append("t", rows(5)),
        "merge on id",
    ),
    "both change the schema": (
        lambda tx: tx.add_columns("t", {"w": "v"}),
        lambda tx: tx.add_columns("t", {"x": "v"}),
        "add_columns",
    ),
    "new columns beside new rows": (
        lambda tx: tx.add_columns("t", {"w": "v"}),
        lambda tx: tx.append("t", rows(5)),
        "add_columns",
    ),
    "own rows changed again": (
        lambda tx: (tx.append("t", rows(5, 6)), tx.delete("t", "id = 5 or id = 1")),
        lambda tx: tx.append("t", rows(6)),
        "append",
    ),
    "an index over own rows": (
        lambda tx: (tx.append("t", rows(5)), tx.create_index("t", "id", "BTREE")),
        lambda tx: tx.append("t", rows(6)),
        "create_index id_idx",
    ),
    "an overwrite of what was read": (
        lambda tx: tx.overwrite("t", tx.table("t").to_table()),
        lambda tx: tx.append("t", rows(6)),
        "overwrite",
    ),
    "rows of compacted fragments": (
        lambda tx: (tx.delete("t", "id = 1"), tx.compact("t")),
        lambda tx: tx.delete("t", "id = 2"),
        "compact",
    ),
    "a restore after reading": (
        lambda tx: (seen(tx), tx.restore("t", 1)),
        lambda tx: tx.append("t", rows(6)),
        "restore 1",
    ),
    "the same new table": (
        lambda tx: tx.create("new", rows(1)),
        lambda tx: tx.create("new", rows(2)),
        "",
    ),
}


@pytest.mark.parametrize("name", RETRYABLE)
def test_a_conflict_names_the_calls_to_repeat(scene: Scene, name: str) -> None:
    ours, theirs, call = RETRYABLE[name]
    scene.make("t", 1, 2)
    with pytest.raises(RetryableConflict) as caught, scene.catalog.begin() as tx:
        ours(tx)
        with scene.catalog.begin() as other:
            theirs(other)

    if call:
        [conflict] = caught.value.conflicts
        assert conflict.table == (scene.namespace, "t")
        assert (conflict.expected, conflict.actual) == (1, 2)
        assert call in conflict.redo
        assert conflict.winner == scene.committed().uuid
        assert caught.value.code == 14
        assert "redo" in caught.value.__notes__[0]
    assert scene.catalog_version() == other.result.catalog_version


def test_a_conflict_explains_the_assertion_of_a_version(scene: Scene) -> None:
    scene.make("t", 1)
    with pytest.raises(RetryableConflict) as caught, scene.catalog.begin() as tx:
        tx.append("t", rows(2, 3))
        tx.delete("t", "id = 2")
        with scene.catalog.begin() as other:
            other.append("t", rows(4))

    assert "rows that the transaction wrote itself were changed again" in caught.value.conflicts[0].reason
    assert "rows that the transaction wrote itself" in caught.value.__notes__[0]


INCOMPATIBLE: dict[str, tuple[Change, Change]] = {
    "overwritten": (lambda tx: tx.append("t", rows(5)), lambda tx: tx.overwrite("t", rows(9))),
    "restored": (lambda tx: tx.delete("t", "id = 1"), lambda tx: tx.restore("t", 1)),
    "a column gone": (lambda tx: tx.add_columns("t", {"w": "v"}), lambda tx: tx.drop_columns("t", ["v"])),
}


@pytest.mark.parametrize("name", INCOMPATIBLE)
def test_irreconcilable_changes_are_incompatible_conflicts(scene: Scene, name: str) -> None:
    ours, theirs = INCOMPATIBLE[name]
    scene.make("t", 1, 2)
    with pytest.raises(IncompatibleConflict) as caught, scene.catalog.begin() as tx:
        ours(tx)
        with scene.catalog.begin() as other:
            theirs(other)

    assert not isinstance(caught.value, RetryableConflict)
    assert caught.value.conflicts[0].reason.startswith("incompatible")


def test_a_concurrently_dropped_table_is_an_incompatible_conflict(scene: Scene) -> None:
    scene.make("t", 1)
    namespace = scene.stock()
    with pytest.raises(IncompatibleConflict, match="does not exist"), scene.catalog.begin() as tx:
        tx.append("t", rows(2))
        namespace.drop_table(DropTableRequest(id=[scene.namespace, "t"]))


ANOTHER: dict[str, Change] = {
    "rows": lambda tx: tx.append("t", rows(2)),
    "no files": lambda tx: tx.drop_columns("t", ["v"]),
    "guarded": lambda tx: (tx.drop_columns("t", ["v"]), tx.create_index("t", "id", "BTREE")),
}


@pytest.mark.parametrize("isolation", ["snapshot", "serializable"])
@pytest.mark.parametrize("name", ANOTHER)
def test_a_table_created_again_under_the_same_name_is_not_changed(scene: Scene, name: str, isolation: str) -> None:
    scene.make("t", 1)
    tx = scene.catalog.begin(isolation=isolation)
    with pytest.raises(IncompatibleConflict, match="the table of that name is at"), tx:
        ANOTHER[name](tx)
        scene.stock().drop_table(DropTableRequest(id=[scene.namespace, "t"]))
        scene.make("t", 5)

    assert scene.ids() == [5]
    assert scene.open().schema == SCHEMA


def test_reads_of_a_dropped_table_are_not_asserted_of_its_successor(scene: Scene) -> None:
    scene.make("t", 1)
    scene.make("u", 1)
    with pytest.raises(IncompatibleConflict), scene.catalog.begin(isolation="serializable") as tx:
        tx.append("u", tx.table("t").to_table())
        scene.stock().drop_table(DropTableRequest(id=[scene.namespace, "t"]))
        scene.make("t", 5)

    assert scene.ids("u") == [1]


def test_a_rejection_without_a_conflict(scene: Scene) -> None:
    with pytest.raises(CommitRejected, match="namespace") as caught, scene.catalog.begin() as tx:
        tx.create(("no such namespace", "t"), rows(1))
    assert not isinstance(caught.value, (RetryableConflict, IncompatibleConflict))


# -- serializable


def _skew(scene: Scene, isolation: str) -> None:
    """Two transactions each check the sum over both tables, then lower one of them."""
    scene.make("left", 1)
    scene.make("right", 1)

    def lower(tx: MultiTableTransaction, name: str) -> None:
        total = sum(tx.table(side).to_table().column("v")[0].as_py() for side in ("left", "right"))
        assert total >= 2
        tx.update(name, {"v": "v - 2"})

    with scene.catalog.begin(isolation=isolation) as tx:
        lower(tx, "left")
        with scene.catalog.begin(isolation=isolation) as other:
            lower(other, "right")


def test_snapshot_isolation_permits_write_skew(scene: Scene) -> None:
    _skew(scene, "snapshot")
    assert scene.values("left") | scene.values("right") == {1: -1.0}


def test_serializable_isolation_refuses_write_skew(scene: Scene) -> None:
    with pytest.raises(RetryableConflict) as caught:
        _skew(scene, "serializable")

    assert scene.values("left") == {1: 1.0}
    assert scene.values("right") == {1: -1.0}
    [conflict] = caught.value.conflicts
    assert conflict.table == (scene.namespace, "right")
    assert conflict.redo == (f"what was read of {scene.namespace}.right",)


def test_serializable_refuses_any_change_of_what_it_wrote(scene: Scene) -> None:
    scene.make("t", 1)
    with pytest.raises(RetryableConflict), scene.catalog.begin(isolation="serializable") as tx:
        tx.append("t", rows(2))
        with scene.catalog.begin() as other:
            other.append("t", rows(3))


def test_serializable_permits_changes_of_other_tables(scene: Scene) -> None:
    scene.make("a", 1)
    scene.make("b", 1)
    with scene.catalog.begin(isolation="serializable") as tx:
        tx.append("a", rows(2))
        with scene.catalog.begin() as other:
            other.append("b", rows(2))

    assert scene.ids("a") == [1, 2]


def test_a_serializable_reader_has_nothing_to_send(scene: Scene) -> None:
    """Its reads are of one catalog version, so it is ordered before the concurrent commits."""
    scene.make("t", 1)
    with scene.catalog.begin(isolation="serializable") as tx:
        assert seen(tx) == [1]
        with scene.catalog.begin() as other:
            other.append("t", rows(2))

    assert tx.result.transaction_id is None


def test_an_unknown_isolation_is_refused(scene: Scene) -> None:
    with pytest.raises(InvalidCall, match="expected snapshot or serializable"):
        scene.catalog.begin(isolation="chaos")


# -- keys


@pytest.mark.parametrize("isolation", ["snapshot", "serializable"])
def test_concurrent_merges_insert_a_new_key_once(scene: Scene, isolation: str) -> None:
    scene.make("t", 1)
    with pytest.raises(RetryableConflict), scene.catalog.begin(isolation=isolation) as tx:
        tx.merge("t", rows(7, v=1.0), on="id")
        with scene.catalog.begin(isolation=isolation) as other:
            other.merge("t", rows(7, v=2.0), on="id")

    assert scene.values() == {1: 1.0, 7: 2.0}


def test_merges_of_one_transaction_claim_their_keys_together(scene: Scene) -> None:
    scene.make("t", 1)
    for key in (7, 8):
        with pytest.raises(RetryableConflict, match="same key"), scene.catalog.begin() as tx:
            tx.merge("t", rows(7), on="id")
            tx.merge("t", rows(8), on="id")
            with scene.catalog.begin() as other:
                other.merge("t", rows(key), on="id")
        with scene.catalog.begin() as cleaning:
            cleaning.delete("t", f"id = {key}")


def test_an_append_with_a_merge_conflicts_with_a_merge_of_the_appended_key(scene: Scene) -> None:
    """One Update would claim the merged keys only, so that the appended key could be inserted twice."""
    scene.make("t", 1)
    with pytest.raises(RetryableConflict), scene.catalog.begin() as late:
        late.merge("t", rows(5, v=0.0), on="id")
        with scene.catalog.begin() as tx:
            tx.append("t", rows(5))
            tx.merge("t", rows(6), on="id")

    assert scene.values() == {1: 1.0, 5: 5.0, 6: 6.0}


def test_a_merge_of_very_many_keys_asserts_the_version(scene: Scene) -> None:
    scene.make("t", 1)
    many = rows(*range(2, MAX_CLAIMED_KEYS + 4))
    with pytest.raises(RetryableConflict, match="expected version 1 to be the head"), scene.catalog.begin() as tx:
        tx.merge("t", many, on="id")
        with scene.catalog.begin() as other:
            other.delete("t", "id = 1")

    with scene.catalog.begin() as tx:
        assert tx.merge("t", many, on="id").inserted == many.num_rows
    assert not scene.committed().update.HasField("inserted_rows")


def test_a_merge_that_inserts_nothing_claims_no_key(scene: Scene) -> None:
    scene.make("t", 1, 2)
    with scene.catalog.begin() as tx:
        tx.merge("t", rows(1, v=0.0), on="id")
        with scene.catalog.begin() as other:
            other.append("t", rows(3))

    assert scene.values() == {1: 0.0, 2: 2.0, 3: 3.0}


def test_stock_pylance_commits_after_a_merge_with_claimed_keys(scene: Scene) -> None:
    scene.make("t", 1)
    stale = scene.open()
    merging = scene.open()
    with scene.catalog.begin() as tx:
        tx.merge("t", rows(5, v=0.5), on="id")

    stale.delete("id = 1")
    merging.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows(6))
    assert scene.values() == {5: 0.5, 6: 6.0}
