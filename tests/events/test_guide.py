"""The commands of the page about events are typed, in their order, beside a server."""

from __future__ import annotations

import json
import shlex
import subprocess
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from namespace_client import Catalog
from tests.cli.commands import invoke
from tests.documentation.pages import REPOSITORY, commands
from tests.events.following import followed
from tests.events.test_deliveries import KEY, Inbox

PAGE = REPOSITORY / "docs" / "guide" / "events.md"
WRITTEN_URL = "http://127.0.0.1:2333"
WRITTEN_HOOK = "https://hooks.example.com/lance"


def _fill(url: str) -> None:
    """What the Python of the page has made by then."""
    with Catalog.connect(url) as catalog:
        catalog.ensure_namespace("events_guide")
        if "events_guide.stock" not in map(str, catalog.tables("events_guide")):
            catalog.create("events_guide.stock", pa.table({"id": [1, 2], "pieces": [5, 9]}), stable_row_ids=True)


def test_the_commands_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = {}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    (tmp_path / "webhook-secret").write_text(KEY)
    with followed(tmp_path / "root") as server, closing(Inbox(tmp_path / "inbox")) as inbox:
        server.namespace("a")
        server.namespace("b")
        for written in commands(PAGE):
            line = written.replace(WRITTEN_URL, server.url).replace(WRITTEN_HOOK, f"{inbox.url} --allow-private")
            if "changes" in line and not (tmp_path / "stock.parquet").exists():
                _fill(server.url)
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
    changed = shown["lance-namespace changes events_guide.stock --since 0"]
    assert [line.split()[:4] for line in changed.splitlines()[1:]] == [
        ["1", "5", "0", "insert"],
        ["2", "9", "1", "insert"],
    ]
    assert pq.read_table(tmp_path / "stock.parquet").column("pieces").to_pylist() == [5, 9]
    assert pa.ipc.open_stream((tmp_path / "stock.arrows").read_bytes()).read_all().num_rows == 2
    assert inbox.received() == []  # the cursor was new
    first, waited, stream = (text for line, text in shown.items() if line.startswith("curl") and "changes" not in line)
    assert json.loads(first)["last"] == 2
    assert json.loads(waited)["events"]
    assert "\nid: 1\ndata: {" in stream
