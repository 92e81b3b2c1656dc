"""A collector is held before its calls while others work, and then goes on: it removes garbage only.

What the others do in the meantime is what an hour brings: another whole collection, tables that come back, branches
that are deleted and made again, tags of stock clients on deleted versions, and commits.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import lance
import pytest
from lance_namespace.errors import LanceNamespaceError

from lance_core.errors import LanceCoreError
from lance_core.storage.local import LocalStore
from tests.directory.gc.collecting import collect, forget_history, let_pass
from tests.directory.gc.test_mark import leave_fragment
from tests.directory.gc.unreferenced import list_orphans
from tests.directory.tables import Ground, rows
from tests.storage.faults import FaultStore

pytestmark = pytest.mark.long

T, U, V, DEV = ["g", "t"], ["g", "u"], ["g", "v"], "dev"
JOB = "00000000-0000-4000-8000-000000000001"


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with deleted versions on main and on a branch, files of a failed write, and a dropped table.

    Beside it a table with the files of a job that takes longer than the grace time, and has an intent.
    """
    ground = Ground(tmp_path_factory.mktemp("collected") / "root")
    ground.make_namespace("g")
    ground.make_table(*T)
    ground.make_table(*U)
    ground.make_table(*V)
    ground.call("register_intent", intent_id=JOB, tables=[{"id": V, "read_version": 1}])
    job(ground.root).write_text(json.dumps(ground.transaction(V, rows(3, 5))))
    for first in (3, 6, 9):
        ground.write(T, rows(first, first + 3))
    ground.write(T, rows(0, 4), "overwrite")
    ground.call("create_table_branch", id=T, name=DEV)
    for first in (20, 21, 22):
        branch = lance.dataset(str(ground.root / ground.location(T))).checkout_version((DEV, None))
        lance.write_dataset(rows(first, first + 1), branch, mode="append")
        ground.read("list_table_versions", id=T, branch=DEV)
    ground.catalog.sweep()
    ground.catalog.flush_record_housekeeping()
    ground.call("batch_delete_table_versions", id=T, ranges=[{"start_version": 1, "end_version": 4}])
    ground.call("batch_delete_table_versions", id=T, branch=DEV, ranges=[{"start_version": 6, "end_version": 8}])
    ground.call("drop_table", id=U)
    leave_fragment(ground, T)
    let_pass(ground)
    forget_history(ground)
    return ground.root


def job(root: Path) -> Path:
    """Where the operation of the job is kept."""
    return root / "job.json"


def collects_too(ground: Ground) -> None:
    collect(ground)
    collect(ground)


def brings_back(ground: Ground) -> None:
    with suppress(LanceNamespaceError):
        ground.call("undrop_table", id=U)
    ground.batch(ground.transaction(T, rows(30, 31)))
    ground.catalog.sweep()


def makes_the_branch_again(ground: Ground) -> None:
    with suppress(LanceNamespaceError):
        ground.namespace.change("delete_table_branch", {"id": T, "name": DEV})
        ground.catalog.sweep()
        ground.call("create_table_branch", id=T, name=DEV)
    for first in (40, 41, 42):
        uri = str(ground.root / ground.location(T))
        lance.write_dataset(rows(first, first + 1), lance.dataset(uri).checkout_version((DEV, None)), mode="append")
        ground.read("list_table_versions", id=T, branch=DEV)
    ground.catalog.sweep()


def tags_a_deleted_version(ground: Ground) -> None:
    uri = str(ground.root / ground.location(T))
    for version in (2, 3):
        with suppress(OSError, ValueError):
            lance.dataset(uri).tags.create(f"v{version}", version)


def commits_a_long_job(ground: Ground) -> None:
    """The job commits, and ends its intent in the same flip."""
    ground.batch(json.loads(job(ground.root).read_text()), {"end_intent": {"intent_id": JOB}})
    ground.catalog.sweep()
    assert ground.ids(V) == [0, 1, 2, 3, 4]


def check_everything(ground: Ground) -> None:
    """Each row, and each tag, can be read by stock pylance."""
    snapshot = ground.catalog.snapshot()
    for table_id in snapshot.all_tables():
        table = snapshot.table(table_id)
        assert table is not None
        uri = str(ground.root / table.location)
        for branch in snapshot.chains(table_id):
            for row in snapshot.versions(table_id, branch):
                lance.dataset(uri).checkout_version((branch, row.version)).validate()
        for tag in lance.dataset(uri).tags.list():
            dataset = lance.dataset(uri, version=tag)
            dataset.validate()
            dataset.to_table()


def calls_of_a_run(scene: Path, place: Path) -> tuple[int, int]:
    """How many calls a run makes, and how many of them before its plan is stored."""
    root = place / "counted"
    shutil.copytree(scene, root)
    store = FaultStore(LocalStore(root, "none"))
    paths: list[str] = []
    store.before(lambda _verb, path: paths.append(path))
    collect(Ground(root, store))
    return len(paths), next(number for number, path in enumerate(paths) if path.endswith("/plan-0"))


def runs(scene: Path, place: Path, meanwhile: Callable[[Ground], None], step: int) -> Iterator[Ground]:
    """A fresh copy of the scene for each call before which a run was held: while it looks some, then every `step`."""
    calls, before = calls_of_a_run(scene, place)
    for number in (*range(0, before, 11), *range(before, calls, step)):
        root = place / f"{number}"
        shutil.copytree(scene, root)
        store = FaultStore(LocalStore(root, "none"))
        left = [number]

        def hold(_verb: str, _path: str, left: list[int] = left, root: Path = root) -> None:
            left[0] -= 1
            if left[0] == -1:
                meanwhile(Ground(root))

        store.before(hold)
        with suppress(LanceCoreError, LanceNamespaceError):  # it may be overtaken, and is started again
            collect(Ground(root, store))
        assert left[0] < 0
        yield Ground(root)
        shutil.rmtree(root)


@pytest.mark.parametrize(
    ("meanwhile", "step"),
    [
        (collects_too, 6),
        (brings_back, 4),
        (makes_the_branch_again, 1),
        (tags_a_deleted_version, 3),
        (commits_a_long_job, 9),
    ],
)
def test_a_collector_held_anywhere_removes_garbage_only(
    scene: Path, tmp_path: Path, meanwhile: Callable[[Ground], None], step: int
) -> None:
    for ground in runs(scene, tmp_path, meanwhile, step):
        check_everything(ground)
        collect(ground)
        check_everything(ground)
        if meanwhile is collects_too:
            assert ground.canonical(T) == [4, 5]
            assert list_orphans(ground.root).orphans == ()
