import json
from datetime import UTC, datetime
from pathlib import Path

import lance
import pytest

from lance_core.errors import AlreadyExists, CorruptFile, ReferenceNotFound, StorageUnknown
from lance_core.format.manifest import encode_manifest_file
from lance_core.format.naming import manifest_path
from lance_core.format.refs import branch_path, tag_path
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.memory import MemoryStore
from lance_core.tables.dataset import Dataset
from lance_core.tables.tags import Tags


def test_tags_of_pylance_are_listed(table: Path) -> None:
    tags = Dataset.open(str(table)).tags
    assert {name: (tag.branch, tag.version) for name, tag in tags.list().items()} == {
        "on-dev": ("dev", 3),
        "two": (None, 2),
    }
    assert tags.get("two") == tags.list()["two"]


def test_tags_of_ours_are_those_of_pylance(table: Path) -> None:
    tags = Dataset.open(str(table)).tags
    tags.create("three", 3, metadata={"k": "v"})
    tags.create("ours-on-dev", ("dev", 2))
    tags.create("ours-on-main", ("main", 2))
    stock = lance.dataset(str(table))
    listed = stock.tags.list()
    assert (listed["three"]["version"], listed["three"]["metadata"]) == (3, {"k": "v"})
    assert (listed["ours-on-dev"]["branch"], listed["ours-on-main"]["branch"]) == ("dev", None)
    assert stock.checkout_version("three").version == 3
    stock.tags.create("theirs", 3)
    ours, theirs = (json.loads((table / tag_path("", name)).read_text()) for name in ("three", "theirs"))
    assert ours.keys() == theirs.keys()
    assert ours["manifestSize"] == theirs["manifestSize"]
    assert len(ours["createdAt"]) == len(theirs["createdAt"])
    stock.tags.update("three", 1)
    assert tags.get("three").version == 1


def test_a_tag_is_created_once(table: Path) -> None:
    tags = Dataset.open(str(table)).tags
    with pytest.raises(AlreadyExists, match="tag two"):
        tags.create("two", 1)
    assert tags.get("two").version == 2


@pytest.mark.parametrize(("version", "branch"), [(9, None), (1, "dev"), (1, "nope"), (0, None)])
def test_a_tag_names_a_version_that_exists(table: Path, version: int, branch: str | None) -> None:
    tags = Dataset.open(str(table)).tags
    with pytest.raises(ReferenceNotFound, match=f"version {version} of"):
        tags.create("new", (branch, version))
    with pytest.raises(ReferenceNotFound, match=f"version {version} of"):
        tags.update("two", (branch, version))
    assert tags.get("two").version == 2
    assert "new" not in tags.list()


def test_updating_a_tag_keeps_when_it_was_made(table: Path) -> None:
    tags = Dataset.open(str(table)).tags
    before = tags.create("t", 1, metadata={"k": "v"})
    after = tags.update("t", ("dev", 3))
    assert tags.get("t") == after
    assert (after.version, after.branch, after.metadata) == (3, "dev", {"k": "v"})
    assert after.created_at == before.created_at
    assert after.updated_at is not None
    assert before.updated_at is not None
    assert after.updated_at > before.updated_at
    assert after.manifest_size == Dataset.open(str(table), ("dev", 3)).file.identity.size
    assert lance.dataset(str(table), version="t").to_table()["a"].to_pylist() == [2, 3, 4, 5]


def test_a_deleted_tag_does_not_exist(table: Path) -> None:
    tags = Dataset.open(str(table)).tags
    tags.delete("two")
    assert "two" not in lance.dataset(str(table)).tags.list()
    for act in (tags.delete, tags.get, lambda name: tags.update(name, 1)):
        with pytest.raises(ReferenceNotFound, match="tag two"):
            act("two")


def test_names_that_stock_clients_refuse_are_not_written(table: Path) -> None:
    dataset = Dataset.open(str(table))
    with pytest.raises(ValueError, match=r"'\.\./x'"):
        dataset.tags.create("../x", 1)
    with pytest.raises(ValueError, match="main"):
        dataset.branches.create("main", 1)


def test_a_damaged_ref_is_named(table: Path) -> None:
    (table / tag_path("", "two")).write_text("{")
    (table / branch_path("", "dev")).write_text("[]")
    dataset = Dataset.open(str(table))
    with pytest.raises(CorruptFile, match=r"two\.json"):
        dataset.tags.list()
    with pytest.raises(CorruptFile, match=r"dev\.json"):
        dataset.branches.get("dev")


def test_branches_of_pylance_are_listed(table: Path) -> None:
    branches = Dataset.open(str(table)).branches
    assert {name: (branch.parent_branch, branch.parent_version) for name, branch in branches.list().items()} == {
        "dev": (None, 2),
        "dev/nested": ("dev", 3),
    }
    with pytest.raises(ReferenceNotFound, match="branch nope"):
        branches.get("nope")


def test_a_tag_is_made_from_any_reference(table: Path) -> None:
    dev = Dataset.open(str(table), ("dev", 2))
    moment = datetime.fromtimestamp(dev.checkout(3).file.timestamp_ns / 1e9 + 1, UTC)
    for number, (ref, branch, version) in enumerate(
        [
            (None, "dev", 2),  # the version that is open
            (3, "dev", 3),
            (("main", None), None, 4),
            ((None, 1), None, 1),
            ("on-dev", "dev", 3),
            ("two", None, 2),
            (moment, "dev", 3),
        ]
    ):
        tag = dev.tags.create(f"t{number}", ref)
        assert (tag.branch, tag.version) == (branch, version)
        assert lance.dataset(str(table), version=f"t{number}").version == version
    assert dev.tags.update("t0", "two").version == 2
    assert Dataset.open(str(table), "t0").branch is None


class Silent(MemoryStore):
    """A store that loses the answer to every put-if-absent, applied or not."""

    applies = True

    def put_if_absent(self, path: str, data: bytes, *, durable: bool = True) -> str:
        if self.applies:
            super().put_if_absent(path, data, durable=durable)
        raise StorageUnknown(path)


@pytest.fixture
def silent() -> Silent:
    store = Silent()
    store.put(manifest_path("t", 1), encode_manifest_file(pb.Manifest(version=1), None))
    return store


def test_a_lost_answer_is_resolved_by_reading(silent: Silent) -> None:
    tags = Tags(silent, "t")
    created = tags.create("x", 1)
    assert tags.get("x") == created


def test_without_an_answer_the_outcome_is_unknown(silent: Silent) -> None:
    silent.applies = False
    with pytest.raises(StorageUnknown, match="tag x"):
        Tags(silent, "t").create("x", 1)
