"""A branch that a client deleted by path is deleted for every reader, and its name is free at once (rule M8)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import lance
import pytest
from lance_namespace.errors import TableBranchNotFoundError, TableVersionNotFoundError

from lance_core.storage.local import LocalStore
from lance_core.transaction.operations import Clone, encode_transaction
from namespace_server.directory.backup import verify
from namespace_server.directory.doctor import Examination
from namespace_server.directory.orphans.search import find_orphans
from tests.directory.backup.catalogs import back_up, restore
from tests.directory.collection.collecting import collect
from tests.directory.invariants import check_progress
from tests.directory.tables import Ground, as_operation, rows
from tests.storage.faults import Crashed, Fault, FaultStore

T = ["g", "t"]


def stock(ground: Ground) -> lance.LanceDataset:
    return lance.dataset(namespace_client=ground.namespace, table_id=T)


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    """A branch with two versions that stock pylance made, wrote and deleted; all is promoted before."""
    ground = Ground(tmp_path / "root")
    ground.make_namespace("g")
    ground.make_table("g", "t")
    dev = stock(ground).create_branch("dev", 1)
    lance.write_dataset(rows(7, 9), dev, mode="append")
    ground.catalog.sweep()
    stock(ground).branches.delete("dev")
    assert ground.head(T, "dev") == 2
    return ground


def chains(ground: Ground) -> tuple[str | None, ...]:
    return ground.catalog.snapshot().chains(tuple(T))


def findings(ground: Ground) -> dict[str, str]:
    report = Examination(ground.store).examine()
    return {finding.code: finding.severity.name for finding in report.findings}


READS: dict[str, dict[str, Any]] = {
    "the newest version": {"operation": "list_table_versions", "limit": 1, "descending": True},
    "all versions": {"operation": "list_table_versions"},
    "a page of them": {"operation": "list_table_versions", "limit": 1},
    "one of them": {"operation": "describe_table_version", "version": 2},
    "the head": {"operation": "describe_table_version"},
}


@pytest.mark.parametrize("name", READS)
def test_no_read_has_a_version_of_it(ground: Ground, name: str) -> None:
    with pytest.raises((TableBranchNotFoundError, TableVersionNotFoundError)):
        ground.read(id=T, branch="dev", **READS[name])
    assert chains(ground) == (None,)
    assert findings(ground) == {}


def test_the_list_of_branches_has_it_not(ground: Ground) -> None:
    assert ground.read("list_table_branches", id=T)["branches"] == {}
    assert chains(ground) == (None,)


def test_a_tag_on_it_is_refused(ground: Ground) -> None:
    with pytest.raises(TableBranchNotFoundError):
        ground.namespace.change("create_table_tag", {"id": T, "tag": "v", "version": 2, "branch": "dev"})


def test_a_branch_of_the_name_begins_at_once(ground: Ground) -> None:
    ground.call("create_table_branch", id=T, name="dev")
    assert (ground.head(T, "dev"), ground.head(T)) == (1, 1)
    dev = stock(ground).checkout_version(("dev", None))
    assert sorted(dev.to_table()["id"].to_pylist()) == [0, 1, 2]
    lance.write_dataset(rows(20, 21), dev, mode="append")
    assert sorted(stock(ground).checkout_version(("dev", None)).to_table()["id"].to_pylist()) == [0, 1, 2, 20]
    check_progress(ground.root)


def test_stock_pylance_begins_one_of_the_name(ground: Ground) -> None:
    stock(ground).create_branch("dev", 1)
    assert ground.head(T, "dev") == 1
    assert list(ground.read("list_table_branches", id=T)["branches"]) == ["dev"]
    assert findings(ground) == {}


def test_a_batch_on_it_is_told_that_there_is_none(ground: Ground) -> None:
    other = ground.again()
    operation = ground.transaction(T, rows(30, 31))
    operation["commit_transaction"]["branch"] = "dev"
    with pytest.raises(TableBranchNotFoundError):
        other.batch(operation)
    assert chains(other) == (None,)
    assert other.head(T) == 1


def test_the_doctor_notes_it(ground: Ground) -> None:
    assert findings(ground) == {"branch-deleted": "NOTE"}


def test_a_tag_that_names_it_is_told(ground: Ground, tmp_path: Path) -> None:
    other = Ground(tmp_path / "other")
    other.make_namespace("g")
    other.make_table("g", "t")
    lance.write_dataset(rows(7, 9), stock(other).create_branch("dev", 1), mode="append")
    other.namespace.change("create_table_tag", {"id": T, "tag": "v", "version": 2, "branch": "dev"})
    other.catalog.sweep()
    location = other.root / other.location(T)
    (location / "_refs/branches/dev.json").unlink()
    for file in sorted((location / "tree/dev").rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    assert findings(other) == {"branch-deleted": "NOTE", "tag-without-version": "WARNING"}


def test_a_backup_is_whole_without_it(ground: Ground, tmp_path: Path) -> None:
    done = back_up(ground, tmp_path / "backups")
    assert [each.what for each in done.record.left_out] == [f"g$t version {n} of branch dev" for n in (1, 2)]
    assert verify(LocalStore(tmp_path / "backups", "none")).problems == ()
    restored = restore(tmp_path / "backups", tmp_path / "restored")
    assert restored.catalog.snapshot().chains(tuple(T)) == (None,)
    assert restored.ids(T) == [0, 1, 2]


def test_its_table_is_judged_and_a_collection_removes_the_rows(ground: Ground) -> None:
    report = find_orphans(ground.store, now=datetime.now(UTC), older_than=timedelta(0))
    assert report.not_judged == {}
    assert collect(ground).not_judged == {}
    assert chains(ground) == (None,)
    assert findings(ground) == {}


def test_a_lost_manifest_of_a_branch_that_is_there_is_damage(tmp_path: Path) -> None:
    ground = Ground(tmp_path / "root")
    ground.make_namespace("g")
    ground.make_table("g", "t")
    stock(ground).create_branch("dev", 1)
    ground.catalog.sweep()
    for path in (ground.root / ground.location(T) / "tree/dev/_versions").glob("*.manifest"):
        path.unlink()
    assert "head-lost" in findings(ground)
    assert ground.read("list_table_branches", id=T)["branches"].keys() == {"dev"}
    assert list(find_orphans(ground.store, now=datetime.now(UTC), older_than=timedelta(0)).not_judged) == [
        ground.location(T)
    ]


def test_a_branch_whose_first_version_has_its_staged_name_only_is_forming(tmp_path: Path) -> None:
    """Its process died after the flip: neither reference nor canonical name are there."""
    root = Ground(tmp_path / "root")
    root.make_namespace("g")
    root.make_table("g", "t")
    store = FaultStore(LocalStore(root.root, "none"))
    store.fail(Fault.CRASH_BEFORE, when=lambda write: "/tree/dev/_versions/" in write.path)
    clone = Clone(str(root.root / root.location(T)), 1, None, "dev")
    with pytest.raises(Crashed):
        root.again(store).batch(as_operation(T, encode_transaction(clone, read_version=1), "dev"))
    assert findings(root).keys() == {"open-work", "branch-reference-missing"}
    back_up(root, tmp_path / "backups")
    assert restore(tmp_path / "backups", tmp_path / "restored").head(T, "dev") == 1
    assert list(root.read("list_table_branches", id=T)["branches"]) == ["dev"]
    assert root.head(T, "dev") == 1
