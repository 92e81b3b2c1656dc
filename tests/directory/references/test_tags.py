"""Tags of the catalog in process: files of stock clients, in step with the versions of the catalog (rule B1)."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import lance_namespace as models
import pytest
from lance_namespace.errors import (
    ConcurrentModificationError,
    InternalError,
    InvalidInputError,
    LanceNamespaceError,
    ServiceUnavailableError,
    TableBranchNotFoundError,
    TableNotFoundError,
    TableTagAlreadyExistsError,
    TableTagNotFoundError,
    TableVersionNotFoundError,
    UnsupportedOperationError,
)

from lance_core.data import schema_fields
from lance_core.errors import PreconditionFailed, StorageError
from lance_core.format.refs import tag_path
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.local import LocalStore
from lance_core.storage.memory import MemoryStore
from namespace_server.directory.catalog import StoredCatalog
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.directory.references import tags as tag_module
from namespace_server.directory.references.change_context import ChangeContext
from tests.directory.invariants import check_progress, check_quiet
from tests.directory.tables import QUIET, SCHEMA, Ground, as_operation, rows
from tests.storage.faults import FaultStore

T = ["g", "t"]


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    """A table with three versions."""
    ground = Ground(tmp_path / "root")
    ground.make_namespace("g")
    ground.make_table("g", "t")
    ground.write(T, rows(3, 5))
    ground.write(T, rows(5, 6))
    return ground


def tag(ground: Ground, name: str, version: int, **more: Any) -> dict[str, Any]:
    return ground.namespace.change("create_table_tag", {"id": T, "tag": name, "version": version, **more}).body


def delete_versions(ground: Ground, start: int, end: int, branch: str | None = None) -> dict[str, Any]:
    ranges = [{"start_version": start, "end_version": end}]
    return ground.call("batch_delete_table_versions", id=T, ranges=ranges, branch=branch)


def tags(ground: Ground) -> dict[str, Any]:
    found: dict[str, Any] = ground.read("list_table_tags", id=T)["tags"]
    return found


class TestByModels:
    def test_a_tag_is_created_read_moved_and_deleted(self, ground: Ground) -> None:
        namespace = ground.namespace
        made = namespace.create_table_tag(models.CreateTableTagRequest(id=T, tag="v", version=1))
        assert made.transaction_id
        assert namespace.get_table_tag_version(models.GetTableTagVersionRequest(id=T, tag="v")).version == 1
        listed = namespace.list_table_tags(models.ListTableTagsRequest(id=T)).tags
        assert listed["v"].version == 1
        assert listed["v"].manifest_size == ground.catalog.snapshot().version_entry(("g", "t"), None, 1).size  # type: ignore[union-attr]
        assert ground.open(T).checkout_version("v").count_rows() == 3

        namespace.update_table_tag(models.UpdateTableTagRequest(id=T, tag="v", version=2))
        assert ground.open(T).tags.list()["v"]["version"] == 2
        assert ground.open(T).checkout_version("v").count_rows() == 5

        namespace.delete_table_tag(models.DeleteTableTagRequest(id=T, tag="v"))
        assert ground.open(T).tags.list() == {}
        ground.catalog.sweep()
        check_quiet(ground.root)

    def test_the_file_is_that_of_stock_pylance(self, ground: Ground) -> None:
        tag(ground, "ours", 2)
        ground.open(T).tags.create("theirs", 2)
        both = ground.open(T).tags.list()
        assert both["ours"].keys() == both["theirs"].keys()
        changing = {"created_at", "updated_at"}
        assert {k: v for k, v in both["ours"].items() if k not in changing} == {
            k: v for k, v in both["theirs"].items() if k not in changing
        }
        assert tags(ground)["ours"] == tags(ground)["theirs"]

    def test_tags_of_stock_pylance_are_seen_and_changed(self, ground: Ground) -> None:
        dataset = lance.dataset(namespace_client=ground.namespace, table_id=T)
        dataset.tags.create("one", 1)
        assert ground.read("get_table_tag_version", id=T, tag="one") == {"version": 1}
        ground.namespace.change("update_table_tag", {"id": T, "tag": "one", "version": 3})
        assert dataset.tags.list()["one"]["version"] == 3
        ground.namespace.change("delete_table_tag", {"id": T, "tag": "one"})
        assert dataset.tags.list() == {}

    def test_a_tag_of_a_branch(self, ground: Ground) -> None:
        ground.call("create_table_branch", id=T, name="dev", from_version=2)
        tag(ground, "d", 2, branch="dev")
        tag(ground, "m", 2, branch="main")
        assert ground.read("get_table_tag_version", id=T, tag="d") == {"version": 2, "branch": "dev"}
        assert ground.read("get_table_tag_version", id=T, tag="m") == {"version": 2}
        assert tags(ground)["d"]["branch"] == "dev"
        opened = ground.open(T).checkout_version("d")
        assert opened.count_rows() == 5
        assert "/tree/dev" in opened.uri or opened.tags.list()["d"]["branch"] == "dev"

    def test_pages_are_in_the_order_of_names(self, ground: Ground) -> None:
        for name in ("b", "B", "a-1", "a"):
            tag(ground, name, 1)
        first = ground.read("list_table_tags", id=T, limit=3)
        assert list(first["tags"]) == ["B", "a", "a-1"]
        assert first["page_token"] == "a-1"
        rest = ground.read("list_table_tags", id=T, limit=3, page_token=first["page_token"])
        assert (list(rest["tags"]), "page_token" in rest) == (["b"], False)
        assert ground.read("list_table_tags", id=T, limit=0) == {"tags": {}}
        assert len(ground.read("list_table_tags", id=T, limit=-1)["tags"]) == 4


class TestRefusals:
    def test_what_cannot_be_tagged(self, ground: Ground) -> None:
        tag(ground, "v", 1)
        before = ground.tree().keys()
        refusals: list[tuple[dict[str, Any], type[LanceNamespaceError]]] = [
            ({"tag": "v", "version": 2}, TableTagAlreadyExistsError),
            ({"tag": "w", "version": 99}, TableVersionNotFoundError),
            ({"tag": "w", "version": 0}, InvalidInputError),
            ({"tag": "w", "version": 1, "branch": "nope"}, TableBranchNotFoundError),
            ({"tag": "w", "version": 1, "id": ["g", "nope"]}, TableNotFoundError),
            ({"tag": "a/b", "version": 1}, InvalidInputError),
            ({"tag": "", "version": 1}, InvalidInputError),
            ({"tag": "x.lock", "version": 1}, InvalidInputError),
            ({"tag": "é", "version": 1}, InvalidInputError),
        ]
        for request, error in refusals:
            with pytest.raises(error):
                ground.namespace.change("create_table_tag", {"id": T, **request})
        assert {path for path in ground.tree().keys() - before if "_refs" in path} == set()

    def test_what_is_not_there_cannot_be_moved_read_or_deleted(self, ground: Ground) -> None:
        for operation, given in (("update_table_tag", {"version": 1}), ("delete_table_tag", {})):
            with pytest.raises(TableTagNotFoundError, match="tag nope does not exist"):
                ground.namespace.change(operation, {"id": T, "tag": "nope", **given})
        with pytest.raises(TableTagNotFoundError):
            ground.read("get_table_tag_version", id=T, tag="nope")
        tag(ground, "v", 1)
        with pytest.raises(TableVersionNotFoundError):
            ground.namespace.change("update_table_tag", {"id": T, "tag": "v", "version": 9})
        assert tags(ground)["v"]["version"] == 1
        with pytest.raises(TableNotFoundError):
            ground.read("list_table_tags", id=["g", "nope"])
        with pytest.raises(TableNotFoundError):
            ground.read("get_table_tag_version", id=["g", "nope"], tag="v")

    def test_an_earlier_catalog_version_has_no_tags(self, ground: Ground) -> None:
        version = ground.catalog.snapshot().version
        for operation in ("list_table_tags", "get_table_tag_version", "list_table_branches"):
            given = {"tag": "v"} if operation == "get_table_tag_version" else {}
            with pytest.raises(InvalidInputError, match="without x-lance-catalog-version"):
                ground.namespace.read(operation, {"id": T, **given}, at=version)

    def test_a_damaged_file_is_named(self, ground: Ground) -> None:
        tag(ground, "v", 1)
        (ground.root / tag_path(ground.location(T), "v")).write_text("{")
        with pytest.raises(InternalError, match=r"_refs/tags/v\.json is damaged: tag file is not JSON"):
            ground.read("list_table_tags", id=T)
        with pytest.raises(InternalError):
            ground.read("get_table_tag_version", id=T, tag="v")
        with pytest.raises(InternalError, match="is damaged"):
            delete_versions(ground, 1, 2)

    def test_a_root_of_stock_clients_is_served_for_reading(self, tmp_path: Path) -> None:
        stock = models.connect("dir", {"root": str(tmp_path)})
        stock.create_namespace(models.CreateNamespaceRequest(id=["g"]))
        dataset = lance.write_dataset(rows(0, 3), namespace_client=stock, table_id=T, mode="create")
        dataset.tags.create("v", 1)
        dataset.create_branch("dev", 1)
        ground = Ground(tmp_path)
        assert list(tags(ground)) == ["v"]
        assert list(ground.read("list_table_branches", id=T)["branches"]) == ["dev"]
        assert ground.read("describe_transaction", id=[*T, "1"])["properties"]["operation"] == "Overwrite"
        for operation, request in (
            ("create_table_tag", {"tag": "w", "version": 1}),
            ("delete_table_tag", {"tag": "v"}),
            ("delete_table_branch", {"name": "dev"}),
        ):
            with pytest.raises(UnsupportedOperationError, match="adopt"):
                ground.namespace.change(operation, {"id": T, **request})
        assert list(tags(ground)) == ["v"]


class TestVersionsThatGo:
    def test_a_version_that_a_tag_names_is_not_deleted(self, ground: Ground) -> None:
        tag(ground, "keep", 2)
        ground.catalog.sweep()
        with pytest.raises(InvalidInputError, match=r"found keep \(version 2\)"):
            delete_versions(ground, 1, 3)
        assert delete_versions(ground, 1, 2)["deleted_count"] == 1
        ground.namespace.change("delete_table_tag", {"id": T, "tag": "keep"})
        assert delete_versions(ground, 1, 3)["deleted_count"] == 1
        ground.catalog.sweep()
        check_progress(ground.root)

    def test_a_tag_counts_on_its_own_branch_only(self, ground: Ground) -> None:
        ground.call("create_table_branch", id=T, name="dev", from_version=2)
        tag(ground, "keep", 2, branch="dev")
        assert delete_versions(ground, 2, 3)["deleted_count"] == 1
        lance.write_dataset(rows(5, 6), ground.open(T).checkout_version(("dev", None)), mode="append")
        assert len(ground.read("list_table_versions", id=T, branch="dev")["versions"]) == 2
        with pytest.raises(InvalidInputError, match=r"found keep \(version 2\)"):
            delete_versions(ground, 2, 3, branch="dev")

    def test_tags_go_with_all_versions(self, ground: Ground) -> None:
        tag(ground, "keep", 2)
        assert delete_versions(ground, 0, -1)["deleted_count"] == 3
        assert tags(ground) == {}

    def test_a_version_that_a_client_removed_cannot_be_tagged(self, ground: Ground) -> None:
        ground.catalog.sweep()
        ground.open(T).cleanup_old_versions(older_than=timedelta(0))
        with pytest.raises(TableVersionNotFoundError):
            tag(ground, "late", 1)
        assert tags(ground) == {}

    def test_a_version_committed_around_the_catalog_is_adopted_and_tagged(self, ground: Ground) -> None:
        ground.unmanaged_append(T, rows(6, 7))
        tag(ground, "foreign", 4)
        assert ground.head(T) == 4
        assert ground.open(T).checkout_version("foreign").count_rows() == 7


class Gate(LocalStore):
    """A local store that does something once, just after an object was written."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, "none")
        self.after: Callable[[str], bool] = lambda _: False
        self.action: Callable[[], None] = lambda: None

    def put_if_absent(self, path: str, data: bytes, *, durable: bool = True) -> str | None:
        e_tag = super().put_if_absent(path, data, durable=durable)
        self._do(path)
        return e_tag

    def replace(self, path: str, data: bytes, *, if_match: str) -> str | None:
        e_tag = super().replace(path, data, if_match=if_match)
        self._do(path)
        return e_tag

    def _do(self, path: str) -> None:
        if self.after(path):
            self.after = lambda _: False
            self.action()


