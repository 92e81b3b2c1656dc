"""All screens in a browser, light and dark, on a phone and a desk: with texts that attack pages, and with much of all.

Each page is axe's to judge, is no wider than its window, and complains of nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from urllib.parse import quote

import pyarrow as pa
import pytest
from playwright.sync_api import Browser, Page, expect

from namespace_client import Catalog, CommitRejected
from namespace_console.screens import SCREENS
from scripts.console_pictures import NO_PAGES, found_pages
from tests.console.browsing import DESK, PHONE, chromium, faults, tab
from tests.console.conftest import HOSTILE, KEY_OF, PNG, Site, Visitor, open_site, tone
from tests.console.test_browser import PAGES

__all__ = ["chromium"]

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

SCHEMES = pytest.mark.parametrize("scheme", ["light", "dark"])
SIZES = pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
ODD = '<b onclick="alert(1)">\u05d0\u05d1 & '
"""What names begin with."""
MANY = 110
"""More than a page of a list has."""


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site with many of all that pages list, under names that attack them."""
    with open_site(tmp_path_factory.mktemp("crowded")) as site, ExitStack() as jobs:
        owner = site.owner
        _make_tables(owner)
        _make_history(owner, site)
        for number in range(25):
            owner.pin(f"{'pin' * 30}-{number}", reason=HOSTILE[:400])
            owner.advance_cursor(f"{'cursor' * 15}-{number}", 1 + number)
            jobs.enter_context(owner.intent([("n", f"{ODD}wide")] * 1, reason=HOSTILE[:400]))
        owner.enable_grants(principals=["ann"], message=HOSTILE)
        owner.grant(["read", "write"], catalog=True, principal="bob")
        for number in range(MANY):
            owner.grant("read", table=("n", f"{ODD}{number:03}"), role=f"{ODD}{number}")
        yield site


def _make_tables(owner: Catalog) -> None:
    owner.create_namespace("n", properties={f"{ODD}{number}": HOSTILE for number in range(20)})
    for number in range(MANY):
        owner.create_namespace(f"{ODD}{number:03}")
    blob = {"lance-encoding:blob": "true"}
    wide = [pa.field(f"{ODD}{number} {'column' * 12}", pa.string(), metadata={ODD: HOSTILE}) for number in range(520)]
    mixed = [
        pa.field("vector", pa.list_(pa.float32(), 4)),
        pa.field("nested", pa.list_(pa.struct([(ODD, pa.string())]))),
        pa.field("sound", pa.large_binary(), metadata=blob),
        pa.field("picture", pa.binary()),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("number", pa.int64()),
    ]
    row = {field.name: HOSTILE for field in wide} | {
        "vector": [1.0, -2.0, 3.0, 0.5],
        "nested": [{ODD: HOSTILE}],
        "sound": tone(1),
        "picture": PNG,
        "at": 0,
        "number": -(2**62),
    }
    rows = pa.Table.from_pylist([row] * 3, schema=pa.schema([*mixed, *wide]))
    with owner.begin(message=HOSTILE) as tx:
        tx.create(["n", f"{ODD}wide"], rows, properties={f"{ODD}{number}": HOSTILE for number in range(20)})
    with owner.begin(message=f"{MANY} tables") as tx:
        for number in range(MANY):
            tx.create(["n", f"{ODD}{number:03}"], pa.table({"id": [number]}))


def _make_history(owner: Catalog, site: Site) -> None:
    wide, table = ("n", f"{ODD}wide"), ("n", f"{ODD}000")
    for number in range(MANY):
        owner.append(table, pa.table({"id": [number]}), message=HOSTILE if number % 2 else None)
    for number in range(25):
        owner.create_tag(table, f"{'tag' * 20}-{number}", version=1 + number)
        owner.create_branch(table, f"{'branch' * 10}-{number}")
    with owner.begin() as tx:
        tx.create_index(table, "id", "BTREE")
    owner.append(table, pa.table({"id": [1]}))
    owner.delete(wide, "number > 0")
    for number in range(MANY):
        owner.create(("n", f"{ODD}dropped {number}"), pa.table({"id": [1]}))
        owner.drop(("n", f"{ODD}dropped {number}"))
    for number in range(25):
        with suppress(CommitRejected), owner.begin(message=f"{HOSTILE} {number}") as late:
            late.delete(table, f"id = {number}")
            owner.delete(table, f"id = {number}")


def faults_of_all(page: Page, paths: set[str]) -> dict[str, list[str]]:
    found = {}
    for path in sorted(paths):
        page.goto(f"/console{path}")
        if told := faults(page):
            found[path] = told
    return found


@SCHEMES
@SIZES
@pytest.mark.parametrize("principal", KEY_OF)
def test_texts_that_attack_pages(
    chromium: Browser, site: Site, ann: Visitor, scheme: str, size: tuple[int, int], principal: str
) -> None:
    with tab(chromium, site.url, principal, size, scheme) as page:
        assert faults_of_all(page, {*PAGES, *dict(found_pages(page)).values()}) == {}


@SCHEMES
@SIZES
def test_much_of_everything(chromium: Browser, crowded: Site, scheme: str, size: tuple[int, int]) -> None:
    with tab(chromium, crowded.url, "ann", size, scheme) as page:
        pages = dict(found_pages(page))
        missed = {screen.name for screen in SCREENS} - {name.rpartition("-")[0] for name in pages}
        assert missed - NO_PAGES <= {"row-diff"}
        last = crowded.owner.log(1, table=("n", f"{ODD}000"))[0].version
        row_diff = f"/diff/n%24{quote(ODD)}000?before={last - 1}&after={last}"
        assert faults_of_all(page, {*pages.values(), row_diff}) == {}


@SCHEMES
@SIZES
def test_refused_attempts_of_many(chromium: Browser, crowded: Site, scheme: str, size: tuple[int, int]) -> None:
    """Those that only an auditor sees; and the page of a visitor who sees nothing."""
    with tab(chromium, crowded.url, "bob", size, scheme) as page:
        page.goto("/console/refused")
        expect(page.get_by_role("link", name="the batch that won").first).to_be_visible()
        assert faults_of_all(page, {"/refused", "/refused?decision=any", "/grants"}) == {}
    with tab(chromium, crowded.url, "eve", size, scheme) as page:
        assert faults_of_all(page, {"", "/namespaces", "/log", "/refused", "/drops", "/kept", "/grants"}) == {}


@SCHEMES
@SIZES
def test_pages_without_a_sign_in(chromium: Browser, site: Site, scheme: str, size: tuple[int, int]) -> None:
    with tab(chromium, site.url, None, size, scheme) as page:
        assert faults_of_all(page, {"/sign-in", "/log", "/nowhere"}) == {}
        page.goto("/console/sign-in")
        page.get_by_label("Key or token").fill("a key of nobody, long enough")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_be_visible()
        assert faults(page) == []


@SCHEMES
@SIZES
def test_a_form_that_is_refused(
    chromium: Browser, site: Site, ann: Visitor, scheme: str, size: tuple[int, int]
) -> None:
    with tab(chromium, site.url, "ann", size, scheme) as page:
        page.goto("/console/tables/shown%24all/tag?version=1")
        page.get_by_label("Name of the tag").fill(HOSTILE)
        page.get_by_role("button", name="Tag it").click()
        expect(page.get_by_role("region", name="Why")).to_be_visible()
        assert faults(page) == []
