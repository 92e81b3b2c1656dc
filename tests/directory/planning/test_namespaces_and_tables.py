"""Namespaces and tables: modes, cascades, renames, pages, pins, and the in-process door."""

from __future__ import annotations

from pathlib import Path

import lance
import lance_namespace
import pytest
from lance_namespace import (
    BatchCommitTablesRequest,
    CommitTableOperation,
    CreateNamespaceRequest,
    DeclareTableRequest,
    DescribeTableRequest,
    ListTablesRequest,
)
from lance_namespace.errors import (
    InvalidInputError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NamespaceNotFoundError,
    TableAlreadyExistsError,
    TableBranchNotFoundError,
    TableNotFoundError,
    TableTagNotFoundError,
    TableVersionNotFoundError,
    UnsupportedOperationError,
)

from tests.directory.tables import Ground, rows


def test_connect_by_class_path(tmp_path: Path) -> None:
    namespace = lance_namespace.connect(
        "namespace_server.directory.namespace.DirectoryNamespace",
        {"root": str(tmp_path / "root"), "durability": "none", "sweep_interval_seconds": "0"},
    )
    namespace.create_namespace(CreateNamespaceRequest(id=["g"]))
    lance.write_dataset(rows(0, 3), namespace_client=namespace, table_id=["g", "t"], mode="create")
    request = BatchCommitTablesRequest(
        operations=[CommitTableOperation(declare_table=DeclareTableRequest(id=["g", "u"]))]
    )

    answer = namespace.batch_commit_tables(request)

    assert answer.transaction_id
    assert answer.results[0].declare_table.managed_versioning
    assert namespace.list_tables(ListTablesRequest(id=["g"])).tables == ["t", "u"]
    described = namespace.describe_table(DescribeTableRequest(id=["g", "t"], load_detailed_metadata=True))
    assert described.version == 1
    assert [field.name for field in described.var_schema.fields] == ["id", "name"]
    assert lance.dataset(namespace_client=namespace, table_id=["g", "t"]).count_rows() == 3


def test_constructing_and_reading_write_nothing(tmp_path: Path) -> None:
    ground = Ground(tmp_path / "root")

    assert ground.read("list_namespaces", id=[]) == {"namespaces": []}
    assert ground.read("describe_catalog")["version"] == 0
    assert not (tmp_path / "root").exists()


@pytest.mark.parametrize("properties", [{}, {"root": "x", "nonsense": "1"}, {"root": "x", "durability": "maybe"}])
def test_properties_that_mean_nothing_are_refused(properties: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"root|unknown|durability"):
        lance_namespace.connect("namespace_server.directory.namespace.DirectoryNamespace", properties)


class TestCreateNamespace:
    def test_create_fails_when_it_exists(self, ground: Ground) -> None:
        with pytest.raises(NamespaceAlreadyExistsError):
            ground.make_namespace("g")

    @pytest.mark.parametrize("mode", ["exist_ok", "ExistOk", "EXISTOK"])
    def test_exist_ok_keeps_the_existing_namespace(self, ground: Ground, mode: str) -> None:
        ground.call("create_namespace", id=["p"], properties={"owner": "me"})
        before = ground.catalog.snapshot().version

        answer = ground.call("create_namespace", id=["p"], mode=mode, properties={"owner": "you"})

        assert answer["properties"] == {"owner": "me"}
        assert ground.catalog.snapshot().version == before

    def test_overwrite_drops_the_existing_namespace(self, ground: Ground) -> None:
        ground.make_table("g", "t")

        ground.call("create_namespace", id=["g"], mode="Overwrite", properties={"owner": "you"})

        assert ground.read("describe_namespace", id=["g"]) == {"properties": {"owner": "you"}}
        assert ground.read("list_tables", id=["g"]) == {"tables": []}

    def test_a_parent_must_exist_and_be_a_namespace(self, ground: Ground) -> None:
        ground.make_table("g", "t")
        with pytest.raises(NamespaceNotFoundError):
            ground.make_namespace("nowhere", "x")
        with pytest.raises(InvalidInputError, match=r"g\$t is a table"):
            ground.make_namespace("g", "t", "x")
        with pytest.raises(TableAlreadyExistsError):
            ground.make_namespace("g", "t")

    def test_an_unknown_mode_is_refused(self, ground: Ground) -> None:
        with pytest.raises(InvalidInputError, match="mode: expected one of"):
            ground.call("create_namespace", id=["x"], mode="perhaps")


