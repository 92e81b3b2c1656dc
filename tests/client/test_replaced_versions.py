"""A transaction is committed on the version that it read, not on another one that took its place and number."""

# ruff: noqa: PT012, SIM117 - leaving the block is what raises

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pytest
from lance_namespace import (
    BatchDeleteTableVersionsRequest,
    CreateTableBranchRequest,
    DeleteTableBranchRequest,
    DeregisterTableRequest,
    RegisterTableRequest,
)

from lance_core.format.manifest import encode_manifest_file, parse_manifest_file
from namespace_client import MultiTableTransaction, RetryableConflict
from table_data.errors import BaseVersionGone
from tests.client.scene import Scene, rows

Change = Callable[[MultiTableTransaction], object]

BRANCH = "trial"
CHANGES: dict[str, Change] = {
    "fragments removed whole": lambda tx: tx.delete("t", "id >= 10", branch=BRANCH),
    "rows deleted": lambda tx: tx.delete("t", "id = 1", branch=BRANCH),
    "rows updated": lambda tx: tx.update("t", {"v": "-1"}, where="id = 1", branch=BRANCH),
    "rows merged": lambda tx: tx.merge("t", rows(1, v=-1), on="id", branch=BRANCH),
    "rows appended": lambda tx: tx.append("t", rows(30), branch=BRANCH),
    "restored": lambda tx: tx.restore("t", 1, branch=BRANCH),
}
READ: dict[str, Change] = {
    "rows read": lambda tx: tx.append("log", rows(tx.table("t", branch=BRANCH).count_rows())),
}


def begin_branch(scene: Scene, *ids: int) -> None:
    """Begin the branch anew, at version 2 with these rows beside those of main."""
    stock, table = scene.stock(), [scene.namespace, "t"]
    stock.create_table_branch(CreateTableBranchRequest(id=table, name=BRANCH))
    with scene.catalog.begin() as tx:
        tx.append("t", rows(*ids), branch=BRANCH)


def end_branch(scene: Scene) -> None:
    scene.stock().delete_table_branch(DeleteTableBranchRequest(id=[scene.namespace, "t"], name=BRANCH))


def ids_of_branch(scene: Scene) -> list[int]:
    dataset = lance.dataset(f"{scene.uri()}/tree/{BRANCH}")
    dataset.validate()
    return sorted(dataset.to_table(columns=["id"])["id"].to_pylist())


@pytest.mark.parametrize(
    ("change", "isolation"),
    [
        *((change, isolation) for change in CHANGES for isolation in ("snapshot", "serializable")),
        ("rows read", "serializable"),
    ],
)
def test_a_branch_that_is_made_again_is_another_one(scene: Scene, change: str, isolation: Any) -> None:
    scene.make("t", 1, 2)
    scene.make("log")
    begin_branch(scene, 10, 11, 12)
    with pytest.raises(RetryableConflict, match="version 2 is another one than was read"):
        with scene.catalog.begin(isolation=isolation) as tx:
            (CHANGES | READ)[change](tx)
            end_branch(scene)
            begin_branch(scene, 20, 21, 22, 23)
    assert ids_of_branch(scene) == [1, 2, 20, 21, 22, 23]
    assert scene.version("log") == 1


@pytest.mark.parametrize("change", ["rows deleted", "rows updated", "rows merged"])
def test_a_row_that_was_deleted_in_the_new_branch_does_not_come_back(scene: Scene, change: str) -> None:
    """Both branches share the fragment of main, and the changes delete as many of its rows as the new branch has."""
    scene.make("t", 1, 2)
    begin_branch(scene, 10)
    with pytest.raises(RetryableConflict), scene.catalog.begin() as tx:
        assert tx.table("t", branch=BRANCH).to_table(filter="id < 10").num_rows == 2
        end_branch(scene)
        stock = scene.stock()
        stock.create_table_branch(CreateTableBranchRequest(id=[scene.namespace, "t"], name=BRANCH))
        with scene.catalog.begin() as other:
            other.delete("t", "id = 2", branch=BRANCH)
        CHANGES[change](tx)
    assert ids_of_branch(scene) == [1]


