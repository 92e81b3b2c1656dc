"""Events over HTTP: long polling and server-sent events, to clients that come, wait, are slow, and go."""

from __future__ import annotations

import gc
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from namespace_server.answer import Answer
from namespace_server.rest import following
from tests.events.following import STREAM, Followed, followed
from tests.waiting import until


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Followed]:
    with followed(tmp_path_factory.mktemp("events") / "root") as found:
        for number in range(5):
            found.namespace(f"n{number}")
        yield found


def refused(server: Followed, headers: dict[str, str] | None = None, **query: object) -> tuple[int, int, str]:
    answer = server.http.get("/v1/catalog/events", params={k: str(v) for k, v in query.items()}, headers=headers)
    body = answer.json()
    return answer.status_code, body["code"], body["error"]


class TestAnswers:
    def test_events_after_a_version(self, server: Followed) -> None:
        page = server.events(since=2, limit=2)
        assert [event["data"]["catalog_version"] for event in page["events"]] == [3, 4]
        assert page["last"] == 4
        assert page["newest"] >= 5

    def test_the_last_event_id_counts_before_since(self, server: Followed) -> None:
        answer = server.http.get("/v1/catalog/events?since=0&limit=1", headers={"last-event-id": "3"})
        assert answer.json()["last"] == 4

    def test_without_since_the_newest_version_is_told(self, server: Followed) -> None:
        page = server.events()
        assert (page["events"], page["last"]) == ([], page["newest"])

    def test_a_request_waits_for_an_event_and_no_longer(self, server: Followed) -> None:
        last = server.events()["last"]
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(server.events, since=last, wait=20)
            until(lambda: server.app.service.events.open == 1)
            began = time.monotonic()
            version = server.namespace(f"w{last}")
            page = waiting.result()
        assert time.monotonic() - began < 5
        assert [event["data"]["catalog_version"] for event in page["events"]] == [version]
        assert server.app.service.events.open == 0

    def test_a_request_that_waits_in_vain_is_answered(self, server: Followed) -> None:
        last = server.events()["last"]
        began = time.monotonic()
        page = server.events(since=last, wait=1)
        assert 0.9 < time.monotonic() - began < 5
        assert page == {"events": [], "last": last, "newest": last}

    def test_a_client_that_goes_away_while_it_waits_is_let_go(self, server: Followed) -> None:
        last = server.events()["last"]
        with pytest.raises(httpx.ReadTimeout):
            httpx.get(f"{server.url}/v1/catalog/events?since={last}&wait=60", timeout=0.3)
        until(lambda: server.app.service.events.open == 0)

    def test_what_is_refused(self, server: Followed) -> None:
        newest = server.events()["newest"]
        assert refused(server, since=newest + 1)[:2] == (400, 13)
        assert refused(server, since=-1)[:2] == (400, 13)
        assert refused(server, since="x")[:2] == (400, 13)
        assert refused(server, wait=61) == (400, 13, "wait: expected less than or equal to 60, found '61'")
        assert refused(server, since=1 << 63)[2].startswith("since: expected a number below 2^63")
        assert refused(server, sinc=1)[:2] == (400, 13)
        assert refused(server, {"last-event-id": "x"})[2].startswith("last-event-id: expected a catalog version")
        assert refused(server, {"x-lance-catalog-version": "1"}, since=0)[2].startswith("x-lance-catalog-version")
        assert refused(server, STREAM, since=0, wait=1, limit=1)[2].startswith("limit, wait: expected none")
        assert refused(server, STREAM, since=newest + 1)[:2] == (400, 13)

    @pytest.mark.parametrize(
        ("accept", "is_stream"),
        [
            ("text/event-stream", True),
            ("application/json, Text/Event-Stream;q=0.5", True),
            ("text/event-stream; charset=utf-8", True),
            ("text/event-stream;q=0, */*", False),
            ("text/event-stream; q=0.00", False),
            ("x-text/event-streams", False),
            ("text/*", False),
        ],
    )
    def test_a_stream_is_for_those_who_accept_one(self, server: Followed, accept: str, *, is_stream: bool) -> None:
        with server.http.stream("GET", "/v1/catalog/events?since=0", headers={"accept": accept}) as answer:
            assert answer.headers["content-type"] == ("text/event-stream" if is_stream else "application/json")

    def test_commits_of_another_server_end_the_wait(self, tmp_path: Path) -> None:
        with followed(tmp_path / "root") as one, followed(tmp_path / "root") as two:
            one.namespace("a")
            with ThreadPoolExecutor(1) as pool:
                waiting = pool.submit(one.events, since=1, wait=20)
                until(lambda: one.app.service.events.open == 1)
                version = two.namespace("b")
                began = time.monotonic()
                page = waiting.result()
            assert time.monotonic() - began < 5
            assert [event["data"]["catalog_version"] for event in page["events"]] == [version]
            [own], [others] = one.events(since=version - 1)["events"], two.events(since=version - 1)["events"]
            assert json.dumps(own) == json.dumps(others)