class TestDropNamespace:
    def test_restrict_refuses_while_something_is_in_it(self, ground: Ground) -> None:
        ground.make_table("g", "t")
        with pytest.raises(NamespaceNotEmptyError):
            ground.call("drop_namespace", id=["g"])

    def test_cascade_takes_all_below_in_one_flip(self, ground: Ground) -> None:
        ground.make_namespace("g", "h")
        ground.make_table("g", "h", "t")
        ground.make_table("g", "u")
        ground.make_namespace("k")
        before = ground.catalog.snapshot().version

        ground.call("drop_namespace", id=["g"], behavior="Cascade")

        assert ground.catalog.snapshot().version == before + 1
        assert ground.read("list_namespaces", id=[]) == {"namespaces": ["k"]}
        assert ground.read("list_all_tables") == {"tables": []}

    def test_answers_the_properties(self, ground: Ground) -> None:
        ground.call("create_namespace", id=["p"], properties={"a": "b"})
        assert ground.call("drop_namespace", id=["p"])["properties"] == {"a": "b"}

    def test_skip_makes_absence_a_success(self, ground: Ground) -> None:
        with pytest.raises(NamespaceNotFoundError):
            ground.call("drop_namespace", id=["absent"])
        ground.call("drop_namespace", id=["absent"], mode="skip")

    def test_the_root_stays(self, ground: Ground) -> None:
        with pytest.raises(InvalidInputError):
            ground.call("drop_namespace", id=[])


class TestTables:
    def test_a_declared_table_is_told_from_a_created_one(self, ground: Ground) -> None:
        ground.call("declare_table", id=["g", "d"], properties={"kind": "node"})
        ground.make_table("g", "t")

        described = ground.read("describe_table", id=["g", "d"], check_declared=True)

        assert described["is_only_declared"] is True
        assert described["properties"] == {"kind": "node"}
        assert described["managed_versioning"] is True
        assert ground.read("describe_table", id=["g", "t"], check_declared=True)["is_only_declared"] is False
        assert ground.read("list_tables", id=["g"], include_declared=False) == {"tables": ["t"]}
        assert ground.read("list_all_tables", include_declared=False) == {"tables": ["g$t"]}

    def test_rename_keeps_location_and_history(self, ground: Ground) -> None:
        ground.make_table("g", "t")
        ground.write(["g", "t"], rows(3, 4))
        ground.make_namespace("h")
        location = ground.location(["g", "t"])

        ground.call("rename_table", id=["g", "t"], new_table_name="u", new_namespace_id=["h"])

        assert ground.location(["h", "u"]) == location
        assert ground.head(["h", "u"]) == 2
        with pytest.raises(TableNotFoundError):
            ground.read("describe_table", id=["g", "t"])
        ground.write(["h", "u"], rows(4, 5))
        assert ground.ids(["h", "u"]) == [0, 1, 2, 3, 4]

    def test_a_writer_that_staged_before_the_rename_commits_under_the_new_name(self, ground: Ground) -> None:
        ground.make_table("g", "t")
        staged = ground.stage(["g", "t"], rows(3, 4))
        ground.call("rename_table", id=["g", "t"], new_table_name="u")

        with pytest.raises(TableNotFoundError):
            ground.batch(staged)

        staged["create_table_version"]["id"] = ["g", "u"]
        ground.batch(staged)
        assert ground.ids(["g", "u"]) == [0, 1, 2, 3]

    def test_drop_takes_every_version_of_every_branch(self, ground: Ground) -> None:
        ground.make_table("g", "t")
        lance.dataset(namespace_client=ground.namespace, table_id=["g", "t"]).create_branch("dev")
        assert ground.head(["g", "t"], "dev") == 1

        answer = ground.call("drop_table", id=["g", "t"])

        assert answer["id"] == ["g", "t"]
        kinds = [entry for entry in ground.catalog.snapshot().entries() if "t" in getattr(entry, "table_id", ())]
        assert kinds == []

    def test_register_brings_versions_and_branches(self, ground: Ground) -> None:
        path = ground.root / "mine"
        made = lance.write_dataset(rows(0, 2), str(path))
        lance.write_dataset(rows(2, 3), str(path), mode="append")
        made.create_branch("dev")

        answer = ground.call("register_table", id=["g", "m"], location="mine", properties={"a": "b"})

        assert answer["properties"] == {"a": "b"}
        assert ground.head(["g", "m"]) == 2
        assert ground.head(["g", "m"], "dev") == 1
        ground.write(["g", "m"], rows(3, 4))
        assert ground.ids(["g", "m"]) == [0, 1, 2, 3]

    @pytest.mark.parametrize("location", ["s3://elsewhere/t", "/etc", "../t", "a/../../t", "__manifest", "_staging/x"])
    def test_locations_outside_the_root_are_refused(self, ground: Ground, location: str) -> None:
        with pytest.raises(InvalidInputError, match="location"):
            ground.call("register_table", id=["g", "m"], location=location)

    def test_describe_by_version_tag_and_branch(self, ground: Ground) -> None:
        ground.make_table("g", "t")
        ground.write(["g", "t"], rows(3, 4))
        dataset = lance.dataset(namespace_client=ground.namespace, table_id=["g", "t"])
        dataset.tags.create("first", 1)
        dataset.create_branch("dev")
        detailed = {"id": ["g", "t"], "load_detailed_metadata": True}

        assert ground.read("describe_table", **detailed)["version"] == 2
        assert ground.read("describe_table", **detailed, version=1)["version"] == 1
        assert ground.read("describe_table", **detailed, tag="first")["version"] == 1
        assert ground.read("describe_table", **detailed, branch="dev")["version"] == 2
        with pytest.raises(TableVersionNotFoundError):
            ground.read("describe_table", **detailed, version=9)
        with pytest.raises(TableTagNotFoundError):
            ground.read("describe_table", **detailed, tag="nope")
        with pytest.raises(TableBranchNotFoundError):
            ground.read("describe_table", **detailed, branch="nope")


