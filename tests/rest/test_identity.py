"""Who is let in."""

from __future__ import annotations

import hashlib
from typing import Any

import httpx
import pytest

from namespace_server.rest.identity import Authenticator

HASHED = "sha256:" + hashlib.sha256(b"second").hexdigest()
KEYS = {"first": "ann", HASHED: "bob"}


@pytest.mark.parametrize(
    ("headers", "principal"),
    [
        ({"x-api-key": "first"}, "ann"),
        ({"x-api-key": "second"}, "bob"),
        ({"authorization": "Bearer first"}, "ann"),
        ({"authorization": "bearer second"}, "bob"),
        ({"x-api-key": "first", "authorization": "Bearer wrong"}, "ann"),
    ],
)
def test_a_known_key_names_its_principal(
    serve: Any, echo_catalog: Any, headers: dict[str, str], principal: str
) -> None:
    with httpx.Client(base_url=serve(echo_catalog, keys=KEYS).url) as http:
        assert http.post("/v1/table/t/declare", json={}, headers=headers).json()["principal"] == principal


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-api-key": ""},
        {"x-api-key": "wrong"},
        {"x-api-key": HASHED},
        {"x-api-key": HASHED.removeprefix("sha256:")},
        {"x-api-key": "wrong", "authorization": "Bearer first"},
        {"authorization": "first"},
        {"authorization": "Basic first"},
        {"authorization": "Bearer"},
    ],
)
def test_everybody_else_is_turned_away(serve: Any, echo_catalog: Any, headers: dict[str, str]) -> None:
    with httpx.Client(base_url=serve(echo_catalog, keys=KEYS).url) as http:
        for path in ("/v1/table/t/declare", "/v1/table/t/describe", "/v1/table/t/query"):
            response = http.post(path, json={"identity": {"api_key": "first"}}, headers=headers)
            assert (response.status_code, response.json()["code"]) == (401, 16)
            assert response.headers["www-authenticate"] == "Bearer"
    assert echo_catalog.groups == []


def test_the_probes_need_no_key(serve: Any, echo_catalog: Any) -> None:
    with httpx.Client(base_url=serve(echo_catalog, keys=KEYS).url) as http:
        assert http.get("/health/live").status_code == http.get("/health/ready").status_code == 200


def test_without_keys_everybody_is_nobody(serve: Any, echo_catalog: Any) -> None:
    with httpx.Client(base_url=serve(echo_catalog).url) as http:
        answer = http.post("/v1/table/t/declare", json={}, headers={"x-api-key": "first"}).json()
        assert answer["principal"] is None


@pytest.mark.parametrize("key", ["sha256:", "sha256:abc", "sha256:" + "0" * 62, "sha256:" + "x" * 64])
def test_a_digest_is_one(key: str) -> None:
    with pytest.raises(ValueError, match=r"hex"):
        Authenticator({key: "ann"})
