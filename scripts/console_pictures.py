"""Take the pictures of the console that the guide shows, of what `make demo KEEP=1` serves, into docs/assets/console.

python scripts/console_pictures.py http://127.0.0.1:PORT [KEY]
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Browser, Page, sync_playwright

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


def main(url: str, key: str) -> None:
    """Take all pictures."""
    chromium = subprocess.run(["scripts/chromium.sh"], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    PICTURES.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium.stdout.strip(), args=["--no-sandbox"])
        page = signed_in(browser, url, key)
        page.goto("/console/log")
        versions = {"january": version_of(page, "January"), "year": version_of(page, "March to December")}
        for name, path in PAGES.items():
            take(page, path.format(**versions), name)
        take(signed_in(browser, url, key, color_scheme="dark"), PAGES["home"], "home-dark")
        take(signed_in(browser, url, key, viewport=PHONE), TABLE, "table-phone")
        browser.close()


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


def take(page: Page, path: str, name: str) -> None:
    """Take a picture of a page, as far as its window shows it."""
    page.goto(f"/console{path}")
    page.screenshot(path=PICTURES / f"{name}.png")


if __name__ == "__main__":
    main(sys.argv[1].removesuffix("/console"), sys.argv[2] if len(sys.argv) > 2 else "ann-demo-key")
