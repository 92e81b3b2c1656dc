"""No request can hurt the server: sizes, times, memory, other origins, and a shutdown that ends."""

from __future__ import annotations

import http.client
import io
import shlex
import shutil
import socket
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from lance_namespace.errors import ServiceUnavailableError

from lance_core.storage.local import LocalStore
from namespace_server.directory import json_api
from namespace_server.directory.catalog import CatalogOptions, StoredCatalog
from namespace_server.directory.manifest_table.schema import WRITER_FLAGS_KEY
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.observability.access_log import AccessLog
from namespace_server.observability.metrics.measures import ServerMetrics
from namespace_server.rest import service
from namespace_server.rest.middleware import local_hosts
from namespace_server.serving import ServingOptions
from tests.directory.releases import make_newer
from tests.rest.conftest import EchoCatalog, RunningServer
from tests.waiting import until

pytestmark = pytest.mark.slow

JSON = b"content-type: application/json\r\n"


def connect(server: RunningServer, timeout: float = 30) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=timeout)


def answer(connection: socket.socket) -> tuple[int, dict[str, Any]]:
    response = http.client.HTTPResponse(connection)
    response.begin()
    data = response.read()
    return response.status, orjson.loads(data) if data else {}


def seconds_until_closed(connection: socket.socket) -> float:
    began = time.monotonic()
    while connection.recv(65536):
        continue
    return time.monotonic() - began


class TestUpgrade:
    def test_a_request_that_offers_an_upgrade_keeps_its_body(self, echo_server: RunningServer) -> None:
        with connect(echo_server) as connection:
            connection.sendall(
                b"POST /v1/namespace/a/drop HTTP/1.1\r\nhost: localhost\r\n" + JSON + b"connection: Upgrade, "
                b"HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAEAAEAAAAIAAAAA\r\ncontent-length: 15\r\n\r\n"
                b'{"mode":"Skip"}'
            )
            status, body = answer(connection)
        assert (status, body["request"]) == (200, {"id": ["a"], "mode": "Skip"})

    def test_a_body_behind_an_upgrade_is_no_second_request(self, echo_server: RunningServer) -> None:
        hidden = b"POST /v1/table/hidden/drop HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n"
        with connect(echo_server) as connection:
            connection.sendall(
                b"POST /v1/table/t/describe HTTP/1.1\r\nhost: localhost\r\nupgrade: h2c\r\nconnection: Upgrade\r\n"
                + JSON
                + b"content-length: %d\r\n\r\n" % len(hidden)
            )
            connection.sendall(hidden)
            status, _ = answer(connection)
            assert status == 400
            connection.settimeout(0.5)
            with pytest.raises(TimeoutError):
                connection.recv(1)


