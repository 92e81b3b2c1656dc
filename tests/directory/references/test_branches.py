"""Branches of the catalog in process: begun by a Clone, deleted in a flip before their files go (rules P4, M8, B2)."""

from __future__ import annotations

import json
import logging
import os
import threading
from pathlib import Path
from typing import Any

import lance
import lance_namespace as models
import pytest
from lance_namespace.errors import (
    InvalidInputError,
    LanceNamespaceError,
    ServiceUnavailableError,
    TableBranchAlreadyExistsError,
    TableBranchNotFoundError,
    TableNotFoundError,
    TableVersionNotFoundError,
)

from lance_core.commit.handlers import ExternalManifestHandler
from lance_core.format.refs import branch_path
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.local import LocalStore
from namespace_server.directory.model.entries import REMOVING
from tests.directory.invariants import check_progress, check_quiet
from tests.directory.tables import Ground, as_operation, rows
from tests.storage.faults import Crashed, Fault, FaultStore
from tests.storage.limited import PlainStore
from tests.storage.manifests import MemoryManifestStore

T = ["g", "t"]


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    """A table with two versions."""
    ground = Ground(tmp_path / "root")
    ground.make_namespace("g")
    ground.make_table("g", "t")
    ground.write(T, rows(3, 5))
    return ground


def create(ground: Ground, name: str, **more: Any) -> dict[str, Any]:
    return ground.call("create_table_branch", id=T, name=name, **more)


def delete(ground: Ground, name: str) -> dict[str, Any]:
    return ground.namespace.change("delete_table_branch", {"id": T, "name": name}).body


def branches(ground: Ground) -> dict[str, Any]:
    found: dict[str, Any] = ground.read("list_table_branches", id=T)["branches"]
    return found


def append(ground: Ground, branch: str, start: int, stop: int) -> None:
    """A write of stock pylance on a branch, through the catalog."""
    managed = lance.dataset(namespace_client=ground.namespace, table_id=T).checkout_version((branch, None))
    lance.write_dataset(rows(start, stop), managed, mode="append")


def files_of(ground: Ground, branch: str) -> list[Path]:
    return [path for path in (ground.root / ground.location(T) / "tree" / branch).rglob("*") if path.is_file()]


