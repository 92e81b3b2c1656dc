"""Branches that the server begins: a Clone sent as a transaction is the first version of one (P4, M8)."""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from typing import Any

import lance
import pytest
from lance_namespace.errors import (
    InvalidInputError,
    TableBranchAlreadyExistsError,
    TableVersionNotFoundError,
)

from lance_core.format.refs import branch_path
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.local import LocalStore
from lance_core.tables.dataset import Dataset
from lance_core.transaction.operations import Clone, encode_transaction
from tests.directory.invariants import check_quiet
from tests.directory.tables import Ground, as_operation, rows
from tests.storage.faults import Crashed, Fault, FaultStore

T = ["g", "t"]


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    ground = Ground(tmp_path / "root")
    ground.make_namespace("g")
    ground.make_table("g", "t")
    ground.write(T, rows(3, 5))
    return ground


def fork(
    ground: Ground, branch: str | None = "dev", version: int = 1, parent: str | None = None, **changes: Any
) -> dict[str, Any]:
    """A `commit_transaction` operation that begins a branch."""
    path = str(ground.root / ground.location(T))
    operation = Clone(path if parent is None else f"{path}/tree/{parent}", version, parent, branch)
    message = encode_transaction(operation, read_version=version)
    for name, value in changes.items():
        setattr(message.clone, name, value)
    return as_operation(T, message, branch)


def ref(ground: Ground, branch: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ground.root / branch_path(ground.location(T), branch)).read_text())
    return found


def on_branch(ground: Ground, branch: str) -> lance.LanceDataset:
    return ground.open(T).checkout_version((branch, None))


def test_a_clone_makes_a_branch_that_stock_pylance_reads_and_continues(ground: Ground) -> None:
    answer = ground.batch(fork(ground))

    [result] = answer["results"]
    assert result["commit_transaction"]["version"]["version"] == 1
    assert result["commit_transaction"]["rebased"] is False
    assert ground.head(T, "dev") == 1
    dev = on_branch(ground, "dev")
    dev.validate()
    assert dev.to_table()["id"].to_pylist() == [0, 1, 2]
    assert list(ground.open(T).branches.list()) == ["dev"]
    managed = lance.dataset(namespace_client=ground.namespace, table_id=T).checkout_version(("dev", None))
    lance.write_dataset(rows(7, 8), managed, mode="append")
    assert (ground.head(T, "dev"), ground.head(T)) == (2, 2)
    assert on_branch(ground, "dev").to_table()["id"].to_pylist() == [0, 1, 2, 7]
    ground.catalog.sweep()
    check_quiet(ground.root)


def test_the_ref_is_that_of_stock_pylance(ground: Ground) -> None:
    ground.batch(fork(ground, "ours", 2))
    ground.batch(fork(ground, "ours/sub", 2, "ours"))
    stock = lance.dataset(namespace_client=ground.namespace, table_id=T)
    stock.create_branch("theirs", 2)
    stock.checkout_version(("theirs", None)).create_branch("theirs/sub", ("theirs", None))
    for branch in ("ours", "ours/sub"):
        ours, theirs = ref(ground, branch), ref(ground, branch.replace("ours", "theirs"))
        assert ours.keys() == theirs.keys()
        mapped = [[entry[0] for entry in found["identifier"]["version_mapping"]] for found in (ours, theirs)]
        assert mapped[0] == mapped[1]
        assert ours["parentVersion"] == theirs["parentVersion"]
    assert [ref(ground, branch)["parentBranch"] for branch in ("ours", "theirs")] == [None, None]
    assert [ref(ground, f"{branch}/sub")["parentBranch"] for branch in ("ours", "theirs")] == ["ours", "theirs"]
    forked = Dataset.open(ground.store, 2, location=ground.location(T))
    assert ref(ground, "ours")["manifestSize"] == forked.file.identity.size


def test_a_branch_and_a_commit_to_it_in_one_batch(ground: Ground) -> None:
    begin = fork(ground, "dev", 2)
    message = pb.Transaction(read_version=2, uuid=str(uuid.uuid4()))
    message.update_config.config_updates.update_entries.add(key="k", value="v")

    ground.batch(begin, as_operation(T, message, "dev"))

    assert ground.head(T, "dev") == 3
    assert on_branch(ground, "dev").config()["k"] == "v"
    assert on_branch(ground, "dev").count_rows() == 5


