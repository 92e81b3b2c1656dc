"""Which bearer tokens a server accepts, whose they are, and what it says of the others."""

from __future__ import annotations

import hmac
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from joserfc import jws
from joserfc.jwk import ECKey, RSAKey

from namespace_server.outcomes import NOTHING_DONE
from tests.listener import listen
from tests.tokens.conftest import KEY, guarding, rules
from tests.tokens.issuer import EC, OTHER, RSA, Issuer, encoded, issuing, unsigned

NEW = ECKey.generate_key("P-256", {"kid": "new"})
INVALID = 'Bearer error="invalid_token"'


@pytest.mark.parametrize("key", [RSA, EC], ids=["RS256", "ES256"])
@pytest.mark.parametrize("kind", ["at+jwt", "JWT", "application/at+jwt", None])
def test_a_token_of_the_issuer_is_accepted(issuer: Issuer, guard: Any, key: Any, kind: str | None) -> None:
    server = guard(rules(issuer))
    token = issuer.token(key, {"typ": kind}, aud=["other", "lance"])

    found = server.whoami(token)

    assert found.pop("expires_at") == pytest.approx(time.time() + 3600, abs=60)
    assert found == {"principal": f"{issuer.url}#ann", "means": "token", "issuer": issuer.url, "roles": []}


@pytest.mark.parametrize(
    ("given", "principal", "roles"),
    [
        ({}, "{url}#ann", []),
        ({"principal_prefix": "corp:"}, "corp:ann", []),
        ({"principal_claim": "email", "roles_claim": "groups"}, "{url}#ann@example.org", ["a", "b"]),
        ({"roles_claim": ["realm_access", "roles"]}, "{url}#ann", ["c"]),
        ({"roles_claim": "scope"}, "{url}#ann", ["read", "write"]),
        ({"roles_claim": "groups", "role_prefix": "corp:"}, "{url}#ann", ["corp:a", "corp:b"]),
        ({"roles_claim": "nothing"}, "{url}#ann", []),
    ],
)
def test_claims_tell_principal_and_roles(
    issuer: Issuer, guard: Any, given: dict[str, Any], principal: str, roles: list[str]
) -> None:
    claims = {
        "email": "ann@example.org",
        "email_verified": True,
        "groups": ["b", "a"],
        "realm_access": {"roles": ["c"]},
        "scope": "read write",
    }
    found = guard(rules(issuer, **given)).whoami(issuer.token(**claims))
    assert (found["principal"], found["roles"]) == (principal.format(url=issuer.url), roles)


def test_groups_that_no_role_can_be_called_are_none(issuer: Issuer, guard: Any) -> None:
    """One of half a surrogate cannot be answered in JSON; nothing can be granted to any of these."""
    groups = ["", " ", "\ud800", "a\0b", "a\nb", "a" * 256, "admin", "Admin"]
    claims = json.dumps(issuer.claims(groups=groups)).encode()
    token = jws.serialize_compact({"alg": "RS256", "typ": "at+jwt", "kid": RSA.kid}, claims, RSA)
    assert guard(rules(issuer, roles_claim="groups")).whoami(token)["roles"] == ["Admin", "admin"]


def test_a_key_is_a_key_also_beside_tokens(issuer: Issuer, guard: Any) -> None:
    server = guard(rules(issuer))
    known = {"principal": "operator", "means": "api_key", "roles": []}
    assert server.whoami(KEY) == known
    assert server.http.get("/v1/whoami", headers={"x-api-key": KEY}).headers["cache-control"] == "no-store"
    both = {"x-api-key": KEY, "authorization": f"Bearer {issuer.token()}"}
    assert server.http.get("/v1/whoami", headers=both).json() == known
    as_key = server.http.get("/v1/whoami", headers={"x-api-key": issuer.token()})
    assert (as_key.status_code, as_key.json()["error"]) == (401, "credentials: the key is not known")


def test_a_request_is_of_the_principal_of_its_token(issuer: Issuer, guard: Any) -> None:
    server = guard(rules(issuer))
    for name in ("ann", "bob"):
        body = {"operations": [{"declare_table": {"id": [name]}}]}
        headers = {"authorization": f"Bearer {issuer.token(sub=name)}"}
        assert server.http.post("/v1/table/batch-commit", json=body, headers=headers).status_code == 200
        assert server.call(issuer.token(sub=name)).status_code == 200  # of the response cache, the second time

    history = server.call(KEY, "/v1/catalog/versions").json()["versions"]
    assert [each["batches"][0]["principal"] for each in history[:2]] == [f"{issuer.url}#bob", f"{issuer.url}#ann"]
    principals = [line["principal"] for line in logged(server)]
    assert principals[:4] == [f"{issuer.url}#{name}" for name in ("ann", "ann", "bob", "bob")]


