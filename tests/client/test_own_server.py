"""`OwnServerTransport`: the client against an application of its own process, without a network."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from namespace_client import AccessRefused, Catalog, CatalogUnreachable, NotFound
from namespace_client.http import CatalogServer
from namespace_client.own_server import OwnServerTransport, RequestSource
from namespace_server.app import create_app
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.rest.identity import Authenticator
from tests.audit.lines import log_in, written

Answering = Callable[[dict[str, Any], Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]], Awaitable[None]]


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop that runs in a thread of its own."""
    found = asyncio.new_event_loop()
    thread = threading.Thread(target=found.run_forever)
    thread.start()
    yield found
    found.call_soon_threadsafe(found.stop)
    thread.join()
    found.close()


def client_of(
    application: Answering, loop: asyncio.AbstractEventLoop, source: RequestSource | None = None, timeout: float = 30
) -> httpx.Client:
    transport = OwnServerTransport(application, loop, source)
    return httpx.Client(base_url="http://own", transport=transport, timeout=timeout)


async def _start(send: Callable[[Any], Awaitable[None]]) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x-of", b"it")]})


def test_a_catalog_is_the_one_of_its_server_and_judges_the_caller(
    tmp_path: Path, loop: asyncio.AbstractEventLoop
) -> None:
    """Reads, changes, rows and refusals are those over a network; audit tells the address and agent of the source."""
    namespace = DirectoryNamespace(root=str(tmp_path / "catalog"), durability="none")
    app = create_app(namespace, Authenticator({"a" * 32: "ann"}), attempts=log_in(tmp_path / "audit"))
    source = RequestSource("192.0.2.7", b"catalog.example:80", headers=[(b"user-agent", b"a browser")])
    transport = OwnServerTransport(app, loop, source)
    lifespan = app.lifespan()
    asyncio.run_coroutine_threadsafe(lifespan.__aenter__(), loop).result(30)
    try:
        with Catalog(CatalogServer("http://own", headers={"x-api-key": "a" * 32}, transport=transport)) as catalog:
            catalog.ensure_namespace(["ml"])
            with catalog.begin(message="first") as tx:
                tx.create(["ml", "t"], pa.table({"id": [1, 2, 3]}))
            [newest, *_] = catalog.history(audited=False)
            assert newest.batches[0].principal == "ann"
            assert newest.batches[0].message == "first"
            with pytest.raises(NotFound):
                catalog.drop(["ml", "u"])
        wrong = CatalogServer(
            "http://own", headers={"x-api-key": "b" * 32}, transport=OwnServerTransport(app, loop, source)
        )
        with wrong, pytest.raises(AccessRefused):
            wrong.state()
    finally:
        asyncio.run_coroutine_threadsafe(lifespan.__aexit__(None, None, None), loop).result(30)
    refused = [(each["client"], each["user_agent"]) for each in written(tmp_path / "audit")]
    assert refused == [("192.0.2.7", "a browser")] * len(refused)
    assert refused


def test_an_application_sees_a_request_as_over_a_network(loop: asyncio.AbstractEventLoop) -> None:
    seen: list[dict[str, Any]] = []

    async def answer(scope: dict[str, Any], receive: Any, send: Any) -> None:
        seen.append({**scope, "body": (await receive())["body"]})
        await _start(send)
        await send({"type": "http.response.body", "body": b"whole"})

    source = RequestSource("2001:db8::1", b"a.example", "https", [(b"x-request-id", b"7"), (b"user-agent", b"it")])
    with client_of(answer, loop, source) as client:
        response = client.post("/v1/t%2Fu?limit=3", json={"a": 1}, headers={"X-Api-Key": "k"})
    assert (response.status_code, response.headers["x-of"], response.content) == (200, "it", b"whole")
    [scope] = seen
    assert (scope["method"], scope["scheme"], scope["client"]) == ("POST", "https", ("2001:db8::1", 0))
    assert (scope["path"], scope["raw_path"], scope["query_string"]) == ("/v1/t/u", b"/v1/t%2Fu", b"limit=3")
    headers = dict(scope["headers"])
    assert len(headers) == len(scope["headers"])
    assert headers[b"host"] == b"a.example"
    assert (headers[b"x-request-id"], headers[b"x-api-key"], headers[b"user-agent"]) == (b"7", b"k", b"it")
    assert scope["body"] == b'{"a":1}'


def test_the_client_of_a_catalog_sends_what_it_sends_over_a_network(loop: asyncio.AbstractEventLoop) -> None:
    seen: list[dict[str, Any]] = []

    async def answer(scope: dict[str, Any], receive: Any, send: Any) -> None:
        seen.append({**scope, "headers": dict(scope["headers"]), "body": (await receive())["body"]})
        await _start(send)
        await send({"type": "http.response.body", "body": b"{}"})

    over_a_network: list[httpx.Request] = []

    def note(request: httpx.Request) -> httpx.Response:
        over_a_network.append(request)
        return httpx.Response(200, json={})

    server = CatalogServer("http://own", headers={"X-Api-Key": "k"}, transport=OwnServerTransport(answer, loop))
    other = CatalogServer("http://own", headers={"X-Api-Key": "k"})
    other.client._client = httpx.Client(
        base_url="http://own", headers={"X-Api-Key": "k"}, transport=httpx.MockTransport(note)
    )
    for client in (server.client, other.client):
        client.ask("POST", "/v1/table/a%24%C3%A9/describe", {"a": ["\u00e9"]}, at=7)
        client.ask("POST", "/v1/table/a/tags/list", None, parameters={"limit": 3, "all": True, "page_token": "a&b"})
        client.fetch("GET", "/metrics", parameters={"name[]": ["x", "y"]})
        client.fetch("GET", "/v1/blob?version=3", headers={"Range": "bytes=0-0"})
    assert len(seen) == len(over_a_network) == 4
    for own, sent in zip(seen, over_a_network, strict=True):
        path, _, query = sent.url.raw_path.partition(b"?")
        assert (own["method"], own["raw_path"], own["query_string"]) == (sent.method, path, query)
        assert json.loads(own["body"] or b"0") == json.loads(sent.content or b"0")
        for name in ("x-api-key", "content-type", "x-lance-catalog-version", "range"):
            assert own["headers"].get(name.encode(), b"").decode() == sent.headers.get(name, "")
        assert own["headers"].get(b"content-length", b"0") == b"%d" % len(own["body"])


