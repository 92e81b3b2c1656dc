"""Rows under an idempotency key: long bodies, repetitions at one time, and what they leave in storage."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pyarrow as pa
import pytest
from lance_namespace.errors import InvalidInputError

from namespace_server.answer import Answer
from namespace_server.data.change_request import Caller, ChangeRecord, ChangeRequest
from namespace_server.data.inline import InlineWork
from namespace_server.data.operations import DataOperations
from namespace_server.data.port import CommittedChange
from tests.data.arrow import ARROW, files, location, read, stream
from tests.data.conftest import ROWS
from tests.directory.gc.unreferenced import check_exact

LONG = pa.table({"a": np.arange(3, 400_003), "s": ["-"] * 400_000})
OTHER = stream(pa.table({"a": np.arange(4, 400_004), "s": ["-"] * 400_000}))
BODY = stream(LONG)


def pieces(body: bytes) -> Iterator[bytes]:
    """A body whose length is not declared."""
    for start in range(0, len(body), 300_000):
        yield body[start : start + 300_000]


def insert(http: httpx.Client, table: str, body: bytes, key: str, mode: str = "append") -> httpx.Response:
    headers = {**ARROW, "idempotency-key": key}
    return http.post(f"{table}/insert?mode={mode}", content=pieces(body), headers=headers)


def test_a_long_body_is_known_again_by_its_bytes(http: httpx.Client, table: str) -> None:
    first = insert(http, table, BODY, "long")
    assert (first.status_code, first.json()["num_inserted_rows"]) == (200, 400_000)
    there = files(location(http, table))

    for body, mode in ((OTHER, "append"), (BODY, "overwrite"), (BODY[:-1], "append")):
        refused = insert(http, table, body, "long", mode)
        assert (refused.status_code, refused.json()["code"]) == (400, 13)
    assert insert(http, table, BODY, "long").json() == first.json()
    declared = http.post(
        f"{table}/insert", content=BODY, params={"mode": "append"}, headers={**ARROW, "idempotency-key": "long"}
    )
    assert declared.json() == first.json()

    assert http.post(f"{table}/count_rows", json={}).json() == 400_002
    assert files(location(http, table)) == there


def test_repetitions_at_one_time_leave_nothing_behind(url: str, http: httpx.Client, table: str) -> None:
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: insert(http, table, BODY, f"race-{table}"), range(4)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json()["transaction_id"] for answer in answers}) == 1
    assert read(url, table).num_rows == 400_002
    place = location(http, table)
    assert len([name for name in files(place) if name.startswith("data/")]) == 2
    assert check_exact(place.parent, ["w", place.name.partition("$")[2]]).orphans == ()


@pytest.mark.parametrize("body", [stream(ROWS), BODY], ids=["short", "long"])
def test_rows_that_nobody_takes_are_compared(http: httpx.Client, table: str, body: bytes) -> None:
    """With `exist_ok` the rows are not written where the table exists: they belong to the request all the same."""
    headers = {**ARROW, "idempotency-key": f"exists-{len(body)}"}

    def create(sent: bytes) -> httpx.Response:
        return http.post(f"{table}/create?mode=exist_ok", content=pieces(sent), headers=headers)

    first = create(body)
    assert (first.status_code, first.json()["version"]) == (200, 1)
    assert http.post(f"{table}/drop", json={}).status_code == 200
    assert create(body).json() == first.json()
    assert create(body + b"\0").json()["code"] == 13
    assert http.post(f"{table}/exists", json={}).status_code == 404


def test_a_change_of_nothing_is_not_made_later(http: httpx.Client, table: str) -> None:
    def delete() -> httpx.Response:
        return http.post(f"{table}/delete", json={"predicate": "a = 3"}, headers={"idempotency-key": f"none-{table}"})

    first = delete()
    assert (first.status_code, first.json()["version"]) == (200, 1)
    assert (
        http.post(f"{table}/insert", content=stream(pa.table({"a": [3], "s": ["z"]})), headers=ARROW).status_code == 200
    )
    assert delete().json() == first.json()
    assert http.post(f"{table}/count_rows", json={}).json() == 3


@pytest.mark.parametrize("body", [stream(ROWS), BODY], ids=["short", "long"])
def test_a_repetition_is_told_the_catalog_version_that_holds_it(http: httpx.Client, table: str, body: bytes) -> None:
    first = insert(http, table, body, f"told-{table}")
    assert insert(http, table, body, f"other-{table}").status_code == 200
    again = insert(http, table, body, f"told-{table}")
    assert again.json() == first.json()
    assert again.headers["x-lance-catalog-version"] == first.headers["x-lance-catalog-version"]


def test_a_refused_request_may_be_sent_again(http: httpx.Client, table: str) -> None:
    missing = f"{table}-later"
    headers = {**ARROW, "idempotency-key": "refused"}
    assert http.post(f"{missing}/insert", content=stream(ROWS), headers=headers).status_code == 404
    assert http.post(f"{missing}/create", content=stream(ROWS), headers=ARROW).status_code == 200
    assert http.post(f"{missing}/insert", content=stream(ROWS), headers=headers).json()["version"] == 2


def test_long_metadata_is_answered_again_and_not_kept(http: httpx.Client, table: str) -> None:
    given = {f"key-{number}": "v" * 1000 for number in range(100)}
    headers = {"idempotency-key": f"metadata-{table}"}
    first = http.post(f"{table}/schema_metadata/update", json=given, headers=headers)
    assert first.json() == given
    assert http.post(f"{table}/schema_metadata/update", json={"other": "x"}).json() == {"other": "x"}
    assert http.post(f"{table}/schema_metadata/update", json=given, headers=headers).json() == given
    place = location(http, table).parent / "__manifest" / "data"
    assert not any(b"v" * 1000 in path.read_bytes() for path in place.iterdir())


class Answered:
    """A catalog that another request under the same key changes between the first look and the second."""

    def __init__(self, looks: list[bool]) -> None:
        self.storage_options: dict[str, str] = {}
        self.looks = looks

    async def is_answered(self, _caller: Caller) -> bool:
        return self.looks.pop(0)

    async def answered(self, _record: ChangeRecord) -> CommittedChange:
        return CommittedChange("t", 7, kept={"version": 2})


async def _refused() -> Answer:
    raise InvalidInputError("the column exists")


def test_an_error_that_a_repetition_caused_is_answered_as_that_one() -> None:
    requested = ChangeRequest("alter_table_add_columns", {"id": ["t"]}, Caller("ann", "k"))

    def once(*looks: bool) -> Answer:
        operations: DataOperations[bytes] = DataOperations(Answered(list(looks)), InlineWork())  # type: ignore[arg-type]
        return asyncio.run(operations.once(requested, _refused))

    assert once(False, True) == Answer({"transaction_id": "t", "version": 2}, 7)
    with pytest.raises(InvalidInputError, match="the column exists"):
        once(False, False)
