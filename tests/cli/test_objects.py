"""Namespaces, tables, tags and branches: listed, shown, made, renamed and dropped."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from namespace_client import Catalog
from tests.cli.commands import invoke, parsed, printed, refused
from tests.cli.conftest import Shop


class TestWhichCatalog:
    def test_none_and_both_are_refused(self) -> None:
        assert refused("ls").endswith("found none")
        assert "found --url and --root" in refused("ls", "--url", "http://127.0.0.1:1", "--root", "/r")

    def test_the_environment_names_one_and_an_option_another(self, shop: Shop, tmp_path: Path) -> None:
        variable = {"--url": "LANCE_NAMESPACE_URL", "--root": "LANCE_NAMESPACE_ROOT"}[shop.options[0]]
        assert f"{shop.namespace}/" in printed("ls", **{variable: shop.options[1]}).splitlines()
        other = {"LANCE_NAMESPACE_URL": "http://127.0.0.1:1", "LANCE_NAMESPACE_ROOT": str(tmp_path)}
        assert f"{shop.namespace}/" in printed("ls", *shop.options, **other).splitlines()

    def test_a_mistyped_root_is_refused_and_not_made(self, tmp_path: Path) -> None:
        root = str(tmp_path / "mistyped")
        for command in (("ls",), ("show", "t"), ("drop", "t"), ("log",), ("rename", "t", "u"), ("tag", "list", "t")):
            assert refused(*command, "--root", root) == f"{root}: expected a catalog, found none"
        assert list(tmp_path.iterdir()) == []

    def test_create_makes_a_catalog_at_a_new_root(self, tmp_path: Path) -> None:
        root = str(tmp_path / "new")
        assert printed("create", "ws", "--root", root) == "ws: created\n"
        assert printed("ls", "--root", root) == "ws/\n"

    def test_a_server_that_does_not_answer_has_a_status_of_its_own(self) -> None:
        assert "http://127.0.0.1:1" in refused("ls", "--url", "http://127.0.0.1:1", status=5)

    def test_an_address_and_a_root_in_the_place_of_the_other_are_told(self) -> None:
        assert "expected the URL of a server, of scheme http or https" in refused("ls", "--url", "127.0.0.1:2333")
        assert "a server goes with --url" in refused("ls", "--root", "http://127.0.0.1:2333")

    def test_a_key_is_sent(self, tmp_path: Path) -> None:
        from tests.server.servers import ServerProcess

        with ServerProcess(tmp_path / "catalog", log=tmp_path / "log", keys={"first-secret": "ann"}) as server:
            refused("ls", "--url", server.url)
            printed("create", "ws", "--url", server.url, "--api-key", "first-secret", "-m", "first")
            printed("create", "xs", "--url", server.url, "--token", "first-secret")
            found = parsed("log", "--url", server.url, LANCE_NAMESPACE_API_KEY="first-secret")
        assert [batch["principal"] for version in found for batch in version["batches"]] == ["ann", "ann"]
        assert found[-1]["batches"][0]["message"] == "first"


class TestLs:
    def test_names(self, shop: Shop, people: pa.Table) -> None:
        with shop.catalog() as catalog:
            catalog.create_namespace("eu")
        shop.make("t", people)
        shop.make("eu.u", people)
        eu, t, u = (shop.name(name) for name in ("eu", "t", "eu.u"))
        assert shop("ls", shop.namespace).splitlines() == [f"{eu}/", t]
        assert shop("ls", shop.namespace, "-R").splitlines() == [f"{eu}/", u, t]
        assert shop.parsed("ls", shop.namespace) == [
            {"name": eu, "kind": "namespace"},
            {"name": t, "kind": "table"},
        ]

    def test_long(self, shop: Shop, people: pa.Table) -> None:
        name = shop.make("t", people)
        head, line = shop("ls", "-l", shop.namespace).splitlines()
        assert head.split() == ["name", "version", "rows", "size", "fragments", "changed"]
        assert line.split()[:3] == [name, "1", "3"]
        [found] = shop.parsed("ls", "-l", shop.namespace)
        assert (found["rows"], found["version"], found["fragments"]) == (3, 1, 1)
        assert found["bytes"] > 0
        assert found["changed"].endswith("+00:00")

    def test_as_it_was(self, shop: Shop, people: pa.Table) -> None:
        before = shop.version()
        shop.make("t", people)
        assert shop("ls", shop.namespace, "--at", str(before)) == ""
        assert shop("ls", shop.namespace) != ""

    def test_a_namespace_that_is_not_there(self, shop: Shop) -> None:
        assert "nowhere" in shop.refused("ls", "nowhere")


class TestShow:
    def test_a_table(self, shop: Shop, people: pa.Table) -> None:
        name = shop.make("t", people)
        with shop.catalog() as catalog:
            catalog.create_tag("t", "first")
            catalog.create_branch("t", "dev")
            with catalog.begin() as tx:
                tx.create_index("t", "id", "BTREE")
        text = shop("show", name)
        for part in ("schema", "id      int32   yes", "id_idx  id       BTree", "first        1  main", "eve"):
            assert part in text, text
        found = shop.parsed("show", name, "--rows", "2")
        assert found["schema"][0] == {"name": "id", "type": "int32", "nullable": True}
        assert found["tags"] == {"first": {"version": 1, "branch": None}}
        assert list(found["branches"]) == ["dev"]
        assert [index["name"] for index in found["indices"]] == ["id_idx"]
        assert found["first_rows"] == [{"id": 1, "name": "ann"}, {"id": 2, "name": "bob"}]
        assert "first_rows" not in shop.parsed("show", name, "--rows", "0")

    def test_a_version(self, shop: Shop, people: pa.Table) -> None:
        name = shop.make("t", people)
        with shop.catalog() as catalog, catalog.begin() as tx:
            tx.append("t", people)
        assert shop.parsed("show", name)["rows"] == 6
        assert shop.parsed("show", name, "--version", "1")["rows"] == 3

    def test_the_catalog(self, shop: Shop) -> None:
        found = shop.parsed("show")
        assert found["version"] == shop.version()
        assert found["root"].endswith("/catalog")
        assert "tables" in shop("show")


class TestCreate:
    def test_a_table_with_the_schema_of_a_json_file(self, shop: Shop) -> None:
        schema = shop.home / "schema.json"
        vector = {"type": "fixed_size_list", "length": 2, "fields": [{"name": "item", "type": {"type": "float32"}}]}
        schema.write_text(json.dumps({"id": "int64", "at": "timestamp", "v": vector}))
        shop("create", shop.name("a.t"), "--schema", str(schema), "--parents", "--property", "owner=ann")
        found = shop.parsed("show", shop.name("a.t"))
        types = {column["name"]: column["type"] for column in found["schema"]}
        assert (types["id"], types["at"]) == ("int64", "timestamp[us]")
        assert types["v"].startswith("fixed_size_list<item: float")
        assert found["properties"]["owner"] == "ann"
        assert found["rows"] == 0

    def test_what_is_wrong_is_said(self, shop: Shop) -> None:
        schema = shop.home / "schema.json"
        schema.write_text('{"id": "quux"}')
        assert "column id" in shop.refused("create", shop.name("t"), "--schema", str(schema))
        schema.write_text("[]")
        assert "expected a JSON object" in shop.refused("create", shop.name("t"), "--schema", str(schema))
        assert "exist" in shop.refused("create", shop.namespace)
        assert shop("create", shop.namespace, "--exist-ok") == f"{shop.namespace}: was there\n"
        assert "expected NAME=VALUE" in shop.refused("create", "x", "--property", "owner")
        twice = shop.refused("create", "x", "--property", "owner=ann", "--property", "owner=bob")
        assert "--property owner: expected one value, found two" in twice


class TestDrop:
    def test_a_table_goes_and_comes_back(self, shop: Shop, people: pa.Table) -> None:
        name = shop.make("t", people)
        assert shop("drop", name, "-m", "by mistake") == f"{name}: dropped\n"
        assert shop("ls", shop.namespace) == ""
        assert name in shop.refused("drop", name).replace("$", ".")
        assert shop("drop", name, "--missing-ok") == f"{name}: is not there\n"
        shop("undrop", name)
        assert shop("ls", shop.namespace) == f"{name}\n"

    def test_what_cannot_come_back_has_to_be_confirmed(self, shop: Shop, people: pa.Table) -> None:
        name = shop.make("t", people)
        assert "expected --yes" in shop.refused("drop", name, "--purge")
        assert "expected --yes" in shop.refused("drop", shop.namespace, "--namespace", "--cascade")
        assert shop("ls", shop.namespace) == f"{name}\n"
        shop("drop", shop.namespace, "--namespace", "--cascade", "--yes")
        assert f"{shop.namespace}/" not in shop("ls").splitlines()

    def test_a_namespace_that_is_not_empty_stays(self, shop: Shop, people: pa.Table) -> None:
        shop.make("t", people)
        assert "empty" in shop.refused("drop", shop.namespace, "--namespace")
        assert "--cascade: expected with --namespace" in shop.refused("drop", "t", "--cascade")


def test_rename(shop: Shop, people: pa.Table) -> None:
    name = shop.make("t", people)
    shop("rename", name, shop.name("u"), "-m", "better")
    assert shop("ls", shop.namespace) == f"{shop.name('u')}\n"
    assert shop.parsed("show", shop.name("u"))["rows"] == 3


def test_clone(shop: Shop, people: pa.Table) -> None:
    name = shop.make("t", people)
    with shop.catalog() as catalog:
        catalog.append("t", people)
    assert shop("clone", name, shop.name("u"), "--version", "1") == (
        f"{shop.name('u')}: begins with version 1 of {name}\n"
    )
    assert shop.parsed("show", shop.name("u"))["rows"] == 3
    assert shop.parsed("clone", name, shop.name("v"))["version"] == 2
    assert "expected one of them" in shop.refused("clone", name, shop.name("w"), "--version", "1", "--tag", "a")


def test_tags(shop: Shop, people: pa.Table) -> None:
    name = shop.make("t", people)
    with shop.catalog() as catalog, catalog.begin() as tx:
        tx.append("t", people)
    shop("tag", "create", name, "old", "--version", "1")
    assert shop.parsed("tag", "list", name) == [{"name": "old", "version": 1, "branch": None}]
    shop("tag", "move", name, "old")
    assert shop("tag", "list", name).splitlines()[1].split() == ["old", "2", "main"]
    assert shop.parsed("read", name, "--tag", "old", "--limit", "9").__len__() == 6
    shop("tag", "delete", name, "old")
    assert shop.parsed("tag", "list", name) == []
    assert "old" in shop.refused("tag", "delete", name, "old")


def test_branches(shop: Shop, people: pa.Table) -> None:
    name = shop.make("t", people)
    shop("branch", "create", name, "dev", "-m", "try")
    [found] = shop.parsed("branch", "list", name)
    assert (found["name"], found["parent_version"]) == ("dev", 1)
    with shop.catalog() as catalog, catalog.begin() as tx:
        tx.append("t", people, branch="dev")
    assert len(shop.parsed("read", name, "--branch", "dev")) == 6
    assert shop("branch", "list", name).splitlines()[1].split() == ["dev", "1", "main"]
    shop("branch", "delete", name, "dev")
    assert shop.parsed("branch", "list", name) == []


@pytest.mark.parametrize("name", ["", "a..b", "."])
def test_names_that_are_none_are_refused(shop_root: str, name: str) -> None:
    with Catalog.connect(shop_root) as catalog:
        catalog.create_namespace("n", exist_ok=True)
    assert "expected a name" in refused("show", name, "--root", shop_root)


def test_help_of_a_group_names_its_commands() -> None:
    assert "move" in invoke("tag", "--help").stdout
