"""Changes are handed to the server that commits, and are committed once, whatever becomes of it."""

from __future__ import annotations

import json
import logging
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import typer
from lance.namespace import RestNamespace
from lance_namespace import DropTableRequest
from pydantic import ValidationError

from lance_core.format.manifest import parse_manifest_file
from namespace_server.app import create_app
from namespace_server.cli import server as server_command
from namespace_server.directory.manifest_table.peer_secret import PeerSecret
from namespace_server.directory.manifest_table.peers import NO_URL, PEER_PROPERTY, Peer
from namespace_server.directory.model.entries import RecordEntry
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.observability.observation import SILENT, ForwardingOutcome, Observer
from namespace_server.rest import forwarding
from namespace_server.rest.forwarding import Forwarding
from namespace_server.rest.identity import Authenticator
from namespace_server.rest.request.limits import RequestLimits
from namespace_server.rest.service import CatalogService
from namespace_server.settings import load_settings
from namespace_server.throttling import OF_PRINCIPALS
from tests.listener import listen
from tests.lossy_proxy import serve_lossily
from tests.running import serving

LAST = "http://~"
"""The URL of a server that hands its changes to any other."""
KEYS = {"key-of-ann": "ann"}
SECRET = PeerSecret("a secret of servers")


class Distrust(PeerSecret):
    """The secret for a server that believes no proof of another one, and so hands nothing on."""

    def is_proof(self, text: str, instance: str, url: str, identity: str) -> bool:
        return False


DISTRUST = Distrust("a secret of servers")


class Outcomes(Observer):
    """What came of the changes that a server handed on."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def forwarded(self, outcome: ForwardingOutcome, seconds: float) -> None:
        assert seconds > 0
        self.found.append(outcome)


@dataclass
class Served:
    """A server in a thread, and its catalog. `peer` is what its flips tell of it, `outcomes` of what it handed on."""

    namespace: DirectoryNamespace
    peer: Peer
    url: str
    headers: Mapping[str, str]
    outcomes: list[str]
    service: CatalogService

    def create(self, name: str, key: str | None = None) -> httpx.Response:
        """A batch that declares a table."""
        operations = [{"declare_table": {"id": [name]}}]
        headers = {**self.headers, **({} if key is None else {"idempotency-key": key})}
        return httpx.post(f"{self.url}/v1/table/batch-commit", json={"operations": operations}, headers=headers)

    def sees(self, *peers: Peer) -> None:
        """Let flips of these have been seen just now."""
        for peer in peers:
            self.namespace.catalog.table.peers.saw(peer)

    def record(self) -> RecordEntry:
        """The record of the newest batch."""
        snapshot = self.namespace.newest()
        [newest] = [each for each in snapshot.records() if each.catalog_version == snapshot.version]
        return newest

    def committed_by(self) -> Peer:
        """What the newest flip tells of the process that made it."""
        root = Path(self.namespace.catalog.store.uri.removeprefix("file://"))
        newest = min((root / "__manifest/_versions").glob("*.manifest"))
        transaction = parse_manifest_file(newest.read_bytes()).transaction
        assert transaction is not None
        instance, url, proof = transaction.transaction_properties[PEER_PROPERTY].split(" ")
        assert SECRET.is_proof(proof, instance, url, self.namespace.newest().disk.identity)  # type: ignore[attr-defined]
        return Peer(instance, url)


@contextmanager
def served(
    root: Path, url: str, keys: Mapping[str, str], secret: PeerSecret = SECRET, limits: RequestLimits | None = None
) -> Iterator[Served]:
    """A server of `root` that says its URL is `url`."""
    namespace = DirectoryNamespace(root=str(root), durability="none")
    this = Peer(f"process-of-{url}", url)
    outcomes = Outcomes()
    forwarding = Forwarding(this, secret, namespace.catalog.table.peers, observer=outcomes)
    headers = {"x-api-key": "key-of-ann"} if keys else {}
    app = create_app(namespace, Authenticator(keys), limits=limits, forwarding=forwarding)
    with serving(app) as at:
        yield Served(namespace, this, at, headers, outcomes.found, app.service)


@pytest.fixture(autouse=True)
def patience(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is, a process that answers is no other one; but for tests of ones that do not."""
    if "shortly" not in request.node.name and "gone" not in request.node.name:
        monkeypatch.setattr(forwarding, "_PROBE_TIMEOUT", 10.0)


