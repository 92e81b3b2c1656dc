"""Manifests built by this engine are those of pylance, and invalid transactions are refused."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from lance_core.data import schema_fields
from lance_core.errors import InvalidTransaction, UnsupportedFeature
from lance_core.format.manifest import ManifestFile, encode_manifest_file, parse_manifest_file
from lance_core.format.outline import fragment_facts
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.apply import NextVersion, apply_transaction
from lance_core.transaction.operations import (
    Append,
    Delete,
    MapUpdate,
    Operation,
    Overwrite,
    Update,
    UpdateConfig,
    encode_transaction,
)
from tests.transaction.tables import SCHEMA, Table, delete_rows, make_table, replace_data, rows
from tests.transaction.test_lineage import upsert, work

OURS = (
    "append",
    "overwrite",
    "delete",
    "update",
    "update_config",
    "project",
    "restore",
    "reserve_fragments",
    "update_bases",
    "create_index",
    "merge",
    "data_replacement",
    "rewrite",
)


ON_OUTLINES = (
    *("append", "overwrite", "delete", "update", "update_config", "create_index", "restore"),
    *("reserve_fragments", "update_bases"),
)
"""Operations that look into no fragment but those that they name."""

FACTS_FOLLOW = ("append", "update_config", "create_index", "reserve_fragments", "update_bases")
"""Operations after which the facts about all fragments are known, without a look at them."""


def encoded(file: ManifestFile | None) -> ManifestFile | None:
    """The same file with its fragments still encoded."""
    if file is None:
        return None
    return parse_manifest_file(encode_manifest_file(file.manifest, file.transaction, file.indices), lazily=True)


def comparable(manifest: pb.Manifest) -> pb.Manifest:
    """Without what two writers cannot agree on."""
    copy = pb.Manifest.FromString(manifest.SerializeToString())
    for name in ("timestamp", "writer_version", "index_section", "transaction_section"):
        copy.ClearField(name)
    return copy


def assert_rebuilt(table: Table, *, stable_row_ids: bool) -> set[str]:
    """Apply each transaction of ours in the history to the version before it; returns the kinds that were met."""
    before: ManifestFile | None = None
    met = set()
    files = table.manifests()
    for version, file in files.items():
        if file.operation in OURS and (before is not None or version == 1):
            assert file.transaction is not None
            source = files.get(file.transaction.restore.version)
            built, again = (
                apply_transaction(
                    form(before),
                    file.transaction,
                    version=version,
                    now_ns=1,
                    stable_row_ids=stable_row_ids,
                    source=form(source),
                )
                for form in (lambda given: given, encoded)
            )
            assert isinstance(again.manifest, pb.ManifestOutline) == (
                before is not None and file.operation in ON_OUTLINES
            )
            assert encode_manifest_file(again.manifest, None) == encode_manifest_file(built.manifest, None)
            assert again.indices == built.indices
            for each in (built, again):
                assert each.facts in {None, fragment_facts(each.manifest)}
                assert each.facts is not None or file.operation not in FACTS_FOLLOW
            assert comparable(built.manifest) == comparable(file.manifest), (version, file.operation)
            assert built.indices == file.indices, (version, file.operation)
            met.add(file.operation)
        before = file
    return met


@pytest.mark.parametrize("stable_row_ids", [False, True])
def test_manifests_are_those_of_pylance(tmp_path: Path, stable_row_ids: bool) -> None:
    table = make_table(tmp_path, (0, 10), (10, 20), (20, 30), stable_row_ids=stable_row_ids)
    work(table)
    assert assert_rebuilt(table, stable_row_ids=stable_row_ids) == set(OURS)


@pytest.mark.parametrize("stable_row_ids", [False, True])
def test_indices_lose_the_fragments_whose_columns_were_rewritten(tmp_path: Path, stable_row_ids: bool) -> None:
    table = make_table(tmp_path, (0, 10), (10, 20), (20, 30), stable_row_ids=stable_row_ids)
    dataset = table.open()
    dataset.create_scalar_index("id", "BTREE")
    dataset.create_scalar_index("x", "BTREE")
    dataset.delete("id = 4 or id >= 20")
    dataset.merge_insert("id").when_matched_update_all().execute(rows(1, 3).drop(["s"]))
    dataset.optimize.compact_files()
    dataset.update({"x": "x + 1"}, where="id < 6")
    upsert(table.open(), rows(8, 44))
    table.open().merge_insert("id").when_matched_update_all().execute(rows(8, 14).drop(["s"]))
    assert_rebuilt(table, stable_row_ids=stable_row_ids)


@pytest.mark.parametrize("stable_row_ids", [False, True])
def test_columns_and_their_indices(tmp_path: Path, stable_row_ids: bool) -> None:
    """Indices made, replaced and dropped; columns replaced, alone or out of a file with others, cast and dropped."""
    table = make_table(tmp_path, (0, 10), (10, 20), (20, 30), stable_row_ids=stable_row_ids)
    dataset = table.open()
    for column in ("id", "x", "s"):
        dataset.create_scalar_index(column, "BTREE")
    dataset.create_scalar_index("x", "BTREE", replace=True)
    dataset.drop_index("id_idx")
    dataset.create_scalar_index("s", "BITMAP", name="bits")
    replace_data(table.open(), 1)
    replace_data(table.open(), 1, "again")
    table.open().update_schema_metadata({"k": "v"})
    table.open().add_columns(pa.field("late", pa.int64()))
    table.open().alter_columns({"path": "s", "name": "t"})
    table.open().optimize.optimize_indices()
    table.open().drop_columns(["t"])
    assert {"create_index", "merge", "project", "data_replacement"} <= assert_rebuilt(
        table, stable_row_ids=stable_row_ids
    )


@pytest.mark.parametrize("stable_row_ids", [False, True])
def test_branches_keep_their_base_paths(tmp_path: Path, stable_row_ids: bool) -> None:
    table = make_table(tmp_path, (0, 10), (10, 20), stable_row_ids=stable_row_ids)
    table.open().delete("id = 7")
    branch = table.open().create_branch("dev")
    branch = lance.write_dataset(rows(20, 30), branch, mode="append")
    branch.delete("id in (1, 21)")
    branch.update({"x": "0"}, where="id = 2")
    dev = table.branch("dev")
    assert_rebuilt(dev, stable_row_ids=stable_row_ids)
    assert dev.head().manifest.branch == "dev"
    assert dev.head().manifest.base_paths


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return make_table(tmp_path, (0, 10), (10, 20))


def apply(table: Table, operation: Operation, head: ManifestFile | None = None) -> NextVersion:
    head = head or table.head()
    transaction = encode_transaction(operation, read_version=head.version)
    return apply_transaction(head, transaction, version=head.version + 1, now_ns=1)


def test_timestamps_increase_despite_a_slow_clock(table: Table) -> None:
    head = table.head()
    built = apply(table, UpdateConfig(MapUpdate({"a": "b"}))).manifest
    assert built.timestamp.seconds * 10**9 + built.timestamp.nanos == head.timestamp_ns + 1
    transaction = encode_transaction(UpdateConfig(MapUpdate({"a": "b"})), read_version=2)
    late = apply_transaction(head, transaction, version=3, now_ns=head.timestamp_ns + 5 * 10**9).manifest
    assert late.timestamp.seconds == head.manifest.timestamp.seconds + 5


def test_the_writer_is_recorded(table: Table) -> None:
    built = apply(table, UpdateConfig(MapUpdate({"a": "b"}))).manifest
    assert built.writer_version.library not in {"", "lance"}
    assert built.transaction_file.startswith("2-")


def test_flags_follow_the_content(table: Table) -> None:
    configured = apply(table, UpdateConfig(MapUpdate({"a": "b"}))).manifest
    assert (configured.reader_feature_flags, configured.writer_feature_flags) == (0, 8)
    deleted = apply(table, delete_rows(table.open(), "id = 1")).manifest
    assert (deleted.reader_feature_flags, deleted.writer_feature_flags) == (1, 1)


def test_nothing_is_changed_in_place(table: Table) -> None:
    head = table.head()
    operation = Append(table.stage(rows(20, 30)))
    before = head.manifest.SerializeToString(deterministic=True)
    fragment = operation.fragments[0].SerializeToString()
    apply(table, operation, head)
    assert head.manifest.SerializeToString(deterministic=True) == before
    assert operation.fragments[0].SerializeToString() == fragment


def test_ids_continue_after_an_overwrite(table: Table) -> None:
    overwrite = Overwrite(table.stage(rows(0, 3), "overwrite"), tuple(schema_fields(SCHEMA)))
    built = apply(table, overwrite).manifest
    assert [fragment.id for fragment in built.fragments] == [2]
    assert built.max_fragment_id == 2


def test_a_first_version_takes_its_format_from_its_files(tmp_path: Path) -> None:
    table = Table(tmp_path)
    fragments = table.stage(rows(0, 3), "create")
    transaction = encode_transaction(Overwrite(fragments, tuple(schema_fields(SCHEMA))), read_version=0)
    built = apply_transaction(None, transaction, version=1, now_ns=7, branch="dev").manifest
    assert built.data_format.version == "2.2"
    assert built.data_format.file_format == "lance"
    assert built.branch == "dev"
    empty = encode_transaction(Overwrite((), tuple(schema_fields(SCHEMA))), read_version=0)
    manifest = apply_transaction(None, empty, version=1, now_ns=7).manifest
    assert manifest.data_format.version == "2.2"
    assert not manifest.HasField("max_fragment_id")


def test_only_an_overwrite_creates_a_table(table: Table) -> None:
    transaction = encode_transaction(Append(table.stage(rows(0, 1))), read_version=0)
    with pytest.raises(InvalidTransaction, match="append as the first version, expected overwrite"):
        apply_transaction(None, transaction, version=1, now_ns=1)


def test_a_table_without_transaction_files_gets_none(table: Table) -> None:
    head = table.head()
    manifest = pb.Manifest.FromString(head.manifest.SerializeToString())
    manifest.writer_feature_flags = 32
    flagged = parse_manifest_file(encode_manifest_file(manifest, head.transaction))
    built = apply(table, UpdateConfig(MapUpdate({"a": "b"})), flagged).manifest
    assert built.transaction_file == ""
    assert built.writer_feature_flags == 32 | 8


REFUSED: dict[str, Callable[[pb.Manifest], object]] = {
    "unknown writer flag": lambda m: setattr(m, "writer_feature_flags", 1 << 15),
    "private writer flag": lambda m: setattr(m, "writer_feature_flags", 1 << 40),
    "unknown reader flag": lambda m: setattr(m, "reader_feature_flags", 1 << 6),
    "reader flag that we may read but not keep": lambda m: setattr(m, "reader_feature_flags", 1 << 8),
    "fragment tree": lambda m: setattr(m, "fragment_tree", b""),
    "field ids that are never used again": lambda m: setattr(m, "max_allocated_field_id", 7),
    "clustering": lambda m: setattr(m, "clustering", b""),
}


@pytest.mark.parametrize("name", REFUSED)
def test_tables_with_unsupported_features_are_refused(table: Table, name: str) -> None:
    head = table.head()
    manifest = pb.Manifest.FromString(head.manifest.SerializeToString())
    REFUSED[name](manifest)
    flagged = parse_manifest_file(encode_manifest_file(manifest, head.transaction))
    with pytest.raises(UnsupportedFeature, match="version 2 "):
        apply(table, UpdateConfig(MapUpdate({"a": "b"})), flagged)


@pytest.mark.parametrize("name", ["data_overlay"])
def test_an_unsupported_operation_is_reported(table: Table, name: str) -> None:
    transaction = pb.Transaction(read_version=2, uuid="u")
    getattr(transaction, name).SetInParent()
    with pytest.raises(UnsupportedFeature, match=f"operation {name} cannot be committed"):
        apply_transaction(table.head(), transaction, version=3, now_ns=1)


def test_a_transaction_without_an_operation_is_refused(table: Table) -> None:
    with pytest.raises(InvalidTransaction, match="no known operation"):
        apply_transaction(table.head(), pb.Transaction(read_version=2, uuid="u"), version=3, now_ns=1)


def edited(fragment: pb.DataFragment, **values: object) -> pb.DataFragment:
    copy = pb.DataFragment.FromString(fragment.SerializeToString())
    for name, value in values.items():
        setattr(copy, name, value)
    return copy


def with_file(fragment: pb.DataFragment, **values: object) -> pb.DataFragment:
    copy = pb.DataFragment.FromString(fragment.SerializeToString())
    for name, value in values.items():
        setattr(copy.files[0], name, value)
    return copy


def invalid_operations(table: Table) -> dict[str, tuple[Operation, str]]:
    new = table.stage(rows(20, 30))[0]
    delete = delete_rows(table.open(), "id = 1")
    updated = delete.updated[0]
    deleted = edited(new)
    deleted.deletion_file.CopyFrom(updated.deletion_file)
    fields = tuple(schema_fields(SCHEMA))
    return {
        "other file format": (
            Append((with_file(new, file_minor_version=0),)),
            "format version 2.0: expected the table",
        ),
        "path outside": (Append((with_file(new, path="../x.lance"),)), "below the table's data directory"),
        "no rows": (Append((edited(new, physical_rows=0),)), "1 data files and 0 rows"),
        "new fragment with deletions": (Append((deleted,)), "a new fragment has a deletion file"),
        "unknown fragment": (Delete((edited(updated, id=9),)), "fragment 9 is not in the table"),
        "unknown removal": (Delete((), (9,)), "fragment 9 is not in the table"),
        "named twice": (Delete((updated,), (0,)), "fragment 0 is named twice"),
        "updated twice": (Delete((updated, updated)), "fragment 0 is named twice"),
        "other files": (Delete((with_file(updated, path="x.lance"),)), "fragment 0 has other data files"),
        "other size": (Delete((edited(updated, physical_rows=5),)), "fragment 0 has 5 rows: expected the table's 10"),
        "unknown column": (UpdateConfig(field_metadata={9: MapUpdate({"a": "b"})}), "metadata for field 9"),
        "no schema": (Overwrite((new,), ()), "the schema has no field"),
        "child first": (Overwrite((new,), (*fields[::-1][:1], pb.Field(id=9, parent_id=8))), "before its parent 8"),
        "field twice": (Overwrite((new,), fields + fields), "id 0: expected a fresh one"),
        "file with other columns": (Overwrite((new,), fields[:1]), "has field 1, which is not in the schema"),
        "late base paths": (Overwrite((new,), fields, initial_bases=(pb.BasePath(id=1),)), "the table exists"),
    }


@pytest.mark.parametrize(
    "name",
    [
        "other file format",
        "path outside",
        "no rows",
        "new fragment with deletions",
        "unknown fragment",
        "unknown removal",
        "named twice",
        "updated twice",
        "other files",
        "other size",
        "unknown column",
        "no schema",
        "child first",
        "field twice",
        "file with other columns",
        "late base paths",
    ],
)
def test_a_transaction_that_contradicts_the_table_is_refused(table: Table, name: str) -> None:
    operation, expected = invalid_operations(table)[name]
    with pytest.raises(InvalidTransaction, match=expected):
        apply(table, operation)


def test_deletions_do_not_shrink(table: Table) -> None:
    table.open().delete("id in (1, 2)")
    head = table.head()
    smaller = edited(head.manifest.fragments[0])
    smaller.deletion_file.num_deleted_rows = 1
    with pytest.raises(InvalidTransaction, match="1 rows deleted: expected no fewer than the table's 2"):
        apply(table, Delete((smaller,)))


def test_more_row_ids_than_rows_are_refused(tmp_path: Path) -> None:
    table = make_table(tmp_path, (0, 10), stable_row_ids=True)
    table.open().update({"x": "1"}, where="id < 5")
    file = table.head()
    assert file.transaction is not None
    new = edited(file.transaction.update.new_fragments[0], physical_rows=4)
    operation = replace(Update(), new=(new,))
    with pytest.raises(InvalidTransaction, match="a new fragment of 4 rows brings 5 row ids"):
        apply(table, operation)
