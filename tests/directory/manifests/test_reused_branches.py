"""A process is held while the branch that it works on is deleted and made again: it changes nothing of the new one."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import lance
import pytest
from lance_namespace.errors import LanceNamespaceError, ServiceUnavailableError

from lance_core.errors import PreconditionFailed, StorageUnknown
from lance_core.format.manifest import parse_manifest_file
from lance_core.format.naming import manifest_name
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.local import LocalStore
from lance_core.storage.port import ObjectStore
from namespace_server.directory.manifests import promoter as promoter_module
from namespace_server.directory.manifests.conditional_removal import finish_removals, remove_if
from namespace_server.directory.model.root_layout import REMOVALS
from tests.directory.invariants import check_progress, check_quiet
from tests.directory.manifests.test_held import DIES, Run, held_everywhere
from tests.directory.tables import Ground, as_operation, rows
from tests.directory.taken_names import TABLE
from tests.staged_fragments import stage_fragments
from tests.storage.faults import Crashed, Fault, FaultStore

DEV = "dev"


class BucketLike(FaultStore):
    """Files that are published as on a bucket: by a put of the bytes, whatever became of the staged name."""

    publish = ObjectStore.publish

    def __init__(self, inner: ObjectStore) -> None:
        super().__init__(inner)
        self.local = self.content_e_tags = False


class OpenRemovals(FaultStore):
    """Its conditional removal is made of single calls, so that a process can be held between them."""

    delete_if = ObjectStore.delete_if


def append(ground: Ground, start: int, stop: int) -> dict[str, object]:
    """An append to the head of the branch; it says which manifest it read (P11)."""
    head = ground.catalog.snapshot().head(tuple(TABLE), DEV)
    assert head is not None
    message = pb.Transaction(read_version=head.version, uuid=str(uuid.uuid4()))
    message.append.fragments.extend(stage_fragments(rows(start, stop), str(ground.root / head.base), mode="append"))
    [(_, operation)] = as_operation(TABLE, message, DEV).items()
    return {"commit_transaction": operation | {"manifest_sha256": head.sha256}}


def create(ground: Ground) -> None:
    for _ in range(100):
        try:
            ground.call("create_table_branch", id=TABLE, name=DEV)
        except ServiceUnavailableError:  # what is left of the deleted one is being removed
            time.sleep(0.01)
        else:
            return
    raise AssertionError("the branch cannot be made again")


def make_again(ground: Ground) -> None:
    """Other processes delete the branch, make it again, and commit to it."""
    with suppress(LanceNamespaceError):
        ground.namespace.change("delete_table_branch", {"id": TABLE, "name": DEV})
    create(ground)
    ground.batch(append(ground, 200, 201))
    ground.catalog.sweep()


def make_again_only(ground: Ground) -> None:
    """The same, without a commit: the number after the branch's first is vacant."""
    with suppress(LanceNamespaceError):
        ground.namespace.change("delete_table_branch", {"id": TABLE, "name": DEV})
    create(ground)


def ids(root: Path) -> list[int]:
    ground = Ground(root)
    ground.read("list_table_versions", id=TABLE, branch=DEV)
    by_uri = ground.open(TABLE).checkout_version((DEV, None))
    managed = lance.dataset(namespace_client=ground.namespace, table_id=TABLE).checkout_version((DEV, None))
    found = sorted(by_uri.to_table()["id"].to_pylist())
    assert sorted(managed.to_table()["id"].to_pylist()) == found
    return found


@pytest.fixture
def branch(ground: Ground) -> Ground:
    """A table with ids 0 to 2, and a branch `dev` that begins there."""
    ground.make_table(*TABLE)
    create(ground)
    ground.catalog.sweep()
    ground.catalog.flush_record_housekeeping()
    return ground


@pytest.mark.slow
@DIES
@pytest.mark.parametrize("meanwhile", [make_again, make_again_only])
def test_a_commit_held_anywhere_leaves_no_version_in_the_new_branch(
    tmp_path: Path, branch: Ground, meanwhile: Callable[[Ground], None], die: bool, step: int
) -> None:
    operation = append(branch, 100, 101)
    committed = [0, 1, 2, 200] if meanwhile is make_again else [0, 1, 2]

    def act(ground: Ground) -> None:
        with suppress(LanceNamespaceError):
            ground.batch(operation)

    def check(run: Run) -> None:
        for _ in range(2):
            Ground(run.root).catalog.sweep()
        assert ids(run.root) == committed
        Ground(run.root).batch(append(Ground(run.root), 300, 301))
        assert ids(run.root) == [*committed, 300]
        for _ in range(2):
            ground = Ground(run.root)
            ground.catalog.sweep()
            ground.catalog.flush_record_housekeeping()
        check_quiet(run.root, since=ground.catalog.snapshot().version)
        check_progress(run.root)

    assert held_everywhere(tmp_path, branch.root, act, meanwhile, check, die=die, step=step) > 10