def test_an_answer_is_read_as_it_comes_and_a_slow_reader_is_waited_for(loop: asyncio.AbstractEventLoop) -> None:
    sent: list[int] = []
    moved = threading.Semaphore(0)

    async def answer(_scope: Any, _receive: Any, send: Any) -> None:
        await _start(send)
        for number in range(50):
            await send({"type": "http.response.body", "body": b"%d " % number, "more_body": True})
            sent.append(number)
            moved.release()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    with client_of(answer, loop) as client, client.stream("GET", "/") as response:
        pieces = response.iter_raw()
        assert next(pieces) == b"0 "
        assert moved.acquire(timeout=30)
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0.05), loop).result(30)
        assert len(sent) < 5
        assert b"".join(pieces).split()[-1] == b"49"


@pytest.mark.parametrize("way", ["reader", "timeout", "transport"])
def test_the_application_sees_that_its_client_went(loop: asyncio.AbstractEventLoop, way: str) -> None:
    begun, seen = threading.Event(), threading.Event()
    told: list[str] = []

    async def answer(_scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await _start(send)
        begun.set()
        told.append((await receive())["type"])
        for _ in range(3):  # an application that goes on is told so again
            with pytest.raises(OSError, match="gone"):
                await send({"type": "http.response.body", "body": b"x", "more_body": True})
        seen.set()

    with client_of(answer, loop, timeout=0.2 if way == "timeout" else 30) as client:
        if way == "reader":
            with client.stream("GET", "/"):
                pass
        elif way == "timeout":
            with pytest.raises(httpx.ReadTimeout, match="no answer within"):
                client.get("/")
        else:
            closing = threading.Thread(target=lambda: begun.wait(30) and client.close())
            closing.start()
            with pytest.raises(httpx.RemoteProtocolError, match="without the end"):
                client.get("/")
            closing.join()
        assert seen.wait(30)
    assert told == ["http.disconnect"]


def test_after_the_whole_answer_the_client_has_gone(loop: asyncio.AbstractEventLoop) -> None:
    seen = threading.Event()

    async def answer(_scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await _start(send)
        await send({"type": "http.response.body", "body": b"whole"})
        assert (await receive())["type"] == "http.disconnect"
        with pytest.raises(OSError, match="gone"):
            await send({"type": "http.response.body", "body": b"more"})
        seen.set()

    with client_of(answer, loop) as client:
        assert client.get("/").content == b"whole"
        assert seen.wait(30)


def test_the_head_of_an_answer_does_not_wait_for_its_body(loop: asyncio.AbstractEventLoop) -> None:
    begun = threading.Event()

    async def answer(_scope: Any, _receive: Any, send: Any) -> None:
        await _start(send)
        await asyncio.to_thread(begun.wait, 30)
        await send({"type": "http.response.body", "body": b"later"})

    with client_of(answer, loop) as client, client.stream("GET", "/") as response:
        assert response.headers["x-of"] == "it"
        begun.set()
        assert response.read() == b"later"


@pytest.mark.parametrize("begins", [True, False])
def test_an_application_that_ends_within_an_answer_is_no_whole_answer(
    loop: asyncio.AbstractEventLoop, begins: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def answer(_scope: Any, _receive: Any, send: Any) -> None:
        if begins:
            await _start(send)
            await send({"type": "http.response.body", "body": b"half", "more_body": True})
        raise ValueError("a fault")

    with client_of(answer, loop) as client, pytest.raises(httpx.RemoteProtocolError):
        client.get("/")
    assert "ended with an error" in caplog.text


def test_nothing_is_sent_where_there_is_no_loop_or_no_transport_and_never_on_the_loop_itself() -> None:
    async def answer(_scope: Any, _receive: Any, _send: Any) -> None:
        raise AssertionError("nothing is sent")

    ended = asyncio.new_event_loop()
    ended.close()
    server = CatalogServer("http://own", transport=OwnServerTransport(answer, ended))
    with server, pytest.raises(CatalogUnreachable, match="event loop"):
        server.state()
    transport = OwnServerTransport(answer, ended)
    transport.close()
    with pytest.raises(httpx.ConnectError, match="closed"):
        transport.handle_request(httpx.Request("GET", "http://own/"))

    async def on_the_loop() -> None:
        own = OwnServerTransport(answer, asyncio.get_running_loop())
        with pytest.raises(RuntimeError, match="beside"):
            own.handle_request(httpx.Request("GET", "http://own/"))

    asyncio.run(on_the_loop())
