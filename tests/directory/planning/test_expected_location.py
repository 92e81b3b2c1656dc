"""A batch may say where a table must be, so that another one of its name is not taken for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lance_namespace import DropTableRequest
from lance_namespace.errors import InvalidInputError, TableNotFoundError

from namespace_server.directory.namespace import DirectoryNamespace


@pytest.fixture
def namespace(tmp_path: Path) -> Iterator[DirectoryNamespace]:
    made = DirectoryNamespace(root=str(tmp_path / "the root"), durability="none", sweep_interval_seconds="0")
    yield made
    made.close()


def assertion(location: str) -> dict[str, object]:
    return {"operations": [{"assert_table_version": {"id": ["t"], "version": 0, "location": location}}]}


def declare(namespace: DirectoryNamespace) -> str:
    [result] = namespace.commit_batch({"operations": [{"declare_table": {"id": ["t"]}}]})["results"]
    return str(result["declare_table"]["location"])


def test_a_location_is_understood_as_it_was_told_and_in_other_spellings(namespace: DirectoryNamespace) -> None:
    told = declare(namespace)
    key = told.rpartition("/")[2]
    for spelling in (
        told,
        key,
        f"{namespace.catalog.store.uri}/{key}/",
        f"/{namespace.catalog.store.object_path(key)}",
    ):
        assert namespace.commit_batch(assertion(spelling))["results"] == [{"assert_table_version": {}}]


def test_another_table_of_the_name_is_not_it(namespace: DirectoryNamespace) -> None:
    first = declare(namespace)
    namespace.drop_table(DropTableRequest(id=["t"]))
    second = declare(namespace)

    with pytest.raises(TableNotFoundError, match="does not exist any more"):
        namespace.commit_batch(assertion(first))
    namespace.commit_batch(assertion(second))


def test_a_location_outside_the_root_is_refused(namespace: DirectoryNamespace) -> None:
    declare(namespace)
    with pytest.raises(InvalidInputError, match="outside the catalog root"):
        namespace.commit_batch(assertion("s3://elsewhere/t"))