class TestRaces:
    def test_a_deletion_before_the_confirmation_sees_the_tag(self, ground: Ground) -> None:
        """The tag's file stands and its flip is not made yet: the deletion is refused, and the tag holds."""
        store = Gate(ground.root)
        refused: list[Exception] = []

        def delete() -> None:
            with pytest.raises(InvalidInputError) as caught:
                delete_versions(ground.again(), 2, 3)
            refused.append(caught.value)

        store.after, store.action = (lambda path: "_refs/tags" in path), delete
        tag(ground.again(store), "v", 2)
        assert len(refused) == 1
        assert tags(ground)["v"]["version"] == 2
        assert ground.catalog.snapshot().version_entry(("g", "t"), None, 2) is not None

    @pytest.mark.parametrize("moved", [False, True])
    def test_a_deletion_between_look_and_tag_takes_the_tag_back(
        self, ground: Ground, moved: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The version is deleted after it was found and before the tag is written: 11, and no tag is left."""
        if moved:
            tag(ground, "v", 1)
        found = tag_module._find_target
        other = ground.again()

        def then_delete(*given: Any) -> Any:
            target = found(*given)
            delete_versions(other, 2, 3)
            return target

        monkeypatch.setattr(tag_module, "_find_target", then_delete)
        with pytest.raises(TableVersionNotFoundError, match="was removed meanwhile"):
            ground.namespace.change(
                "update_table_tag" if moved else "create_table_tag", {"id": T, "tag": "v", "version": 2}
            )
        assert {name: entry["version"] for name, entry in tags(ground).items()} == ({"v": 1} if moved else {})

    def test_a_table_that_is_dropped_between_look_and_tag_is_told(
        self, ground: Ground, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        found, other = tag_module._find_target, ground.again()

        def then_drop(*given: Any) -> Any:
            target = found(*given)
            other.call("drop_table", id=T)
            other.make_table(*T)
            return target

        monkeypatch.setattr(tag_module, "_find_target", then_drop)
        with pytest.raises(TableNotFoundError):
            tag(ground, "v", 1)
        assert tags(ground) == {}

    def test_the_tags_that_stop_a_deletion_are_those_of_the_table_that_there_is(
        self, ground: Ground, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The table is dropped and made again after its tags were read."""
        held, made = ground.again(), []
        verify = held.catalog.verifier.verify

        def then_make_again(*given: Any) -> Any:
            found = verify(*given)
            if not made:
                made.append(True)
                ground.call("drop_table", id=T)
                ground.make_table(*T)
                ground.write(T, rows(3, 5))
                tag(ground, "v", 1)
            return found

        monkeypatch.setattr(held.catalog.verifier, "verify", then_make_again)
        with pytest.raises(LanceNamespaceError):
            delete_versions(held, 1, 2)
        assert made
        assert ground.catalog.snapshot().version_entry(("g", "t"), None, 1) is not None

    def test_a_branch_that_is_made_again_between_look_and_tag_takes_the_tag_back(
        self, ground: Ground, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its version has the same number and is another one."""
        ground.call("create_table_branch", id=T, name="dev", from_version=2)
        found, other = tag_module._find_target, ground.again()

        def then_make_again(*given: Any) -> Any:
            target = found(*given)
            other.namespace.change("delete_table_branch", {"id": T, "name": "dev"})
            other.call("create_table_branch", id=T, name="dev", from_version=2)
            return target

        monkeypatch.setattr(tag_module, "_find_target", then_make_again)
        with pytest.raises(TableVersionNotFoundError, match="was removed meanwhile"):
            tag(ground, "v", 2, branch="dev")
        assert tags(ground) == {}

    @pytest.mark.parametrize("moment", ["head", "the last call"])
    @pytest.mark.parametrize("moved", [False, True])
    def test_what_a_client_made_of_the_tag_meanwhile_is_not_taken_back(
        self, ground: Ground, moved: bool, moment: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The version was deleted before the confirmation, and the tag is another one, before a look or after it."""
        if moved:
            tag(ground, "v", 1)
        store = FaultStore(LocalStore(ground.root, "none"))
        held, found, stock = ground.again(store), tag_module._find_target, ground.open(T)
        deleted: list[bool] = []

        def then_delete(*given: Any) -> Any:
            target = found(*given)
            delete_versions(ground, 2, 3)
            deleted.append(True)
            return target

        last = "replace" if moved else "rename_if_absent"
        is_written: list[bool] = []

        def change_it(verb: str, path: str) -> None:
            if not path.endswith(tag_path(ground.location(T), "v")) or not deleted:
                return
            if is_written and verb == ("head" if moment == "head" else last):
                go_on()
                stock.tags.update("v", 3)
            elif verb in {"put_if_absent", "replace"}:
                is_written.append(True)

        go_on = store.before(change_it)
        monkeypatch.setattr(tag_module, "_find_target", then_delete)
        with pytest.raises(TableVersionNotFoundError, match="was removed meanwhile"):
            held.namespace.change(
                "update_table_tag" if moved else "create_table_tag", {"id": T, "tag": "v", "version": 2}
            )
        assert change_it not in store._hooks, "it was not held"
        assert {name: entry["version"] for name, entry in tags(ground).items()} == {"v": 3}

    @pytest.mark.parametrize("moment", ["verify", "recheck"])
    @pytest.mark.parametrize("what", ["version", "branch"])
    def test_a_tag_that_comes_while_a_deletion_is_planned_stops_it(
        self, ground: Ground, monkeypatch: pytest.MonkeyPatch, moment: str, what: str
    ) -> None:
        """The deletion has read the tags, before its plan or just before its flip, and then the tag is created."""
        ground.call("create_table_branch", id=T, name="dev", from_version=2)
        held = ground.again()
        branch = {} if what == "version" else {"branch": "dev"}
        part = held.catalog.verifier
        read, made = getattr(part, moment), []

        def then_tag(*given: Any) -> Any:
            found = read(*given)
            if not made:
                made.append(tag(ground, "v", 2, **branch))
            return found

        monkeypatch.setattr(part, moment, then_tag)
        deletion: dict[str, Callable[[], object]] = {
            "version": lambda: delete_versions(held, 2, 3),
            "branch": lambda: held.namespace.change("delete_table_branch", {"id": T, "name": "dev"}),
        }
        with pytest.raises(InvalidInputError, match="found v"):
            deletion[what]()
        assert made
        assert tags(ground)["v"]["version"] == 2
        assert ground.catalog.snapshot().version_entry(("g", "t"), branch.get("branch"), 2) is not None

    def test_tags_and_deletions_of_one_version_never_both_succeed(self, ground: Ground) -> None:
        for number in range(12):
            ground.write(T, rows(number, number + 1))
            version = ground.head(T)
            ground.write(T, rows(number, number + 1))
            one, other = ground.again(), ground.again()
            results: dict[str, bool] = {}
            start = threading.Barrier(2)

            def attempt(what: str, work: Callable[[], object]) -> None:
                start.wait()  # noqa: B023
                try:
                    work()
                except LanceNamespaceError:
                    results[what] = False  # noqa: B023
                else:
                    results[what] = True  # noqa: B023

            name = f"race{number}"
            threads = [
                threading.Thread(target=attempt, args=("tag", lambda: tag(one, name, version))),  # noqa: B023
                threading.Thread(target=attempt, args=("delete", lambda: delete_versions(other, version, version + 1))),  # noqa: B023
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            stands = ground.catalog.snapshot().version_entry(("g", "t"), None, version) is not None
            assert results["tag"] == (name in tags(ground))
            assert results["delete"] is not stands
            assert not (results["tag"] and results["delete"])

    def test_of_tags_with_one_name_one_is_created(self, ground: Ground) -> None:
        outcomes: list[object] = []

        def create(version: int) -> None:
            try:
                outcomes.append(tag(ground, "same", version))
            except TableTagAlreadyExistsError as error:
                outcomes.append(error)

        threads = [threading.Thread(target=create, args=(version,)) for version in (1, 2, 3, 1, 2, 3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(isinstance(outcome, dict) for outcome in outcomes) == 1
        assert len(outcomes) == 6

    @pytest.mark.parametrize("moment", ["after the flip", "after the look", "during the removal"])
    @pytest.mark.parametrize("change", ["made again", "moved"])
    def test_a_deletion_removes_the_tag_that_it_read(
        self, ground: Ground, monkeypatch: pytest.MonkeyPatch, moment: str, change: str
    ) -> None:
        """Held at any moment behind its flip: what a stock client made again stays, what one moved goes."""
        tag(ground, "v", 1)
        dataset = ground.open(T)
        store = FaultStore(LocalStore(ground.root, "none"))
        held = ground.again(store)
        verb = {"after the flip": "head", "after the look": "get", "during the removal": "rename_if_absent"}[moment]
        flipped: list[bool] = []

        def meanwhile(called: str, path: str) -> None:
            if flipped and called == verb and path.endswith(tag_path(ground.location(T), "v")):
                go_on()
                if change == "moved":
                    dataset.tags.update("v", 3)
                else:
                    dataset.tags.delete("v")
                    dataset.tags.create("v", 3)

        go_on = store.before(meanwhile)
        commit = held.catalog.commit_batches

        def note_flip(batches: Any) -> Any:
            decided = commit(batches)
            flipped.append(True)
            return decided

        monkeypatch.setattr(held.catalog, "commit_batches", note_flip)
        held.namespace.change("delete_table_tag", {"id": T, "tag": "v"})
        assert meanwhile not in store._hooks, "it was not held"
        assert {name: found["version"] for name, found in dataset.tags.list().items()} == (
            {} if change == "moved" else {"v": 3}
        )

    def test_a_damaged_tag_can_be_deleted(self, ground: Ground) -> None:
        tag(ground, "v", 1)
        path = ground.root / tag_path(ground.location(T), "v")
        path.write_text("{")
        ground.namespace.change("delete_table_tag", {"id": T, "tag": "v"})
        assert not path.exists()

    def test_a_tag_that_others_keep_moving_is_not_deleted(
        self, ground: Ground, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tag(ground, "v", 1)

        def fail(*_: Any) -> None:
            raise PreconditionFailed("moved")

        monkeypatch.setattr(tag_module, "remove_if", fail)
        with pytest.raises(ConcurrentModificationError, match="tag v was changed by others"):
            ground.namespace.change("delete_table_tag", {"id": T, "tag": "v"})

    def test_a_tag_that_cannot_be_withdrawn_is_told(self, ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
        found, other = tag_module._find_target, ground.again()

        def then_delete(*given: Any) -> Any:
            target = found(*given)
            delete_versions(other, 2, 3)
            return target

        def fail(*_: Any, **__: Any) -> None:
            raise StorageError("no")

        monkeypatch.setattr(tag_module, "_find_target", then_delete)
        for verb in ("delete_if", "rename_if_absent"):
            monkeypatch.setattr(ground.store, verb, fail)
        with pytest.raises(ServiceUnavailableError, match="could not be withdrawn; delete it"):
            tag(ground, "v", 2)


def test_on_a_store_in_memory() -> None:
    """Without files and without pylance: what the object store port promises is enough."""
    namespace = DirectoryNamespace(catalog=StoredCatalog(MemoryStore(), QUIET))
    namespace.write("create_namespace", {"id": ["g"]})
    message = pb.Transaction(read_version=0, uuid=str(uuid.uuid4()))
    message.overwrite.schema.extend(schema_fields(SCHEMA))
    namespace.commit_batch({"operations": [{"declare_table": {"id": T}}, as_operation(T, message)]})
    namespace.change("create_table_tag", {"id": T, "tag": "v", "version": 1})
    namespace.write("create_table_branch", {"id": T, "name": "dev"})
    namespace.change("create_table_tag", {"id": T, "tag": "d", "version": 1, "branch": "dev"})
    assert list(namespace.read("list_table_tags", {"id": T}).body["tags"]) == ["d", "v"]
    with pytest.raises(InvalidInputError, match="expected no tag on it, found d"):
        namespace.change("delete_table_branch", {"id": T, "name": "dev"})
    namespace.change("delete_table_tag", {"id": T, "tag": "d"})
    namespace.change("delete_table_branch", {"id": T, "name": "dev"})
    assert namespace.read("list_table_branches", {"id": T}).body == {"branches": {}}
    assert not [meta.path for meta in namespace.catalog.store.list("") if "/tree/" in meta.path]


class TestUnderAKey:
    def test_a_repetition_waits_for_the_flip_of_the_request_under_way(
        self, ground: Ground, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The file of the tag is there, and its record is not yet."""
        commit, written = ground.catalog.commit_batches, threading.Event()

        def commit_late(batches: Any) -> Any:
            written.set()
            time.sleep(0.2)
            return commit(batches)

        monkeypatch.setattr(ground.catalog, "commit_batches", commit_late)
        with ThreadPoolExecutor(1) as threads:
            first = threads.submit(change, ground, "create_table_tag", "one", 1)
            assert written.wait(10)
            again = change(ground.again(), "create_table_tag", "one", 1)
            assert again == first.result()
        with pytest.raises(TableTagAlreadyExistsError):
            change(ground, "create_table_tag", "one", 1, key="another")

    @pytest.mark.parametrize("operation", ["create_table_tag", "update_table_tag"])
    def test_a_late_repetition_takes_back_what_it_wrote(
        self, ground: Ground, monkeypatch: pytest.MonkeyPatch, operation: str
    ) -> None:
        """It looked for the record before the first request flipped, and others changed the tag since."""
        if operation == "update_table_tag":
            tag(ground, "one", 1)
        first = change(ground, operation, "one", 2)
        if operation == "update_table_tag":
            ground.namespace.change("update_table_tag", {"id": T, "tag": "one", "version": 3})
        else:
            ground.namespace.change("delete_table_tag", {"id": T, "tag": "one"})
        expected = tags(ground)

        monkeypatch.setattr(ChangeContext, "committed_before", lambda _: None)
        assert change(ground, operation, "one", 2) == first
        assert {name: found["version"] for name, found in tags(ground).items()} == {
            name: found["version"] for name, found in expected.items()
        }

    def test_a_late_repetition_of_a_deletion_leaves_the_tag_that_was_made_since(self, ground: Ground) -> None:
        tag(ground, "one", 1)
        first = change(ground, "delete_table_tag", "one", 1)
        tag(ground, "one", 3)
        assert change(ground, "delete_table_tag", "one", 1) == first
        assert tags(ground)["one"]["version"] == 3

    @pytest.mark.parametrize("operation", ["create_table_tag", "update_table_tag", "delete_table_tag"])
    def test_a_repetition_is_told_the_catalog_version_that_holds_it(self, ground: Ground, operation: str) -> None:
        if operation != "create_table_tag":
            tag(ground, "one", 1)

        def once(ground: Ground) -> int:
            request = tag_request(operation, "one", 2)
            return ground.namespace.change(operation, request, idempotency_key="once").catalog_version

        first = once(ground)
        ground.make_namespace("other")
        assert once(ground) == once(ground.again()) == first == ground.catalog.snapshot().version - 1


def change(ground: Ground, operation: str, name: str, version: int, *, key: str = "once") -> dict[str, Any]:
    return ground.namespace.change(operation, tag_request(operation, name, version), idempotency_key=key).body


def tag_request(operation: str, name: str, version: int) -> dict[str, Any]:
    return {"id": T, "tag": name, **({} if operation == "delete_table_tag" else {"version": version})}
