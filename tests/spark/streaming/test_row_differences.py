"""Changes that stable row ids tell, against all rows of each version as pylance reads them."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyroaring import BitMap

from lance_core.proto import lance_table_pb2 as pb
from lance_core.tables.dataset import Dataset
from spark_catalog.change_feed.change_rows import divide, read_changed
from spark_catalog.tables.pinned import PinnedTable
from table_data.change_feed import selected_rows
from table_data.change_feed.changes import changes_between
from table_data.change_feed.policy import ChangePolicy
from table_data.change_feed.row_differences import differences
from table_data.errors import InvalidCall

EVERY = ChangePolicy("rows", "rows", "rows", has_images=True)
SCHEMA = pa.schema({"id": pa.int64(), "x": pa.int64(), "_row_id": pa.int64()})
ADDED = ("_row_id", "_change_type", "_commit_version")
CHANGES = pa.schema([*SCHEMA, ("_change_type", pa.string()), ("_commit_version", pa.int64())])


class Walk:
    """A table that random operations change, with stable row ids and small fragments."""

    def __init__(self, uri: str, seed: int) -> None:
        self.uri = uri
        self.random = random.Random(seed)
        self.next = 0
        self.write("create", 40)

    def rows(self, ids: list[int]) -> pa.Table:
        values = [self.random.randrange(1000) for _ in ids]
        return pa.table({"id": pa.array(ids, pa.int64()), "x": pa.array(values, pa.int64())})

    def write(self, mode: str, count: int) -> None:
        self.next += count
        rows = self.rows(list(range(self.next - count, self.next)))
        lance.write_dataset(rows, self.uri, mode=mode, enable_stable_row_ids=True, max_rows_per_file=10)

    def step(self, operation: str) -> None:
        table = lance.dataset(self.uri)
        ids = table.to_table(columns=["id"]).column("id").to_pylist()
        some = sorted(self.random.sample(ids, min(len(ids), self.random.randrange(1, 12))))
        where = f"id IN ({', '.join(map(str, some))})" if some else "false"
        match operation:
            case "append" | "overwrite":
                self.write(operation, self.random.randrange(1, 25))
            case "delete":
                table.delete(where)
            case "update":
                table.update({"x": "x + 1"}, where=where)
            case "merge":
                merge = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
                merge.execute(self.rows([*some, self.next, self.next + 1]))
                self.next += 2
            case "compact":
                table.optimize.compact_files(target_rows_per_fragment=self.random.choice([15, 30, 100]))
            case "restore":
                lance.dataset(self.uri, version=self.random.randrange(1, table.version + 1)).restore()

    def at(self, version: int) -> dict[int, tuple[int, int]]:
        if not version:
            return {}
        rows = lance.dataset(self.uri, version=version).scanner(columns=["id", "x", "_rowid"]).to_table()
        return {row["_rowid"]: (row["id"], row["x"]) for row in rows.to_pylist()}


def found(uri: str, last: int, policy: ChangePolicy = EVERY, start: int = 0) -> list[tuple[Any, ...]]:
    changes = changes_between("t", PinnedTable(uri, last), start, policy)
    tasks = divide(PinnedTable(uri, last), changes)
    batches = (batch for parts in tasks for batch in read_changed(parts, CHANGES, ADDED))
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_changes_are_those_of_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, is_sparse: bool
) -> None:
    if is_sparse:
        monkeypatch.setattr(selected_rows, "_SPARSE", 0)
        monkeypatch.setattr(selected_rows, "_MAX_IDS", 3)
    walk = Walk(f"{tmp_path.as_uri()}/t", seed)
    operations = ["append", "delete", "update", "merge", "compact", "overwrite", "restore"] * 2
    walk.random.shuffle(operations)
    for operation in operations:
        walk.step(operation)
    last = int(lance.dataset(walk.uri).version)
    changes = Counter(found(walk.uri, last))
    for version in range(1, last + 1):
        before, after = walk.at(version - 1), walk.at(version)
        for row in before.keys() | after.keys():
            old, new = before.get(row), after.get(row)
            expected = [
                *([(*old, row, "delete", version)] if old and not new else []),
                *([(*new, row, "insert", version)] if new and not old else []),
                *([(*old, row, "update_preimage", version)] if old and new and old != new else []),
                *([(*new, row, "update_postimage", version)] if old and new and old != new else []),
            ]
            changes.subtract(expected)
    # An update may write the value that a row has.
    assert all(count == 0 or (count == 1 and "update" in change[3]) for change, count in changes.items())
    same = Counter((change[:3], change[4]) for change in changes.elements())
    assert set(same.values()) <= {2}


def test_what_each_option_gives(tmp_path: Path) -> None:
    walk = Walk(f"{tmp_path.as_uri()}/t", 0)
    lance.dataset(walk.uri).delete("id < 2")
    lance.dataset(walk.uri).update({"x": "-1"}, where="id = 2")
    walk.write("overwrite", 1)

    def types(**policy: Any) -> Counter[tuple[str, int]]:
        return Counter((change[3], change[4]) for change in found(walk.uri, 4, ChangePolicy(**policy), start=1))

    deleted, updated = {("delete", 2): 2}, {("update", 3): 1}
    assert types(deletes="rows", updates="rows", overwrites="ignore") == deleted | updated
    assert types(deletes="rows", updates="ignore", overwrites="ignore") == deleted
    assert types(deletes="ignore", updates="ignore", overwrites="rows") == {("delete", 4): 38, ("insert", 4): 1}
    for policy, does in (
        ({"deletes": "rows"}, "version 3: updates rows"),
        ({"overwrites": "rows"}, "version 2: deletes rows"),
        ({"deletes": "rows", "updates": "rows"}, r"version 4: replaces all rows \(overwrite\)"),
    ):
        with pytest.raises(InvalidCall, match=does):
            types(**policy)


def test_all_rows_of_a_data_file_that_is_replaced_are_updated(tmp_path: Path) -> None:
    walk = Walk(f"{tmp_path.as_uri()}/t", 0)
    other = lance.write_dataset(walk.rows(list(range(10))), f"{tmp_path.as_uri()}/other")
    [file] = other.get_fragments()[0].metadata.files
    (tmp_path / "other" / "data" / file.path).rename(tmp_path / "t" / "data" / file.path)
    replaced = [lance.LanceOperation.DataReplacementGroup(0, file)]
    lance.LanceDataset.commit(walk.uri, lance.LanceOperation.DataReplacement(replaced), read_version=1)
    types = Counter(change[3] for change in found(walk.uri, 2, start=1))
    assert types == {"update_preimage": 10, "update_postimage": 10}


def test_values_that_are_replaced_without_a_record_are_refused(tmp_path: Path) -> None:
    walk = Walk(f"{tmp_path.as_uri()}/t", 0)
    before = Dataset.open(walk.uri).manifest
    after = pb.Manifest.FromString(before.SerializeToString())
    after.fragments[1].files[0].path = "other.lance"
    with pytest.raises(InvalidCall, match="version 2: replaces values of fragment 1 in place"):
        differences("version 2", after, before, lambda _: BitMap(), lambda _: BitMap())


def test_a_table_without_stable_row_ids_is_refused(tmp_path: Path) -> None:
    uri = f"{tmp_path.as_uri()}/t"
    lance.write_dataset(pa.table({"id": [1], "x": [1]}), uri)
    with pytest.raises(InvalidCall, match="version 1: expected stable row ids, which identify rows before a change"):
        found(uri, 1)
