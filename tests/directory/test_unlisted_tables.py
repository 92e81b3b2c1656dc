"""A root that has tables and no catalog: they are read as they are, and no catalog begins beside them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import InternalError, InvalidInputError, UnsupportedOperationError

from lance_core.storage.local import LocalStore
from lance_core.storage.wrappers.delegation import WrappedStore
from namespace_client import Catalog, CommitRejected
from namespace_server.directory.catalog import StoredCatalog
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.directory.root_check import RootCheck
from tests.directory.tables import QUIET
from tests.emulators import Emulator


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A directory as lancedb leaves it: two tables, one of two versions with a tag; and what is no table."""
    root = tmp_path / "db"
    lance.write_dataset(rows(1), root / "a.lance")
    lance.write_dataset(rows(2), root / "a.lance", mode="append").tags.create("first", 1)
    lance.write_dataset(rows(7), root / "b.lance")
    (root / "empty.lance").mkdir()
    (root / "notes").mkdir()
    (root / "notes" / "a.txt").write_text("x")
    return root


def files(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


class TestReads:
    def test_see_the_tables_and_write_nothing(self, made: Path) -> None:
        before = files(made)
        with Catalog.connect(made) as catalog:
            assert [str(name) for name in catalog.tables()] == ["a", "b"]
            assert catalog.read("a")["id"].to_pylist() == [1, 2]
            assert catalog.read("a", version=1)["id"].to_pylist() == [1]
            assert catalog.read("a", tag="first")["id"].to_pylist() == [1]
            found = catalog.describe("a")
            assert (found.version, found.rows) == (2, 2)
            assert catalog.dataset("b").count_rows() == 1
        assert files(made) == before

    def test_see_what_is_made_dropped_and_deregistered_meanwhile(self, made: Path) -> None:
        with Catalog.connect(made) as catalog:
            assert len(catalog.tables()) == 2
            lance.write_dataset(rows(1), made / "c.lance")
            (made / "b.lance" / ".lance-deregistered").touch()
            assert [str(name) for name in catalog.tables()] == ["a", "c"]
            lance.write_dataset(rows(3), made / "a.lance", mode="append")
            assert catalog.read("a").num_rows == 3
            shutil.rmtree(made / "a.lance")
            assert [str(name) for name in catalog.tables()] == ["c"]

    def test_the_catalog_says_that_it_does_not_manage_them(self, made: Path) -> None:
        with closing(DirectoryNamespace(root=str(made))) as namespace:
            told = namespace.read("describe_catalog", {}).body
            assert (told["version"], told["managed"]) == (0, False)
        with closing(DirectoryNamespace(root=str(made.parent / "new"))) as namespace:
            assert namespace.read("describe_catalog", {}).body["managed"] is True

    def test_a_check_of_the_root_warns(self, made: Path) -> None:
        found = RootCheck(LocalStore(made, "none")).check()
        assert [each.code for each in found.findings] == ["catalog-unmanaged"]
        assert "found 2 tables and no catalog" in found.findings[0].text


CHANGES: dict[str, Callable[[Catalog], object]] = {
    "create_namespace": lambda catalog: catalog.create_namespace("n"),
    "ensure_namespace": lambda catalog: catalog.ensure_namespace("n"),
    "create": lambda catalog: catalog.create("t", rows(1)),
    "create of the same name": lambda catalog: catalog.create("z", schema=rows().schema),
    "append": lambda catalog: catalog.append("a", rows(3)),
    "delete": lambda catalog: catalog.delete("a", "true"),
    "drop": lambda catalog: catalog.drop("a"),
    "register": lambda catalog: catalog.register("x", "a.lance"),
    "rename": lambda catalog: catalog.rename("a", "z"),
    "undrop": lambda catalog: catalog.undrop("q"),
    "tag": lambda catalog: catalog.create_tag("a", "t"),
    "branch": lambda catalog: catalog.create_branch("a", "t"),
    "pin": lambda catalog: catalog.pin("p"),
}


class TestChanges:
    @pytest.mark.parametrize("change", CHANGES)
    def test_are_refused_and_name_adopt(self, made: Path, change: str) -> None:
        with Catalog.connect(made) as catalog:
            with pytest.raises(CommitRejected, match=r"found 2 tables without one .*`lance-namespace adopt`"):
                CHANGES[change](catalog)
            assert [str(name) for name in catalog.tables()] == ["a", "b"]
        assert not (made / "__manifest").exists()
        assert lance.dataset(made / "a.lance").count_rows() == 2

    def test_a_batch_that_was_planned_before_a_table_was_made_is_refused(self, tmp_path: Path) -> None:
        """The look beside the first flip decides, not what the process knew before."""
        root = tmp_path / "db"
        root.mkdir()

        class MadeBesideTheFlip(WrappedStore):
            """A client makes the table once the batch is planned: its own snapshot was brought up to date before."""

            looks = 0

            def _call(self, verb: str, path: str, request: Callable[[], Any]) -> Any:
                if (verb, path) == ("list", ""):
                    self.looks += 1
                    if self.looks == last:
                        lance.write_dataset(rows(1), root / "t.lance")
                return request()

        def change(store: WrappedStore) -> None:
            with closing(DirectoryNamespace(catalog=StoredCatalog(store, QUIET))) as namespace:
                namespace.write("create_namespace", {"id": ["n"]})

        last = 0
        counted = MadeBesideTheFlip(LocalStore(root, "none"))
        change(counted)
        last = counted.looks
        shutil.rmtree(root)
        root.mkdir()
        store = MadeBesideTheFlip(LocalStore(root, "none"))
        with pytest.raises(UnsupportedOperationError, match=r"found 1 table without one \('t.lance'\)"):
            change(store)
        assert not (root / "__manifest").exists()


class TestAdoption:
    def test_takes_all_of_them_in_one_flip(self, made: Path) -> None:
        with closing(DirectoryNamespace(root=str(made))) as namespace:
            assert namespace.newest().version == 0
            adopted = namespace.adopt()
            assert adopted.tables == ((("a",), 2), (("b",), 1))
            assert (adopted.catalog_version, adopted.already_managed) == (1, False)
        with Catalog.connect(made) as catalog:
            catalog.append("a", rows(3))
            assert catalog.read("a")["id"].to_pylist() == [1, 2, 3]
            assert catalog.read("a", tag="first").num_rows == 1

    def test_by_another_process_is_seen_by_one_that_serves(self, made: Path) -> None:
        with Catalog.connect(made) as serving:
            assert len(serving.tables()) == 2
            with closing(DirectoryNamespace(root=str(made))) as namespace:
                namespace.adopt()
            serving.append("b", rows(8))
            assert serving.read("b").num_rows == 2

    @pytest.mark.parametrize(("name", "told"), [("a$b", "character '\\$'"), ("x\u200ey", "is not allowed")])
    def test_refuses_a_directory_whose_name_cannot_be_that_of_a_table(self, made: Path, name: str, told: str) -> None:
        lance.write_dataset(rows(1), made / f"{name}.lance")
        with closing(DirectoryNamespace(root=str(made))) as namespace:
            with pytest.raises(InvalidInputError, match=told):
                namespace.adopt()
            with pytest.raises(UnsupportedOperationError, match="adopt"):
                namespace.write("create_namespace", {"id": ["n"]})

    def test_refuses_a_link_that_leads_out_of_the_root(self, made: Path, tmp_path: Path) -> None:
        lance.write_dataset(rows(1), tmp_path / "elsewhere" / "t.lance")
        (made / "t.lance").symlink_to(tmp_path / "elsewhere" / "t.lance")
        with (
            closing(DirectoryNamespace(root=str(made))) as namespace,
            pytest.raises(InvalidInputError, match=r"t.lance.* leads out of the catalog's root"),
        ):
            namespace.adopt()
        allowed = str(tmp_path / "elsewhere")
        with closing(DirectoryNamespace(root=str(made), allowed_locations=allowed)) as namespace:
            assert len(namespace.adopt().tables) == 3

    def test_refuses_two_names_of_one_place(self, made: Path, tmp_path: Path) -> None:
        lance.write_dataset(rows(1), tmp_path / "elsewhere")
        (made / "c.lance").symlink_to(tmp_path / "elsewhere")
        (made / "d.lance").symlink_to(tmp_path / "elsewhere")
        with closing(DirectoryNamespace(root=str(made), allowed_locations=str(tmp_path))) as namespace:
            with pytest.raises(InvalidInputError, match=r"to where '[cd].lance' does, that of another table"):
                namespace.adopt()
            (made / "d.lance").unlink()
            (made / "d.lance").symlink_to(made / "a.lance")
            with pytest.raises(InvalidInputError, match=r"'d.lance' leads to 'a.lance' by a symbolic link"):
                namespace.adopt()
            (made / "d.lance").unlink()
            assert len(namespace.adopt().tables) == 3

    def test_of_a_managed_catalog_names_what_has_no_row(self, made: Path) -> None:
        with closing(DirectoryNamespace(root=str(made))) as namespace:
            namespace.adopt()
            namespace.write("deregister_table", {"id": ["b"]})
            lance.write_dataset(rows(1), made / "late.lance")
            again = namespace.adopt()
            assert again.already_managed
            assert [table.location for table in again.unlisted] == ["late.lance"]
        with Catalog.connect(made) as catalog:
            catalog.register("late", str(made / "late.lance"))
            assert catalog.read("late").num_rows == 1


def test_a_root_whose_catalog_is_lost_is_damaged_and_gets_no_other_one(tmp_path: Path) -> None:
    with Catalog.connect(tmp_path) as catalog:
        catalog.create("t", rows(1))
    shutil.rmtree(tmp_path / "__manifest")
    before = files(tmp_path)
    with closing(DirectoryNamespace(root=str(tmp_path))) as namespace:
        with pytest.raises(InternalError, match="expected the catalog that made the table at"):
            namespace.read("list_all_tables", {})
        with pytest.raises(InternalError, match="nothing was done: the catalog is damaged"):
            namespace.write("create_namespace", {"id": ["n"]})
    assert files(tmp_path) == before


def test_the_first_commit_of_two_processes_at_once_makes_one_catalog(tmp_path: Path) -> None:
    """One wins the slot, and its table stands at the root when the other looks beside its own flip."""
    one, other = (DirectoryNamespace(root=str(tmp_path), sweep_interval_seconds="0") for _ in range(2))
    with closing(one), closing(other):
        assert (one.newest().version, other.newest().version) == (0, 0)
        with Catalog.connect(one) as catalog:
            catalog.create("t", rows(1))
        other.write("create_namespace", {"id": ["n"]})
        assert other.newest().version == 2
        assert one.newest().table(("t",)) is not None


@pytest.mark.services
def test_tables_in_a_bucket(moto_server: Emulator) -> None:
    root, options = moto_server.new_root(), moto_server.storage_options
    lance.write_dataset(rows(1, 2), f"{root}/t.lance", storage_options=options)
    with Catalog.connect(root, storage_options=options) as catalog:
        assert [str(name) for name in catalog.tables()] == ["t"]
        assert catalog.read("t").num_rows == 2
        with pytest.raises(CommitRejected, match="`lance-namespace adopt`"):
            catalog.create("other", rows(1))
        target: Any = catalog._owned
        target.adopt()
        catalog.append("t", rows(3))
        assert catalog.read("t").num_rows == 3
