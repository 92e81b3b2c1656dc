"""What a transaction by path means, if its writer read a version that is in quarantine (rule P12)."""

import shutil
from collections.abc import Callable
from pathlib import Path

import lance
import pytest
from pyroaring import BitMap

from lance_core.commit.restating import names_the_same, restate
from lance_core.errors import InvalidTransaction
from lance_core.format.manifest import ManifestFile
from lance_core.format.naming import manifest_name
from lance_core.storage.opening import open_store
from lance_core.table_files import TableFiles
from lance_core.transaction.lineage import lineage_break
from lance_core.transaction.readings import other_meaning
from tests.transaction.tables import Table, make_table, replace_data, rows

CHANGES: dict[str, Callable[[lance.LanceDataset], object]] = {
    "delete": lambda dataset: dataset.delete("id = 3"),
    "update": lambda dataset: dataset.update({"x": "x + 1"}, where="id = 3"),
    "append": lambda dataset: dataset.insert(rows(30, 31)),
}


def _forked(tmp_path: Path, quarantined: Callable[[lance.LanceDataset], object], kind: str) -> list[ManifestFile]:
    """A version of the catalog, one of the same number in quarantine, and a change of the first that followed it."""
    table = make_table(tmp_path / "table", (0, 10), (10, 20))
    other = Table(tmp_path / "other")
    shutil.copytree(table.root, other.root)
    table.open().update_config({"a": "b"})
    quarantined(other.open())
    CHANGES[kind](table.open())
    head, proposed = list(table.manifests().values())[-2:]
    return [head, list(other.manifests().values())[-1], proposed]


@pytest.mark.parametrize("kind", ["delete", "update"])
def test_rows_that_an_index_may_have_found_are_others(tmp_path: Path, kind: str) -> None:
    """Its fragments have the ids of others where its writer rebased it."""
    head, view, proposed = _forked(tmp_path, lambda dataset: dataset.create_scalar_index("id", "BTREE"), kind)
    meaning = other_meaning(proposed, head, view, lambda *_: BitMap())
    assert meaning is not None
    assert f"found by index 'id_idx' of version {view.version}, which is in quarantine" in meaning
    assert proposed.transaction is not None
    files = TableFiles(open_store(str(tmp_path)), "table")
    with pytest.raises(InvalidTransaction, match="found by index 'id_idx', which the table does not have"):
        restate(proposed.transaction, view, head, [], files)


@pytest.mark.parametrize("kind", CHANGES)
def test_without_one_they_are_the_same(tmp_path: Path, kind: str) -> None:
    head, view, proposed = _forked(tmp_path, lambda dataset: dataset.update_config({"c": "d"}), kind)
    assert other_meaning(proposed, head, view, lambda *_: BitMap()) is None


def test_an_append_finds_no_rows(tmp_path: Path) -> None:
    head, view, proposed = _forked(tmp_path, lambda dataset: dataset.create_scalar_index("id", "BTREE"), "append")
    assert other_meaning(proposed, head, view, lambda *_: BitMap()) is None


@pytest.mark.parametrize(
    ("reader", "where", "meant"),
    [("quarantined", "id = 3", False), ("quarantined", "id = 3 or id = 4", False), ("head", "id = 4", True)],
)
def test_an_update_of_rows_that_are_gone_by_now_is_another_one(
    tmp_path: Path, reader: str, where: str, meant: bool
) -> None:
    """A stock writer that rebases it asks the versions after the one that it read, not that one."""
    table = make_table(tmp_path / "table", (0, 10), (10, 20))
    base = table.open().version
    handles = {"quarantined": table.open()}
    handles["quarantined"].update_config({"a": "b"})
    view = table.manifests()[base + 1]
    (table.path / "_versions" / manifest_name(base + 1)).unlink()
    handles["head"] = table.open()
    handles["head"].update({"x": "x + 1"}, where="id = 3")
    table.open().insert(rows(30, 31))
    handles[reader].update({"x": "x + 1"}, where=where)
    head, proposed = table.manifests()[base + 2], table.manifests()[base + 3]
    assert lineage_break(head, proposed) is None
    files = TableFiles(table.store, "t")
    meaning = other_meaning(proposed, head, view, files.deleted_rows)
    if meant:
        assert meaning is None
    else:
        assert meaning is not None
        assert "rows that it changes may be gone, and were there in version" in meaning


QUARANTINED: dict[str, Callable[[lance.LanceDataset], object]] = {
    "deleted": lambda dataset: dataset.delete("id = 3"),
    "replaced": lambda dataset: replace_data(dataset, 0),
}


@pytest.mark.parametrize(("content", "column"), [("deleted", "id"), ("replaced", "s")])
@pytest.mark.parametrize("followed", [True, False])
def test_an_index_lacks_rows_that_are_gone_or_others_in_quarantine_alone(
    tmp_path: Path, content: str, column: str, followed: bool
) -> None:
    """Where the change that it follows is not in the head, a query by it would miss rows."""
    table = make_table(tmp_path / "table", (0, 10), (10, 20))
    base = table.open().version
    QUARANTINED[content](table.open())
    handle, view = table.open(), table.manifests()[base + 1]
    if not followed:
        (table.path / "_versions" / manifest_name(base + 1)).unlink()
        table.open().update_config({"a": "b"})
    table.open().update_config({"c": "d"})
    handle.create_scalar_index(column, "BTREE")
    head, proposed = list(table.manifests().values())[-2:]
    assert lineage_break(head, proposed) is None
    assert proposed.transaction is not None
    files = TableFiles(table.store, "t")
    meaning = other_meaning(proposed, head, view, files.deleted_rows)
    if followed:
        assert meaning is None
        assert restate(proposed.transaction, view, head, [], files).transaction.HasField("create_index")
        return
    assert meaning is not None
    assert f"fragment 0 may {'be gone' if content == 'deleted' else 'have other values'} in version" in meaning
    with pytest.raises(InvalidTransaction, match=f"index '{column}_idx' was made of other rows of fragment 0"):
        restate(proposed.transaction, view, head, [], files)
    assert not names_the_same(proposed.transaction, view, head)
