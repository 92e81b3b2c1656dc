"""The console's frame: sign-in, forms, headers, errors, and what it asks the server for."""

from __future__ import annotations

import io
import json
import threading
import time
from typing import Any

import httpx
import pytest

from namespace_console.application import THREADS, WAITING, Console
from namespace_console.visits import Page, Screen, Visit
from namespace_server.app import create_app
from namespace_server.observability.access_log import AccessLog
from namespace_server.rest.identity import Authenticator
from tests.console.conftest import KEY_OF, SECRETS, Site, Visitor, text_of
from tests.running import serving

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
KEYS = {"a key of ann, long enough": "ann"}


def test_a_visitor_signs_in_with_a_key_and_out_again(site: Site) -> None:
    visitor = site.visitor()
    first = visitor.get("")
    assert (first.status_code, first.headers["location"]) == (303, "/console/sign-in?next=%2Fconsole")
    refused = visitor.sign_in("a wrong key of nobody at all")
    assert refused.status_code == 401
    assert "lance-console-session" not in str(refused.headers)
    signed = visitor.sign_in(KEY_OF["ann"], next="/console?at=3")
    assert (signed.status_code, signed.headers["location"]) == (303, "/console?at=3")
    [session] = [each for each in signed.headers.get_list("set-cookie") if "session" in each]
    assert all(part in session for part in ("HttpOnly", "SameSite=Strict", "Path=/console"))
    assert "Secure" not in session
    assert "Max-Age" not in session
    home = visitor.get("")
    assert home.status_code == 200
    assert "ann" in home.text
    out = visitor.post("/sign-out", {})
    assert (out.status_code, out.headers["location"]) == (303, "/console/sign-in")
    assert visitor.get("").status_code == 303


def test_a_bearer_token_is_sent_as_one(site: Site) -> None:
    """The server has no issuers: a token is refused, by its own words."""
    refused = site.visitor().sign_in("abc.def.ghi", means="token")
    assert refused.status_code == 401
    assert "token" in text_of(refused.text).lower()


@pytest.mark.parametrize("credential", ["", " ", "with\nline", "kéy"])
def test_what_cannot_be_a_header_is_no_credential(site: Site, credential: str) -> None:
    assert site.visitor().sign_in(credential).status_code == 400


def test_a_token_that_no_cookie_holds_is_refused_by_name(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("namespace_console.sessions.MOST", 10)
    refused = site.visitor().sign_in(KEY_OF["ann"])
    assert refused.status_code == 400
    assert "Expected at most 10 bytes" in text_of(refused.text)


@pytest.mark.parametrize(
    "address",
    [
        "https://elsewhere.example/",
        "//elsewhere.example",
        "/console//x\\y",
        "/v1/table",
        "/consoles",
        "javascript:1",
        "",
    ],
)
def test_sign_in_leads_nowhere_else(site: Site, address: str) -> None:
    signed = site.visitor().sign_in(KEY_OF["ann"], next=address)
    assert (signed.status_code, signed.headers["location"]) == (303, "/console")


def test_a_server_without_keys_asks_for_none(echo_catalog: Any) -> None:
    app = create_app(echo_catalog, Authenticator({}))
    app.mount("console", Console([Screen("home", "", _plain), *_sign_in_screens()]))
    with serving(app) as url, httpx.Client(base_url=url) as http:
        visitor = Visitor(http)
        assert "shown" in visitor.get("").text
        refused = visitor.sign_in("any key at all")
        assert refused.status_code == 400
        assert "knows no callers" in text_of(refused.text)


def test_cookies_of_a_server_behind_tls_are_for_tls_alone(echo_catalog: Any) -> None:
    app = create_app(echo_catalog, Authenticator(KEYS), proxies=("127.0.0.1",))
    app.mount("console", Console())
    proxied = {"x-forwarded-proto": "https", "host": "catalog.example"}
    with serving(app) as url, httpx.Client(base_url=url, headers=proxied) as http:
        page = http.get("/console/sign-in")
        [nonce] = page.headers.get_list("set-cookie")
        assert nonce.startswith("__Secure-lance-console-form=")
        assert nonce.endswith("; Secure")
        form = page.text.partition('name="form" value="')[2][:64]
        fields = {"form": form, "means": "key", "credential": "a key of ann, long enough"}
        own = {"cookie": nonce.partition(";")[0], "origin": "https://catalog.example", "sec-fetch-site": "same-origin"}
        signed = http.post("/console/sign-in", data=fields, headers=own)
        assert signed.status_code == 303
        assert all(
            "; Secure" in each and each.startswith("__Secure-") for each in signed.headers.get_list("set-cookie")
        )


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 303),
        ({"origin": "URL", "sec-fetch-site": "same-origin"}, 303),
        ({"origin": "https://elsewhere.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "none"}, 403),
        ({"content-type": "text/plain"}, 400),
    ],
)
def test_only_pages_of_the_console_send_its_forms(site: Site, headers: dict[str, str], status: int) -> None:
    visitor = site.visitor("ann")
    given = {name: value.replace("URL", site.url) for name, value in headers.items()}
    assert visitor.post("/sign-out", {}, **given).status_code == status
    assert visitor.get("").status_code == (303 if status == 303 else 200)


