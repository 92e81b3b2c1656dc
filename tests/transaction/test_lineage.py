"""Lineage (rule P3): manifests that descend from the head, and manifests that only have the right number."""

import itertools
import shutil
from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.lance import DatasetBasePath

from lance_core.errors import CorruptFile
from lance_core.format.manifest import ManifestFile, encode_manifest_file, parse_manifest_file
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.lineage import lineage_break, unseen_deletions
from tests.transaction.tables import Table, make_table, rows


def work(table: Table) -> None:
    """Every kind of commit that pylance makes, on a table of three fragments."""
    dataset = table.open()
    dataset.create_scalar_index("id", "BTREE")  # with it, upserts of some columns rewrite these instead of rows
    dataset.delete("id = 3")
    dataset.delete("id = 4 or id >= 20")
    dataset.update({"x": "x + 1"}, where="id < 6")
    upsert(dataset, rows(8, 14))
    rewrite_columns(dataset, rows(1, 3))
    rewrite_columns(dataset, rows(0, 19))
    table.open().optimize.compact_files()
    dataset = table.open()
    dataset.add_columns({"y": "x * 2"})
    dataset.alter_columns({"path": "y", "data_type": pa.float32()})
    dataset.alter_columns({"path": "s", "name": "s2"})
    dataset.drop_columns(["y"])
    dataset.update_config({"a": "b"})
    dataset.update_metadata({"k": "v"})
    dataset.update_schema_metadata({"k": "v"})
    dataset.update_field_metadata({"id": {"k": "v"}})
    lance.write_dataset(rows(50, 60).rename_columns(["id", "x", "s2"]), table.uri, mode="append")
    dataset = table.open()
    dataset.optimize.optimize_indices()
    dataset.drop_index("id_idx")
    dataset.add_bases([DatasetBasePath(str(table.root / "elsewhere"), name="elsewhere")])
    dataset.delete("id = 52")
    replace_data(table)
    table.open(12).restore()
    lance.write_dataset(rows(0, 5), table.uri, mode="overwrite")
    table.open().delete("true")
    lance.write_dataset(rows(0, 1).slice(0, 0), table.uri, mode="overwrite")
    lance.write_dataset(rows(0, 5), table.uri, mode="append")


def upsert(dataset: lance.LanceDataset, table: pa.Table) -> None:
    dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(table)


def rewrite_columns(dataset: lance.LanceDataset, table: pa.Table) -> None:
    dataset.merge_insert("id").when_matched_update_all().execute(table.drop(["s"]))


def replace_data(table: Table) -> None:
    dataset = table.open()
    dataset.add_columns(pa.field("late", pa.int64()))
    dataset = table.open()
    fragment = dataset.get_fragments()[0]
    column = pa.table({"late": pa.array(range(fragment.physical_rows), pa.int64())})
    from lance.file import LanceFileWriter
    from lance.fragment import DataFile

    with LanceFileWriter(f"{table.uri}/data/late.lance", column.schema, version="2.2") as writer:
        writer.write_batch(column)
    group = lance.LanceOperation.DataReplacementGroup(fragment.fragment_id, DataFile.create(dataset, "late.lance"))
    lance.LanceDataset.commit(dataset, lance.LanceOperation.DataReplacement([group]), read_version=dataset.version)


@pytest.mark.parametrize("stable_row_ids", [False, True])
def test_every_commit_of_pylance_descends_from_the_one_before(tmp_path: Path, stable_row_ids: bool) -> None:
    table = make_table(tmp_path, (0, 10), (10, 20), (20, 30), stable_row_ids=stable_row_ids)
    work(table)
    chain = list(table.manifests().values())
    breaks = {
        f"{after.version} {after.operation}": reason
        for before, after in itertools.pairwise(chain)
        if (reason := lineage_break(before, after)) is not None
    }
    assert breaks == {}
    updates = [file.transaction.update for file in chain if file.transaction is not None]
    assert any(update.fields_modified for update in updates)
    assert {file.operation for file in chain} >= {
        "append",
        "create_index",
        "data_replacement",
        "delete",
        "merge",
        "overwrite",
        "project",
        "reserve_fragments",
        "restore",
        "rewrite",
        "update",
        "update_bases",
        "update_config",
    }


