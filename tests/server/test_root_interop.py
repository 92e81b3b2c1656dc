"""One root, two implementations: stock pylance reads what we wrote, and we take over what stock pylance made."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lance
import lance_namespace as models
import orjson
import pyarrow as pa
import pytest
from lance.namespace import DirectoryNamespace as StockDirectory
from lance_namespace.errors import InvalidInputError, UnsupportedOperationError

from namespace_server.directory.namespace import DirectoryNamespace
from tests.server.servers import REPOSITORY, ServerProcess, path_of
from tests.server.stock import Stock, ids, rows, tree

MODES: dict[str, dict[str, str]] = {
    "default": {},
    "migration": {"dir_listing_to_manifest_migration_enabled": "true"},
    "no listing": {"dir_listing_enabled": "false"},
}


def _stream(data: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, data.schema) as writer:
        writer.write_table(data)
    return bytes(sink.getvalue())


# A root that the server wrote


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root written through the server, which has ended: `a` with `inner`, `t` (two versions) and `declared`; `r`."""
    home = tmp_path_factory.mktemp("ours")
    with ServerProcess(home / "root", log=home / "log") as server:
        stock = Stock(server.url, server.root)
        stock.make_namespace("a")
        stock.client.create_namespace(models.CreateNamespaceRequest(id=["a", "inner"], properties={"owner": "me"}))
        table = stock.make("a", "t")
        stock.write(table, rows(3, 5))
        stock.client.declare_table(models.DeclareTableRequest(id=["a", "declared"], properties={"kind": "node"}))
        stock.make("r", count=2)
    return home / "root"


@pytest.mark.parametrize("mode", MODES)
def test_stock_pylance_reads_the_root(ours: Path, mode: str) -> None:
    before = tree(ours)
    client = StockDirectory(root=str(ours), **MODES[mode])

    assert client.list_namespaces(models.ListNamespacesRequest(id=[])).namespaces == ["a"]
    assert client.list_namespaces(models.ListNamespacesRequest(id=["a"])).namespaces == ["inner"]
    inner = client.describe_namespace(models.DescribeNamespaceRequest(id=["a", "inner"]))
    assert inner.properties == {"owner": "me"}
    assert client.list_tables(models.ListTablesRequest(id=["a"])).tables == ["declared", "t"]
    described = client.describe_table(models.DescribeTableRequest(id=["a", "t"], load_detailed_metadata=True))
    assert (described.version, [field.name for field in described.var_schema.fields]) == (2, ["id", "name"])
    declared = client.describe_table(models.DescribeTableRequest(id=["a", "declared"], check_declared=True))
    assert (declared.is_only_declared, declared.properties) == (True, {"kind": "node"})
    assert client.count_table_rows(models.CountTableRowsRequest(id=["a", "t"])).count == 5
    opened = lance.dataset(namespace_client=client, table_id=["a", "t"])
    assert (opened.version, ids(opened)) == (2, [0, 1, 2, 3, 4])
    assert ids(opened.checkout_version(1)) == [0, 1, 2]
    opened.validate()
    if mode == "default":  # which lists directories called `<name>.lance` for tables of the root, and asks nothing else
        assert client.list_tables(models.ListTablesRequest(id=[])).tables == []
    else:
        assert client.list_tables(models.ListTablesRequest(id=[])).tables == ["r"]
        assert ids(lance.dataset(namespace_client=client, table_id=["r"])) == [0, 1]
    assert tree(ours) == before


def _requests(location: str) -> dict[str, Callable[[StockDirectory], object]]:
    """Everything by which a stock client changes a catalog."""
    data = _stream(rows(0, 2))
    return {
        "create_namespace": lambda c: c.create_namespace(models.CreateNamespaceRequest(id=["x"])),
        "drop_namespace": lambda c: c.drop_namespace(models.DropNamespaceRequest(id=["a", "inner"])),
        "create_table": lambda c: c.create_table(models.CreateTableRequest(id=["a", "new"]), data),
        "create_table of the root": lambda c: c.create_table(models.CreateTableRequest(id=["new"]), data),
        "overwrite_table": lambda c: c.create_table(models.CreateTableRequest(id=["a", "t"], mode="overwrite"), data),
        "declare_table": lambda c: c.declare_table(models.DeclareTableRequest(id=["a", "new"])),
        "declare_table of the root": lambda c: c.declare_table(models.DeclareTableRequest(id=["new"])),
        "register_table": lambda c: c.register_table(models.RegisterTableRequest(id=["a", "x"], location=location)),
        "deregister_table": lambda c: c.deregister_table(models.DeregisterTableRequest(id=["a", "t"])),
        "drop_table": lambda c: c.drop_table(models.DropTableRequest(id=["a", "t"])),
        "drop_table of the root": lambda c: c.drop_table(models.DropTableRequest(id=["r"])),
        "write_dataset": lambda c: lance.write_dataset(rows(0, 2), namespace_client=c, table_id=["a", "new"]),
    }