@pytest.fixture(params=[{}, KEYS], ids=["anonymous", "with keys"])
def keys(request: pytest.FixtureRequest) -> Mapping[str, str]:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def first(tmp_path: Path, keys: Mapping[str, str]) -> Iterator[Served]:
    """The server that all others hand their changes to."""
    with served(tmp_path / "root", "http://first", keys, DISTRUST) as server:
        yield server


@contextmanager
def last(tmp_path: Path, keys: Mapping[str, str] | None = None) -> Iterator[Served]:
    """A server that hands its changes to any other."""
    with served(tmp_path / "root", LAST, keys or {}) as server:
        yield server


def say(
    request: BaseHTTPRequestHandler, status: int, name: str | None = "i", body: bytes = b"{}", **headers: str
) -> None:
    """Answer with a JSON body as the process `name`; None: as another program."""
    named = {} if name is None else {"x-lance-answered-by": name}
    if name is not None and (challenge := request.headers.get("x-lance-peer-challenge")) is not None:
        named["x-lance-peer-response"] = SECRET.response(name, challenge)
    request.send_response(status)
    for header, value in {**headers, **named, "content-length": str(len(body))}.items():
        request.send_header(header, value)
    request.end_headers()
    request.wfile.write(body)


@contextmanager
def listen_alive(answer: Callable[[BaseHTTPRequestHandler, bytes], None]) -> Iterator[str]:
    """A peer that answers changes, and their bodies, as a test says. It says that it lives if it is slow."""

    def serve(request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("content-length") or 0))
        if request.command == "GET":
            say(request, 200, request.headers["x-lance-forwarded-to"])
        else:
            answer(request, body)

    with listen(serve) as url:
        yield url


def at(server: Served, url: str | None = None) -> Peer:
    """The process of a server, and where it is reached."""
    return Peer(server.peer.instance, url or server.url)


def test_a_change_is_committed_by_the_server_whose_flips_are_seen(
    tmp_path: Path, first: Served, keys: Mapping[str, str]
) -> None:
    with last(tmp_path, keys=keys) as second:
        assert second.create("a").status_code == 200
        assert second.committed_by() == second.peer
        second.sees(at(first))
        answer = second.create("b")
        assert answer.status_code == 200
        assert answer.json()["results"][0]["declare_table"]["location"].endswith("b")
        assert answer.headers["x-lance-catalog-version"] == "2"
        assert second.committed_by() == first.peer
        assert second.record().principal == keys.get("key-of-ann")
        assert (first.outcomes, second.outcomes) == ([], ["answered"])
        # An answer is a sign of life, as a flip that is seen is.
        assert at(first) in second.namespace.catalog.table.peers.lately()


def test_servers_know_each_other_by_a_secret(tmp_path: Path) -> None:
    root = tmp_path / "root"
    namespace = DirectoryNamespace(root=str(root))
    peers = namespace.catalog.table.peers
    alone = server_command._forwarding(load_settings(None, root=str(root)), namespace, SILENT)
    assert (alone, peers.this.url if peers.this else None) == (None, NO_URL)
    given = {"root": str(root), "peer_secret": "a secret of servers"}
    for more, url in (
        ({}, "http://127.0.0.1:2333"),
        ({"host": "10.0.0.3", "port": 80}, "http://10.0.0.3:80"),
        ({"host": "::1"}, "http://[::1]:2333"),
        ({"port": 0}, NO_URL),
        ({"peer_url": "https://b:1"}, "https://b:1"),
    ):
        forwarding = server_command._forwarding(load_settings(None, **given, **more), namespace, SILENT)  # type: ignore[arg-type]
        assert forwarding is not None
        assert (forwarding.this, forwarding.this.url) == (peers.this, url)
    for url in ("https://a:1", "https://b:1"):
        peers.saw(Peer("i", url))
    assert peers.committing() == Peer("i", "https://a:1")
    with pytest.raises(ValidationError, match="expected peer_secret with them"):
        load_settings(None, root=str(root), peer_url="http://b:1")
    with pytest.raises(ValidationError, match="at least 16 characters"):
        load_settings(None, root=str(root), peer_secret="short")
    (tmp_path / "ca.pem").write_text("no certificate")
    broken = load_settings(None, **given, peer_ca=tmp_path / "ca.pem")  # type: ignore[arg-type]
    with pytest.raises(typer.Exit):
        server_command._forwarding(broken, namespace, SILENT)


