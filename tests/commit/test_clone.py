"""Branches and shallow clones created by this engine: stock pylance opens, reads, continues and clones them."""

from __future__ import annotations

from pathlib import Path

import lance
import pytest

from lance_core.commit.loop import Committed, commit_transaction
from lance_core.errors import IncompatibleTransaction, InvalidTransaction, ReferenceNotFound, UnsupportedFeature
from lance_core.proto import lance_table_pb2 as pb
from lance_core.tables.branches import Branches
from lance_core.transaction.apply import apply_transaction
from lance_core.transaction.operations import Append, Clone, UpdateConfig, encode_transaction
from tests.commit.flavours import Flavour, commit
from tests.transaction.tables import Table, delete_rows, make_table, rows
from tests.transaction.test_apply import comparable

IDS = [i for i in range(20) if i != 5]


@pytest.fixture(params=[False, True])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> Table:
    made = make_table(tmp_path, (0, 10), (10, 20), stable_row_ids=request.param)
    made.open().delete("id = 5")
    made.open().create_scalar_index("id", "BTREE")
    made.open().update_config({"k": "v"})
    return made


def clone(table: Table, parent: Table, name: str | None, to: str = "t", ref_name: str | None = None) -> Committed:
    version = parent.open().version
    operation = Clone(parent.uri, version, ref_name, name)
    return commit_transaction(
        table.store, to, encode_transaction(operation, read_version=version, properties={"by": "us"}), branch=name
    )


def sorted_bases(manifest: pb.Manifest) -> pb.Manifest:
    """Writers list base paths in any order."""
    bases = sorted(manifest.base_paths, key=lambda base: base.id)
    del manifest.base_paths[:]
    manifest.base_paths.extend(bases)
    return manifest


def test_first_versions_are_those_of_pylance(table: Table) -> None:
    table.open().create_branch("dev")
    lance.write_dataset(rows(20, 22), table.branch("dev").open(), mode="append")
    table.branch("dev").open().create_branch("dev/sub")
    for parent, branch in ((table, "dev"), (table.branch("dev"), "dev/sub")):
        [theirs, *_] = table.branch(branch).manifests().values()
        source = parent.manifests()[theirs.version]
        assert theirs.transaction is not None
        built = apply_transaction(
            None, theirs.transaction, version=theirs.version, now_ns=1, branch=branch, source=source
        )
        assert sorted_bases(comparable(built.manifest)) == sorted_bases(comparable(theirs.manifest))
        assert built.indices == theirs.indices


def test_a_branch_and_a_branch_of_the_branch(table: Table) -> None:
    parent = table.open()
    committed = clone(table, table, "dev")
    assert (committed.version, committed.rebased) == (parent.version, False)
    Branches(table.store, "t").create("dev", committed.version)
    dev = table.open().checkout_version(("dev", None))
    dev.validate()
    assert sorted(dev.to_table()["id"].to_pylist()) == IDS
    assert "ScalarIndexQuery" in dev.scanner(filter="id = 7").explain_plan()
    assert dev.read_transaction(dev.version).transaction_properties == {"by": "us"}

    lance.write_dataset(rows(20, 22), dev, mode="append")
    branch = table.branch("dev")
    commit(branch, delete_rows(branch.open(), "id = 3"), Flavour(branch="dev"))
    branch.open().delete("id in (4, 21)")
    expected = [i for i in [*IDS, 20] if i not in (3, 4)]
    assert branch.ids() == expected
    assert table.ids() == IDS

    sub = clone(table, branch, "sub", ref_name="dev")
    Branches(table.store, "t").create("sub", ("dev", sub.version))
    nested = table.open().checkout_version(("sub", None))
    nested.validate()
    assert sorted(nested.to_table()["id"].to_pylist()) == expected
    commit(table.branch("sub"), Append(table.branch("sub").stage(rows(30, 31))), Flavour(branch="sub"))
    table.branch("sub").open().create_branch("sub2")
    assert table.branch("sub2").ids() == [*expected, 30]


def test_a_shallow_clone(table: Table) -> None:
    committed = clone(table, table, None, to="copy")
    copy = lance.dataset(str(table.root / "copy"))
    copy.validate()
    assert copy.version == committed.version
    lance.write_dataset(rows(20, 22), copy, mode="append")
    message = encode_transaction(UpdateConfig(), read_version=committed.version)
    assert commit_transaction(table.store, "copy", message).version == committed.version + 2
    assert sorted(lance.dataset(str(table.root / "copy")).to_table()["id"].to_pylist()) == [*IDS, 20, 21]
    assert table.ids() == IDS


def test_a_clone_never_replaces_an_existing_table(table: Table) -> None:
    version = table.open().version
    message = encode_transaction(Clone(table.uri, version, None, "dev"), read_version=version)
    first = commit_transaction(table.store, "t", message, branch="dev")
    assert commit_transaction(table.store, "t", message, branch="dev").version == first.version
    with pytest.raises(IncompatibleTransaction, match="a Clone can only be the first version"):
        clone(table, table, "dev")
    with pytest.raises(IncompatibleTransaction, match="a Clone can only be the first version"):
        clone(table, table, None)


def test_an_invalid_clone_is_refused(table: Table) -> None:
    def attempt(operation: Clone, branch: str | None = "dev") -> None:
        commit_transaction(table.store, "t", encode_transaction(operation, read_version=1), branch=branch)

    with pytest.raises(ReferenceNotFound, match="clone of version 99"):
        attempt(Clone(table.uri, 99, None, "dev"))
    with pytest.raises(UnsupportedFeature, match="clone of /nowhere/t, which is not in"):
        attempt(Clone("/nowhere/t", 1, None, "dev"))
    with pytest.raises(UnsupportedFeature, match="a branch is a shallow clone of its parent"):
        attempt(Clone(table.uri, 1, None, "dev", is_shallow=False))
    with pytest.raises(InvalidTransaction, match="clone of version 1 to other: expected version 1 and dev"):
        attempt(Clone(table.uri, 1, None, "other"))
    assert not (table.path / "tree").exists()
