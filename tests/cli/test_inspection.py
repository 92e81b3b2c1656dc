"""Inspection of files of pylance, of malformed files, and of tables."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import lance
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from lance_core.errors import CorruptFile, NotFound, ReferenceNotFound, StorageError, UnsupportedFeature
from lance_core.format.deletion import encode_deletion_file
from lance_core.format.manifest import encode_manifest_file
from lance_core.format.naming import manifest_name
from lance_core.proto import lance_table_pb2 as pb
from namespace_server.cli.inspection import inspect_file, inspect_uri, render_text
from tests.storage.test_services import Emulator
from tests.transaction.tables import Table, make_table, rows


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Ids 0 to 19 in two fragments, 5 deleted, an index, a config, a tag on version 2, a branch from the last one."""
    made = make_table(tmp_path, (0, 10), (10, 20), stable_row_ids=True)
    made.open().delete("id = 5")
    made.open().create_scalar_index("id", "BTREE")
    made.open().update_config({"k": "v"})
    made.open().tags.create("first", 2)
    made.open().create_branch("dev/x")
    return made


def files(table: Table) -> list[Path]:
    found = (path for path in sorted(table.path.rglob("*")) if path.is_file())
    return [path for path in found if path.suffix != ".lance"]


def test_every_file_of_a_table_is_described(table: Table) -> None:
    kinds = set()
    for path in files(table):
        found = inspect_uri(path)
        kinds.add(found["kind"])
        assert found["bytes"] == path.stat().st_size
        assert json.loads(json.dumps(found)) == found
        assert "unknown_fields" not in json.dumps(found)
        assert render_text(found).endswith("\n")
    assert kinds == {"manifest", "transaction", "deletion file", "reference", "version hint"}


def test_a_description_agrees_with_pylance(table: Table) -> None:
    dataset = table.open()
    found = inspect_uri(table.path)
    assert (found["version"], found["branch"], found["state"]) == (dataset.version, None, "committed")
    assert found["rows"]["live"] == dataset.count_rows() == 19
    assert found["rows"]["deleted"] == 1
    assert found["timestamp"].startswith(dataset.versions()[-1]["timestamp"].strftime("%Y-%m-%dT"))
    assert found["writer"] == f"lance {lance.__version__}"
    assert found["flags"]["reader"] == ["deletion files (bit 0)", "stable row ids (bit 1)"]
    assert found["content"]["config"]["k"] == "v"
    assert [field["name"] for field in found["content"]["fields"]] == dataset.schema.names
    assert [fragment["id"] for fragment in found["content"]["fragments"]] == [0, 1]
    assert found["content"]["fragments"][1]["inline_row_ids"] == [{"kind": "range", "from": 10, "below": 20}]
    [index] = found["indices"]
    assert (index["name"], index["type"], index["covers"]) == ("id_idx", "BTree", {"count": 2, "numbers": ["0-1"]})
    assert found["transaction"]["operation"] == "update_config"
    assert found["transaction"]["uuid"] == dataset.read_transaction(dataset.version).uuid
    assert found["tags"] == {"first": {"version": 2, "branch": None}}
    assert found["branches"] == {"dev/x": {"parent_version": dataset.version, "parent_branch": None}}
    assert found["findings"] == []


def test_sections_cover_the_file(table: Table) -> None:
    found = inspect_uri(table.path)
    sections = found["sections"]
    assert [section["section"] for section in sections] == ["indices", "transaction", "manifest", "footer"]
    ends = [section["offset"] + section["bytes"] for section in sections]
    assert ends == [*(section["offset"] for section in sections[1:]), found["bytes"]]


@pytest.mark.parametrize(
    ("version", "ref", "expected"),
    [(1, None, (1, None)), (None, "first", (2, None)), (None, "dev/x", (5, "dev/x")), (3, "main", (3, None))],
)
def test_references(table: Table, version: int | None, ref: str | None, expected: tuple[int, str | None]) -> None:
    found = inspect_uri(table.uri, version=version, ref=ref)
    assert (found["version"], found["branch"]) == expected


@pytest.mark.parametrize(
    ("version", "ref", "said"),
    [
        (9, None, "expected version 9, found versions 1 to 5"),
        (None, "gone", "expected a tag or branch, found dev/x, first"),
        (1, "first", "it names version 2"),
        (1, "dev/x", "expected version 1, found versions 5 to 5"),
    ],
)
def test_a_missing_version_or_reference_is_reported_with_the_existing_ones(
    table: Table, version: int | None, ref: str | None, said: str
) -> None:
    with pytest.raises(ReferenceNotFound, match=said):
        inspect_uri(table.uri, version=version, ref=ref)