@pytest.mark.parametrize("mode", MODES)
def test_stock_pylance_is_told_to_upgrade_before_it_changes_the_root(ours: Path, mode: str) -> None:
    before = tree(ours)
    location = next(path.name for path in ours.iterdir() if path.name.endswith("_a$t"))

    for name, change in _requests(location).items():
        client = StockDirectory(root=str(ours), **MODES[mode])
        with pytest.raises(UnsupportedOperationError, match="Please upgrade Lance to modify this catalog"):
            change(client)
        assert tree(ours) == before, name


# A root that stock pylance made


class Made:
    """A root made by stock pylance, and where its tables are."""

    def __init__(self, root: Path) -> None:
        self.root = root
        client = StockDirectory(root=str(root))
        client.create_namespace(models.CreateNamespaceRequest(id=["a"], properties={"owner": "me"}))
        client.create_namespace(models.CreateNamespaceRequest(id=["a", "inner"]))
        request = models.CreateTableRequest(id=["a", "t"], properties={"kind": "node"})
        client.create_table(request, _stream(rows(0, 3)))
        client.insert_into_table(models.InsertIntoTableRequest(id=["a", "t"]), _stream(rows(3, 5)))
        opened = lance.dataset(namespace_client=client, table_id=["a", "t"])
        opened.create_branch("dev").insert(rows(10, 11))
        opened.tags.create("first", 1)
        client.declare_table(models.DeclareTableRequest(id=["a", "declared"]))
        client.create_table(models.CreateTableRequest(id=["r"]), _stream(rows(0, 2)))
        self.client = client

    def add_unlisted(self) -> None:
        """Root tables of clients that know no `__manifest`: one with two versions, and one that was deregistered."""
        for name in ("plain", "gone"):
            lance.write_dataset(rows(0, 1), str(self.root / f"{name}.lance"))
        lance.write_dataset(rows(1, 2), str(self.root / "plain.lance"), mode="append")
        (self.root / "gone.lance" / ".lance-deregistered").write_bytes(b"reserved")


@pytest.fixture
def theirs(tmp_path: Path) -> Made:
    return Made(tmp_path / "root")


@pytest.fixture
def served(theirs: Made, tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess(theirs.root, log=tmp_path / "log") as server:
        yield server


def _adopt(root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "namespace_server", "adopt", "--root", str(root), *options]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)


WRITES: list[tuple[str, dict[str, Any]]] = [
    ("/v1/namespace/new/create", {}),
    ("/v1/namespace/a%24inner/drop", {}),
    ("/v1/table/a%24new/declare", {}),
    ("/v1/table/a%24again/register", {"location": "r.lance"}),
    ("/v1/table/a%24t/deregister", {}),
    ("/v1/table/a%24t/drop", {}),
    ("/v1/table/a%24t/rename", {"new_table_name": "u"}),
    ("/v1/table/a%24t/version/delete", {"ranges": [{"start_version": 1, "end_version": 2}]}),
    ("/v1/table/batch-commit", {"operations": [{"deregister_table": {"id": ["a", "t"]}}]}),
    ("/v1/table/batch-commit", {"operations": [{"assert_table_version": {"id": ["a", "t"], "version": 2}}]}),
]