class TestCreate:
    def test_by_models_and_stock_pylance_writes_on_it(self, ground: Ground) -> None:
        made = ground.namespace.create_table_branch(models.CreateTableBranchRequest(id=T, name="dev"))
        assert made.transaction_id
        [(name, contents)] = ground.namespace.list_table_branches(
            models.ListTableBranchesRequest(id=T)
        ).branches.items()
        assert (name, contents.parent_branch, contents.parent_version) == ("dev", None, 2)
        append(ground, "dev", 7, 8)
        assert (ground.head(T, "dev"), ground.head(T)) == (3, 2)
        assert ground.open(T).checkout_version(("dev", None)).count_rows() == 6
        assert list(ground.open(T).branches.list()) == ["dev"]
        ground.catalog.sweep()
        check_quiet(ground.root)

    def test_from_a_branch_and_an_older_version(self, ground: Ground) -> None:
        create(ground, "dev", from_version=1)
        append(ground, "dev", 7, 8)
        create(ground, "dev/late", from_branch="dev")
        create(ground, "early", from_branch="dev", from_version=1)
        create(ground, "main-again", from_branch="main")
        told = {name: (entry.get("parentBranch"), entry["parentVersion"]) for name, entry in branches(ground).items()}
        assert told == {"dev": (None, 1), "dev/late": ("dev", 2), "early": ("dev", 1), "main-again": (None, 2)}
        stock = ground.open(T).branches.list()
        assert {name: (entry["parent_branch"], entry["parent_version"]) for name, entry in stock.items()} == told
        counts = {name: ground.open(T).checkout_version((name, None)).count_rows() for name in told}
        assert counts == {"dev": 4, "dev/late": 4, "early": 3, "main-again": 5}
        ground.catalog.sweep()
        check_quiet(ground.root)

    def test_branches_of_stock_pylance_are_seen(self, ground: Ground) -> None:
        lance.dataset(namespace_client=ground.namespace, table_id=T).create_branch("theirs", 1)
        create(ground, "ours", from_version=1)
        both = branches(ground)
        assert both["ours"]["parentVersion"] == both["theirs"]["parentVersion"] == 1
        assert both["ours"]["manifestSize"] == both["theirs"]["manifestSize"]
        create(ground, "of-theirs", from_branch="theirs")
        assert branches(ground)["of-theirs"]["parentBranch"] == "theirs"

    def test_a_version_committed_around_the_catalog_is_the_newest(self, ground: Ground) -> None:
        ground.unmanaged_append(T, rows(9, 10))
        create(ground, "dev")
        assert (ground.head(T), ground.head(T, "dev")) == (3, 3)

    def test_what_is_refused(self, ground: Ground) -> None:
        create(ground, "dev")
        ground.call("declare_table", id=["g", "empty"])
        refusals: list[tuple[dict[str, Any], type[LanceNamespaceError]]] = [
            ({"name": "dev"}, TableBranchAlreadyExistsError),
            ({"name": "x", "from_version": 99}, TableVersionNotFoundError),
            ({"name": "x", "from_version": 0}, InvalidInputError),
            ({"name": "x", "from_branch": "nope"}, TableBranchNotFoundError),
            ({"name": "x", "from_branch": "dev", "from_version": 1}, TableVersionNotFoundError),
            ({"name": "main"}, InvalidInputError),
            ({"name": "a$b"}, InvalidInputError),
            ({"name": ""}, InvalidInputError),
            ({"name": "a..b"}, InvalidInputError),
            ({"name": "x", "id": ["g", "nope"]}, TableNotFoundError),
            ({"name": "x", "id": ["g", "empty"]}, TableVersionNotFoundError),
        ]
        for request, error in refusals:
            with pytest.raises(error):
                ground.call("create_table_branch", **{"id": T, **request})
        assert list(branches(ground)) == ["dev"]

    def test_of_branches_with_one_name_one_begins(self, ground: Ground) -> None:
        outcomes: list[object] = []

        def begin(version: int) -> None:
            try:
                outcomes.append(create(ground.again(), "same", from_version=version))
            except TableBranchAlreadyExistsError as error:
                outcomes.append(error)

        threads = [threading.Thread(target=begin, args=(version,)) for version in (1, 2, 1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(isinstance(outcome, dict) for outcome in outcomes) == 1
        assert len(outcomes) == 4
        ground.catalog.sweep()
        check_quiet(ground.root)

    def test_a_crash_before_the_ref_is_completed_by_the_sweep(self, ground: Ground) -> None:
        store = FaultStore(LocalStore(ground.root, "none"))
        store.fail(Fault.CRASH_BEFORE, when=lambda write: "_refs" in write.path)
        with pytest.raises(Crashed):
            create(ground.again(store), "dev", from_version=1)
        late = ground.again()
        assert branches(late)["dev"]["parentVersion"] == 1  # it is committed
        assert ground.open(T).branches.list() == {}
        with pytest.raises(TableBranchAlreadyExistsError):
            create(late, "dev")
        manifest = next((ground.root / ground.location(T) / "tree/dev/_versions").glob("*.manifest"))
        os.utime(manifest, (manifest.stat().st_mtime - 120,) * 2)
        late.catalog.sweep()
        assert list(ground.open(T).branches.list()) == ["dev"]

    def test_a_batch_on_a_branch_that_begins_beside_it(self, ground: Ground) -> None:
        """Grouped with others in one flip, a branch begins at the head that the batch before it made."""
        calls = [
            ground.namespace.prepare("batch_commit_tables", {"operations": [ground.transaction(T, rows(8, 9))]}),
            ground.namespace.prepare("create_table_branch", {"id": T, "name": "dev"}),
        ]
        answers = ground.namespace.commit_calls(calls)
        assert not any(isinstance(answer, LanceNamespaceError) for answer in answers)
        assert ground.head(T, "dev") == ground.head(T) == 3


class TestDelete:
    def test_rows_ref_and_files_go(self, ground: Ground) -> None:
        create(ground, "dev")
        append(ground, "dev", 7, 8)
        ground.catalog.sweep()
        before = ground.catalog.snapshot().version
        assert files_of(ground, "dev")
        made = ground.namespace.delete_table_branch(models.DeleteTableBranchRequest(id=T, name="dev"))
        assert made.transaction_id
        assert branches(ground) == {}
        assert files_of(ground, "dev") == []
        assert ground.open(T).branches.list() == {}
        assert not [record for record in ground.catalog.snapshot().records() if record.state == REMOVING]
        for operation in ("describe_table_version", "list_table_versions"):
            with pytest.raises((TableBranchNotFoundError, TableVersionNotFoundError)):
                ground.read(operation, id=T, branch="dev")
        with pytest.raises(TableBranchNotFoundError):
            delete(ground, "dev")
        assert ground.ids(T) == [0, 1, 2, 3, 4]
        ground.catalog.sweep()
        check_quiet(ground.root, since=before + 1)
        check_progress(ground.root)

    def test_the_name_can_be_used_again(self, ground: Ground) -> None:
        create(ground, "dev")
        append(ground, "dev", 7, 8)
        pinned = ground.catalog.snapshot().version
        delete(ground, "dev")
        create(ground, "dev", from_version=1)
        append(ground, "dev", 20, 22)
        assert ground.head(T, "dev") == 2
        assert sorted(ground.open(T).checkout_version(("dev", None)).to_table()["id"].to_pylist()) == [0, 1, 2, 20, 21]
        for version in (None, 2, 3):  # of the branch that was deleted, not of the one that has its name
            with pytest.raises(TableVersionNotFoundError):
                ground.namespace.read(
                    "describe_table_version", {"id": T, "branch": "dev", "version": version}, at=pinned
                )
        ground.catalog.sweep()
        check_quiet(ground.root, since=ground.catalog.snapshot().version)

    def test_branches_of_stock_pylance(self, ground: Ground) -> None:
        stock = lance.dataset(namespace_client=ground.namespace, table_id=T)
        stock.create_branch("theirs", 1)
        delete(ground, "theirs")
        assert stock.branches.list() == {}
        stock.create_branch("theirs", 2)
        assert list(branches(ground)) == ["theirs"]
        stock.branches.delete("theirs")
        assert branches(ground) == {}

    def test_what_tags_and_branches_need_stays(self, ground: Ground) -> None:
        create(ground, "dev")
        ground.namespace.change("create_table_tag", {"id": T, "tag": "v", "version": 2, "branch": "dev"})
        create(ground, "dev/sub", from_branch="dev")
        files = files_of(ground, "dev")
        with pytest.raises(InvalidInputError, match="expected no tag on it, found v"):
            delete(ground, "dev")
        ground.namespace.change("delete_table_tag", {"id": T, "tag": "v"})
        with pytest.raises(InvalidInputError, match="expected no branch that begins at it, found dev/sub"):
            delete(ground, "dev")
        assert files_of(ground, "dev") == files
        delete(ground, "dev/sub")
        delete(ground, "dev")
        assert branches(ground) == {}

    def test_a_nested_name_is_a_branch_of_its_own(self, ground: Ground) -> None:
        create(ground, "dev")
        create(ground, "dev/other")  # begins at main
        append(ground, "dev/other", 7, 9)
        delete(ground, "dev")
        assert list(branches(ground)) == ["dev/other"]
        assert ground.open(T).checkout_version(("dev/other", None)).count_rows() == 7
        assert not [path for path in files_of(ground, "dev") if "other" not in path.parts]

    def test_a_child_without_a_ref_yet_is_a_child(self, ground: Ground) -> None:
        """Its first version is committed and its client has not written the ref: the manifests tell."""
        create(ground, "dev")
        append(ground, "dev", 7, 8)
        create(ground, "sub", from_branch="dev")
        (ground.root / branch_path(ground.location(T), "sub")).unlink()
        with pytest.raises(InvalidInputError, match="its files are read by sub"):
            delete(ground.again(), "dev")
        assert ground.open(T).checkout_version(("sub", None)).count_rows() == 6

    def test_files_that_main_reads_stay(self, ground: Ground) -> None:
        """A version of main that refers to a branch by a base path, and a later version that does not any more."""
        create(ground, "dev")
        path = str(ground.root / ground.location(T) / "tree/dev")
        message = pb.Transaction(read_version=2, uuid="11111111-1111-4111-8111-111111111111")
        message.update_bases.new_bases.add(path=path, is_dataset_root=True)
        ground.batch(as_operation(T, message))
        restore = pb.Transaction(read_version=3, uuid="22222222-2222-4222-8222-222222222222")
        restore.restore.version = 1
        ground.batch(as_operation(T, restore))
        with pytest.raises(InvalidInputError, match="its files are read by main"):
            delete(ground.again(), "dev")
        assert files_of(ground, "dev")

    def test_main_and_unknown_tables(self, ground: Ground) -> None:
        with pytest.raises(InvalidInputError):
            delete(ground, "main")
        with pytest.raises(TableNotFoundError):
            ground.namespace.change("delete_table_branch", {"id": ["g", "nope"], "name": "dev"})
        with pytest.raises(TableBranchNotFoundError):
            delete(ground, "nope")

    def test_a_writer_that_has_the_branch_open_fails_and_leaves_nothing(self, ground: Ground) -> None:
        create(ground, "dev")
        managed = lance.dataset(namespace_client=ground.namespace, table_id=T).checkout_version(("dev", None))
        delete(ground, "dev")
        with pytest.raises(OSError, match=r"branch|version|[Nn]ot found"):
            lance.write_dataset(rows(7, 8), managed, mode="append")
        assert branches(ground) == {}
        create(ground, "dev")
        append(ground, "dev", 9, 10)
        assert ground.open(T).checkout_version(("dev", None)).count_rows() == 6

    def test_deletion_and_growth_at_once(self, ground: Ground) -> None:
        """Of a deletion and a child of the branch one wins; the child's files are there."""
        for number in range(8):
            name, child = f"b{number}", f"c{number}"
            create(ground, name)
            append(ground, name, 7, 8)
            one, other = ground.again(), ground.again()
            outcomes: dict[str, object] = {}
            start = threading.Barrier(2)

            def attempt(what: str, work: Any) -> None:
                start.wait()  # noqa: B023
                try:
                    outcomes[what] = work()  # noqa: B023
                except LanceNamespaceError as error:
                    outcomes[what] = error  # noqa: B023

            threads = [
                threading.Thread(target=attempt, args=("delete", lambda: delete(one, name))),  # noqa: B023
                threading.Thread(target=attempt, args=("fork", lambda: create(other, child, from_branch=name))),  # noqa: B023
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            deleted, forked = (isinstance(outcomes[what], dict) for what in ("delete", "fork"))
            assert deleted is not forked, outcomes
            if forked:
                assert ground.open(T).checkout_version((child, None)).count_rows() == 6


class TestCrash:
    def test_nothing_comes_back_while_the_files_go(self, ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
        """After the flip the branch is gone for every reader and writer of the catalog, whatever is left of it."""
        create(ground, "dev")
        append(ground, "dev", 7, 8)
        ground.catalog.sweep()
        left = ground.again()
        monkeypatch.setattr(left.catalog, "finish_branches", lambda _: None)
        delete(left, "dev")  # and the process dies
        assert files_of(ground, "dev")

        other = ground.again()
        monkeypatch.setattr(other.catalog, "finish_branches", lambda _: None)  # nor can it remove them
        assert branches(other) == {}
        with pytest.raises(TableBranchNotFoundError):
            other.read("list_table_versions", id=T, branch="dev")
        with pytest.raises(ServiceUnavailableError, match="its files are not all removed; repeat it"):
            create(other, "dev")
        with pytest.raises(TableBranchNotFoundError):
            other.batch(as_operation(T, _config(3), "dev"))
        assert other.catalog.snapshot().head(("g", "t"), "dev") is None

        fresh = ground.again()
        create(fresh, "dev", from_version=1)  # completes the removal first
        assert fresh.head(T, "dev") == 1
        assert ground.open(T).checkout_version(("dev", None)).count_rows() == 3

    def test_the_sweep_completes_it(self, ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
        create(ground, "dev")
        ground.catalog.sweep()
        left = ground.again()
        monkeypatch.setattr(left.catalog, "finish_branches", lambda _: None)
        before = delete(left, "dev")
        fresh = ground.again()
        fresh.catalog.sweep()
        assert files_of(ground, "dev") == []
        assert not [record for record in fresh.catalog.snapshot().records() if record.state == REMOVING]
        assert before["transaction_id"]
        check_quiet(ground.root, since=fresh.catalog.snapshot().version)

    def test_a_failure_at_every_removal_is_met_again(self, ground: Ground) -> None:
        create(ground, "dev")
        append(ground, "dev", 7, 8)
        ground.catalog.sweep()
        crashes = 0
        while True:
            store = FaultStore(LocalStore(ground.root, "none"))
            removals = iter(range(10**6))
            store.fail(
                Fault.CRASH_BEFORE,
                when=lambda write, n=removals: write.verb.startswith("delete") and "dev" in write.path and next(n) == 1,  # type: ignore[misc]
            )
            worker = ground.again(store)
            try:
                if crashes == 0:
                    delete(worker, "dev")
                else:
                    worker.catalog.sweep()
            except Crashed:
                crashes += 1
                assert branches(ground.again()) == {}
                continue
            break
        assert crashes > 2
        assert files_of(ground, "dev") == []
        create(ground.again(), "dev")
        assert ground.open(T).checkout_version(("dev", None)).count_rows() == 5

    def test_a_removal_that_is_held_leaves_the_next_branch_of_the_name_alone(
        self, ground: Ground, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One process has listed what to remove; another one removes it, and the name is used again at once."""
        create(ground, "dev")
        ground.catalog.sweep()
        held, other = ground.again(), ground.again()
        needed, made = held.catalog.branch_removal._needed, []

        def then_go_on(*given: Any) -> Any:
            found = needed(*given)
            if not made:
                made.append(create(other, "dev"))  # removes what is left first
                append(other, "dev", 20, 21)
            return found

        monkeypatch.setattr(held.catalog.branch_removal, "_needed", then_go_on)
        delete(held, "dev")
        assert made
        assert list(branches(ground.again())) == ["dev"]
        assert list(ground.open(T).branches.list()) == ["dev"]
        assert ground.open(T).checkout_version(("dev", None)).count_rows() == 6
        ground.again().catalog.sweep()
        check_quiet(ground.root, since=ground.catalog.snapshot().version)

    def test_a_tag_of_a_client_that_knows_no_catalog_keeps_the_files(
        self, ground: Ground, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        create(ground, "dev")
        ground.catalog.sweep()
        left = ground.again()
        monkeypatch.setattr(left.catalog, "finish_branches", lambda _: None)
        delete(left, "dev")
        ground.open(T).tags.create("late", ("dev", 2))
        fresh = ground.again()
        with caplog.at_level(logging.ERROR):
            fresh.catalog.sweep()
        assert "its files stay: found tag late" in caplog.text
        assert files_of(ground, "dev")
        assert ground.open(T).checkout_version("late").count_rows() == 5
        ground.open(T).tags.delete("late")
        ground.again().catalog.sweep()
        assert files_of(ground, "dev") == []

    def test_a_table_that_is_registered_again_has_not_the_branch(
        self, ground: Ground, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        create(ground, "dev")
        ground.catalog.sweep()
        left = ground.again()
        monkeypatch.setattr(left.catalog, "finish_branches", lambda _: None)
        delete(left, "dev")
        location = left.location(T)
        left.call("deregister_table", id=T)
        left.call("register_table", id=["g", "again"], location=location)
        assert left.read("list_table_branches", id=["g", "again"]) == {"branches": {}}
        assert left.catalog.snapshot().branches(("g", "again")) == ()


def _config(read_version: int) -> pb.Transaction:
    message = pb.Transaction(read_version=read_version, uuid="33333333-3333-4333-8333-333333333333")
    message.update_config.config_updates.update_entries.add(key="k", value="v")
    return message


def test_where_a_manifest_store_decides_commits(tmp_path: Path) -> None:
    """The rows of a deleted branch's versions go with their files: its numbers are claimed again."""
    manifests = MemoryManifestStore()

    def opened() -> Ground:
        objects = PlainStore(LocalStore(tmp_path / "root", "none"))
        return Ground(tmp_path / "root", ExternalManifestHandler(manifests).over(objects))

    ground = opened()
    ground.make_namespace("g")
    ground.make_table("g", "t")
    create(ground, "dev")
    append(ground, "dev", 7, 8)
    ground.namespace.change("create_table_tag", {"id": T, "tag": "v", "version": 1})
    ground.namespace.change("update_table_tag", {"id": T, "tag": "v", "version": 1})
    delete(opened(), "dev")
    assert files_of(ground, "dev") == []
    again = opened()
    create(again, "dev")
    append(again, "dev", 20, 22)
    assert ground.open(T).checkout_version(("dev", None)).count_rows() == 5
    assert list(again.read("list_table_tags", id=T)["tags"]) == ["v"]
    again.catalog.sweep()
    check_quiet(ground.root, since=again.catalog.snapshot().version)


def test_the_ref_has_what_stock_pylance_writes(ground: Ground) -> None:
    create(ground, "dev")
    create(ground, "dev/sub", from_branch="dev")
    found = json.loads((ground.root / branch_path(ground.location(T), "dev/sub")).read_text())
    assert [entry[0] for entry in found["identifier"]["version_mapping"]] == [2, 2]
    assert found["parentBranch"] == "dev"