def test_an_index_replaces_segments_of_the_head_alone(tmp_path: Path) -> None:
    """Its writer has replaced the segment of the head before, in a version that is in quarantine."""
    table = make_table(tmp_path, (0, 10))
    table.open().create_scalar_index("id", "BTREE")
    table.open().create_scalar_index("id", "BTREE", replace=True)
    before, after = list(table.manifests().values())[-2:]
    assert after.transaction is not None
    assert before.indices is not None
    assert after.indices is not None
    assert len(after.transaction.create_index.removed_indices) == 1
    assert lineage_break(before, after) is None
    before.indices.indices[0].uuid.uuid = bytes(16)
    after.indices.indices.add().CopyFrom(before.indices.indices[0])
    assert lineage_break(before, after) == "it replaces a segment of an index that the head does not have"


def nested_rows(start: int, stop: int) -> pa.Table:
    ids = range(start, stop)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "p": [{"x": float(i), "q": {"y": i, "z": str(i)}} for i in ids],
            "v": pa.array([[float(i)] * 2 for i in ids], pa.list_(pa.float32(), 2)),
            "l": [[i, i] for i in ids],
        }
    )


@pytest.mark.parametrize("version", ["2.0", "2.2"])
def test_adding_and_dropping_nested_columns(tmp_path: Path, version: str) -> None:
    """Version 2.0 lists a struct beside its children in every data file, later ones the children alone."""
    table = Table(tmp_path)
    lance.write_dataset(nested_rows(0, 20), table.uri, data_storage_version=version)
    lance.write_dataset(nested_rows(20, 40), table.uri, mode="append")
    dataset = table.open()
    dataset.create_scalar_index("id", "BTREE")
    dataset.merge_insert("id").when_matched_update_all().execute(nested_rows(1, 3).select(["id", "p"]))
    dataset.merge_insert("id").when_matched_update_all().execute(nested_rows(4, 6).select(["id", "v", "l"]))
    dataset = table.open()
    dataset.add_columns({"n": "id * 2"})
    dataset.drop_columns(["p.x"])
    dataset.alter_columns({"path": "p.q.y", "data_type": pa.int32()})
    dataset.drop_columns(["p.q"])
    dataset.delete("id = 7")
    dataset.optimize.compact_files()
    chain = list(table.manifests().values())
    assert [lineage_break(before, after) for before, after in itertools.pairwise(chain)] == [None] * (len(chain) - 1)
    updates = [file.transaction.update for file in chain if file.transaction is not None]
    assert sum(bool(update.fields_modified) for update in updates) == 2


def test_a_rewritten_struct_covers_its_children(tmp_path: Path) -> None:
    """Some writers name the column, others its leaves."""
    table = Table(tmp_path)
    lance.write_dataset(nested_rows(0, 20), table.uri)
    table.open().create_scalar_index("id", "BTREE")
    merge = table.open().merge_insert("id").when_matched_update_all()
    merge.execute(nested_rows(1, 3).select(["id", "p"]))
    head, proposed = list(table.manifests().values())[1:]
    assert proposed.transaction is not None
    for fields, expected in (([1], True), ([2, 3], True), ([2], False), ([], False)):
        transaction = pb.Transaction.FromString(proposed.transaction.SerializeToString())
        transaction.update.fields_modified[:] = fields
        named = parse_manifest_file(encode_manifest_file(proposed.manifest, transaction, proposed.indices))
        assert (lineage_break(head, named) is None) is expected


def test_commits_that_were_rebased_descend(tmp_path: Path) -> None:
    table = make_table(tmp_path, (0, 10), (10, 20))
    stale = [table.open() for _ in range(3)]
    table.open().delete("id = 1")
    stale[0].delete("id = 2")
    stale[1].update({"x": "0"}, where="id = 3")
    lance.write_dataset(rows(20, 30), stale[2], mode="append")
    chain = list(table.manifests().values())
    assert [lineage_break(before, after) for before, after in itertools.pairwise(chain)] == [None] * 5
    at = {file.version: file for file in chain}.get
    assert [unseen_deletions(before, after, at) for before, after in itertools.pairwise(chain)] == [None] * 5


