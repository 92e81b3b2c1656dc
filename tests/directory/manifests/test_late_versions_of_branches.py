"""A version that went with its branch is not revived by a file that is written late (P5, M6)."""

from __future__ import annotations

import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from lance_namespace.errors import LanceNamespaceError, TableBranchNotFoundError

from lance_core.format.manifest import parse_manifest_file
from lance_core.format.naming import manifest_name
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.local import LocalStore
from lance_core.tables.dataset import Dataset
from namespace_server.directory.manifests import promoter as promoter_module
from tests.directory.manifests.test_reused_branches import (
    DEV,
    BucketLike,
    append,
    commit_late,
    create,
    make_again_only,
)
from tests.directory.tables import Ground, as_operation
from tests.directory.taken_names import TABLE
from tests.storage.faults import Crashed, Fault, FaultStore


@pytest.fixture
def branch(ground: Ground) -> Ground:
    """A table with a branch `dev` at version 1."""
    ground.make_table(*TABLE)
    create(ground)
    ground.catalog.sweep()
    ground.catalog.flush_record_housekeeping()
    return ground


def configure(ground: Ground, value: str) -> dict[str, Any]:
    """A change of the branch that has no files of its own."""
    head = ground.catalog.snapshot().head(tuple(TABLE), DEV)
    assert head is not None
    message = pb.Transaction(read_version=head.version, uuid=str(uuid.uuid4()))
    message.update_config.config_updates.update_entries.add(key="old", value=value)
    [(_, operation)] = as_operation(TABLE, message, DEV).items()
    return {"commit_transaction": operation | {"manifest_sha256": head.sha256}}


def second_version(ground: Ground) -> Path:
    return ground.root / ground.location(TABLE) / "tree" / DEV / "_versions" / manifest_name(2)


def config(ground: Ground) -> tuple[int, dict[str, str]]:
    """The head of the branch and its config."""
    head = ground.catalog.snapshot().head(tuple(TABLE), DEV)
    assert head is not None
    return head.version, dict(parse_manifest_file(ground.store.get(head.canonical_path)).manifest.config)


@pytest.fixture
def late(branch: Ground) -> bytes:
    """The manifest of version 2 of the branch, which is to be written late."""
    branch.batch(configure(branch, "revived"))
    branch.catalog.sweep()
    branch.catalog.flush_record_housekeeping()
    return second_version(branch).read_bytes()


def write_late(ground: Ground, data: bytes) -> None:
    second_version(ground).parent.mkdir(parents=True, exist_ok=True)
    second_version(ground).write_bytes(data)


def list_versions(ground: Ground) -> list[int]:
    return [each["version"] for each in ground.read("list_table_versions", id=TABLE, branch=DEV)["versions"]]


@pytest.mark.parametrize("dies", [True, False])
def test_a_promotion_that_arrives_after_the_branch_was_made_again(
    branch: Ground, dies: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(promoter_module, "_AT_ONCE", -1.0)
    operation = configure(branch, "revived")
    store = BucketLike(LocalStore(branch.root, "none"))
    held = branch.again(store)
    held.catalog.snapshot()
    name = f"tree/{DEV}/_versions/{manifest_name(2)}"
    moments: list[str] = []

    def meanwhile(verb: str, path: str) -> None:
        if verb == "put_if_absent" and path.endswith(name) and not moments:
            moments.append("made again")
            make_again_only(branch.again())
            if dies:
                store.fail(Fault.CRASH_AFTER)
        elif moments == ["made again"] and not dies and second_version(branch).exists():
            moments.append("listed")
            list_versions(branch.again())

    store.before(meanwhile)
    with suppress(Crashed, LanceNamespaceError):
        held.batch(operation)
    assert moments
    other = branch.again()
    assert list_versions(other) == [1]
    assert config(other) == (1, {})
    assert not second_version(branch).exists()
    other.batch(append(other, 50, 52))
    assert config(other)[0] == 2


def test_a_promotion_takes_back_what_it_wrote_late_although_all_its_files_are_there(
    branch: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that wrote it sees that its branch was made again: no other one has looked."""
    commit_late(branch, configure(branch, "revived"), monkeypatch)

    assert not second_version(branch).exists()
    assert config(branch.again()) == (1, {})


def test_a_branch_that_was_not_made_again_does_not_come_back(branch: Ground, late: bytes) -> None:
    branch.namespace.change("delete_table_branch", {"id": TABLE, "name": DEV})
    branch.catalog.sweep()
    branch.catalog.flush_record_housekeeping()
    write_late(branch, late)
    other = branch.again()
    with pytest.raises(TableBranchNotFoundError):
        list_versions(other)
    assert other.catalog.snapshot().head(tuple(TABLE), DEV) is None
    assert not second_version(branch).exists()


def test_a_name_that_is_taken_late_is_repaired_and_nothing_is_committed_again(branch: Ground, late: bytes) -> None:
    make_again_only(branch)
    store = FaultStore(LocalStore(branch.root, "none"))
    store.fail(Fault.CRASH_AFTER, when=lambda write: write.path.startswith("__manifest/_versions/"))
    operation = append(branch, 200, 201)
    with suppress(Crashed):
        branch.again(store).batch(operation)
    assert not second_version(branch).exists()  # committed, and not promoted
    write_late(branch, late)
    for _ in range(3):
        other = branch.again()
        other.catalog.sweep()
        assert list_versions(other) == [1, 2]
    assert config(branch.again()) == (2, {})


def test_the_same_change_by_path_is_adopted(branch: Ground, late: bytes) -> None:
    """Its manifest is another one, whatever the transaction."""
    transaction = parse_manifest_file(late).transaction
    assert transaction is not None
    make_again_only(branch)
    uri = str(branch.root / branch.location(TABLE))
    Dataset.open(uri).checkout((DEV, 1)).commit(transaction)
    assert list_versions(branch.again()) == [1, 2]
    assert config(branch.again()) == (2, {"old": "revived"})
