import json
import random
import signal
import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.fragment import FragmentMetadata

from lance_core import data
from lance_core.data import (
    arrow_schema,
    encode_rows,
    fragment_message,
    open_published,
    open_staged,
    read_rows,
    schema_fields,
)
from lance_core.errors import UnsupportedFeature
from lance_core.format.manifest import encode_manifest_file, parse_manifest_file
from lance_core.format.naming import manifest_path
from lance_core.format.schema import data_file_message
from lance_core.proto import lance_table_pb2 as pb
from lance_core.tables.dataset import Dataset
from tests.emulators import REPOSITORY
from tests.staged_fragments import stage_fragments

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("count", pa.int64()),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("point", pa.struct([pa.field("x", pa.float64()), pa.field("y", pa.large_string())])),
    ],
    metadata={"made": "here"},
)


def make_rows(count: int, start: int = 0) -> pa.Table:
    rows = [
        {
            "id": f"row {i}",
            "count": i if i % 3 else None,
            "tags": [str(i)] * (i % 4),
            "point": {"x": i / 2, "y": "y" * i},
        }
        for i in range(start, start + count)
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("count", [0, 1, 3, 500])
def test_rows_survive_encoding(version: str, count: int) -> None:
    rows = make_rows(count)
    encoded = encode_rows(rows, version)
    assert read_rows(encoded) == rows
    assert read_rows(encoded, ["count", "id"]).to_pydict() == rows.select(["id", "count"]).to_pydict()


def test_rows_in_several_chunks_are_one_file() -> None:
    rows = pa.concat_tables([make_rows(3), make_rows(4, start=3)])
    assert read_rows(encode_rows(rows)) == rows


def test_rows_are_stored_uncompressed() -> None:
    text = "compressible " * 1000
    rows = pa.table({"a": [text + str(i) for i in range(50)], "b": [[text + str(i)] for i in range(50)]})
    assert len(encode_rows(rows)) > 2 * 50 * len(text) * 0.9


def test_concurrent_encoders_are_independent_and_leave_no_files() -> None:
    def encode(start: int) -> bytes:
        return encode_rows(make_rows(20, start))

    with ThreadPoolExecutor(8) as pool:
        encoded = list(pool.map(encode, range(0, 4000, 20)))
    assert [read_rows(one, ["id"])["id"][0].as_py() for one in encoded] == [f"row {i}" for i in range(0, 4000, 20)]
    assert data._memory_session().list() == []


def test_a_failed_encoding_leaves_no_files() -> None:
    with pytest.raises(UnsupportedFeature, match="cannot be encoded"):
        encode_rows(pa.table({"a": pa.array([None], pa.month_day_nano_interval())}))
    assert data._memory_session().list() == []


@pytest.mark.parametrize("seed", range(3))
def test_damaged_rows_are_corrupt_or_still_read(seed: int, tmp_path: Path) -> None:
    """In processes of their own: a few damages in a thousand make pylance end the process."""
    whole = tmp_path / "whole.lance"
    whole.write_bytes(encode_rows(make_rows(5)))
    size = whole.stat().st_size
    dice = random.Random(seed)
    orders = [
        (dice.sample(range(8 * size), dice.randrange(1, 3)), dice.choice([size, size, dice.randrange(size)]))
        for _ in range(200)
    ]
    ended = 0
    found: list[str] = []
    while len(found) + ended < len(orders):
        left = orders[len(found) + ended :]
        reader = subprocess.run(
            [sys.executable, "-m", "tests.tables.damaged_reader", whole],
            input="\n".join(map(json.dumps, left)),
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            check=False,
        )
        found += reader.stdout.split()
        assert reader.returncode == (0 if len(found) + ended == len(orders) else -signal.SIGABRT), reader.stderr
        ended += reader.returncode != 0
    assert set(found) == {"read", "corrupt"}
    assert ended < len(orders) / 20


def test_fields_are_those_that_pylance_stores(tmp_path: Path) -> None:
    schema = pa.schema(
        [
            *SCHEMA,
            pa.field("id2", pa.int32(), nullable=False, metadata={"lance-schema:unenforced-primary-key": "true"}),
            pa.field("when", pa.timestamp("us", "UTC"), metadata={"unit": "µs"}),
            pa.field("vector", pa.list_(pa.float16(), 8)),
            pa.field("kind", pa.dictionary(pa.int8(), pa.string())),
            pa.field("pairs", pa.map_(pa.string(), pa.int32())),
            pa.field("amount", pa.decimal128(10, 2)),
        ],
        metadata={"made": "here"},
    )
    lance.write_dataset(schema.empty_table(), str(tmp_path / "t"), schema=schema)
    dataset = Dataset.open(str(tmp_path / "t"))
    assert schema_fields(schema) == list(dataset.manifest.fields)
    theirs = lance.dataset(str(tmp_path / "t")).schema
    assert dataset.schema.equals(theirs, check_metadata=True)
    assert arrow_schema(schema_fields(schema)).metadata is None


def test_types_that_the_format_does_not_have_are_refused() -> None:
    with pytest.raises(UnsupportedFeature, match="cannot be stored"):
        schema_fields(pa.schema([pa.field("a", pa.month_day_nano_interval())]))
    with pytest.raises(UnsupportedFeature, match="cannot be read"):
        arrow_schema([pb.Field(name="a", parent_id=-1, logical_type="later")])


def test_pylance_reads_a_version_made_of_our_rows(tmp_path: Path) -> None:
    root = tmp_path / "t"
    lance.write_dataset(make_rows(3), str(root))
    dataset = Dataset.open(str(root))
    encoded = encode_rows(make_rows(4, start=3))
    name = f"{uuid.uuid4()}.lance"
    (root / "data" / name).write_bytes(encoded)
    manifest = pb.Manifest()
    manifest.CopyFrom(dataset.manifest)
    manifest.version = 2
    manifest.max_fragment_id = 1
    file = data_file_message(name, list(manifest.fields), size=len(encoded))
    manifest.fragments.add(id=1, physical_rows=4, files=[file])
    transaction = pb.Transaction(
        read_version=1, uuid="u", append=pb.Transaction.Append(fragments=manifest.fragments[1:])
    )
    (root / manifest_path("", 2)).write_bytes(encode_manifest_file(manifest, transaction))
    table = lance.dataset(str(root))
    table.validate()
    assert table.to_table().to_pylist() == make_rows(7).to_pylist()
    assert table.to_table(filter="count = 5", columns=["id"])["id"].to_pylist() == ["row 5"]


def test_fragments_are_described_as_in_the_manifest(tmp_path: Path) -> None:
    for stable in (False, True):
        root = tmp_path / str(stable)
        rows = pa.table({"a": range(20_000)})
        table = lance.write_dataset(rows, str(root), enable_stable_row_ids=stable, max_rows_per_file=10_000)
        table.delete("a < 3")
        table.update({"a": "a + 1"}, where="a = 77")
        table.delete("a >= 10000 and a % 10 != 0")
        dataset = Dataset.open(str(root))
        fragments = [fragment.metadata for fragment in dataset.to_pylance().get_fragments()]
        assert [fragment_message(fragment) for fragment in fragments] == list(dataset.manifest.fragments)
        again = [FragmentMetadata.from_json(json.dumps(fragment.to_json())) for fragment in fragments]
        assert [fragment_message(fragment) for fragment in again] == list(dataset.manifest.fragments)
        kinds = {fragment.deletion_file.file_type for fragment in dataset.manifest.fragments}
        assert kinds == {pb.DeletionFile.ARROW_ARRAY, pb.DeletionFile.BITMAP}


def test_the_fragments_of_a_branch_keep_their_base(table: Path) -> None:
    dataset = Dataset.open(str(table), ("dev", None))
    fragments = [fragment.metadata for fragment in dataset.to_pylance().get_fragments()]
    assert [fragment_message(fragment) for fragment in fragments] == list(dataset.manifest.fragments)
    assert all(fragment.files[0].HasField("base_id") for fragment in dataset.manifest.fragments)


def test_overlays_are_refused() -> None:
    fragment = FragmentMetadata(0, [], 1, overlays=[object()])  # type: ignore[list-item]
    with pytest.raises(UnsupportedFeature, match="fragment 0 has 1 data overlays"):
        fragment_message(fragment)


def test_staged_fragments_are_in_no_version(table: Path) -> None:
    before = Dataset.open(str(table))
    fragments = stage_fragments(pa.table({"a": range(10)}), str(table), mode="append")
    assert [fragment.physical_rows for fragment in fragments] == [10]
    assert (table / "data" / fragments[0].files[0].path).stat().st_size == fragments[0].files[0].file_size_bytes
    assert before.checkout(None) is before


def test_fragments_of_a_new_table_are_staged(tmp_path: Path) -> None:
    reader = pa.RecordBatchReader.from_batches(SCHEMA, make_rows(6).to_batches(max_chunksize=2))
    (fragment,) = stage_fragments(reader, str(tmp_path / "new"), mode="create")
    assert fragment.physical_rows == 6
    fields = schema_fields(SCHEMA)
    assert set(fragment.files[0].fields) <= {field.id for field in fields}
    assert not (tmp_path / "new" / "_versions").exists()


def test_staged_and_published_versions_open(table: Path) -> None:
    dataset = Dataset.open(str(table))
    manifest = pb.Manifest()
    manifest.CopyFrom(dataset.manifest)
    manifest.version = 5
    del manifest.fragments[0]
    file = parse_manifest_file(encode_manifest_file(manifest, None, dataset.indices))
    staged = open_staged(str(table), file)
    assert (staged.version, staged.to_table(filter="a > 4")["a"].to_pylist()) == (5, [5])
    assert open_published(str(table), 1).to_table()["a"].to_pylist() == [1, 2, 3]