@pytest.mark.parametrize("kind", ["delete", "update"])
@pytest.mark.parametrize("is_known", [True, False])
def test_deletions_that_a_writer_has_not_seen(tmp_path: Path, kind: str, is_known: bool) -> None:
    """A stock writer that has looked at another version 2 before does not look at that of the chain."""
    table = make_table(tmp_path, (0, 10))
    shutil.copytree(table.uri, tmp_path / "aside")
    aside = lance.dataset(str(tmp_path / "aside"))
    aside.delete("id = 2") if kind == "delete" else aside.update({"x": "0"}, where="id = 2")
    [stale] = [parse_manifest_file(path.read_bytes()) for path in (tmp_path / "aside/_versions").glob("*613.manifest")]
    table.open().delete("id = 1")
    first, head = table.manifests().values()
    assert stale.transaction is not None
    manifest, transaction = pb.Manifest(), pb.Transaction()
    manifest.CopyFrom(head.manifest)
    transaction.CopyFrom(stale.transaction)
    manifest.version, transaction.read_version = 3, 2
    manifest.max_fragment_id = stale.manifest.max_fragment_id
    del manifest.fragments[:]
    manifest.fragments.extend(stale.manifest.fragments)
    proposed = parse_manifest_file(encode_manifest_file(manifest, transaction, None))
    assert lineage_break(head, proposed) is None
    at = {1: first, 2: head} if is_known else {}
    assert unseen_deletions(head, proposed, at.get) == (
        "rows of fragment 0 were deleted since version 1, at which it found those it deletes"
    )


def compact(dataset: lance.LanceDataset) -> None:
    dataset.optimize.compact_files()


def drop_column(dataset: lance.LanceDataset) -> None:
    dataset.drop_columns(["s"])


ON_TOP: dict[str, Callable[[lance.LanceDataset], object]] = {
    "append": lambda dataset: lance.write_dataset(rows(90, 95), dataset, mode="append"),
    "delete elsewhere": lambda dataset: dataset.delete("id = 1"),
    "delete in the other's rows": lambda dataset: dataset.delete("id = 31"),
    "update": lambda dataset: dataset.update({"x": "7"}, where="id = 31"),
    "merge_insert": lambda dataset: upsert(dataset, rows(31, 33)),
    "rewrite columns": lambda dataset: rewrite_columns(dataset, rows(1, 3)),
    "add columns": lambda dataset: dataset.add_columns({"y": "x"}),
    "drop columns": drop_column,
    "index": lambda dataset: dataset.create_scalar_index("x", "BTREE"),
    "config": lambda dataset: dataset.update_config({"a": "b"}),
}


@pytest.mark.parametrize("unmanaged_commit", ["append", "delete", "update"])
@pytest.mark.parametrize("name", ON_TOP)
def test_a_commit_on_an_unmanaged_version_is_refused(tmp_path: Path, unmanaged_commit: str, name: str) -> None:
    """Our version 4 and an unmanaged version 4 grew from version 3; pylance builds version 5 on the unmanaged one."""
    ours = make_table(tmp_path / "a", (0, 10), (10, 20))
    ours.open().create_scalar_index("id", "BTREE")
    theirs = ours.copy(tmp_path / "b")
    lance.write_dataset(rows(20, 30), ours.uri, mode="append")
    unmanaged = theirs.open()
    match unmanaged_commit:
        case "append":
            lance.write_dataset(rows(30, 40), unmanaged, mode="append")
        case "delete":
            unmanaged.delete("id = 2")
        case "update":
            unmanaged.update({"x": "0"}, where="id = 12")
    ON_TOP[name](theirs.open())
    proposed = theirs.head()
    assert proposed.version == 5
    assert lineage_break(theirs.manifests()[4], proposed) is None
    assert lineage_break(ours.head(), proposed) is not None


def test_a_compaction_of_unmanaged_rows_is_refused(tmp_path: Path) -> None:
    ours = make_table(tmp_path / "a", (0, 10), (10, 20))
    theirs = ours.copy(tmp_path / "b")
    lance.write_dataset(rows(20, 30), ours.uri, mode="append")
    ours.open().update_config({"a": "b"})
    lance.write_dataset(rows(30, 40), theirs.uri, mode="append")
    compact(theirs.open())
    assert theirs.head().operation == "rewrite"
    reason = lineage_break(ours.head(), theirs.head())
    assert reason == "it rewrites another fragment 2 than that of version 4"


