"""The address of a client, as its connection or trusted proxies tell it, and the wrong keys that it may try."""

from __future__ import annotations

import hashlib
import io
import re
from typing import Any

import httpx
import pytest

from namespace_server.app import create_app
from namespace_server.observability.access_log import AccessLog
from namespace_server.rest.client_address import ClientAddresses
from namespace_server.rest.identity import Authenticator
from namespace_server.rest.wrong_keys import WrongKeys
from tests.running import serving

PROXIES = ("10.0.0.0/8", "2001:db8::1")


def address(connection: str, **headers: str | list[str]) -> str | None:
    pairs = [
        (name.replace("_", "-").encode(), value.encode())
        for name, values in headers.items()
        for value in ([values] if isinstance(values, str) else values)
    ]
    return ClientAddresses(PROXIES).of({"client": (connection, 1), "headers": pairs})


@pytest.mark.parametrize(
    ("connection", "headers", "client"),
    [
        ("192.0.2.7", {}, "192.0.2.7"),
        ("192.0.2.7", {"x_forwarded_for": "198.51.100.1"}, "192.0.2.7"),
        ("10.1.1.1", {}, "10.1.1.1"),
        ("10.1.1.1", {"x_forwarded_for": "198.51.100.1"}, "198.51.100.1"),
        ("::ffff:10.1.1.1", {"x_forwarded_for": "198.51.100.1"}, "198.51.100.1"),
        ("10.1.1.1", {"x_forwarded_for": "203.0.113.9, 198.51.100.1, 10.2.2.2"}, "198.51.100.1"),
        ("10.1.1.1", {"x_forwarded_for": ["203.0.113.9", "198.51.100.1"]}, "198.51.100.1"),
        ("10.1.1.1", {"x_forwarded_for": "198.51.100.1, nonsense, 10.2.2.2"}, "10.2.2.2"),
        ("10.1.1.1", {"x_forwarded_for": "10.3.3.3, 10.2.2.2"}, "10.3.3.3"),
        ("2001:db8::1", {"x_forwarded_for": "[2001:db8::9]:4711"}, "2001:db8::9"),
        ("10.1.1.1", {"x_forwarded_for": "198.51.100.1:80"}, "198.51.100.1"),
        ("10.1.1.1", {"forwarded": 'for=203.0.113.9;proto=http, For="[2001:db8::9]:80";by=x'}, "2001:db8::9"),
        ("10.1.1.1", {"forwarded": "for=_hidden"}, "10.1.1.1"),
        ("10.1.1.1", {"forwarded": "for=198.51.100.1", "x_forwarded_for": "198.51.100.1"}, "198.51.100.1"),
        ("10.1.1.1", {"forwarded": "for=198.51.100.1", "x_forwarded_for": "203.0.113.9"}, "10.1.1.1"),
    ],
)
def test_the_client_is_the_last_one_that_no_trusted_proxy_is(
    connection: str, headers: dict[str, Any], client: str
) -> None:
    assert address(connection, **headers) == client


@pytest.mark.parametrize(
    ("connection", "headers", "scheme"),
    [
        ("10.1.1.1", {}, "http"),
        ("10.1.1.1", {"x_forwarded_proto": "https"}, "https"),
        ("10.1.1.1", {"forwarded": 'for=192.0.2.1;proto="HTTPS", for=10.2.2.2'}, "https"),
        ("10.1.1.1", {"x_forwarded_proto": "https, https", "forwarded": "proto=https"}, "https"),
        ("10.1.1.1", {"x_forwarded_proto": "https, http"}, "http"),
        ("10.1.1.1", {"x_forwarded_proto": ["https", "http"]}, "http"),
        ("10.1.1.1", {"x_forwarded_proto": "http", "forwarded": "proto=https"}, "http"),
        ("10.1.1.1", {"x_forwarded_proto": "gopher"}, "http"),
        ("192.0.2.7", {"x_forwarded_proto": "https"}, "http"),
    ],
)
def test_a_trusted_proxy_says_by_which_scheme_its_client_came(
    connection: str, headers: dict[str, Any], scheme: str
) -> None:
    pairs = [
        (name.replace("_", "-").encode(), value.encode())
        for name, values in headers.items()
        for value in ([values] if isinstance(values, str) else values)
    ]
    scope = {"client": (connection, 1), "headers": pairs, "scheme": "http"}
    assert ClientAddresses(PROXIES).scheme_of(scope) == scheme
    assert ClientAddresses().scheme_of(scope) == "http"


