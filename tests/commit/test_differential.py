"""The same transaction over the same commit, by stock pylance and by us: one verdict, or a listed difference."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lance
import pytest
from lance.commit import CommitConflictError

from lance_core.transaction.operations import ReserveFragments
from tests.commit.test_conflicts import PYLANCE
from tests.commit.test_conflicts import commit as outcome_of
from tests.transaction.tables import Table, borrow, make_table, rows

OK, R, I = "committed", "retryable", "incompatible"  # noqa: E741

OURS: dict[str, Callable[[lance.LanceDataset], object]] = {
    "append": lambda d: lance.write_dataset(rows(50, 52), d, mode="append"),
    "overwrite": lambda d: lance.write_dataset(rows(50, 52), d, mode="overwrite"),
    "config": lambda d: d.update_config({"k": "v"}),
    "schema metadata": lambda d: d.update_schema_metadata({"m": "v"}),
    "project": lambda d: d.drop_columns(["s"]),
    "merge": lambda d: d.add_columns({"y": "x"}),
    "index": lambda d: d.create_scalar_index("x", "BTREE"),
    "index on what goes": lambda d: d.create_scalar_index("s", "BTREE"),
    "data": PYLANCE["data_replacement"],
    "rewrite": lambda d: d.optimize.compact_files(),
    "restore": PYLANCE["restore"],
}

THEIRS = {
    **{name: action for name, action in PYLANCE.items() if "columns" not in name and name != "update_bases"},
    "field metadata": lambda d: d.update_field_metadata({"id": {"k": "v"}}),
    "same index": lambda d: d.create_scalar_index("x", "BTREE"),
}

DIFFERENCES: dict[tuple[str, str], tuple[str, str]] = {
    # ours, theirs: stock pylance, we
    ("index on what goes", "project"): (OK, R),
    ("project", "field metadata"): (OK, R),
}


def stock(table: Table, operation: lance.LanceOperation.BaseOperation, read_version: int) -> str:
    try:
        lance.LanceDataset.commit(table.uri, operation, read_version=read_version)
    except CommitConflictError as error:
        return R if error.retryable else I
    return OK


@pytest.mark.parametrize("theirs", THEIRS)
def test_verdicts(tmp_path: Path, theirs: str) -> None:
    table = make_table(tmp_path / "first", (0, 10), (10, 20))
    for ours, action in OURS.items():
        mine = table.copy(tmp_path / f"{ours} mine")
        seen: list[lance.LanceOperation.BaseOperation] = []
        operation = borrow(mine, lambda d, action=action, seen=seen: record(d, action, seen))
        if ours == "rewrite":  # its ids were reserved in the copy only
            assert outcome_of(mine, ReserveFragments(1), 2) == OK
        THEIRS[theirs](mine.open())
        other = mine.copy(tmp_path / f"{ours} other")
        before = mine.open().version
        verdicts = stock(other, seen[0], 2), outcome_of(mine, operation, 2)
        expected = DIFFERENCES.get((ours, theirs))
        assert verdicts == (expected or (verdicts[0],) * 2), (ours, theirs)
        mine.open().validate()
        if verdicts == (OK, OK):
            assert mine.open().version == other.open().version == before + 1
            assert mine.open().to_table().sort_by("id") == other.open().to_table().sort_by("id"), (
                ours,
                theirs,
            )


@pytest.mark.parametrize("theirs", THEIRS)
def test_pylance_judges_our_commits_as_its_own(tmp_path: Path, theirs: str) -> None:
    """What was committed since is the same transaction, once by stock pylance and once by us."""
    table = make_table(tmp_path / "first", (0, 10), (10, 20))
    for ours, action in OURS.items():
        mine = table.copy(tmp_path / f"{ours} mine")
        seen: list[lance.LanceOperation.BaseOperation] = []
        borrow(mine, lambda d, action=action, seen=seen: record(d, action, seen))
        assert outcome_of(mine, ReserveFragments(1), 2) == OK
        committed = borrow(mine, THEIRS[theirs])
        other = mine.copy(tmp_path / f"{ours} other")
        THEIRS[theirs](other.open())
        assert outcome_of(mine, committed, 3) == OK
        assert stock(mine, seen[0], 2) == stock(other, seen[0], 2), (ours, theirs)
        mine.open().validate()
        assert mine.open().to_table().sort_by("id") == other.open().to_table().sort_by("id"), (ours, theirs)


def record(
    dataset: lance.LanceDataset,
    action: Callable[[lance.LanceDataset], object],
    seen: list[lance.LanceOperation.BaseOperation],
) -> None:
    action(dataset)
    latest = lance.dataset(dataset.uri)
    seen.append(latest.read_transaction(latest.version).operation)