def test_principals_of_two_issuers_differ(issuer: Issuer, guard: Any) -> None:
    with issuing() as second:
        second.keys = [OTHER]
        server = guard(rules(issuer), rules(second))
        names = {server.whoami(token)["principal"] for token in (issuer.token(), second.token(OTHER))}
        crossed = server.call(second.token(OTHER, iss=issuer.url))
    assert names == {f"{issuer.url}#ann", f"{second.url}#ann"}
    assert (crossed.status_code, reasons(server)) == (401, ["signature"])


def confused(issuer: Issuer) -> str:
    """Signed with the text of a public key as if it were a common secret."""
    head, claims, _ = unsigned({"alg": "HS256", "kid": "rsa"}, issuer.claims()).split(".")
    signature = hmac.digest(RSA.as_pem(private=False), f"{head}.{claims}".encode(), "sha256")
    return f"{head}.{claims}.{encoded(signature)}"


def altered(issuer: Issuer) -> str:
    head, _, signature = issuer.token().split(".")
    claims = unsigned({}, issuer.claims(sub="root")).split(".")[1]
    return f"{head}.{claims}.{signature}"


REFUSED: dict[str, tuple[str, Callable[[Issuer], str]]] = {
    "no algorithm": ("algorithm", lambda issuer: unsigned({"alg": "none"}, issuer.claims())),
    "no algorithm, in capitals": ("algorithm", lambda issuer: unsigned({"alg": "NONE"}, issuer.claims(), b"x")),
    "a public key as a secret": ("algorithm", confused),
    "an algorithm not allowed": ("algorithm", lambda issuer: issuer.token(header={"alg": "PS256"})),
    "the algorithm of another kind of key": ("key", lambda issuer: issuer.token(EC, {"kid": "rsa"})),
    "altered claims": ("signature", altered),
    "no signature": ("signature", lambda issuer: issuer.token().rpartition(".")[0] + "."),
    "another's key": ("signature", lambda issuer: issuer.token(OTHER)),
    "no kid": ("key", lambda issuer: issuer.token(header={"kid": None})),
    "an unknown kid": ("key", lambda issuer: issuer.token(NEW)),
    "another audience": ("audience", lambda issuer: issuer.token(aud="other")),
    "no audience": ("claims", lambda issuer: issuer.token(aud=None)),
    "another issuer": ("issuer", lambda issuer: issuer.token(iss="https://evil.example")),
    "an issuer much like it": ("issuer", lambda issuer: issuer.token(iss=issuer.url + "/")),
    "no issuer": ("form", lambda issuer: issuer.token(iss=None)),
    "issuers": ("issuer", lambda issuer: issuer.token(iss=[issuer.url])),
    "expired": ("expired", lambda issuer: issuer.token(exp=int(time.time()) - 3600)),
    "no end": ("claims", lambda issuer: issuer.token(exp=None)),
    "an end that is a text": ("claims", lambda issuer: issuer.token(exp="9999999999")),
    "an end beyond all years": ("claims", lambda issuer: issuer.token(exp=10**30)),
    "not yet": ("not yet valid", lambda issuer: issuer.token(nbf=int(time.time()) + 120)),
    "made in the future": ("not yet valid", lambda issuer: issuer.token(iat=int(time.time()) + 120)),
    "no principal": ("principal", lambda issuer: issuer.token(sub=None)),
    "an empty principal": ("principal", lambda issuer: issuer.token(sub="")),
    "a principal of two lines": ("principal", lambda issuer: issuer.token(sub="ann\nbob")),
    "a long principal": ("principal", lambda issuer: issuer.token(sub="a" * 255)),
    "a token of logout": ("type", lambda issuer: issuer.token(header={"typ": "logout+jwt"})),
    "a type that is none": ("form", lambda issuer: unsigned({"alg": "RS256", "typ": 7}, issuer.claims(), b"x")),
    "an extension": ("form", lambda issuer: unsigned({"alg": "RS256", "crit": ["b64"]}, issuer.claims(), b"x")),
    "17 KiB": ("size", lambda issuer: issuer.token(more="x" * 17_000)),
    "no JSON": ("form", lambda _: "e30.e30.e30"),
}  # fmt: skip


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """An issuer and a server for all refusals: they change neither."""
    with issuing() as issuer, guarding(tmp_path_factory.mktemp("guarded")) as start:
        yield issuer, start(rules(issuer))


