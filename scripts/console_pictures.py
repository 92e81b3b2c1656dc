"""Take pictures of the console: those that the guide shows, into docs/assets/console; or all screens, to be looked at.

python scripts/console_pictures.py URL [--key KEY] [--all DIRECTORY]

The guide shows what `make demo KEEP=1` serves. With `--all` any server will do: each screen that links lead to is taken
in light and dark, in windows of 390 and 1440 pixels, as long as it is.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from collections import Counter, deque
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Browser, Page, sync_playwright

from namespace_console.screens import SCREENS

REPOSITORY: Final = Path(__file__).parents[1]
PICTURES: Final = REPOSITORY / "docs/assets/console"
TABLE: Final = "/tables/nyc%24flight"
PAGES: Final = {
    "home": "",
    "batch": "/log/{year}",
    "diff": "/diff?before={january}&after={year}",
    "rejected": "/refused",
    "rows": "/tables/nyc%24airport/rows?order=alt&descending=1&limit=25",
}
"""Pages by the names of their pictures, with the catalog versions of two batches of the demo."""
DESK: Final = {"width": 1280, "height": 800}
PHONE: Final = {"width": 390, "height": 844}
WIDTHS: Final = (390, 1440)
LONGEST: Final = 4_000
"""Pixels of a picture from its top on."""
OF_A_SCREEN: Final = 2
"""Pages of a screen that are taken."""
BESIDES: Final = ("/sign-in", "/search?text=a", "/nowhere", "/log/999999999", "/diff?before=x", "/tables/no.table")
"""Pages that no link leads to."""
NO_PAGES: Final = frozenset({"value", "sign-out", "events-news"})
_SCREENS: Final = {
    screen.name: re.compile("/console" + re.sub(r"\{\w+\}", "[^/?]+", screen.path))
    for screen in SCREENS
    if screen.name not in NO_PAGES
}


def main() -> None:
    """Take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("url")
    parser.add_argument("--key", default="ann-demo-key")
    parser.add_argument("--all", type=Path, metavar="DIRECTORY", help="take all screens into this directory")
    options = parser.parse_args()
    url = options.url.removesuffix("/console")
    chromium = subprocess.run(["scripts/chromium.sh"], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium.stdout.strip(), args=["--no-sandbox"])
        if options.all is None:
            take_those_of_the_guide(browser, url, options.key)
        else:
            take_all(browser, url, options.key, options.all)
        browser.close()


def take_those_of_the_guide(browser: Browser, url: str, key: str) -> None:
    """Take the pictures of the guide, as far as a window shows them."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    page = signed_in(browser, url, key)
    page.goto("/console/log")
    versions = {"january": version_of(page, "January"), "year": version_of(page, "March to December")}
    for name, path in PAGES.items():
        take(page, path.format(**versions), PICTURES / f"{name}.png")
    take(signed_in(browser, url, key, color_scheme="dark"), PAGES["home"], PICTURES / "home-dark.png")
    take(signed_in(browser, url, key, viewport=PHONE), TABLE, PICTURES / "table-phone.png")


def take_all(browser: Browser, url: str, key: str, directory: Path) -> None:
    """Take some pages of each screen, in each scheme and width."""
    directory.mkdir(parents=True, exist_ok=True)
    pages = dict(found_pages(signed_in(browser, url, key)))
    for scheme, width in product(("light", "dark"), WIDTHS):
        page = signed_in(browser, url, key, color_scheme=scheme, viewport={"width": width, "height": 900})
        for name, path in pages.items():
            take(page, path, directory / f"{name}-{scheme}-{width}.png", whole=True)
    print(f"{len(pages)} pages, {4 * len(pages)} pictures in {directory}")


def found_pages(page: Page) -> Iterator[tuple[str, str]]:
    """Pages that links lead to from Home on, some of each screen, by names; and those of `BESIDES`."""
    waiting, seen, counts = deque(["", *BESIDES]), set[str](), Counter[str]()
    while waiting:
        path = waiting.popleft()
        name = screen_of(path)
        if path in seen or counts[name] == OF_A_SCREEN:
            continue
        seen.add(path)
        counts[name] += 1
        yield f"{name}-{counts[name]}", path
        page.goto(f"/console{path}")
        links = page.evaluate("() => [...document.links].map(link => link.pathname + link.search)")
        waiting.extend(link.removeprefix("/console") for link in links if link.startswith("/console"))


def screen_of(path: str) -> str:
    """The name of the screen that has a page, `none` if none that is a page has."""
    place = path.partition("?")[0]
    return next((name for name, form in _SCREENS.items() if form.fullmatch(f"/console{place}")), "none")


def signed_in(browser: Browser, url: str, key: str, **options: Any) -> Page:
    """A tab of a browser of its own."""
    page = browser.new_page(**{"base_url": url, "viewport": DESK, "color_scheme": "light", **options})
    page.goto("/console/sign-in")
    page.get_by_label("Key or token").fill(key)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Sign out").wait_for()
    return page


def version_of(log: Page, message: str) -> str:
    """The catalog version of the batch of a message."""
    return log.get_by_role("row").filter(has_text=message).get_by_role("link").first.inner_text()


def take(page: Page, path: str, file: Path, *, whole: bool = False) -> None:
    """Take a picture of a page, as far as its window shows it, or as long as it is."""
    page.goto(f"/console{path}")
    if not whole:
        page.screenshot(path=file)
        return
    width, height = page.evaluate("() => [window.innerWidth, document.documentElement.scrollHeight]")
    page.screenshot(path=file, full_page=True, clip={"x": 0, "y": 0, "width": width, "height": min(height, LONGEST)})


if __name__ == "__main__":
    main()