def test_a_changed_fragment_is_one_of_the_head(tmp_path: Path) -> None:
    """Stock writers leave out a fragment that is not there any more, and add the rows that they moved from it."""
    table = make_table(tmp_path, (0, 10), (10, 20))
    table.open().update({"x": "0"}, where="id = 12")
    head, proposed = list(table.manifests().values())[-2:]
    assert proposed.transaction is not None
    transaction = pb.Transaction.FromString(proposed.transaction.SerializeToString())
    transaction.update.updated_fragments[0].id = 8
    manifest = pb.Manifest.FromString(proposed.manifest.SerializeToString())
    manifest.fragments[1].CopyFrom(head.manifest.fragments[1])
    moved = parse_manifest_file(encode_manifest_file(manifest, transaction))
    assert lineage_break(head, moved) == "it changes fragment 8, which version 2 does not have"


def test_an_index_is_one_of_the_head_or_of_the_transaction(tmp_path: Path) -> None:
    ours = make_table(tmp_path / "a", (0, 10))
    theirs = ours.copy(tmp_path / "b")
    ours.open().update_config({"a": "b"})
    theirs.open().create_scalar_index("x", "BTREE")
    lance.write_dataset(rows(10, 20), theirs.uri, mode="append")
    head, proposed = ours.head(), edited(theirs.head(), lambda m: m.config.update({"a": "b"}))
    assert lineage_break(head, proposed) == "it has an index that neither the head has nor the transaction makes"


@pytest.mark.parametrize("kind", ["overwrite", "restore"])
def test_overwrite_and_restore_discard_by_design(tmp_path: Path, kind: str) -> None:
    ours = make_table(tmp_path / "a", (0, 10), (10, 20))
    theirs = ours.copy(tmp_path / "b")
    lance.write_dataset(rows(20, 30), ours.uri, mode="append")
    lance.write_dataset(rows(30, 40), theirs.uri, mode="append")
    if kind == "overwrite":
        lance.write_dataset(rows(0, 1), theirs.uri, mode="overwrite")
    else:
        theirs.open(1).restore()
    assert lineage_break(ours.head(), theirs.head()) is None


@pytest.fixture
def chain(tmp_path: Path) -> tuple[ManifestFile, ManifestFile]:
    """A head with deletions, and an append on it."""
    table = make_table(tmp_path, (0, 10), (10, 20))
    table.open().delete("id = 3")
    lance.write_dataset(rows(20, 30), table.uri, mode="append")
    manifests = table.manifests()
    return manifests[3], manifests[4]


def again(file: ManifestFile, lazily: bool) -> ManifestFile:
    return parse_manifest_file(encode_manifest_file(file.manifest, file.transaction, file.indices), lazily=lazily)


def edited(file: ManifestFile, edit: Callable[[pb.Manifest], object]) -> ManifestFile:
    manifest = pb.Manifest.FromString(file.manifest.SerializeToString())
    edit(manifest)
    return parse_manifest_file(encode_manifest_file(manifest, file.transaction, file.indices))


def swap_file(manifest: pb.Manifest) -> None:
    manifest.fragments[1].files[0].path = "other.lance"


def drop_first(manifest: pb.Manifest) -> None:
    del manifest.fragments[0]


def double_last(manifest: pb.Manifest) -> None:
    manifest.fragments.append(manifest.fragments[-1])


def reuse_id(manifest: pb.Manifest) -> None:
    manifest.fragments[2].id = 1


EDITS: dict[str, tuple[Callable[[pb.Manifest], object], str]] = {
    "fragment dropped": (drop_first, "fragment 0 of version 3 is missing"),
    "fragment twice": (double_last, "it has fragment 2 twice"),
    "id used again": (reuse_id, "it has fragment 1 twice"),
    "other data file": (swap_file, "no longer provides field 0"),
    "deletions undone": (lambda m: m.fragments[0].ClearField("deletion_file"), "its deletion file changed"),
    "other deletions": (lambda m: setattr(m.fragments[0].deletion_file, "id", 1), "its deletion file changed"),
    "rows": (lambda m: setattr(m.fragments[1], "physical_rows", 11), "it has 11 rows, not 10"),
    "fragment mark": (lambda m: setattr(m, "max_fragment_id", 0), "went back from 1 to 0"),
    "branch": (lambda m: setattr(m, "branch", "dev"), "it belongs to branch dev, the head to main"),
    "fragment of another writer": (
        lambda m: m.fragments.add(id=9, physical_rows=1).files.add(path="more.lance", fields=[0]),
        "fragment 9 is neither in version 3 nor new nor named",
    ),
    "config": (lambda m: m.config.update({"a": "b"}), "its config is not that of the head"),
    "table metadata": (lambda m: m.table_metadata.update({"a": "b"}), "its table metadata is not that of the head"),
    "schema": (lambda m: setattr(m.fields[1], "name", "other"), "its schema is not that of the head"),
    "base path": (lambda m: m.base_paths.add(id=7, path="/elsewhere"), "its base paths are not those of the head"),
    "data file added": (
        lambda m: m.fragments[1].files.add(path="more.lance", fields=[7]),
        "data file more.lance was added",
    ),
}


