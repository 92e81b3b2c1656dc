"""Damaged tag and branch files: refused with a typed error, or read as stock pylance reads them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import lance
import pytest

from lance_core.errors import CorruptFile, LanceCoreError
from lance_core.format.refs import BranchContents, TagContents, decode_branch, decode_tag
from lance_core.storage.memory import MemoryStore
from lance_core.tables.branches import Branches
from lance_core.tables.dataset import Dataset
from lance_core.tables.tags import Tags
from tests.hostile.limits import within_limits
from tests.hostile.mutations import Case, bit_flips, json_objects, overwrites, splices, truncations
from tests.hostile.scene import Refused, files_of, stock
from tests.transaction.tables import Table, make_table, rows

TAG = "t/_refs/tags/first.json"
BRANCH = "t/_refs/branches/dev%2Fx.json"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    made = make_table(tmp_path_factory.mktemp("refs"), (0, 10), (10, 20))
    made.open().create_branch("dev", 1)
    branch = lance.dataset(made.uri).checkout_version(("dev", None))
    lance.write_dataset(rows(20, 30), branch, mode="append")
    branch.create_branch("dev/x")
    made.open().tags.create("first", ("dev", 1))
    return made


def cases(data: bytes, seed: int) -> Iterator[Case]:
    rng = random.Random(seed)
    yield from json_objects(data, 500, rng)
    yield from truncations(data)
    yield from bit_flips(data, 250, rng)
    yield from overwrites(data, 100, rng)
    yield from splices(data, 150, rng)


def in_memory(table: Table) -> MemoryStore:
    store = MemoryStore()
    for key, data in files_of(table).items():
        store.put(key, data)
    return store


def read_tag(store: MemoryStore) -> TagContents:
    """The tag, as every way to it shows it; what it names may not be there."""
    tag = Tags(store, "t").get("first")
    assert Tags(store, "t").list() == {"first": tag}
    try:
        dataset = Dataset.open(store, "first", location="t")
    except LanceCoreError:
        return tag
    assert (dataset.branch, dataset.version) == (tag.branch if tag.branch != "main" else None, tag.version)
    return tag


def read_branch(store: MemoryStore) -> BranchContents:
    branch = Branches(store, "t").get("dev/x")
    assert Branches(store, "t").list()["dev/x"] == branch
    return branch


def stock_tag(table: Table) -> tuple[object, ...]:
    found = table.open().tags.list()["first"]
    return found["version"], found["manifest_size"], found["branch"] or None


def stock_branch(table: Table) -> tuple[object, ...]:
    found = table.open().branches.list()["dev/x"]
    return found["parent_version"], found["manifest_size"], found["parent_branch"] or None, found["create_at"]


def test_damaged_tags(table: Table, tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    honest = (table.root / TAG).read_bytes()
    twin = table.copy(tmp_path / "twin")
    store = in_memory(table)
    for what, data in cases(honest, 6):
        store.put(TAG, data)
        with within_limits(what):
            try:
                tag = read_tag(store)
            except LanceCoreError:
                counts["refused"] += 1
                continue
        counts["accepted"] += 1
        (twin.root / TAG).write_bytes(data)
        try:
            found = stock(lambda: stock_tag(twin))
        except Refused:
            counts["refused by pylance"] += 1
        else:
            assert found == (tag.version, tag.manifest_size, tag.branch or None), what
    assert counts["refused"] > 500
    assert counts["accepted"] > 100


def test_damaged_branches(table: Table, tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    honest = (table.root / BRANCH).read_bytes()
    twin = table.copy(tmp_path / "twin")
    store = in_memory(table)
    for what, data in cases(honest, 7):
        store.put(BRANCH, data)
        with within_limits(what):
            try:
                branch = read_branch(store)
            except LanceCoreError:
                counts["refused"] += 1
                continue
        counts["accepted"] += 1
        (twin.root / BRANCH).write_bytes(data)
        try:
            found = stock(lambda: stock_branch(twin))
        except Refused:
            counts["refused by pylance"] += 1
        else:
            mine = (branch.parent_version, branch.manifest_size, branch.parent_branch or None, branch.created_at)
            assert found == mine, what
    assert counts["refused"] > 500
    assert counts["accepted"] > 100


@pytest.mark.parametrize("name", ["../x", "", "/", "a//b", "a\0b", "a\\b", "\ud800", "x.lock"])
def test_an_invalid_branch_name_is_refused(name: str) -> None:
    """It would become a key, some of them outside the table."""
    import json

    text = json.dumps({"branch": name, "parentBranch": name, "version": 1, "parentVersion": 1, "manifestSize": 1})
    with pytest.raises(CorruptFile, match="tag file: branch is"):
        decode_tag(text.encode())
    with pytest.raises(CorruptFile, match="branch file: parentBranch is"):
        decode_branch(text.encode())


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
def test_other_encodings_than_utf_8_are_refused(encoding: str) -> None:
    with pytest.raises(CorruptFile, match="tag file is not JSON"):
        decode_tag('{"version": 1, "manifestSize": 1}'.encode(encoding))


def test_undamaged_files_are_read(table: Table) -> None:
    store = in_memory(table)
    assert read_tag(store).branch == "dev"
    assert read_branch(store).parent_branch == "dev"
    assert stock_tag(table) == (1, read_tag(store).manifest_size, "dev")
