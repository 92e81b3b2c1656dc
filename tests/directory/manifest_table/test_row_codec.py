"""Entries become rows and come back; rows of other writers are tolerated."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from namespace_server.directory.manifest_table.row_codec import Row, decode_row, decode_version, encode_entry
from namespace_server.directory.model.collector_rows import CollectorEntry, PinEntry
from namespace_server.directory.model.entries import (
    RECORD_STATES,
    Changes,
    Entry,
    NamespaceEntry,
    Participant,
    RecordEntry,
    TableEntry,
    VersionEntry,
    digest_path,
)
from namespace_server.directory.model.object_ids import chain_object_id, split_version_id

names = st.text(st.characters(exclude_characters="$/\x00", codec="utf-8"), min_size=1, max_size=12).filter(
    lambda name: name not in {".", ".."}
)
ids = st.lists(names, min_size=1, max_size=4).map(tuple)
branches = st.none() | st.lists(names, min_size=1, max_size=3).map("/".join).filter(lambda name: name != "main")
properties = st.dictionaries(names, st.text(max_size=8), max_size=3)
numbers = st.integers(1, 2**40)
locations = st.text("abcdef0123456789_$", min_size=1, max_size=20)

versions = st.builds(
    VersionEntry,
    table_id=ids,
    branch=branches,
    version=numbers,
    location=locations,
    size=st.integers(0, 2**40),
    sha256=st.binary(min_size=32, max_size=32).map(bytes.hex),
    transaction_uuid=st.uuids().map(str),
    timestamp_ms=st.integers(0, 2**45),
    e_tag=st.none() | st.text(max_size=8),
    naming_scheme=st.sampled_from(["V1", "V2"]),
    staged_path=st.none() | st.text(max_size=30),
    metadata=properties,
)
participants = st.builds(
    Participant, table_id=ids, branch=branches, version=numbers, location=locations, staged_path=st.none() | names
)
records = st.builds(
    RecordEntry,
    batch_uuid=st.uuids().map(str),
    state=st.sampled_from(sorted(RECORD_STATES)),
    request_hash=st.text("0123456789abcdef", max_size=64),
    idempotency_key=st.none() | names,
    principal=st.none() | names,
    message=st.none() | st.text(max_size=30),
    timestamp_ms=st.integers(0, 2**45),
    attempt=st.uuids().map(str),
    participants=st.lists(participants, max_size=3).map(tuple),
    results=st.just(b"") | st.lists(properties, max_size=3).map(orjson.dumps),
    operation=st.text(max_size=30),
    catalog_version=numbers | st.just(0),
    properties=properties,
)
entries = st.one_of(
    st.builds(NamespaceEntry, id=ids, properties=properties),
    st.builds(TableEntry, id=ids, location=locations, properties=properties),
    versions,
    records,
    st.builds(
        CollectorEntry,
        horizon=st.integers(0, 2**34),
        oldest=numbers,
        run=st.uuids().map(str),
        timestamp_ms=st.integers(0, 2**45),
        settings=properties,
        grace=st.integers(0, 2**34),
    ),
    st.builds(
        PinEntry,
        name=st.text("abc0-._", min_size=1, max_size=12),
        version=numbers,
        until_ms=st.integers(0, 2**45),
        reason=st.none() | names,
        principal=st.none() | names,
        timestamp_ms=st.integers(0, 2**45),
        seconds=st.integers(0, 2**31),
        set_in=st.integers(0, 2**31),
    ),
)


@settings(max_examples=300)
@given(entries)
def test_an_entry_comes_back_from_its_row(entry: Entry) -> None:
    row = encode_entry(entry)
    assert decode_row(row) == entry
    assert row.object_id == entry.object_id
    assert hash(decode_row(row)) == hash(entry)


@given(ids, branches, ids, branches, numbers)
def test_chains_of_one_table_have_distinct_object_ids(
    table: tuple[str, ...], branch: str | None, other: tuple[str, ...], fork: str | None, version: int
) -> None:
    key = chain_object_id(table, branch)
    assert split_version_id(f"{key}${version}") == (key, version)
    if table == other and branch != fork:
        assert key != chain_object_id(other, fork)


def test_object_ids_are_those_of_the_directory_format() -> None:
    version = VersionEntry(("a", "t"), None, 5, "x", 1, "", "", 0)
    assert NamespaceEntry(("a", "b")).object_id == "a$b"
    assert TableEntry(("a", "t"), "x").object_id == "a$t"
    assert version.object_id == "a$t$5"
    assert VersionEntry(("a", "t"), "dev/x%", 5, "x", 1, "", "", 0).object_id == "a$t$dev%2Fx%25$5"
    assert RecordEntry("u-1", "open").object_id == "$transactions$u-1"
    assert version.canonical_path == "x/_versions/18446744073709551610.manifest"


def test_a_version_row_holds_the_keys_of_the_directory_format_and_further_ones() -> None:
    entry = VersionEntry(("a", "t"), "dev", 5, "x", 77, "ab" * 32, "u", 9, '"e"', "V2", "x/_versions/s", {"k": "v"})
    row = encode_entry(entry)
    assert (row.object_type, row.location) == ("table_version", None)
    assert orjson.loads(row.metadata or "") == {
        "manifest_path": "x/tree/dev/_versions/18446744073709551610.manifest",
        "manifest_size": 77,
        "e_tag": '"e"',
        "naming_scheme": "V2",
        "metadata": {"k": "v"},
        "staged_path": "x/_versions/s",
        "transaction_id": "u",
        "timestamp_millis": 9,
        "sha256": "ab" * 32,
        "table_id": ["a", "t"],
        "branch": "dev",
    }


@pytest.mark.parametrize(
    "row",
    [
        Row("a$t", "view", None, None),
        Row("a$t", "table", None, None),
        Row("a$t$x", "table_version", None, '{"manifest_path":"x/_versions/1.manifest"}'),
        Row("a$t$1", "table_version", None, None),
        Row("a$t$1", "table_version", None, "{"),
        Row("a$t$1", "table_version", None, '{"manifest_path":"x/_versions/2.manifest"}'),
        Row("a$t$1", "table_version", None, '{"manifest_path":"x/_versions/1.manifest","table_id":["b"]}'),
        Row("a$t$..$1", "table_version", None, '{"manifest_path":"x/tree/../_versions/1.manifest","branch":".."}'),
        Row("$transactions$u", "transaction", None, '{"state":"odd"}'),
        Row("$transactions$u", "transaction", None, '{"state":"dropped","participants":[["a$t"]]}'),
        Row("$transactions$u", "transaction", None, '{"state":"dropped","participants":7}'),
        Row("u", "transaction", None, '{"state":"open"}'),
    ],
)
def test_rows_that_mean_nothing_here_are_left_alone(row: Row) -> None:
    assert decode_row(row) is None


def test_a_staged_path_beside_the_canonical_one_is_kept_short() -> None:
    entry = VersionEntry(("t",), None, 1, "x", 1, "", "", 0)
    beside = VersionEntry(("t",), None, 1, "x", 1, "", "", 0, staged_path=f"{entry.canonical_path}-a-b")
    row = encode_entry(beside)
    assert orjson.loads(row.metadata or "")["staged_suffix"] == "a-b"
    assert decode_row(row) == beside


def test_properties_of_other_writers_become_strings() -> None:
    assert decode_row(Row("a", "namespace", None, '{"n":1,"s":"x"}')) == NamespaceEntry(("a",), {"n": "1", "s": "x"})
    assert decode_row(Row("a", "namespace", None, "no json")) == NamespaceEntry(("a",), {})


def test_version_rows_of_old_releases_are_attributed_by_the_table_that_holds_them() -> None:
    metadata = '{"manifest_path":"data/cat/1_a$t/_versions/18446744073709551614.manifest","manifest_size":9}'
    entry = decode_version("a$t$00000000000000000001", metadata, {("a", "t"): "1_a$t"})
    assert entry == VersionEntry(("a", "t"), None, 1, "1_a$t", 9, "", "", 0)
    assert (
        decode_version("a$t$00000000000000000001", metadata, {("a", "t"): "2_a$t"}) is None
    )  # its table lies elsewhere (N1)
    assert decode_version("a$t$00000000000000000001", metadata, {}) is None


def test_a_staged_path_is_matched_exactly_even_when_only_its_digest_is_kept() -> None:
    full = VersionEntry(("t",), None, 1, "x", 1, "", "", 0, staged_path="x/_versions/1-a")
    digest = VersionEntry(("t",), None, 1, "x", 1, "", "", 0, staged_digest=digest_path("x/_versions/1-a"))
    none = VersionEntry(("t",), None, 1, "x", 1, "", "", 0)
    for entry, expected in ((full, True), (digest, True), (none, False)):
        assert entry.matches_staged_path("x/_versions/1-a") is expected
        assert entry.matches_staged_path("x/_versions/1-b") is False


changes = st.builds(
    lambda puts, removes: Changes({f"n{k}": NamespaceEntry((f"n{k}",), {"v": v}) for k, v in puts.items()}, removes),
    st.dictionaries(st.integers(0, 5), st.text(max_size=2), max_size=4),
    st.frozensets(st.integers(0, 5).map("n{}".format), max_size=3),
).map(lambda c: Changes(c.puts, c.removes.difference(c.puts)))


def _apply(state: dict[str, Entry], step: Changes) -> dict[str, Entry]:
    return {key: entry for key, entry in state.items() if key not in step.removes} | dict(step.puts)


@given(changes, changes, changes)
def test_composed_changes_equal_their_parts_in_order(base: Changes, first: Changes, second: Changes) -> None:
    state = dict(base.puts)
    both = first.then(second)
    assert _apply(_apply(state, first), second) == _apply(state, both)
    assert not both.removes.intersection(both.puts)
    assert Changes().then(first) == first
