"""Tokens of any content are refused, and never an error of the server."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc.jws import JWSRegistry

from namespace_server.rest.access_tokens import AccessTokens
from namespace_server.rest.issuer_keys import _parse
from namespace_server.rest.principals import KeysNeeded, TokenRefused
from tests.tokens.conftest import rules
from tests.tokens.issuer import EC, RSA, Issuer, encoded, unsigned


@pytest.fixture(scope="module")
def judge() -> Any:
    """An issuer that is not asked, since its keys are known. No server runs: its threads would draw random numbers."""
    issuer = Issuer("http://127.0.0.1:1")
    tokens = AccessTokens([rules(issuer)])
    keys = tokens._issuers[issuer.url].keys
    published = json.dumps({"keys": [key.as_dict(private=False) for key in (RSA, EC)]})
    keys._keys, keys._read_at, keys._next_look = _parse(published.encode()), keys._clock(), float("inf")
    return issuer, tokens


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=5), each, max_size=3),
    max_leaves=5,
)


@given(
    header=st.dictionaries(st.sampled_from(["alg", "kid", "typ", "crit", "b64", "jwk", "x5c"]), JSON, max_size=4),
    claims=st.dictionaries(st.sampled_from(["iss", "sub", "aud", "exp", "nbf", "iat", "jti"]), JSON, max_size=5),
    signed=st.booleans(),
)
def test_no_token_is_an_error_of_the_server(
    judge: tuple[Issuer, AccessTokens], header: dict[str, Any], claims: dict[str, Any], signed: bool
) -> None:
    issuer, tokens = judge
    head = {"alg": "RS256", "kid": "rsa", **header}
    body = json.dumps({**issuer.claims(), **claims}).encode()
    token = unsigned(head, {}, b"x").encode()
    if signed and head["alg"] == "RS256":
        segments = [unsigned(head, {}).split(".")[0], encoded(body)]
        signature = JWSRegistry.algorithms["RS256"].sign(".".join(segments).encode(), RSA)
        token = ".".join([*segments, encoded(signature)]).encode()
    try:
        assert tokens.judge(token, token).principal.startswith(f"{issuer.url}#")
    except TokenRefused:
        return
    except KeysNeeded:
        pytest.fail("the keys were read just now")
    assert isinstance(claims.get("sub", "ann"), str)


@given(st.binary(max_size=200))
def test_no_bytes_are_an_error_of_the_server(judge: tuple[Issuer, AccessTokens], data: bytes) -> None:
    with pytest.raises(TokenRefused):
        judge[1].judge(data, data)
