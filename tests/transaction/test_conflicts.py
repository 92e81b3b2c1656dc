"""The conflict matrix: the judged operation in a row, the committed one in a column."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyroaring import BitMap

from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.conflicts.rules import Context, Outcome, judge, shared_fragments
from lance_core.transaction.operations import (
    Append,
    CreateIndex,
    DataReplacement,
    Delete,
    MapUpdate,
    Merge,
    Operation,
    Overwrite,
    Project,
    ReserveFragments,
    Restore,
    Rewrite,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMemWalState,
    encode_transaction,
)

C, B, R, I = Outcome.COMPATIBLE, Outcome.REBASE, Outcome.RETRYABLE, Outcome.INCOMPATIBLE  # noqa: E741


def fragment(identifier: int) -> pb.DataFragment:
    return pb.DataFragment(id=identifier, physical_rows=10)


def schema(*ids: int) -> list[pb.Field]:
    return [pb.Field(id=identifier, parent_id=-1) for identifier in ids]


def index(name: str, field: int, *fragments: int, uuid: bytes = b"u" * 16) -> pb.IndexMetadata:
    coverage = BitMap(fragments).serialize()
    return pb.IndexMetadata(name=name, fields=[field], uuid=pb.UUID(uuid=uuid), fragment_bitmap=coverage)


def replacement(on: int, *fields: int) -> pb.Transaction.DataReplacementGroup:
    return pb.Transaction.DataReplacementGroup(fragment_id=on, new_file=pb.DataFile(fields=fields))


OURS: dict[str, Operation] = {
    "append": Append((fragment(0),)),
    "delete": Delete((fragment(1),)),
    "overwrite": Overwrite((fragment(0),), tuple(schema(0, 1))),
    "update": Update(updated=(fragment(1),), new=(fragment(0),)),
    "columns": Update(updated=(fragment(1),), fields_modified=(1,), rewrites_columns=True),
    "config": UpdateConfig(config=MapUpdate({"k": "v"})),
    "schema": UpdateConfig(schema_metadata=MapUpdate({"k": "v"}), field_metadata={1: MapUpdate({"k": "v"})}),
    "project": Project(tuple(schema(0, 1))),
    "project, nullable": Project(tuple(schema(0, 1)), preserves_nullability=True),
    "merge": Merge((fragment(1),), tuple(schema(0, 1, 2))),
    "index on 1": CreateIndex((index("i", 1, 1),)),
    "dropped index": CreateIndex((), (index("i", 1, 1),)),
    "data of 1": DataReplacement((replacement(1, 1),)),
    "rewrite": Rewrite((pb.Transaction.Rewrite.RewriteGroup(old_fragments=[fragment(1)]),)),
    "log": UpdateMemWalState((pb.CompactedSsTable(shard_id=pb.UUID(uuid=b"s"), generation=5),)),
    "restore": Restore(1),
    "reserve": ReserveFragments(2),
    "bases": UpdateBases((pb.BasePath(name="n", path="/x"),)),
}

Transaction = pb.Transaction


def overlap(name: str, *, on: int) -> pb.Transaction:
    """A committed transaction that touches fragment `on`."""
    match name:
        case "delete":
            return Transaction(delete=Transaction.Delete(updated_fragments=[fragment(on)]))
        case "removal":
            return Transaction(delete=Transaction.Delete(deleted_fragment_ids=[on]))
        case "update":
            return Transaction(update=Transaction.Update(updated_fragments=[fragment(on)]))
        case "moved away":
            return Transaction(update=Transaction.Update(removed_fragment_ids=[on]))
        case "columns":
            update = Transaction.Update(updated_fragments=[fragment(on)], fields_modified=[0], update_mode=1)  # type: ignore[arg-type]
            return Transaction(update=update)
        case "rewrite":
            group = Transaction.Rewrite.RewriteGroup(old_fragments=[fragment(on)], new_fragments=[fragment(9)])
            return Transaction(rewrite=Transaction.Rewrite(groups=[group]))
        case "old rewrite":
            return Transaction(rewrite=Transaction.Rewrite(old_fragments=[fragment(on)]))
        case "columns of 1":
            update = Transaction.Update(updated_fragments=[fragment(on)], fields_modified=[1], update_mode=1)  # type: ignore[arg-type]
            return Transaction(update=update)
        case "data_replacement" | "data of 1":
            replaced = replacement(on, 1 if name == "data of 1" else 0)
            return Transaction(data_replacement=Transaction.DataReplacement(replacements=[replaced]))
        case "overlay of 0" | "overlay of 1":
            field = int(name[-1])
            overlay = pb.DataOverlayFile(data_file=pb.DataFile(fields=[field]))
            group = Transaction.DataOverlayGroup(fragment_id=on, overlays=[overlay])
            return Transaction(data_overlay=Transaction.DataOverlay(groups=[group]))
    raise AssertionError(name)


THEIRS: dict[str, pb.Transaction] = {
    "append": Transaction(append=Transaction.Append(fragments=[fragment(0)])),
    "overwrite": Transaction(overwrite=Transaction.Overwrite(schema=schema(0, 1))),
    "create_index": Transaction(create_index=Transaction.CreateIndex(new_indices=[index("other", 0, 1)])),
    "index on 1": Transaction(create_index=Transaction.CreateIndex(new_indices=[index("j", 1, 2)])),
    "same index": Transaction(create_index=Transaction.CreateIndex(new_indices=[index("i", 0, 1)])),
    "dropped index": Transaction(create_index=Transaction.CreateIndex(removed_indices=[index("i", 1, 1)])),
    "merge": Transaction(merge=Transaction.Merge(fragments=[fragment(1)], schema=schema(0, 1, 2))),
    "merge, nullable": Transaction(
        merge=Transaction.Merge(fragments=[fragment(1)], schema=schema(0, 1, 2), preserves_nullability=True)
    ),
    "project": Transaction(project=Transaction.Project(schema=schema(0, 1))),
    "project, nullable": Transaction(project=Transaction.Project(schema=schema(0, 1), preserves_nullability=True)),
    "project without 1": Transaction(project=Transaction.Project(schema=schema(0), preserves_nullability=True)),
    "restore": Transaction(restore=Transaction.Restore(version=1)),
    "reserve_fragments": Transaction(reserve_fragments=Transaction.ReserveFragments(num_fragments=1)),
    "insert": Transaction(update=Transaction.Update(new_fragments=[fragment(0)])),
    "config k": encode_transaction(UpdateConfig(config=MapUpdate({"k": "w"})), read_version=1),
    "config other": encode_transaction(UpdateConfig(config=MapUpdate({"other": "w"})), read_version=1),
    "config replaced": encode_transaction(UpdateConfig(config=MapUpdate({"other": "w"}, replace=True)), read_version=1),
    "schema": encode_transaction(OURS["schema"], read_version=1),
    "mem wal": Transaction(update_mem_wal_state=Transaction.UpdateMemWalState()),
    "field": encode_transaction(UpdateConfig(field_metadata={2: MapUpdate({"k": "v"})}), read_version=1),
    "update_bases": Transaction(update_bases=Transaction.UpdateBases(new_bases=[pb.BasePath(id=1)])),
    "clone": Transaction(clone=Transaction.Clone(ref_version=1)),
    "composite": Transaction(composite_operation=b"\x00"),
    "unknown": Transaction(uuid="u"),
    **{
        f"{name} {'of ours' if on == 1 else 'elsewhere'}": overlap(name, on=on)
        for name in (
            "delete",
            "removal",
            "update",
            "moved away",
            "columns",
            "rewrite",
            "old rewrite",
            "data_replacement",
            "columns of 1",
            "data of 1",
            "overlay of 0",
            "overlay of 1",
        )
        for on in (1, 2)
    },
}

# One letter for each of OURS, in order.
MATRIX: dict[str, tuple[Outcome, ...]] = {
    "append": (C, C, C, C, C, C, C, R, C, R, C, C, C, C, I, C, C, C),
    "overwrite": (I, I, R, I, I, C, I, I, I, I, I, I, I, I, I, C, I, C),
    "create_index": (C, C, C, C, C, C, C, C, C, C, C, C, C, R, C, C, C, C),
    "index on 1": (C, C, C, C, C, C, C, C, C, C, C, C, R, C, C, C, C, C),
    "same index": (C, C, C, C, C, C, C, C, C, C, R, R, C, R, C, C, C, C),
    "dropped index": (C, C, C, C, C, C, C, C, C, C, R, C, C, C, C, C, C, C),
    "merge": (R, R, C, R, R, C, R, R, R, R, C, C, R, R, I, C, C, C),
    "merge, nullable": (C, R, C, R, R, C, R, R, R, R, C, C, R, R, I, C, C, C),
    "project": (R, C, C, R, R, C, C, R, R, I, C, C, R, C, I, C, C, C),
    "project, nullable": (C, C, C, C, C, C, C, R, R, I, C, C, C, C, I, C, C, C),
    "project without 1": (C, C, C, C, R, C, I, R, R, I, R, C, I, C, I, C, C, C),
    "restore": (I, I, C, I, I, C, I, I, I, I, I, I, I, I, I, C, I, C),
    "reserve_fragments": (C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C),
    "insert": (C, C, C, C, C, C, C, R, C, R, C, C, C, C, C, C, C, C),
    "config k": (C, C, C, C, C, I, C, C, C, C, C, C, C, C, C, C, C, C),
    "config other": (C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C),
    "config replaced": (C, C, C, C, C, I, C, C, C, C, C, C, C, C, C, C, C, C),
    "schema": (C, C, C, C, C, C, I, R, R, R, C, C, C, C, C, I, C, C),
    "mem wal": (I, I, I, C, C, C, C, I, I, I, I, I, I, C, C, I, C, C),
    "field": (C, C, C, C, C, C, C, R, R, R, C, C, C, C, C, I, C, C),
    "update_bases": (C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C),
    "clone": (I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, I),
    "composite": (I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, I),
    "unknown": (I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, I),
    "delete of ours": (C, B, C, B, R, C, C, C, C, R, C, C, C, R, I, C, C, C),
    "delete elsewhere": (C, C, C, C, C, C, C, C, C, R, C, C, C, C, I, C, C, C),
    "removal of ours": (C, R, C, R, R, C, C, C, C, R, C, C, I, R, I, C, C, C),
    "removal elsewhere": (C, C, C, C, C, C, C, C, C, R, C, C, C, C, I, C, C, C),
    "update of ours": (C, B, C, B, R, C, C, R, C, R, C, C, R, R, C, C, C, C),
    "update elsewhere": (C, C, C, C, C, C, C, R, C, R, C, C, C, C, C, C, C, C),
    "moved away of ours": (C, R, C, R, R, C, C, R, C, R, C, C, I, R, C, C, C, C),
    "moved away elsewhere": (C, C, C, C, C, C, C, R, C, R, C, C, C, C, C, C, C, C),
    "columns of ours": (C, R, C, R, R, C, C, R, C, R, C, C, C, R, C, C, C, C),
    "columns elsewhere": (C, C, C, C, C, C, C, R, C, R, C, C, C, C, C, C, C, C),
    "rewrite of ours": (C, R, C, R, R, C, C, C, C, R, R, C, R, R, C, C, C, C),
    "rewrite elsewhere": (C, C, C, C, C, C, C, C, C, R, C, C, C, C, C, C, C, C),
    "old rewrite of ours": (C, R, C, R, R, C, C, C, C, R, R, C, R, R, C, C, C, C),
    "old rewrite elsewhere": (C, C, C, C, C, C, C, C, C, R, C, C, C, C, C, C, C, C),
    "data_replacement of ours": (C, R, C, R, R, C, C, R, C, R, C, C, C, R, I, C, C, C),
    "data_replacement elsewhere": (C, C, C, C, C, C, C, R, C, R, C, C, C, C, I, C, C, C),
    "columns of 1 of ours": (C, R, C, R, R, C, C, R, C, R, B, C, R, R, C, C, C, C),
    "columns of 1 elsewhere": (C, C, C, C, C, C, C, R, C, R, C, C, C, C, C, C, C, C),
    "data of 1 of ours": (C, R, C, R, R, C, C, R, C, R, R, C, R, R, I, C, C, C),
    "data of 1 elsewhere": (C, C, C, C, C, C, C, R, C, R, R, C, C, C, I, C, C, C),
    "overlay of 0 of ours": (C, C, C, R, C, C, C, R, C, R, C, C, C, R, I, C, C, C),
    "overlay of 0 elsewhere": (C, C, C, C, C, C, C, R, C, R, C, C, C, C, I, C, C, C),
    "overlay of 1 of ours": (C, C, C, R, R, C, C, R, C, R, C, C, C, R, I, C, C, C),
    "overlay of 1 elsewhere": (C, C, C, C, C, C, C, R, C, R, C, C, C, C, I, C, C, C),
}

OTHER_ROWS = Context({1: BitMap([1, 2])}, {1: BitMap([3])})


def test_the_table_is_complete() -> None:
    assert MATRIX.keys() == THEIRS.keys()
    named = {transaction.WhichOneof("operation") for transaction in THEIRS.values()}
    known = {field.name for field in pb.Transaction.DESCRIPTOR.oneofs_by_name["operation"].fields}
    assert named == known | {None}


@pytest.mark.parametrize("theirs", MATRIX)
@pytest.mark.parametrize("ours", OURS)
def test_verdict_of_the_conflict_matrix(ours: str, theirs: str) -> None:
    verdict = judge(OURS[ours], THEIRS[theirs], OTHER_ROWS)
    assert verdict.outcome is MATRIX[theirs][list(OURS).index(ours)], verdict
    assert bool(verdict.reason) is (verdict.outcome is not C)


@pytest.mark.parametrize("ours", ["delete", "update"])
@pytest.mark.parametrize("theirs", ["delete of ours", "update of ours"])
def test_rows_decide_on_conflicts_within_a_fragment(ours: str, theirs: str) -> None:
    operation, transaction = OURS[ours], THEIRS[theirs]
    assert shared_fragments(operation, transaction) == {1}
    same = judge(operation, transaction, Context({1: BitMap([1, 3])}, {1: BitMap([3, 4])}))
    assert (same.outcome, same.reason) == (R, "it changed row 3 of fragment 1 as well")
    unknown = judge(operation, transaction, Context({1: BitMap([1])}, {}))
    assert (unknown.outcome, unknown.reason) == (R, "it changed fragment 1, and the changed rows are unknown")
    assert judge(operation, transaction).outcome is R


@pytest.mark.parametrize("theirs", ["delete of ours", "update of ours"])
def test_removing_a_concurrently_changed_fragment_conflicts(theirs: str) -> None:
    for operation in (Delete((), (1,)), Update(removed_ids=(1,))):
        assert judge(operation, THEIRS[theirs], OTHER_ROWS).outcome is R


def test_a_version_without_a_transaction_conflicts_with_every_operation() -> None:
    assert {judge(operation, None).outcome for operation in OURS.values()} == {I}


MAPS: dict[str, tuple[UpdateConfig, UpdateConfig, Outcome]] = {
    "both set a key": (UpdateConfig(MapUpdate({"k": "1"})), UpdateConfig(MapUpdate({"k": "2"})), I),
    "set and delete": (UpdateConfig(MapUpdate({"k": "1"})), UpdateConfig(MapUpdate({"k": None})), I),
    "both delete": (UpdateConfig(MapUpdate({"k": None})), UpdateConfig(MapUpdate({"k": None})), C),
    "other keys": (UpdateConfig(MapUpdate({"k": "1"})), UpdateConfig(MapUpdate({"l": "1"})), C),
    "ours replaces": (UpdateConfig(MapUpdate({"k": "1"}, replace=True)), UpdateConfig(MapUpdate({"l": "1"})), I),
    "table metadata, same key": (
        UpdateConfig(table_metadata=MapUpdate({"k": "1"})),
        UpdateConfig(table_metadata=MapUpdate({"k": "2"})),
        I,
    ),
    "table metadata, other key": (
        UpdateConfig(table_metadata=MapUpdate({"k": "1"})),
        UpdateConfig(table_metadata=MapUpdate({"l": "2"})),
        C,
    ),
    "table metadata replaced": (
        UpdateConfig(table_metadata=MapUpdate({"k": "1"})),
        UpdateConfig(table_metadata=MapUpdate({"l": "2"}, replace=True)),
        I,
    ),
    "config and table metadata": (
        UpdateConfig(MapUpdate({"k": "1"})),
        UpdateConfig(table_metadata=MapUpdate({"k": "2"})),
        C,
    ),
    "schema metadata, other keys": (
        UpdateConfig(schema_metadata=MapUpdate({"k": "1"})),
        UpdateConfig(schema_metadata=MapUpdate({"l": "2"})),
        I,
    ),
    "same field": (
        UpdateConfig(field_metadata={0: MapUpdate({"k": "1"})}),
        UpdateConfig(field_metadata={0: MapUpdate({"l": "1"})}),
        I,
    ),
    "other field": (
        UpdateConfig(field_metadata={0: MapUpdate({"k": "1"})}),
        UpdateConfig(field_metadata={1: MapUpdate({"k": "1"})}),
        C,
    ),
}


@pytest.mark.parametrize("name", MAPS)
def test_concurrent_changes_of_a_map(name: str) -> None:
    ours, theirs, expected = MAPS[name]
    assert judge(ours, encode_transaction(theirs, read_version=1)).outcome is expected
    assert judge(theirs, encode_transaction(ours, read_version=1)).outcome is expected


def test_a_config_update_in_the_deprecated_form() -> None:
    old = Transaction(update_config=Transaction.UpdateConfig(upsert_values={"k": "1"}, delete_keys=["l"]))
    assert judge(UpdateConfig(MapUpdate({"k": "2"})), old).outcome is I
    assert judge(UpdateConfig(MapUpdate({"l": "2"})), old).outcome is I
    assert judge(UpdateConfig(MapUpdate({"l": None})), old).outcome is C


def test_an_overwrite_that_sets_config_conflicts_with_config_changes() -> None:
    ours = Overwrite((), tuple(schema(0)), config_upserts={"k": "v"})
    assert judge(ours, THEIRS["config k"]).outcome is I
    assert judge(ours, THEIRS["config other"]).outcome is C
    theirs = encode_transaction(ours, read_version=1)
    assert judge(OURS["config"], theirs).outcome is I
    assert judge(UpdateConfig(MapUpdate({"other": "v"})), theirs).outcome is C


def test_concurrent_changes_of_one_index() -> None:
    """A commit that replaces a segment conflicts with one that removed it, under any name."""
    ours = CreateIndex((index("i", 1, 1, uuid=b"n" * 16),), (index("old", 1),))
    theirs = Transaction(create_index=Transaction.CreateIndex(removed_indices=[index("older", 1)]))
    assert judge(ours, theirs).outcome is R
    assert judge(CreateIndex((), (index("old", 1),)), theirs).outcome is C


def test_a_segment_without_a_coverage_bitmap() -> None:
    ours = index("i", 1)
    ours.ClearField("fragment_bitmap")
    assert judge(CreateIndex((ours,)), THEIRS["rewrite elsewhere"]).outcome is R
    theirs = encode_transaction(CreateIndex((ours,)), read_version=1)
    assert judge(OURS["rewrite"], theirs).outcome is R
    ours.name = "__lance_mem_wal"
    theirs = encode_transaction(CreateIndex((ours,)), read_version=1)
    assert judge(OURS["rewrite"], theirs).outcome is C
    assert judge(CreateIndex((ours,)), THEIRS["rewrite of ours"]).outcome is C


def test_children_of_an_indexed_field_are_indexed() -> None:
    """An index over a list names the list, its data file only what is in it."""
    nested = Context(fields=[pb.Field(id=1, parent_id=-1), pb.Field(id=2, parent_id=1)])
    for context, expected in ((nested, R), (Context(), C)):
        assert judge(OURS["index on 1"], replaced(2), context).outcome is expected
        theirs = encode_transaction(OURS["index on 1"], read_version=1)
        assert judge(DataReplacement((replacement(5, 2),)), theirs, context).outcome is expected


def replaced(field: int) -> pb.Transaction:
    return Transaction(data_replacement=Transaction.DataReplacement(replacements=[replacement(7, field)]))


BASES: dict[str, tuple[pb.BasePath, Outcome]] = {
    "other": (pb.BasePath(name="m", path="/y"), C),
    "same name": (pb.BasePath(name="n", path="/y"), I),
    "same path": (pb.BasePath(name="m", path="/x"), I),
    "same id": (pb.BasePath(id=3, path="/y"), I),
    "another id": (pb.BasePath(id=4, path="/y"), C),
    "no name": (pb.BasePath(path="/y"), C),
}


@pytest.mark.parametrize("name", BASES)
def test_base_paths(name: str) -> None:
    added, expected = BASES[name]
    ours = UpdateBases((pb.BasePath(name="n", path="/x"), pb.BasePath(id=3, path="/z")))
    assert judge(ours, encode_transaction(UpdateBases((added,)), read_version=1)).outcome is expected
    assert judge(UpdateBases((added,)), encode_transaction(ours, read_version=1)).outcome is expected


def keys(*hashes: int, fields: tuple[int, ...] = (0,)) -> pb.Transaction.KeyExistenceFilter:
    return Transaction.KeyExistenceFilter(
        field_ids=fields, exact=Transaction.ExactKeySetFilter(key_hashes=list(hashes))
    )


def bloom(bitmap: bytes) -> pb.Transaction.KeyExistenceFilter:
    return Transaction.KeyExistenceFilter(field_ids=[0], bloom=Transaction.BloomFilter(bitmap=bitmap))


KEYS: dict[str, tuple[pb.Transaction.KeyExistenceFilter | None, Outcome]] = {
    "other keys": (keys(3, 4), C),
    "a common key": (keys(2, 3), R),
    "other fields": (keys(3, fields=(1,)), R),
    "another kind of filter": (bloom(b"\x00"), R),
    "no filter": (None, R),
}


@pytest.mark.parametrize("name", KEYS)
def test_inserted_keys(name: str) -> None:
    filter_, expected = KEYS[name]
    theirs = encode_transaction(Update(new=(fragment(0),), inserted_keys=filter_), read_version=1)
    assert judge(Update(new=(fragment(0),), inserted_keys=keys(1, 2)), theirs).outcome is expected


def test_bloom_filters_with_a_common_bit_conflict() -> None:
    ours = Update(inserted_keys=bloom(b"\x0f\x00"))
    for bitmap, expected in ((b"\xf0\xff", C), (b"\xf1\x00", R), (b"\x00", R)):
        theirs = encode_transaction(Update(inserted_keys=bloom(bitmap)), read_version=1)
        assert judge(ours, theirs).outcome is expected


def test_new_rows_keep_the_values_of_columns_that_are_replaced() -> None:
    """A cast is a Merge that has the column under another id. The files of the rows have values under the old one."""

    def appended(*fields: int) -> Append:
        file = pb.DataFile(fields=fields)
        return Append((fragment(0), pb.DataFragment(id=0, physical_rows=10, files=[file])))

    def merged(*ids: int) -> pb.Transaction:
        return encode_transaction(
            Merge((fragment(1),), tuple(schema(*ids)), preserves_nullability=True), read_version=1
        )

    assert judge(appended(0, 1), merged(0, 1, 2)).outcome is C
    assert judge(appended(0, -2), merged(0, 1)).outcome is C
    assert judge(appended(0, 1), merged(0, 2)).outcome is R


def test_inserted_keys_conflict_with_any_append() -> None:
    assert judge(Update(inserted_keys=keys(1)), THEIRS["append"]).outcome is R
    assert judge(Update(inserted_keys=None), THEIRS["append"]).outcome is C


def sstable(generation: int, shard: bytes = b"s") -> pb.CompactedSsTable:
    return pb.CompactedSsTable(shard_id=pb.UUID(uuid=shard), generation=generation)


def as_log(table: pb.CompactedSsTable) -> pb.Transaction:
    return Transaction(update_mem_wal_state=Transaction.UpdateMemWalState(compacted_sstables=[table]))


def as_update(table: pb.CompactedSsTable) -> pb.Transaction:
    return Transaction(update=Transaction.Update(compacted_sstables=[table]))


@pytest.mark.parametrize("wrap", [as_log, as_update])
def test_generations_of_a_log_shard(wrap: Callable[[pb.CompactedSsTable], pb.Transaction]) -> None:
    ours = Update(new=(fragment(0),), compacted_sstables=(sstable(5),))
    assert judge(ours, wrap(sstable(5))).outcome is I
    assert judge(ours, wrap(sstable(4))).outcome is R
    assert judge(ours, wrap(sstable(9, b"t"))).outcome is C
    alone = UpdateMemWalState((sstable(5),))
    assert judge(alone, wrap(sstable(5))).outcome is I
    assert judge(alone, wrap(sstable(4))).outcome is R
    assert judge(alone, wrap(sstable(9, b"t"))).outcome is C
