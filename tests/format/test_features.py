import shutil
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from lance_core.errors import UnsupportedFeature
from lance_core.format.features import check_readable, check_writable
from lance_core.format.manifest import encode_manifest_file, parse_manifest_file
from lance_core.proto import lance_table_pb2 as pb


def test_tables_that_pylance_makes_by_default_are_readable_and_writable(worked_manifests: list[Path]) -> None:
    for path in worked_manifests:
        check_writable(parse_manifest_file(path.read_bytes()).manifest)


@pytest.fixture(scope="module")
def plain_table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("plain") / "table.lance"
    lance.write_dataset(pa.table({"a": [1]}), str(root))
    return root


# Bit 1 needs row ids in every fragment, bit 15 a field of its own.
@pytest.mark.parametrize("bit", [*(bit for bit in range(20) if bit not in {1, 15}), 32, 63])
def test_reader_bits_are_judged_as_pylance_does(plain_table: Path, tmp_path: Path, bit: int) -> None:
    root = tmp_path / "table.lance"
    shutil.copytree(plain_table, root)
    (path,) = (root / "_versions").glob("*.manifest")
    file = parse_manifest_file(path.read_bytes())
    manifest = pb.Manifest()
    manifest.CopyFrom(file.manifest)
    manifest.reader_feature_flags |= 1 << bit
    manifest.writer_feature_flags |= 1 << bit  # some bits count as corrupt in one word alone
    path.write_bytes(encode_manifest_file(manifest, file.transaction))
    try:
        check_readable(manifest)
    except UnsupportedFeature:
        with pytest.raises(Exception, match=r"cannot be read|not supported|flag|feature"):
            lance.dataset(str(root)).to_table()
    else:
        assert lance.dataset(str(root)).count_rows() == 1


@pytest.mark.parametrize("bit", [2, *range(6, 20), 32, 40, 63])
def test_unsupported_writer_bits_are_refused(bit: int) -> None:
    manifest = pb.Manifest(version=3, writer_feature_flags=1 << bit)
    check_readable(manifest)
    with pytest.raises(UnsupportedFeature, match=f"version 3 has writer feature bits {bit},"):
        check_writable(manifest)
    check_writable(manifest, tolerated=1 << bit)


@pytest.mark.parametrize("bit", [0, 1, 3, 4, 5])
def test_supported_writer_bits_are_accepted(bit: int) -> None:
    check_writable(pb.Manifest(writer_feature_flags=1 << bit))


def test_a_fragment_tree_is_not_read() -> None:
    with pytest.raises(UnsupportedFeature, match="fragments in a tree"):
        check_readable(pb.Manifest(fragment_tree=b""))


@pytest.mark.parametrize(
    "manifest",
    [
        pb.Manifest(max_allocated_field_id=0),
        pb.Manifest(clustering=b""),
        pb.Manifest(max_clustering_id=0),
        pb.Manifest(fragments=[pb.DataFragment(overlays=[pb.DataOverlayFile()])]),
    ],
)
def test_unsupported_fields_are_readable_and_not_writable(manifest: pb.Manifest) -> None:
    check_readable(manifest)
    with pytest.raises(UnsupportedFeature):
        check_writable(manifest)