class TestSizes:
    @pytest.mark.parametrize(
        "head",
        [
            b"".join(b"x-%d: %s\r\n" % (number, b"v" * 1000) for number in range(90)),
            b"".join(b"x-%d: v\r\n" % number for number in range(200)),
            b"x: %s\r\n" % (b"v" * 100_000),
        ],
        ids=["bytes", "count", "one line"],
    )
    def test_headers_are_bounded(self, serve: Any, echo_catalog: EchoCatalog, head: bytes) -> None:
        server = serve(echo_catalog, options=ServingOptions(port=0, read_buffer=16 << 10))
        with connect(server) as connection:
            try:
                connection.sendall(b"GET /v1/catalog HTTP/1.1\r\nhost: localhost\r\n" + head + b"\r\n")
                assert http_status(connection) in {400, 431}
            except ConnectionError:
                pass  # closed before all was sent

    @pytest.mark.parametrize(
        ("path", "headers"),
        [("/v1/catalog", {"x-one": "v" * 1000}), (f"/v1/{'a' * 1000}", {}), (f"/v1/catalog?a={'b' * 1000}", {})],
        ids=["headers", "path", "query"],
    )
    def test_a_head_within_the_read_buffer_is_bounded(
        self, serve: Any, echo_catalog: EchoCatalog, path: str, headers: dict[str, str]
    ) -> None:
        server = serve(echo_catalog, head=1000)
        refused = httpx.get(f"{server.url}{path}", headers=headers)
        assert (refused.status_code, refused.json()["code"]) == (431, 13)
        assert "expected at most 1000 bytes" in refused.json()["error"]
        assert httpx.get(f"{server.url}/v1/catalog", headers={"x-one": "v" * 500}).status_code == 200

    def test_a_long_path_is_refused(self, serve: Any, echo_catalog: EchoCatalog) -> None:
        server = serve(echo_catalog)
        with connect(server) as connection:
            connection.sendall(b"GET /v1/%s HTTP/1.1\r\nhost: localhost\r\n\r\n" % (b"a" * 70_000))
            assert http_status(connection) in {414, 431}

    def test_trailers_are_bounded(self, serve: Any, echo_catalog: EchoCatalog) -> None:
        server = serve(echo_catalog)
        with connect(server) as connection:
            connection.sendall(
                b"POST /v1/table/t/declare HTTP/1.1\r\nhost: localhost\r\n"
                + JSON
                + b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"
            )
            trailers = b"".join(b"x-%d: %s\r\n" % (number, b"v" * 1000) for number in range(20_000))
            with pytest.raises(ConnectionError):
                connection.sendall(trailers)

    def test_reads_take_short_bodies_only(self, serve: Any, echo_catalog: EchoCatalog) -> None:
        server = serve(echo_catalog, body=2000, read_body=100)
        long = {"context": {"message": "m" * 200}}
        refused = httpx.post(f"{server.url}/v1/table/t/describe", json=long)
        assert (refused.status_code, refused.json()["code"]) == (413, 13)
        assert httpx.post(f"{server.url}/v1/table/t/declare", json=long).status_code == 200

    def test_a_length_of_many_digits_is_a_length(self, serve: Any, echo_catalog: EchoCatalog) -> None:
        server = serve(echo_catalog)
        for digits, status in ((b"0" * 5000 + b"2", 200), (b"9" * 19, 413)):
            with connect(server) as connection:
                connection.sendall(
                    b"POST /v1/table/t/declare HTTP/1.1\r\nhost: localhost\r\n"
                    + JSON
                    + b"content-length: %s\r\n\r\n{}" % digits
                )
                assert http_status(connection) == status

    @pytest.mark.parametrize("depth", [65, 260, 1000, 100_000])
    @pytest.mark.parametrize("field", ["properties", "id", "ranges", "operations", "metadata"])
    def test_deep_nesting_is_refused(self, http: httpx.Client, depth: int, field: str) -> None:
        body = b'{"%s":%s%s}' % (field.encode(), b"[" * depth, b"]" * depth)
        for path in ("/v1/table/t/declare", "/v1/table/t/describe", "/v1/table/batch-commit"):
            refused = http.post(path, content=body, headers={"content-type": "application/json"})
            assert (refused.status_code, refused.json()["code"]) == (400, 13), refused.text

    def test_the_number_of_values_is_bounded(self, serve: Any, echo_catalog: EchoCatalog) -> None:
        server = serve(echo_catalog, values=1000)
        for body, status in ((b'{"x":[%s0]}' % (b"0," * 1000), 400), (b'{"x":[%s0]}' % (b"0," * 900), 200)):
            found = httpx.post(
                f"{server.url}/v1/table/t/declare", content=body, headers={"content-type": "application/json"}
            )
            assert found.status_code == status, found.text

    @pytest.mark.parametrize(
        ("path", "body"),
        [
            ("/v1/table/x/describe", {"id": [1] * 101}),
            ("/v1/table/x/describe", {"zzz": [{}] * 6000}),
            ("/v1/table/batch-commit", {"operations": [1] * 10_001}),
            ("/v1/table/version/batch-create", {"entries": [1] * 10_001}),
            ("/v1/table/x/version/delete", {"ranges": [1] * 10_001}),
        ],
        ids=["id", "ignored", "operations", "entries", "ranges"],
    )
    def test_long_lists_are_refused_before_they_are_checked(
        self, http: httpx.Client, path: str, body: dict[str, Any]
    ) -> None:
        refused = http.post(path, json=body)
        assert (refused.status_code, refused.json()["code"]) == (400, 13)
        assert "expected at most" in refused.json()["error"]

    def test_the_first_bad_operation_ends_the_check(self, serve: Any, tmp_path: Path) -> None:
        server = serve(DirectoryNamespace(root=str(tmp_path)))
        refused = httpx.post(f"{server.url}/v1/table/batch-commit", json={"operations": [1] * 10_000})
        assert refused.json()["error"] == "operations[0]: expected an object, found 1"

    def test_all_bodies_together_are_bounded(self, serve: Any, echo_catalog: EchoCatalog) -> None:
        server = serve(echo_catalog, body=1 << 20, buffered_bodies=2 << 20)
        head = b"POST /v1/table/t/declare HTTP/1.1\r\nhost: localhost\r\n" + JSON + b"content-length: 1000000\r\n\r\n"
        announced = [connect(server) for _ in range(4)]  # holds no memory
        for connection in announced:
            connection.sendall(head)
        time.sleep(0.3)
        assert _accepts(server, 1_000_000)
        held = [connect(server) for _ in range(2)]
        for connection in held:
            connection.sendall(head + b" " * 999_000)
        until(lambda: not _accepts(server, 1_000_000), 20)
        with connect(server) as connection:
            connection.sendall(head + b" " * 999_000)
            status, body = answer(connection)
        assert (status, body["code"]) == (503, 17)
        assert "nothing was done" in body["error"]
        for connection in (*held, *announced):
            connection.close()
        until(lambda: _accepts(server, 1_000_000), 20)


