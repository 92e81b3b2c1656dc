import json
from dataclasses import replace
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_core.errors import CorruptFile
from lance_core.format import refs
from lance_core.format.refs import BranchContents, TagContents


@pytest.fixture
def table(tmp_path: Path) -> Path:
    root = tmp_path / "table.lance"
    lance.write_dataset(pa.table({"a": [1, 2]}), str(root))
    lance.write_dataset(pa.table({"a": [3]}), str(root), mode="append")
    return root


def test_tags_of_pylance_are_read_and_written_character_for_character(table: Path) -> None:
    dataset = lance.dataset(str(table))
    dataset.tags.create("v1.0-a_b", 1)
    dataset.tags.replace_metadata("v1.0-a_b", {"why": "größer", "b": "2"})
    path = table / refs.tag_path("", "v1.0-a_b")
    tag = refs.decode_tag(path.read_bytes())
    manifest = table / "_versions" / "18446744073709551614.manifest"
    assert (tag.version, tag.branch, tag.manifest_size) == (1, None, manifest.stat().st_size)
    assert tag.metadata == {"why": "größer", "b": "2"}
    assert refs.encode_tag(tag) == path.read_bytes()
    assert refs.parse_ref_name(path.name) == "v1.0-a_b"


def test_branches_of_pylance_are_read_and_written_character_for_character(table: Path) -> None:
    dataset = lance.dataset(str(table))
    dataset.create_branch("dev/x", 1)
    dataset.checkout_version(("dev/x", None)).create_branch("child", ("dev/x", None))
    parent_path, child_path = (table / refs.branch_path("", name) for name in ("dev/x", "child"))
    parent, child = (refs.decode_branch(path.read_bytes()) for path in (parent_path, child_path))
    assert refs.encode_branch(parent) == parent_path.read_bytes()
    assert refs.encode_branch(child) == child_path.read_bytes()
    assert (parent.parent_branch, parent.parent_version) == (None, 1)
    assert child.parent_branch == "dev/x"
    assert parent.identifier is not None
    assert child.identifier is not None
    assert child.identifier[:-1] == parent.identifier
    assert refs.parse_ref_name(parent_path.name) == "dev/x"


def test_pylance_reads_our_tags(table: Path) -> None:
    tag = TagContents(1, 400, None, refs.format_timestamp(1_795_217_219_000_000_001), None, {"k": "v"})
    path = table / refs.tag_path("", "ours")
    path.parent.mkdir(parents=True)
    path.write_bytes(refs.encode_tag(tag))
    (table / refs.tag_path("", "minimal")).write_text('{"version": 2, "manifestSize": 1}')
    dataset = lance.dataset(str(table))
    assert dataset.tags.list()["ours"]["metadata"] == {"k": "v"}
    assert lance.dataset(str(table), version="ours").version == 1
    assert lance.dataset(str(table), version="minimal").version == 2


def test_pylance_reads_our_branches(table: Path) -> None:
    dataset = lance.dataset(str(table))
    dataset.create_branch("dev", 2)
    path = table / refs.branch_path("", "dev")
    ours = replace(refs.decode_branch(path.read_bytes()), identifier=((2, "0" * 32),), metadata={"k": "v"})
    path.write_bytes(refs.encode_branch(ours))
    assert lance.dataset(str(table)).branches.list()["dev"]["metadata"] == {"k": "v"}
    assert dataset.checkout_version(("dev", None)).count_rows() == 3


def test_optional_members_have_defaults() -> None:
    assert refs.decode_tag(b'{"version": 1, "manifestSize": 2, "later": 0}') == TagContents(1, 2)
    assert refs.decode_branch(b'{"parentVersion": 1, "manifestSize": 2}') == BranchContents(1, 2)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"version": 1}',
        '{"version": "1", "manifestSize": 1}',
        '{"version": true, "manifestSize": 1}',
        '{"version": -1, "manifestSize": 1}',
        '{"version": 1.5, "manifestSize": 1}',
        '{"version": 1, "manifestSize": 1, "branch": 3}',
        '{"version": 1, "manifestSize": 1, "metadata": {"a": 1}}',
        '{"version": 1, "manifestSize": 1, "metadata": []}x',
    ],
)
def test_other_json_is_not_a_tag(text: str) -> None:
    with pytest.raises(CorruptFile, match="tag file"):
        refs.decode_tag(text.encode())


