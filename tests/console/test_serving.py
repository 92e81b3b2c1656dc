"""The console as `lance-namespace serve` serves it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.server.servers import ServerProcess

pytestmark = pytest.mark.slow
WITHOUT = """
import sys
sys.modules["jinja2"] = None
from namespace_server.__main__ import main
sys.argv = ["lance-namespace", "serve", "--root", sys.argv[1], "--port", "0"]
main()
"""


def test_a_server_has_a_console_unless_a_setting_turns_it_off(tmp_path: Path) -> None:
    root = tmp_path / "catalog"
    server = ServerProcess(root, log=tmp_path / "log", keys={"a key of ann, long enough": "ann"})
    try:
        with httpx.Client(base_url=server.url) as http:
            assert http.get("/console").headers["location"] == "/console/sign-in?next=%2Fconsole"
            page = http.get("/console/sign-in").text
            form = page.partition('name="form" value="')[2][:64]
            fields = {"form": form, "means": "key", "credential": "a key of ann, long enough"}
            assert http.post("/console/sign-in", data=fields).status_code == 303
            assert "Latest batches" in http.get("/console").text
    finally:
        server.stop()
    off = ServerProcess(root, log=tmp_path / "log", environment={"LANCE_NAMESPACE_CONSOLE": "false"})
    try:
        answer = httpx.get(f"{off.url}/console")
        assert (answer.status_code, answer.json()["code"]) == (404, httpx.get(f"{off.url}/other").json()["code"])
    finally:
        off.stop()


def test_a_console_that_is_asked_for_and_not_installed_is_refused_by_name(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, str(tmp_path / "catalog")],
        env={"LANCE_NAMESPACE_CONSOLE": "true"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert "console: jinja2 is missing; install lance-namespace-server[console]" in done.stderr
