"""The console in a real browser."""

from __future__ import annotations

from urllib.parse import quote

import pyarrow as pa
from playwright.sync_api import Browser, Page, expect

from namespace_console.screens import SCREENS
from tests.console.browsing import PHONE, chromium, faults, sign_in, tab
from tests.console.conftest import KEY_OF, Site, Visitor

__all__ = ["chromium"]

ALL, ODD = "/tables/shown%24all", f"/tables/shown%24{quote('<i>odd & ')}%22name"
ADDRESSES: dict[str, tuple[str, ...]] = {
    "home": ("", "?at=2"),
    "namespaces": ("/namespaces",),
    "namespace": ("/namespaces/shown",),
    "table": (ALL, f"{ALL}?at=8"),
    "fragments": (f"{ALL}/fragments",),
    "rows": (f"{ALL}/rows", f"{ALL}/rows?filter=id+%3E", f"{ALL}/rows?like=3&vector=vector", f"{ODD}/rows"),
    "value": (),  # is no page
    "search": ("/search", "/search?text=ord"),
    "log": ("/log", "/log?table=shop.orders"),
    "batch": ("/log/5",),
    "winner": (),  # leads to the page of a batch
    "diff": ("/diff", "/diff?before=1&after=6"),
    "row-diff": ("/diff/shop%24orders?before=3&after=6",),
    "events": ("/events",),
    "events-news": (),  # a part of a page
    "refused": ("/refused",),
    "drops": ("/drops",),
    "kept": ("/kept",),
    "grants": ("/grants",),
    "undrop": (),  # is looked at when a table is dropped
    "tag": (f"{ALL}/tag?version=1",),
    "drop": (f"{ALL}/drop",),
    "maintenance": (f"{ALL}/maintenance",),
    "pin": ("/pin",),
    "unpin": (),
    "sign-in": ("/sign-in",),
    "sign-out": (),  # is no page
}
"""Pages of each screen."""
PAGES = [page for pages in ADDRESSES.values() for page in pages] + ["/nowhere"]


def test_each_screen_is_looked_at() -> None:
    assert set(ADDRESSES) == {screen.name for screen in SCREENS}


def faults_of_all(page: Page) -> dict[str, list[str]]:
    found = {}
    for path in PAGES:
        page.goto(f"/console{path}")
        if told := faults(page):
            found[path] = told
    return found


def test_every_page_is_accessible_and_complains_of_nothing(chromium: Browser, site: Site, ann: Visitor) -> None:
    with tab(chromium, site.url, "bob") as page:
        assert faults_of_all(page) == {}


def test_a_visitor_signs_in_and_out_by_keyboard(chromium: Browser, site: Site) -> None:
    with tab(chromium, site.url) as page:
        page.goto("/console")
        expect(page).to_have_title("Sign in · Lance catalog")
        assert page.url.endswith("/console/sign-in?next=%2Fconsole")
        page.keyboard.type(KEY_OF["ann"])  # the field has the focus
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("Home")
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("main")).to_be_focused()
        cookies = page.context.cookies()
        assert {(cookie["httpOnly"], cookie["sameSite"], cookie["path"]) for cookie in cookies} == {
            (True, "Strict", "/console")
        }
        page.get_by_role("button", name="Sign out").click()
        expect(page).to_have_title("Sign in · Lance catalog")
        page.goto("/console")
        expect(page).to_have_title("Sign in · Lance catalog")


def test_the_navigation_is_one_line_on_a_phone(chromium: Browser, site: Site, ann: Visitor) -> None:
    """It scrolls, to the screen that the visitor is at and by keyboard to the others, and says where a page belongs."""
    with tab(chromium, site.url, "ann", PHONE) as page:
        screens = page.get_by_role("navigation", name="Screens")
        for path, label in (("/grants", "Grants and keys"), (f"{ALL}/rows", "Tables"), ("/log/5", "Log")):
            page.goto(f"/console{path}")
            current = screens.locator("[aria-current]")
            expect(current).to_have_text(label)
            expect(current).to_be_in_viewport(ratio=1)
            assert len(set(screens.locator("li").evaluate_all("all => all.map(each => each.offsetTop)"))) == 1
        last = screens.get_by_role("link", name="Grants and keys")
        expect(last).not_to_be_in_viewport()
        for _ in range(len(SCREENS)):
            page.keyboard.press("Tab")
            if last.evaluate("link => link === document.activeElement"):
                break
        expect(last).to_be_focused()
        expect(last).to_be_in_viewport(ratio=1)


