"""Tables of a catalog that manages versions are not cleaned up, because old catalog versions may need any of theirs."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance_namespace import CreateNamespaceRequest, connect

from lance_core.cleanup import Retention, cleanup, cleanup_table
from lance_core.cleanup.guard import split_table_uri
from lance_core.errors import CorruptFile, UnsupportedFeature
from lance_core.storage.local import LocalStore
from namespace_server.directory.namespace import DirectoryNamespace
from tests.cleanup.tables import EAGER, NOW
from tests.storage.test_services import Emulator


def managed(root: Path) -> str:
    """A table with three versions in a catalog of ours; where it lies."""
    with closing(DirectoryNamespace(root=str(root))) as catalog:
        catalog.create_namespace(CreateNamespaceRequest(id=["ws"]))
        for mode in ("create", "append", "append"):
            lance.write_dataset(pa.table({"x": [1]}), namespace_client=catalog, table_id=["ws", "t"], mode=mode)
    [location] = root.glob("*_ws$t")
    return str(location)


def files(root: Path) -> set[Path]:
    return {path for path in root.rglob("*") if path.is_file()}


def test_a_table_of_a_managed_catalog_is_refused(tmp_path: Path) -> None:
    location = managed(tmp_path / "catalog")
    before = files(tmp_path)
    with pytest.raises(UnsupportedFeature, match=r"the catalog .*/catalog/__manifest manages its versions"):
        cleanup(location, EAGER)
    with pytest.raises(UnsupportedFeature, match="manages its versions"):
        cleanup(f"file://{location}", EAGER, dry_run=True)
    store = LocalStore(tmp_path)
    with pytest.raises(UnsupportedFeature, match="manages its versions"):
        cleanup_table(store, f"catalog/{Path(location).name}", EAGER)
    assert files(tmp_path) == before


def test_a_managed_table_opened_through_a_symbolic_link(tmp_path: Path) -> None:
    location = managed(tmp_path / "catalog")
    (tmp_path / "link").symlink_to(location)
    with pytest.raises(UnsupportedFeature, match="manages its versions"):
        cleanup(tmp_path / "link", EAGER)


@pytest.mark.parametrize("place", ["some/t", "some/where/t"])
def test_a_table_nested_below_a_managed_catalog(tmp_path: Path, place: str) -> None:
    """A table may be registered at any place below the root."""
    managed(tmp_path / "catalog")
    deep = tmp_path / "catalog" / place
    lance.write_dataset(pa.table({"x": [1]}), deep)
    with pytest.raises(UnsupportedFeature, match="manages its versions"):
        cleanup(deep, EAGER)


def test_the_catalog_itself_is_refused(tmp_path: Path) -> None:
    managed(tmp_path / "catalog")
    with pytest.raises(UnsupportedFeature, match="is a catalog"):
        cleanup(tmp_path / "catalog" / "__manifest", EAGER)


def test_an_unreadable_catalog_is_refused(tmp_path: Path) -> None:
    location = managed(tmp_path / "catalog")
    for manifest in (tmp_path / "catalog" / "__manifest" / "_versions").glob("*.manifest"):
        manifest.write_bytes(b"half")
    with pytest.raises(CorruptFile):
        cleanup(location, EAGER)


def test_a_catalog_that_does_not_manage_versions_is_accepted(tmp_path: Path) -> None:
    stock = connect("dir", {"root": str(tmp_path / "catalog")})
    stock.create_namespace(CreateNamespaceRequest(id=["ws"]))
    for mode in ("create", "append"):
        lance.write_dataset(pa.table({"x": [1]}), namespace_client=stock, table_id=["ws", "t"], mode=mode)
    [location] = (tmp_path / "catalog").glob("*_ws$t")
    assert [garbage.version for garbage in cleanup(location, EAGER, settle=NOW).versions] == [1]
    lance.dataset(location).validate()


@pytest.mark.parametrize(
    ("uri", "parts"),
    [
        ("/root/a%20b/t", ("/", "root/a%20b/t")),
        ("file:///root/a%20b/t", ("/", "root/a b/t")),
        ("s3://bucket/a%20b/t/", ("s3://bucket", "a b/t")),
        ("memory://one/t", ("memory://one/t", "")),
    ],
)
def test_the_parts_of_a_uri(uri: str, parts: tuple[str, str]) -> None:
    assert split_table_uri(uri) == parts


def test_a_managed_table_in_a_bucket(moto_server: Emulator) -> None:
    root, options = moto_server.new_root(), moto_server.storage_options
    properties = {f"storage.{key}": value for key, value in options.items()}
    with closing(DirectoryNamespace(root=root, **properties)) as catalog:
        catalog.create_namespace(CreateNamespaceRequest(id=["ws"]))
    location = f"{root}/t"
    lance.write_dataset(pa.table({"x": [1]}), location, storage_options=options)
    with pytest.raises(UnsupportedFeature, match="manages its versions"):
        cleanup(location, Retention(), storage_options=options)