def test_a_branch_of_a_version_that_the_batch_makes(ground: Ground) -> None:
    ground.batch(ground.transaction(T, rows(8, 9)), fork(ground, "dev", 3))

    assert (ground.head(T), ground.head(T, "dev")) == (3, 3)
    assert on_branch(ground, "dev").count_rows() == 6


def test_a_repeated_clone_is_answered_with_the_first_version(ground: Ground) -> None:
    operation = fork(ground)
    first = ground.batch(operation)
    again = ground.batch(operation)

    assert again["results"] == first["results"]
    with pytest.raises(TableBranchAlreadyExistsError, match="branch dev of table g\\$t exists, at version 1"):
        ground.batch(fork(ground, "dev", 2))
    assert ground.head(T, "dev") == 1


def test_a_clone_that_cannot_begin_a_branch_is_refused(ground: Ground) -> None:
    before = ground.catalog.snapshot().version
    path = str(ground.root / ground.location(T))
    refusals: list[tuple[dict[str, Any], type[Exception], str]] = [
        (fork(ground, None), InvalidInputError, "a Clone begins a branch"),
        (fork(ground, version=9), TableVersionNotFoundError, "version 9 of g\\$t does not exist"),
        (fork(ground, parent="nope"), TableVersionNotFoundError, "version 1 of g\\$t branch nope does not exist"),
        (fork(ground, ref_path="/elsewhere"), InvalidInputError, "expected the root of its parent, file:///"),
        (fork(ground, ref_path=f"{path}/tree/dev"), InvalidInputError, "expected the root of its parent"),
        (fork(ground, branch_name="other"), InvalidInputError, "clone of version 1 to other"),
        (fork(ground, is_shallow=False), InvalidInputError, "a branch is a shallow clone"),
        (fork(ground, "a..b"), InvalidInputError, "expected no '..'"),
    ]
    for operation, error, text in refusals:
        with pytest.raises(error, match=text):
            ground.batch(operation)
    assert ground.catalog.snapshot().version == before
    assert not (Path(path) / "tree").exists()


def test_a_branch_name_made_outside_the_catalog_is_taken(ground: Ground) -> None:
    (ground.root / ground.location(T) / "_refs/branches").mkdir(parents=True)
    (ground.root / branch_path(ground.location(T), "dev")).write_text("{}")
    with pytest.raises(TableBranchAlreadyExistsError, match=r"dev\.json"):
        ground.batch(fork(ground))
    ground.open(T).create_branch("mine", 2)
    with pytest.raises(TableBranchAlreadyExistsError, match="mine"):
        ground.batch(fork(ground, "mine"))


def test_a_deep_clone_of_any_version_becomes_a_table_of_the_catalog(ground: Ground) -> None:
    source = Dataset.open(ground.store, 2, location=ground.location(T))
    source.deep_clone(ground.store, location="copies/t")

    ground.call("register_table", id=["g", "copy"], location="copies/t")

    ground.write(["g", "copy"], rows(9, 10))
    assert (ground.head(["g", "copy"]), ground.head(T)) == (3, 2)
    assert ground.ids(["g", "copy"]) == [0, 1, 2, 3, 4, 9]
    ground.catalog.sweep()
    check_quiet(ground.root)


def test_a_ref_that_could_not_be_written_is_written_by_the_sweep(ground: Ground) -> None:
    operation = fork(ground)
    store = FaultStore(LocalStore(ground.root, "none"))
    store.fail(Fault.CRASH_BEFORE, when=lambda write: "_refs" in write.path)
    with pytest.raises(Crashed):
        ground.again(store).batch(operation)
    assert on_branch(ground, "dev").count_rows() == 3
    assert ground.open(T).branches.list() == {}

    late = ground.again()
    late.catalog.sweep()
    assert ground.open(T).branches.list() == {}  # it may be on its way: it is a minute old first
    manifest = next((ground.root / ground.location(T) / "tree/dev/_versions").glob("*.manifest"))
    os.utime(manifest, (manifest.stat().st_mtime - 120,) * 2)
    late.catalog.sweep()

    assert list(ground.open(T).branches.list()) == ["dev"]