@pytest.mark.parametrize("lazily", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("name", EDITS)
def test_changes_that_an_append_cannot_make_are_refused(
    chain: tuple[ManifestFile, ManifestFile], name: str, lazily: tuple[bool, bool]
) -> None:
    head, proposed = chain
    edit, expected = EDITS[name]
    assert lineage_break(again(head, lazily[0]), again(proposed, lazily[1])) is None
    reason = lineage_break(again(head, lazily[0]), again(edited(proposed, edit), lazily[1]))
    assert reason is not None
    assert expected in reason


def test_an_append_to_a_head_that_was_read_lazily_leaves_its_fragments_encoded(
    chain: tuple[ManifestFile, ManifestFile],
) -> None:
    head, proposed = (again(file, lazily=True) for file in chain)
    assert lineage_break(head, proposed) is None
    assert isinstance(head.outline, pb.ManifestOutline)
    assert isinstance(proposed.outline, pb.ManifestOutline)


def test_a_new_fragment_that_cannot_be_decoded_is_detected(chain: tuple[ManifestFile, ManifestFile]) -> None:
    head, proposed = (again(file, lazily=True) for file in chain)
    assert isinstance(proposed.outline, pb.ManifestOutline)
    proposed.outline.fragments[-1] = b"\xff"
    with pytest.raises(CorruptFile, match="version 4 has a fragment that cannot be decoded"):
        lineage_break(head, proposed)


def test_the_next_row_id_does_not_decrease(tmp_path: Path) -> None:
    table = make_table(tmp_path, (0, 10), (10, 20), stable_row_ids=True)
    head, proposed = table.manifests().values()
    assert lineage_break(head, edited(proposed, lambda m: setattr(m, "next_row_id", 9))) is not None
    reason = lineage_break(head, edited(proposed, lambda m: setattr(m.fragments[0], "inline_row_ids", b"")))
    assert reason == "fragment 0 is not that of version 1: its row ids changed"


def test_a_fragment_is_new_only_above_the_mark(tmp_path: Path) -> None:
    table = make_table(tmp_path, (0, 10), (10, 20))
    table.open().delete("id >= 10")  # fragment 1 is gone, its id is used up
    lance.write_dataset(rows(20, 30), table.uri, mode="append")
    head, proposed = list(table.manifests().values())[-2:]
    assert lineage_break(head, proposed) is None
    reused = edited(proposed, lambda m: setattr(m.fragments[1], "id", 1))
    assert lineage_break(head, reused) == "fragment 1 is neither in version 3 nor new nor named"


def test_a_delete_may_not_shrink_the_deletions(tmp_path: Path) -> None:
    table = make_table(tmp_path, (0, 10))
    table.open().delete("id in (1, 2, 3)")
    table.open().delete("id = 4")
    head, proposed = list(table.manifests().values())[-2:]
    shrunk = edited(proposed, lambda m: setattr(m.fragments[0].deletion_file, "num_deleted_rows", 2))
    assert lineage_break(head, proposed) is None
    assert lineage_break(head, shrunk) == "fragment 0 is not that of version 2: its deletion file changed"


def test_a_clone_is_only_a_first_version(tmp_path: Path) -> None:
    table = make_table(tmp_path, (0, 10))
    table.open().create_branch("dev")
    clone = table.branch("dev").head()
    assert clone.operation == "clone"
    assert lineage_break(table.head(), clone) == "a Clone can only be the first version of a branch or table"
    shutil.rmtree(table.path)


def test_without_a_transaction_no_fragment_may_change(tmp_path: Path) -> None:
    table = make_table(tmp_path, (0, 10))
    table.open().delete("id = 1")
    head, proposed = table.manifests().values()
    bare = parse_manifest_file(encode_manifest_file(proposed.manifest, None))
    assert lineage_break(head, proposed) is None
    assert lineage_break(head, bare) is not None
