"""The keys of an issuer: when they are read again, and what is answered while they cannot be."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from joserfc.jwk import ECKey

from namespace_server.rest import issuer_keys
from tests.certificates import issue
from tests.listener import listen
from tests.tokens.conftest import KEY, rules
from tests.tokens.issuer import EC, RSA, Issuer

NEW = ECKey.generate_key("P-256", {"kid": "new"})


def test_a_new_key_is_found_by_its_first_token(issuer: Issuer, guard: Any) -> None:
    server = guard(rules(issuer))
    old = issuer.token(RSA)
    assert server.call(old).status_code == 200
    assert issuer.looks == 1
    issuer.keys = [EC, NEW]
    server.monotonic.seconds += 10
    assert server.call(issuer.token(NEW)).status_code == 200
    assert issuer.looks == 2
    assert server.call(old).status_code == 401  # though it was verified before: its key is withdrawn


def test_unknown_keys_lead_to_one_look_in_five_seconds(issuer: Issuer, guard: Any) -> None:
    server = guard(rules(issuer))
    assert server.call(issuer.token()).status_code == 200
    server.monotonic.seconds += 10
    answers = [server.call(issuer.token(NEW, {"kid": f"flood-{number}"})) for number in range(40)]
    assert {answer.status_code for answer in answers} == {401}
    assert issuer.looks == 2
    server.monotonic.seconds += 5
    assert server.call(issuer.token(NEW)).status_code == 401
    assert issuer.looks == 3


def test_keys_are_read_again_beside_the_requests(issuer: Issuer, guard: Any) -> None:
    server = guard(rules(issuer))
    token = issuer.token(RSA)
    assert server.call(token).status_code == 200
    issuer.keys, issuer.delay = [EC], 1.0
    server.monotonic.seconds += 301
    began = time.monotonic()
    assert server.call(token).status_code == 200
    assert time.monotonic() - began < 1.0
    wait_for(lambda: server.call(token).status_code == 401)
    assert issuer.looks == 2


def test_keys_serve_for_an_hour_while_the_issuer_is_down(issuer: Issuer, guard: Any) -> None:
    server = guard(rules(issuer))
    known, second = issuer.token(), issuer.token(sub="bob")
    assert server.call(known).status_code == 200
    issuer.answers["/keys"] = (500, b"")
    server.monotonic.seconds += 3590
    assert server.call(known).status_code == 200
    assert server.call(second).status_code == 200
    wait_for(lambda: issuer.looks == 2)
    server.monotonic.seconds += 10
    unknown = server.call(issuer.token(NEW))
    assert unknown.status_code == 503
    server.monotonic.seconds += 10
    for token in (known, second):
        answer = server.call(token)
        assert (answer.status_code, answer.json()["code"], answer.json()["outcome"]) == (503, 17, "nothing_done")
        assert 1 <= int(answer.headers["retry-after"]) <= 5
    assert server.call(KEY).status_code == 200
    del issuer.answers["/keys"]
    server.monotonic.seconds += 5
    assert server.call(known).status_code == 200


WRONG: dict[str, Callable[[Issuer], tuple[str, bytes]]] = {
    "another issuer": lambda issuer: ("discovery", b'{"issuer":"https://evil.example","jwks_uri":"%b/keys"}'),
    "keys without TLS": lambda issuer: ("discovery", b'{"issuer":"%b","jwks_uri":"http://192.0.2.1/keys"}'),
    "no keys": lambda issuer: ("discovery", b'{"issuer":"%b"}'),
    "no JSON": lambda issuer: ("discovery", b"<html>%b"),
    "a list": lambda issuer: ("discovery", b'["%b"]'),
    "a secret": lambda issuer: ("/keys", b'{"keys":[{"kty":"oct","kid":"rsa","k":"c2VjcmV0"}]}'),
    "keys for ciphers": lambda issuer: ("/keys", b'{"keys":[{"kty":"RSA","use":"enc","n":"AQAB","e":"AQAB"}]}'),
    "keys that are none": lambda issuer: ("/keys", b'{"keys":{"a":1}}'),
    "a large answer": lambda issuer: ("/keys", b" " * (600 << 10)),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_an_issuer_answers_is_checked(
    issuer: Issuer, guard: Any, case: str, caplog: pytest.LogCaptureFixture
) -> None:
    place, body = WRONG[case](issuer)
    path = "/.well-known/openid-configuration" if place == "discovery" else place
    issuer.answers[path] = (200, body.replace(b"%b", issuer.url.encode()))
    server = guard(rules(issuer))
    assert server.call(issuer.token()).status_code == 503
    assert server.call(KEY).status_code == 200
    assert f"issuer {issuer.url}: its keys cannot be read" in caplog.text


def test_no_redirect_is_followed(issuer: Issuer, guard: Any) -> None:
    issuer.answers["/.well-known/openid-configuration"] = (302, b"")
    assert guard(rules(issuer)).call(issuer.token()).status_code == 503
    assert issuer.looks == 0


def test_a_slow_issuer_delays_its_own_tokens_alone(issuer: Issuer, guard: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(issuer_keys, "_PATIENCE", 2.0)
    issuer.delay = 5.0
    server = guard(rules(issuer))
    answers: list[int] = []
    waiting = [
        threading.Thread(target=lambda: answers.append(server.call(issuer.token()).status_code)) for _ in range(5)
    ]
    for thread in waiting:
        thread.start()
    durations = []
    while not answers:
        began = time.monotonic()
        assert server.call(KEY).status_code == 200
        durations.append(time.monotonic() - began)
    for thread in waiting:
        thread.join()
    assert len(durations) > 10
    assert sorted(durations)[len(durations) // 2] < 0.2
    assert set(answers) == {503}
    assert len(issuer.asked) == 1  # all shared one look


def test_the_authorities_of_an_issuer_are_those_of_its_settings(tmp_path: Any, guard: Any) -> None:
    files = issue(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(files.certificate, files.key)
    issuer = Issuer()
    with listen(issuer, context) as url:
        issuer.url = url
        assert guard(rules(issuer, ca=files.authority)).call(issuer.token()).status_code == 200
        assert guard(rules(issuer), root="second").call(issuer.token()).status_code == 503


def test_a_secret_key_is_no_key_of_an_issuer() -> None:
    listed = [{"kty": "oct", "kid": "secret", "k": "c2VjcmV0"}, RSA.as_dict(private=False)]
    assert [key.kid for key in issuer_keys._parse(json.dumps({"keys": listed}).encode()).keys] == ["rsa"]


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