def test_a_page_that_may_call_the_api_may_still_send_no_form(echo_catalog: Any) -> None:
    """Pages of `allowed_origins` call the API with credentials of their own. The console's session is not theirs."""
    allowed = "https://allowed.example"
    app = create_app(echo_catalog, Authenticator(KEYS), origins=[allowed])
    app.mount("console", Console())
    with serving(app) as url, httpx.Client(base_url=url) as http:
        visitor = Visitor(http)
        assert visitor.sign_in("a key of ann, long enough").status_code == 303
        assert http.get("/v1/whoami", headers={"origin": allowed}).status_code == 401
        assert visitor.post("/sign-out", {}, origin=allowed).status_code == 403
        assert visitor.post("/sign-out", {}, origin=url).status_code == 303


@pytest.mark.parametrize("token", ["", "0" * 64, "of another", "of before"])
def test_a_form_without_the_token_of_its_session_changes_nothing(site: Site, token: str) -> None:
    visitor, other = site.visitor("ann"), site.visitor("bob")
    before = site.visitor()
    tokens = {"of another": other.token(), "of before": before.token()}
    before.sign_in(KEY_OF["ann"])
    sender = before if token == "of before" else visitor
    answer = sender.http.post("/console/sign-out", data={"form": tokens.get(token, token)})
    assert answer.status_code == 403
    assert sender.get("").status_code == 200


def test_reading_changes_nothing_and_pages_take_no_other_methods(site: Site) -> None:
    visitor = site.visitor("ann")
    assert visitor.get("/sign-out").status_code == 200
    assert visitor.get("").status_code == 200
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        answer = visitor.http.request(method, "/console", data={"form": visitor.token()})
        assert answer.status_code == 405
    head = visitor.http.head("/console")
    assert (head.status_code, head.content) == (200, b"")


def test_a_form_is_bounded(site: Site) -> None:
    visitor = site.visitor("ann")
    assert visitor.post("/sign-out", {"x": "y" * 70_000}).status_code == 413
    assert visitor.post("/sign-out", {f"x{number}": "" for number in range(300)}).status_code == 400


def test_a_link_of_another_site_keeps_the_session(site: Site) -> None:
    """A browser sends no strict cookie with it, and takes no cookie from it; the page opens itself once more."""
    visitor = site.visitor()
    answer = visitor.get("?at=2", **{"sec-fetch-site": "cross-site"})
    assert answer.status_code == 200
    assert 'content="0; url=/console?at=2"' in answer.text
    assert "session" not in answer.headers.get("set-cookie", "")


