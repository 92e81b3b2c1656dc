"""Idempotency keys are those of a principal (rule A1: a repeated request finds the record of its batch)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from lance_namespace.errors import ConcurrentModificationError, InvalidInputError

from namespace_server.directory.model.entries import Changes
from namespace_server.directory.reading.response_cache import Answer
from tests.directory.breaking import is_flip
from tests.directory.tables import Ground
from tests.storage.faults import FaultStore, Write

KEY = "monday"


def send(ground: Ground, principal: str | None, *operations: dict[str, Any], key: str | None = KEY) -> dict[str, Any]:
    request = {"operations": list(operations)}
    call = ground.namespace.prepare("batch_commit_tables", request, idempotency_key=key, principal=principal)
    [answer] = ground.namespace.commit_calls([call])
    if isinstance(answer, Exception):
        raise answer
    return answer.body


def declare(name: str) -> dict[str, Any]:
    return {"declare_table": {"id": ["g", name], "location": f"0a1b2c3d_g${name}"}}


@pytest.mark.parametrize(("first", "second"), [("a", "b"), ("a", None), (None, "a")])
def test_the_key_of_another_principal_is_another_key(ground: Ground, first: str | None, second: str | None) -> None:
    one = send(ground, first, declare("x"))

    other = send(ground.again(), second, declare("y"))

    assert other["transaction_id"] != one["transaction_id"]
    assert ground.read("list_tables", id=["g"]) == {"tables": ["x", "y"]}
    again = ground.again()
    assert send(again, first, declare("x"))["transaction_id"] == one["transaction_id"]
    assert send(again, second, declare("y"))["transaction_id"] == other["transaction_id"]


def test_the_result_of_another_principal_is_not_answered(ground: Ground) -> None:
    send(ground, "a", declare("x"))

    with pytest.raises(Exception, match="Table already exists"):
        send(ground, "b", declare("x"))


def test_in_one_group(ground: Ground) -> None:
    calls = [
        ground.namespace.prepare(
            "batch_commit_tables", {"operations": [declare(name)]}, idempotency_key=KEY, principal=who
        )
        for who, name in (("a", "x"), ("b", "y"), ("a", "x"))
    ]
    answers = [answer.body["transaction_id"] for answer in ground.namespace.commit_calls(calls)]  # type: ignore[union-attr]

    assert answers[0] == answers[2] != answers[1]


def test_the_same_principal_cannot_use_a_key_twice(ground: Ground) -> None:
    send(ground, "a", declare("x"))

    with pytest.raises(InvalidInputError, match="was used for another request"):
        send(ground, "a", declare("y"))


def test_the_record_of_another_principal_is_not_found_by_its_request(ground: Ground) -> None:
    table = ground.make_table("g", "t")
    other = ground.make_table("g", "u")
    staged = [ground.stage(each, ground.open(each).to_table()) for each in (table, other)]
    done = send(ground, "a", *staged, key=None)

    assert send(ground, "a", *staged, key=None) == done
    with pytest.raises((ConcurrentModificationError, InvalidInputError)):
        send(ground, "b", *staged, key=None)


def test_a_removed_record_frees_the_key_of_its_principal_alone(ground: Ground) -> None:
    ours = send(ground, "a", declare("x"))
    send(ground, "b", declare("y"))
    record = ground.catalog.snapshot().record(ours["transaction_id"])
    assert record is not None

    ground.catalog.record_housekeeping.remove([record])
    ground.catalog.flush_record_housekeeping()

    snapshot = ground.again().catalog.snapshot()
    assert snapshot.record_by_key(KEY, "a") is None
    assert snapshot.record_by_key(KEY, "b") is not None


def commit(ground: Ground, *operations: dict[str, Any], times: int = 1, key: str | None = KEY) -> list[int]:
    """Commit copies of a batch in one group; the catalog version that each was told."""
    request = {"operations": list(operations)}
    calls = [ground.namespace.prepare("batch_commit_tables", request, idempotency_key=key) for _ in range(times)]
    answers = ground.namespace.commit_calls(calls)
    assert all(isinstance(answer, Answer) for answer in answers), answers
    return [answer.catalog_version for answer in answers if isinstance(answer, Answer)]


class TestARepeatedBatchIsToldTheCatalogVersionThatHoldsIt:
    def test_after_other_changes(self, ground: Ground) -> None:
        before = ground.catalog.snapshot().version
        first = commit(ground, declare("x"))
        ground.make_namespace("other")

        assert first == [before + 1]
        assert commit(ground, declare("x")) == commit(ground.again(), declare("x")) == first

    def test_after_the_promotion_that_closes_its_record(self, ground: Ground) -> None:
        staged = ground.stage(ground.make_table("g", "t"), ground.open(["g", "t"]).to_table())
        first = commit(ground, staged)
        ground.catalog.sweep()
        ground.catalog.flush_record_housekeeping()

        assert ground.catalog.snapshot().version > first[0]
        assert commit(ground.again(), staged) == first

    def test_in_the_group_of_the_first_one(self, ground: Ground) -> None:
        before = ground.catalog.snapshot().version

        assert commit(ground, declare("x"), times=3) == [before + 1] * 3

    def test_whose_flip_was_lost_to_another_writer(self, broken: Ground, faults: FaultStore) -> None:
        rival, before = broken.again(), broken.catalog.snapshot().version
        rivals = iter(["first", "second"])

        def win_two_slots(verb: str, path: str) -> None:
            if verb == "put_if_absent" and is_flip(Write(0, verb, path)) and (name := next(rivals, None)) is not None:
                rival.make_namespace(name)

        undo = faults.before(win_two_slots)
        first = commit(broken, declare("x"))
        undo()
        broken.make_namespace("other")

        assert first == [before + 3]
        assert commit(broken, declare("x")) == first

    def test_without_a_key(self, ground: Ground) -> None:
        tables = [ground.make_table("g", name) for name in ("t", "u")]
        staged = [ground.stage(table, ground.open(table).to_table()) for table in tables]
        first = commit(ground, *staged, key=None)
        ground.make_namespace("other")

        assert commit(ground, *staged, key=None) == first

    def test_unless_the_record_does_not_tell_it(self, ground: Ground) -> None:
        """Then it is told the newest one, which holds the batch too."""
        commit(ground, declare("x"))
        record = ground.catalog.snapshot().record_by_key(KEY)
        assert record is not None
        silent = replace(record, catalog_version=0)
        ground.catalog.committer.commit_changes(lambda _: Changes({silent.object_id: silent}))

        assert commit(ground, declare("x")) == [ground.catalog.snapshot().version]
