"""Clones of a table in the catalog: beside garbage collection, other writers, and processes that die (P14)."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pytest
from lance_namespace.errors import (
    InvalidInputError,
    LanceNamespaceError,
    TableAlreadyExistsError,
    TableNotFoundError,
    TableTagNotFoundError,
    TableVersionNotFoundError,
    UnsupportedOperationError,
)

from lance_core.storage.local import LocalStore
from namespace_server.directory.gc.run import Collector
from namespace_server.directory.maintenance.report import TableStatus
from tests.directory.gc.collecting import collect, forget_history, let_pass
from tests.directory.invariants import check_quiet
from tests.directory.tables import Ground, rows
from tests.maintenance.tables import maintain
from tests.storage.faults import Crashed, Fault, FaultStore

T, C = ["g", "t"], ["g", "c"]


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    """A table with three versions: ids 0 to 2, without 1, with 5 and 6 besides."""
    ground = Ground(tmp_path / "root")
    ground.make_namespace("g")
    ground.make_table(*T)
    ground.open(T)
    lance.dataset(namespace_client=ground.namespace, table_id=T).delete("id = 1")
    ground.write(T, rows(5, 7))
    return ground


def clone(ground: Ground, table_id: list[str] = C, source: list[str] = T, **more: Any) -> dict[str, Any]:
    place = str(ground.root / ground.location(source))
    return ground.namespace.change("clone_table", {"id": table_id, "source_location": place, **more}).body


def tag(ground: Ground, name: str, version: int, **more: Any) -> None:
    ground.namespace.change("create_table_tag", {"id": T, "tag": name, "version": version, **more})


def drop_and_forget(ground: Ground, table_id: list[str]) -> None:
    ground.call("drop_table", id=table_id, purge=True)
    ground.catalog.sweep()
    let_pass(ground)
    forget_history(ground)


class TestWhatItIs:
    @pytest.mark.parametrize(
        ("more", "version", "ids"),
        [
            ({}, 3, [0, 2, 5, 6]),
            ({"source_version": 2}, 2, [0, 2]),
            ({"source_tag": "first"}, 1, [0, 1, 2]),
            ({"is_shallow": True, "source_version": 1}, 1, [0, 1, 2]),
        ],
    )
    def test_its_first_version_is_that_of_the_source(
        self, ground: Ground, more: dict[str, Any], version: int, ids: list[int]
    ) -> None:
        tag(ground, "first", 1)
        before = ground.catalog.snapshot().version
        made = clone(ground, **more)
        assert made["version"] == version
        assert made["location"].endswith(ground.location(C))
        assert ground.catalog.snapshot().version == before + 1
        assert [each["version"] for each in ground.read("list_table_versions", id=C)["versions"]] == [version]
        ground.open(C).validate()
        assert ground.ids(C) == ids
        assert not list((ground.root / ground.location(C)).glob("data/*"))

    def test_stock_writers_go_on_from_it_and_the_source_stays(self, ground: Ground) -> None:
        clone(ground)
        ground.write(C, rows(20, 22))
        lance.dataset(namespace_client=ground.namespace, table_id=C).delete("id in (0, 20)")
        lance.dataset(namespace_client=ground.namespace, table_id=C).optimize.compact_files()
        ground.open(C).validate()
        assert (ground.ids(C), ground.ids(T)) == ([2, 5, 6, 21], [0, 2, 5, 6])
        assert lance.dataset(namespace_client=ground.namespace, table_id=C).count_rows() == 4

    def test_it_is_in_the_history_with_its_version(self, ground: Ground) -> None:
        made = clone(ground)
        [version] = ground.read("list_catalog_versions", limit=1)["versions"]
        [operation] = version["batches"][0]["operations"]
        assert operation == {"operation": "clone_table", "id": C, "version": 3, "change": "Clone"}
        assert version["batches"][0]["transaction_id"] == made["transaction_id"]
        event = ground.read("list_catalog_events", since=version["version"] - 1)["events"][0]
        assert event["data"]["tables"] == [{"id": C, "after": 3}]

    def test_a_request_is_made_once_under_its_key(self, ground: Ground) -> None:
        place = str(ground.root / ground.location(T))
        request = {"id": C, "source_location": place, "source_version": 2}

        def ask(process: Ground) -> dict[str, Any]:
            return process.namespace.change("clone_table", request, idempotency_key="one").body

        assert ask(ground) == ask(ground) == ask(ground.again())
        with pytest.raises(TableAlreadyExistsError):
            ground.namespace.change("clone_table", request)


class TestRefusals:
    def test_a_place_without_a_table_answers_the_same_whatever_is_there(self, ground: Ground, tmp_path: Path) -> None:
        ground.make_table("g", "gone")
        gone, own = ground.location(["g", "gone"]), ground.location(T)
        ground.call("drop_table", id=["g", "gone"])
        lance.write_dataset(rows(0, 2), str(ground.root / "loose.lance"))
        lance.write_dataset(rows(0, 2), str(tmp_path / "beside"))
        places = ["s3://elsewhere/t", "/etc", "nothing", str(tmp_path / "beside"), "../beside", "", "file:///etc"]
        places += [gone, str(ground.root / gone), "loose.lance", own[:-1], f"{own}/data", str(ground.root)]
        before = ground.catalog.snapshot().version
        texts = set()
        for place in places:
            with pytest.raises(TableNotFoundError) as refused:
                ground.namespace.change("clone_table", {"id": C, "source_location": place})
            texts.add(str(refused.value))
        [text] = texts
        assert text.startswith("source_location: expected")
        assert ground.catalog.snapshot().version == before

    @pytest.mark.parametrize(
        ("more", "error", "text"),
        [
            ({"source_version": 9}, TableVersionNotFoundError, "version 9 does not exist"),
            ({"source_tag": "nothing"}, TableTagNotFoundError, "tag nothing"),
            ({"source_tag": "of dev"}, InvalidInputError, "source_tag"),
            ({"source_tag": "ofdev"}, UnsupportedOperationError, "names a version of branch dev"),
            ({"source_tag": "first", "source_version": 1}, InvalidInputError, "expected one of them"),
            ({"is_shallow": False}, UnsupportedOperationError, "is_shallow"),
            ({"source_version": "1"}, InvalidInputError, "source_version"),
            ({"id": T}, TableAlreadyExistsError, "g$t"),
            ({"id": ["h", "c"]}, LanceNamespaceError, "h"),
            ({"source_branch": "dev"}, InvalidInputError, "source_branch"),
        ],
    )
    def test_others(self, ground: Ground, more: dict[str, Any], error: type[Exception], text: str) -> None:
        tag(ground, "first", 1)
        ground.call("create_table_branch", id=T, name="dev")
        tag(ground, "ofdev", 3, branch="dev")
        before = ground.catalog.snapshot().version
        with pytest.raises(error, match=text.replace("$", r"\$")):
            clone(ground, more.pop("id", C), **more)
        assert ground.catalog.snapshot().version == before

    def test_a_version_with_files_of_a_branch_goes_with_the_branch_and_is_not_cloned(self, ground: Ground) -> None:
        ground.call("create_table_branch", id=T, name="dev")
        lance.write_dataset(rows(30, 31), str(ground.root / ground.location(T) / "tree/dev"), mode="append")
        branch = lance.dataset(str(ground.root / ground.location(T) / "tree/dev"))
        branch.shallow_clone(str(ground.root / "of_a_branch"), branch.version)
        ground.call("register_table", id=["g", "b"], location="of_a_branch")
        with pytest.raises(UnsupportedOperationError, match="has files of a branch"):
            clone(ground, source=["g", "b"])

    def test_a_declared_table_has_nothing_to_clone(self, ground: Ground) -> None:
        ground.call("declare_table", id=["g", "empty"])
        with pytest.raises(TableVersionNotFoundError):
            clone(ground, source=["g", "empty"])


class TestBesideGarbageCollection:
    def ways(self, ground: Ground, way: str) -> None:
        """Remove the version that was cloned, in one of the ways that an operation of the catalog has."""
        if way == "drop":
            ground.call("drop_table", id=T, purge=True)
        elif way == "delete all versions":
            ground.call("batch_delete_table_versions", id=T, ranges=[{"start_version": 1, "end_version": -1}])
        elif way == "delete the version":
            ground.call("batch_delete_table_versions", id=T, ranges=[{"start_version": 1, "end_version": 2}])
        elif way == "overwrite":
            ground.write(T, rows(0, 1), "overwrite")
            ground.call("batch_delete_table_versions", id=T, ranges=[{"start_version": 1, "end_version": 4}])

    @pytest.mark.parametrize("way", ["drop", "delete all versions", "overwrite"])
    def test_the_files_of_the_source_stay_as_long_as_the_clone(self, ground: Ground, way: str) -> None:
        clone(ground, source_version=1)
        clone(ground, ["g", "of_clone"], C)
        self.ways(ground, way)
        for _ in range(2):
            ground.catalog.sweep()
            let_pass(ground)
            forget_history(ground)
            collect(ground)
        for each in (C, ["g", "of_clone"]):
            ground.open(each).validate()
            assert ground.ids(each) == [0, 1, 2]
        drop_and_forget(ground, C)
        collect(ground)
        assert ground.ids(["g", "of_clone"]) == [0, 1, 2]
        data = ground.root / next(path.name for path in ground.root.glob("*_g$t"))
        held = set(data.glob("data/*"))
        drop_and_forget(ground, ["g", "of_clone"])
        collect(ground)
        assert len(set(data.glob("data/*"))) < len(held)

    def test_a_collection_between_the_look_and_the_flip_takes_the_version_or_the_clone_has_it(
        self, ground: Ground, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        held = ground.again()
        commit = held.catalog.committer.decide

        def after_collection(batches: Any) -> Any:
            self.ways(ground, "delete the version")
            ground.catalog.sweep()
            let_pass(ground)
            forget_history(ground)
            collect(ground)
            return commit(batches)

        monkeypatch.setattr(held.catalog.committer, "decide", after_collection)
        with pytest.raises(TableVersionNotFoundError, match="was removed meanwhile"):
            clone(held, source_version=1)
        assert ground.catalog.snapshot().table(tuple(C)) is None

    def test_a_collection_that_listed_before_the_clone_keeps_what_it_names(
        self, ground: Ground, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The version is removed after the clone; the run has listed files, and has not read manifests again."""
        ground.catalog.sweep()
        let_pass(ground)
        forget_history(ground)
        looks = []

        def in_between(_seconds: float) -> None:
            looks.append(clone(ground, source_version=1))
            self.ways(ground, "delete the version")

        leave = ground.root / ground.location(T) / "data/unnamed.lance"
        leave.write_bytes(b"x")
        let_pass(ground)
        Collector(ground.again().catalog, settle=timedelta(0), sleep=in_between).collect()
        assert looks
        let_pass(ground)
        forget_history(ground)
        collect(ground.again())
        assert ground.ids(C) == [0, 1, 2]

    def test_another_table_is_at_the_place_by_the_flip(self, ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
        """It has a version of that number, with other rows."""
        lance.write_dataset(rows(0, 2), str(ground.root / "mine"))
        ground.call("register_table", id=["g", "mine"], location="mine")
        held = ground.again()
        commit = held.catalog.committer.decide

        def after_replacement(batches: Any) -> Any:
            ground.call("deregister_table", id=["g", "mine"])
            shutil.rmtree(ground.root / "mine")
            lance.write_dataset(rows(5, 6), str(ground.root / "mine"))
            ground.call("register_table", id=["g", "mine"], location="mine")
            return commit(batches)

        monkeypatch.setattr(held.catalog.committer, "decide", _once(after_replacement, commit))
        with pytest.raises(TableVersionNotFoundError, match="was removed meanwhile"):
            clone(held, source=["g", "mine"])

    def test_the_source_is_dropped_between_the_look_and_the_flip(
        self, ground: Ground, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        held = ground.again()
        commit = held.catalog.committer.decide

        def after_drop(batches: Any) -> Any:
            ground.call("drop_table", id=T)
            return commit(batches)

        monkeypatch.setattr(held.catalog.committer, "decide", after_drop)
        with pytest.raises(TableNotFoundError, match="source_location: expected"):
            clone(held)


def test_a_process_may_die_at_each_of_its_writes(ground: Ground, tmp_path: Path) -> None:
    ground.catalog.sweep()
    ground.catalog.flush_record_housekeeping()
    fates: dict[str, set[bool]] = {}
    for fault in (Fault.CRASH_BEFORE, Fault.CRASH_AFTER):
        number = 0
        while True:
            root = tmp_path / f"{fault.name}-{number}"
            shutil.copytree(ground.root, root)
            store = FaultStore(LocalStore(root, "none"))
            store.fail(fault, nth=number)
            try:
                clone(Ground(root, store))
            except Crashed:
                left = Ground(root)
                there = left.catalog.snapshot().table(tuple(C)) is not None
                fates.setdefault(fault.name, set()).add(there)
                if there:
                    assert left.read("list_table_versions", id=C)["versions"][0]["version"] == 3
                else:
                    clone(left)
                left.write(C, rows(40, 41))
                assert left.ids(C) == [0, 2, 5, 6, 40]
                left.catalog.sweep()
                check_quiet(root)
                number += 1
                continue
            break
        assert number > 2
    assert fates == {"CRASH_BEFORE": {False, True}, "CRASH_AFTER": {False, True}}


def test_writers_of_the_source_commit_meanwhile(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """One by the catalog and one around it: the clone is of the version that was found."""
    held = ground.again()
    commit: Callable[[Any], Any] = held.catalog.committer.decide

    def after_writes(batches: Any) -> Any:
        ground.write(T, rows(10, 11))
        ground.unmanaged_append(T, rows(11, 12))
        return commit(batches)

    ground.unmanaged_append(T, rows(7, 8))
    monkeypatch.setattr(held.catalog.committer, "decide", _once(after_writes, commit))
    assert clone(held)["version"] == 4
    assert ground.ids(C) == [0, 2, 5, 6, 7]


def _once(first: Callable[[Any], Any], then: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Adoption is a batch of its own: the first call that has another one is `first`."""
    calls: list[Any] = []

    def decide(batches: Any) -> Any:
        is_clone = any(each.name == "clone_table" for batch in batches for each in batch.operations)
        if is_clone and not calls:
            calls.append(batches)
            return first(batches)
        return then(batches)

    return decide


class TestIndicesThatPylanceMisplaces:
    """Pylance compacts a clone or a branch, and states the new segment of its index below the root of the old one."""

    @pytest.fixture(params=["clone", "branch"])
    def place(self, ground: Ground, request: pytest.FixtureRequest) -> tuple[list[str], str | None]:
        ground.namespace.data.change("create_table_scalar_index", {"id": T, "column": "id", "index_type": "BTREE"})
        if request.param == "clone":
            clone(ground)
            return C, None
        ground.call("create_table_branch", id=T, name="dev")
        return T, "dev"

    def opened(self, ground: Ground, place: tuple[list[str], str | None]) -> lance.LanceDataset:
        table, branch = place
        ground.read("list_table_versions", id=table, **({} if branch is None else {"branch": branch}))
        ground.catalog.sweep()
        return ground.open(table) if branch is None else ground.open(table).checkout_version((branch, None))

    def test_what_is_committed_by_path_is_committed_again_with_its_root(
        self, ground: Ground, place: tuple[list[str], str | None]
    ) -> None:
        """The writer goes on by its handle, in which the root is the wrong one."""
        writer = self.opened(ground, place)
        writer.optimize.compact_files()
        table, branch = place
        request = {"id": table, "predicate": "id = 2", **({} if branch is None else {"branch": branch})}
        assert self.opened(ground, place).to_table(filter="id = 5").num_rows == 1
        ground.namespace.data.change("delete_from_table", request)
        writer.delete("name = 'n0'")  # not by the index, which it does not find
        lance.write_dataset(rows(10, 12), writer, mode="append")
        found = self.opened(ground, place)
        found.validate()
        assert sorted(found.to_table()["id"].to_pylist()) == [5, 6, 10, 11]
        for number, count in ((0, 0), (2, 0), (5, 1), (6, 1), (11, 1)):
            assert found.to_table(filter=f"id = {number}").num_rows == count
        assert len(found.get_fragments()) == 2
        check_quiet(ground.root)

    def test_maintenance_compacts_it(self, ground: Ground, place: tuple[list[str], str | None]) -> None:
        """Deletion files of the old fragments lie below the root of the source. Branches are left as they are."""
        report = maintain(ground)
        assert {each.status for each in report.outcomes} == {TableStatus.DONE}
        table, branch = place
        found = self.opened(ground, place)
        found.validate()
        assert len(found.get_fragments()) == (1 if branch is None else 2)
        assert ground.ids(table) == [0, 2, 5, 6]
        assert [found.to_table(filter=f"id = {number}").num_rows for number in (0, 1, 2, 5)] == [1, 0, 1, 1]

    def test_what_is_staged_is_refused(self, ground: Ground, place: tuple[list[str], str | None]) -> None:
        table, branch = place
        dataset = lance.dataset(namespace_client=ground.namespace, table_id=table)
        if branch is not None:
            dataset = dataset.checkout_version((branch, None))
        with pytest.raises(OSError, match="version"):
            dataset.optimize.compact_files()
        found = self.opened(ground, place)
        assert sorted(found.to_table()["id"].to_pylist()) == [0, 2, 5, 6]
        assert found.to_table(filter="id = 5").num_rows == 1
