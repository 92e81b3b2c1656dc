"""BatchCommitTables: mixed operations, one flip, all or nothing, results in order."""

from __future__ import annotations

from pathlib import Path

import pytest
from lance_namespace.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    NamespaceNotFoundError,
    TableAlreadyExistsError,
    TableNotFoundError,
)

from lance_core.format.manifest import encode_manifest_file, parse_manifest_file
from lance_core.proto import lance_table_pb2 as pb
from tests.directory.tables import Ground, rows


def test_a_mixed_batch_is_one_flip_with_results_in_order(ground: Ground) -> None:
    person, knows, old, gone = (ground.make_table("g", name) for name in ("person", "knows", "old", "gone"))
    ground.write(old, rows(3, 4))
    before = ground.catalog.snapshot().version
    made = ["g", "made"]
    location = f"{ground.catalog.store.uri}/0a1b2c3d_g$made"
    declare = {"declare_table": {"id": made, "location": location, "properties": {"kind": "node"}}}
    ground_location = ground.root / "0a1b2c3d_g$made"
    staged_person, staged_knows = ground.stage(person, rows(3, 5)), ground.stage(knows, rows(3, 6))
    create = _first_version(ground, made, ground_location)

    answer = ground.batch(
        declare,
        create,
        staged_person,
        staged_knows,
        {"delete_table_versions": {"id": old, "ranges": [{"start_version": 1, "end_version": 2}]}},
        {"deregister_table": {"id": gone}},
    )

    assert [next(iter(result)) for result in answer["results"]] == [
        "declare_table",
        "commit_transaction",
        "create_table_version",
        "create_table_version",
        "delete_table_versions",
        "deregister_table",
    ]
    assert answer["results"][0]["declare_table"]["location"] == location
    assert answer["results"][1]["commit_transaction"]["version"]["version"] == 1
    assert answer["results"][2]["create_table_version"]["version"]["version"] == 2
    assert answer["results"][4]["delete_table_versions"]["deleted_count"] == 1
    assert answer["results"][5]["deregister_table"]["id"] == gone
    assert ground.catalog.snapshot().version == before + 1
    assert ground.ids(made) == [0, 1]
    assert ground.ids(person) == [0, 1, 2, 3, 4]
    assert ground.ids(knows) == [0, 1, 2, 3, 4, 5]
    assert ground.read("list_tables", id=["g"])["tables"] == ["knows", "made", "old", "person"]
    assert [v["version"] for v in ground.read("list_table_versions", id=old)["versions"]] == [2]


def _first_version(ground: Ground, table_id: list[str], location: object) -> dict[str, object]:
    import uuid

    from lance_core.data import schema_fields
    from lance_core.proto import lance_table_pb2 as pb
    from tests.directory.tables import as_operation
    from tests.staged_fragments import stage_fragments

    data = rows(0, 2)
    message = pb.Transaction(uuid=str(uuid.uuid4()))
    message.overwrite.fragments.extend(stage_fragments(data, str(location), mode="create"))
    message.overwrite.schema.extend(schema_fields(data.schema))
    return as_operation(table_id, message)


def test_two_operations_on_one_table_build_on_each_other(ground: Ground) -> None:
    person = ground.make_table("g", "person")
    first, second = ground.transaction(person, rows(3, 4)), ground.transaction(person, rows(4, 5))

    answer = ground.batch(first, second, {"assert_table_version": {"id": person, "version": 3}})

    versions = [result["commit_transaction"]["version"]["version"] for result in answer["results"][:2]]
    assert versions == [2, 3]
    assert [result["commit_transaction"]["rebased"] for result in answer["results"][:2]] == [False, True]
    assert ground.ids(person) == [0, 1, 2, 3, 4]
    assert ground.canonical(person) == [1, 2, 3]


def test_nothing_happens_when_one_operation_fails(ground: Ground) -> None:
    person, knows = ground.make_table("g", "person"), ground.make_table("g", "knows")
    staged, other = ground.stage(person, rows(3, 4)), ground.stage(knows, rows(3, 4))
    other["create_table_version"]["version"] = 5
    before = ground.catalog.snapshot().version

    with pytest.raises(InvalidInputError):
        ground.batch(staged, other)

    assert ground.catalog.snapshot().version == before
    assert ground.head(person) == 1
    assert ground.canonical(person) == [1]


def test_a_conflict_is_explained(ground: Ground) -> None:
    person = ground.make_table("g", "person")
    mine = ground.stage(person, rows(3, 4))
    ground.write(person, rows(10, 11))

    with pytest.raises(ConcurrentModificationError, match=r"version 2 of table g\$person exists") as caught:
        ground.batch(mine)

    [failure] = caught.value.failures  # type: ignore[attr-defined]
    assert failure["operation_index"] == 0
    assert failure["id"] == person
    assert (failure["expected"], failure["actual"]) == (3, 2)
    assert failure["winner_transaction_id"] == ground.open(person).read_transaction(2).uuid
    assert ground.read("describe_table_version", id=person, version=2)["version"]["version"] == 2