class TestTimes:
    OPTIONS = ServingOptions(port=0, idle_timeout=1.0)

    @pytest.mark.parametrize("sent", [b"", b"GET /v1/cat", b"GET /v1/catalog HTTP/1.1\r\nhost: localhost\r\n"])
    def test_a_head_has_its_deadline(self, serve: Any, echo_catalog: EchoCatalog, sent: bytes) -> None:
        with connect(serve(echo_catalog, options=self.OPTIONS)) as connection:
            connection.sendall(sent)
            assert 0.5 < seconds_until_closed(connection) < 20

    def test_an_idle_connection_is_closed(self, serve: Any, echo_catalog: EchoCatalog) -> None:
        with connect(serve(echo_catalog, options=self.OPTIONS)) as connection:
            connection.sendall(b"GET /v1/catalog HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert answer(connection)[0] == 200
            assert seconds_until_closed(connection) < 20

    def test_a_body_has_its_deadline(self, serve: Any, echo_catalog: EchoCatalog) -> None:
        with connect(serve(echo_catalog, body_timeout=0.5)) as connection:
            connection.sendall(
                b"POST /v1/table/t/declare HTTP/1.1\r\nhost: localhost\r\n" + JSON + b"content-length: 100\r\n\r\n{"
            )
            status, body = answer(connection)
            assert (status, body["code"]) == (408, 13)
            assert "0.5 s" in body["error"]
        assert echo_catalog.groups == []

    def test_a_client_that_does_not_read_loses_its_connection(self, serve: Any, echo_catalog: EchoCatalog) -> None:
        server = serve(echo_catalog, options=ServingOptions(port=0, max_connections=2, idle_timeout=1.0))
        held = [socket.socket() for _ in range(2)]
        for connection in held:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(("127.0.0.1", server.port))
            connection.sendall(b"GET /docs/assets/swagger-ui-bundle.js HTTP/1.1\r\nhost: localhost\r\n\r\n" * 10)
        time.sleep(0.5)
        assert httpx.get(f"{server.url}/health/live", timeout=60).status_code == 200
        for connection in held:
            connection.close()

    def test_connections_are_bounded_and_the_next_one_waits(self, serve: Any, echo_catalog: EchoCatalog) -> None:
        server = serve(echo_catalog, options=ServingOptions(port=0, max_connections=2, idle_timeout=1.0))
        held = [connect(server) for _ in range(2)]
        time.sleep(0.2)
        assert httpx.get(f"{server.url}/health/live", timeout=30).status_code == 200  # once an idle one is closed
        for connection in held:
            connection.close()


class TestOtherOrigins:
    """A server on loopback without keys trusts the programs of its machine, and no web page in a browser there."""

    @pytest.fixture
    def server(self, serve: Any, echo_catalog: EchoCatalog) -> RunningServer:
        started: RunningServer = serve(echo_catalog, hosts=local_hosts("127.0.0.1"))
        return started

    @pytest.mark.parametrize(
        "headers",
        [
            {"origin": "https://example.org"},
            {"origin": "null"},
            {"origin": "http://localhost.example.org"},
            {"sec-fetch-site": "cross-site"},
            {"sec-fetch-site": "same-site"},
            {"host": "example.org"},
            {"host": "example.org:80"},
            {"host": "127.0.0.1.example.org"},
            {"host": ""},
            {"host": "user@127.0.0.1"},
            {"host": "127.0.0.1/example.org"},
            {"host": "example.org\\@localhost"},
            {"content-type": "application/x-www-form-urlencoded"},
            {"content-type": "multipart/form-data; boundary=x"},
            {"content-type": "text/plain"},
        ],
        ids=str,
    )
    def test_a_form_or_script_of_another_site_changes_nothing(
        self, server: RunningServer, echo_catalog: EchoCatalog, headers: dict[str, str]
    ) -> None:
        refused = httpx.post(f"{server.url}/v1/table/x/drop", headers=headers)
        assert refused.status_code in {400, 403}, refused.text
        assert refused.json()["code"] in {13, 15}
        assert echo_catalog.groups == []

    def test_a_second_host_is_refused(self, server: RunningServer) -> None:
        with connect(server) as connection:
            connection.sendall(b"GET /v1/catalog HTTP/1.1\r\nhost: example.org\r\nhost: localhost\r\n\r\n")
            assert http_status(connection) == 400

    @pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "LOCALHOST"])
    def test_local_names_are_served(self, server: RunningServer, host: str) -> None:
        headers = {"host": f"{host}:{server.port}", "sec-fetch-site": "same-origin"}
        assert httpx.post(f"{server.url}/v1/table/x/drop", headers=headers).status_code == 200

    def test_the_pages_of_the_server_itself_are_served(self, server: RunningServer) -> None:
        assert httpx.post(f"{server.url}/v1/table/x/drop", headers={"origin": server.url}).status_code == 200

    def test_an_allowed_origin_is_served_with_cors_headers(self, serve: Any, echo_catalog: EchoCatalog) -> None:
        url = serve(echo_catalog, origins=["https://app.example.org"]).url
        origin = {"origin": "https://app.example.org"}
        found = httpx.post(f"{url}/v1/table/x/drop", headers=origin)
        assert (found.status_code, found.headers["access-control-allow-origin"]) == (200, origin["origin"])
        assert "x-lance-catalog-version" in found.headers["access-control-expose-headers"]
        missing = httpx.get(f"{url}/nowhere", headers=origin)
        assert (missing.status_code, missing.headers["access-control-allow-origin"]) == (404, origin["origin"])
        preflight = httpx.options(f"{url}/v1/table/x/drop", headers=origin | {"access-control-request-method": "POST"})
        assert preflight.status_code == 200
        assert httpx.post(f"{url}/v1/table/x/drop", headers={"origin": "https://example.org"}).status_code == 403

    def test_an_allowed_host_may_be_a_suffix(self, serve: Any, echo_catalog: EchoCatalog) -> None:
        url = serve(echo_catalog, hosts=["*.example.org", "catalog"]).url
        statuses = [
            httpx.get(f"{url}/v1/catalog", headers={"host": host}).status_code
            for host in ("a.example.org:8080", "catalog", "example.org", "a.example.com", "localhost")
        ]
        assert statuses == [200, 200, 403, 403, 403]