class TestStreams:
    def test_events_are_sent_as_they_come(self, server: Followed) -> None:
        with server.stream(since=0) as stream:
            assert stream.answer.headers["content-type"] == "text/event-stream"
            assert stream.answer.headers["cache-control"] == "no-store"
            assert stream.take(5) == [1, 2, 3, 4, 5]
        last = server.events()["last"]
        with server.stream(since=last) as stream:
            made = [server.namespace(f"s{last}_{number}") for number in range(3)]
            assert stream.take(3) == made

    def test_they_are_the_events_of_the_answers(self, server: Followed) -> None:
        events = server.events(since=0, limit=3)["events"]
        with server.stream(since=0) as stream:
            found = [event for _, event in zip(range(3), (event for _, event in stream), strict=False)]
        assert json.dumps(found) == json.dumps(events)

    def test_a_client_that_comes_again_goes_on(self, server: Followed) -> None:
        with server.stream({"last-event-id": "2"}, since=0) as stream:
            assert stream.take(2) == [3, 4]

    def test_a_head_request_is_answered(self, server: Followed) -> None:
        answer = server.http.head("/v1/catalog/events", headers=STREAM)
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream")

    def test_a_quiet_stream_shows_that_it_is_alive(self, server: Followed, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(following, "_HEARTBEAT", 0.05)
        last = server.events()["last"]
        with server.stream(since=last) as stream:
            timer = threading.Timer(0.5, server.namespace, [f"q{last}"])
            timer.start()
            assert stream.take(1) == [last + 1]
            timer.join()
        assert stream.comments >= 3

    def test_a_client_that_goes_away_is_let_go(self, server: Followed) -> None:
        with server.stream(since=0) as stream:
            stream.take(1)
            assert server.app.service.events.open == 1
        until(lambda: server.app.service.events.open == 0)

    def test_streams_take_no_threads(self, server: Followed) -> None:
        before = threading.active_count()
        streams = [server.stream(since=0) for _ in range(20)]
        opened = [each.__enter__() for each in streams]
        try:
            for each in opened:
                each.take(1)
            assert server.app.service.events.open == 20
            assert threading.active_count() - before <= 2
        finally:
            for context in streams:
                context.__exit__(None, None, None)

    def test_streams_hold_nothing_of_what_they_have_sent(self, server: Followed) -> None:
        def held() -> int:
            return sum(isinstance(each, Answer) and "events" in each.body for each in gc.get_objects())

        gc.collect()
        before = held()
        with ExitStack() as streams:
            opened = [streams.enter_context(server.stream(since=0)) for _ in range(5)]
            assert [next(iter(each))[0] for each in opened] == [1] * 5
            until(lambda: held() <= before)
            assert server.app.service.events.open == 5
        until(lambda: server.app.service.events.open == 0)

    def test_more_streams_than_the_server_takes_are_refused(self, tmp_path: Path) -> None:
        with followed(tmp_path / "root", streams=2) as server:
            server.namespace("a")
            with server.stream(since=0) as one, server.stream(since=0) as two:
                one.take(1)
                two.take(1)
                assert refused(server, STREAM, since=0)[:2] == (429, 21)
                assert refused(server, since=1, wait=1)[:2] == (429, 21)
                assert server.events(since=0)["last"] == 1
            until(lambda: server.app.service.events.open == 0)
            with server.stream(since=0) as stream:
                stream.take(1)

    def test_they_end_with_the_key_of_their_client(self, tmp_path: Path) -> None:
        with followed(tmp_path / "root", keys={"k" * 32: "ada"}) as server:
            assert refused(server, STREAM)[:2] == (401, 16)
            server.http.headers["x-api-key"] = "k" * 32
            server.namespace("a")
            with server.stream({"x-api-key": "k" * 32}, since=0) as stream:
                assert stream.take(1) == [1]
                ring = server.app.service.authenticator
                ring._ring = type(ring.ring).parse({"x" * 32: "ada"})
                server.http.headers["x-api-key"] = "x" * 32
                server.namespace("b")
                assert list(stream) == []

    def test_a_client_that_waits_is_told_nothing_once_its_key_is_removed(self, tmp_path: Path) -> None:
        with followed(tmp_path / "root", keys={"k" * 32: "ada"}) as server, ThreadPoolExecutor(1) as pool:
            server.http.headers["x-api-key"] = "k" * 32
            server.namespace("a")
            waiting = pool.submit(server.events, since=1, wait=20)
            until(lambda: server.app.service.events.open == 1)
            authenticator = server.app.service.authenticator
            authenticator._ring = type(authenticator.ring).parse({"x" * 32: "ada", "y" * 32: "bob"})
            with httpx.Client(base_url=server.url, headers={"x-api-key": "x" * 32}) as other:
                assert other.post("/v1/namespace/b/create", json={}).status_code == 200
            assert waiting.result(timeout=10) == {"events": [], "last": 1, "newest": 1}
            assert refused(server, since=1)[:2] == (401, 16)

    def test_a_history_that_is_gone_is_answered_and_a_stream_that_falls_behind_ends(self, tmp_path: Path) -> None:
        with followed(tmp_path / "root") as server:
            for number in range(3):
                server.namespace(f"n{number}")
            [first] = [each for each in (tmp_path / "root").glob("__manifest/_versions/*") if _number(each) == 1]
            first.unlink()
            status, code, text = refused(server, STREAM, since=0)
            assert (status, code) == (410, 11)
            assert "take a baseline" in text
            assert refused(server, since=0)[:2] == (410, 11)


class TestTheEnd:
    def test_streams_end_cleanly_with_the_server(self, tmp_path: Path) -> None:
        with followed(tmp_path / "root") as server, ThreadPoolExecutor(4) as pool:
            server.namespace("a")

            def read() -> list[int]:
                with server.stream(since=0) as stream:
                    return [version for version, _ in stream]

            reading = [pool.submit(read) for _ in range(3)]
            waiting = pool.submit(server.events, since=1, wait=60)
            until(lambda: server.app.service.events.open == 4)
            began = time.monotonic()
            server.server.stop()
            assert [each.result(timeout=10) for each in reading] == [[1]] * 3
            assert waiting.result(timeout=10)["events"] == []
        assert time.monotonic() - began < 10

    def test_a_client_that_takes_nothing_does_not_hold_the_end_up(self, tmp_path: Path) -> None:
        with followed(tmp_path / "root") as server:
            _fill(server, 150)
            with _idle_client(server):
                until(lambda: server.app.service.events.open == 1)
                began = time.monotonic()
                server.server.stop()
                until(lambda: server.app.service.events.open == 0, 15)
        assert time.monotonic() - began < 15

    def test_streams_end_so_that_clients_meet_a_new_certificate(self, tmp_path: Path) -> None:
        with followed(tmp_path / "root") as server:
            server.namespace("a")
            with server.stream(since=0) as stream:
                stream.take(1)
                server.server._loop.call_soon_threadsafe(server.app.end_streams)  # type: ignore[union-attr]
                assert list(stream) == []
            with server.stream(since=0) as stream:
                assert stream.take(1) == [1]


def test_of_a_slow_consumer_no_more_is_held_than_a_page(tmp_path: Path) -> None:
    """What the sockets hold beside is the kernel's: some megabytes at most. Others are served meanwhile."""
    with followed(tmp_path / "root") as server:
        total = _fill(server, 400)
        size = len(json.dumps(server.events(since=total - 1)["events"][0]))
        assert total * size > 12 << 20
        with _idle_client(server) as slow:
            until(lambda: server.app.service.events.sent > 0)
            time.sleep(1)
            sent = server.app.service.events.sent
            assert sent < total - 100
            with server.stream(since=total - 2) as quick:
                assert quick.take(2) == [total - 1, total]
            assert server.app.service.events.sent <= sent + 2
            slow.settimeout(30)
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
            text, last = bytearray(), f"\nid: {total}\n".encode()
            while text.find(last, max(len(text) - (2 << 20), 0)) < 0:
                text += slow.recv(1 << 20)
        ids = [int(line.split(b": ")[1]) for line in text.split(b"\n") if line.startswith(b"id: ")]
        assert ids == list(range(1, total + 1))


def _fill(server: Followed, count: int) -> int:
    """Commit batches whose events are long; the newest version."""
    names = [f"{number:03d}".ljust(128, "x") for number in range(200)]
    server.namespace("first")
    body = {"operations": [{"pin_catalog_version": {"name": name, "version": 1}} for name in names]}
    for _ in range(count):
        answer = server.http.post("/v1/table/batch-commit", json=body)
        assert answer.status_code == 200, answer.text
    return int(server.events()["newest"])


def _idle_client(server: Followed) -> socket.socket:
    """A client that asks for a stream, and takes nothing of it."""
    address = urlsplit(server.url)
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    found.connect((address.hostname, address.port))
    host = f"{address.hostname}:{address.port}"
    found.sendall(
        f"GET /v1/catalog/events?since=0 HTTP/1.1\r\nhost: {host}\r\naccept: text/event-stream\r\n\r\n".encode()
    )
    return found


def _number(path: os.PathLike[str]) -> int:
    return 2**64 - 1 - int(Path(path).name.removesuffix(".manifest"))