def test_a_missing_file_or_table_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ReferenceNotFound, match="expected a version, found none"):
        inspect_uri(tmp_path / "none")
    with pytest.raises(NotFound):
        inspect_uri(tmp_path / "7.manifest")
    with pytest.raises(StorageError, match="nothing://"):
        inspect_uri("nothing://x/t")
    with pytest.raises(UnsupportedFeature, match="expected a manifest, a transaction"):
        inspect_file("t/data/x.lance", b"")


def test_many_fragments_are_shown_by_their_ends(tmp_path: Path) -> None:
    table = make_table(tmp_path, (0, 1))
    lance.write_dataset(rows(1, 41), table.uri, mode="append", max_rows_per_file=1, max_rows_per_group=1)
    found = inspect_uri(table.uri)
    text = render_text(found)
    assert len(found["content"]["fragments"]) == 41
    assert "… 29 fragments of 29 physical rows …" in text
    assert "  fragment      40: 1 rows" in text
    assert "fragment      20:" not in text


def test_a_transaction_that_is_not_inline_is_read_from_its_file(table: Table) -> None:
    [path] = [path for path in files(table) if path.name == manifest_name(2)]
    head = table.manifests()[2]
    path.write_bytes(encode_manifest_file(head.manifest, None, head.indices))
    found = inspect_uri(table.uri, version=2)
    assert found["transaction"]["operation"] == "append"
    assert "the transaction is not in this file, only in" in found["findings"][0]
    (table.path / "_transactions" / head.manifest.transaction_file).unlink()
    assert any("the transaction cannot be read" in said for said in inspect_uri(table.uri, version=2)["findings"])


def unknown_field(number: int, payload: bytes) -> bytes:
    key = number << 3 | 2
    return bytes([key & 0x7F | 0x80, key >> 7, len(payload)]) + payload


def test_unknown_fields_are_shown() -> None:
    manifest = pb.Manifest(version=3)
    manifest.MergeFromString(unknown_field(77, b"hello"))
    manifest.fragments.add(id=4).MergeFromString(unknown_field(78, b"deep"))
    transaction = pb.Transaction(uuid="u", read_version=2)
    transaction.MergeFromString(unknown_field(200, b"operation"))
    found = inspect_file(manifest_name(3), encode_manifest_file(manifest, transaction))
    assert found["content"]["unknown_fields"] == [
        {"field": 77, "wire_type": 2, "value": {"bytes": 5, "hex": b"hello".hex()}}
    ]
    assert found["content"]["fragments"][0]["unknown_fields"][0]["field"] == 78
    assert found["transaction"]["summary"] == "an unknown operation: field 200"
    text = render_text(found)
    assert "unknown field 77" in text
    assert "[unknown field 78" in text
    assert any("the next commit of any writer drops them" in said for said in found["findings"])


def test_an_operation_without_a_defined_message() -> None:
    transaction = pb.Transaction(uuid="u", read_version=2, composite_operation=b"12345")
    found = inspect_file("2-u.txn", transaction.SerializeToString())
    assert (found["operation"], found["summary"]) == ("composite_operation", "5 bytes that this engine does not read")


FINDINGS: dict[str, tuple[pb.Manifest, str]] = {
    "name": (pb.Manifest(version=4), "the name says version 3, the content 4"),
    "flags": (pb.Manifest(version=3, reader_feature_flags=1 << 40), r"reader flags .* \(bit 40\)"),
    "twice": (
        pb.Manifest(version=3, fragments=[pb.DataFragment(id=1), pb.DataFragment(id=1)]),
        "more than once, whose rows scans drop: 1",
    ),
    "mark": (
        pb.Manifest(version=3, max_fragment_id=1, fragments=[pb.DataFragment(id=2)]),
        "fragment 2 is above max_fragment_id 1",
    ),
    "deleted": (
        pb.Manifest(
            version=3,
            fragments=[pb.DataFragment(id=2, physical_rows=1, deletion_file=pb.DeletionFile(num_deleted_rows=2))],
        ),
        "more rows deleted than there are: 2",
    ),
    "row ids": (
        pb.Manifest(version=3, writer_feature_flags=2, fragments=[pb.DataFragment(id=2)]),
        "without row ids, on a table with stable row ids",
    ),
    "format": (
        pb.Manifest(
            version=3,
            data_format=pb.Manifest.DataStorageFormat(version="2.2"),
            fragments=[pb.DataFragment(id=2, files=[pb.DataFile(file_major_version=2, file_minor_version=1)])],
        ),
        "not of format 2.2: 2",
    ),
    "parent": (pb.Manifest(version=3, fields=[pb.Field(id=1, parent_id=0)]), "field 1 is listed before its parent 0"),
    "tree": (pb.Manifest(version=3, fragment_tree=b""), "fragment_tree is set"),
    "transaction": (pb.Manifest(version=3), "the transaction is not in this file, nowhere: stale writers fail"),
    "time": (pb.Manifest(version=3), "no timestamp"),
}


