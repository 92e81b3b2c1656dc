"""Names that look like another name or like none are refused where they are new, and tolerated where they are not."""

from __future__ import annotations

from pathlib import Path

import lance_namespace as m
import pytest
from lance.namespace import DirectoryNamespace as StockNamespace
from lance_namespace.errors import InvalidInputError

from namespace_server.directory.model.naming_rules import check_new_id, check_new_name
from namespace_server.directory.namespace import DirectoryNamespace

ALIKE = {
    "only a zero width space": "\u200b",
    "a byte order mark in front": "\ufefft",
    "a space in front": " t",
    "a space behind": "t ",
    "only spaces": "  ",
    "a no-break space": "a\u00a0b",
    "an ideographic space": "a\u3000b",
    "a zero width joiner": "a\u200db",
    "a soft hyphen": "a\u00adb",
    "a word joiner": "a\u2060b",
    "a grapheme joiner": "a\u034fb",
    "a filler of Hangul": "\u3164",
    "a variation selector": "t\ufe0f",
    "a selector of the supplement": "t\U000e0101",
    "a tag": "t\U000e0041",
    "the blank of Braille": "\u2800",
    "a letter and a mark": "e\u0301t",
    "a sign that is another letter": "\u212b",
}


@pytest.mark.parametrize("name", ALIKE.values(), ids=ALIKE)
def test_a_name_that_looks_alike_is_not_new(name: str) -> None:
    with pytest.raises(InvalidInputError, match="new name"):
        check_new_name(name, "table")


@pytest.mark.parametrize(
    "name", ["a b", "a+b", "été", "日本", "データ", "한국", "ไทย", "a%20b", "x\u0301", "日 本", "😀"]
)
def test_a_name_with_a_shape_of_its_own_is_new(name: str) -> None:
    check_new_id(("ns", name), "table")


def test_every_way_to_a_new_name_is_checked(tmp_path: Path) -> None:
    catalog = DirectoryNamespace(root=str(tmp_path), durability="none")
    catalog.declare_table(m.DeclareTableRequest(id=["t"]))
    for operation, request in (
        ("create_namespace", {"id": ["n "]}),
        ("declare_table", {"id": ["t "]}),
        ("register_table", {"id": ["\u200b"], "location": "x"}),
        ("rename_table", {"id": ["t"], "new_table_name": "\ufefft"}),
        ("undrop_table", {"id": ["t"], "new_id": ["t "]}),
        ("batch_commit_tables", {"operations": [{"declare_table": {"id": ["t\u00a0"]}}]}),
    ):
        with pytest.raises(InvalidInputError, match="new name"):
            catalog.write(operation, request)
    catalog.close()
    implicit = DirectoryNamespace(root=str(tmp_path), durability="none", implicit_namespaces="true")
    with pytest.raises(InvalidInputError, match="new name"):
        implicit.declare_table(m.DeclareTableRequest(id=["n ", "t"]))
    implicit.close()


def test_what_others_named_so_is_read_filled_renamed_and_dropped(tmp_path: Path) -> None:
    stock = StockNamespace(root=str(tmp_path))
    stock.create_namespace(m.CreateNamespaceRequest(id=["n "]))
    for name in ("t ", "u\u200b", "v"):
        stock.declare_table(m.DeclareTableRequest(id=["n ", name]))
    catalog = DirectoryNamespace(root=str(tmp_path), durability="none")
    catalog.adopt()
    assert catalog.list_tables(m.ListTablesRequest(id=["n "])).tables == ["t ", "u\u200b", "v"]
    catalog.declare_table(m.DeclareTableRequest(id=["n ", "new"]))
    catalog.describe_table(m.DescribeTableRequest(id=["n ", "t "]))
    catalog.rename_table(m.RenameTableRequest(id=["n ", "u\u200b"], new_table_name="u"))
    catalog.drop_table(m.DropTableRequest(id=["n ", "t "]))
    catalog.write("undrop_table", {"id": ["n ", "t "]})
    assert catalog.list_tables(m.ListTablesRequest(id=["n "])).tables == ["new", "t ", "u", "v"]
    catalog.close()


@pytest.mark.parametrize(
    "name",
    ["\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "\u0915\u094d\u200d\u0937", "\U0001f469\u200d\U0001f4bb"],
)
def test_a_joiner_may_stand_where_it_acts(name: str) -> None:
    check_new_name(name, "table")


@pytest.mark.parametrize(
    "name", ["a\u200db", "\u00e9\u200d\u00e9", "\u200dx", "\U0001f469\u200d", "\U0001f469\u200d\u200d\U0001f4bb"]
)
def test_a_joiner_that_does_nothing_is_refused(name: str) -> None:
    with pytest.raises(InvalidInputError, match="cannot be seen"):
        check_new_name(name, "table")