def test_a_server_is_reached_under_its_own_url_whatever_hosts_are_allowed(tmp_path: Path) -> None:
    given = {"root": str(tmp_path), "allowed_hosts": "lance.example", "host": "10.0.0.3"}
    assert server_command._hosts(load_settings(None, **given)) == ({"lance.example"}, False)  # type: ignore[arg-type]
    shared = load_settings(None, **given, peer_secret="a secret of servers")  # type: ignore[arg-type]
    assert server_command._hosts(shared) == ({"lance.example", "10.0.0.3"}, False)


def test_a_rejection_is_answered_as_it_is(tmp_path: Path, first: Served, keys: Mapping[str, str]) -> None:
    with last(tmp_path, keys=keys) as second:
        first.create("a")
        second.sees(at(first))
        refused = second.create("a")
        direct = first.create("a")
        assert (refused.status_code, refused.json()["error"]) == (direct.status_code, direct.json()["error"])
        assert refused.status_code == 409
        assert second.namespace.newest().version == 1


def test_a_key_of_the_client_stays_its_key(tmp_path: Path, first: Served, keys: Mapping[str, str]) -> None:
    with last(tmp_path, keys=keys) as second:
        second.sees(at(first))
        there = second.create("a", "k")
        assert second.record().idempotency_key == "k"
        repeated = first.create("a", "k")
        assert (repeated.status_code, repeated.json()) == (200, there.json())
        assert second.namespace.newest().version == 1


def test_flips_tell_their_server_to_the_others(tmp_path: Path, first: Served, keys: Mapping[str, str]) -> None:
    with last(tmp_path, keys=keys) as second:
        assert second.namespace.newest().version == 0
        first.create("a")
        assert second.namespace.newest().version == 1
        assert second.namespace.catalog.table.peers.lately() == [first.peer]


def test_changes_of_a_copied_root_are_not_handed_to_a_server_of_the_original(tmp_path: Path, first: Served) -> None:
    first.namespace.catalog.table.peers.join(at(first), DISTRUST)
    first.create("a")
    shutil.copytree(tmp_path / "root", tmp_path / "copy" / "root")
    with served(tmp_path / "copy" / "root", LAST, KEYS if first.headers else {}) as copy:
        assert [copy.create(name).status_code for name in "bc"] == [200, 200]
        assert copy.namespace.newest().version == 3
        assert copy.outcomes == []
    assert first.namespace.newest().version == 1


@contextmanager
def beaten(server: Served, monkeypatch: pytest.MonkeyPatch, step: str, beat: Callable[[], object]) -> Iterator[None]:
    """Another server commits while the first flip of a server is `stage`d, or just before its `commit` step."""
    table, left = server.namespace.catalog.table, [beat]
    done = getattr(table, step)

    def after_another(*given: Any) -> Any:
        if left:
            left.pop()()
        return done(*given)

    with monkeypatch.context() as patched:
        patched.setattr(table, step, after_another)
        yield
    assert not left


@pytest.mark.parametrize("step", ["stage", "claim"], ids=["beside staging", "a lost slot"])
@pytest.mark.parametrize("key", [None, "k"])
def test_a_change_that_another_server_overtakes_is_handed_to_that_one(
    tmp_path: Path, first: Served, keys: Mapping[str, str], monkeypatch: pytest.MonkeyPatch, step: str, key: str | None
) -> None:
    first.namespace.catalog.table.peers.join(at(first), DISTRUST)
    with last(tmp_path, keys=keys) as second:
        with beaten(second, monkeypatch, step, lambda: first.create("a")):
            assert second.create("b", key).status_code == 200
        assert second.outcomes == ["answered"]
        assert second.committed_by() == at(first)
        assert second.record().idempotency_key is not None
        assert key in {None, second.record().idempotency_key}
        assert second.namespace.newest().version == 2


