"""Deleting all versions of a table: the published `VersionRange` says that an end of -1 includes the latest."""

from __future__ import annotations

from typing import Any

import lance
import pytest
from lance_namespace.errors import InvalidInputError, LanceNamespaceError, TableVersionNotFoundError

from tests.directory.invariants import check_quiet
from tests.directory.tables import Ground, rows

T = ["g", "t"]
ALL = [{"start_version": 0, "end_version": -1}]


@pytest.fixture
def table(ground: Ground) -> Ground:
    """Four versions, ten rows."""
    ground.make_table(*T, count=4)
    for start in (4, 6, 8):
        ground.write(T, rows(start, start + 2))
    return ground


def delete(ground: Ground, ranges: list[dict[str, int]] = ALL, **more: Any) -> int:
    count: int = ground.call("batch_delete_table_versions", id=T, ranges=ranges, **more)["deleted_count"]
    return count


def test_the_table_is_only_declared_afterwards(table: Ground) -> None:
    assert delete(table) == 4

    for process in (table, table.again()):
        assert process.read("list_table_versions", id=T) == {"versions": []}
        assert process.read("describe_table", id=T, check_declared=True)["is_only_declared"]
        assert process.read("list_tables", id=["g"], include_declared=False) == {"tables": []}
        with pytest.raises(TableVersionNotFoundError):
            process.read("describe_table_version", id=T)
        with pytest.raises(ValueError, match="was not found"):
            lance.dataset(namespace_client=process.namespace, table_id=T)


def test_a_stock_client_writes_it_anew(table: Ground) -> None:
    delete(table)

    table.write(T, rows(20, 22))
    table.write(T, rows(22, 24))

    assert table.ids(T) == [20, 21, 22, 23]
    assert [each["version"] for each in table.read("list_table_versions", id=T)["versions"]] == [1, 2]
    table.catalog.sweep()
    check_quiet(table.root)


@pytest.mark.parametrize("ranges", [[(1, 5)], [(0, 100)], [(1, 3), (3, -1)], [(4, 5), (1, 4)]])
def test_ranges_that_name_every_version(table: Ground, ranges: list[tuple[int, int]]) -> None:
    assert delete(table, [{"start_version": start, "end_version": end} for start, end in ranges]) == 4


def test_properties_and_older_catalog_versions_stay(ground: Ground) -> None:
    ground.call("declare_table", id=T, properties={"a": "b"})
    ground.write(T, rows(0, 3))
    before = ground.catalog.snapshot().version
    path = ground.read("describe_table_version", id=T)["version"]["manifest_path"]

    delete(ground)

    assert ground.read("describe_table", id=T)["properties"] == {"a": "b"}
    pinned = ground.namespace.read("describe_table_version", {"id": T}, at=before).body
    assert pinned["version"]["manifest_path"] == path
    assert (ground.root.parent / "root" / path.partition("/root/")[2]).exists()


def test_the_location_is_another_and_the_old_one_is_not_used_again(table: Ground) -> None:
    old = table.location(T)

    delete(table)

    assert table.location(T) != old
    for operation in ("register_table", "declare_table"):
        with pytest.raises(InvalidInputError, match=r"which was dropped|must have the form"):
            table.call(operation, id=["g", "u"], location=old)


def test_nothing_of_the_old_chain_comes_back(table: Ground) -> None:
    """Its files are still there: neither adoption nor a stale writer takes them for those of the new chain."""
    stale = table.open(T)
    staged = table.stage(T, rows(50, 51))
    transaction = table.transaction(T, rows(60, 61))
    delete(table)

    for late in (staged, transaction):
        with pytest.raises(LanceNamespaceError):
            table.batch(late)
    table.unmanaged_append(T, rows(0, 1))
    stale.insert(rows(70, 71))
    table.catalog.sweep()

    assert [each["version"] for each in table.read("list_table_versions", id=T)["versions"]] == [1]
    table.write(T, rows(1, 2))
    assert table.ids(T) == [0, 1]


@pytest.mark.parametrize("ranges", [(4, 5), (2, 5), (2, -1), (4, -1)])
def test_the_head_goes_with_all_others_or_not(table: Ground, ranges: tuple[int, int]) -> None:
    with pytest.raises(InvalidInputError, match=r"version 4 is the head.*an older one becomes the head"):
        delete(table, [{"start_version": ranges[0], "end_version": ranges[1]}])
    assert table.head(T) == 4


def test_a_table_with_branches_keeps_its_head(table: Ground) -> None:
    lance.dataset(namespace_client=table.namespace, table_id=T).create_branch("dev")
    with pytest.raises(InvalidInputError, match="the branches dev stand on the table"):
        delete(table)
    with pytest.raises(InvalidInputError, match="the head of a branch goes only with the branch"):
        delete(table, branch="dev")
    assert (table.head(T), table.head(T, "dev")) == (4, 4)


def test_versions_of_the_same_batch(table: Ground) -> None:
    removal = {"delete_table_versions": {"id": T, "ranges": ALL}}
    for others in ([table.stage(T, rows(10, 11))], [table.transaction(T, rows(10, 11))]):
        for batch in ([*others, removal], [removal, *others]):
            with pytest.raises(LanceNamespaceError):
                table.batch(*batch)
    assert table.head(T) == 4

    table.batch(removal, {"declare_table": {"id": ["g", "u"]}})

    assert table.head(T) == 0


def test_a_repeated_request(table: Ground) -> None:
    first = table.batch({"delete_table_versions": {"id": T, "ranges": ALL}}, key="k")
    table.write(T, rows(0, 1))

    assert table.again().batch({"delete_table_versions": {"id": T, "ranges": ALL}}, key="k") == first
    assert table.head(T) == 1
