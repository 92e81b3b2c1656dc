"""`HttpClient`: what is sent again, and what is read from responses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

import pytest
import tenacity.nap

from namespace_client import CatalogClosed, CatalogUnavailable, CatalogUnreachable, CommitRejected
from namespace_client.http import CatalogServer, HttpClient
from spark_catalog.sql.catalog_requests import CatalogRequests
from spark_catalog.sql.errors import NoSuchTable, SqlError
from tests.client.scene import Scene
from tests.listener import listen
from tests.lossy_proxy import serve_lossily

over_http = pytest.mark.parametrize("scene", ["http"], indirect=True)


@over_http
def test_a_read_whose_response_is_lost_is_sent_again_once(scene: Scene) -> None:
    with serve_lossily(scene.target) as proxy, CatalogServer(proxy.url) as server:
        proxy.lossy_path, proxy.lose = "/v1/catalog", 1
        assert server.state().version == scene.catalog_version()
        proxy.lose = 2
        with pytest.raises(CatalogUnreachable, match="RemoteProtocolError"):
            server.state()
    assert proxy.keys == [None] * 4


@over_http
def test_a_change_whose_response_is_lost_is_sent_again_under_its_key(scene: Scene) -> None:
    """The table is renamed once: without the key the repetition would find no table of the old name."""
    scene.make("t", 1)
    with serve_lossily(scene.target) as proxy, CatalogServer(proxy.url) as server:
        proxy.lossy_path, proxy.lose = "/rename", 1
        CatalogRequests(server).rename_table((scene.namespace, "t"), (scene.namespace, "u"))
        first, second = proxy.keys
        proxy.keys.clear()
        CatalogRequests(server).rename_table((scene.namespace, "u"), (scene.namespace, "v"))
    assert first is not None
    assert first == second
    assert proxy.keys != [first]
    assert scene.ids("v") == [1]


@contextmanager
def throttling(times: int, retry_after: int) -> Iterator[tuple[str, list[tuple[str, str | None]]]]:
    """A server that refuses so many requests since the caller has too much under way; what it was asked, by which key.

    It answers all others alike: a response to each request that the tests send.
    """
    asked: list[tuple[str, str | None]] = []
    refused = {"error": "max_requests_per_principal: …", "code": 21, "outcome": "nothing_done", "detail": "…"}

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.rfile.read(int(request.headers.get("content-length") or 0))
        asked.append((request.path, request.headers.get("idempotency-key")))
        is_over = len(asked) <= times
        body = json.dumps(refused if is_over else {"root": "/c", "version": 3, "results": []}).encode()
        request.send_response(429 if is_over else 200)
        if is_over:
            request.send_header("retry-after", str(retry_after))
        request.send_header("content-length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    with listen(answer) as url:
        yield url, asked


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that were slept between two requests; nothing sleeps."""
    found: list[float] = []
    monkeypatch.setattr(tenacity.nap.time, "sleep", found.append)
    return found


def test_what_is_refused_because_of_other_requests_of_the_caller_is_sent_again(pauses: list[float]) -> None:
    with throttling(3, 1) as (url, asked), CatalogServer(url) as server:
        assert server.state().version == 3
        assert len(asked) == 4
        asked.clear()
        assert server.commit([], idempotency_key="k", message=None).tables == ()
    assert asked == [("/v1/table/batch-commit", "k")] * 4
    assert len(pauses) == 6
    assert all(1 <= pause <= 1.25 * 1.01 for pause in pauses)
    assert len(set(pauses)) == 6  # callers that were refused together do not come again together


def test_the_last_refusal_is_raised_and_says_when_to_come_again(pauses: list[float]) -> None:
    with throttling(100, 1) as (url, asked), CatalogServer(url, retries=2) as server:
        with pytest.raises(CatalogUnavailable) as of_read:
            server.state()
        assert len(asked) == 5
        with pytest.raises(CatalogUnavailable) as of_change:
            server.commit([], idempotency_key="k", message=None)
        assert len(asked) == 5 + 3
    assert {(error.value.code, error.value.status, error.value.retry_after) for error in (of_read, of_change)} == {
        (21, 429, 1)
    }


def test_a_read_does_not_wait_for_long(pauses: list[float]) -> None:
    with throttling(100, 60) as (url, asked), CatalogServer(url) as server:
        with pytest.raises(CatalogUnavailable) as refused:
            server.state()
        assert refused.value.retry_after == 60
    assert (len(asked), pauses) == (1, [])


def test_a_closed_client_sends_nothing() -> None:
    client = HttpClient("http://127.0.0.1:1")
    client.close()
    with pytest.raises(CatalogClosed, match=r"GET /v1/catalog: .* was closed; nothing was sent"):
        client.ask("GET", "/v1/catalog")


@over_http
def test_sql_has_a_class_and_the_text_of_the_catalog_for_a_missing_table(scene: Scene) -> None:
    with CatalogServer(scene.target) as server:
        with pytest.raises(NoSuchTable) as missing:
            CatalogRequests(server).drop_table((scene.namespace, "t"))
        with pytest.raises(CommitRejected, match=r"\(code 13\)") as refused:
            CatalogRequests(server).create_namespace(("a/b",), {})
    assert "code" not in str(missing.value)
    assert not isinstance(refused.value, SqlError)
    assert refused.value.status == 400


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b"<html>"),
        (200, b"[]"),
        (200, b"{}"),
        (200, b'{"root": "/c", "version": "x"}'),
        (301, b""),
        (404, b"{}"),
        (404, b'{"code": "4", "error": "a code that is no number"}'),
        (502, b"<html>"),
    ],
)
def test_a_response_of_another_server_is_no_response_of_the_catalog(status: int, body: bytes) -> None:
    with (
        listen(_answering(status, body)) as url,
        CatalogServer(url) as server,
        pytest.raises(CatalogUnreachable, match="catalog server"),
    ):
        server.state()


def _answering(status: int, body: bytes) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        request.send_header("content-length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    return answer
