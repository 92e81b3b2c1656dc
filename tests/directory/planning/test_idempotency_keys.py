"""Idempotency keys are those of a principal (rule A1: a repeated request finds the record of its batch)."""

from __future__ import annotations

from typing import Any

import pytest
from lance_namespace.errors import ConcurrentModificationError, InvalidInputError

from tests.directory.tables import Ground

KEY = "monday"


def send(ground: Ground, principal: str | None, *operations: dict[str, Any], key: str | None = KEY) -> dict[str, Any]:
    request = {"operations": list(operations)}
    call = ground.namespace.prepare("batch_commit_tables", request, idempotency_key=key, principal=principal)
    [answer] = ground.namespace.commit([call])
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
    answers = [answer.body["transaction_id"] for answer in ground.namespace.commit(calls)]  # type: ignore[union-attr]

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

    ground.catalog.record_maintenance.remove([record])
    ground.catalog.flush_record_maintenance()

    snapshot = ground.again().catalog.snapshot()
    assert snapshot.record_by_key(KEY, "a") is None
    assert snapshot.record_by_key(KEY, "b") is not None