def test_the_block_can_run_again_on_the_new_branch(scene: Scene) -> None:
    scene.make("t", 1, 2)
    begin_branch(scene, 10, 11)
    attempts = []

    def block(tx: MultiTableTransaction) -> None:
        tx.delete("t", "id >= 10", branch=BRANCH)
        if not attempts:
            end_branch(scene)
            begin_branch(scene, 9, 20)
        attempts.append(tx.table("t", branch=BRANCH).count_rows())

    scene.catalog.run(block)
    assert attempts == [2, 3]
    assert ids_of_branch(scene) == [1, 2, 9]


def register(scene: Scene, *fragments: list[int]) -> None:
    """Register other files, of as many versions as there are fragments, at the same location."""
    root = scene.catalog.access.state().root.removeprefix("file://")
    place = Path(root, f"{scene.namespace}-moved")
    shutil.rmtree(place, ignore_errors=True)
    for fragment in fragments:
        lance.write_dataset(rows(*fragment), place, mode="append")
    scene.stock().register_table(RegisterTableRequest(id=[scene.namespace, "t"], location=place.name))


@pytest.mark.parametrize("isolation", ["snapshot", "serializable"])
def test_a_table_whose_files_are_replaced_is_another_one(scene: Scene, isolation: Any) -> None:
    register(scene, [1, 2], [3, 4])
    with pytest.raises(RetryableConflict, match="version 2 is another one than was read"):
        with scene.catalog.begin(isolation=isolation) as tx:
            assert tx.delete("t", "id IN (3, 4)") == 2
            scene.stock().deregister_table(DeregisterTableRequest(id=[scene.namespace, "t"]))
            register(scene, [10, 20], [30, 40, 50])
    assert scene.ids() == [10, 20, 30, 40, 50]


def test_a_version_that_was_removed_cannot_be_compared(local: Scene) -> None:
    scene = local
    scene.make("t", 1)
    with scene.catalog.begin() as tx:
        tx.append("t", rows(2))
    with pytest.raises(RetryableConflict, match="version 2 is no longer readable; redo"):
        with scene.catalog.begin() as tx:
            tx.append("t", rows(3))
            with scene.catalog.begin() as other:
                other.append("t", rows(4))
            ranges = [{"start_version": 1, "end_version": 3}]
            removed = BatchDeleteTableVersionsRequest.from_dict({"id": [scene.namespace, "t"], "ranges": ranges})
            scene.stock().batch_delete_table_versions(removed)
    assert scene.ids() == [1, 2, 4]


@pytest.mark.parametrize("read", [True, False])
def test_a_version_whose_name_another_writer_had_for_a_moment_leads_to_another_attempt(
    local: Scene, monkeypatch: pytest.MonkeyPatch, read: bool
) -> None:
    """The catalog repairs it when the table is asked for again."""
    local.make("t", 1)
    [manifest] = Path(local.uri().removeprefix("file://"), "_versions").glob("*.manifest")
    ours, table, attempts = manifest.read_bytes(), local.catalog.access.table, 0
    other = parse_manifest_file(ours)
    other.manifest.timestamp.seconds -= 7

    def repair(*names: Any, **options: Any) -> Any:
        manifest.write_bytes(ours)
        return table(*names, **options)

    for attempt in local.catalog.retrying():
        with attempt as tx:
            attempts += 1
            tx.describe("t")
            if attempts == 1:
                manifest.write_bytes(encode_manifest_file(other.manifest, other.transaction, other.indices))
                monkeypatch.setattr(local.catalog.access, "table", repair)
            assert not read or tx.table("t").to_table().num_rows == 1
            tx.append("t", rows(2))
    assert attempts == 2
    assert local.ids() == [1, 2]


def test_a_version_that_stays_lost_is_told_at_once(local: Scene) -> None:
    local.make("t", 1)
    [manifest] = Path(local.uri().removeprefix("file://"), "_versions").glob("*.manifest")
    manifest.rename(manifest.with_suffix(".lost"))
    attempts = 0
    with pytest.raises(BaseVersionGone, match="version 1"):
        for attempt in local.catalog.retrying():
            with attempt as tx:
                attempts += 1
                tx.append("t", rows(2))
    assert attempts == 1
