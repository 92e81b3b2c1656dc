"""Faulty services, and the errors that callers get."""

import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from lance_core.errors import AlreadyExists, NotFound, OutcomeUnknown, PreconditionFailed, StorageError
from lance_core.storage.fsspec_store import FsspecStore
from lance_core.storage.opening import open_store
from tests.emulators import AZURITE_ACCOUNT, AZURITE_KEY

pytestmark = pytest.mark.slow

BREAK = 0
"""Instead of a status: take the request and close the connection."""


@dataclass
class Script:
    """What a server does with the requests for one key, in turn; afterwards it answers 200. And what it got."""

    answers: dict[str, list[int]] = field(default_factory=dict)
    arrived: list[tuple[str, str]] = field(default_factory=list)


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
def port(script: Script) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

        def handle_request(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            parts = urlsplit(self.path)
            name = parse_qs(parts.query).get("name", [unquote(parts.path)])[0].rpartition("/")[2]
            script.arrived.append((self.command, name))
            waiting = script.answers.get(name, [])
            status = waiting.pop(0) if waiting else 200
            if status == BREAK:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            updated = b"2030-01-01T00:00:00Z"
            body = b'{"name": "x", "size": "1", "generation": "7", "updated": "%s"}' % updated
            if self.command in {"PUT", "DELETE"}:
                body = b""
                if "x-ms-version" in self.headers and status == 200:
                    status = 201 if self.command == "PUT" else 202
            self.send_response(status)
            self.send_header("ETag", '"7"')
            self.send_header("Last-Modified", "Tue, 01 Jan 2030 00:00:00 GMT")
            self.send_header("Content-Range", f"bytes 0-{len(body) - 1}/{len(body)}")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = handle_request  # noqa: N815

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


def open_service(kind: str, port: int) -> FsspecStore:
    endpoint = f"http://127.0.0.1:{port}"
    options = {
        "s3": {"aws_endpoint": endpoint, "access_key_id": "k", "secret_access_key": "s", "region": "us-east-1"},
        "az": {
            "endpoint": f"{endpoint}/{AZURITE_ACCOUNT}",
            "account_name": AZURITE_ACCOUNT,
            "account_key": AZURITE_KEY,
        },
        "gs": {"google_base_url": endpoint, "google_skip_signature": "true"},
    }
    store = open_store(f"{kind}://bucket/root", {"allow_http": "true", **options[kind]})
    assert isinstance(store, FsspecStore)
    store._pause = 0.0
    return store


@pytest.fixture(params=["s3", "az", "gs"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def store(kind: str, port: int) -> Iterator[FsspecStore]:
    store = open_service(kind, port)
    # From here on there is a kept connection, which HTTP clients like to replace without a word when it breaks.
    store.put("warm", b"x")
    yield store
    store.close()


def arrivals(script: Script, name: str) -> int:
    return sum(1 for _, found in script.arrived if found == name)


CONDITIONAL: list[Callable[[FsspecStore], object]] = [
    lambda store: store.put_if_absent("slot", b"x"),
    lambda store: store.publish("staged", "slot", b"x"),
    lambda store: store.replace("slot", b"x", if_match='"6"'),
]


@pytest.mark.parametrize("write", CONDITIONAL, ids=["put_if_absent", "publish", "replace"])
@pytest.mark.parametrize("answer", [BREAK, 500, 503], ids=["broken", "500", "503"])
def test_a_conditional_write_without_an_answer_is_unknown_and_never_resent(
    store: FsspecStore, script: Script, write: Callable[[FsspecStore], object], answer: int
) -> None:
    """F1: sent twice, it could meet its own object and be taken for the loser."""
    script.answers["slot"] = [answer]
    with pytest.raises(OutcomeUnknown, match="root/slot"):
        write(store)
    assert arrivals(script, "slot") == 1


def test_a_conditional_write_that_was_not_accepted_is_retried(store: FsspecStore, script: Script) -> None:
    script.answers["slot"] = [429, 429]
    assert store.put_if_absent("slot", b"x") == '"7"'
    assert arrivals(script, "slot") == 3


@pytest.mark.parametrize("answer", [400, 401, 403, 501])
def test_a_refusal_is_final(store: FsspecStore, script: Script, answer: int) -> None:
    calls: list[Callable[[], object]] = [
        lambda: store.put_if_absent("slot", b"x"),
        lambda: store.put("slot", b"x"),
        lambda: store.get("slot"),
        lambda: store.delete("slot"),
    ]
    for call in calls:
        script.arrived.clear()
        script.answers["slot"] = [answer]
        with pytest.raises(StorageError, match="root/slot") as caught:
            call()
        assert type(caught.value) is StorageError
        assert arrivals(script, "slot") == 1


def test_a_failed_condition_has_its_own_error(store: FsspecStore, script: Script) -> None:
    script.answers["slot"] = [412]
    with pytest.raises(AlreadyExists):
        store.put_if_absent("slot", b"x")
    script.answers["slot"] = [412]
    with pytest.raises(PreconditionFailed):
        store.replace("slot", b"x", if_match='"6"')


@pytest.mark.parametrize("answer", [BREAK, 500, 429], ids=["broken", "500", "429"])
def test_reads_plain_puts_and_deletes_are_retried(store: FsspecStore, script: Script, answer: int) -> None:
    calls: list[Callable[[], object]] = [
        lambda: store.get("object"),
        lambda: store.head("object"),
        lambda: store.put("object", b"x"),
    ]
    for call in calls:
        script.arrived.clear()
        script.answers["object"] = [answer] * 4
        call()
        assert arrivals(script, "object") == 5
    script.answers["object"] = [answer, 404]
    store.delete("object")


def test_retries_are_limited(store: FsspecStore, script: Script) -> None:
    script.answers["object"] = [503] * 10
    with pytest.raises(OutcomeUnknown):
        store.put("object", b"x")
    assert arrivals(script, "object") == 5
    with pytest.raises(StorageError) as caught:
        store.get("object")
    assert type(caught.value) is StorageError


def test_a_put_is_unknown_if_any_of_its_attempts_was(store: FsspecStore, script: Script) -> None:
    script.answers["object"] = [BREAK, 403]
    with pytest.raises(OutcomeUnknown):
        store.put("object", b"x")


def test_a_move_that_leaves_the_source_is_unknown(store: FsspecStore, script: Script) -> None:
    script.answers["source"] = [200, 200, 403]
    with pytest.raises(OutcomeUnknown, match="perhaps not removed"):
        store.rename_if_absent("source", "target")
    script.answers["source"] = [404]
    with pytest.raises(NotFound):
        store.rename_if_absent("source", "target")


def test_a_refused_connection_means_that_nothing_was_written(kind: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        store = open_service(kind, taken.getsockname()[1])
        with pytest.raises(StorageError) as caught:
            store.put_if_absent("slot", b"x")
        assert type(caught.value) is StorageError
        store.close()
