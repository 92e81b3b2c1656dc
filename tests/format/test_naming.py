import uuid
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_core.errors import UnsupportedFeature
from lance_core.format import naming
from lance_core.format.naming import NamingScheme
from lance_core.proto import lance_table_pb2 as pb

versions = st.integers(1, 2**63 - 1)
schemes = st.sampled_from(NamingScheme)


@pytest.mark.parametrize("scheme", NamingScheme)
def test_names_are_those_of_pylance(tmp_path: Path, scheme: NamingScheme) -> None:
    root = tmp_path / "table.lance"
    for _ in range(11):
        v2 = scheme is NamingScheme.V2
        lance.write_dataset(pa.table({"a": [1]}), str(root), mode="append", enable_v2_manifest_paths=v2)
    names = {path.name for path in (root / "_versions").glob("*.manifest")}
    assert names == {naming.manifest_name(version, scheme) for version in range(1, 12)}
    assert naming.manifest_path("a/b", 3, scheme) == f"a/b/_versions/{naming.manifest_name(3, scheme)}"


def test_v2_is_the_default_and_a_base_may_be_the_root_of_the_store() -> None:
    assert naming.manifest_name(1) == "18446744073709551614.manifest"
    assert naming.manifest_path("", 1) == "_versions/18446744073709551614.manifest"


@given(versions, schemes)
def test_parsing_is_the_inverse_of_naming(version: int, scheme: NamingScheme) -> None:
    assert naming.parse_manifest_name(naming.manifest_name(version, scheme)) == (version, scheme)


@given(versions, versions)
def test_v2_names_list_the_newest_version_first(one: int, other: int) -> None:
    assert (one > other) == (naming.manifest_name(one) < naming.manifest_name(other))


@given(st.text(max_size=30) | st.from_regex(r"[0-9]{1,21}\.manifest", fullmatch=True))
def test_what_parses_is_canonical(name: str) -> None:
    parsed = naming.parse_manifest_name(name)
    assert parsed is None or naming.manifest_name(*parsed) == name


@pytest.mark.parametrize(
    "name",
    [
        "0.manifest",
        "07.manifest",
        "-1.manifest",
        "7.manifest ",
        "7.manifest\n",
        "\u0667.manifest",
        "18446744073709551615.manifest",
        "00000000000000000000.manifest",
        "09223372036854775807.manifest",
        "99999999999999999999.manifest",
        "d9223372036854775809.manifest",
        "9223372036854775809.manifest",
        "18446744073709551614.manifest-6ba7b810",
        "18446744073709551614.manifest#1",
        "latest_version_hint.json",
        "",
    ],
)
def test_other_names_are_not_manifests(name: str) -> None:
    assert naming.parse_manifest_name(name) is None


@pytest.mark.parametrize("version", [0, -1, 2**63, 2**64])
def test_only_committed_numbers_have_names(version: int) -> None:
    with pytest.raises(ValueError, match=f"version {version}: expected"):
        naming.manifest_name(version)


@given(versions, schemes, st.uuids())
def test_a_staged_name_has_the_version_and_scheme_of_its_canonical_name(
    version: int, scheme: NamingScheme, suffix: uuid.UUID
) -> None:
    canonical = naming.manifest_name(version, scheme)
    assert naming.parse_staged_name(f"{canonical}-{suffix}") == (version, scheme)
    assert naming.parse_staged_name(canonical) is None
    assert naming.parse_staged_name(f"{canonical}-") is None
    assert naming.parse_staged_name(f"{canonical}-a/b") is None
    assert naming.parse_staged_name(f"d{canonical}-{suffix}") is None


@given(st.integers(0, 2**64 - 1), st.uuids())
def test_transaction_names(read_version: int, transaction: uuid.UUID) -> None:
    name = naming.transaction_name(read_version, str(transaction))
    assert naming.parse_transaction_name(name) == (read_version, str(transaction))
    assert naming.transaction_path("t", read_version, str(transaction)) == f"t/_transactions/{name}"


@pytest.mark.parametrize("name", ["", "1-.txn", "-u.txn", "1-u", "x-u.txn", "1-../u.txn", "²-u.txn"])
def test_other_names_are_not_transactions(name: str) -> None:
    assert naming.parse_transaction_name(name) is None


def test_deletion_names() -> None:
    assert naming.deletion_path("t", 3, 4, 5, pb.DeletionFile.ARROW_ARRAY) == "t/_deletions/3-4-5.arrow"
    assert naming.deletion_path("", 3, 4, 5, pb.DeletionFile.BITMAP) == "_deletions/3-4-5.bin"
    with pytest.raises(UnsupportedFeature, match="fragment 3 has kind 9"):
        naming.deletion_path("t", 3, 4, 5, 9)  # type: ignore[arg-type]


def test_data_and_index_keys(tmp_path: Path) -> None:
    assert naming.data_path("t", "x.lance") == "t/data/x.lance"
    root = tmp_path / "table.lance"
    lance.write_dataset(pa.table({"a": [1]}), str(root)).create_scalar_index("a", "BTREE")
    (directory,) = (root / "_indices").iterdir()
    assert naming.index_directory("", uuid.UUID(directory.name).bytes) == f"_indices/{directory.name}"


def test_branches_are_below_the_table() -> None:
    assert naming.branch_base("a/t", None) == "a/t"
    assert naming.branch_base("a/t", "main") == "a/t"
    assert naming.branch_base("a/t", "dev/x") == "a/t/tree/dev/x"
    assert naming.branch_base("", "dev") == "tree/dev"


@pytest.mark.parametrize("branch", ["", "..", "a/../../b", "a//b", "/a", "a/", "."])
def test_a_branch_name_cannot_leave_its_directory(branch: str) -> None:
    with pytest.raises(ValueError, match="branch"):
        naming.branch_base("a/t", branch)
