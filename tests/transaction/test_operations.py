"""Operations are encoded and decoded without loss, and messages of older writers are read."""

from __future__ import annotations

import pytest
from pyroaring import BitMap

from lance_core.errors import InvalidTransaction, UnsupportedFeature
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.operations import (
    Append,
    Clone,
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
    decode_operation,
    encode_transaction,
    operation_name,
)

FRAGMENT = pb.DataFragment(id=3, physical_rows=7)

OPERATIONS: dict[str, Operation] = {
    "append": Append((FRAGMENT,)),
    "empty append": Append(()),
    "delete": Delete((FRAGMENT,), (4, 5), "x > 1"),
    "empty delete": Delete(()),
    "update": Update(
        updated=(FRAGMENT,),
        removed_ids=(1,),
        new=(FRAGMENT, FRAGMENT),
        fields_modified=(0, 2),
        value_fields=(2,),
        rewrites_columns=True,
        rewritten_offsets={3: BitMap([1, 2]).serialize()},
        inserted_keys=pb.Transaction.KeyExistenceFilter(field_ids=[0]),
        compacted_sstables=(pb.CompactedSsTable(generation=2),),
    ),
    "empty update": Update(),
    "overwrite": Overwrite(
        (FRAGMENT,), (pb.Field(name="a", parent_id=-1),), {"k": b"v"}, {"c": "d"}, (pb.BasePath(id=0, path="/x"),)
    ),
    "config": UpdateConfig(
        MapUpdate({"a": "b", "gone": None}),
        MapUpdate({"": ""}, replace=True),
        MapUpdate({}),
        {0: MapUpdate({"k": "v"}), 7: MapUpdate({}, replace=True)},
    ),
    "empty config": UpdateConfig(),
    "project": Project((pb.Field(name="a", parent_id=-1),), preserves_nullability=True),
    "project that tightens": Project((pb.Field(name="a", parent_id=-1),)),
    "merge": Merge((FRAGMENT,), (pb.Field(name="a", parent_id=-1),), {"k": b"v"}, preserves_nullability=True),
    "empty merge": Merge((), ()),
    "index": CreateIndex((pb.IndexMetadata(name="i", fields=[1]),), (pb.IndexMetadata(name="j"),)),
    "no index": CreateIndex(()),
    "data": DataReplacement(
        (pb.Transaction.DataReplacementGroup(fragment_id=0, new_file=pb.DataFile(path="a.lance", fields=[1])),)
    ),
    "no data": DataReplacement(()),
    "rewrite": Rewrite(
        (pb.Transaction.Rewrite.RewriteGroup(old_fragments=[FRAGMENT], new_fragments=[FRAGMENT]),),
        (pb.Transaction.Rewrite.RewrittenIndex(new_index_version=1),),
    ),
    "empty rewrite": Rewrite(()),
    "log": UpdateMemWalState((pb.CompactedSsTable(shard_id=pb.UUID(uuid=b"s" * 16), generation=4),)),
    "nothing of the log": UpdateMemWalState(()),
    "restore": Restore(7),
    "reserve": ReserveFragments(3),
    "reserve nothing": ReserveFragments(0),
    "bases": UpdateBases((pb.BasePath(id=0, name="n", path="/x"), pb.BasePath(id=4, path="/y", is_dataset_root=True))),
    "branch": Clone("/data/t", 4, None, "dev"),
    "clone of a tag": Clone("/data/t", 4, "v1", None, is_shallow=False),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_decoding_is_the_inverse_of_encoding(name: str) -> None:
    operation = OPERATIONS[name]
    transaction = encode_transaction(operation, read_version=9, properties={"a": "b"})
    received = pb.Transaction.FromString(transaction.SerializeToString())
    assert decode_operation(received) == operation
    assert (received.read_version, dict(received.transaction_properties)) == (9, {"a": "b"})
    assert operation_name(received) is not None


def test_every_transaction_has_a_uuid_of_its_own() -> None:
    one, two = (encode_transaction(Append(()), read_version=1) for _ in range(2))
    assert one.uuid != two.uuid
    assert encode_transaction(Append(()), read_version=1, uuid="u").uuid == "u"


def test_config_updates_of_older_writers() -> None:
    message = pb.Transaction.UpdateConfig(upsert_values={"a": "b"}, delete_keys=["c"], schema_metadata={"s": "t"})
    message.field_metadata[2].metadata["k"] = "v"
    assert decode_operation(pb.Transaction(update_config=message)) == UpdateConfig(
        config=MapUpdate({"a": "b", "c": None}),
        schema_metadata=MapUpdate({"s": "t"}, replace=True),
        field_metadata={2: MapUpdate({"k": "v"}, replace=True)},
    )


def test_a_rewrite_of_older_writers() -> None:
    message = pb.Transaction.Rewrite(old_fragments=[FRAGMENT], new_fragments=[FRAGMENT])
    group = pb.Transaction.Rewrite.RewriteGroup(old_fragments=[FRAGMENT], new_fragments=[FRAGMENT])
    assert decode_operation(pb.Transaction(rewrite=message)) == Rewrite((group,))


def test_offsets_of_older_writers() -> None:
    message = pb.Transaction.Update(fields_modified=[1])
    message.updated_fragment_offsets[3].values.extend([5, 6])
    operation = decode_operation(pb.Transaction(update=message))
    assert isinstance(operation, Update)
    assert operation.rewrites_columns
    assert BitMap.deserialize(operation.rewritten_offsets[3]) == BitMap([5, 6])


def test_a_map_update() -> None:
    target = {"keep": "1", "gone": "2", "new": "old"}
    MapUpdate({"gone": None, "new": "3", "never there": None}).apply_to(target)
    assert target == {"keep": "1", "new": "3"}
    MapUpdate({"only": "4"}, replace=True).apply_to(target)
    assert target == {"only": "4"}
    encoded = {"a": b"1"}
    MapUpdate({"b": "\u00fc"}).apply_to_bytes(encoded)
    assert encoded == {"a": b"1", "b": "\u00fc".encode()}


@pytest.mark.parametrize("name", ["data_overlay"])
def test_an_unsupported_operation_is_reported(name: str) -> None:
    transaction = pb.Transaction(uuid="u")
    getattr(transaction, name).SetInParent()
    with pytest.raises(UnsupportedFeature, match=f"transaction u: operation {name} cannot be committed here"):
        decode_operation(transaction)


def test_a_transaction_without_an_operation_is_refused() -> None:
    assert operation_name(None) is None
    assert operation_name(pb.Transaction()) is None
    with pytest.raises(InvalidTransaction, match="transaction u has no known operation"):
        decode_operation(pb.Transaction(uuid="u"))
