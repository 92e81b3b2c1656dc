"""Heads of requests that a server must not take as they are, and headers of pages that browsers show."""

from __future__ import annotations

import logging
import socket
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from lance_namespace.errors import ServiceUnavailableError
from prometheus_client import CollectorRegistry, Counter

from namespace_server.cli import server as server_command
from namespace_server.observability.metrics.scrapes import ScrapeListener
from namespace_server.rest.errors import render_error, status_of
from namespace_server.rest.header_names import SINGLE
from namespace_server.rest.identity import Authenticator
from namespace_server.rest.middleware import HostGuard
from namespace_server.rest.request.body import decode_object
from namespace_server.rest.request.limits import RequestLimits
from namespace_server.settings import load_settings


def status(url: str, head: bytes, body: bytes = b"") -> int:
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 10) as connection:
        connection.sendall(head + b"\r\n" + body)
        return int(connection.makefile("rb").readline().split()[1])


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"GET /v1/table HTTP/1.1\r\n", 400),
        (b"GET /v1/table HTTP/1.1\r\nHost: \r\n", 400),
        (b"GET /v1/table HTTP/1.1\r\nHost: 127.0.0.1\r\n", 200),
        (b"GET /v1/table HTTP/1.0\r\n", 200),
    ],
)
def test_http_1_1_has_a_host(serve: Any, echo_catalog: Any, head: bytes, expected: int) -> None:
    assert status(serve(echo_catalog, keys={}, hosts=()).url, head) == expected


@pytest.mark.parametrize(("coding", "expected"), [(b"gzip, chunked", 501), (b"Chunked", 200), (b"chunked", 200)])
def test_no_transfer_coding_but_chunked_is_read(serve: Any, echo_catalog: Any, coding: bytes, expected: int) -> None:
    head = b"POST /v1/table/t/describe HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    chunks = b"2\r\n{}\r\n0\r\n\r\n"
    assert status(serve(echo_catalog).url, head + b"Transfer-Encoding: " + coding + b"\r\n", chunks) == expected


@pytest.mark.parametrize("name", SINGLE, ids=bytes.decode)
def test_a_header_has_one_value(serve: Any, echo_catalog: Any, name: bytes) -> None:
    url = serve(echo_catalog, hosts=(), keys={}).url
    head = b"GET /v1/namespace/s/list HTTP/1.1\r\n" + (b"" if name == b"host" else b"Host: a\r\n")
    assert status(url, head + name + b": a\r\n" + name.title() + b": b\r\n") == 400
    head = head.replace(b"/v1/namespace/s/list", b"/health/live")
    if name not in {b"transfer-encoding", b"content-encoding"}:
        assert status(url, head + 2 * (name + b": a\r\n")) == 200


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_pages_are_shown_in_no_frame_and_run_their_own_scripts_only(serve: Any, echo_catalog: Any, path: str) -> None:
    for accept in ("text/html", "*/*"):
        headers = httpx.get(serve(echo_catalog).url + path, headers={"accept": accept}).headers
        assert headers["x-frame-options"] == "DENY"
        assert headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "script-src 'self' 'sha256-" in headers["content-security-policy"]


@pytest.mark.parametrize(
    ("host", "is_allowed"),
    [
        ("evil.example", False),
        ("", False),
        ("localhost", True),
        ("catalog", True),
        ("192.0.2.1", True),
        ("2001:db8::1", True),
        ("catalog.example.org", True),
        ("127.0.0.1.nip.io", False),
    ],
)
def test_a_server_without_keys_is_called_by_names_that_no_page_has(host: str, *, is_allowed: bool) -> None:
    assert HostGuard({"catalog.example.org"}, (), near=True).allows(host) == is_allowed


@pytest.mark.parametrize(
    ("given", "hosts", "near"),
    [
        ({}, {"localhost", "127.0.0.1", "::1"}, False),
        ({"host": "0.0.0.0", "insecure": True}, {"localhost", "0.0.0.0"}, True),
        ({"host": "0.0.0.0", "insecure": True, "allowed_hosts": ["A.b"]}, {"a.b"}, False),
        ({"host": "0.0.0.0", "api_keys": {"a-long-key-of-ann": "ann"}}, set(), False),
    ],
)
def test_the_hosts_of_settings(tmp_path: Path, given: dict[str, Any], hosts: set[str], *, near: bool) -> None:
    assert server_command._hosts(load_settings(None, root=str(tmp_path), **given)) == (hosts, near)


def test_a_server_that_is_open_to_all_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    settings = load_settings(None, root=str(tmp_path), host="0.0.0.0", insecure=True)
    server_command._warn_of_openness(settings, settings.authenticator)
    assert "insecure: any client that reaches 0.0.0.0:2333 may read and change" in caplog.text
    caplog.clear()
    server_command._warn_of_openness(load_settings(None, root=str(tmp_path)), Authenticator({}))
    assert caplog.text == ""


def test_the_port_of_metrics_is_called_by_allowed_names() -> None:
    registry = CollectorRegistry()
    Counter("seen", "Requests.", registry=registry).inc()
    guard = HostGuard({"metrics.example.org"}, (), near=True)
    listener = ScrapeListener("127.0.0.1", 0, registry, lambda host: guard.allows(host.partition(":")[0]))
    url = f"http://127.0.0.1:{listener.port}/metrics"
    try:
        assert "seen_total 1.0" in httpx.get(url).text
        for host, expected in (("evil.example", 403), ("metrics.example.org", 200), ("server:1", 200)):
            assert httpx.get(url, headers={"host": host}).status_code == expected
    finally:
        listener.close()


def test_out_of_memory_is_no_fault_of_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    def loads(_data: bytes) -> None:
        raise orjson.JSONDecodeError("Not enough memory to allocate buffer for parsing", "", 0)

    monkeypatch.setattr(orjson, "loads", loads)
    with pytest.raises(ServiceUnavailableError, match="nothing was done"):
        decode_object(b"{}", RequestLimits(), values=10)
    assert status_of(render_error(MemoryError(), 7)[0]) == 503


def test_weak_keys_and_files_of_keys_are_warned_about(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "keys.toml"
    file.write_text('"password" = "ann"\n')
    file.chmod(0o666)
    Authenticator({}, file).warn()
    assert "1 API key of fewer than 16 characters" in caplog.text
    assert f"{file}: every user of this machine may write it" in caplog.text
    assert f"{file}: every user of this machine may read the keys" in caplog.text
    assert "password" not in caplog.text.replace(str(file), "")
    caplog.clear()
    file.chmod(0o600)
    file.write_text('"a-key-that-is-long-enough" = "ann"\n')
    Authenticator({}, file).warn()
    file.chmod(0o644)
    file.write_text(f'"sha256:{"0" * 64}" = "ann"\n')
    Authenticator({}, file).warn()
    assert caplog.text == ""


def test_a_line_that_standard_output_does_not_take_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def echo(_text: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(server_command.typer, "echo", echo)
    monkeypatch.setattr(server_command.os, "dup2", lambda *_: None)
    with caplog.at_level(logging.WARNING):
        server_command._print("listening on http://127.0.0.1:1")
    assert "standard output: No space left on device; it would have said: listening on" in caplog.text