def test_a_root_of_stock_pylance_is_read_then_adopted_then_written(theirs: Made, served: ServerProcess) -> None:
    stock = Stock(served.url, served.root)
    before = tree(theirs.root)

    # served for reading
    assert served.call("GET", "/v1/catalog").body["managed"] is False
    assert stock.client.list_namespaces(models.ListNamespacesRequest(id=[])).namespaces == ["a"]
    namespace = stock.client.describe_namespace(models.DescribeNamespaceRequest(id=["a"]))
    assert namespace.properties == {"owner": "me"}
    assert stock.client.list_tables(models.ListTablesRequest(id=["a"])).tables == ["declared", "t"]
    assert stock.client.list_tables(models.ListTablesRequest(id=[])).tables == ["r"]
    described = stock.client.describe_table(models.DescribeTableRequest(id=["a", "t"]))
    assert (described.managed_versioning, described.properties) == (None, {"kind": "node"})
    assert stock.ids(["a", "t"]) == [0, 1, 2, 3, 4]
    assert stock.ids(["r"]) == [0, 1]
    assert [version["version"] for version in stock.listed(["a", "t"])] == [2, 1]
    assert [version["version"] for version in stock.listed(["a", "t"], "dev")] == [3, 2]

    # and refused for writing
    for path, body in WRITES:
        answer = served.call("POST", path, body)
        assert (answer.status, answer.code) == (406, 0), (path, answer.body)
        assert "lance-namespace adopt" in answer.body["error"]
    manifest = next((theirs.root / "r.lance" / "_versions").glob("*.manifest"))
    create = {"version": 2, "manifest_path": f"{str(manifest)[1:]}-0"}
    answer = served.call("POST", "/v1/table/r/version/create", create)
    assert (answer.status, answer.code) == (406, 0)
    assert tree(theirs.root, apart_from=["_audit"]) == before  # what was refused is recorded there

    # until it is adopted, while the server runs
    theirs.add_unlisted()
    adopted = _adopt(theirs.root)
    assert adopted.returncode == 0, adopted.stderr
    assert [line for line in adopted.stdout.splitlines() if line.startswith(("a$", "r", "plain"))] == [
        "a$declared: 0 versions",
        "a$t: 4 versions",
        "r: 1 version",
        "plain: 2 versions",
    ]

    assert served.call("GET", "/v1/catalog").body["managed"] is True
    stock.check(["a", "t"], 2)
    stock.check(["a", "t"], 3, "dev")
    stock.check(["plain"], 2)
    stock.check(["r"], 1)
    assert stock.client.list_tables(models.ListTablesRequest(id=[])).tables == ["plain", "r"]
    described = stock.client.describe_table(models.DescribeTableRequest(id=["a", "t"]))
    assert (described.managed_versioning, described.properties) == (True, {"kind": "node"})
    assert stock.ids(["a", "t"], "first") == [0, 1, 2]

    stock.write(["a", "t"], rows(20, 21))
    stock.check(["a", "t"], 3)
    stock.open(["a", "t"], branch="dev").insert(rows(30, 31))
    stock.check(["a", "t"], 4, "dev")
    stock.write(["plain"], rows(20, 21))
    stock.check(["plain"], 3)
    stock.write(["a", "declared"], rows(0, 1))
    stock.check(["a", "declared"], 1)
    stock.make("new")
    stock.check(["new"], 1)
    batch = {"operations": [{"deregister_table": {"id": ["r"]}}, {"declare_table": {"id": ["s"]}}]}
    assert served.call("POST", "/v1/table/batch-commit", batch).status == 200

    # and the client that made it still reads it
    old = StockDirectory(root=str(theirs.root), dir_listing_enabled="false")
    assert old.list_tables(models.ListTablesRequest(id=[])).tables == ["new", "plain", "s"]
    assert ids(lance.dataset(namespace_client=old, table_id=["a", "t"])) == [0, 1, 2, 3, 4, 20]
    with pytest.raises(UnsupportedOperationError, match="upgrade"):
        theirs.client.create_namespace(models.CreateNamespaceRequest(id=["b"]))


def test_adopting_again_changes_nothing(theirs: Made) -> None:
    namespace = DirectoryNamespace(root=str(theirs.root), sweep_interval_seconds="0")
    first = namespace.adopt()
    before = tree(theirs.root)

    again = namespace.adopt()

    assert (first.already_managed, again.already_managed) == (False, True)
    assert again.catalog_version == first.catalog_version
    assert tree(theirs.root) == before
    namespace.close()


def test_adopting_is_one_flip(theirs: Made) -> None:
    namespace = DirectoryNamespace(root=str(theirs.root), sweep_interval_seconds="0")
    before = namespace.read("describe_catalog", {}).catalog_version

    assert namespace.adopt().catalog_version == before + 1
    namespace.close()


@pytest.mark.parametrize("managed", [False, True], ids=["at once", "later"])
def test_strictly_adopted_roots_stop_plain_writers_of_the_catalog(theirs: Made, managed: bool) -> None:
    namespace = DirectoryNamespace(root=str(theirs.root), sweep_interval_seconds="0")
    if managed:
        namespace.adopt()
        namespace.adopt(strict=True)
    else:
        strict = _adopt(theirs.root, "--strict")
        assert strict.returncode == 0, strict.stderr
    before = tree(theirs.root)
    catalog = str(theirs.root / "__manifest")

    plain = lance.dataset(catalog)
    assert "a$t" in plain.to_table(columns=["object_id"])["object_id"].to_pylist()
    with pytest.raises(OSError, match="upgrade Lance to write this dataset"):
        plain.delete("object_type = 'table'")
    with pytest.raises(OSError, match="upgrade Lance to write to this dataset"):
        lance.write_dataset(plain.to_table(), catalog, mode="overwrite")
    with pytest.raises(NotImplementedError, match="upgrade Lance to write this dataset"):
        theirs.client.create_namespace(models.CreateNamespaceRequest(id=["b"]))
    changed = {name for name, data in tree(theirs.root).items() if before.get(name) != data}
    assert not [name for name in changed if name.startswith("__manifest/_versions/")]

    namespace.create_namespace(models.CreateNamespaceRequest(id=["b"]))
    namespace.close()
    reader = StockDirectory(root=str(theirs.root))
    assert reader.list_namespaces(models.ListNamespacesRequest(id=[])).namespaces == ["a", "b"]
    assert lance.dataset(catalog).version == plain.version + 1


