"""The setting for clients that declare tables in namespaces that were never created."""

from __future__ import annotations

from pathlib import Path

import lance
import pytest
from lance_namespace.errors import InvalidInputError, LanceNamespaceError, NamespaceNotFoundError

from namespace_server.directory.catalog import CatalogOptions
from namespace_server.directory.namespace import DirectoryNamespace
from tests.directory.tables import QUIET, Ground, rows


@pytest.fixture
def implicit(tmp_path: Path) -> Ground:
    options = CatalogOptions(sweep_interval=QUIET.sweep_interval, implicit_namespaces=True)
    return Ground(tmp_path / "root", options=options)


def test_declaring_makes_the_namespaces_above_in_one_flip(implicit: Ground) -> None:
    implicit.call("declare_table", id=["a", "b", "t"])

    assert implicit.catalog.snapshot().version == 1
    assert implicit.again().read("list_namespaces", id=[]) == {"namespaces": ["a"]}
    assert implicit.again().read("list_tables", id=["a", "b"]) == {"tables": ["t"]}


def test_a_stock_client_and_a_batch(implicit: Ground) -> None:
    lance.write_dataset(rows(0, 3), namespace_client=implicit.namespace, table_id=["a", "t"], mode="create")
    implicit.batch({"declare_table": {"id": ["c", "d", "t"]}}, {"declare_table": {"id": ["c", "u"]}})

    assert implicit.ids(["a", "t"]) == [0, 1, 2]
    assert implicit.read("list_namespaces", id=["c"]) == {"namespaces": ["d"]}


def test_a_refused_declare_makes_no_namespace(implicit: Ground) -> None:
    implicit.call("declare_table", id=["t"])
    with pytest.raises(InvalidInputError, match="t is a table, expected a namespace"):
        implicit.call("declare_table", id=["t", "x"])
    with pytest.raises(LanceNamespaceError):
        implicit.batch({"declare_table": {"id": ["n", "x"]}}, {"declare_table": {"id": ["t"]}})
    assert implicit.read("list_namespaces", id=[]) == {"namespaces": []}


def test_a_missing_namespace_lists_as_empty(implicit: Ground) -> None:
    assert implicit.read("list_tables", id=["a"]) == {"tables": []}
    assert implicit.read("list_namespaces", id=["a"]) == {"namespaces": []}
    with pytest.raises(NamespaceNotFoundError):
        implicit.read("describe_namespace", id=["a"])


def test_it_is_off_by_default(ground: Ground) -> None:
    with pytest.raises(NamespaceNotFoundError):
        ground.call("declare_table", id=["a", "t"])
    with pytest.raises(NamespaceNotFoundError):
        ground.read("list_tables", id=["a"])


def test_the_property(tmp_path: Path) -> None:
    for value, expected in (("true", True), ("False", False)):
        namespace = DirectoryNamespace(root=str(tmp_path), implicit_namespaces=value)
        assert namespace.catalog.options.implicit_namespaces is expected
    with pytest.raises(ValueError, match="property implicit_namespaces: expected true or false, found 'yes'"):
        DirectoryNamespace(root=str(tmp_path), implicit_namespaces="yes")
