"""Damaged manifest files: refused with a typed error, or read as stock pylance reads them, and safe to build on."""

from __future__ import annotations

import random
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import lance
import pytest

from lance_core.commit.loop import commit_transaction
from lance_core.data import arrow_schema
from lance_core.errors import CorruptFile, LanceCoreError, RetryableTransaction
from lance_core.format.manifest import encode_manifest_file, parse_manifest_file
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.memory import MemoryStore
from lance_core.table_files import TableFiles
from lance_core.tables.dataset import Dataset
from lance_core.transaction.lineage import lineage_break
from lance_core.transaction.operations import Update, encode_transaction
from tests.hostile.limits import within_limits
from tests.hostile.mutations import Case, bit_flips, messages, overwrites, sections, splices, truncations
from tests.hostile.scene import Refused, Scene, make_scene, stock, twin_of


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "stable row ids"])
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return make_scene(tmp_path_factory.mktemp("scene"), stable_row_ids=request.param)


def honest(scene: Scene) -> bytes:
    return scene.files[scene.manifest_key(scene.head.version)]


def frames(scene: Scene) -> Iterator[Case]:
    """Sections of the right content whose lengths, places and order lie."""
    manifest, transaction, indices = scene.head.manifest, scene.head.transaction, scene.head.indices
    assert transaction is not None
    assert indices is not None
    bare = pb.Manifest()
    bare.CopyFrom(manifest)
    for name in ("index_section", "transaction_section"):
        bare.ClearField(name)
    parts = (indices.SerializeToString(), transaction.SerializeToString())
    numbers = (0, 1, 4, 2**31, 2**32 - 1, 2**32, 2**62, 2**63 - 1, -1, -(2**63))
    for number in numbers:
        yield f"the manifest at {number}", sections(*parts, bare.SerializeToString(), begin=number)
        for name in ("index_section", "transaction_section", "transaction_section_deprecated"):
            if number >= 0:
                lying = pb.Manifest()
                lying.CopyFrom(manifest)
                setattr(lying, name, number)
                yield f"{name} at {number}", sections(*parts, lying.SerializeToString())
    for place in (0, len(parts[0]) + 4, sum(map(len, parts)) + 8):
        for number in (0, 1, 2**16, 2**31, 2**32 - 1):
            data = honest(scene)
            yield f"a section of {number} bytes", data[:place] + struct.pack("<I", number) + data[place + 4 :]
    for footer in (
        b"",
        b"LANC",
        bytes(16),
        struct.pack("<qHH4s", 0, 0, 3, b"LANC"),
        struct.pack("<qHH4s", 0, 1, 2, b"LANC"),
    ):
        yield f"the footer {footer!r}", sections(*parts, bare.SerializeToString(), footer=footer)
    for content in (b"", b"\xff" * 9, b"\x0a" * 1000, b"\x12\xff\xff\xff\xff\x0f", b"\x62\x02\xff\xfe", b"\x0b" * 500):
        yield f"the manifest {content[:4]!r}", sections(*parts, content)
        swapped = pb.Manifest(version=manifest.version, index_section=0, transaction_section=4 + len(content))
        yield f"the sections {content[:4]!r}", sections(content, content, swapped.SerializeToString())
    yield "each section in the place of the other", sections(parts[1], parts[0], manifest.SerializeToString())
    yield "nothing", b""
    yield "two files", honest(scene) * 2
    field = pb.Field(name="f", logical_type="struct", nullable=True)
    deep = pb.Manifest(version=manifest.version)
    for level in range(30_000):
        field.id, field.parent_id = level, level - 1
        deep.fields.append(field)
    yield "fields in fields without end", sections(deep.SerializeToString())
    del deep.fields[1:]
    deep.fields[0].logical_type = "fixed_size_list:" * 30_000 + "int32" + ":1" * 30_000
    yield "a type of types without end", sections(deep.SerializeToString())


