"""`HttpClient`: what is sent again, and what is read from responses."""

from __future__ import annotations

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler

import pytest

from namespace_client import CatalogClosed, CatalogUnreachable, CommitRejected
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
