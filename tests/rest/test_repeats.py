"""Requests that come again in the same bytes: answered the short way, and never otherwise than the long way would."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from lance_namespace.errors import ThrottlingError
from uvicorn.server import ServerState

from namespace_server.app import create_app
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.repeats import REMEMBER, REPEAT, Again, Repeats
from namespace_server.rest.identity import Authenticator
from namespace_server.rest.service import CatalogService
from namespace_server.serving import configure
from tests.rest.conftest import EchoCatalog, Serve
from tests.rest.test_transport import RecordingTransport


def get(path: str, *headers: str, version: str = "1.1") -> bytes:
    return "\r\n".join([f"GET {path} HTTP/{version}", "host: x", *headers, "", ""]).encode()


def post(path: str, body: bytes, *headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "host: x", "content-type: application/json", f"content-length: {len(body)}"]
    return "\r\n".join([*lines, *headers, "", ""]).encode() + body


LIST = get("/v1/namespace/a/table/list")
DESCRIBE = post("/v1/table/a$t/describe", b'{"id":["a","t"]}')
EXISTS = post("/v1/table/a$t/exists", b"{}")

Answer = tuple[int, dict[bytes, bytes], bytes]


class Client:
    """One connection. A request is sent in one piece, or in the pieces given, each read by the server by itself."""

    def __init__(self, url: str) -> None:
        host, port = url.removeprefix("http://").split(":")
        self.socket = socket.create_connection((host, int(port)), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, *pieces: bytes) -> Answer:
        for number, piece in enumerate(pieces):
            time.sleep(0.05 if number else 0)
            self.socket.sendall(piece)
        [answer] = self.read(1)
        return answer

    def read(self, count: int) -> list[Answer]:
        """The next answers, and nothing behind them."""
        answers: list[Answer] = []
        received = b""
        while len(answers) < count:
            head, end, rest = received.partition(b"\r\n\r\n")
            status, *lines = head.split(b"\r\n")
            headers = dict(line.lower().split(b": ", 1) for line in lines) if end else {}
            length = int(headers.get(b"content-length", b"0"))
            if end and len(rest) >= length:
                answers.append((int(status.split()[1]), headers, rest[:length]))
                received = rest[length:]
                continue
            data = self.socket.recv(65536)
            assert data, "the server closed the connection"
            received += data
        assert not received
        return answers


@pytest.fixture
def connect() -> Iterator[Callable[[str], Client]]:
    clients: list[Client] = []

    def open_client(url: str) -> Client:
        clients.append(Client(url))
        return clients[-1]

    yield open_client
    for client in clients:
        client.socket.close()


@pytest.fixture
def url(echo_catalog: EchoCatalog, serve: Serve) -> str:
    return serve(echo_catalog).url


@pytest.fixture
def client(url: str, connect: Callable[[str], Client]) -> Client:
    return connect(url)


@pytest.fixture(params=["first", "later"])
def knowing(request: pytest.FixtureRequest, client: Client, url: str, connect: Callable[[str], Client]) -> Client:
    """A connection to a server that knows the request LIST; what it sends next is its first request, or a later one."""
    for _ in range(2):
        assert client.ask(LIST)[0] == 200
    return connect(url) if request.param == "first" else client


def undated(answer: Answer) -> Answer:
    status, headers, body = answer
    assert headers[b"date"].endswith(b"gmt")
    return status, {name: value for name, value in headers.items() if name != b"date"}, body


class TestTheShortWay:
    @pytest.mark.parametrize("request_", [LIST, DESCRIBE, EXISTS], ids=["GET", "POST", "silent"])
    def test_a_repeated_request_is_answered_alike_without_being_read(
        self, request_: bytes, client: Client, url: str, echo_catalog: EchoCatalog, connect: Callable[[str], Client]
    ) -> None:
        first = undated(client.ask(request_))
        assert (len(echo_catalog.questions), echo_catalog.looks) == (1, 0)
        for number in range(1, 4):
            assert undated(client.ask(request_)) == first
            assert undated(connect(url).ask(request_)) == first
            assert (len(echo_catalog.questions), echo_catalog.looks) == (1, 2 * number)

    def test_another_version_is_answered_the_long_way(self, client: Client, echo_catalog: EchoCatalog) -> None:
        for version in (7, 8, 9):
            echo_catalog.version = version
            for _ in range(3):
                assert client.ask(LIST)[1][b"x-lance-catalog-version"] == b"%d" % version
            assert len(echo_catalog.questions) == version - 6

    def test_a_failure_is_told_by_the_long_way(self, client: Client, echo_catalog: EchoCatalog) -> None:
        assert client.ask(LIST)[0] == 200
        echo_catalog.failure = ThrottlingError("later")
        assert client.ask(LIST)[0] == 429
        echo_catalog.failure = OSError("no such disk")
        assert client.ask(LIST)[0] == 500
        echo_catalog.failure = None
        assert client.ask(LIST)[0] == 200

    def test_an_answer_has_the_date_of_the_day(self) -> None:
        repeats = Repeats()
        repeats.remember(b"request", lambda: ([(b"a", b"b")], b"body"))
        for date in (b"today", b"today", b"tomorrow"):
            common = [(b"date", date), (b"c", b"d")]
            head = b"HTTP/1.1 200 OK\r\ndate: " + date + b"\r\nc: d\r\na: b\r\n\r\n"
            assert repeats.answer(b"request", common) == (head, b"body")

    def test_what_is_remembered_is_bounded(self) -> None:
        repeats = Repeats(count=2, longest=4)
        again: Again = lambda: ([], b"")  # noqa: E731
        for request in (b"1", b"2"):
            repeats.remember(request, again)
        repeats.remember(b"too long", again)
        assert [repeats.answer(request, []) is not None for request in (b"1", b"2", b"too long")] == [True, True, False]
        repeats.remember(b"3", again)
        assert [repeats.answer(request, []) is not None for request in (b"1", b"2", b"3")] == [False, False, True]


class TestTheLongWay:
    """Whatever is not one whole request in one piece on a connection at rest."""

    @pytest.mark.parametrize(
        "request_",
        [
            get("/v1/namespace/a/table/list", "x-lance-catalog-version: 7"),
            get("/v1/namespace/a/table/list", "connection: upgrade", "upgrade: h2c"),
            get("/v1/nothing/here"),
            get("/v1/namespace/a/table/list?limit=x"),
            post("/v1/table/a$t/declare", b"{}"),
            get("/health/live"),
        ],
        ids=["pinned", "upgrade", "no route", "bad", "a change", "probe"],
    )
    def test_some_requests_always_take_it(self, request_: bytes, client: Client, echo_catalog: EchoCatalog) -> None:
        answers = [undated(client.ask(request_)) for _ in range(3)]
        assert answers[0] == answers[1] == answers[2] or b'"instance"' in answers[0][2]
        assert echo_catalog.looks == 0

    @pytest.mark.parametrize(
        "request_",
        [get("/v1/catalog", "connection: close"), get("/v1/catalog", version="1.0")],
        ids=["close", "HTTP/1.0"],
    )
    def test_who_wants_the_connection_closed_has_it_closed(
        self, request_: bytes, url: str, connect: Callable[[str], Client], echo_catalog: EchoCatalog
    ) -> None:
        for _ in range(3):
            client = connect(url)
            assert client.ask(request_)[0] == 200
            assert client.socket.recv(1) == b""
        assert echo_catalog.looks == 0

    def test_who_waits_to_be_told_to_continue_is_told(self, client: Client, echo_catalog: EchoCatalog) -> None:
        whole = post("/v1/table/a$t/describe", b"{}", "expect: 100-continue")
        for _ in range(3):
            client.socket.sendall(whole)
            while not (received := client.socket.recv(25)):
                continue
            assert received == b"HTTP/1.1 100 Continue\r\n\r\n"
            assert client.read(1)[0][0] == 200
        assert echo_catalog.looks == 0

    def test_requests_in_one_piece_are_taken_apart(self, client: Client, echo_catalog: EchoCatalog) -> None:
        for _ in range(3):
            client.socket.sendall(LIST + DESCRIBE)
            listed, described = client.read(2)
            assert (b"list_tables" in listed[2], b"describe_table" in described[2]) == (True, True)
        assert echo_catalog.looks == 0

    @pytest.mark.parametrize("cut", [1, 10, len(DESCRIBE) - 20, len(DESCRIBE) - 1])
    def test_a_request_in_pieces_is_put_together(self, cut: int, client: Client, echo_catalog: EchoCatalog) -> None:
        for _ in range(2):
            assert client.ask(DESCRIBE[:cut], DESCRIBE[cut:])[0] == 200
        assert (len(echo_catalog.questions), echo_catalog.looks) == (2, 0)
        assert b"describe_table" in client.ask(DESCRIBE)[2]
        assert b"describe_table" in client.ask(DESCRIBE)[2]
        assert (len(echo_catalog.questions), echo_catalog.looks) == (3, 1)

    def test_a_body_that_looks_like_a_known_request_is_a_body(self, knowing: Client) -> None:
        whole = post("/v1/table/a$t/describe", LIST)
        status, _, body = knowing.ask(whole.removesuffix(LIST), LIST)
        assert (status, orjson.loads(body)["code"]) == (400, 13)  # no JSON

    def test_the_rest_of_a_head_that_looks_like_a_known_request_is_a_head(self, knowing: Client) -> None:
        status, _, body = knowing.ask(b"GET /v1/catalog HTTP/1.1\r\nx-note: ", LIST)
        assert (status, b"describe_catalog" in body) == (200, True)

    def test_the_end_of_a_refused_body_is_no_request(
        self, serve: Serve, echo_catalog: EchoCatalog, connect: Callable[[str], Client]
    ) -> None:
        client = connect(serve(echo_catalog, max_body=10).url)
        for _ in range(2):
            assert client.ask(LIST)[0] == 200
        whole = post("/v1/table/a$t/describe", b"{}" + LIST)
        assert client.ask(whole.removesuffix(LIST))[0] == 413
        client.socket.sendall(LIST)
        with pytest.raises((AssertionError, ConnectionError)):
            client.read(1)

    def test_reads_of_a_remote_catalog_do_not_run_on_the_loop(
        self, serve: Serve, remote_echo_catalog: EchoCatalog, connect: Callable[[str], Client]
    ) -> None:
        client = connect(serve(remote_echo_catalog).url)
        for _ in range(3):
            assert client.ask(LIST)[0] == 200
        assert (len(remote_echo_catalog.questions), remote_echo_catalog.looks) == (3, 0)

    def test_a_key_that_is_not_known_is_refused_each_time(
        self, serve: Serve, echo_catalog: EchoCatalog, connect: Callable[[str], Client]
    ) -> None:
        client = connect(serve(echo_catalog, keys={"key-no-1": "ann"}).url)
        for _ in range(3):
            for key, status in (("key-no-1", 200), ("key-no-2", 401), ("key-no-1", 200)):
                assert client.ask(get("/v1/namespace/a/table/list", f"x-api-key: {key}"))[0] == status
        assert echo_catalog.looks == 5


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - nobody sets an event
        await asyncio.sleep(0)


def sent(transport: RecordingTransport) -> bytes:
    return b"".join(transport.sent)


class TestAConnection:
    """uvicorn's protocol on a transport of the test's own."""

    def run(self, catalog: EchoCatalog, steps: Callable[[Any, RecordingTransport], Any], timeout: float = 60) -> None:
        async def connected() -> None:
            app = create_app(catalog, Authenticator({}))
            config = configure(app, host="127.0.0.1", port=0)
            config.timeout_keep_alive = timeout  # type: ignore[assignment]
            config.load()
            async with app.router.lifespan_context(app):
                transport = RecordingTransport()
                loop = asyncio.get_running_loop()
                protocol: Any = config.http_protocol_class(  # type: ignore[call-arg,operator]
                    config=config, server_state=ServerState(), app_state={}, _loop=loop
                )
                protocol.connection_made(transport)
                protocol.data_received(LIST)
                await until(lambda: sent(transport).endswith(b"}"))
                await asyncio.sleep(0)
                await steps(protocol, transport)
                protocol.connection_lost(None)

        asyncio.run(connected())

    def test_who_does_not_read_gets_no_more(self, echo_catalog: EchoCatalog) -> None:
        async def steps(protocol: Any, transport: RecordingTransport) -> None:
            protocol.pause_writing()
            before = sent(transport)
            protocol.data_received(LIST)
            await asyncio.sleep(0.01)
            assert sent(transport) == before
            protocol.resume_writing()
            await until(lambda: sent(transport) != before)

        self.run(echo_catalog, steps)

    def test_an_answer_leaves_behind_what_was_kept_back(self, echo_catalog: EchoCatalog) -> None:
        async def steps(protocol: Any, transport: RecordingTransport) -> None:
            before = sent(transport)
            protocol.transport.write(b"first ")
            protocol.data_received(LIST)
            assert sent(transport).removeprefix(before).startswith(b"first HTTP/1.1 200 OK\r\n")

        self.run(echo_catalog, steps)

    def test_a_connection_in_use_stays_open_and_an_idle_one_ends(self, echo_catalog: EchoCatalog) -> None:
        async def steps(protocol: Any, transport: RecordingTransport) -> None:
            for _ in range(10):
                protocol.data_received(LIST)
                await asyncio.sleep(0.05)
                assert not transport.closed
            assert echo_catalog.looks == 10
            await asyncio.sleep(0.5)
            assert transport.closed

        self.run(echo_catalog, steps, timeout=0.2)

    def test_a_connection_of_repeats_alone_ends_too(self, echo_catalog: EchoCatalog) -> None:
        async def steps(protocol: Any, _: RecordingTransport) -> None:
            transport = RecordingTransport()
            other = type(protocol)(
                config=protocol.config,
                server_state=protocol.server_state,
                app_state={},
                _loop=protocol.loop,
                repeats=protocol._repeats,
            )
            other.connection_made(transport)
            other.data_received(LIST)
            assert sent(transport).startswith(b"HTTP/1.1 200 OK\r\n")
            await asyncio.sleep(0.5)
            assert transport.closed

        self.run(echo_catalog, steps, timeout=0.2)


class TestOneRound:
    """Storage is asked once for all requests of one round of the event loop."""

    async def remembered(self, service: CatalogService) -> Again:
        kept: list[Again] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            assert message.get("status", 200) == 200

        scope = {
            "type": "http",
            "method": "GET",
            "raw_path": b"/v1/namespace/a/table/list",
            "query_string": b"",
            "headers": [],
            "extensions": {REPEAT: {REMEMBER: kept.append}},
        }
        assert await service.serve(scope, receive, send)
        [again] = kept
        return again

    def test_each_round_asks_for_itself(self, echo_catalog: EchoCatalog) -> None:
        async def rounds() -> None:
            service = CatalogService(echo_catalog, Authenticator({}))
            again = await self.remembered(service)
            for looks in (1, 2, 3):
                assert again() == again()
                assert again() is not None
                assert echo_catalog.looks == looks
                await asyncio.sleep(0)
            echo_catalog.version += 1
            assert again() is None

        asyncio.run(rounds())

    def test_a_failure_is_no_answer_for_the_others(self, echo_catalog: EchoCatalog) -> None:
        async def rounds() -> None:
            again = await self.remembered(CatalogService(echo_catalog, Authenticator({})))
            echo_catalog.failure = OSError("no such disk")
            for _ in range(2):
                with pytest.raises(OSError, match="no such disk"):
                    again()
            echo_catalog.failure = None
            assert again() is not None

        asyncio.run(rounds())


def test_what_another_server_changes_is_answered_at_once(
    tmp_path: Path, serve: Serve, connect: Callable[[str], Client]
) -> None:
    ours, other = (DirectoryNamespace(root=str(tmp_path), durability="none") for _ in range(2))
    other._write("create_namespace", {"id": ["a"]})
    client = connect(serve(ours).url)
    tables: list[str] = []
    for number in range(20):
        for _ in range(3):
            status, headers, body = client.ask(LIST)
            newest = other.read("describe_catalog", {}).catalog_version
            assert (status, headers[b"x-lance-catalog-version"]) == (200, b"%d" % newest)
            assert orjson.loads(body) == {"tables": tables}
        tables.append(f"t{number:02d}")
        other._write("declare_table", {"id": ["a", tables[-1]]})
    other.close()