@pytest.mark.parametrize(
    "identifier", ["1", "[]", '{"version_mapping": 1}', '{"version_mapping": [[1]]}', '{"version_mapping": [["1", 2]]}']
)
def test_other_json_is_not_a_branch(identifier: str) -> None:
    with pytest.raises(CorruptFile, match="identifier"):
        refs.decode_branch(f'{{"parentVersion": 1, "manifestSize": 1, "identifier": {identifier}}}'.encode())


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
keys = ["version", "manifestSize", "branch", "metadata", "identifier", "parentVersion", "createAt", "createdAt"]


@given(st.dictionaries(st.sampled_from(keys), json_values).map(json.dumps).map(str.encode) | st.binary(max_size=40))
def test_any_content_is_a_ref_or_corrupt(data: bytes) -> None:
    for decode, encode in ((refs.decode_tag, refs.encode_tag), (refs.decode_branch, refs.encode_branch)):
        try:
            contents = decode(data)
        except CorruptFile:
            continue
        assert decode(encode(contents)) == contents


TAG_NAMES = [
    *("t", "1", "A", "main", "-a", "_", "a-b_c.d", "a.b.lock.c", "tags", "a/b", "a b", "..", "a..b", "x.lock", ".a"),
    *("a.", "", "a@{b", "a%b", "a+b", "a~b", "a\\b", "a:b", "."),
]


@pytest.mark.parametrize("name", TAG_NAMES)
def test_tag_names_are_judged_as_pylance_does(table: Path, name: str) -> None:
    dataset = lance.dataset(str(table))
    try:
        refs.check_tag_name(name)
    except ValueError:
        with pytest.raises(OSError, match="Ref"):
            dataset.tags.create(name, 1)
    else:
        dataset.tags.create(name, 1)
        assert name in dataset.tags.list()


BRANCH_NAMES = [
    *("dev", "a/b/c", "-a", ".a", "A.b_c-d", "1", "tree", "main/x", "main", "", "/a", "a/", "a//b", "a..b", ".."),
    *("x.lock", "a b", "a$b", "a%b", "a\\b", "a/.", "a/./b"),
]


@pytest.mark.parametrize("name", BRANCH_NAMES)
def test_branch_names_are_judged_as_pylance_does(table: Path, name: str) -> None:
    dataset = lance.dataset(str(table))
    try:
        refs.check_branch_name(name)
    except ValueError:
        with pytest.raises(OSError, match=r"Ref|Path"):
            dataset.create_branch(name, 1)
    else:
        dataset.create_branch(name, 1)
        assert name in dataset.branches.list()


def test_names_that_stock_clients_cannot_list_are_refused() -> None:
    for name in ("ü", "٣"):
        with pytest.raises(ValueError, match="expected letters"):
            refs.check_tag_name(name)


@given(st.text(min_size=1, max_size=20))
def test_a_file_name_has_one_reference_name(name: str) -> None:
    file_name = refs.branch_path("t", name).rpartition("/")[2]
    assert refs.parse_ref_name(file_name) == name
    assert "/" not in file_name


@pytest.mark.parametrize("file_name", ["a", ".json", "a.json.tmp", "a%2f.json", "a b.json", "%FF.json", "ü.json"])
def test_other_file_names_are_not_references(file_name: str) -> None:
    assert refs.parse_ref_name(file_name) is None


def test_timestamps_have_nanoseconds() -> None:
    assert refs.format_timestamp(1_795_217_446_979_468_954) == "2026-11-20T23:30:46.979468954Z"
    assert refs.format_timestamp(0) == "1970-01-01T00:00:00.000000000Z"