def test_a_page_behind_a_proxy_that_ends_tls_may_send_what_its_own_server_takes(echo_catalog: Any) -> None:
    app = create_app(echo_catalog, Authenticator({}), proxies=("127.0.0.1",))
    with serving(app) as url, httpx.Client(base_url=url) as http:
        own = {"host": "catalog.example", "origin": "https://catalog.example"}
        assert http.post("/v1/namespace/a/create", json={}, headers=own).status_code == 403
        proxied = own | {"x-forwarded-proto": "https"}
        assert http.post("/v1/namespace/a/create", json={}, headers=proxied).status_code == 200


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


def test_wrong_keys_are_bounded_by_address_and_forgotten_evenly() -> None:
    clock = Clock()
    keys = WrongKeys(3, clock)
    keys.succeeded("a", digest("old"))
    for _ in range(3):
        assert keys.wait("a", digest("x")) is None
        keys.failed("a")
    assert keys.wait("a", digest("x")) == 20
    assert keys.wait("a", digest("old")) is None  # right from there before
    assert keys.wait("b", digest("x")) is None
    clock.now += 20
    assert keys.wait("a", digest("x")) is None
    keys.failed("a")
    assert keys.wait("a", digest("x")) == 20
    clock.now += 3600
    for _ in range(3):
        assert keys.wait("a", digest("x")) is None
        keys.failed("a")
    assert keys.wait("a", digest("x")) == 20


def test_memory_and_addresses_of_one_client_are_bounded() -> None:
    keys = WrongKeys(1, Clock())
    for number in range(20_000):
        keys.failed(f"10.{number >> 8 & 255}.{number & 255}.{number >> 16}")
        keys.succeeded(f"{number}", digest("k"))
    assert len(keys._free_at) == len(keys._proven) == 10_000
    keys.failed("2001:db8::1")
    assert keys.wait("2001:db8::ffff", digest("x")) == 60
    assert WrongKeys(0).wait("a", digest("x")) is None


def test_a_key_that_is_in_use_stays_proven_whatever_others_use() -> None:
    keys = WrongKeys(1, Clock())
    for number in range(20_000):
        keys.succeeded(f"10.{number >> 8 & 255}.{number & 255}.0", digest("other"))
        keys.succeeded("2001:db8::1", digest("mine"))
    keys.failed("2001:db8::1")
    assert keys.wait("2001:db8::2", digest("mine")) is None  # another address of the same network
    assert keys.wait("2001:db8::1", digest("x")) == 60


def test_an_ipv4_address_is_the_same_however_it_is_written() -> None:
    keys = WrongKeys(1, Clock())
    keys.failed("::ffff:192.0.2.1")
    assert keys.wait("192.0.2.1", digest("x")) == 60


def test_no_bound_counts_nothing() -> None:
    keys = WrongKeys(0)
    keys.failed("a")
    assert keys.wait("a", digest("x")) is None


def test_an_address_that_tries_keys_is_refused_and_logged(echo_catalog: Any) -> None:
    stream = io.StringIO()
    app = create_app(
        echo_catalog,
        Authenticator({"a-key-of-ann": "ann", "a-key-of-bob": "bob"}, wrong_keys=5),
        access_log=AccessLog(stream=stream),
        proxies=("127.0.0.1",),
    )
    with serving(app) as url, httpx.Client(base_url=url) as http:

        def call(key: str, client: str = "192.0.2.1") -> httpx.Response:
            return http.get("/v1/table", headers={"x-api-key": key, "x-forwarded-for": client})

        assert call("a-key-of-ann").status_code == 200
        assert [call(f"wrong{n}").status_code for n in range(7)] == [401] * 5 + [429] * 2
        refused = call("a-key-of-bob")
        assert (refused.status_code, refused.json()["code"]) == (429, 21)
        assert 0 < int(refused.headers["retry-after"]) <= 12
        assert "x-lance-catalog-version" not in refused.headers
        assert call("a-key-of-ann").status_code == 200
        assert call("a-key-of-bob", "192.0.2.2").status_code == 200
    lines = stream.getvalue().splitlines()
    wrong = hashlib.sha256(b"wrong0").hexdigest()[:12]
    assert re.search(rf"status=401 ms=\S+ client=192\.0\.2\.1 key_sha256={wrong} ", "\n".join(lines))
    assert "client=192.0.2.2" in lines[-1]
    assert "wrong0" not in stream.getvalue()