def damaged_messages(scene: Scene, count: int, rng: random.Random) -> Iterator[Case]:
    manifest, transaction, indices = scene.head.manifest, scene.head.transaction, scene.head.indices
    assert transaction is not None
    assert indices is not None
    for what, message in messages(manifest, count, rng):
        yield what, encode_manifest_file(message, transaction, indices)
    for what, message in messages(transaction, count // 2, rng):
        yield what, encode_manifest_file(manifest, message, indices)
    for what, message in messages(indices, count // 2, rng):
        yield what, encode_manifest_file(manifest, transaction, message)


def damaged_bytes(scene: Scene, count: int, rng: random.Random) -> Iterator[Case]:
    data = honest(scene)
    yield from truncations(data)
    yield from bit_flips(data, count, rng)
    yield from overwrites(data, count, rng)
    yield from splices(data, count // 2, rng)


def open_whole(scene: Scene, data: bytes) -> Dataset:
    """Open the version and look at all that a handle shows."""
    version = scene.head.version
    dataset = Dataset.open(scene.store({scene.manifest_key(version): data}), version, location="t")
    assert dataset.manifest.version == version
    assert dataset.schema is not None
    assert dataset.file.timestamp_ns is not None
    assert dataset.history()[0].version == version
    return dataset


def compare(scene: Scene, dataset: Dataset, theirs: lance.LanceDataset) -> None:
    """What we say of the version is what pylance says."""
    manifest = dataset.manifest
    assert theirs.version == dataset.version
    assert theirs.schema == dataset.schema
    assert theirs.config() == dict(manifest.config)
    assert theirs.metadata == dict(manifest.table_metadata)
    for mine, other in zip(manifest.fragments, theirs.get_fragments(), strict=True):
        found = other.metadata
        assert (mine.id, mine.physical_rows) == (found.id, found.physical_rows or 0)
        assert [file.path for file in mine.files] == [file.path for file in found.files]
        assert mine.deletion_file.num_deleted_rows == (
            found.deletion_file.num_deleted_rows or 0 if found.deletion_file else 0
        )


def expected_ids(scene: Scene, dataset: Dataset) -> list[int] | None:
    """The ids of all rows, from our own reading; None when data files are not those that were there."""
    ids = {file.path: start for start, file in zip((0, 10, 20, 3), known_files(scene), strict=True)}
    files = TableFiles(dataset.store, "t")
    found: list[int] = []
    for fragment in dataset.manifest.fragments:
        before = [entry for entry in scene.head.manifest.fragments if list(entry.files) == list(fragment.files)]
        if not before or before[0].physical_rows != fragment.physical_rows:
            return None
        start = ids[fragment.files[0].path]
        gone = files.deleted_rows(dataset.manifest, fragment)
        found += [start + row for row in range(fragment.physical_rows) if row not in gone]
    return sorted(found)


def known_files(scene: Scene) -> list[pb.DataFile]:
    return [fragment.files[0] for fragment in scene.head.manifest.fragments]


def check(scene: Scene, cases: Iterable[Case], twin_root: Path) -> Counter[str]:
    """Every case: our verdict, pylance's, and a commit of each kind on top. Counts what happened."""
    counts: Counter[str] = Counter()
    twin = twin_of(scene, twin_root)
    version = scene.head.version
    names = sorted(scene.operations)
    for number, (what, data) in enumerate(cases):
        with within_limits(what):
            try:
                dataset = open_whole(scene, data)
            except LanceCoreError:
                counts["refused"] += 1
                continue
        counts["accepted"] += 1
        for place in range(3):
            name = names[(3 * number + place) % len(names)]
            with within_limits(f"{name} upon {what}"):
                try:
                    committed = scene.commit(name, {scene.manifest_key(version): data}, version - place % 2)
                except LanceCoreError:
                    counts["not built upon"] += 1
                else:
                    counts["built upon"] += 1
                    assert committed.version == version + 1
                lineage_break(scene.head, dataset.file)
                lineage_break(dataset.file, scene.head)
        (twin.root / scene.manifest_key(version)).write_bytes(data)
        try:
            theirs = stock(lambda: twin.open(version))
        except Refused:
            counts["refused by pylance"] += 1
            continue
        compare(scene, dataset, theirs)
        try:
            ids = stock(lambda: twin.open(version).to_table(columns=["id"])["id"].to_pylist())
        except Refused:
            counts["not scanned by pylance"] += 1
            continue
        try:
            expected = expected_ids(scene, dataset)
        except LanceCoreError:
            counts["deletions refused"] += 1
            continue
        unique = len({fragment.id for fragment in dataset.manifest.fragments}) == len(dataset.manifest.fragments)
        if expected is not None and unique:
            assert sorted(ids) == expected, what
            counts["rows compared"] += 1
    return counts


def test_damaged_messages(scene: Scene, tmp_path: Path) -> None:
    counts = check(scene, damaged_messages(scene, 500, random.Random(1)), tmp_path / "twin")
    assert counts["accepted"] + counts["refused"] >= 1000
    assert counts["rows compared"] > 500
    assert min(counts["built upon"], counts["not built upon"], counts["refused by pylance"]) > 50


def test_damaged_bytes(scene: Scene, tmp_path: Path) -> None:
    counts = check(scene, damaged_bytes(scene, 500, random.Random(2)), tmp_path / "twin")
    assert counts["accepted"] + counts["refused"] >= 2000
    assert counts["refused"] > counts["accepted"] > counts["rows compared"] > 100


def test_frames_with_wrong_lengths_and_offsets(scene: Scene, tmp_path: Path) -> None:
    counts = check(scene, frames(scene), tmp_path / "twin")
    assert counts["refused"] > counts["accepted"] > 0


def nested(depth: int) -> pb.Manifest:
    kinds = ["struct"] * (depth - 1) + ["int32"]
    fields = [
        pb.Field(id=level, parent_id=level - 1, name=f"f{level}", logical_type=kind, nullable=True)
        for level, kind in enumerate(kinds)
    ]
    return pb.Manifest(version=1, fields=fields)


def test_deeply_nested_fields_are_refused() -> None:
    """Decoding such a schema recurses until the process ends, in pylance and Arrow too."""
    store = MemoryStore()
    store.put("t/_versions/1.manifest", encode_manifest_file(nested(60), None))
    assert Dataset.open(store, location="t").schema.names == ["f0"]
    for manifest in (nested(65), nested(50_000)):
        store.put("t/_versions/1.manifest", encode_manifest_file(manifest, None))
        with pytest.raises(CorruptFile, match=r"field 64 .* nested deeper than 64 levels"):
            Dataset.open(store, location="t")
    with pytest.raises(CorruptFile, match="nested deeper than 64 levels"):
        arrow_schema([pb.Field(parent_id=-1, logical_type="fixed_size_list:" * 30_000 + "int32" + ":1" * 30_000)])


def test_a_field_that_is_its_own_parent(scene: Scene) -> None:
    """Whether a proposed version descends from the head is asked of files that clients wrote."""
    before, after = pb.Manifest(), pb.Manifest()
    before.CopyFrom(scene.head.manifest)
    before.fields.add(id=90, parent_id=90, name="round", logical_type="struct")
    before.fields[0].parent_id = 90
    after.CopyFrom(before)
    after.fragments[0].files[0].path = "other.lance"
    update = Update(updated=(after.fragments[0],), fields_modified=(77,), rewrites_columns=True)
    transaction = encode_transaction(update, read_version=before.version)
    head, proposed = (parse_manifest_file(encode_manifest_file(side, transaction)) for side in (before, after))
    with within_limits("cycles"):
        assert "no longer provides field 0" in str(lineage_break(head, proposed))


def test_a_file_name_with_an_absurd_version(scene: Scene) -> None:
    """The versions in between are looked for some at a time, and the first that is not there ends it."""
    version = 2**62
    manifest = pb.Manifest()
    manifest.CopyFrom(scene.head.manifest)
    manifest.version = version
    store = scene.store({scene.manifest_key(version): encode_manifest_file(manifest, None)})
    transaction = encode_transaction(scene.operations["append"], read_version=scene.head.version)
    with (
        within_limits("a gap"),
        pytest.raises(RetryableTransaction, match=r"conflict with version .* no longer be read"),
    ):
        commit_transaction(store, "t", transaction)


HEADS: dict[str, tuple[Callable[[pb.Manifest], object], str]] = {
    "two fragments with one id": (lambda m: m.fragments.append(m.fragments[0]), "5 fragments with 4 ids"),
    "an id of 33 bits": (lambda m: setattr(m.fragments[0], "id", 2**32), "has fragment 4294967296"),
    "no row id left": (lambda m: setattr(m, "next_row_id", 2**63), "has used 9223372036854775808 row ids"),
    "a time before time": (lambda m: setattr(m.timestamp, "seconds", -1), "expected one from"),
    "a time after time": (lambda m: setattr(m.timestamp, "seconds", 2**62), "expected one from"),
    "seconds of more than a second": (lambda m: setattr(m.timestamp, "nanos", 10**9), "expected one from"),
}


@pytest.mark.parametrize("name", HEADS)
def test_manifests_that_nothing_is_built_on(scene: Scene, name: str) -> None:
    change, expected = HEADS[name]
    manifest = pb.Manifest()
    manifest.CopyFrom(scene.head.manifest)
    change(manifest)
    data = encode_manifest_file(manifest, scene.head.transaction, scene.head.indices)
    version = scene.head.version
    with pytest.raises(CorruptFile, match=expected):
        scene.commit("config", {scene.manifest_key(version): data}, version)


def test_no_version_follows_the_largest_number(scene: Scene) -> None:
    manifest = pb.Manifest()
    manifest.CopyFrom(scene.head.manifest)
    manifest.version = version = 2**63 - 1
    with pytest.raises(CorruptFile, match=r"expected a number from 1 to 2\^63 - 2 to build on"):
        scene.commit("config", {scene.manifest_key(version): encode_manifest_file(manifest, None)}, version)


def test_a_known_field_with_a_wrong_wire_type() -> None:
    """pylance reads such an entry of a map, our library sets it aside: the config would lose it without a word."""
    config = pb.Manifest(version=1).SerializeToString() + b"\x82\x01\x06\x0a\x01aR\x01b"
    with pytest.raises(CorruptFile, match=r"config of Manifest has wire type 2"):
        parse_manifest_file(sections(config))


def test_metadata_that_is_not_text_is_preserved(scene: Scene) -> None:
    manifest = pb.Manifest()
    manifest.CopyFrom(scene.head.manifest)
    manifest.schema_metadata["raw"] = b"\xff\xfe"
    manifest.fields[0].metadata["raw"] = b"\xff"
    data = encode_manifest_file(manifest, scene.head.transaction, scene.head.indices)
    version = scene.head.version
    committed = scene.commit("config", {scene.manifest_key(version): data}, version).file.manifest
    assert dict(committed.schema_metadata) == {"raw": b"\xff\xfe", "k": b"v"}
    assert dict(committed.fields[0].metadata) == {"raw": b"\xff", "k": b"v"}
