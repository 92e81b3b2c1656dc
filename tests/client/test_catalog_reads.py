"""Reads and single changes of a catalog outside of a transaction."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from namespace_client import (
    AlreadyExists,
    BranchDescription,
    Catalog,
    CatalogView,
    ClientError,
    CommitRejected,
    InvalidCall,
    Name,
    NotFound,
    TagDescription,
)
from namespace_client.names import absolute
from table_data.errors import ColumnNotFound
from tests.client.scene import SCHEMA, Scene, rows


def ids(read: pa.Table) -> list[int]:
    return sorted(read.column("id").to_pylist())


class TestNames:
    @pytest.mark.parametrize(
        ("name", "path"),
        [
            ("t", ("d", "t")),
            ("n.t", ("d", "n", "t")),
            ("n$t", ("d", "n", "t")),
            ("n.`a.b`", ("d", "n", "a.b")),
            (("n", "t"), ("n", "t")),
            (["a.b"], ("a.b",)),
        ],
    )
    def test_a_string_is_a_dotted_name_below_the_default_namespace_and_a_sequence_is_not(
        self, name: str | tuple[str, ...], path: tuple[str, ...]
    ) -> None:
        assert absolute(name, ("d",)) == path

    @pytest.mark.parametrize("name", ["", ".", "a.", ".a", "a..b", "`a", (), ("",), (1,)])
    def test_anything_else_is_refused(self, name: object) -> None:
        with pytest.raises(InvalidCall, match="expected a name"):
            absolute(name, ("d",))  # type: ignore[arg-type]

    def test_a_path_as_text_is_a_name_again(self) -> None:
        path = Name(("n", "a.b", "t"))
        assert str(path) == "n.`a.b`.t"
        assert absolute(str(path)) == path

    def test_names_are_the_same_in_transactions_and_outside(self, scene: Scene) -> None:
        with Catalog.connect(scene.target, namespace=scene.namespace) as catalog:
            catalog.create_namespace("eu")
            with catalog.begin() as tx:
                tx.create("eu.orders", rows(1))
            assert ids(catalog.read("eu.orders")) == [1]
            assert catalog.tables("eu") == [(scene.namespace, "eu", "orders")]
            assert ids(catalog.read((scene.namespace, "eu", "orders"))) == [1]


class TestLists:
    def test_namespaces_and_tables_of_one_level_and_of_all(self, scene: Scene) -> None:
        catalog, top = scene.catalog, scene.namespace
        for namespace in ("b", "a", "a.c"):
            catalog.create_namespace(namespace)
        for table in ("t", "a.u", "a.c.v"):
            catalog.create(table, rows(1))
        assert catalog.namespaces() == [(top, "a"), (top, "b")]
        assert catalog.namespaces(recursive=True) == [(top, "a"), (top, "a", "c"), (top, "b")]
        assert catalog.tables() == [(top, "t")]
        assert [str(table) for table in catalog.tables(recursive=True)] == [f"{top}.a.c.v", f"{top}.a.u", f"{top}.t"]
        assert catalog.tables("a") == [(top, "a", "u")]
        assert (top,) in catalog.namespaces(())

    def test_tables_are_found_by_words_of_their_paths(self, scene: Scene) -> None:
        catalog, top = scene.catalog, scene.namespace
        catalog.create_namespace("eu")
        before = catalog.access.state().version
        for table in ("orders", "eu.old_orders", "eu.Orders_2"):
            catalog.create(table, rows(1))
        found = catalog.find(f"{top} orders")
        assert [*found] == [(top, "orders"), (top, "eu", "Orders_2"), (top, "eu", "old_orders")]
        assert not found.more
        assert repr(catalog.find(f"{top}.orders", limit=1)) == f"{top}.orders\n... and more"
        assert [*catalog.find(f"ORD eu.old {top}")] == [(top, "eu", "old_orders")]
        assert [*catalog.at(before).find(f"{top} orders")] == []
        catalog.drop("orders")
        assert len(catalog.find(f"{top} orders")) == 2
        with pytest.raises(InvalidCall, match="limit"):
            catalog.find("orders", limit=0)

    @pytest.mark.parametrize("recursive", [False, True])
    def test_a_namespace_that_is_not_there_is_an_error(self, scene: Scene, recursive: bool) -> None:
        with pytest.raises(NotFound, match="nowhere"):
            scene.catalog.tables("nowhere", recursive=recursive)


class TestDescribe:
    def test_it_tells_schema_size_references_and_indices(self, scene: Scene) -> None:
        scene.make("t", *range(15))
        with scene.catalog.begin() as tx:
            tx.delete("t", "id < 3")
        with scene.catalog.begin() as tx:
            tx.create_index("t", "id", "BTREE")
        scene.catalog.create_tag("t", "first", version=1)
        scene.catalog.create_branch("t", "dev", from_version=2)

        found = scene.catalog.describe("t")

        assert found.name == (scene.namespace, "t")
        assert found.schema == SCHEMA
        assert (found.version, found.rows, found.fragments) == (scene.version(), 12, 2)
        dataset = scene.open()
        assert found.bytes == sum(
            file.file_size_bytes for fragment in dataset.get_fragments() for file in fragment.data_files()
        )
        assert found.tags == {"first": TagDescription(1)}
        assert found.branches == {"dev": BranchDescription(2)}
        [index] = found.indices
        assert (index.columns, index.kind, index.rows) == (("id",), "BTree", 12)
        assert index.bytes
        assert found.committed_at is not None
        assert abs(found.committed_at - datetime.now(UTC)) < timedelta(minutes=5)

    def test_a_branch_a_tag_and_a_version(self, scene: Scene) -> None:
        scene.make("t", 1)
        scene.catalog.create_branch("t", "dev")
        with scene.catalog.begin() as tx:
            tx.append("t", rows(2, 3), branch="dev")
        scene.catalog.create_tag("t", "old", version=1)
        scene.catalog.create_tag("t", "new", branch="dev")
        with scene.catalog.begin() as tx:
            tx.append("t", rows(4))
        assert scene.catalog.describe("t", branch="dev").rows == 3
        assert scene.catalog.describe("t", tag="new").branch == "dev"
        assert ids(scene.catalog.read("t", tag="old")) == [1]
        assert ids(scene.catalog.read("t", tag="new")) == [1, 2, 3]
        assert ids(scene.catalog.read("t", version=1)) == [1]
        assert ids(scene.catalog.read("t")) == [1, 4]

    def test_a_declared_table_has_no_version(self, scene: Scene) -> None:
        scene.stock().declare_table(request_of("t", scene))
        found = scene.catalog.describe("t")
        assert (found.version, found.rows, found.schema) == (None, None, None)
        with pytest.raises(InvalidCall, match="no version yet"):
            scene.catalog.read("t")


class TestRead:
    def test_columns_a_filter_and_a_limit(self, scene: Scene) -> None:
        scene.make("t", *range(9))
        found = scene.catalog.read("t", ["id"], filter="id > 4", limit=2)
        assert found.column_names == ["id"]
        assert found.num_rows == 2
        assert min(ids(found)) > 4

    @pytest.mark.parametrize(
        ("read", "kind"),
        [
            (lambda catalog: catalog.read("absent"), NotFound),
            (lambda catalog: catalog.read("t", version=99), NotFound),
            (lambda catalog: catalog.read("t", branch="absent"), NotFound),
            (lambda catalog: catalog.read("t", tag="absent"), NotFound),
            (lambda catalog: catalog.read("t", tag="x", version=1), InvalidCall),
            (lambda catalog: catalog.read("t", ["absent"]), ColumnNotFound),
            (lambda catalog: catalog.read("t", filter="id >"), InvalidCall),
            (lambda catalog: catalog.describe("absent"), NotFound),
        ],
    )
    def test_what_cannot_be_read_is_an_error_of_the_client_without_places_in_sources(
        self, scene: Scene, read: Callable[[Catalog], object], kind: type[ClientError]
    ) -> None:
        scene.make("t", 1)
        with pytest.raises(kind) as raised:
            read(scene.catalog)
        assert ".rs" not in str(raised.value)


class TestViews:
    def test_a_view_is_of_its_version_whatever_happens_after_it(self, scene: Scene) -> None:
        scene.make("t", 1)
        view = scene.catalog.at(scene.catalog_version())
        with scene.catalog.begin() as tx:
            tx.append("t", rows(2))
            tx.create("u", rows(1))
        scene.catalog.rename("t", "s")
        assert ids(view.read("t")) == [1]
        assert view.tables() == [(scene.namespace, "t")]
        assert view.describe("t").rows == 1
        with pytest.raises(NotFound, match=f"at catalog version {view.version}"):
            view.read("u")
        assert ids(scene.catalog.read("s")) == [1, 2]

    def test_by_time_it_is_the_newest_version_of_then(self, scene: Scene) -> None:
        moments: list[tuple[datetime, int]] = []
        for name in "abc":
            scene.make(name, 1)
            moments.append((datetime.now(UTC), scene.catalog_version()))
            time.sleep(0.002)
        for moment, version in moments:
            assert scene.catalog.at(moment).version == version
        local = moments[1][0].astimezone().replace(tzinfo=None)
        assert scene.catalog.at(local).version == moments[1][1]
        with pytest.raises(NotFound, match="no catalog version of"):
            scene.catalog.at(datetime(2001, 1, 1, tzinfo=UTC))

    def test_by_the_name_of_a_pin(self, scene: Scene) -> None:
        scene.make("t", 1)
        name = f"pin-{scene.namespace}"
        version = scene.catalog.pin(name)
        assert version is not None
        try:
            assert scene.catalog.at(name).version == version
        finally:
            scene.catalog.unpin(name)
        with pytest.raises(NotFound, match="no pin"):
            scene.catalog.at(name)

    @pytest.mark.parametrize("point", [0, 10**9, 1.5, True, None])
    def test_anything_else_is_refused(self, scene: Scene, point: int) -> None:
        with pytest.raises((NotFound, InvalidCall)):
            scene.catalog.at(point)

    def test_a_view_has_no_changes(self) -> None:
        assert not {"drop", "begin", "create"} & set(dir(CatalogView))


class TestChanges:
    def test_create_drop_and_undrop(self, scene: Scene) -> None:
        catalog = scene.catalog
        assert catalog.create("t", rows(1, 2)) == 2
        with pytest.raises(ClientError, match="exists"):
            catalog.create("t", rows(1))
        assert catalog.drop("t")
        with pytest.raises(NotFound):
            catalog.drop("t")
        assert not catalog.drop("t", missing_ok=True)
        catalog.undrop("t", "back")
        assert ids(catalog.read("back")) == [1, 2]

    def test_namespaces(self, scene: Scene) -> None:
        catalog = scene.catalog
        assert catalog.create_namespace("n", properties={"owner": "ada", "team": "a"})
        with pytest.raises(AlreadyExists):
            catalog.create_namespace("n")
        catalog.create("n.t", rows(1))
        with pytest.raises(ClientError, match="not empty"):
            catalog.drop_namespace("n")
        assert catalog.drop_namespace("n", cascade=True)
        assert catalog.namespaces() == []
        assert not catalog.drop_namespace("n", missing_ok=True)
        catalog.undrop_namespace("n")
        assert ids(catalog.read("n.t")) == [1]

    def test_a_namespace_that_may_be_there_has_the_properties_that_are_given(self, scene: Scene) -> None:
        catalog = scene.catalog
        own = {"owner": "ada", "team": "a"}
        assert catalog.create_namespace("n", properties=own, exist_ok=True)
        before = scene.catalog_version()
        for properties in (None, {}, {"team": "a"}, own):
            assert not catalog.create_namespace("n", properties=properties, exist_ok=True)
        for properties, said in (
            ({"owner": "bob"}, r"n is there: expected its property owner = 'bob', found 'ada'; nothing was changed"),
            ({"team": "a", "more": "x"}, r"n is there: expected its property more = 'x', found none; nothing was"),
        ):
            with pytest.raises(AlreadyExists, match=said) as refused:
                catalog.create_namespace("n", properties=properties, exist_ok=True)
            assert refused.value.code == 2
        assert catalog.access.namespace_properties((scene.namespace, "n")) == own
        assert scene.catalog_version() == before
        catalog.create("t", rows(1))
        with pytest.raises(AlreadyExists) as taken:
            catalog.create_namespace("t", exist_ok=True)
        assert taken.value.code == 5

    def test_a_rename_keeps_rows_and_may_move_to_another_namespace(self, scene: Scene) -> None:
        catalog = scene.catalog
        catalog.create_namespace("n")
        catalog.create("t", rows(1))
        catalog.rename("t", "n.u", message="move it")
        assert ids(catalog.read("n.u")) == [1]
        assert catalog.tables() == []
        with pytest.raises(InvalidCall, match="cannot be moved to the root"):
            catalog.rename("n.u", ("u",))

    def test_a_clone_begins_with_a_version_and_goes_on_by_itself(self, scene: Scene) -> None:
        scene.make("t", 1)
        catalog = scene.catalog
        catalog.create_tag("t", "good")
        catalog.append("t", rows(2))
        catalog.create_namespace("n")
        assert catalog.clone("t", "n.newest", message="for an experiment") == 2
        assert catalog.clone("t", "first", version=1) == 1
        assert catalog.clone("t", "tagged", tag="good") == 1
        assert catalog.history(limit=3)[-1].batches[0].message == "for an experiment"
        catalog.append("n.newest", rows(3))
        catalog.delete("t", "id = 1")
        assert ids(catalog.read("n.newest")) == [1, 2, 3]
        assert ids(catalog.read("first")) == ids(catalog.read("tagged")) == [1]
        catalog.drop("t", purge=True)
        assert ids(catalog.read("n.newest", version=2)) == [1, 2]

    def test_clones_that_are_refused(self, scene: Scene) -> None:
        scene.make("t", 1)
        catalog = scene.catalog
        catalog.clone("t", "u")
        with pytest.raises(AlreadyExists) as taken:
            catalog.clone("t", "u")
        assert taken.value.code == 5
        with pytest.raises(InvalidCall, match="expected one of them"):
            catalog.clone("t", "v", version=1, tag="good")
        absent: list[tuple[int, Callable[[], int]]] = [
            (1, lambda: catalog.clone("t", "nowhere.v")),
            (4, lambda: catalog.clone("s", "v")),
            (8, lambda: catalog.clone("t", "v", tag="none")),
            (11, lambda: catalog.clone("t", "v", version=7)),
        ]
        for code, clone in absent:
            with pytest.raises(NotFound) as missing:
                clone()
            assert missing.value.code == code
        assert [name[-1] for name in catalog.tables()] == ["t", "u"]

    def test_tags(self, scene: Scene) -> None:
        scene.make("t", 1)
        catalog = scene.catalog
        catalog.create_tag("t", "good")
        with pytest.raises(AlreadyExists):
            catalog.create_tag("t", "good")
        with catalog.begin() as tx:
            tx.append("t", rows(2))
        assert catalog.tags("t") == {"good": TagDescription(1)}
        catalog.move_tag("t", "good")
        assert catalog.tags("t") == {"good": TagDescription(2)}
        catalog.delete_tag("t", "good")
        assert catalog.tags("t") == {}
        with pytest.raises(NotFound):
            catalog.delete_tag("t", "good")

    def test_branches(self, scene: Scene) -> None:
        scene.make("t", 1)
        catalog = scene.catalog
        catalog.create_branch("t", "dev")
        catalog.create_branch("t", "sub", from_branch="dev")
        assert catalog.branches("t") == {"dev": BranchDescription(1), "sub": BranchDescription(1, "dev")}
        catalog.delete_branch("t", "sub")
        assert list(catalog.branches("t")) == ["dev"]
        with pytest.raises(NotFound):
            catalog.delete_branch("t", "sub")


class TestHistory:
    def test_it_tells_messages_changes_and_tables(self, scene: Scene) -> None:
        scene.make("t", 1)
        with scene.catalog.begin(message="two at once") as tx:
            tx.append("t", rows(2))
            tx.create("u", rows(1))
        version = scene.catalog_version()
        scene.catalog.rename("u", "w", message="a better name")

        told = [batch for entry in scene.catalog.history(20) for batch in entry.batches if batch.message]
        renamed, both = told[:2]

        assert (both.message, renamed.message) == ("two at once", "a better name")
        t, u, w = ((scene.namespace, name) for name in "tuw")
        assert both.tables == (t, u)
        assert [(change.operation, change.name, change.version, change.change) for change in both.changes] == [
            ("commit_transaction", t, 2, "Append"),
            ("declare_table", u, None, None),
            ("commit_transaction", u, 1, "Overwrite"),
        ]
        assert renamed.tables == (u, w)
        assert str(renamed.changes[0]) == f"rename_table {scene.namespace}.u to {scene.namespace}.w"
        assert version in {entry.version for entry in scene.catalog.history(20) if both in entry.batches}

    def test_a_limit_and_a_bound(self, scene: Scene) -> None:
        scene.make("t", 1)
        newest = scene.catalog_version()
        assert [entry.version for entry in scene.catalog.history(2)] == [newest, newest - 1]
        assert [entry.version for entry in scene.catalog.history(1, below=newest)] == [newest - 1]
        assert scene.catalog.history(0) == []
        for wrong in (-1, True, 1.5, "5", 2**63):
            with pytest.raises(InvalidCall, match="limit: expected a whole number from 0 to"):
                scene.catalog.history(wrong)  # type: ignore[arg-type]
            with pytest.raises(InvalidCall, match="below: expected a whole number from 0 to"):
                scene.catalog.history(below=wrong)  # type: ignore[arg-type]
        assert len(scene.catalog.history()) >= 2


def request_of(name: str, scene: Scene) -> object:
    from lance_namespace import DeclareTableRequest

    return DeclareTableRequest(id=[scene.namespace, name])


def test_limits_that_mean_nothing_are_refused(scene: Scene) -> None:
    scene.make("t", 1, 2, 3)
    for wrong in (-1, 1.5, "5", 2**64):
        with pytest.raises(InvalidCall):
            scene.catalog.read("t", limit=wrong)  # type: ignore[arg-type]
        with scene.catalog.begin() as tx:
            for options in ({"limit": wrong}, {"limit": 1, "offset": wrong}):
                with pytest.raises(InvalidCall):
                    tx.table("t").to_table(**options)
    for attempts in (0, -1):
        with pytest.raises(InvalidCall, match="attempts: expected a whole number from 1 to"):
            scene.catalog.run(lambda tx: None, attempts=attempts)
    assert scene.catalog.read("t", limit=0).num_rows == 0


class TestSingleChanges:
    """Rows are changed outside of a transaction as in one: each call is one batch."""

    def test_each_is_one_batch(self, scene: Scene) -> None:
        catalog = scene.catalog
        catalog.create("single", rows(1, 2))
        before = catalog.access.state().version
        assert catalog.append("single", rows(3), message="more") == 1
        assert catalog.update("single", {"v": "v + 10"}, where="id = 3") == 1
        merged = catalog.merge("single", rows(3, 4), on="id")
        assert (merged.inserted, merged.updated, merged.deleted) == (1, 1, 0)
        assert catalog.delete("single", "id = 1") == 1
        assert ids(catalog.read("single")) == [2, 3, 4]
        assert catalog.overwrite("single", rows(9)) == 1
        assert ids(catalog.read("single")) == [9]
        assert catalog.access.state().version == before + 5
        assert catalog.history(limit=5)[-1].batches[0].message == "more"

    def test_a_search_is_by_vector_or_by_words(self, scene: Scene) -> None:
        catalog = scene.catalog
        found = {"id": [1, 2], "place": [[0.0, 1.0], [1.0, 0.0]], "text": ["red tea", "green rice"]}
        catalog.create("searched", found, vectors={"place": 2})
        nearest = catalog.search("searched", [0.9, 0.1], k=1)
        assert (nearest["id"].to_pylist(), "_distance" in nearest.column_names) == ([2], True)
        assert catalog.search("searched", [0.9, 0.1], columns=["id"], filter="id = 1")["id"].to_pylist() == [1]
        with catalog.begin() as tx:
            tx.create_index("searched", "text", "INVERTED")
        assert catalog.search("searched", "rice", column="text", columns=["id"])["id"].to_pylist() == [2]
        catalog.create("plain", {"id": [1]})
        with pytest.raises(InvalidCall, match="column: expected one, found 0 columns of vectors"):
            catalog.search("plain", [1.0])
        for wrong in ([], [float("nan"), 1.0], [1.0, float("inf")], None, ["a", "b"]):
            with pytest.raises(InvalidCall, match="query: expected "):
                catalog.search("searched", wrong)
        for k in (0, -1, True, 1.5, 2**63):
            with pytest.raises(InvalidCall, match="k: expected a whole number from 1 "):
                catalog.search("searched", [1.0, 0.0], k=k)  # type: ignore[arg-type]

    def test_a_dataset_is_registered_by_any_spelling_of_its_place(self, scene: Scene, tmp_path: Path) -> None:
        with Catalog.connect(tmp_path / "own root") as catalog:
            catalog.create_namespace("n")
            root = tmp_path / "own root"
            for number, place in enumerate(("a.lance", str(root / "b.lance"), (root / "c d.lance").as_uri())):
                lance.write_dataset(rows(number), root / ("c d.lance" if number == 2 else f"{'ab'[number]}.lance"))
                catalog.register(f"n.t{number}", place)
                assert ids(catalog.read(f"n.t{number}")) == [number]
            with pytest.raises(CommitRejected, match="relative to the catalog's root"):
                catalog.register("n.x", "/elsewhere/x.lance")

    def test_what_never_was_does_not_come_back(self, scene: Scene) -> None:
        with pytest.raises(NotFound):
            scene.catalog.undrop("nosuch")
        scene.catalog.create("gone", rows(1))
        scene.catalog.drop("gone")
        scene.catalog.create("gone", rows(2))
        with pytest.raises(AlreadyExists):
            scene.catalog.undrop("gone")
        scene.catalog.undrop("gone", "back")
        assert ids(scene.catalog.read("back")) == [1]

    def test_an_error_of_a_call_shows_no_frames_of_pylance(self, scene: Scene) -> None:
        scene.catalog.create("framed", rows(1))
        with pytest.raises(ColumnNotFound) as told:
            scene.catalog.read("framed", ["nosuch"])
        assert len("".join(traceback.format_exception(told.value))) < 2_500