@pytest.mark.parametrize("case", REFUSED)
def test_a_token_is_refused_and_only_the_log_says_why(one: tuple[Issuer, Any], case: str) -> None:
    issuer, server = one
    reason, make = REFUSED[case]
    assert server.call(issuer.token()).status_code == 200
    token = make(issuer)

    answer = server.call(token)

    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, INVALID)
    expected = {"error": "credentials: the token is not valid", "code": 16, "outcome": NOTHING_DONE}
    assert answer.json() == expected
    assert "x-lance-catalog-version" not in answer.headers
    assert reasons(server)[-1] == reason
    assert token not in server.log.getvalue()
    assert f'lance_namespace_refused_tokens_total{{reason="{reason}"}}' in server.metrics.exposition().decode()


def test_no_issuer_is_asked_that_is_not_configured(issuer: Issuer, guard: Any) -> None:
    with issuing() as other:
        server = guard(rules(issuer))
        assert server.call(issuer.token()).status_code == 200
        for token in (other.token(OTHER), issuer.token(iss=other.url)):
            assert server.call(token).status_code == 401
        assert (other.asked, reasons(server)) == ([], ["issuer", "issuer"])


def test_each_caller_is_told_of_itself_alone(issuer: Issuer, guard: Any) -> None:
    server = guard(rules(issuer))
    tokens = {name: issuer.token(sub=name) for name in ("ann", "bob", "cid")}

    def ask(number: int) -> bool:
        name = list(tokens)[number % 3]
        return bool(server.whoami(tokens[name])["principal"] == f"{issuer.url}#{name}")

    with ThreadPoolExecutor(6) as threads:
        assert all(threads.map(ask, range(60)))


@pytest.mark.parametrize("header", ["jku", "x5u", "jwk"])
def test_no_header_of_a_token_brings_its_own_key(issuer: Issuer, guard: Any, header: str) -> None:
    asked: list[str] = []
    with listen(lambda request: asked.append(request.path)) as url:
        server = guard(rules(issuer))
        evil = RSAKey.generate_key(2048, {"kid": "evil"})
        value = evil.as_dict(private=False) if header == "jwk" else f"{url}/keys"
        answers = [server.call(issuer.token(evil, {header: value})), server.call(issuer.token(evil, {header: value}))]
        assert server.call(issuer.token(header={header: value})).status_code == 200  # the issuer's key, all the same
    assert [answer.status_code for answer in answers] == [401, 401]
    assert asked == []


def test_the_end_counts_when_a_request_begins(issuer: Issuer, guard: Any) -> None:
    server = guard(rules(issuer))
    token = issuer.token(exp=int(server.wall()) + 5)
    assert server.call(token).status_code == 200

    def body() -> Any:
        yield b'{"operations": [{"declare_table": {"id": ["late"]}}]'
        while server.wall.asked == before:  # the head has not been looked at yet
            time.sleep(0.02)
        server.wall.seconds += 66
        yield b"}"

    before = server.wall.asked
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    with httpx.Client(base_url=server.http.base_url) as other:
        assert other.post("/v1/table/batch-commit", content=body(), headers=headers).status_code == 200
    assert server.call(token).status_code == 401
    assert reasons(server) == ["expired"]


def test_a_token_is_verified_once(issuer: Issuer, guard: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    server = guard(rules(issuer))
    token = issuer.token()
    assert server.call(token).status_code == 200
    monkeypatch.setattr("namespace_server.rest.access_tokens.validate_compact", None)
    assert server.call(token).status_code == 200
    assert server.call(issuer.token(sub="bob")).status_code == 401


def test_tokens_are_tried_as_keys_are(issuer: Issuer, guard: Any) -> None:
    server = guard(rules(issuer), wrong_keys=5)

    def call(token: str, client: str = "192.0.2.1") -> int:
        return int(server.call(token, **{"x-forwarded-for": client}).status_code)

    good, other = issuer.token(), issuer.token(sub="bob")
    assert call(good) == 200
    stale = issuer.token(exp=int(time.time()) - 3600)
    assert [call(stale) for _ in range(7)] == [401] * 7  # it was right: nobody guesses
    assert [call(issuer.token(OTHER, jti=str(number))) for number in range(7)] == [401] * 5 + [429] * 2
    assert (call(good), call(other), call(other, "192.0.2.2")) == (200, 429, 200)


def logged(server: Any) -> list[dict[str, Any]]:
    deadline = time.monotonic() + 10
    asked = server.http.get("/health/live").headers["x-request-id"]
    while asked not in server.log.getvalue() and time.monotonic() < deadline:
        time.sleep(0.02)
    return [json.loads(line) for line in server.log.getvalue().splitlines()]


def reasons(server: Any) -> list[str]:
    """Why tokens were refused, as the log has it."""
    return [line["error"].rpartition(": ")[2] for line in logged(server) if line.get("code") == 16]
