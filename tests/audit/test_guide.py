"""The commands and the program of the page about audit run, beside a server that records."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pyarrow as pa

from namespace_client import Catalog
from tests.audit.lines import written
from tests.audit.served import BOB, audited
from tests.cli.commands import invoke
from tests.documentation.pages import REPOSITORY, blocks, commands
from tests.waiting import until

PAGE = REPOSITORY / "docs" / "guide" / "audit.md"
FOLLOWS = "lance-namespace events --follow --cursor audit --json >> changes.jsonl"
"""Runs until it is ended."""


def test_what_the_page_shows_runs(tmp_path: Path) -> None:
    with audited(tmp_path) as server:
        with Catalog.connect(server.url, api_key="key-of-ann") as ann:
            ann.create_namespace("shop")
            ann.create("shop.orders", pa.table({"id": [1]}))
        server.post("/v1/table/shop$orders/create_index", {"column": "none", "index_type": "BTREE"})
        server.http.get("/v1/catalog", headers={"x-api-key": "a-wrong-key"})
        until(lambda: len(written(server.directory)) == 2)
        shown = {}
        for line in commands(PAGE):
            if line == FOLLOWS or not line:
                continue
            typed = shlex.split(line, comments=True)
            typed = [str(server.directory) if word == "/var/log/lance-audit" else word for word in typed]
            where = (
                {}
                if "--audit-log" in typed
                else {"LANCE_NAMESPACE_URL": server.url, "LANCE_NAMESPACE_API_KEY": "key-of-bob"}
            )
            done = invoke(*typed[1:], **where)
            assert (done.exit_code, done.stderr) == (0, ""), line
            shown[" ".join(typed[1:])] = done.stdout
        script = tmp_path / "page.py"
        [block] = blocks(PAGE, "python")
        script.write_text(block.replace("http://127.0.0.1:2333", server.url).replace("secret-key", BOB["x-api-key"]))
        environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
        printed = subprocess.run(
            [sys.executable, str(script)], check=True, capture_output=True, text=True, env=environment
        ).stdout
    assert FOLLOWS in commands(PAGE)
    assert "create shop.orders" in shown["log --table shop.orders"]
    assert "127.0.0.1" in shown["log --origin"]
    assert "authenticate on server" in shown["log --refused"]
    assert "create_table_index" in shown["log --refused shop.orders"]
    assert "authenticate" in shown[f"log --refused --audit-log {server.directory}"]
    assert "127.0.0.1" in printed
    assert "describe_catalog" in printed