def test_tables_below_tables_are_named_and_not_adopted(theirs: Made) -> None:
    """Stock servers check no parents; the row of such a table could collide with that of a version (N4)."""
    theirs.client.create_table(models.CreateTableRequest(id=["a", "t", "5"]), _stream(rows(0, 1)))
    theirs.client.create_table(models.CreateTableRequest(id=["r", "x", "y"]), _stream(rows(0, 1)))
    before = tree(theirs.root)

    with pytest.raises(InvalidInputError, match=r"a\$t\$5, r\$x\$y"):
        DirectoryNamespace(root=str(theirs.root), sweep_interval_seconds="0").adopt()
    refused = _adopt(theirs.root, "--strict")

    assert refused.returncode == 2
    assert "a$t$5, r$x$y" in refused.stderr
    assert tree(theirs.root) == before


def test_a_version_that_cannot_be_read_is_left_out_and_the_table_stays_usable(theirs: Made) -> None:
    location = Path(theirs.client.describe_table(models.DescribeTableRequest(id=["a", "t"])).location[7:])
    (location / "_versions" / "18446744073709551610.manifest").write_bytes(b"no manifest")

    namespace = DirectoryNamespace(root=str(theirs.root), sweep_interval_seconds="0")
    adopted = namespace.adopt()

    assert dict(adopted.tables)[("a", "t")] == 4
    listed = namespace.read("list_table_versions", {"id": ["a", "t"]}).body["versions"]
    assert [version["version"] for version in listed] == [1, 2]
    namespace.close()


def test_a_table_with_names_of_the_first_scheme_keeps_them(theirs: Made) -> None:
    old = str(theirs.root / "old.lance")
    lance.write_dataset(rows(0, 2), old, enable_v2_manifest_paths=False)
    lance.write_dataset(rows(2, 3), old, mode="append")
    namespace = DirectoryNamespace(root=str(theirs.root), sweep_interval_seconds="0")
    namespace.adopt()

    lance.write_dataset(rows(10, 11), namespace_client=namespace, table_id=["old"], mode="append")
    lance.write_dataset(rows(11, 12), old, mode="append")
    lance.write_dataset(rows(12, 13), namespace_client=namespace, table_id=["old"], mode="append")

    assert (
        ids(lance.dataset(namespace_client=namespace, table_id=["old"]))
        == [0, 1, 2, 10, 11, 12]
        == ids(lance.dataset(old))
    )
    names = {path.name for path in Path(old, "_versions").glob("*.manifest")}
    assert names == {f"{version}.manifest" for version in range(1, 6)}
    namespace.close()


def test_an_empty_root_needs_no_adoption(tmp_path: Path) -> None:
    namespace = DirectoryNamespace(root=str(tmp_path / "root"), sweep_interval_seconds="0")
    assert namespace.read("describe_catalog", {}).body["managed"] is True
    namespace.create_namespace(models.CreateNamespaceRequest(id=["a"]))
    namespace.close()

    client = StockDirectory(root=str(tmp_path / "root"))
    assert client.list_namespaces(models.ListNamespacesRequest(id=[])).namespaces == ["a"]
    with pytest.raises(UnsupportedOperationError, match="upgrade"):
        client.create_namespace(models.CreateNamespaceRequest(id=["b"]))


def test_columns_of_the_catalog_are_those_of_stock_pylance(ours: Path, theirs: Made) -> None:
    mine, other = lance.dataset(str(ours / "__manifest")), lance.dataset(str(theirs.root / "__manifest"))

    assert mine.schema == other.schema
    assert [field.metadata for field in mine.schema] == [field.metadata for field in other.schema]
    assert mine.lance_schema.fields()[0].id() == other.lance_schema.fields()[0].id() == 0
    assert mine.data_storage_version == other.data_storage_version
    assert orjson.loads(mine.to_table(filter="object_id = 'a$declared'")["metadata"][0].as_py()) == {"kind": "node"}
    assert path_of("a", "t") == "a%24t"