class TestMemory:
    def test_requests_that_differ_in_what_is_not_read_leave_nothing_behind(self, serve: Any, tmp_path: Path) -> None:
        options = CatalogOptions(response_cache_bytes=1 << 20)
        namespace = DirectoryNamespace(catalog=StoredCatalog(LocalStore(tmp_path, "none"), options))
        url = serve(namespace).url
        with httpx.Client(base_url=url) as http:
            assert http.post("/v1/namespace/a/create", json={}).status_code == 200
            for number in range(300):
                body = {"context": {"ignored": f"{number}" + "x" * 3000}}
                assert http.post("/v1/namespace/a/describe", json=body).status_code == 200
                delimiter = f"{number}{'x' * 9000}"
                assert http.post(f"/v1/namespace/a/describe?delimiter={delimiter}", json={}).status_code == 200
        assert 0 < namespace._cache.size <= 1 << 20


class TestShutdown:
    def test_half_a_body_does_not_hold_it(self, serve: Any, echo_catalog: EchoCatalog) -> None:
        server = serve(echo_catalog, options=ServingOptions(port=0, shutdown_timeout=0.5))
        with connect(server) as connection:
            connection.sendall(
                b"POST /v1/table/t/declare HTTP/1.1\r\nhost: localhost\r\n" + JSON + b"content-length: 100\r\n\r\n{"
            )
            time.sleep(0.2)
            assert _seconds_to_stop(server) < 20
        assert echo_catalog.closed

    @pytest.mark.parametrize("is_reset", [False, True])
    def test_answers_that_are_never_read_do_not_hold_it(
        self, serve: Any, echo_catalog: EchoCatalog, is_reset: bool
    ) -> None:
        server = serve(echo_catalog, options=ServingOptions(port=0, shutdown_timeout=0.5))
        with connect(server) as connection:
            connection.sendall(b"GET /docs/assets/swagger-ui-bundle.js HTTP/1.1\r\nhost: localhost\r\n\r\n" * 100)
            time.sleep(0.3)
            if is_reset:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.close()
            assert _seconds_to_stop(server) < 20
        assert echo_catalog.closed

    def test_a_request_in_progress_is_answered(self, serve: Any, echo_catalog: EchoCatalog) -> None:
        server = serve(echo_catalog)
        echo_catalog.gate.clear()
        answers: list[int] = []

        def declare() -> None:
            answers.append(httpx.post(f"{server.url}/v1/table/t/declare", json={}, timeout=30).status_code)

        client = threading.Thread(target=declare)
        client.start()
        assert echo_catalog.entered.acquire(timeout=30)
        server.ask_to_stop()
        time.sleep(0.2)
        echo_catalog.gate.set()
        client.join(30)
        server.stop()
        assert answers == [200]

    def test_a_port_that_is_taken_is_told(self, serve: Any, echo_catalog: EchoCatalog) -> None:
        first = serve(echo_catalog)
        with pytest.raises(OSError, match="in use"):
            serve(EchoCatalog(), options=ServingOptions(port=first.port))


