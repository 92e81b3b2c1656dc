"""What a client may send, and how errors read: no request ends as an unexpected exception."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lancedb
import pytest
from lance_namespace.errors import InvalidInputError, NamespaceNotEmptyError, NamespaceNotFoundError, TableNotFoundError

from lance_core.storage.local import LocalStore
from namespace_server.directory.catalog import CatalogOptions, StoredCatalog
from namespace_server.directory.model.limits import Limits
from namespace_server.directory.namespace import DirectoryNamespace
from tests.directory.tables import QUIET, Ground

T = ["g", "t"]
PAGED: dict[str, dict[str, Any]] = {"list_table_versions": {"id": T}, "list_catalog_versions": {}}
NO_NUMBERS = {"superscript": "²", "arabic": "\u0661", "long": "9" * 5_000, "out of range": str(2**63), "signed": "-1"}


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


def mapped(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth):
        value = {"x": value}
    return value


@pytest.fixture
def table(ground: Ground) -> Ground:
    ground.make_table(*T)
    return ground


@pytest.mark.parametrize("token", NO_NUMBERS.values(), ids=NO_NUMBERS)
@pytest.mark.parametrize("operation", PAGED)
def test_a_page_token_that_is_no_number(table: Ground, operation: str, token: str) -> None:
    with pytest.raises(InvalidInputError, match="page_token: expected a"):
        table.read(operation, **PAGED[operation], page_token=token)


@pytest.mark.parametrize("token", [*NO_NUMBERS.values(), "\ud800", "a$b$$c"])
@pytest.mark.parametrize("operation", ["list_tables", "list_namespaces", "list_all_tables"])
def test_a_page_token_of_a_list_of_names_is_any_text(table: Ground, operation: str, token: str) -> None:
    if token == "\ud800":
        with pytest.raises(InvalidInputError, match="page_token: expected valid Unicode"):
            table.read(operation, id=["g"], page_token=token)
    else:
        assert isinstance(table.read(operation, id=["g"], page_token=token), dict)


@pytest.mark.parametrize("operation", ["list_tables", "list_namespaces", "list_all_tables", *PAGED])
def test_the_largest_page(table: Ground, operation: str) -> None:
    answer = table.read(operation, **PAGED.get(operation, {"id": ["g"]}), limit=2**63 - 1)

    assert "page_token" not in answer


FIELDS: dict[str, tuple[str, dict[str, Any]]] = {
    "properties": ("create_namespace", {"id": ["n"]}),
    "id": ("create_namespace", {}),
    "mode": ("create_namespace", {"id": ["n"]}),
    "context": ("create_namespace", {"id": ["n"]}),
    "unknown": ("create_namespace", {"id": ["n"]}),
    "location": ("declare_table", {"id": ["g", "n"]}),
    "version": ("create_table_version", {"id": T, "manifest_path": "x"}),
    "metadata": ("create_table_version", {"id": T, "version": 2, "manifest_path": "x"}),
    "ranges": ("batch_delete_table_versions", {"id": T}),
    "operations": ("batch_commit_tables", {}),
    "entries": ("batch_create_table_versions", {}),
    "new_namespace_id": ("rename_table", {"id": T, "new_table_name": "n"}),
}


@pytest.mark.parametrize("depth", [260, 1_000, pytest.param(100_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("field", FIELDS)
def test_a_change_with_a_value_nested_deep(table: Ground, field: str, depth: int) -> None:
    operation, request = FIELDS[field]
    for value in (nested(depth), mapped(depth)):
        with pytest.raises(InvalidInputError):
            table.call(operation, **{**request, field: value})


@pytest.mark.parametrize("depth", [260, 1_000])
@pytest.mark.parametrize("field", ["id", "properties", "location", "unknown"])
def test_an_operation_of_a_batch_with_a_value_nested_deep(table: Ground, field: str, depth: int) -> None:
    declared = {"id": ["g", "n"], field: mapped(depth)}
    with pytest.raises(InvalidInputError):
        table.batch({"declare_table": declared})


@pytest.mark.parametrize("depth", [260, 1_000])
@pytest.mark.parametrize("field", ["id", "version", "branch", "page_token", "limit", "descending"])
def test_a_read_with_a_value_nested_deep(table: Ground, field: str, depth: int) -> None:
    with pytest.raises(InvalidInputError):
        table.read("list_table_versions" if field != "version" else "describe_table", **{"id": T, field: nested(depth)})


def test_integers_of_any_size(table: Ground) -> None:
    for version in (2**63, -(2**63) - 1, 10**5_000):
        with pytest.raises(InvalidInputError, match="version: expected a 64-bit integer"):
            table.read("describe_table_version", id=T, version=version)


def test_an_error_text_stays_short_whatever_was_sent(table: Ground) -> None:
    sent = ["x" * 100_000] * 100
    with pytest.raises(InvalidInputError) as caught:
        table.call("register_table", id=["g", "r"], location=f"../{sent}")
    assert len(str(caught.value)) < 400
    with pytest.raises(InvalidInputError) as caught:
        table.batch({f"unknown {i}": 1 for i in range(100_000)})
    assert len(str(caught.value)) < 600


class TestNames:
    @pytest.mark.parametrize(
        "mark", ["\u202e", "\u2066", "\u2069", "\u200e", "\u200f", "\u061c", "\u2028", "\u2029", "\x85"]
    )
    def test_marks_of_direction_and_separators_are_refused(self, ground: Ground, mark: str) -> None:
        with pytest.raises(InvalidInputError, match="is not allowed in a name"):
            ground.call("declare_table", id=["g", f"a{mark}b"])
        with pytest.raises(InvalidInputError, match="is not allowed in a name"):
            ground.make_namespace(f"a{mark}b")

    @pytest.mark.parametrize("name", ["straße", "مرحبا", "名前", "a b", "👩\u200d💻"])
    def test_names_of_any_script(self, ground: Ground, name: str) -> None:
        ground.call("declare_table", id=["g", name])

        assert ground.read("list_tables", id=["g"]) == {"tables": [name]}


class TestLimits:
    @pytest.fixture
    def small(self, tmp_path: Path) -> Ground:
        limits = Limits(operations=2, properties=2, property_key_bytes=4, property_bytes=8, total_property_bytes=16)
        ground = Ground(tmp_path / "small", options=CatalogOptions(sweep_interval=QUIET.sweep_interval, limits=limits))
        ground.make_namespace("g")
        return ground

    @pytest.mark.parametrize(
        ("properties", "reason"),
        [
            ({"a": "", "b": "", "c": ""}, "expected at most 2 keys, found 3"),
            ({"abcde": ""}, "expected keys of at most 4 bytes, found 5"),
            ({"a": "ééééé"}, "expected values of at most 8 bytes, found 10"),
            ({"abcd": "12345678", "efgh": "1"}, "expected at most 16 bytes of keys and values, found 17"),
            ({"a": "\ud800"}, "expected valid Unicode"),
        ],
    )
    def test_properties(self, small: Ground, properties: dict[str, str], reason: str) -> None:
        calls: dict[str, dict[str, Any]] = {"create_namespace": {"id": ["n"]}, "declare_table": {"id": ["g", "n"]}}
        for operation, request in calls.items():
            with pytest.raises(InvalidInputError, match=f"properties: {reason}"):
                small.call(operation, **request, properties=properties)
        with pytest.raises(InvalidInputError, match=f"context: {reason}"):
            small.call("create_namespace", id=["n"], context=properties)

    def test_properties_up_to_the_bounds(self, small: Ground) -> None:
        small.call("create_namespace", id=["n"], properties={"abcd": "12345678", "e": "123"})

        assert len(small.read("describe_namespace", id=["n"])["properties"]) == 2

    def test_operations_of_a_batch(self, small: Ground) -> None:
        operations = [{"declare_table": {"id": ["g", name]}} for name in "abc"]
        with pytest.raises(InvalidInputError, match="operations: expected at most 2 operations, found 3"):
            small.batch(*operations)
        with pytest.raises(InvalidInputError, match="entries: expected at most 2 operations, found 3"):
            small.call("batch_create_table_versions", entries=[{}, {}, {}])
        small.batch(*operations[:2])


class TestRename:
    def test_an_empty_namespace_is_an_unset_one(self, table: Ground) -> None:
        table.call("rename_table", id=T, new_table_name="u", new_namespace_id=[])

        assert table.read("list_tables", id=["g"]) == {"tables": ["u"]}


class TestWordsThatClientsLookFor:
    """lancedb tells errors of a namespace in its own process by their text."""

    def test_lancedb_knows_the_kinds(self, table: Ground) -> None:
        connection = lancedb.LanceNamespaceDBConnection(table.namespace)
        with pytest.raises(lancedb.namespace.TableNotFoundError, match=r"Table not found: g\$nix"):
            connection.open_table("nix", namespace_path=["g"])
        with pytest.raises(lancedb.namespace.NamespaceNotEmptyError, match="Namespace not empty: g"):
            connection.drop_namespace(["g"], behavior="RESTRICT")

    def test_every_kind_begins_with_its_words(self, table: Ground) -> None:
        kinds: dict[str, tuple[str, dict[str, Any]]] = {
            r"^Table not found: g\$nix": ("drop_table", {"id": ["g", "nix"]}),
            r"^Table already exists: g\$t": ("declare_table", {"id": T}),
            r"^Namespace not found: nix": ("drop_namespace", {"id": ["nix"]}),
            r"^Namespace not found: namespace nix, the parent of nix\$t": ("declare_table", {"id": ["nix", "t"]}),
            r"^Namespace already exists: g": ("create_namespace", {"id": ["g"]}),
            r"^Namespace not empty: g": ("drop_namespace", {"id": ["g"]}),
        }
        for words, (operation, request) in kinds.items():
            with pytest.raises(Exception, match=words):
                table.call(operation, **request)
        with pytest.raises(TableNotFoundError, match=r"^Table not found: g"):
            table.read("describe_table", id=["g", "nix"])
        with pytest.raises(NamespaceNotFoundError, match=r"^Namespace not found: nix"):
            table.read("list_tables", id=["nix"])
        with pytest.raises(NamespaceNotEmptyError, match="holds 1"):
            table.call("drop_namespace", id=["g"])

    @pytest.mark.parametrize(
        ("location", "words"),
        [
            ("s3://bucket/t", "Absolute URIs are not allowed"),
            ("/etc/t", "Absolute paths are not allowed"),
            ("a/../../t", "Path traversal is not allowed"),
        ],
    )
    def test_register(self, ground: Ground, location: str, words: str) -> None:
        with pytest.raises(InvalidInputError, match=words):
            ground.call("register_table", id=["g", "r"], location=location)


def test_a_catalog_of_default_options_has_default_limits(tmp_path: Path) -> None:
    assert StoredCatalog(Ground(tmp_path / "r").store).options.limits == Limits()


def test_a_list_is_given_in_pages_of_bounded_length(tmp_path: Path) -> None:
    options = CatalogOptions(limits=Limits(page_size=2))
    bounded = DirectoryNamespace(catalog=StoredCatalog(LocalStore(tmp_path, "none"), options))
    bounded.commit_batch({"operations": [{"declare_table": {"id": [name]}} for name in "abcde"]})

    def pages(**asked: object) -> list[list[str]]:
        found, token = [], None
        while True:
            request = {"id": [], **asked} | ({} if token is None else {"page_token": token})
            body = bounded.read("list_tables", request).body
            found.append(body["tables"])
            if (token := body.get("page_token")) is None:
                return found

    assert pages() == pages(limit=-1) == pages(limit=100) == [["a", "b"], ["c", "d"], ["e"]]
    assert pages(limit=1) == [["a"], ["b"], ["c"], ["d"], ["e"]]
    everything = bounded.read("list_all_tables", {}).body
    assert (everything["tables"], everything["page_token"]) == (["a", "b"], "b")
    bounded.close()


def test_a_batch_has_a_bounded_number_of_operations(tmp_path: Path) -> None:
    bounded = DirectoryNamespace(root=str(tmp_path), durability="none", max_operations="2")
    operations = [{"declare_table": {"id": [name]}} for name in "abc"]
    with pytest.raises(InvalidInputError, match="at most 2 operations, found 3"):
        bounded.commit_batch({"operations": operations})
    assert len(bounded.commit_batch({"operations": operations[:2]})["results"]) == 2
    bounded.close()
