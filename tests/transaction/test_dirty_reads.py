"""What a change has of a version that is in quarantine, and that its writer may have been rebased over (rule P16).

Here the writer never has: what it deletes is its own. It is refused where that cannot be told.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import lance
import pytest

from lance_core.format.manifest import ManifestFile
from lance_core.storage.opening import open_store
from lance_core.table_files import TableFiles
from lance_core.transaction.dirty_reads import dirty_read, readings_to_check
from tests.transaction.tables import Table, make_table, replace_data, rows

Change = Callable[[lance.LanceDataset], object]


def _config(dataset: lance.LanceDataset) -> None:
    dataset.update_config({"a": "b"})


def _delete(where: str) -> Change:
    return lambda dataset: dataset.delete(where)


class Fork:
    """Version 3 of a table of two fragments, and another version 3 of a writer by path, which is in quarantine."""

    def __init__(self, root: Path, quarantined: Change, ours: Change = _config) -> None:
        self.table = make_table(root / "table", (0, 10), (10, 20))
        other = Table(root / "other")
        shutil.copytree(self.table.root, other.root)
        ours(self.table.open())
        quarantined(other.open())
        self.view = other.head()
        files = other.path / "_deletions"
        if files.exists():
            shutil.copytree(files, self.table.path / "_deletions", dirs_exist_ok=True)
        self.files = TableFiles(open_store(str(root)), "table/t")

    def change(self, change: Change) -> tuple[ManifestFile, ManifestFile]:
        """The head and the version that a writer commits on it."""
        change(self.table.open())
        head, proposed = list(self.table.manifests().values())[-2:]
        return head, proposed

    def read(self, change: Change, *, is_gone: bool = False) -> str | None:
        """What the change has of the version in quarantine; `is_gone` says that the table's own one is not there."""
        head, proposed = self.change(change)
        readings = readings_to_check(head, proposed)
        if readings is None or not (self.view.version in readings.exact or self.view.version < readings.below):
            return None
        namesake = None if is_gone else self.table.manifests()[self.view.version]
        return dirty_read(head, proposed, self.view, namesake, self.files.deleted_rows)


@pytest.mark.parametrize(
    ("where", "fragment"),
    [
        ("id = 5", None),
        ("id = 3", None),
        ("id IN (3, 5)", None),
        ("id IN (3, 4)", None),
        ("id IN (3, 4, 12)", None),
        ("id IN (3, 4, 5)", 0),
        ("id IN (3, 4, 5, 12, 13)", 0),
        ("id < 10", 0),
        ("id >= 10", None),
        ("id >= 3", 0),
    ],
)
@pytest.mark.parametrize("kind", ["delete", "update"])
def test_rows_that_another_version_of_that_number_has_deleted(
    tmp_path: Path, where: str, fragment: int | None, kind: str
) -> None:
    """All of them and others, in each fragment: the writer may have been rebased over it."""
    fork = Fork(tmp_path, _delete("id IN (3, 4)"))
    change = _delete(where) if kind == "delete" else lambda dataset: dataset.update({"x": "x + 1"}, where=where)
    quarantined = "version 3, which is in quarantine"
    expected = (
        None if fragment is None else f"it deletes rows of fragment {fragment} that only {quarantined}, had deleted"
    )
    assert fork.read(change) == expected


@pytest.mark.parametrize(
    ("between", "is_gone", "is_refused"),
    [
        (_config, False, False),
        (_config, True, True),
        (_delete("id = 6"), False, True),
        (_delete("id = 12"), False, False),
    ],
)
def test_a_later_version_is_one_over_which_the_writer_was_rebased(
    tmp_path: Path, between: Change, is_gone: bool, is_refused: bool
) -> None:
    """Only a deletion of the same fragment makes a deletion file anew, of another number."""
    fork = Fork(tmp_path, _delete("id IN (3, 4)"))
    fork.change(between)
    assert (fork.read(_delete("id IN (3, 4, 5)"), is_gone=is_gone) is not None) is is_refused


def test_deletions_that_the_table_has_are_no_others(tmp_path: Path) -> None:
    fork = Fork(tmp_path, _delete("id IN (3, 4)"), _delete("id IN (2, 3, 4)"))
    assert fork.read(_delete("id IN (5, 6)")) is None


@pytest.mark.parametrize(
    ("quarantined", "is_refused"),
    [(_config, False), (_delete("id = 3"), True), (replace_data, True), (_delete("id >= 10"), False)],
)
def test_an_index_covers_the_rows_that_are_there(tmp_path: Path, quarantined: Change, is_refused: bool) -> None:
    change = (lambda dataset: replace_data(dataset, 0)) if quarantined is replace_data else quarantined
    fork = Fork(tmp_path, change)
    found = fork.read(lambda dataset: dataset.create_scalar_index("s", "BTREE"))
    assert (found is not None) is is_refused, found


def test_a_fragment_of_the_same_id_with_other_rows(tmp_path: Path) -> None:
    fork = Fork(tmp_path, lambda dataset: dataset.insert(rows(30, 40)), lambda dataset: dataset.insert(rows(20, 30)))
    assert fork.read(_delete("id >= 20")) == (
        "it removes fragment 2, which may be that of version 3, which is in quarantine, with other rows"
    )
    later = Fork(
        tmp_path / "later", lambda dataset: dataset.insert(rows(30, 40)), lambda dataset: dataset.insert(rows(20, 30))
    )
    later.change(_config)
    assert later.read(_delete("id >= 20")) is None


@pytest.mark.parametrize("change", [_config, lambda dataset: dataset.insert(rows(20, 30)), _delete("id = 4")])
def test_what_can_have_nothing_of_another_version_is_not_compared(tmp_path: Path, change: Change) -> None:
    fork = Fork(tmp_path, _delete("id = 3"))
    assert readings_to_check(*fork.change(change)) is None