@pytest.mark.parametrize("name", FINDINGS)
def test_content_that_readers_reject_is_a_finding(name: str) -> None:
    manifest, expected = FINDINGS[name]
    found = inspect_file(f"t/_versions/{manifest_name(3)}", encode_manifest_file(manifest, None))
    assert [said for said in found["findings"] if re.search(expected, said)], found["findings"]


def test_the_name_of_a_manifest_gives_its_state() -> None:
    data = encode_manifest_file(pb.Manifest(version=3), None)
    detached = (1 << 63) + 5
    data_detached = encode_manifest_file(pb.Manifest(version=detached), None)
    assert inspect_file(manifest_name(3), data)["state"] == "committed"
    assert inspect_file(f"{manifest_name(3)}-{'0' * 8}", data)["state"] == "staged"
    assert inspect_file(f"d{detached}.manifest", data_detached)["state"] == "detached"
    assert inspect_file("copy.manifest", data)["state"] == "not named as a version"


@given(rows_=st.sets(st.integers(0, 60_000), min_size=1, max_size=50), kind=st.sampled_from([0, 1]))
def test_deletion_files(rows_: set[int], kind: Any) -> None:
    message, data = encode_deletion_file(BitMap(rows_), read_version=4, kind=kind)
    found = inspect_file(f"7-4-{message.id}.{'bin' if kind else 'arrow'}", data)
    assert (found["fragment"], found["read_version"], found["deleted_rows"]) == (7, 4, len(rows_))
    listed: list[int] = []
    for part in found["rows"]:
        first, _, last = part.partition("-")
        listed += range(int(first), int(last or first) + 1)
    assert listed == sorted(rows_)


def test_control_characters_are_escaped() -> None:
    manifest = pb.Manifest(
        version=3, config={"\x1b[2J": "\x07\r\n"}, fields=[pb.Field(name="\u202ename", parent_id=-1)]
    )
    text = render_text(inspect_file(manifest_name(3), encode_manifest_file(manifest, None)))
    assert all(character.isprintable() or character == "\n" for character in text)
    assert "\\x1b[2J" in text


NAMES = [
    manifest_name(3),
    f"{manifest_name(3)}-0",
    "3-u.txn",
    "0-1-2.bin",
    "0-1-2.arrow",
    "_refs/tags/t.json",
    "_refs/branches/b.json",
    "latest_version_hint.json",
]


@pytest.fixture(scope="module")
def specimens(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, bytes]]:
    made = make_table(tmp_path_factory.mktemp("specimens"), (0, 10), stable_row_ids=True)
    made.open().delete("id = 5")
    made.open().create_scalar_index("id", "BTREE")
    made.open().tags.create("t", 1)
    made.open().create_branch("b")
    return [(str(path.relative_to(made.path)), path.read_bytes()) for path in files(made)]


@given(data=st.data())
def test_any_bytes_are_described_or_refused(specimens: list[tuple[str, bytes]], data: st.DataObject) -> None:
    name, good = data.draw(st.sampled_from([*specimens, *((name, b"") for name in NAMES)]))
    broken = bytearray(good)
    for _ in range(data.draw(st.integers(0, 4))):
        if broken:
            broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    content = bytes(broken[: data.draw(st.integers(0, len(broken)))]) or data.draw(st.binary(max_size=64))
    try:
        found = inspect_file(name, content)
    except CorruptFile:
        return
    json.dumps(found)
    render_text(found)


def test_a_table_in_a_bucket(moto_server: Emulator) -> None:
    uri = moto_server.new_root() + "/t"
    lance.write_dataset(rows(0, 10), uri, storage_options=moto_server.storage_options)
    found = inspect_uri(uri, storage_options=moto_server.storage_options)
    assert (found["version"], found["rows"]["live"]) == (1, 10)
    again = inspect_uri(found["uri"], storage_options=moto_server.storage_options)
    assert again["sha256"] == found["sha256"]
