"""The screens: what they show to whom, in how many requests, and without scripts."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from html import unescape

import httpx
import pyarrow as pa
import pytest

from namespace_client import Catalog, CommitConflict
from namespace_client.audit import RefusedAttempt
from namespace_console.application import Console
from namespace_server.app import create_app
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.observability.metrics.measures import ServerMetrics
from namespace_server.rest.identity import Authenticator
from tests.console.conftest import HOSTILE, KEY_OF, KEYS, SECRETS, Site, Visitor, text_of
from tests.running import serving

PAGES = {
    "": 7,  # up to three of them for the latest lines of the log
    "/log": 3,  # the third one of more versions
    "/log?table=shop.orders": 2,
    "/log/5": 1,
    "/diff": 4,
    "/diff?before=1&after=6": 15,
    "/diff/shop%24orders?before=3&after=6": 8,
    "/events": 3,  # the third one of more versions
    "/events/after/2": 3,  # the third one of more versions
    "/refused": 1,
}
"""The pages, and how many requests of the API each makes at most."""


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_whole_without_scripts_and_asks_little(site: Site, path: str) -> None:
    visitor = site.visitor("bob")
    site.asked.clear()
    answer = visitor.get(path)
    assert answer.status_code == 200, text_of(answer.text)
    assert 0 < len(site.asked) <= PAGES[path], site.asked
    reads = ("GET /v1/", "GET /metrics", "POST /v1/table/", "POST /v1/catalog/can")
    assert all(asked.startswith(reads) for asked in site.asked), site.asked
    assert not SECRETS.search(answer.text)
    if path != "/events/after/2":
        assert answer.text.count("<h1>") == 1
        assert '<html lang="en">' in answer.text


@pytest.mark.parametrize("path", PAGES)
def test_texts_of_others_are_shown_as_text(site: Site, path: str, fresh_name: str) -> None:
    site.owner.create(("shop", fresh_name), pa.table({"id": [1]}), message=HOSTILE)  # the newest has it
    page = site.visitor("bob").get(path).text
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "\u202e" not in page
    assert "\u200b" not in page
    assert "\u0007" not in page
    assert "x" * 1_000 not in re.sub(r'title="[^"]*"', "", page)
    if path in {"", "/log", "/events"}:
        assert unescape(page).count("<script>alert(1)</script>") >= 1
        assert "\\u202eevil\\x07\\u200b" in page or "…" in page


@pytest.mark.parametrize("path", PAGES)
def test_a_page_that_needs_a_sign_in_leads_to_it(site: Site, path: str) -> None:
    answer = site.visitor().get(path)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/console/sign-in?next=")


def test_home_tells_what_is_there_and_what_was_done(site: Site, fresh_name: str) -> None:
    site.owner.create(("shop", fresh_name), pa.table({"id": [1]}), message=f"the first {fresh_name}")
    shown = site.visitor("ann").text("")
    assert f"the first {fresh_name}" in shown
    assert re.search(r"catalog version \d+ · link to this version", shown)
    assert "Table versions kept by the catalog" in shown


def test_the_log_has_a_line_for_each_batch_with_its_rows(site: Site) -> None:
    visitor = site.visitor("ann")
    shown = visitor.text("/log")
    assert re.search(r"ann the first orders shop\.orders, shop\.people .*\+4", shown)
    assert re.search(r"ann fewer orders shop\.orders Delete -1", shown)
    assert shown.index("fewer orders") < shown.index("the first orders")
    people = visitor.text("/log?table=shop.people")
    assert "the first orders" in people
    assert "fewer orders" not in people
    assert "No batches" in visitor.text("/log?principal=nobody")
    assert "No batches" in visitor.text("/log?since=2990-01-01T00:00")
    assert "the first orders" in visitor.text("/log?since=2020-01-01T00:00&until=2990-01-01")
    assert "No batches" in visitor.text("/log?until=2020-01-01T00:00")
    for wrong in ("since=yesterday", "since=9999-12-31T23:59-12:00", "until=0001-01-01T00:00%2B14:00"):
        assert visitor.get(f"/log?{wrong}").status_code == 400


def test_the_log_asks_for_few_versions_first(site: Site) -> None:
    visitor = site.visitor("ann")
    for path in ("", "/log", "/events"):
        site.asked.clear()
        assert visitor.get(path).status_code == 200
        limits = [int(found) for each in site.asked for found in re.findall(r"/versions\?.*limit=(\d+)", each)]
        assert limits[0] == 3
        assert limits[1:] in ([], [47], [7])  # as many as there are lines left, if each version has one


def test_the_log_goes_on_below_a_version(site: Site) -> None:
    visitor = site.visitor("ann")
    at, before = (each.version for each in site.owner.log(2))
    pinned = visitor.get(f"/log?at={before}")
    assert f"/console/log/{before}?at={before}" in pinned.text
    assert f"/console/log/{at}?" not in pinned.text
    assert "pinned" in text_of(pinned.text)
    older = visitor.text("/log?below=3")
    assert "Newest" in older
    assert "fewer orders" not in older


@pytest.mark.parametrize("path", ["", "/log", "/events", "/drops", "/search", "/namespaces", "/pin"])
def test_a_page_of_a_version_that_is_not_there_is_none(site: Site, path: str) -> None:
    absent = site.owner.access.state().version + 1_000
    answer = site.visitor("ann").get(f"{path}?at={absent}")
    assert answer.status_code == 404
    assert f"catalog version {absent}" in text_of(answer.text)


def test_names_in_the_log_lead_to_what_they_are(site: Site, fresh_name: str) -> None:
    visitor = site.visitor("ann")
    site.owner.create_namespace((fresh_name,))
    version = site.owner.access.state().version
    site.owner.create((fresh_name, "t"), pa.table({"id": [1]}))
    for page in ("", "/log", f"/log/{version}", "/events", f"/events/after/{version - 1}"):
        shown = visitor.get(page).text
        links = set(re.findall(rf'"/console(/[^"]*{fresh_name}(?:%24t)?)"', shown))
        assert f"/namespaces/{fresh_name}" in links
        assert {visitor.get(link).status_code for link in links} == {200}


def test_a_version_is_shown_with_its_operations(site: Site) -> None:
    visitor = site.visitor("ann")
    version = next(each.version for each in site.owner.log(50) if each.message == "fewer orders")
    shown = visitor.text(f"/log/{version}")
    assert "shop.orders main 2 → 3 -1" in shown
    assert "commit_transaction shop.orders Delete 2 → 3 -1" in shown
    assert visitor.get("/log/999999").status_code in {400, 404}
    assert visitor.get("/log/0").status_code == 404
    assert visitor.get("/log/x").status_code == 400
    auditor = site.visitor("bob").text(f"/log/{version}?origin=1")
    assert "client 127.0.0.1" in auditor
    assert visitor.get(f"/log/{version}?origin=1").status_code == 403


def test_differences_of_two_versions(site: Site) -> None:
    visitor = site.visitor("ann")
    shown = visitor.text("/diff?before=1&after=6")
    assert "added shop.orders none → " in shown
    assert "added hidden.salaries none → 1" in shown
    rows = visitor.text("/diff/shop%24orders?before=3&after=6")
    assert "3 rows before 3 rows after +0 difference" in rows
    assert re.search(r"Only before id what 1 a Only after id what 4 <script>alert\(1\)</script>", rows)
    assert visitor.get("/diff/shop%24orders?before=1&after=6").status_code == 404
    assert visitor.get("/diff/shop%24orders?before=1").status_code == 400
    assert visitor.get("/diff?before=5&after=2").status_code == 400
    assert visitor.get("/diff?before=1&after=99999").status_code in {400, 404}


def test_a_rejected_batch_is_shown_with_what_won(site: Site, fresh_name: str) -> None:
    """Of two transactions on one version the second one loses: expected, found, and the batch that won."""
    table = ["shop", fresh_name]
    with site.owner.begin(message="a table to fight about") as tx:
        tx.create(table, pa.table({"id": [1, 2]}))
    with pytest.raises(CommitConflict):
        _lose(site, table)
    auditor = site.visitor("bob")
    deadline = time.monotonic() + 30
    while fresh_name not in (page := auditor.get("/refused").text):
        assert time.monotonic() < deadline
    shown = text_of(page)
    assert re.search(rf"commit_transaction of shop\.{fresh_name}\s?: built on version 1, found 2", shown)
    [address] = set(re.findall(rf'href="/console(/winner/shop%24{fresh_name}/2)"', page))
    found = auditor.get(address)
    assert found.status_code == 303
    assert "the winner" in auditor.text(found.headers["location"].removeprefix("/console"))
    assert auditor.get(f"/winner/shop%24{fresh_name}/99").status_code == 404
    assert site.visitor("ann").get("/refused").status_code == 403
    assert auditor.get("/refused?decision=other").status_code == 400
    assert "Nothing was refused" in auditor.text("/refused?name=no.such.table")


def test_events_are_followed_from_the_version_that_is_shown(site: Site, fresh_name: str) -> None:
    visitor = site.visitor("ann")
    site.owner.append(("shop", "people"), pa.table({"id": [7]}), message=f"before {fresh_name}")
    page = visitor.get("/events").text
    [address] = re.findall(r'hx-get="/console(/events/after/\d+)"', page)
    assert f"before {fresh_name}" in text_of(page)
    quiet = visitor.get(address, **{"hx-request": "true"})
    assert quiet.status_code == 200
    assert len(re.findall("<li", quiet.text)) == 1
    with site.owner.begin(message=f"news of {fresh_name}") as tx:
        tx.create(["shop", fresh_name], pa.table({"id": [1]}))
    news = visitor.get(address, **{"hx-request": "true"}).text
    assert f"news of {fresh_name}" in news
    assert re.findall(r'hx-get="/console(/events/after/\d+)"', news) != [address]
    assert 'hx-get="' not in visitor.get("/events?paused=1").text
    assert 'hx-get="' not in visitor.get("/events?at=3").text
    ended = site.visitor().get(address, **{"hx-request": "true"})
    assert ended.status_code == 401
    assert "<html" not in ended.text
    assert "hx-get" not in ended.text


def test_news_of_many_are_the_newest_and_how_many_others(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("namespace_console.screens.events.MOST_LINES", 2)
    version = newest(site)
    news = site.visitor("ann").get("/events/after/0", **{"hx-request": "true"}).text
    shown = [int(found.replace(",", "")) for found in re.findall(r'<a href="/console/log/\d+">([\d,]+)</a>', news)]
    assert shown == [version, version - 1]
    assert re.search(r"and more before these", news)
    assert f"/events/after/{version}" in news


def newest(site: Site) -> int:
    return site.owner.access.state().version


def _lose(site: Site, table: list[str]) -> None:
    with site.owner.begin(message="the loser") as late:
        late.delete(table, "id = 1")
        with site.owner.begin(message="the winner") as first:
            first.delete(table, "id = 1")


@pytest.fixture(scope="module")
def granted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Visitor, int]]:
    """Eve, who may read one table of two, on a catalog with grants in force; and its version."""
    root = tmp_path_factory.mktemp("history") / "catalog"
    app = create_app(
        DirectoryNamespace(root=str(root), durability="none"),
        Authenticator(KEYS, wrong_keys=0),
        metrics=ServerMetrics(),
    )
    app.mount("console", Console())
    with serving(app) as url, Catalog.connect(url, api_key=KEY_OF["ann"]) as owner:
        owner.create_namespace(["shop"])
        owner.enable_grants(principals=["ann"])
        for name in ("orders", "secret"):
            with owner.begin(message=f"message of {name}") as tx:
                tx.create(["shop", name], pa.table({"id": [1]}))
        owner.grant("read", principal="eve", table=["shop", "orders"])
        with httpx.Client(base_url=url, verify=False, timeout=30) as http:
            visitor = Visitor(http)
            assert visitor.sign_in(KEY_OF["eve"]).status_code == 303
            yield visitor, owner.access.state().version


def test_what_is_hidden_is_in_no_page_of_the_history(granted: tuple[Visitor, int]) -> None:
    eve, version = granted
    for path in ("", "/log", "/events", f"/diff?before=1&after={version}", "/events/after/1"):
        page = eve.get(path)
        assert page.status_code == 200
        assert "secret" not in page.text, path
    assert "versions to promote" not in eve.text("")  # the numbers of the server are for those who see all
    hidden, absent = eve.get("/diff/shop%24secret?before=4&after=4"), eve.get("/diff/shop%24absent?before=4&after=4")
    assert hidden.status_code == absent.status_code == 404
    assert hidden.text.replace("secret", "") == absent.text.replace("absent", "")
    answers = [eve.get(f"/log/{number}") for number in range(1, version + 1)]
    assert not any("secret" in answer.text for answer in answers)
    assert 404 in {answer.status_code for answer in answers}


def test_what_was_denied_is_told_by_the_grant_that_it_lacks() -> None:
    """Not as a batch that lost against another one, though each denial is a failure of its operation, too."""
    row = {
        "time": "2026-11-29T14:53:17.959Z",
        "event": "refused_attempt",
        "decision": "denied",
        "code": 15,
        "authorizations": [
            {"privilege": "write", "allowed": False, "kind": "table", "id": ["a", "b"], "reason": "no grant of write"}
        ],
        "failures": [{"operation_index": 0, "operation": "commit", "id": ["a", "b"], "kind": "incompatible"}],
    }
    attempt = RefusedAttempt.of(row)
    assert attempt.advice == "Ask an owner of the object for a grant that gives the privilege."
    assert attempt.reasons == ("write on a.b: no grant of write",)
