"""Each error answer says what became of the request, as data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from lance_namespace.errors import InternalError, InvalidInputError, ServiceUnavailableError, ThrottlingError

from lance_core.errors import CorruptFile, StorageError, StorageUnknown
from namespace_server.app import create_app
from namespace_server.directory.model.errors import BatchConflict, BatchUnknown, CatalogBusy, ConflictDetail
from namespace_server.outcomes import outcome_of, with_nothing_done
from namespace_server.rest.identity import Authenticator
from tests.data.arrow import ARROW
from tests.rest.conftest import EchoCatalog, RunningServer, Serve
from tests.rest.served import CHANGES, SERVED, Served

FIELDS = {
    "operations": [],
    "actions": [],
    "ranges": [],
    "location": "t",
    "tag": "x",
    "name": "x",
    "new_table_name": "u",
}


@pytest.fixture(scope="module")
def echo() -> EchoCatalog:
    return EchoCatalog()


@pytest.fixture(scope="module")
def failing(echo: EchoCatalog) -> Iterator[httpx.Client]:
    server = RunningServer(create_app(echo, Authenticator({})))
    with httpx.Client(base_url=server.url, verify=False, timeout=60) as client:
        yield client
    server.stop()


def send(client: httpx.Client, endpoint: Served, body: Any = None) -> httpx.Response:
    path = endpoint.path.replace("{id}", "a").replace("{version}", "1").replace("{index_name}", "i")
    path = path.replace("{column}", "c").replace("{row}", "0")
    if endpoint.rows is not None:
        return client.request(endpoint.method, path, content=b"no rows", headers=ARROW)
    return client.request(endpoint.method, path, json=body if endpoint.method == "POST" else None)


of_each = pytest.mark.parametrize("endpoint", SERVED, ids=lambda item: item.operation)


@of_each
def test_each_refusal_of_each_route_says_that_nothing_was_done(
    failing: httpx.Client, echo: EchoCatalog, endpoint: Served
) -> None:
    """A missing table, a wrong body: whatever this route refuses first."""
    echo.failure = InvalidInputError("no")
    answer = send(failing, endpoint, [])
    if endpoint.operation != "health" and answer.status_code != 200:
        assert answer.status_code < 500, answer.text
        assert answer.json()["outcome"] == "nothing_done"


FAILURES = [
    RuntimeError("a bug"),
    StorageError("the store"),
    StorageUnknown("the store"),
    CorruptFile("damaged"),
    InternalError("failed"),
    ServiceUnavailableError("nothing was done, by words alone"),
]


@pytest.mark.parametrize(
    "endpoint", [item for item in SERVED if item.read is not None], ids=lambda item: item.operation
)
def test_a_read_that_fails_did_nothing(failing: httpx.Client, echo: EchoCatalog, endpoint: Served) -> None:
    for failure in FAILURES:
        echo.failure = failure
        answer = send(failing, endpoint, {})
        assert answer.status_code >= 500, answer.text
        assert answer.json()["outcome"] == "nothing_done", failure


@pytest.mark.parametrize(
    "endpoint", [item for item in CHANGES if not (item.data or item.pinned)], ids=lambda item: item.operation
)
def test_a_change_that_fails_for_a_reason_that_was_not_foreseen_is_unknown(
    failing: httpx.Client, echo: EchoCatalog, endpoint: Served
) -> None:
    for failure in FAILURES:
        echo.failure = failure
        answer = send(failing, endpoint, FIELDS)
        assert answer.status_code >= 500, answer.text
        assert answer.json()["outcome"] == "unknown", failure
        echo.failure = with_nothing_done(type(failure)(*failure.args))
        if not isinstance(failure, InternalError | ServiceUnavailableError):
            continue  # what ends a group without results says nothing of its calls
        assert send(failing, endpoint, FIELDS).json()["outcome"] == "nothing_done"


@pytest.mark.parametrize(
    ("failure", "outcome"),
    [
        (BatchUnknown("b", "reason"), "unknown"),
        (CatalogBusy("b", 20), "nothing_done"),
        (ThrottlingError("full"), "nothing_done"),
        (with_nothing_done(ServiceUnavailableError("full")), "nothing_done"),
        (ServiceUnavailableError("nothing was done, by words alone"), "unknown"),
        (InvalidInputError("no"), "nothing_done"),
    ],
    ids=lambda item: item if isinstance(item, str) else type(item).__name__,
)
def test_a_batch_is_answered_with_the_outcome_of_its_verdict(
    failing: httpx.Client, echo: EchoCatalog, failure: Exception, outcome: str
) -> None:
    echo.failure = failure
    assert failing.post("/v1/table/batch-commit", json={"operations": []}).json()["outcome"] == outcome
    assert outcome_of(failure) == outcome


def test_a_conflict_says_its_kind(failing: httpx.Client, echo: EchoCatalog) -> None:
    for kind in ("retryable", "incompatible"):
        detail = ConflictDetail(0, ("t",), None, 1, 2, None, "words", kind)
        echo.failure = BatchConflict("a conflict", detail, "append")
        answer = failing.post("/v1/table/batch-commit", json={"operations": []}).json()
        assert (answer["outcome"], answer["failures"][0]["kind"]) == ("nothing_done", kind)


def test_what_is_refused_before_it_is_a_change_did_nothing(serve: Serve) -> None:
    with httpx.Client(base_url=serve(EchoCatalog(), keys={"key-of-ann": "ann"}).url) as http:
        answers = [
            http.post("/v1/table/t/drop", json={}),
            http.post("/v1/no/such/route", json={}),
            http.put("/v1/table/t/drop"),
            http.post("/v1/table/t/drop", content=b"no JSON", headers={"x-api-key": "key-of-ann"}),
        ]
    assert [answer.status_code for answer in answers] == [401, 404, 405, 400]
    assert {answer.json()["outcome"] for answer in answers} == {"nothing_done"}
