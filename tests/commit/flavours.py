"""Kinds of tables on which operations are tested, and a commit by this engine to each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lance_core.commit.loop import Committed, commit_transaction
from lance_core.transaction.operations import Operation, encode_transaction
from tests.transaction.tables import Table, make_table


@dataclass(frozen=True)
class Flavour:
    stable_row_ids: bool = False
    v2: bool = True
    branch: str | None = None
    indexed: bool = False
    parent: str | None = None
    """The branch that `branch` is one of; None is main."""


FLAVOURS = {
    "plain": Flavour(),
    "stable row ids": Flavour(stable_row_ids=True),
    "v1 names": Flavour(v2=False),
    "branch": Flavour(branch="dev/x"),
    "branch of a branch": Flavour(branch="sub", parent="dev/x"),
    "indexed": Flavour(indexed=True),
    "indexed, stable": Flavour(indexed=True, stable_row_ids=True),
}

IndexKind = Literal["BTREE", "BITMAP"]
ON_ID: Mapping[str, IndexKind] = {"id": "BTREE"}
IDS = [i for i in range(20) if i != 5]


def make(root: Path, flavour: Flavour, indices: Mapping[str, IndexKind] = ON_ID) -> Table:
    """Ids 0 to 19 in two fragments, id 5 deleted, on main or on a branch; `indices` are those of an indexed table."""
    made = make_table(root, (0, 10), (10, 20), stable_row_ids=flavour.stable_row_ids, v2=flavour.v2)
    made.open().delete("id = 5")
    for column, kind in indices.items() if flavour.indexed else ():
        made.open().create_scalar_index(column, kind)
    if flavour.branch is None:
        return made
    parent = made
    if flavour.parent is not None:
        made.open().create_branch(flavour.parent)
        parent = made.branch(flavour.parent)
    parent.open().create_branch(flavour.branch)
    return made.branch(flavour.branch)


def commit(table: Table, operation: Operation, flavour: Flavour, read_version: int | None = None) -> Committed:
    read = table.open().version if read_version is None else read_version
    transaction = encode_transaction(operation, read_version=read, properties={"by": "us"})
    return commit_transaction(table.store, "t", transaction, branch=flavour.branch)