def test_head_is_served_wherever_get_is(http: httpx.Client) -> None:
    for path in ("/v1/table", "/v1/catalog", "/v1/namespace/a/list", "/health/live", "/docs", "/openapi.json"):
        found = http.head(path)
        assert (found.status_code, found.content) == (200, b""), path


def test_without_a_key_no_catalog_version_is_told(serve: Any, echo_catalog: EchoCatalog) -> None:
    url = serve(echo_catalog, keys={"key-no-1": "ann"}).url
    for method, path, status in (
        ("GET", "/v1/catalog", 401),
        ("POST", "/v1/catalog", 405),
        ("GET", "/nowhere", 404),
        ("GET", "/health/live", 200),
    ):
        found = httpx.request(method, url + path)
        assert found.status_code == status
        assert "x-lance-catalog-version" not in found.headers
    known = httpx.get(f"{url}/v1/catalog", headers={"x-api-key": "key-no-1"})
    assert known.headers["x-lance-catalog-version"] == "7"


class TestAccessLog:
    def logged(self, serve: Any, catalog: EchoCatalog, *requests: bytes, form: Any = "text") -> list[str]:
        written = io.StringIO()
        server = serve(catalog, keys={"key-no-1": "ann lee"}, access_log=AccessLog(form, written))
        for request in requests:
            with connect(server) as connection:
                connection.sendall(request)
                connection.recv(65536)
        server.stop()
        return written.getvalue().split("\n")[:-1]

    def test_a_line_for_every_request(self, serve: Any, echo_catalog: EchoCatalog) -> None:
        head = b"HTTP/1.1\r\nhost: localhost\r\nx-api-key: key-no-1\r\nx-request-id: r1\r\n"
        read, change = self.logged(
            serve,
            echo_catalog,
            b"GET /v1/catalog/versions/3 " + head + b"\r\n",
            b"POST /v1/table/t/declare " + head + JSON + b"content-length: 2\r\n\r\n{}",
        )
        for line, route, version in (
            (read, "/v1/catalog/versions/{version}", 7),
            (change, "/v1/table/{id}/declare", 8),
        ):
            assert f"route={route} status=200" in line
            assert f'principal="ann lee" catalog_version={version} client=127.0.0.1 request_id=r1' in line

    @pytest.mark.parametrize(
        "request_",
        [
            b"GET /%0Astatus=200 HTTP/1.1\r\nhost: localhost\r\n\r\n",
            b"GET /\xc2\x9b31m\xc2\x85status=200 HTTP/1.1\r\nhost: localhost\r\n\r\n",
            b"GET /x HTTP/1.1\r\nhost: localhost\r\nx-request-id: a status=200 b\r\n\r\n",
            b"M" * 5000 + b" /x HTTP/1.1\r\nhost: localhost\r\n\r\n",
        ],
        ids=["newline", "control characters", "request id", "method"],
    )
    def test_no_request_can_forge_one(self, serve: Any, echo_catalog: EchoCatalog, request_: bytes) -> None:
        lines = self.logged(serve, echo_catalog, request_)
        assert len(lines) <= 1  # none where the HTTP server refused it
        for line in lines:
            assert line.isascii()
            assert line.isprintable()
            assert len(line) < 1000
            assert [word for word in shlex.split(line) if word.startswith("status=")] != ["status=200"]

    def test_lines_of_json(self, serve: Any, echo_catalog: EchoCatalog) -> None:
        [line] = self.logged(serve, echo_catalog, b"GET /x HTTP/1.1\r\nhost: localhost\r\n\r\n", form="json")
        found = orjson.loads(line)
        assert (found["route"], found["status"], found["principal"]) == ("/x", 404, None)
        assert found["ms"] > 0


