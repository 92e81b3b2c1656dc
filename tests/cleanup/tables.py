"""Tables to clean up, made by pylance, and the checks after a clean-up."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import lance
import pytest

from lance_core.cleanup import CleanupReport, Retention, cleanup_table
from lance_core.errors import ReferenceNotFound
from lance_core.format.naming import parse_manifest_name
from lance_core.storage.port import ObjectStore
from lance_core.tables.dataset import Dataset
from tests.transaction.tables import Table, make_table, rows

NOW = timedelta(0)
EAGER = Retention(keep=1, min_age=NOW)
Rows = dict[tuple[str, int], list[int]]


def grow(root: Path, *, stable_row_ids: bool = False, v2: bool = True, branch: bool = True) -> Table:
    """Nine versions: appends, deletions, an index, a compaction; tag `t` on 2, branch `dev` from 5 with a commit.

    Without the branch nothing but the versions 3 to 6 needs the third fragment and two deletion files.
    """
    table = make_table(root, (0, 10), (10, 20), (20, 30), stable_row_ids=stable_row_ids, v2=v2)
    table.open().delete("id in (3, 15)")
    table.open().create_scalar_index("id", "BTREE")
    table.open().tags.create("t", 2)
    if branch:
        table.open().create_branch("dev")
        lance.write_dataset(rows(100, 105), table.branch("dev").open(), mode="append")
    table.open().optimize.compact_files()
    table.open().delete("id = 7")
    lance.write_dataset(rows(30, 35), table.uri, mode="append")
    return table


def roots(table: Table) -> list[Path]:
    """The roots of main and of all branches."""
    return sorted({path.parent for path in table.path.rglob("_versions") if "_staging" not in path.parts})


def listed(root: Path) -> list[int]:
    found = [parse_manifest_name(path.name) for path in (root / "_versions").iterdir()]
    return sorted(entry[0] for entry in found if entry is not None)


def contents(table: Table) -> Rows:
    """The ids of every version of every branch that is listed, each opened and validated by pylance."""
    found: Rows = {}
    for root in roots(table):
        for version in listed(root):
            dataset = lance.dataset(str(root), version=version)
            dataset.validate()
            ids = sorted(dataset.to_table(columns=["id"])["id"].to_pylist())
            found[str(root.relative_to(table.path)), version] = ids
            assert dataset.to_table(filter="id = 17")["id"].to_pylist() == [17] * ids.count(17)
    return found


def assert_whole(table: Table, before: Rows) -> Rows:
    """What is listed has the rows that it had; the newest versions, tagged and forked ones are; what is left."""
    after = contents(table)
    for key, ids in after.items():
        assert ids == before[key], key
    for root, version in _needed(table, before):
        assert (root, version) in after
    for root, version in before.keys() - after.keys():
        assert_gone(table.path / root, version)
    for name, tag in table.open().tags.list().items():
        assert lance.dataset(table.uri, version=name).count_rows() == len(before[".", tag["version"]])
    return after


def _needed(table: Table, before: Rows) -> set[tuple[str, int]]:
    newest: dict[str, int] = {}
    for root, version in before:
        newest[root] = max(newest.get(root, 0), version)
    pinned = {(".", tag["version"]) for tag in table.open().tags.list().values() if not tag["branch"]}
    for branch in table.open().branches.list().values():
        parent = branch["parent_branch"]
        pinned.add((f"tree/{parent}" if parent else ".", branch["parent_version"]))
    return set(newest.items()) | pinned


def assert_gone(root: Path, version: int) -> None:
    with pytest.raises(ReferenceNotFound):
        Dataset.open(root, version)
    with pytest.raises((ValueError, OSError), match=r"(?i)not found|does not exist|no such"):
        lance.dataset(str(root), version=version)


def age(table: Table, days: float, pattern: str = "*") -> None:
    """Let files have been written so many days ago."""
    moment = time.time() - days * 86_400
    for path in table.path.rglob(pattern):
        if path.is_file():
            os.utime(path, (moment, moment))


def files(table: Table) -> set[str]:
    return {str(path.relative_to(table.path)) for path in table.path.rglob("*") if path.is_file()}


def clean(
    table: Table,
    retention: Retention = EAGER,
    *,
    store: ObjectStore | None = None,
    branch: str | None = None,
    grace: timedelta = timedelta(days=7),
    dry_run: bool = False,
    settled: Callable[[], object] = lambda: None,
) -> CleanupReport:
    """Clean up without waiting; `settled` happens where a cleanup would wait."""
    return cleanup_table(
        table.store if store is None else store,
        "t",
        retention,
        branch=branch,
        grace=grace,
        dry_run=dry_run,
        sleep=lambda _: settled(),  # type: ignore[arg-type, return-value]
    )
