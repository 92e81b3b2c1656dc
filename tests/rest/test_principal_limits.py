"""What one principal may have under way: the excess is refused before its body is read, and others are not."""

from __future__ import annotations

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from http.client import HTTPResponse
from typing import Any, Self

import httpx
import pytest

from namespace_server.settings import load_settings
from namespace_server.throttling import CHANGES, REQUESTS, UPLOADS, LimitReached, PrincipalLimit, Upload
from tests.rest.conftest import EchoCatalog, RunningServer, Serve
from tests.waiting import until

KEYS = {"key-of-noisy-1": "noisy", "key-of-quiet-1": "quiet"}
NOISY, QUIET = ({"x-api-key": key} for key in KEYS)
INSERT = "/v1/table/t/insert"
ARROW = "content-type: application/vnd.apache.arrow.stream\r\n"


class Half:
    """A request whose head was sent, and of whose body only a part."""

    def __init__(self, server: RunningServer, path: str, key: str, headers: str, body: bytes = b"") -> None:
        self.connection = socket.create_connection(("127.0.0.1", server.port), timeout=20)
        head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\nx-api-key: {key}\r\n{headers}\r\n"
        self.connection.sendall(head.encode() + body)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def answer(self) -> tuple[int, dict[str, Any], str | None]:
        """Status, body and `Retry-After`."""
        response = HTTPResponse(self.connection)
        response.begin()
        return response.status, json.loads(response.read()), response.headers["retry-after"]


def refused(answer: httpx.Response, setting: str, most: int, found: int) -> None:
    error = answer.json()
    assert (answer.status_code, error["code"], error["outcome"], error["detail"]) == (429, 21, "nothing_done", setting)
    assert answer.headers["retry-after"] == "1"
    assert error["error"].startswith(f"{setting}: expected at most {most} ")
    assert f"found {found}; nothing was done, try again in 1 s" in error["error"]


def test_the_requests_of_a_principal_are_bounded(serve: Serve, echo_catalog: EchoCatalog) -> None:
    echo_catalog.gate.clear()
    server = serve(echo_catalog, keys=KEYS, principal_requests=1)
    describe = f"{server.url}/v1/table/t/describe"
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(httpx.post, f"{server.url}/v1/table/a/declare", json={}, headers=NOISY)
        assert echo_catalog.entered.acquire(timeout=30)
        for path, method in (
            (describe, "POST"),
            (f"{server.url}/v1/catalog/pins", "GET"),
        ):  # in front of FastAPI, and by it
            refused(httpx.request(method, path, json={} if method == "POST" else None, headers=NOISY), REQUESTS, 1, 2)
        assert httpx.post(describe, json={}, headers=QUIET).status_code == 200
        assert httpx.get(f"{server.url}/health/live").status_code == 200
        echo_catalog.gate.set()
        assert held.result().status_code == 200
    for _ in range(3):  # a refusal counts nothing, nor does what was answered, with an error or not
        assert httpx.post(describe, json={}, headers=NOISY).status_code == 200
        assert httpx.post(describe, content=b"[", headers=NOISY).status_code == 400


def test_a_stream_of_events_is_a_request(serve: Serve, echo_catalog: EchoCatalog) -> None:
    server = serve(echo_catalog, keys=KEYS, principal_requests=1)
    events = f"{server.url}/v1/catalog/events?since=7"
    with httpx.stream("GET", events, headers={**NOISY, "accept": "text/event-stream"}) as stream:
        assert stream.status_code == 200
        refused(httpx.get(f"{server.url}/v1/catalog", headers=NOISY), REQUESTS, 1, 2)
    until(lambda: httpx.get(f"{server.url}/v1/catalog", headers=NOISY).status_code == 200)


@pytest.mark.parametrize("path", ["/v1/table/b/declare", "/v1/table/b/tags/create"])
def test_the_changes_of_a_principal_are_bounded_before_their_bodies_are_read(
    serve: Serve, echo_catalog: EchoCatalog, path: str
) -> None:
    echo_catalog.gate.clear()
    server = serve(echo_catalog, keys=KEYS, principal_changes=1)
    with ThreadPoolExecutor(2) as pool:
        held = pool.submit(httpx.post, f"{server.url}/v1/table/a/declare", json={}, headers=NOISY)
        assert echo_catalog.entered.acquire(timeout=30)
        json_head = "content-type: application/json\r\ncontent-length: 1000000\r\n"
        with Half(server, path, "key-of-noisy-1", json_head) as more:
            status, error, after = more.answer()
        assert (status, error["code"], error["outcome"], error["detail"], after) == (
            429,
            21,
            "nothing_done",
            CHANGES,
            "1",
        )
        assert httpx.post(f"{server.url}/v1/table/t/describe", json={}, headers=NOISY).status_code == 200
        other = pool.submit(httpx.post, f"{server.url}/v1/table/c/declare", json={}, headers=QUIET)
        assert echo_catalog.entered.acquire(timeout=30)
        echo_catalog.gate.set()
        assert (held.result().status_code, other.result().status_code) == (200, 200)
    assert httpx.post(f"{server.url}/v1/table/a/declare", json={}, headers=NOISY).status_code == 200


