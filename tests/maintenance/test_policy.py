"""The policy of a table: defaults, properties of its namespaces and its own."""

from __future__ import annotations

import pytest

from namespace_server.directory.maintenance.policy import Policy, WrongPolicy, policy_of, read_policy
from namespace_server.directory.model.entries import NamespaceEntry, TableEntry, changes_of
from namespace_server.directory.model.snapshot import CatalogSnapshot

OUTER, INNER, TABLE = ("a",), ("a", "b"), ("a", "b", "t")


def snapshot(
    outer: dict[str, str] | None = None, inner: dict[str, str] | None = None, table: dict[str, str] | None = None
) -> CatalogSnapshot:
    entries = (NamespaceEntry(OUTER, outer or {}), NamespaceEntry(INNER, inner or {}))
    return CatalogSnapshot(managed=True).apply(changes_of([*entries, TableEntry(TABLE, "x_a$b$t", table or {})]))


def test_without_properties_it_is_the_default() -> None:
    assert policy_of(snapshot(table={"owner": "ann"}), TABLE, {}) == Policy()


def test_the_nearest_property_counts() -> None:
    name = "maintenance.min_fragments"
    assert policy_of(snapshot(), TABLE, {name: "5"}).min_fragments == 5
    assert policy_of(snapshot({name: "6"}), TABLE, {name: "5"}).min_fragments == 6
    assert policy_of(snapshot({name: "6"}, {name: "7"}), TABLE, {}).min_fragments == 7
    assert policy_of(snapshot({name: "6"}, {name: "7"}, {name: "8"}), TABLE, {}).min_fragments == 8


def test_each_property_is_overridden_by_itself() -> None:
    found = policy_of(snapshot({"maintenance.compact": "false"}, None, {"maintenance.deleted_share": "0.5"}), TABLE, {})
    assert found == Policy(compact=False, deleted_share=0.5)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("maintenance.compacted", "true", "expected one of maintenance.compact, maintenance.target_rows"),
        ("owner", "ann", "expected one of maintenance.compact"),
        ("maintenance.compact", "yes", "expected true or false, found 'yes'"),
        ("maintenance.target_rows", "0", "expected an integer from 1 to"),
        ("maintenance.min_fragments", "1", "expected an integer from 2 to"),
        ("maintenance.quiet_seconds", "-1", "expected an integer from 0 to"),
        ("maintenance.rewrite_bytes", "1e9", "expected an integer"),
        ("maintenance.deleted_share", "1.5", "expected a number from 0 to 1"),
        ("maintenance.optimize_indices", "1", "expected true or false, found '1'"),
        ("maintenance.unindexed_rows", "0", "expected an integer from 1 to"),
        ("maintenance.unindexed_share", "2", "expected a number from 0 to 1"),
        ("maintenance.max_segments", "0", "expected an integer from 1 to"),
        ("maintenance.deleted_share", "nan", "expected a number from 0 to 1"),
        ("maintenance.deleted_share", "", "expected a number from 0 to 1"),
    ],
)
def test_what_is_wrong_is_named(name: str, value: str, said: str) -> None:
    with pytest.raises(WrongPolicy, match=f"property {name}: {said}"):
        read_policy({name: value})
