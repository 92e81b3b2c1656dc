"""Going back to an earlier version of a table through the catalog, which says what a version number means."""

from __future__ import annotations

import pytest
from lance_namespace.errors import InvalidInputError

from lance_core.transaction.operations import Restore, encode_transaction
from tests.directory.tables import Ground, as_operation, rows


def restore(table_id: list[str], version: int, read_version: int) -> dict[str, object]:
    return as_operation(table_id, encode_transaction(Restore(version), read_version=read_version))


def test_a_version_comes_back_in_a_batch(ground: Ground) -> None:
    person, knows = ground.make_table("g", "person"), ground.make_table("g", "knows")
    ground.write(person, rows(3, 4))
    ground.write(person, rows(4, 5))

    answer = ground.batch(restore(person, 2, 3), ground.transaction(knows, rows(3, 4)))

    assert answer["results"][0]["commit_transaction"]["version"]["version"] == 4
    assert ground.ids(person) == [0, 1, 2, 3]
    assert ground.ids(knows) == [0, 1, 2, 3]
    ground.open(person).validate()


def test_a_version_that_the_same_batch_made_comes_back(ground: Ground) -> None:
    person = ground.make_table("g", "person")
    ground.batch(ground.transaction(person, rows(3, 4)), restore(person, 1, 1))
    assert ground.head(person) == 3
    assert ground.ids(person) == [0, 1, 2]
    ground.batch(ground.transaction(person, rows(7, 8)), restore(person, 4, 3), restore(person, 1, 3))
    assert ground.ids(person) == [0, 1, 2]


def test_a_version_without_a_row_is_none(ground: Ground) -> None:
    person = ground.make_table("g", "person")
    ground.write(person, rows(3, 4))
    ground.write(person, rows(4, 5))
    ground.call("batch_delete_table_versions", id=person, ranges=[{"start_version": 1, "end_version": 2}])
    before = ground.catalog.snapshot().version

    with pytest.raises(InvalidInputError, match="restore of version 1, which does not exist"):
        ground.batch(restore(person, 1, 3))

    assert ground.catalog.snapshot().version == before
    assert ground.ids(person) == [0, 1, 2, 3, 4]