def commit_late(branch: Ground, operation: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Commit version 2 of the branch. As on a bucket, the put of its promotion arrives when that was made again."""
    monkeypatch.setattr(promoter_module, "_AT_ONCE", -1.0)
    store = BucketLike(LocalStore(branch.root, "none"))
    held = branch.again(store)

    def arrive(verb: str, path: str) -> None:
        if verb == "put_if_absent" and path.endswith(f"tree/{DEV}/_versions/{manifest_name(2)}"):
            go_on()
            make_again_only(branch.again())

    go_on = store.before(arrive)
    held.batch(operation)


def test_a_late_write_of_a_bucket_is_taken_back(branch: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the branch that was made again its number is the next one."""
    commit_late(branch, append(branch, 100, 101), monkeypatch)

    assert not (branch.root / branch.location(TABLE) / "tree/dev/_versions" / manifest_name(2)).exists()
    assert ids(branch.root) == [0, 1, 2]


@pytest.mark.slow
@DIES
def test_a_removal_held_anywhere_removes_nothing_of_the_new_branch(
    tmp_path: Path, branch: Ground, die: bool, step: int
) -> None:
    branch.batch(append(branch, 100, 101))
    branch.catalog.sweep()
    left = branch.again()
    left.catalog.finish_branches = lambda _: None  # type: ignore[method-assign]  # the process dies before it
    left.namespace.change("delete_table_branch", {"id": TABLE, "name": DEV})

    def act(ground: Ground) -> None:
        ground.catalog.sweep()

    def check(run: Run) -> None:
        for _ in range(2):
            Ground(run.root).catalog.sweep()
        assert ids(run.root) == [0, 1, 2, 200]
        assert not [path for path in (run.root / "_staging/removing").rglob("*") if path.is_file()]
        Ground(run.root).batch(append(Ground(run.root), 300, 301))
        assert ids(run.root) == [0, 1, 2, 200, 300]

    assert held_everywhere(tmp_path, branch.root, act, make_again, check, die=die, step=step) > 10


def test_a_version_whose_files_are_missing_is_not_adopted(branch: Ground, caplog: pytest.LogCaptureFixture) -> None:
    """A stock client committed to the branch by path, and the data file that it names is not there."""
    data = branch.root / branch.location(TABLE) / "tree/dev/data"
    lance.write_dataset(rows(100, 101), branch.open(TABLE).checkout_version((DEV, None)), mode="append")
    for file in data.iterdir():
        file.unlink()

    with caplog.at_level(logging.ERROR):
        assert branch.read("list_table_versions", id=TABLE, branch=DEV)["versions"][-1]["version"] == 1
    assert "files that it names are missing" in caplog.text
    assert branch.head(TABLE, DEV) == 1
    branch.batch(append(branch, 300, 301))
    branch.catalog.sweep()
    assert ids(branch.root) == [0, 1, 2, 300]


def test_an_unmanaged_version_whose_files_are_there_is_adopted(branch: Ground) -> None:
    branch.unmanaged_append(TABLE, rows(3, 4))
    lance.dataset(str(branch.root / branch.location(TABLE))).delete("id = 3")
    assert branch.read("list_table_versions", id=TABLE)["versions"][-1]["version"] == 3


def test_a_quarantined_manifest_is_not_put_back_into_a_new_branch(branch: Ground) -> None:
    branch.batch(append(branch, 100, 101))
    branch.catalog.sweep()
    path = branch.root / branch.location(TABLE) / "tree/dev/_versions" / manifest_name(2)
    aside = branch.root / "_staging/foreign/a4b1c2d3-0000-4000-8000-000000000000" / path.relative_to(branch.root)
    aside.parent.mkdir(parents=True)
    path.rename(aside)
    store = FaultStore(LocalStore(branch.root, "none"))
    held = branch.again(store)
    held.catalog.snapshot()

    def arrive(verb: str, key: str) -> None:
        if verb == "put_if_absent" and key.endswith(f"tree/dev/_versions/{manifest_name(2)}"):
            go_on()
            make_again_only(branch.again())

    go_on = store.before(arrive)
    held.catalog.sweep()

    assert not path.exists()
    assert ids(branch.root) == [0, 1, 2]


def test_a_file_under_the_name_of_a_closed_version_is_quarantined_when_its_own_file_is_put_back(branch: Ground) -> None:
    """A removal took the file from its name, another writer took the name: the row stands (M6)."""
    branch.write(TABLE, rows(3, 4))
    branch.catalog.sweep()
    branch.catalog.flush_record_housekeeping()
    path = branch.root / branch.location(TABLE) / "_versions" / manifest_name(2)
    aside = branch.root / "_staging/foreign/a4b1c2d3-0000-4000-8000-000000000000" / path.relative_to(branch.root)
    aside.parent.mkdir(parents=True)
    path.rename(aside)
    ours = parse_manifest_file(aside.read_bytes()).identity
    branch.unmanaged_append(TABLE, rows(10, 11))

    for _ in range(2):
        branch.again().catalog.sweep()

    assert parse_manifest_file(path.read_bytes()).identity == ours
    assert branch.ids(TABLE) == [0, 1, 2, 3, 10]


@pytest.mark.slow
@DIES
def test_an_unmanaged_commit_is_not_lost_to_a_removal(tmp_path: Path, branch: Ground, die: bool, step: int) -> None:
    """Stock pylance commits to the new branch by path, under the name that a held process is about to remove."""
    branch.batch(append(branch, 100, 101))
    branch.catalog.sweep()
    left = branch.again()
    left.catalog.finish_branches = lambda _: None  # type: ignore[method-assign]
    left.namespace.change("delete_table_branch", {"id": TABLE, "name": DEV})

    def act(ground: Ground) -> None:
        ground.catalog.sweep()

    def meanwhile(ground: Ground) -> None:
        create(ground)
        lance.write_dataset(rows(200, 201), ground.open(TABLE).checkout_version((DEV, None)), mode="append")

    def check(run: Run) -> None:
        for _ in range(2):
            Ground(run.root).catalog.sweep()
        assert ids(run.root) == [0, 1, 2, 200]

    assert held_everywhere(tmp_path, branch.root, act, meanwhile, check, die=die, step=step) > 10


def test_a_file_that_takes_the_name_during_a_removal_stays(branch: Ground) -> None:
    path = f"{branch.location(TABLE)}/_versions/{manifest_name(1)}"
    data = branch.store.get(path)
    store = OpenRemovals(LocalStore(branch.root, "none"))

    def replace(verb: str, _path: str) -> None:
        if verb in {"delete", "rename_if_absent"}:
            go_on()
            branch.store.put(path, data)

    go_on = store.before(replace)
    with pytest.raises(PreconditionFailed):
        remove_if(store, path, branch.store.head(path).e_tag)
    assert branch.store.find(path) == data


def test_a_name_that_is_taken_while_its_file_is_away(branch: Ground) -> None:
    """Both files are kept: the row's own gets its name back, the other writer's is committed again."""
    branch.write(TABLE, rows(3, 4))
    branch.catalog.sweep()
    branch.catalog.flush_record_housekeeping()
    path = f"{branch.location(TABLE)}/_versions/{manifest_name(2)}"
    data = branch.store.get(path)
    store = FaultStore(LocalStore(branch.root, "none"))

    def take(verb: str, key: str) -> None:
        if verb == "rename_if_absent" and key.startswith("_staging/removing/"):
            branch.store.put(path, data)
        elif verb == "rename_if_absent" and key == path:
            go_on()
            branch.unmanaged_append(TABLE, rows(10, 11))

    go_on = store.before(take)
    with pytest.raises(PreconditionFailed):
        remove_if(store, path, branch.store.head(path).e_tag)
    for _ in range(2):
        branch.again().catalog.sweep()
    assert branch.store.find(path) == data
    assert branch.ids(TABLE) == [0, 1, 2, 3, 10]


@pytest.mark.parametrize("expected", [True, False])
def test_a_removal_that_a_process_left_is_finished(tmp_path: Path, expected: bool) -> None:
    store = LocalStore(tmp_path, "none")
    e_tag = store.put("a/b", b"x").strip('"') if expected else "another"
    store.put("a/c", b"x")
    store.rename_if_absent("a/b" if expected else "a/c", f"{REMOVALS}/{uuid.uuid4()}/{e_tag}/a/b")
    finish_removals(store)
    assert {meta.path for meta in store.list("")} == {"a/c" if expected else "a/b"}


def test_a_file_that_is_another_one_is_not_touched(tmp_path: Path) -> None:
    store = FaultStore(LocalStore(tmp_path, "none"))
    store.inner.put("a/b", b"x")
    with pytest.raises(PreconditionFailed):
        remove_if(store, "a/b", '"another"')
    assert store.writes == []


def test_the_outcome_of_a_removal_is_unknown_if_its_rename_is(tmp_path: Path) -> None:
    store = FaultStore(LocalStore(tmp_path, "none"))
    e_tag = store.inner.put("a/b", b"x")
    store.fail(Fault.LOST_REQUEST, when=lambda write: write.verb == "rename_if_absent")
    with pytest.raises(StorageUnknown):
        remove_if(store, "a/b", e_tag)


def test_a_crash_while_a_file_is_put_back(branch: Ground) -> None:
    """It was taken from its name, is another one than was to be removed, and its process dies before it says so."""
    table = branch.location(TABLE)
    path = f"{table}/_versions/{manifest_name(1)}"
    data = branch.store.get(path)
    store = FaultStore(LocalStore(branch.root, "none"))
    store.fail(Fault.CRASH_AFTER, when=lambda write: write.path.startswith("_staging/removing/"))
    replaced = store.before(lambda verb, key: verb == "rename_if_absent" and (replaced(), branch.store.put(path, data)))

    with pytest.raises(Crashed):
        remove_if(store, path, store.head(path).e_tag)
    assert branch.store.find(path) is None

    branch.again().catalog.sweep()
    assert branch.store.find(path) == data
    assert branch.ids(TABLE) == [0, 1, 2]