@pytest.mark.parametrize(
    ("path", "kind"), [(INSERT, ARROW), ("/v1/table/batch-commit", "content-type: application/json\r\n")]
)
def test_the_bytes_that_a_principal_sends_are_bounded(
    serve: Serve, echo_catalog: EchoCatalog, path: str, kind: str
) -> None:
    server = serve(echo_catalog, keys=KEYS, principal_upload=1_000_000)
    with ExitStack() as stack:
        first = stack.enter_context(Half(server, path, "key-of-noisy-1", f"{kind}content-length: 700000\r\n", b"x" * 9))
        found = server.service.uploads
        until(lambda: found._held == {"noisy": 700_000})
        more = stack.enter_context(Half(server, path, "key-of-noisy-1", f"{kind}content-length: 300001\r\n"))
        status, error, after = more.answer()
        assert (status, error["code"], error["outcome"], error["detail"], after) == (
            429,
            21,
            "nothing_done",
            UPLOADS,
            "1",
        )
        assert "expected at most 1000000 bytes of bodies of one principal at one time, found 1000001" in error["error"]
        longer = stack.enter_context(Half(server, path, "key-of-noisy-1", f"{kind}content-length: 1000001\r\n"))
        status, error, after = longer.answer()  # it would be refused for ever
        assert (status, error["code"], after) == (413, 13, None)
        assert UPLOADS in error["error"]
        chunked = f"{kind}transfer-encoding: chunked\r\n"
        piece = b"%x\r\n%b\r\n" % (400_000, b"x" * 400_000)
        pieces = stack.enter_context(Half(server, path, "key-of-noisy-1", chunked, piece))
        assert pieces.answer()[0] == 429
        stack.enter_context(Half(server, path, "key-of-quiet-1", f"{kind}content-length: 900000\r\n", b"x"))
        until(lambda: found._held["quiet"] == 900_000)
        first.connection.close()
        until(lambda: found._held == {"quiet": 900_000})
    until(lambda: not found._held)
    assert found.refused == 2


def test_short_bodies_of_json_are_no_uploads(serve: Serve, echo_catalog: EchoCatalog) -> None:
    server = serve(echo_catalog, principal_upload=10)
    assert httpx.post(f"{server.url}/v1/table/a/declare", json={"properties": {"a": "x" * 1000}}).status_code == 200


def test_callers_without_a_key_are_one_principal(serve: Serve, echo_catalog: EchoCatalog) -> None:
    echo_catalog.gate.clear()
    server = serve(echo_catalog, principal_changes=1)
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(httpx.post, f"{server.url}/v1/table/a/declare", json={})
        assert echo_catalog.entered.acquire(timeout=30)
        refused(httpx.post(f"{server.url}/v1/table/b/declare", json={}), CHANGES, 1, 2)
        echo_catalog.gate.set()
        assert held.result().status_code == 200


def test_by_default_no_caller_without_a_key_is_bounded_and_others_leave_a_quarter() -> None:
    alone = load_settings(None, root="/r").limits
    assert (alone.principal_requests, alone.principal_changes, alone.principal_upload) == (0, 0, 0)
    several = load_settings(None, root="/r", api_keys={"first-secret": "ann"})
    limits = several.limits
    assert (limits.principal_requests, limits.principal_changes) == (0, 3 * 1024)
    assert limits.principal_changes > several.max_connections  # so nobody meets it with the other settings as they are
    assert limits.principal_upload == 48 << 30
    assert load_settings(
        None, root="/r", api_keys={"first-secret": "ann"}, max_spool_bytes=9
    ).limits.principal_upload == (
        several.max_rows_bytes  # each body can be sent
    )
    chosen = load_settings(
        None,
        root="/r",
        max_requests_per_principal=1,
        max_changes_per_principal=2,
        max_upload_bytes_per_principal=3,
    ).limits
    assert (chosen.principal_requests, chosen.principal_changes, chosen.principal_upload) == (1, 2, 3)


@pytest.mark.parametrize("amounts", [[1], [1, 2], [3, 4, 5]])
def test_what_is_given_back_is_counted_no_longer(amounts: list[int]) -> None:
    limit = PrincipalLimit(UPLOADS, 12, "bytes")
    uploads = [Upload(limit, "a") for _ in amounts]
    for upload, amount in zip(uploads, amounts, strict=True):
        for size in range(1, amount + 1):
            upload.grow(size)
    over = Upload(limit, "a")
    with pytest.raises(LimitReached):
        over.grow(13 - sum(amounts))
    over.close()
    for upload in uploads:
        upload.close()
        upload.close()
    assert not limit._held


def test_no_bound_counts_nothing() -> None:
    limit = PrincipalLimit(REQUESTS, 0, "requests")
    with limit.holding("a"), limit.holding("a"):
        assert not limit._held