def test_a_change_that_is_overtaken_is_committed_here_if_the_other_one_does_not_answer(
    tmp_path: Path, first: Served, keys: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody listens at the URL that the flip of the other one tells."""
    with last(tmp_path, keys=keys) as second:
        with beaten(second, monkeypatch, "claim", lambda: first.create("a")):
            assert second.create("b").status_code == 200
        assert second.outcomes == ["unreachable"]
        assert second.committed_by() == second.peer
        assert second.namespace.newest().version == 2


def test_what_was_handed_to_a_server_is_refused_there_if_another_one_overtakes_it(
    tmp_path: Path, first: Served, keys: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with last(tmp_path, keys=keys) as second:
        asked = {**second.headers, "x-lance-forwarded-to": second.peer.instance}
        body = {"operations": [{"declare_table": {"id": ["b"]}}]}
        with beaten(second, monkeypatch, "claim", lambda: first.create("a")):
            answer = httpx.post(f"{second.url}/v1/table/batch-commit", json=body, headers=asked)
            again = httpx.post(f"{second.url}/v1/table/batch-commit", json=body, headers=asked)
        assert (answer.status_code, again.status_code) == (421, 421)
        assert "nothing was done" in answer.json()["error"]
        assert second.outcomes == []
        assert second.namespace.newest().version == 1


def test_a_server_that_begins_hands_its_changes_to_the_one_that_commits(
    tmp_path: Path, first: Served, keys: Mapping[str, str]
) -> None:
    """Its own URL may be the lower one: only who flipped lately counts."""
    with served(tmp_path / "root", LAST, keys) as second:
        assert second.create("a").status_code == 200
        first.sees(at(second))
        assert first.create("b").status_code == 200
        assert first.committed_by() == second.peer


def test_the_first_one_that_commits_hands_nothing_on(tmp_path: Path, first: Served, keys: Mapping[str, str]) -> None:
    with last(tmp_path, keys=keys) as second:
        first.create("b")
        first.sees(at(second))
        assert first.create("a").status_code == 200
        assert first.committed_by() == first.peer


def test_a_change_for_another_process_is_refused(first: Served) -> None:
    asked = {**first.headers, "x-lance-forwarded-to": "process of another root"}
    body = {"operations": [{"declare_table": {"id": ["a"]}}]}
    answer = httpx.post(f"{first.url}/v1/table/batch-commit", json=body, headers=asked)
    assert answer.status_code == 421
    assert "nothing was done" in answer.json()["error"]
    assert first.namespace.newest().version == 0


def test_a_process_that_was_started_anew_is_not_taken_for_the_former_one(
    tmp_path: Path, first: Served, keys: Mapping[str, str]
) -> None:
    with last(tmp_path, keys=keys) as second:
        second.sees(Peer("the former process", first.url))
        assert second.create("a").status_code == 200
        assert second.committed_by() == second.peer
        second.namespace.catalog.table.peers._avoided.clear()
        second.sees(Peer("the former process", first.url))
        assert second.create("a").status_code == 409  # nobody else has the change
        assert second.outcomes == ["unreachable", "unreachable"]


def test_a_url_without_a_proof_is_never_called(tmp_path: Path) -> None:
    called: list[str] = []
    other = PeerSecret("a secret of others")
    elsewhere = PeerSecret("a secret of servers", machine=lambda: "another machine")
    with listen(lambda request: called.append(request.path)) as foreign, last(tmp_path) as server:
        server.create("first")
        identity = server.namespace.newest().disk.identity  # type: ignore[attr-defined]
        proofs = [other.proof("i", foreign, identity), elsewhere.proof("i", foreign, identity)]
        proofs += [SECRET.proof("j", foreign, identity), SECRET.proof("i", "http://a", identity)]
        proofs += [SECRET.proof("i", foreign, "another catalog"), "", "é"]
        for number, proof in enumerate(proofs):
            server.namespace.catalog.table.peers.saw_flip(f"i {foreign} {proof}", identity)
            assert server.create(f"t{number}").status_code == 200
        assert called == []
        assert server.committed_by() == server.peer


def test_credentials_go_to_a_process_only_once_it_proved_the_secret(tmp_path: Path) -> None:
    """What flips said of a server that ended can be copied to a new flip; another program may have its URL by then."""
    asked: list[tuple[str, bool]] = []

    def answer(request: BaseHTTPRequestHandler) -> None:
        asked.append((request.command, "x-api-key" in request.headers))
        request.send_response(200)
        request.send_header("x-lance-answered-by", "i")
        request.send_header("x-lance-peer-response", SECRET.response("i", "0" * 32))
        request.send_header("content-length", "0")
        request.end_headers()

    with listen(answer) as url, last(tmp_path, keys=KEYS) as server:
        server.sees(Peer("i", url))
        assert server.create("a").status_code == 200
        assert server.committed_by() == server.peer
    assert asked == [("GET", False)]


def test_a_dead_server_is_avoided(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        dead = f"http://127.0.0.1:{bound.getsockname()[1]}"
    with last(tmp_path) as server, caplog.at_level(logging.WARNING):
        for name in "abc":
            server.sees(Peer("i", dead))
            assert server.create(name).status_code == 200
        assert server.namespace.newest().version == 3
    assert [line.startswith("changes are committed here for 5 s") for line in caplog.messages] == [True]
    assert dead in caplog.messages[0]


def test_a_server_that_is_held_is_waited_for_shortly(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It takes connections and answers nothing. Its queue may be committed when it goes on: see the lost answer."""
    released, asked = threading.Event(), list[str]()

    def answer(request: BaseHTTPRequestHandler) -> None:
        asked.append(request.command)
        if len(asked) == 1:  # it was well when it proved the secret
            say(request, 200)
        else:
            released.wait(30)

    with ExitStack() as ending:
        held = ending.enter_context(listen(answer))
        server = ending.enter_context(last(tmp_path))
        ending.callback(released.set)
        server.sees(Peer("i", held))
        began = time.monotonic()
        assert server.create("a").status_code == 200
        assert time.monotonic() - began < 4
        assert server.committed_by() == server.peer
    assert "no sign of life for 1.5 s" in caplog.text


def test_a_server_that_is_gone_is_not_waited_for_because_another_one_has_its_url(tmp_path: Path) -> None:
    """Its connection neither breaks nor answers."""
    released, names = threading.Event(), ["another process", "another process", "i"]

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.rfile.read(int(request.headers.get("content-length") or 0))
        if request.command == "POST":
            released.wait(30)
        else:
            say(request, 200, names.pop())

    with ExitStack() as ending:
        held = ending.enter_context(listen(answer))
        server = ending.enter_context(last(tmp_path))
        ending.callback(released.set)
        server.sees(Peer("i", held))
        assert server.create("a").status_code == 200
        assert server.outcomes == ["unreachable"]


def test_a_slow_server_is_waited_for(tmp_path: Path) -> None:
    """Its probe is answered meanwhile."""
    asked: list[str] = []

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.rfile.read(int(request.headers.get("content-length") or 0))
        asked.append(request.path)
        if request.command == "POST":
            time.sleep(1.8)
        say(request, 409 if request.command == "POST" else 200)

    with listen(answer) as slow, last(tmp_path) as server:
        server.sees(Peer("i", slow))
        assert server.create("a").status_code == 409
        assert asked.count("/health/live") >= 2
        assert server.namespace.newest().version == 0


@pytest.mark.parametrize("arrives", [True, False], ids=["after the commit", "before it"])
def test_a_lost_answer_makes_no_second_commit(
    tmp_path: Path, first: Served, keys: Mapping[str, str], arrives: bool
) -> None:
    with serve_lossily(first.url) as proxy, last(tmp_path, keys=keys) as second:
        proxy.lose, proxy.forward = 1, arrives
        second.sees(at(first, proxy.url))
        answer = second.create("a")
        assert answer.status_code == 200, answer.text
        assert second.namespace.newest().version == 1
        assert second.committed_by() == first.peer if arrives else second.peer
        assert proxy.keys == [second.record().idempotency_key]


@contextmanager
def taking(status: int | None, said: bytes = b"{}") -> Iterator[tuple[str, list[tuple[str, dict[str, str], bytes]]]]:
    """A peer that keeps what it is handed, and answers with a status or breaks the connection."""
    taken: list[tuple[str, dict[str, str], bytes]] = []

    def answer(request: BaseHTTPRequestHandler, body: bytes) -> None:
        taken.append((request.path, {name.lower(): value for name, value in request.headers.items()}, body))
        if status is None:
            request.close_connection = True
        else:
            say(request, status, body=said)

    with listen_alive(answer) as url:
        yield url, taken


@pytest.mark.parametrize("status", [None, 503])
def test_what_another_server_may_commit_yet_is_not_refused(tmp_path: Path, first: Served, status: int | None) -> None:
    """It was handed on without an answer, and arrives late, after a client made the table that is not there now."""
    keys = KEYS if first.headers else {}
    with taking(status) as (url, taken), last(tmp_path, keys=keys) as second:
        second.sees(at(first, url))
        drop = f"{second.url}/v1/table/t/drop"
        answer = httpx.post(drop, json={}, headers=first.headers)
        assert answer.status_code == 503
        assert "the outcome is unknown" in answer.json()["error"]
        assert "may commit it yet" in answer.json()["error"]
        assert answer.json()["detail"] == taken[0][1]["idempotency-key"]
        [(path, headers, body)] = taken
        assert second.create("t").status_code == 200
        kept = {name: headers[name] for name in ("content-type", "idempotency-key", "x-lance-forwarded-to")}
        assert httpx.post(first.url + path, content=body, headers={**first.headers, **kept}).status_code == 200
        assert second.namespace.newest().table(("t",)) is None  # so the client was told the truth
        refused = httpx.post(drop, json={}, headers=first.headers)
        assert refused.status_code == 404  # nothing of this one is under way


@pytest.mark.parametrize("status", [401, 421, 429])
def test_what_another_server_did_not_take_is_refused(tmp_path: Path, status: int) -> None:
    with taking(status) as (url, _), last(tmp_path) as server:
        server.sees(Peer("i", url))
        assert httpx.post(f"{server.url}/v1/table/t/drop", json={}).status_code == 404


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (b'{"code": 17, "error": "full", "outcome": "nothing_done"}', 4),
        (b'{"code": 17, "error": "nothing was done", "outcome": "unknown"}', 17),
        (b'{"code": 17, "error": "nothing was done"}', 17),
        (b"nothing_done", 17),
        (b'["nothing_done"]', 17),
    ],
)
def test_a_failure_of_another_server_leaves_open_what_it_does_not_exclude(
    tmp_path: Path, said: bytes, code: int
) -> None:
    """By its `outcome` alone; a server of the release before has none."""
    with taking(503, said) as (url, _), last(tmp_path) as server:
        server.sees(Peer("i", url))
        answer = httpx.post(f"{server.url}/v1/table/t/drop", json={}).json()
        assert (answer["code"], answer["outcome"]) == (code, "nothing_done" if code == 4 else "unknown")