def test_every_answer_has_the_headers_that_keep_others_out(site: Site) -> None:
    visitor = site.visitor("ann")
    page = visitor.get("")
    static = page.text.partition('rel="stylesheet" href="')[2].partition('"')[0]
    answers = [
        page,
        visitor.get("/no/such"),
        visitor.get("/sign-in"),
        visitor.http.get(static),
        visitor.post("/sign-out", {}),
    ]
    for answer in answers:
        assert answer.headers["content-security-policy"] == CSP
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    assert page.headers["cache-control"] == "no-store"
    assert "immutable" in answers[3].headers["cache-control"]
    assert visitor.http.get("/console/static/console.0000000000000000.css").status_code == 404
    for refused in ("<script>", " style=", " onclick=", "javascript:"):
        assert refused not in page.text


def test_addresses_that_are_none_are_a_page_too(site: Site) -> None:
    visitor = site.visitor("ann")
    for path in ("/no/such", "/%3Cscript%3E", "/sign-in/x"):
        answer = visitor.get(path)
        assert answer.status_code == 404
        assert "<script>" not in answer.text
        assert "Sign out" in answer.text
    for query in ("?at=x", "?at=-1", "?at=1e9", "?at=" + "9" * 30):
        assert visitor.get(query).status_code == 400
    assert visitor.get("?at=99999999").status_code in {200, 400, 404}


def test_no_credential_is_in_a_page_an_address_or_the_access_log(site: Site, echo_catalog: Any) -> None:
    visitor = site.visitor("ann")
    for path in ("", "/sign-in", "/no/such"):
        answer = visitor.get(path)
        assert not SECRETS.search(answer.text)
    log = io.StringIO()
    app = create_app(echo_catalog, Authenticator(KEYS), access_log=AccessLog("json", stream=log))
    app.mount("console", Console())
    with serving(app) as url, httpx.Client(base_url=url) as http:
        other = Visitor(http)
        assert other.sign_in("a key of ann, long enough", next="/console").status_code == 303
        other.sign_in("a key of nobody, long enough")
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    assert not SECRETS.search(log.getvalue())
    assert "nobody" not in log.getvalue()
    asked = [line for line in lines if line["route"] == "/v1/whoami"]
    pages = [line for line in lines if line["route"] == "/console/sign-in"]
    assert {line["request_id"] for line in asked} <= {line["request_id"] for line in pages}
    assert {line["client"] for line in asked} == {"127.0.0.1"}


def test_a_fault_of_a_screen_is_a_page_and_more_than_can_wait_is_refused(echo_catalog: Any) -> None:
    release = threading.Event()

    def slow(_visit: Visit) -> Page:
        release.wait(60)
        return _plain(_visit)

    def fault(_visit: Visit) -> Page:
        raise ValueError("a fault")

    screens = [Screen("home", "", _plain), Screen("slow", "/slow", slow), Screen("fault", "/fault", fault)]
    app = create_app(echo_catalog, Authenticator({}))
    app.mount("console", Console([*screens, *_sign_in_screens()]))
    with serving(app) as url, httpx.Client(base_url=url, timeout=60) as http:
        assert http.get("/console/fault").status_code == 500
        answers: list[int] = []

        def visit() -> None:
            answers.append(httpx.get(f"{url}/console/slow", timeout=60).status_code)

        threads = [threading.Thread(target=visit) for _ in range(THREADS + WAITING + 1)]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + 30
        while not answers and time.monotonic() < deadline:
            assert http.get("/health/live").status_code == 200
        assert answers == [503]
        release.set()
        for thread in threads:
            thread.join()
        assert answers == [503] + [200] * (THREADS + WAITING)
        assert http.get("/console").status_code == 200


def _plain(_visit: Visit) -> Page:
    return Page("again.html", "shown", {"address": "/console"})


def _sign_in_screens() -> list[Screen]:
    from namespace_console.screens import SCREENS

    return [screen for screen in SCREENS if screen.name in {"sign-in", "sign-out"}]
