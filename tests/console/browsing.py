"""Chromium, and what a page must hold to in it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, sync_playwright

from tests.console.conftest import KEY_OF

REPOSITORY = Path(__file__).parents[2]
DESK, PHONE = (1440, 900), (390, 844)
"""Width and height of a window, in CSS pixels."""
STANDARDS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A browser. Not for a session: its event loop would be in the way of tests that have one."""
    found = subprocess.run(["scripts/chromium.sh"], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if found.returncode:
        pytest.skip(found.stderr)
    with sync_playwright() as playwright:
        # As root, in a container, it has no sandbox of its own.
        browser = playwright.chromium.launch(executable_path=found.stdout.strip(), args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def tab(
    chromium: Browser,
    url: str,
    principal: str | None = None,
    size: tuple[int, int] = DESK,
    scheme: Any = "light",
    **options: Any,
) -> Iterator[Page]:
    """A tab of a browser of its own, signed in. Whatever a page complains of, or a script asks, fails the test."""
    context = chromium.new_context(
        base_url=url, viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, **options
    )
    context.set_default_timeout(20_000)
    complaints: list[str] = []

    def dialog(asked: Dialog) -> None:
        complaints.append(f"dialog: {asked.message}")
        asked.dismiss()

    def message(said: ConsoleMessage) -> None:
        if said.type in {"error", "warning"} and "the server responded with a status of" not in said.text:
            complaints.append(f"{said.type}: {said.text} at {said.location}")

    page = context.new_page()
    page.on("dialog", dialog)
    page.on("console", message)
    page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
    try:
        if principal is not None:
            sign_in(page, principal)
        yield page
        page.evaluate("() => 0")  # what was said before has come
        assert not complaints, complaints
    finally:
        context.close()


def sign_in(page: Page, principal: str) -> None:
    page.goto("/console/sign-in")
    page.get_by_label("Key or token").fill(KEY_OF[principal])
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Sign out").wait_for()


def faults(page: Page) -> list[str]:
    """What axe finds on a page; and whether it is wider than its window: what is wider is to scroll by itself."""
    found = Axe().run(page, options={"runOnly": {"type": "tag", "values": STANDARDS}})
    told = [
        f"{rule['id']}: {node['target']} {node['html'][:200]}"
        for rule in found.response["violations"]
        for node in rule["nodes"]
    ]
    width, window = page.evaluate("() => [document.documentElement.scrollWidth, window.innerWidth]")
    return told + ([f"{width} pixels wide in a window of {window}"] if width > window else [])
