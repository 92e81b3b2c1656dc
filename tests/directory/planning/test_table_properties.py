"""Properties of a table: all are replaced, or some are changed and the others stay."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lance_namespace import DescribeTableRequest, DropTableRequest, RenameTableRequest
from lance_namespace.errors import InvalidInputError, TableNotFoundError

from namespace_server.directory.namespace import DirectoryNamespace


@pytest.fixture
def namespace(tmp_path: Path) -> Iterator[DirectoryNamespace]:
    made = DirectoryNamespace(root=str(tmp_path / "root"), durability="none", sweep_interval_seconds="0")
    declare(made)
    yield made
    made.close()


def declare(namespace: DirectoryNamespace, name: str = "t") -> str:
    operation = {"declare_table": {"id": [name], "properties": {"a": "1", "b": "2"}}}
    [result] = namespace.commit_batch({"operations": [operation]})["results"]
    return str(result["declare_table"]["location"])


def change(namespace: DirectoryNamespace, **request: Any) -> Any:
    operations = [{"set_table_properties": {"id": ["t"], **request}}]
    [result] = namespace.commit_batch({"operations": operations})["results"]
    return result["set_table_properties"].get("properties", {})


def properties(namespace: DirectoryNamespace, name: str = "t") -> dict[str, str]:
    return dict(namespace.describe_table(DescribeTableRequest(id=[name])).properties or {})


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ({"properties": {"c": "3"}}, {"c": "3"}),
        ({"properties": {}}, {}),
        ({}, {}),
        ({"updates": {"b": "4", "c": "3"}}, {"a": "1", "b": "4", "c": "3"}),
        ({"removals": ["a", "nothing"]}, {"b": "2"}),
        ({"updates": {"c": "3"}, "removals": ["b"]}, {"a": "1", "c": "3"}),
        ({"updates": {}, "removals": []}, {"a": "1", "b": "2"}),
        ({"updates": {}}, {"a": "1", "b": "2"}),
    ],
)
def test_properties_after_a_change(
    namespace: DirectoryNamespace, request_: dict[str, Any], expected: dict[str, str]
) -> None:
    assert change(namespace, **request_) == expected
    assert properties(namespace) == expected


def test_changes_of_one_batch_follow_each_other(namespace: DirectoryNamespace) -> None:
    operations = [
        {"set_table_properties": {"id": ["t"], "updates": {"c": "3"}}},
        {"set_table_properties": {"id": ["t"], "removals": ["a"]}},
    ]
    namespace.commit_batch({"operations": operations})
    assert properties(namespace) == {"b": "2", "c": "3"}


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        ({"properties": {"c": "3"}, "updates": {"d": "4"}}, "found both"),
        ({"properties": {}, "removals": []}, "found both"),
        ({"updates": {"a": "3"}, "removals": ["a"]}, "expected none that updates set, found a"),
        ({"updates": {"a": 1}}, "updates: expected an object of strings"),
        ({"removals": "a"}, "removals: expected a list of strings"),
        ({"removals": [1]}, "removals: expected a list of strings"),
        ({"updates": {"a" * 2000: ""}}, "updates: expected keys of at most 1024 bytes"),
        ({"updates": {str(number): "" for number in range(999)}}, "properties: expected at most 1000 keys, found 1001"),
    ],
)
def test_changes_that_are_refused(namespace: DirectoryNamespace, request_: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidInputError, match=reason):
        change(namespace, **request_)
    assert properties(namespace) == {"a": "1", "b": "2"}


@pytest.mark.parametrize("request_", [{"properties": {"c": "3"}}, {"updates": {"c": "3"}}])
def test_properties_of_a_table_are_not_given_to_another_one(
    namespace: DirectoryNamespace, request_: dict[str, Any]
) -> None:
    location = str(namespace.describe_table(DescribeTableRequest(id=["t"])).location)
    assert change(namespace, location=location, updates={}) == {"a": "1", "b": "2"}
    namespace.rename_table(RenameTableRequest(id=["t"], new_table_name="old"))
    declare(namespace)
    with pytest.raises(TableNotFoundError, match="does not exist any more"):
        change(namespace, location=location, **request_)
    namespace.drop_table(DropTableRequest(id=["t"]))
    with pytest.raises(TableNotFoundError):
        change(namespace, location=location, **request_)
    assert properties(namespace, "old") == {"a": "1", "b": "2"}
