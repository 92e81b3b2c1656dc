"""Damaged transactions, to be committed or already committed: typed errors, and nothing else changes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from lance_core.commit.loop import commit_transaction
from lance_core.errors import InvalidTransaction, LanceCoreError, UnsupportedFeature
from lance_core.format.bitmaps import decode_bitmap
from lance_core.format.manifest import encode_manifest_file
from lance_core.proto import lance_table_pb2 as pb
from lance_core.tables.dataset import Dataset
from lance_core.transaction.conflicts.rules import judge
from lance_core.transaction.lineage import lineage_break
from lance_core.transaction.operations import Append, Rewrite, Update, encode_transaction
from tests.hostile.limits import within_limits
from tests.hostile.mutations import bit_flips, messages, overwrites, splices, truncations
from tests.hostile.scene import Scene, make_scene

CASES = 120
"""Of each operation."""


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "stable row ids"])
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return make_scene(tmp_path_factory.mktemp("scene"), stable_row_ids=request.param)


def damaged(scene: Scene, rng: random.Random) -> Iterator[tuple[str, str, pb.Transaction]]:
    for name, operation in scene.operations.items():
        honest = encode_transaction(operation, read_version=scene.head.version, properties={"by": "us"})
        for what, message in messages(honest, CASES, rng):
            yield name, f"{name}: {what}", message


def test_undamaged_transactions_can_be_committed(scene: Scene) -> None:
    for name in scene.operations:
        assert scene.commit(name, {}, scene.head.version).version == scene.head.version + 1


def test_damaged_transactions_to_be_committed(scene: Scene) -> None:
    counts: Counter[str] = Counter()
    before = scene.store({})
    for _, what, message in damaged(scene, random.Random(3)):
        store = scene.store({})
        with within_limits(what):
            try:
                committed = commit_transaction(store, "t", message, max_retries=0)
            except LanceCoreError:
                counts["refused"] += 1
            else:
                counts["committed"] += 1
                lineage_break(scene.head, committed.file)
                assert Dataset.open(store, location="t").version == scene.head.version + 1
                continue
        assert {meta.path for meta in store.list("t/_versions")} == {meta.path for meta in before.list("t/_versions")}
    assert counts["refused"] > 300
    assert counts["committed"] > 100


def test_damaged_transactions_that_were_committed(scene: Scene) -> None:
    """What stands in the next version's transaction is judged against each operation of ours."""
    outcomes: Counter[str] = Counter()
    for name, what, message in damaged(scene, random.Random(4)):
        with within_limits(what):
            for ours in scene.operations.values():
                try:
                    outcomes[judge(ours, message).outcome.value] += 1
                except LanceCoreError:
                    outcomes["refused"] += 1
            try:
                scene.commit(name, following(scene, message.SerializeToString()), scene.head.version)
            except LanceCoreError:
                outcomes["not followed"] += 1
            else:
                outcomes["followed"] += 1
    assert min(outcomes[kind] for kind in ("compatible", "retryable", "incompatible", "followed", "not followed")) > 50


def following(scene: Scene, transaction: bytes) -> dict[str, bytes]:
    """One more version, whose transaction is only in its own file, and holds these bytes."""
    version = scene.head.version
    manifest = pb.Manifest()
    manifest.CopyFrom(scene.head.manifest)
    manifest.version = version + 1
    manifest.transaction_file = f"{version}-other.txn"
    return {
        scene.manifest_key(version + 1): encode_manifest_file(manifest, None, scene.head.indices),
        f"t/_transactions/{version}-other.txn": transaction,
    }


def test_damaged_transaction_files(scene: Scene) -> None:
    rng = random.Random(5)
    counts: Counter[str] = Counter()
    for name in ("append", "update", "rewrite", "config"):
        data = encode_transaction(scene.operations[name], read_version=scene.head.version).SerializeToString()
        cases = (
            *truncations(data, 150),
            *bit_flips(data, 100, rng),
            *overwrites(data, 100, rng),
            *splices(data, 50, rng),
        )
        for what, bytes_ in cases:
            changed = following(scene, bytes_)
            with within_limits(what):
                try:
                    dataset = Dataset.open(scene.store(changed), location="t")
                    assert dataset.version == scene.head.version + 1
                    assert len(dataset.history()) == scene.head.version + 1
                    scene.commit("append", changed, scene.head.version)
                except LanceCoreError:
                    counts["refused"] += 1
                else:
                    counts["followed"] += 1
    assert counts["refused"] > counts["followed"] > 50


