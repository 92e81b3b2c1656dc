"""A branch that a client deleted by path is deleted for every reader, and its name is free at once (rule M8)."""

from __future__ import annotations

import uuid
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import lance
import orjson
import pytest
from lance_namespace.errors import (
    LanceNamespaceError,
    TableBranchAlreadyExistsError,
    TableBranchNotFoundError,
    TableVersionNotFoundError,
)

from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.local import LocalStore
from lance_core.transaction.operations import Clone, encode_transaction
from namespace_server.directory.backup import verify
from namespace_server.directory.doctor import Examination
from tests.directory.backup.catalogs import back_up, restore
from tests.directory.gc.collecting import collect
from tests.directory.gc.unreferenced import find_orphans
from tests.directory.invariants import check_progress
from tests.directory.tables import Ground, as_operation, rows
from tests.staged_fragments import stage_fragments
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


def test_a_dropped_table_is_sound_without_it(ground: Ground) -> None:
    """Whether its rows had gone before the drop, or go when the table has come back."""
    ground.call("drop_table", id=T)
    assert findings(ground) == {"branch-deleted": "NOTE"}
    assert find_orphans(ground.store, now=datetime.now(UTC), older_than=timedelta(0)).not_judged == {}
    assert collect(ground).not_judged == {}
    ground.call("undrop_table", id=T)
    assert ground.read("list_table_branches", id=T)["branches"] == {}
    assert (chains(ground), ground.ids(T), findings(ground)) == ((None,), [0, 1, 2], {})


def test_a_lost_head_of_a_branch_of_a_dropped_table_is_damage(ground: Ground) -> None:
    """Its reference is there, so no client deleted it."""
    lance.write_dataset(rows(7, 9), stock(ground).create_branch("dev", 1), mode="append")
    ground.catalog.sweep()
    for manifest in (ground.root / ground.location(T) / "tree/dev/_versions").iterdir():
        manifest.unlink()
    ground.call("drop_table", id=T)
    assert findings(ground) == {"dropped-table-lost": "DAMAGE", "kept-version-lost": "WARNING"}


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


def by_path(ground: Ground) -> lance.LanceDataset:
    return lance.dataset(str(ground.root / ground.location(T)))


def dev_ids(ground: Ground) -> list[int]:
    return sorted(by_path(ground).checkout_version(("dev", None)).to_table()["id"].to_pylist())


def append_to_dev(ground: Ground, read_version: int, row: int) -> dict[str, Any]:
    """A batch that appends a row to the branch, on this version of it."""
    message = pb.Transaction(read_version=read_version, uuid=str(uuid.uuid4()))
    root = ground.root / ground.location(T) / "tree/dev"
    (root / "data").mkdir(parents=True, exist_ok=True)
    message.append.fragments.extend(stage_fragments(rows(row, row + 1), str(root), mode="append"))
    return ground.batch(as_operation(T, message, "dev"))


def test_a_batch_of_a_process_that_knows_its_versions_is_not_committed_on_it(ground: Ground) -> None:
    """It could be planned without a look at storage, and would be on rows that are gone."""
    with pytest.raises(TableBranchNotFoundError):
        append_to_dev(ground, 2, 30)
    assert chains(ground) == (None,)
    assert findings(ground) == {}


@pytest.mark.parametrize("asked", ["a batch", "a read"])
@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize("commits", [0, 1, 2, 3])
def test_one_that_is_made_again_by_path_is_another_one(ground: Ground, commits: int, moved: bool, asked: str) -> None:
    """Its numbers may be those of the one before, or others, if main has gone on."""
    if moved:
        ground.batch(ground.transaction(T, rows(9, 10)))
    dev = by_path(ground).create_branch("dev")
    for number in range(commits):
        dev = lance.write_dataset(rows(20 + number, 21 + number), dev, mode="append")
    before = dev.to_table()["id"].to_pylist()
    expected = list(before)
    if asked == "a batch":
        with suppress(LanceNamespaceError):  # it reads a version that the branch may not have
            append_to_dev(ground, 2, 30)
            expected.append(30)
    ground.read("list_table_versions", id=T, branch="dev", limit=1, descending=True)
    append_to_dev(ground, ground.head(T, "dev"), 40)
    ground.catalog.sweep()
    assert dev_ids(ground) == sorted([*expected, 40])
    assert ground.head(T, "dev") == dev.version + len(expected) - len(before) + 1
    assert findings(ground) == {}
    check_progress(ground.root)


@pytest.mark.parametrize("commits", [0, 1])
def test_a_backup_and_a_collection_meet_one_that_was_made_again_by_path(
    ground: Ground, commits: int, tmp_path: Path
) -> None:
    dev = by_path(ground).create_branch("dev")
    for number in range(commits):
        dev = lance.write_dataset(rows(20 + number, 21 + number), dev, mode="append")
    assert findings(ground) == {"branch-deleted": "NOTE", "branch-without-rows": "NOTE"}
    back_up(ground, tmp_path / "backups")
    assert restore(tmp_path / "backups", tmp_path / "restored").ids(T) == [0, 1, 2]
    assert collect(ground).not_judged == {}
    ground.read("list_table_versions", id=T, branch="dev", limit=1, descending=True)
    assert dev_ids(ground) == sorted(dev.to_table()["id"].to_pylist())
    assert findings(ground) == {}


def test_a_rejection_that_concerns_no_deleted_branch_is_decided_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ground = Ground(tmp_path / "root")
    ground.make_namespace("g")
    ground.make_table("g", "t")
    ground.call("create_table_branch", id=T, name="dev")
    commit, groups = ground.catalog.committer.decide, []
    monkeypatch.setattr(ground.catalog.committer, "decide", lambda group: groups.append(len(group)) or commit(group))
    with pytest.raises(TableBranchAlreadyExistsError):
        ground.call("create_table_branch", id=T, name="dev")
    assert groups == [1]


def test_a_quarantined_commit_on_it_is_not_committed_to_one_that_is_made_again(tmp_path: Path) -> None:
    """A Restore or a change of the configuration needs no file of the branch, so it could be."""
    ground = Ground(tmp_path / "root", FaultStore(LocalStore(tmp_path / "root", "none")))
    ground.make_namespace("g")
    ground.make_table("g", "t")
    stock(ground).create_branch("dev", 1)
    ground.catalog.sweep()
    dev = by_path(ground).checkout_version(("dev", None))
    store = FaultStore(LocalStore(ground.root, "none"))
    store.fail(Fault.CRASH_BEFORE, when=lambda write: write.verb == "publish")
    with pytest.raises(Crashed):
        append_to_dev(ground.again(store), 1, 30)
    dev.update_config({"by": "path"})
    again = ground.again()
    again.read("list_table_versions", id=T, branch="dev", limit=1, descending=True)  # moves it to quarantine
    by_path(again).branches.delete("dev")
    again.call("create_table_branch", id=T, name="dev")
    for process in (again, ground.again()):
        process.catalog.sweep()
    assert again.head(T, "dev") == 1
    assert by_path(again).checkout_version(("dev", None)).config() == {}
    [report] = [record for record in again.catalog.snapshot().records() if record.state == "foreign"]
    assert orjson.loads(report.results)["reason"] == "its branch was deleted with it"