def test_pages_are_in_byte_order_and_end_without_a_token(ground: Ground) -> None:
    names = ["B", "a", "aa", "é", "z"]
    for name in reversed(names):
        ground.make_namespace("g", name)

    seen: list[str] = []
    token = None
    for _ in range(10):
        body = ground.read("list_namespaces", id=["g"], limit=2, page_token=token)
        seen += body["namespaces"]
        token = body.get("page_token")
        if token is None:
            break

    assert seen == sorted(names, key=str.encode)
    assert ground.read("list_namespaces", id=["g"], limit=0) == {"namespaces": []}
    assert len(ground.read("list_namespaces", id=["g"], limit=-1)["namespaces"]) == 5


def test_versions_are_paged_both_ways(ground: Ground) -> None:
    ground.make_table("g", "t")
    for number in range(4):
        ground.write(["g", "t"], rows(10 + number, 11 + number))

    def pages(descending: bool) -> list[int]:
        seen, token = [], None
        while True:
            body = ground.read("list_table_versions", id=["g", "t"], limit=2, descending=descending, page_token=token)
            seen += [version["version"] for version in body["versions"]]
            token = body.get("page_token")
            if token is None:
                return seen

    assert pages(descending=False) == [1, 2, 3, 4, 5]
    assert pages(descending=True) == [5, 4, 3, 2, 1]


class TestSnapshotPins:
    def test_reads_at_one_catalog_version_are_mutually_consistent(self, ground: Ground) -> None:
        ground.make_table("g", "a")
        ground.make_table("g", "b")
        pin = ground.catalog.snapshot().version
        ground.batch(ground.stage(["g", "a"], rows(3, 4)), ground.stage(["g", "b"], rows(3, 4)))
        ground.call("drop_table", id=["g", "b"])

        answer = ground.namespace.read("list_table_versions", {"id": ["g", "b"]}, at=pin)

        assert answer.catalog_version == pin
        assert [version["version"] for version in answer.body["versions"]] == [1]
        pins = ground.read("describe_catalog_version", version=pin)["tables"]
        assert [(table["id"], table["version"]) for table in pins] == [(["g", "a"], 1), (["g", "b"], 1)]
        assert lance.dataset(pins[0]["location"], version=pins[0]["version"]).count_rows() == 3

    def test_a_catalog_version_that_is_not_there_is_404(self, ground: Ground) -> None:
        with pytest.raises(TableVersionNotFoundError, match="catalog version 999"):
            ground.namespace.read("list_tables", {"id": ["g"]}, at=999)

    def test_history_tells_which_batch_made_which_version(self, ground: Ground) -> None:
        answer = ground.namespace.write(
            "batch_commit_tables",
            {"operations": [{"declare_table": {"id": ["g", "d"]}}], "context": {"message": "hello"}},
        ).body

        newest = ground.read("list_catalog_versions", limit=1)

        [version] = newest["versions"]
        assert version["version"] == ground.catalog.snapshot().version
        [batch] = version["batches"]
        assert (batch["transaction_id"], batch["message"]) == (answer["transaction_id"], "hello")
        older = ground.read("list_catalog_versions", limit=5, page_token=newest["page_token"])["versions"]
        assert [entry["version"] for entry in older] == list(range(version["version"] - 1, 0, -1))


def test_a_root_of_stock_clients_is_read_as_it_is_and_written_after_adoption(tmp_path: Path) -> None:
    from lance.namespace import DirectoryNamespace as Stock

    root = tmp_path / "root"
    stock = Stock(root=str(root), dir_listing_enabled="false")
    stock.create_namespace(CreateNamespaceRequest(id=["g"]))
    lance.write_dataset(rows(0, 3), namespace_client=stock, table_id=["g", "t"], mode="create")
    lance.write_dataset(rows(3, 4), namespace_client=stock, table_id=["g", "t"], mode="append")
    ground = Ground(root)

    assert ground.read("list_tables", id=["g"]) == {"tables": ["t"]}
    assert "managed_versioning" not in ground.read("describe_table", id=["g", "t"])
    assert [v["version"] for v in ground.read("list_table_versions", id=["g", "t"])["versions"]] == [1, 2]
    with pytest.raises(UnsupportedOperationError, match="lance-namespace adopt"):
        ground.make_namespace("h")
    before = ground.catalog.snapshot().version

    adopted = ground.namespace.adopt()

    assert adopted.tables == ((("g", "t"), 2),)
    assert adopted.catalog_version == before + 1
    assert ground.namespace.adopt().already_managed
    ground.write(["g", "t"], rows(4, 5))
    assert ground.ids(["g", "t"]) == [0, 1, 2, 3, 4]
    with pytest.raises(UnsupportedOperationError, match=r"(?i)upgrade"):
        stock.create_namespace(CreateNamespaceRequest(id=["h"]))
