"""Calls of a transaction, alone and in pairs: visible inside at once, outside after the commit."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

import lance
import pyarrow as pa
import pyarrow.dataset
import pytest

from namespace_client import CompactionCounts, CompactionOptions, InvalidCall, MergeCounts, MultiTableTransaction
from table_data.batch_operations import TableDeclaration
from tests.client.scene import SCHEMA, Scene, rows, seen

Change = Callable[[MultiTableTransaction], object]

CHANGES: dict[str, tuple[Change, list[int], str]] = {
    "append": (lambda tx: tx.append("t", rows(50, 51)), [*range(20), 50, 51], "append"),
    "overwrite": (lambda tx: tx.overwrite("t", rows(7)), [7], "overwrite"),
    "delete": (lambda tx: tx.delete("t", "id < 12"), [*range(12, 20)], "delete"),
    "update": (lambda tx: tx.update("t", {"id": "id + 100"}, where="id >= 18"), [*range(18), 118, 119], "update"),
    "upsert": (lambda tx: tx.merge("t", rows(3, 60, v=1.0), on="id"), [*range(20), 60], "update"),
    "add columns": (lambda tx: tx.add_columns("t", {"w": "v * 2"}), [*range(20)], "merge"),
    "drop columns": (lambda tx: tx.drop_columns("t", ["v"]), [*range(20)], "project"),
    "index": (lambda tx: tx.create_index("t", "id", "BTREE"), [*range(20)], "create_index"),
    "restore": (lambda tx: tx.restore("t", 1), [*range(10)], "restore"),
    "compact": (lambda tx: tx.compact("t"), [*range(20)], "rewrite"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_one_call_is_one_transaction_of_its_kind(scene: Scene, name: str) -> None:
    change, expected, operation = CHANGES[name]
    scene.make("t", *range(20))

    with scene.catalog.begin(message=f"to {name}") as tx:
        change(tx)
        assert seen(tx) == expected
        assert scene.ids() == [*range(20)], "visible before it is committed"

    assert scene.ids() == expected
    assert scene.operation() == operation
    assert scene.version() == 3
    assert scene.committed().transaction_properties["__lance_commit_message"] == f"to {name}"
    [table] = tx.result.tables
    assert (table.version, table.rebased, table.new) == (3, False, False)
    assert tx.result.catalog_version == scene.catalog_version()


REFUSED = {
    ("add columns", "add columns"),
    ("drop columns", "drop columns"),
    ("drop columns", "add columns"),
    ("drop columns", "append"),
    ("drop columns", "upsert"),
    ("index", "index"),
}
"""Pairs whose second call is refused after the first."""


@pytest.mark.combinations
@pytest.mark.parametrize(
    ("first", "second"), [pair for pair in itertools.product(CHANGES, CHANGES) if pair not in REFUSED]
)
def test_two_calls_on_one_table(scene: Scene, first: str, second: str) -> None:
    """The second call applies to the result of the first. Stock pylance reads the table and commits to it."""
    scene.make("t", *range(20))

    with scene.catalog.begin() as tx:
        CHANGES[first][0](tx)
        CHANGES[second][0](tx)
        expected = seen(tx)

    assert scene.ids() == expected
    scene.open().delete("id = 7")
    assert scene.ids() == [number for number in expected if number != 7]


@pytest.mark.parametrize(("first", "second"), sorted(REFUSED))
def test_a_refused_call_keeps_the_call_before_it(scene: Scene, first: str, second: str) -> None:
    scene.make("t", *range(20))

    with scene.catalog.begin() as tx:
        CHANGES[first][0](tx)
        with pytest.raises((InvalidCall, OSError, ValueError)):
            CHANGES[second][0](tx)

    assert scene.version() == 3
    assert scene.operation() == CHANGES[first][2]


def test_many_tables_become_visible_in_one_catalog_version(scene: Scene) -> None:
    scene.make("features", 1, 2)
    scene.make("labels", 1, 2)
    before = scene.catalog_version()

    with scene.catalog.begin() as tx:
        tx.append("features", rows(3))
        tx.delete("labels", "id = 1")
        tx.create("embeddings", pa.table({"id": [1], "e": [[0.5, 0.5]]}))

    assert tx.result.catalog_version == before + 1
    pins = scene.catalog.access.pins(before).tables
    assert pins[scene.namespace, "features"].version == 1
    assert (scene.namespace, "embeddings") not in pins
    assert scene.ids("features") == [1, 2, 3]
    assert scene.ids("labels") == [2]
    assert scene.open("embeddings").count_rows() == 1


def test_a_new_table_with_everything_done_to_it_is_one_version(scene: Scene) -> None:
    with scene.catalog.begin() as tx:
        assert not tx.exists("t")
        tx.create("t", schema=SCHEMA, properties={"owner": "tests"})
        tx.append("t", rows(1, 2, 3))
        tx.append("t", [{"id": 4, "v": 4.0}])
        assert tx.exists("t")
        assert seen(tx) == [1, 2, 3, 4]

    assert scene.version() == 1
    assert scene.ids() == [1, 2, 3, 4]
    state = scene.catalog.access.table((scene.namespace, "t"))
    assert state is not None
    assert state.properties == {"owner": "tests"}


def test_a_new_table_whose_rows_are_changed_again(scene: Scene) -> None:
    with scene.catalog.begin() as tx:
        tx.create("t", rows(1, 2, 3))
        tx.delete("t", "id = 2")
        tx.add_columns("t", {"w": "v + 1"})
        tx.create_index("t", "w", "BTREE")

    assert scene.open().to_table().to_pylist() == [{"id": 1, "v": 1.0, "w": 2.0}, {"id": 3, "v": 3.0, "w": 4.0}]
    assert [index.name for index in scene.open().describe_indices()] == ["w_idx"]


def test_a_table_that_was_only_declared_gets_its_first_version(scene: Scene) -> None:
    location = f"{scene.catalog.access.state().root}/0123abcd_{scene.namespace}$t"
    declare = TableDeclaration((scene.namespace, "t"), location, {})
    scene.catalog.access.commit([declare], idempotency_key=location, message=None)

    with scene.catalog.begin() as tx:
        with pytest.raises(InvalidCall, match="has no version yet: create it"):
            tx.append("t", rows(1))
        tx.create("t", rows(1))

    assert scene.ids() == [1]
    assert scene.uri().endswith(f"0123abcd_{scene.namespace}$t")


@pytest.mark.parametrize("declared", [False, True])
def test_a_new_table_whose_rows_keep_their_ids(scene: Scene, declared: bool) -> None:
    if declared:
        location = f"{scene.catalog.access.state().root}/0123abcd_{scene.namespace}$t"
        declare = TableDeclaration((scene.namespace, "t"), location, {})
        scene.catalog.access.commit([declare], idempotency_key=location, message=None)
    with scene.catalog.begin() as tx:
        tx.create("t", rows(1, 2), stable_row_ids=True)
        tx.append("t", rows(3))
    before = {row["id"]: row["_rowid"] for row in scene.open().to_table(with_row_id=True).to_pylist()}

    with scene.catalog.begin() as tx:
        tx.update("t", {"v": "v + 1"}, where="id > 1")
        tx.compact("t")

    assert scene.open().has_stable_row_ids
    assert {row["id"]: row["_rowid"] for row in scene.open().to_table(with_row_id=True).to_pylist()} == before
    assert scene.values() == {1: 1.0, 2: 3.0, 3: 4.0}


def test_an_index_covers_the_rows_of_its_own_transaction(scene: Scene) -> None:
    scene.make("t", *range(20))
    with scene.catalog.begin() as tx:
        tx.append("t", rows(50))
        tx.create_index("t", "id", "BTREE")

    dataset = scene.open()
    assert "ScalarIndexQuery" in dataset.scanner(filter="id = 50").explain_plan()
    assert dataset.to_table(filter="id = 50").num_rows == 1
    [index] = dataset.describe_indices()
    assert index.num_rows_indexed == 21


def test_a_vector_index(scene: Scene) -> None:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([float(n % 13) for n in range(4096)], pa.float32()), 16)
    with scene.catalog.begin() as tx:
        tx.create("t", pa.table({"id": list(range(256)), "e": vectors}))
        tx.create_index("t", "e", "IVF_FLAT", num_partitions=2)

    nearest = scene.open().to_table(nearest={"column": "e", "q": vectors[5].values, "k": 1})
    assert nearest.column("_distance").to_pylist() == [0.0]


def test_a_full_text_index(scene: Scene) -> None:
    with scene.catalog.begin() as tx:
        tx.create("t", pa.table({"id": [1, 2], "text": ["quick fox", "slow dog"]}))
        tx.create_index("t", "text", "INVERTED", with_position=True)

    found = scene.open().scanner(full_text_query="fox")
    assert "MatchQuery" in found.explain_plan()
    assert found.to_table().column("id").to_pylist() == [1]


def test_an_index_is_replaced_only_with_replace(scene: Scene) -> None:
    scene.make("t", 1, 2)
    with scene.catalog.begin() as tx:
        tx.create_index("t", "id", "BTREE")
    [old] = scene.open().describe_indices()

    with scene.catalog.begin() as tx:
        with pytest.raises(InvalidCall, match="index 'id_idx' exists"):
            tx.create_index("t", "id", "BITMAP", name="id_idx")
        tx.create_index("t", "id", "BITMAP", name="id_idx", replace=True)

    [new] = scene.open().describe_indices()
    assert (old.index_type, new.index_type) == ("BTree", "Bitmap")


def test_merges_with_conditions(scene: Scene) -> None:
    scene.make("t", *range(5))
    with scene.catalog.begin() as tx:
        changed = tx.merge("t", rows(1, 2, v=9.0), on="id", condition="target.v > 1")
        deleted = tx.merge("t", rows(3, 7), on="id", matched="delete", not_matched="ignore")
        pruned = tx.merge(
            "t", rows(4), on="id", matched="keep", not_matched_by_source="delete", delete_condition="id < 1"
        )
    assert (changed.updated, deleted.deleted, pruned.deleted) == (1, 1, 1)
    assert scene.values() == {1: 1.0, 2: 9.0, 4: 4.0}


def test_compaction_rewrites_indices(scene: Scene) -> None:
    scene.make("t", *range(20))
    with scene.catalog.begin() as tx:
        tx.create_index("t", "id", "BTREE")

    with scene.catalog.begin() as tx:
        tx.append("t", rows(50))
        tx.delete("t", "id = 3")
        assert tx.compact("t") == CompactionCounts(removed_fragments=2, added_fragments=1)
        assert tx.table("t").count_rows("id = 12") == 1

    dataset = scene.open()
    assert len(dataset.get_fragments()) == 2, "rows that no index covers are not joined with those that one does"
    assert "ScalarIndexQuery" in dataset.scanner(filter="id = 12").explain_plan()
    assert scene.ids() == [0, 1, 2, *range(4, 20), 50]
    assert dataset.to_table(filter="id = 12").num_rows == 1
    assert dataset.describe_indices()[0].num_rows_indexed == 19


def test_a_compaction_without_candidates_changes_nothing(scene: Scene) -> None:
    scene.make("t", *range(10))
    with scene.catalog.begin() as tx:
        assert tx.compact("t") == CompactionCounts(0, 0)
        with pytest.raises(ValueError, match="expected at least 1"):
            tx.compact("t", CompactionOptions(target_rows_per_fragment=0))
    assert scene.version() == 1


def test_merges_of_other_kinds(scene: Scene) -> None:
    scene.make("t", *range(6))
    with scene.catalog.begin() as tx:
        added = tx.merge("t", rows(5, 6, v=0.5), on="id", matched="keep")
        changed = tx.merge("t", rows(1, 7, v=0.25), on="id", not_matched="ignore")
        mirrored = tx.merge("t", rows(0, 1, 5, v=9.0), on=["id"], matched="keep", not_matched_by_source="delete")

    assert added == MergeCounts(inserted=1, updated=0, deleted=0)
    assert changed == MergeCounts(inserted=0, updated=1, deleted=0)
    assert mirrored == MergeCounts(inserted=0, updated=0, deleted=4)
    assert scene.values() == {0: 0.0, 1: 0.25, 5: 5.0}


def test_columns_that_rows_do_not_name_keep_their_values(scene: Scene) -> None:
    with scene.catalog.begin() as tx:
        tx.create("t", [{"id": 1, "v": 1.0, "note": "a"}, {"id": 2, "v": 2.0, "note": "b"}])

    with scene.catalog.begin() as tx:
        tx.merge("t", [{"id": 1, "v": 0.5}], on="id", not_matched="ignore")
        tx.merge("t", {"id": [2], "note": ["c"]}, on="id", not_matched="ignore")
        tx.append("t", [{"id": 3}, {"id": 4, "note": "d"}])

    found = {row["id"]: (row["v"], row["note"]) for row in scene.open().to_table().to_pylist()}
    assert found == {1: (0.5, "a"), 2: (2.0, "c"), 3: (None, None), 4: (None, "d")}


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(rows(5), id="table"),
        pytest.param(rows(5).to_batches()[0], id="batch"),
        pytest.param({"id": [5], "v": [5.0]}, id="dict of columns"),
        pytest.param([{"id": 5, "v": 5.0}], id="list of rows"),
        pytest.param(rows(5).to_pandas(), id="pandas"),
        pytest.param(pa.dataset.dataset(rows(5)), id="dataset"),
    ],
)
def test_rows_of_every_supported_type(scene: Scene, data: object) -> None:
    scene.make("t", 1)
    with scene.catalog.begin() as tx:
        tx.create("made", data)
        assert tx.append("t", data) == 1
        assert tx.append("t", rows(6).to_reader()) == 1
        assert tx.append("t", tx.table("made").to_pylance()) == 1
    assert scene.ids() == [1, 5, 5, 6]
    assert scene.open("made").schema == SCHEMA


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_the_file_format_of_the_table_is_kept(scene: Scene, version: str) -> None:
    lance.write_dataset(
        rows(*range(10)),
        namespace_client=scene.stock(),
        table_id=[scene.namespace, "t"],
        mode="create",
        data_storage_version=version,
    )
    with scene.catalog.begin() as tx:
        tx.append("t", rows(10))
        tx.update("t", {"v": "0"}, where="id = 1")
        tx.merge("t", rows(2, 11), on="id")
        tx.add_columns("t", {"w": "v"})
        tx.compact("t")
    assert scene.open().data_storage_version == version
    assert scene.ids() == [*range(12)]

    with scene.catalog.begin() as tx:
        tx.overwrite("t", rows(1))
    assert scene.open().data_storage_version == version


def test_blobs_are_merged_and_not_updated(scene: Scene) -> None:
    """A scan returns the position of a blob, which must not be written instead of its bytes."""
    blob = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    schema = pa.schema([("id", pa.int64()), blob])
    lance.write_dataset(
        pa.table({"id": [1, 2], "blob": [b"one", b"two"]}, schema=schema),
        namespace_client=scene.stock(),
        table_id=[scene.namespace, "t"],
        mode="create",
        data_storage_version="2.0",
    )
    with scene.catalog.begin() as tx:
        with pytest.raises(InvalidCall, match="blob columns \\['blob'\\]"):
            tx.update("t", {"id": "id + 1"})
        tx.append("t", pa.table({"id": [3], "blob": [b"three"]}, schema=schema))
        tx.delete("t", "id = 1")

    blobs = scene.open().take_blobs("blob", indices=[0, 1])
    assert [blob.readall() for blob in blobs] == [b"two", b"three"]


def test_calls_without_effect_are_not_sent(scene: Scene) -> None:
    scene.make("t", 1, 2)
    before = scene.catalog_version()
    with scene.catalog.begin() as tx:
        assert tx.append("t", rows()) == 0
        assert tx.delete("t", "id = 9") == 0
        assert tx.update("t", {"v": "0"}, where="id = 9") == 0
        assert tx.merge("t", rows(9), on="id", not_matched="ignore") == MergeCounts(0, 0, 0)

    assert scene.catalog_version() == before
    assert tx.result.transaction_id is None
    assert tx.result.tables == ()


def test_columns_computed_by_sql_by_a_function_and_of_nulls(scene: Scene) -> None:
    scene.make("t", *range(12))

    def squared(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch({"square": pa.array([number**2 for number in batch.column("id").to_pylist()])})

    with scene.catalog.begin() as tx:
        tx.delete("t", "id = 3")
        tx.add_columns("t", {"half": "v / 2"})
        tx.add_columns("t", squared, read_columns=["id"])
        for columns in ({"z": "id"}, pa.schema([("z", pa.int64())])):
            with pytest.raises(InvalidCall, match="read_columns: expected with a function"):
                tx.add_columns("t", columns, read_columns=["id"])
        tx.add_columns("t", pa.schema([("note", pa.string()), ("place", pa.struct([("x", pa.int32())]))]))
        tx.append("t", [{"id": 20, "v": 0.0, "half": 0.0, "square": 400, "note": "n", "place": {"x": 1}}])

    found = {row["id"]: row for row in scene.open().to_table().to_pylist()}
    assert sorted(found) == [0, 1, 2, *range(4, 12), 20]
    assert found[11] == {"id": 11, "v": 11.0, "half": 5.5, "square": 121, "note": None, "place": None}
    assert found[20]["place"] == {"x": 1}


def test_columns_for_a_table_without_rows(scene: Scene) -> None:
    scene.make("t")
    with scene.catalog.begin() as tx:
        tx.add_columns("t", {"w": "v * 2"})
        with pytest.raises(InvalidCall, match="give a schema instead"):
            tx.add_columns("t", lambda batch: batch)
        tx.append("t", [{"id": 1, "v": 1.0, "w": 2.0}])

    assert scene.open().to_table().to_pylist() == [{"id": 1, "v": 1.0, "w": 2.0}]


def test_a_dropped_column_name_can_be_used_again(scene: Scene) -> None:
    scene.make("t", 1, 2)
    with scene.catalog.begin() as tx:
        tx.drop_columns("t", ["v"])
        tx.add_columns("t", {"v": "cast(id as string)"})

    assert scene.open().to_table().column("v").to_pylist() == ["1", "2"]


@pytest.mark.parametrize("stable_row_ids", [False, True])
def test_rows_keep_their_stable_row_ids(scene: Scene, stable_row_ids: bool) -> None:
    """On a table made by stock pylance, with and without stable row ids."""
    lance.write_dataset(
        rows(*range(10)),
        namespace_client=scene.stock(),
        table_id=[scene.namespace, "t"],
        mode="create",
        enable_stable_row_ids=stable_row_ids,
    )
    before = {row["id"]: row["_rowid"] for row in scene.open().to_table(with_row_id=True).to_pylist()}

    with scene.catalog.begin() as tx:
        tx.append("t", rows(20, 21))
        tx.update("t", {"v": "v + 1"}, where="id in (2, 3)")
        tx.merge("t", rows(4, 30, v=0.0), on="id")
        tx.delete("t", "id = 5")

    table = scene.open().to_table(with_row_id=True).to_pylist()
    after = {row["id"]: row["_rowid"] for row in table}
    assert sorted(after) == [0, 1, 2, 3, 4, 6, 7, 8, 9, 20, 21, 30]
    assert len(set(after.values())) == len(after)
    assert {row["id"]: row["v"] for row in table}[2] == 3.0
    if stable_row_ids:
        assert all(after[number] == before[number] for number in before if number != 5)


@pytest.mark.parametrize("stable_row_ids", [False, True])
def test_rows_written_by_the_block_are_changed_again(scene: Scene, stable_row_ids: bool) -> None:
    lance.write_dataset(
        rows(*range(10)),
        namespace_client=scene.stock(),
        table_id=[scene.namespace, "t"],
        mode="create",
        enable_stable_row_ids=stable_row_ids,
    )
    with scene.catalog.begin() as tx:
        tx.merge("t", rows(9, 10, 11, v=0.5), on="id")
        tx.merge("t", rows(10, 11, 12, v=0.75), on="id")
        tx.update("t", {"v": "v * 100"}, where="id >= 11")
        tx.delete("t", "id = 10")

    assert scene.values() == {**{n: float(n) for n in range(9)}, 9: 0.5, 11: 75.0, 12: 75.0}


def test_a_branch_is_changed_independently_of_its_table(scene: Scene) -> None:
    scene.make("t", 1, 2)
    lance.dataset(namespace_client=scene.stock(), table_id=[scene.namespace, "t"]).create_branch("dev")

    with scene.catalog.begin() as tx:
        tx.append("t", rows(3), branch="dev")
        tx.delete("t", "id = 1", branch="dev")
        tx.compact("t", branch="dev")
        tx.append("t", rows(4))
        assert sorted(tx.table("t", branch="dev").to_table().column("id").to_pylist()) == [2, 3]
        with pytest.raises(InvalidCall, match="branch"):
            tx.append("t", rows(5), branch="other")

    assert scene.ids() == [1, 2, 4]
    dev = scene.open().checkout_version(("dev", None))
    dev.validate()
    assert sorted(dev.to_table().column("id").to_pylist()) == [2, 3]
    assert [(table.branch, table.version) for table in tx.result.tables] == [("dev", 4), (None, 2)]


def test_earlier_versions_are_read_and_restored_by_tag_and_number(scene: Scene) -> None:
    scene.make("t", 1, 2)
    scene.open().tags.create("release", 1)
    with scene.catalog.begin() as tx:
        tx.overwrite("t", rows(9))

    with scene.catalog.begin() as tx:
        assert tx.table("t", tag="release").to_table().num_rows == 2
        assert tx.table("t", version=1).count_rows("id = 2") == 1
        with pytest.raises(InvalidCall, match="version 7"):
            tx.table("t", version=7)
        with pytest.raises(InvalidCall, match="release2"):
            tx.table("t", tag="release2")
        tx.restore("t", tag="release")
        tx.append("t", rows(3))
        assert seen(tx) == [1, 2, 3]

    assert scene.ids() == [1, 2, 3]


def test_a_reader_has_version_schema_and_counts(scene: Scene) -> None:
    scene.make("t", *range(12))
    with scene.catalog.begin() as tx:
        reader = tx.table("t")
        assert reader.version == 2
        tx.append("t", rows(50))
        assert reader.version == 2
        assert reader.schema == SCHEMA
        assert reader.count_rows() == 13
        assert reader.count_rows("id > 10") == 2
        assert reader.to_table(columns=["v"], filter="id = 50").to_pylist() == [{"v": 50.0}]


@pytest.mark.parametrize("changed", [False, True])
def test_the_pylance_handle_is_read_only(scene: Scene, changed: bool) -> None:
    """A commit through the handle would bypass the catalog or make the table unreadable."""
    scene.make("t", 1, 2)
    with scene.catalog.begin() as tx:
        if changed:
            tx.append("t", rows(3))
        handle = tx.table("t").to_pylance()
        for commit in (
            lambda: handle.delete("id = 1"),
            lambda: handle.update({"v": "0"}),
            lambda: handle.insert(rows(4)),
            lambda: handle.merge_insert("id"),
            lambda: handle.add_columns({"w": "v"}),
            lambda: handle.create_scalar_index("id", "BTREE"),
            lambda: handle.optimize.compact_files(),
            lambda: handle.restore(),
        ):
            with pytest.raises(InvalidCall, match="is for reading"):
                commit()

    assert scene.version() == (2 if changed else 1)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda tx: tx.append("absent", rows(1)), "no such table"),
        (lambda tx: tx.table("absent"), "no such table"),
        (lambda tx: tx.create("t", rows(1)), "exists: overwrite it"),
        (lambda tx: tx.create("new"), "needs rows or a schema"),
        (lambda tx: tx.append("t", 5), "rows of type int"),
        (lambda tx: tx.update("t", {"absent": "1"}), "update of columns"),
        (lambda tx: tx.update("t", {}), "update of columns"),
        (lambda tx: tx.merge("t", rows(1), on="absent"), "merge on"),
        (lambda tx: tx.merge("t", pa.table({"v": [1.0]}), on="id"), "the rows have no column 'id'"),
        (
            lambda tx: tx.merge("t", rows(1), on="id", matched="overwrite"),
            "matched 'overwrite': expected one of update",
        ),
        (lambda tx: tx.merge("t", rows(1), on="id", matched="keep", condition="1 = 1"), "condition '1 = 1'"),
        (lambda tx: tx.merge("t", rows(1), on="id", delete_condition="id = 1"), "delete_condition 'id = 1'"),
        (lambda tx: tx.drop_columns("t", ["absent"]), "drop_columns"),
        (lambda tx: tx.drop_columns("t", ["id", "v"]), "expected some, not all"),
        (lambda tx: tx.add_columns("t", {"v": "1"}), "'v'"),
        (lambda tx: tx.restore("t", 9), "restore of version 9"),
        (lambda tx: tx.restore("t"), "a version or a tag"),
        (lambda tx: tx.append("", rows(1)), "expected a name"),
    ],
)
def test_an_invalid_call_is_refused_at_once(scene: Scene, change: Change, reason: str) -> None:
    """It changes nothing, and the block goes on."""
    scene.make("t", 1)
    with scene.catalog.begin() as tx:
        with pytest.raises(InvalidCall, match=reason):
            change(tx)
        tx.append("t", rows(2))

    assert scene.ids() == [1, 2]
    assert scene.version() == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda tx: tx.append("t", pa.table({"id": ["no number"]})),
        lambda tx: tx.delete("t", "no_column = 1"),
        lambda tx: tx.update("t", {"v": "nonsense("}),
        lambda tx: tx.merge("t", pa.table({"id": [1], "absent": [1]}), on="id"),
        lambda tx: tx.merge("t", rows(1), on="id", matched="fail"),
        lambda tx: tx.create_index("t", "id", "NO_SUCH_INDEX"),
    ],
)
def test_errors_of_pylance_name_the_call(scene: Scene, change: Change) -> None:
    scene.make("t", 1)
    with scene.catalog.begin() as tx:
        with pytest.raises(InvalidCall, match=rf"^{scene.namespace}\.t: \w+") as refused:
            change(tx)
        assert not re.search(r"\.rs\b|/home/|\.cargo", str(refused.value))
        tx.append("t", rows(2))

    assert scene.ids() == [1, 2]


def test_a_transaction_is_used_once_and_in_its_block(scene: Scene) -> None:
    tx = scene.catalog.begin()
    with pytest.raises(InvalidCall, match="has not begun"):
        tx.exists("t")
    with tx:
        tx.create("t", rows(1))
        with pytest.raises(InvalidCall, match="has not been committed"):
            _ = tx.result
    with pytest.raises(InvalidCall, match="is over"):
        tx.append("t", rows(2))
    with pytest.raises(InvalidCall, match="used once"), tx:
        pass
    with pytest.raises(InvalidCall, match="nothing to send"):
        tx.resend()
    assert scene.ids() == [1]


def _stock(scene: Scene) -> object:
    if isinstance(scene.target, str):
        from lance.namespace import RestNamespace

        return RestNamespace(uri=scene.target)
    return scene.target