def test_a_transaction_is_rebased_onto_the_head(ground: Ground) -> None:
    person = ground.make_table("g", "person")
    mine = ground.transaction(person, rows(3, 4))
    ground.write(person, rows(10, 11))

    answer = ground.batch(mine)

    result = answer["results"][0]["commit_transaction"]
    assert (result["version"]["version"], result["rebased"]) == (3, True)
    assert ground.ids(person) == [0, 1, 2, 3, 10]
    ground.open(person).validate()


def test_an_assertion_makes_a_batch_serializable(ground: Ground) -> None:
    person, knows = ground.make_table("g", "person"), ground.make_table("g", "knows")
    insert = ground.transaction(knows, rows(3, 4))
    ground.write(person, rows(10, 11))

    with pytest.raises(ConcurrentModificationError, match="expected version 1 to be the head, found 2"):
        ground.batch(insert, {"assert_table_version": {"id": person, "version": 1}})

    assert ground.head(knows) == 1


def test_the_same_key_and_request_replays_the_stored_answer(ground: Ground) -> None:
    person = ground.make_table("g", "person")
    request = ground.stage(person, rows(3, 4))

    first = ground.batch(request, key="k1")
    version = ground.catalog.snapshot().version
    again = ground.again().batch(request, key="k1")

    assert again == first
    assert ground.catalog.snapshot().version == version
    assert ground.ids(person) == [0, 1, 2, 3]


def test_another_request_under_the_same_key_is_refused(ground: Ground) -> None:
    person = ground.make_table("g", "person")
    ground.batch({"declare_table": {"id": ["g", "a"]}}, key="k1")

    with pytest.raises(InvalidInputError, match="'k1' was used for another request"):
        ground.batch({"deregister_table": {"id": person}}, key="k1")

    assert ground.head(person) == 1


@pytest.mark.parametrize(
    ("operations", "error"),
    [
        ([], InvalidInputError),
        ([{}], InvalidInputError),
        ([{"declare_table": {"id": ["g", "a"]}, "deregister_table": {"id": ["g", "a"]}}], InvalidInputError),
        ([{"nonsense": {}}], InvalidInputError),
        ([{"declare_table": {"id": ["missing", "a"]}}], NamespaceNotFoundError),
        ([{"declare_table": {"id": ["g", "a"]}}, {"declare_table": {"id": ["g", "a"]}}], TableAlreadyExistsError),
        ([{"deregister_table": {"id": ["g", "absent"]}}], TableNotFoundError),
        ([{"declare_table": {"id": ["g", "a$b"]}}], InvalidInputError),
        ([{"declare_table": {"id": ["g", ".."]}}], InvalidInputError),
        ([{"declare_table": {"id": ["g", "a/b"]}}], InvalidInputError),
        ([{"declare_table": {"id": ["g", "a\x00"]}}], InvalidInputError),
        ([{"declare_table": {"id": ["g", ""]}}], InvalidInputError),
        ([{"declare_table": {"id": ["g", "a"], "location": "file:///elsewhere/0a1b2c3d_g$a"}}], InvalidInputError),
    ],
)
def test_bad_batches_change_nothing_on_disk(ground: Ground, operations: list[object], error: type[Exception]) -> None:
    before = ground.tree()

    with pytest.raises(error):
        ground.batch(*operations)  # type: ignore[arg-type]

    assert ground.tree() == before


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_staged_manifest_with_a_fragment_that_is_none_is_refused(ground: Ground, mode: str) -> None:
    person = ground.make_table("g", "person")
    request = ground.stage(person, rows(3, 4), mode)
    staged = Path("/" + request["create_table_version"]["manifest_path"])
    file = parse_manifest_file(staged.read_bytes(), lazily=True)
    assert isinstance(file.outline, pb.ManifestOutline)
    file.outline.fragments[-1] = b"\xff"
    damaged = encode_manifest_file(file.outline, file.transaction)
    staged.write_bytes(damaged)
    request["create_table_version"]["manifest_size"] = len(damaged)

    with pytest.raises(InvalidInputError, match="version 2 has a fragment that cannot be decoded"):
        ground.batch(request)

    assert ground.head(person) == 1


def test_a_batch_that_changes_nothing_is_judged_on_the_newest_version(ground: Ground) -> None:
    """It claims no slot, at which a newer version would be met."""
    ground.make_namespace("n")
    ground.again().call("drop_namespace", id=["n"])
    ground.call("create_namespace", id=["n"], mode="exist_ok")
    assert "n" in ground.again().catalog.snapshot().child_namespaces(())