def test_no_script_is_needed(chromium: Browser, site: Site) -> None:
    with tab(chromium, site.url, java_script_enabled=False) as page:
        sign_in(page, "ann")
        page.goto("/console")
        expect(page.get_by_role("heading", level=1)).to_have_text("Home")


def test_a_dropped_table_is_brought_back(chromium: Browser, site: Site, ann: Visitor, fresh_name: str) -> None:
    """From a search to the table, its rows, a drop that says what it reaches, and the way back. Changes ask first."""
    name = ("shown", fresh_name)
    site.owner.create(name, pa.table({"id": [1, 2], "what": ["red", "blue"]}))
    with tab(chromium, site.url, "ann") as page:
        page.goto("/console/search")
        page.get_by_role("searchbox").press_sequentially(fresh_name)
        page.get_by_role("link", name=fresh_name).first.click()  # without a button: the list follows the words
        page.get_by_role("link", name="Rows", exact=True).click()
        page.get_by_label("Filter").fill("what = 'blue'")
        page.get_by_role("button", name="Show").click()
        expect(page.get_by_role("region", name="Rows").get_by_role("row")).to_have_count(2)
        page.get_by_label("Where it is").get_by_role("link", name=fresh_name).click()
        page.get_by_role("link", name="Drop the table").click()
        assert name in site.owner.tables(("shown",))
        page.get_by_role("button", name="Drop").click()
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        assert name not in site.owner.tables(("shown",))
        page.goto("/console/drops")
        page.get_by_role("row").filter(has_text=fresh_name).get_by_role("link", name="Bring back").click()
        page.get_by_role("button", name="Bring").click()
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        assert site.owner.show(name).rows == 2


def test_events_appear_as_they_come(chromium: Browser, site: Site, ann: Visitor, fresh_name: str) -> None:
    with tab(chromium, site.url, "ann") as page:
        page.goto("/console/log")
        page.get_by_role("navigation").get_by_role("link", name="Events").click()
        site.owner.create(("shown", fresh_name), pa.table({"id": [1]}), message=f"news of {fresh_name}")
        expect(page.get_by_role("main")).to_contain_text(f"news of {fresh_name}")
        page.get_by_role("link", name=fresh_name).first.click()
        expect(page.get_by_role("heading", level=1)).to_contain_text(fresh_name)


def test_a_sound_is_sought_in(chromium: Browser, site: Site, ann: Visitor) -> None:
    seek = """sound => new Promise((resolve, reject) => {
        sound.onloadedmetadata = () => { sound.currentTime = 7; };
        sound.onseeked = () => resolve([sound.duration, sound.currentTime, sound.seekable.end(0)]);
        sound.onerror = () => reject(sound.error.message);
        sound.load();
    })"""
    with tab(chromium, site.url, "ann") as page:
        page.goto(f"/console{ALL}/rows?filter=id+%3D+0")
        sound = page.locator("audio").first
        sound.evaluate("sound => { sound.preload = 'metadata'; }")
        assert sound.evaluate(seek) == [10, 7, 10]


def test_a_page_elsewhere_can_do_nothing(chromium: Browser, site: Site) -> None:
    """Its form is refused, whatever it holds, and the visitor's cookie is not sent along."""
    form = f'<form method="post" action="{site.url}/console/sign-out"><button>Win</button></form>'
    with tab(chromium, site.url, "ann") as page:
        page.route("http://elsewhere.example/", lambda route: route.fulfill(body=form, content_type="text/html"))
        page.goto("http://elsewhere.example/")
        with page.expect_response(f"{site.url}/console/sign-out") as refused:
            page.get_by_role("button").click()
        assert refused.value.status == 403
        assert "cookie" not in refused.value.request.all_headers()
        page.goto("/console")
        expect(page.get_by_role("button", name="Sign out")).to_be_visible()