class TestReadiness:
    def test_a_root_that_cannot_be_written_is_not_ready_and_not_named(
        self, serve: Any, echo_catalog: EchoCatalog, caplog: pytest.LogCaptureFixture
    ) -> None:
        echo_catalog.unwritable = ServiceUnavailableError("root /secret/place cannot be written: Read-only file system")
        refused = httpx.get(f"{serve(echo_catalog).url}/health/ready")
        assert (refused.status_code, refused.json()["code"]) == (503, 17)
        assert "cannot be written" in refused.json()["error"]
        assert "/secret" not in refused.text
        assert "Read-only" in caplog.text

    def test_a_storage_that_hangs_is_not_ready(
        self, serve: Any, echo_catalog: EchoCatalog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(service, "_PROBE_TIMEOUT", 0.2)
        released = threading.Event()
        monkeypatch.setattr(echo_catalog, "check_writable", lambda: released.wait(30))
        url = serve(echo_catalog).url
        for _ in range(10):
            refused = httpx.get(f"{url}/health/ready")
            assert (refused.status_code, refused.json()["code"]) == (503, 17)
        released.set()
        until(lambda: httpx.get(f"{url}/health/ready").status_code == 200, 20)

    def test_a_call_that_storage_does_not_answer_is_told(
        self, serve: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Whatever else is answered meanwhile: the thread that waits is lost until the file system answers."""
        namespace = DirectoryNamespace(root=str(tmp_path / "root"), durability="none", observer=ServerMetrics())
        url = serve(namespace).url
        assert httpx.get(f"{url}/health/ready").status_code == 200
        store = namespace.catalog.store.innermost
        begun, released, head = threading.Event(), threading.Event(), store.head

        def hang(path: str) -> Any:
            begun.set()
            released.wait(30)
            return head(path)

        monkeypatch.setattr(store, "head", hang)
        monkeypatch.setattr(json_api, "_LONGEST_CALL", 0.0)
        namespace.catalog.store.put("t/slow", b"x")
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(namespace.catalog.store.head, "t/slow")
            assert begun.wait(30)
            refused = httpx.get(f"{url}/health/ready")
            state = namespace.catalog.state()
            assert state is not None
            assert state.longest_call > 0
            released.set()
            assert waiting.result().size == 1
        assert (refused.status_code, refused.json()["code"]) == (503, 17)
        assert "storage has not answered a call (head) for 0 s" in refused.json()["error"]
        assert "t/slow" in caplog.text
        monkeypatch.setattr(json_api, "_LONGEST_CALL", 30.0)
        assert httpx.get(f"{url}/health/ready").status_code == 200

    def test_a_catalog_that_a_newer_release_changed_is_not_ready(self, serve: Any, tmp_path: Path) -> None:
        url = serve(DirectoryNamespace(root=str(tmp_path / "root"), durability="none")).url
        assert httpx.post(f"{url}/v1/namespace/a/create", json={}).status_code == 200
        make_newer(tmp_path / "root", WRITER_FLAGS_KEY, str(1 << 60))
        url = serve(DirectoryNamespace(root=str(tmp_path / "root"), durability="none")).url
        refused = httpx.get(f"{url}/health/ready")
        assert (refused.status_code, refused.json()["code"]) == (503, 17)
        assert "cannot be written: expected a catalog that release" in refused.json()["error"]
        assert "99.0.0" in refused.json()["error"]
        assert httpx.post(f"{url}/v1/namespace/b/create", json={}).status_code == 406
        assert httpx.get(f"{url}/v1/namespace/$/list").json()["namespaces"] == ["a"]

    def test_a_root_that_vanished_is_not_ready_and_takes_no_changes(self, serve: Any, tmp_path: Path) -> None:
        root = tmp_path / "root"
        url = serve(DirectoryNamespace(root=str(root), durability="none")).url
        assert httpx.post(f"{url}/v1/namespace/a/create", json={}).status_code == 200
        root.rename(tmp_path / "unmounted")
        assert httpx.get(f"{url}/health/ready").status_code == 503
        assert httpx.post(f"{url}/v1/namespace/b/create", json={}).status_code == 500
        assert httpx.post(f"{url}/v1/namespace/a/describe", json={}).status_code == 500
        shutil.rmtree(root, ignore_errors=True)
        (tmp_path / "unmounted").rename(root)
        assert httpx.post(f"{url}/v1/namespace/a/describe", json={}).status_code == 200
        assert httpx.post(f"{url}/v1/namespace/b/create", json={}).status_code == 200


class TestRequestIds:
    def test_every_answer_has_its_own(self, http: httpx.Client) -> None:
        found = [http.get(path).headers["x-request-id"] for path in ("/v1/catalog", "/v1/catalog", "/nowhere")]
        assert len(set(found)) == 3

    def test_that_of_the_client_is_kept(self, http: httpx.Client) -> None:
        assert http.get("/v1/catalog", headers={"x-request-id": "trace 7"}).headers["x-request-id"] == "trace 7"

    @pytest.mark.parametrize("value", ["", "x" * 129, "é"])
    def test_one_that_is_no_id_is_replaced(self, http: httpx.Client, value: str) -> None:
        headers = {b"x-request-id": value.encode("latin-1")}
        assert http.get("/v1/catalog", headers=headers).headers["x-request-id"] != value


def http_status(connection: socket.socket) -> int:
    response = http.client.HTTPResponse(connection)
    response.begin()
    return response.status


def _accepts(server: RunningServer, length: int) -> bool:
    body = b'{"location":"' + b"x" * (length - 15) + b'"}'
    headers = {"content-type": "application/json"}
    return httpx.post(f"{server.url}/v1/table/t/declare", content=body, headers=headers).status_code == 200


def _seconds_to_stop(server: RunningServer) -> float:
    began = time.monotonic()
    server.stop()
    return time.monotonic() - began