def test_what_was_not_sent_is_refused(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        dead = f"http://127.0.0.1:{bound.getsockname()[1]}"
    with last(tmp_path) as server:
        server.sees(Peer("i", dead))
        assert httpx.post(f"{server.url}/v1/table/t/drop", json={}).status_code == 404
        assert server.outcomes == ["unreachable"]


def test_a_stock_client_drops_a_table(tmp_path: Path, first: Served) -> None:
    """It sends neither a body nor a content type."""
    with last(tmp_path, keys=KEYS if first.headers else {}) as second:
        first.create("a")
        second.sees(at(first))
        headers = {f"headers.{name}": value for name, value in first.headers.items()}
        RestNamespace(uri=second.url, **headers).drop_table(DropTableRequest(id=["a"]))
        assert second.outcomes == ["answered"]
        assert second.namespace.newest().table(("a",)) is None


def test_bytes_that_are_no_ascii_arrive_as_they_came(tmp_path: Path) -> None:
    key = "kéykéykéy"
    with ExitStack() as ending:
        first = ending.enter_context(served(tmp_path / "root", "http://first", {key: "ann"}, DISTRUST))
        second = ending.enter_context(last(tmp_path, keys={key: "ann"}))
        for name in ("a", "éa"):
            second.sees(at(first))
            assert _status(second.url, f"/v1/table/{name}/declare".encode(), key.encode()) == 200
            assert second.namespace.newest().table((name,)) is not None
        assert second.outcomes == ["answered", "answered"]


def test_a_change_that_cannot_be_sent_as_it_came_is_committed_here(tmp_path: Path, first: Served) -> None:
    with last(tmp_path, keys=KEYS if first.headers else {}) as second:
        second.sees(at(first))
        key = first.headers.get("x-api-key", "").encode()
        assert _status(second.url, b"/v1/table/a/declare", key, b"x-request-id: \xff\r\n") == 200
        assert second.outcomes == []
        assert second.committed_by() == second.peer


def _status(url: str, target: bytes, key: bytes, more: bytes = b"") -> int:
    """The status of a change whose path, key and other headers are sent as these bytes."""
    place = urlsplit(url)
    asked = b"POST %s HTTP/1.1\r\nhost: x\r\nx-api-key: %s\r\ncontent-type: application/json\r\n" % (target, key)
    with socket.create_connection((place.hostname, place.port), timeout=10) as connection:
        connection.sendall(asked + more + b"content-length: 2\r\nconnection: close\r\n\r\n{}")
        return int(connection.makefile("rb").readline().split()[1])


def test_answers_after_one_that_was_handed_on_are_as_new(tmp_path: Path, first: Served) -> None:
    with last(tmp_path, keys=KEYS if first.headers else {}) as second:
        second.sees(at(first))
        assert second.create("a").headers["x-lance-catalog-version"] == "1"
        refused = httpx.post(f"{second.url}/v1/table/b/declare", content=b"no JSON", headers=first.headers)
        assert (refused.status_code, refused.headers["x-lance-catalog-version"]) == (400, "1")


@pytest.mark.parametrize("status", [401, 403, 413, 421, 429, 500, 503])
def test_what_is_no_verdict_is_not_passed_on(tmp_path: Path, status: int) -> None:
    def answer(request: BaseHTTPRequestHandler, _: bytes) -> None:
        say(request, status)

    with listen_alive(answer) as other, last(tmp_path) as server:
        server.sees(Peer("i", other))
        assert server.create("a").status_code == 200
        assert server.committed_by() == server.peer
        assert server.outcomes == ["undecided"]
        server.sees(Peer("i", other))
        assert server.create("b").status_code == 200
        is_avoided = status in {429, 500, 503}
        assert server.outcomes == ["undecided"] * (1 if is_avoided else 2)


@pytest.mark.parametrize("limit", sorted(OF_PRINCIPALS))
def test_a_refusal_of_what_a_principal_has_under_way_is_passed_on(
    tmp_path: Path, limit: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Committed here, it would be bounded by nobody. The other server is well, and what others send goes there."""
    error = {"error": f"{limit}: expected less", "code": 21, "outcome": "nothing_done", "detail": limit}

    def answer(request: BaseHTTPRequestHandler, _: bytes) -> None:
        say(request, 429, body=json.dumps(error).encode(), **{"retry-after": "1"})

    with listen_alive(answer) as other, last(tmp_path) as server, caplog.at_level(logging.WARNING):
        for name in "ab":
            server.sees(Peer("i", other))
            refused = server.create(name)
            assert (refused.status_code, refused.json(), refused.headers["retry-after"]) == (429, error, "1")
        assert server.outcomes == ["answered", "answered"]
        assert server.namespace.newest().version == 0
    assert caplog.messages == []


def test_a_change_that_is_handed_on_counts_for_its_principal_where_it_is_committed(tmp_path: Path) -> None:
    """A principal that has as many changes at one server as it may is refused by the other one as well."""
    keys = {"key-of-ann": "ann", "key-of-bob": "bob"}
    limits = RequestLimits(principal_changes=1)
    with (
        served(tmp_path / "root", "http://first", keys, DISTRUST, limits) as first,
        served(tmp_path / "root", LAST, keys) as second,
    ):
        first.service.changes.take("ann")  # a change that it has there
        for _ in range(2):
            second.sees(at(first))
            refused = second.create("a")
            assert (refused.status_code, refused.json()["detail"]) == (429, "max_changes_per_principal")
        second.sees(at(first))
        batch = {"operations": [{"declare_table": {"id": ["b"]}}]}
        other = httpx.post(f"{second.url}/v1/table/batch-commit", json=batch, headers={"x-api-key": "key-of-bob"})
        assert other.status_code == 200
        assert second.committed_by() == first.peer
        first.service.changes.give_back("ann")
        second.sees(at(first))
        assert second.create("a").status_code == 200
        assert second.outcomes == ["answered"] * 4
        assert first.service.commits.principals == 2


def test_a_server_that_sees_another_one_commit_is_not_avoided(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It refuses the change, and is well."""

    def answer(request: BaseHTTPRequestHandler, _: bytes) -> None:
        say(request, 421)

    with listen_alive(answer) as other, last(tmp_path) as server, caplog.at_level(logging.WARNING):
        for name in "ab":
            server.sees(Peer("i", other))
            assert server.create(name).status_code == 200
        assert server.outcomes == ["undecided", "undecided"]
    assert caplog.messages == []


@pytest.mark.parametrize("name", [None, "j"])
@pytest.mark.parametrize("status", [200, 404, 409])
def test_an_answer_of_another_process_is_none(
    tmp_path: Path, status: int, name: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    """The address of a peer may be given to another program."""

    def answer(request: BaseHTTPRequestHandler, _: bytes) -> None:
        say(request, status, name)

    with listen_alive(answer) as other, last(tmp_path) as server:
        server.sees(Peer("i", other))
        assert server.create("a").status_code == 200
        assert server.committed_by() == server.peer
        assert server.outcomes == ["unreachable"]
    assert f"expected an answer of {other}, found status {status} of another process" in caplog.text


def test_what_is_handed_on_is_what_came(tmp_path: Path) -> None:
    seen: list[tuple[str, Mapping[str, str], bytes]] = []

    def answer(request: BaseHTTPRequestHandler, body: bytes) -> None:
        seen.append((request.path, {name.lower(): value for name, value in request.headers.items()}, body))
        say(request, 404, **{"retry-after": "3", "set-cookie": "c=d"})

    with listen_alive(answer) as other, last(tmp_path, keys=KEYS) as server:
        server.sees(Peer("i", other))
        asked = {"authorization": "Bearer key-of-ann", "x-request-id": "r", "cookie": "c", "x-forwarded-for": "f"}
        path = "/v1/table/a%24%2Fb/declare?delimiter=%24"
        got = httpx.post(
            server.url + path, content=b'{"location": null}', headers={**asked, "content-type": "application/json"}
        )
    [(target, headers, body)] = seen
    assert (target, body) == (path, b'{"location": null}')
    assert {name: headers.get(name) for name in asked} == {**asked, "cookie": None, "x-forwarded-for": None}
    assert headers["x-lance-forwarded-to"] == "i"
    assert (got.status_code, got.headers["retry-after"], got.headers.get("set-cookie")) == (404, "3", None)


def test_a_name_is_handed_on_as_it_was_decided(tmp_path: Path, first: Served, keys: Mapping[str, str]) -> None:
    for name in ("a b", "a+b"):
        first.create(name)
    with last(tmp_path, keys=keys) as server:
        server.sees(at(first))
        stock = RestNamespace(uri=server.url, **{f"headers.{name}": value for name, value in server.headers.items()})
        stock.drop_table(DropTableRequest(id=["a b"]))
        assert server.outcomes == ["answered"]
    assert list(first.namespace.newest().all_tables()) == [("a+b",)]


def test_a_change_for_a_database_is_committed_here(tmp_path: Path, first: Served, keys: Mapping[str, str]) -> None:
    httpx.post(f"{first.url}/v1/namespace/db/create", json={"id": ["db"]}, headers=first.headers)
    with last(tmp_path, keys=keys) as server:
        server.sees(at(first))
        in_database = replace(server, headers={**server.headers, "x-lancedb-database": "db"})
        assert in_database.create("t").status_code == 200
        assert server.outcomes == []
    assert list(first.namespace.newest().all_tables()) == [("db", "t")]
