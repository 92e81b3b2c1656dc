"""The commands of the page about events are typed, in their order, beside a server."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

from tests.cli.commands import invoke
from tests.documentation.pages import REPOSITORY, commands
from tests.events.following import followed

PAGE = REPOSITORY / "docs" / "guide" / "events.md"
WRITTEN_URL = "http://127.0.0.1:2333"


def test_the_commands_of_the_page_run(tmp_path: Path) -> None:
    shown = {}
    with followed(tmp_path / "root") as server:
        server.namespace("a")
        server.namespace("b")
        for written in commands(PAGE):
            line = written.replace(WRITTEN_URL, server.url)
            if line.startswith("lance-namespace "):
                done = invoke(*shlex.split(line)[1:])
                assert (done.exit_code, done.stderr) == (0, ""), line
                shown[written.replace(f" --url {WRITTEN_URL}", "")] = done.stdout
            else:
                done = subprocess.run(["bash", "-c", line], check=True, capture_output=True, text=True)
                shown[written] = done.stdout
    assert shown["lance-namespace events --since 0"].splitlines()[1].endswith("create namespace b")
    events = [
        json.loads(line) for line in shown["lance-namespace events --since 0 --kind committed --json"].splitlines()
    ]
    assert [event["data"]["catalog_version"] for event in events] == [1, 2]
    assert "mailer: is at catalog version 1" in shown["lance-namespace advance-cursor mailer 1"]
    assert shown["lance-namespace cursors"].splitlines()[1].split()[:3] == ["mailer", "1", "2"]
    assert "create namespace b" in shown["lance-namespace events --cursor mailer"]
    first, waited, stream = (text for line, text in shown.items() if line.startswith("curl"))
    assert json.loads(first)["last"] == 2
    assert json.loads(waited)["events"]
    assert "\nid: 1\ndata: {" in stream
