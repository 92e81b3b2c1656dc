"""Operations on rows over HTTP: worker processes, streams, and bodies that break."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pyarrow as pa
import pytest

from tests.data.arrow import ARROW, file, read, stream
from tests.data.conftest import ROWS
from tests.directory.gc.unreferenced import check_exact


@pytest.mark.parametrize("encode", [stream, file])
def test_rows_are_appended(url: str, http: httpx.Client, table: str, encode) -> None:
    answer = http.post(f"{table}/insert", content=encode(pa.table({"a": [3], "s": ["z"]})), headers=ARROW)
    assert answer.status_code == 200, answer.text
    assert {**answer.json(), "transaction_id": ""} == {"transaction_id": "", "version": 2, "num_inserted_rows": 1}
    assert read(url, table).to_pydict() == {"a": [1, 2, 3], "s": ["x", "y", "z"]}
    assert http.post(f"{table}/count_rows", json={}).json() == 3
    assert http.post(f"{table}/count_rows", json={"predicate": "a >= 2"}).json() == 2
    assert http.post(f"{table}/count_rows", json={"version": 1}).json() == 2


def test_an_insert_may_replace_rows_and_schema(url: str, http: httpx.Client, table: str) -> None:
    answer = http.post(f"{table}/insert?mode=Overwrite", content=stream(pa.table({"q": [1.5]})), headers=ARROW)
    assert answer.json()["version"] == 2
    assert read(url, table).to_pydict() == {"q": [1.5]}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", 13),
        (b"no arrow at all", 13),
        (stream(ROWS)[:100], 13),
        (stream(ROWS)[:-30], 13),
        (stream(pa.table({"a": ["text"], "s": ["z"]})), 20),
        (stream(pa.table({"a": [1], "s": ["z"], "more": [1]})), 20),
    ],
    ids=["empty", "garbage", "cut schema", "cut rows", "wrong type", "unknown column"],
)
def test_a_body_that_does_not_fit_changes_nothing(http: httpx.Client, table: str, body: bytes, code: int) -> None:
    answer = http.post(f"{table}/insert", content=body, headers=ARROW)
    assert (answer.status_code, answer.json()["code"]) == (400, code)
    assert "/" not in answer.json()["error"].replace("count/", "")
    assert http.post(f"{table}/count_rows", json={}).json() == 2


def test_a_client_that_goes_away_leaves_nothing(url: str, http: httpx.Client, table: str) -> None:
    location = Path(http.post(f"{table}/describe", json={}).json()["location"].removeprefix("file://"))
    before = sorted(location.rglob("*"))
    body = stream(pa.table({"a": list(range(100_000)), "s": ["x"] * 100_000}))

    def broken() -> Iterator[bytes]:
        yield body[: len(body) // 2]
        raise ConnectionError

    with pytest.raises(ConnectionError):
        httpx.post(f"{url}{table}/insert", content=broken(), headers=ARROW)
    assert http.post(f"{table}/count_rows", json={}).json() == 2
    assert http.post(f"{table}/insert", content=stream(ROWS), headers=ARROW).json()["version"] == 2
    after = [path for path in sorted(location.rglob("*")) if path not in before and path.suffix == ".lance"]
    assert len(after) == 1
    assert check_exact(location.parent, ["w", location.name.partition("$")[2]]).orphans == ()


def test_a_table_that_does_not_exist(http: httpx.Client) -> None:
    answer = http.post("/v1/table/w$absent/insert", content=stream(ROWS), headers=ARROW)
    assert (answer.status_code, answer.json()["code"]) == (404, 4)


def test_a_form_cannot_send_rows(http: httpx.Client, table: str) -> None:
    answer = http.post(f"{table}/insert", content=stream(ROWS), headers={"content-type": "text/plain"})
    assert (answer.status_code, answer.json()["code"]) == (400, 13)


def test_a_predicate_over_an_unknown_column(http: httpx.Client, table: str) -> None:
    answer = http.post(f"{table}/count_rows", json={"predicate": "nope > 2"})
    assert (answer.status_code, answer.json()["code"]) == (404, 12)
