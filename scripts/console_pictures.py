"""Take the pictures of the console that the guide shows, of what `make demo KEEP=1` serves, into docs/assets/console.

python scripts/console_pictures.py http://127.0.0.1:PORT [KEY]
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Browser, sync_playwright

REPOSITORY: Final = Path(__file__).parents[1]
PICTURES: Final = REPOSITORY / "docs/assets/console"
ROWS: Final = "/tables/nyc%24airport/rows"
PAGES: Final = {
    "home": "",
    "log": "/log",
    "batch": "/log/8",
    "diff": "/diff?before=4&after=8",
    "rejected": "/refused",
    "events": "/events",
    "table": "/tables/nyc%24flight",
    "search": "/search?text=air",
    "drop": "/tables/nyc%24flight/drop",
    "grants": "/grants",
    "rows": f"{ROWS}?order=alt&descending=1&limit=25",
}
"""Pages by the names of their pictures."""
DESK: Final = {"width": 1280, "height": 800}
PHONE: Final = {"width": 390, "height": 844}


def main(url: str, key: str) -> None:
    """Take all pictures."""
    chromium = subprocess.run(["scripts/chromium.sh"], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    PICTURES.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium.stdout.strip(), args=["--no-sandbox"])
        for name, path in PAGES.items():
            take(browser, url, key, path, PICTURES / f"{name}.png")
        take(browser, url, key, "", PICTURES / "home-dark.png", color_scheme="dark")
        take(browser, url, key, PAGES["table"], PICTURES / "table-phone.png", viewport=PHONE)
        browser.close()


def take(browser: Browser, url: str, key: str, path: str, picture: Path, **options: Any) -> None:
    """Sign in and take a picture of one page, as far as its window shows it."""
    context = browser.new_context(**{"base_url": url, "viewport": DESK, "color_scheme": "light", **options})
    page = context.new_page()
    page.goto("/console/sign-in")
    page.get_by_label("Key or token").fill(key)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Sign out").wait_for()
    page.goto(f"/console{path}")
    page.screenshot(path=picture)
    context.close()


if __name__ == "__main__":
    main(sys.argv[1].removesuffix("/console"), sys.argv[2] if len(sys.argv) > 2 else "ann-demo-key")
