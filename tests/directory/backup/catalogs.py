"""Catalogs that are backed up, and the comparison of a restored one with what was backed up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import lancedb
import pyarrow as pa
from lance_namespace import connect

from lance_core.storage.local import LocalStore
from lance_core.storage.port import ObjectStore
from namespace_server.directory.backup import BackupRun, Restoration
from namespace_server.directory.backup.run import FinishedBackup
from namespace_server.directory.doctor import Examination
from namespace_server.directory.model.snapshot import CatalogSnapshot
from tests.directory.gc.collecting import collect, let_pass
from tests.directory.tables import Ground, rows

T, U, CLONE, DECLARED, PAST = ["g", "t"], ["g", "u"], ["g", "clone"], ["g", "declared"], ["g", "past"]
BRANCH = "dev"


def build(root: Path) -> Ground:
    """A catalog of every sort of file.

    `t` has five versions, deleted rows, an index, two tags, and a branch with a version of its own; `clone` is a
    shallow clone of `t`; `past` was dropped; the catalog was collected, and has a setting and a pin.
    """
    ground = Ground(root)
    ground.make_namespace("g")
    ground.make_table(*PAST)
    ground.call("drop_table", id=PAST)
    ground.call("pin_catalog_version", name="p")
    ground.call("declare_table", id=DECLARED)
    ground.make_table(*T)
    ground.write(T, rows(3, 6))
    ground.namespace.data.change("delete_from_table", {"id": T, "predicate": "id = 1"})
    ground.namespace.data.change("create_table_scalar_index", {"id": T, "column": "id", "index_type": "BTREE"})
    ground.write(T, rows(6, 9))
    ground.namespace.change("create_table_tag", {"id": T, "tag": "second", "version": 2})
    ground.call("create_table_branch", id=T, name=BRANCH, from_version=4)
    ground.catalog.sweep()
    branch = lance.dataset(str(root / ground.location(T))).checkout_version((BRANCH, None))
    branch.delete("id = 4")
    ground.read("list_table_versions", id=T, branch=BRANCH)  # adopts it
    ground.namespace.change("create_table_tag", {"id": T, "tag": "branched", "version": 5, "branch": BRANCH})
    ground.make_table(*U)
    ground.open(T).shallow_clone(str(root / "clone_of_t"), 3)
    ground.call("register_table", id=CLONE, location="clone_of_t")
    lance.write_dataset(rows(20, 22), mode="append", namespace_client=ground.namespace, table_id=CLONE)
    ground.catalog.sweep()
    let_pass(ground, timedelta(days=1))
    collect(ground.again(), {"gc.dropped.window": "400d"})
    return ground.again()


def back_up(ground: Ground, destination: Path | ObjectStore, at: int | None = None, **options: Any) -> FinishedBackup:
    store = LocalStore(destination, "none") if isinstance(destination, Path) else destination
    return BackupRun(ground.again(ground.store).catalog, store, **options).make(at)


def restore(destination: Path, root: Path, backup_id: str | None = None) -> Ground:
    Restoration(LocalStore(destination, "none"), LocalStore(root, "none")).restore(backup_id)
    return Ground(root)


@dataclass(frozen=True)
class Content:
    """What a catalog version holds: rows of each version of each chain, by stock pylance; indices of heads; tags."""

    namespaces: tuple[tuple[str, ...], ...]
    tables: Mapping[tuple[str, ...], Mapping[str, Any]]
    versions: Mapping[tuple[tuple[str, ...], str | None, int], pa.Table]
    indices: Mapping[tuple[tuple[str, ...], str | None], list[str]]
    references: Mapping[tuple[str, ...], tuple[Any, Any]]


def content(ground: Ground, snapshot: CatalogSnapshot | None = None) -> Content:
    """The content of a catalog version, by default the newest; rows in the order in which pylance reads them."""
    snapshot = snapshot or ground.catalog.snapshot()
    tables, versions, indices, references = {}, {}, {}, {}
    for table_id in snapshot.all_tables():
        table = snapshot.table(table_id)
        assert table is not None
        tables[table_id] = {"location": table.location, "properties": dict(table.properties)}
        main = None if snapshot.head(table_id) is None else lance.dataset(str(ground.root / table.location))
        for branch in snapshot.chains(table_id):
            for row in snapshot.versions(table_id, branch):
                assert main is not None
                opened = main.checkout_version((branch, row.version)) if branch else main.checkout_version(row.version)
                versions[table_id, branch, row.version] = opened.to_table()
                indices[table_id, branch] = sorted(each.name for each in opened.describe_indices())
        if main is not None:
            tags = {name: (tag["branch"], tag["version"]) for name, tag in main.tags.list().items()}
            found = {name: each["parent_version"] for name, each in main.branches.list().items()}
            references[table_id] = (tags, found)
    spaces = tuple(sorted(entry.id for entry in (each.entry for each in snapshot.state.namespaces.values())))
    return Content(spaces, tables, versions, indices, references)


@contextmanager
def out_of_reach(ground: Ground) -> Iterator[None]:
    """The root has another name within: what still leads to it leads nowhere."""
    away = ground.root.with_name("away")
    ground.root.rename(away)
    try:
        yield
    finally:
        away.rename(ground.root)


def check_sound(root: Path) -> None:
    """The doctor finds nothing, and stock clients read it: by the directory namespace, and through lancedb."""
    report = Examination(LocalStore(root, "none"), sleep=lambda _seconds: None).examine()
    assert report.findings == (), list(report.lines())
    stock = connect("dir", {"root": str(root)})
    expected = {table_id: Ground(root).open(list(table_id)).count_rows() for table_id in (tuple(T), tuple(CLONE))}
    for table_id, count in expected.items():
        assert lance.dataset(namespace_client=stock, table_id=list(table_id)).count_rows() == count
    database = lancedb.connect_namespace("dir", {"root": str(root)})
    assert database.open_table("t", namespace_path=["g"]).count_rows() == expected[tuple(T)]