def test_a_transaction_file_outside_its_directory(scene: Scene) -> None:
    for name in ("../../t/x.txn", "1-../x.txn", "1-\0.txn", "/etc/passwd", "1-..\\x.txn", "2" * 5000 + "-x.txn"):
        manifest = pb.Manifest()
        manifest.CopyFrom(scene.head.manifest)
        manifest.version = scene.head.version + 1
        manifest.transaction_file = name
        store = scene.store({scene.manifest_key(manifest.version): encode_manifest_file(manifest, None)})
        try:
            assert Dataset.open(store, location="t").transaction is None
        except LanceCoreError:
            continue


def new_fragment(scene: Scene) -> pb.DataFragment:
    operation = scene.operations["append"]
    assert isinstance(operation, Append)
    return pb.DataFragment.FromString(operation.fragments[0].SerializeToString())


def test_absurd_row_counts_are_refused(scene: Scene) -> None:
    """A range takes a few bytes whatever it spans: its rows must be counted before they are expanded."""
    (fragment,) = (
        pb.DataFragment.FromString(entry.SerializeToString()) for entry in scene.operations["append"].fragments
    )
    span = pb.U64Segment(range=pb.U64Segment.Range(start=0, end=2**40))
    fragment.physical_rows = 2**32
    fragment.inline_row_ids = pb.RowIdSequence(segments=[span] * 9).SerializeToString()
    stable = scene.head.manifest.next_row_id > 0
    expected = (UnsupportedFeature, "expected at most 67108864") if stable else (None, "")
    for operation in (Update(new=(fragment,)), Update(updated=(scene.head.manifest.fragments[0],), new=(fragment,))):
        transaction = encode_transaction(operation, read_version=scene.head.version)
        with within_limits("row ids"):
            if expected[0] is None:
                commit_transaction(scene.store({}), "t", transaction)
            else:
                with pytest.raises(expected[0], match=expected[1]):
                    commit_transaction(scene.store({}), "t", transaction)


def test_a_fragment_with_too_many_rows_is_refused(scene: Scene) -> None:
    (fragment,) = (
        pb.DataFragment.FromString(entry.SerializeToString()) for entry in scene.operations["append"].fragments
    )
    fragment.physical_rows = 2**32 + 1
    transaction = encode_transaction(Append((fragment,)), read_version=scene.head.version)
    with pytest.raises(InvalidTransaction, match="a new fragment has 4294967297 rows"):
        commit_transaction(scene.store({}), "t", transaction)


def test_an_index_version_out_of_range_is_refused(scene: Scene) -> None:
    operation = scene.operations["rewrite"]
    assert isinstance(operation, Rewrite)
    transaction = encode_transaction(operation, read_version=scene.head.version)
    (index,) = scene.head.indices.indices if scene.head.indices is not None else ()
    del transaction.rewrite.rewritten_indices[:]
    transaction.rewrite.rewritten_indices.add(old_id=index.uuid, new_id=index.uuid, new_index_version=2**32 - 1)
    with pytest.raises(InvalidTransaction, match="is rewritten to version 4294967295"):
        commit_transaction(scene.store({}), "t", transaction)


def test_index_coverage_that_is_not_a_bitmap(scene: Scene) -> None:
    with pytest.raises(LanceCoreError, match="coverage of 3 bytes is not a Roaring bitmap"):
        decode_bitmap(b"\x00\x01\x02", "coverage")
    with pytest.raises(LanceCoreError, match="coverage has 9 bytes, expected a bitmap of 8"):
        decode_bitmap(b"\x3a\x30\x00\x00\x00\x00\x00\x00\x00", "coverage")
