"""One table with all features, as files and in a memory store, and transactions for it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import lance

from lance_core.commit.loop import Committed, commit_transaction
from lance_core.format.manifest import ManifestFile
from lance_core.format.naming import manifest_name
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.memory import MemoryStore
from lance_core.transaction.operations import (
    Append,
    DataReplacement,
    MapUpdate,
    Operation,
    Project,
    ReserveFragments,
    Restore,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMemWalState,
    encode_transaction,
)
from tests.staged_fragments import stage_fragments
from tests.transaction.tables import Table, borrow, delete_rows, make_table, merge_rows, rows, stage_column

T = TypeVar("T")


@dataclass(frozen=True)
class Scene:
    """`files` are those of the table by key; data and index files are empty there, for nothing here reads them."""

    table: Table
    head: ManifestFile
    files: Mapping[str, bytes]
    operations: Mapping[str, Operation]

    def store(self, changed: Mapping[str, bytes]) -> MemoryStore:
        store = MemoryStore()
        for key, data in {**self.files, **changed}.items():
            store.put(key, data)
        return store

    def manifest_key(self, version: int) -> str:
        return f"t/_versions/{manifest_name(version)}"

    def commit(self, name: str, changed: Mapping[str, bytes], read_version: int) -> Committed:
        """Commit an operation of ours to the table with some files changed."""
        transaction = encode_transaction(self.operations[name], read_version=read_version)
        return commit_transaction(self.store(changed), "t", transaction, max_retries=0)


def make_scene(root: Path, *, stable_row_ids: bool) -> Scene:
    """Eight versions: rows deleted, moved and indexed. The operations were made on the last one and all fit it."""
    table = make_table(root, (0, 10), (10, 20), (20, 30), stable_row_ids=stable_row_ids)
    table.open().delete("id in (1, 12)")
    table.open().create_scalar_index("x", "BTREE")
    table.open().update({"s": "'moved'"}, where="id = 3")
    table.open().update_config({"config": "value"})
    table.open().delete("id = 5")
    head = table.head()
    operations = _operations(table, head)
    return Scene(table, head, files_of(table), operations)


def files_of(table: Table) -> dict[str, bytes]:
    return {
        str(path.relative_to(table.root)): b""
        if path.parts[-2] == "data" or "_indices" in path.parts
        else path.read_bytes()
        for path in table.root.rglob("*")
        if path.is_file()
    }


def _operations(table: Table, head: ManifestFile) -> dict[str, Operation]:
    change = MapUpdate({"k": "v"})
    keys = pb.Transaction.KeyExistenceFilter(field_ids=[0], exact=pb.Transaction.ExactKeySetFilter(key_hashes=[1, 2]))
    overwrite = borrow(table, lambda dataset: lance.write_dataset(rows(60, 62), dataset, mode="overwrite"))
    return {
        "append": Append(table.stage(rows(50, 53))),
        "delete": delete_rows(table.open(), "id in (7, 14)"),
        "update": merge_rows(table.open(), rows(18, 22)),
        "columns": borrow(table, _rewrite_column),
        "keys": Update(new=tuple(stage_fragments(rows(70, 71), table.uri, mode="append")), inserted_keys=keys),
        "rewrite": borrow(table, lambda dataset: dataset.optimize.compact_files()),
        "restore": Restore(2),
        "project": Project(tuple(field for field in head.manifest.fields if field.name != "s"), True),
        "merge": borrow(table, lambda dataset: dataset.add_columns({"y": "x"})),
        "overwrite": overwrite,
        "config": UpdateConfig(change, change, change, {0: change}),
        "index": borrow(table, lambda dataset: dataset.create_scalar_index("id", "BTREE")),
        "data": DataReplacement((stage_column(table.open(), 0),)),
        "log": UpdateMemWalState((pb.CompactedSsTable(shard_id=pb.UUID(uuid=b"s" * 16), generation=5),)),
        "reserve": ReserveFragments(2),
        "bases": UpdateBases((pb.BasePath(name="n", path="/elsewhere"),)),
    }


def _rewrite_column(dataset: lance.LanceDataset) -> None:
    """New values for column x of a row; with an index on id pylance writes a column instead of moving the row."""
    dataset.create_scalar_index("id", "BTREE")
    lance.dataset(dataset.uri).merge_insert("id").when_matched_update_all().execute(rows(8, 9).drop(["s"]))


def twin_of(scene: Scene, root: Path) -> Table:
    """The same table on disk, to be damaged."""
    shutil.copytree(scene.table.root, root)
    return Table(root)


class Refused(Exception):
    """Stock pylance does not take it."""


def stock(call: Callable[[], T]) -> T:
    """What pylance answers. Raises `Refused` when it does not, which includes a panic of its native part."""
    try:
        return call()
    except BaseException as error:
        if isinstance(error, OSError | ValueError | RuntimeError) or type(error).__name__ == "PanicException":
            raise Refused(str(error)) from error
        raise
