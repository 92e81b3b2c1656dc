"""The page about grants runs against a server with its keys: each command and program, in order."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from namespace_server.access.subjects import Privilege
from tests.cli.commands import invoke
from tests.documentation.pages import REPOSITORY, blocks
from tests.server.servers import ServerProcess

PAGE = REPOSITORY / "docs" / "guide" / "grants.md"
WRITTEN_URL = "http://127.0.0.1:2333"
WRITTEN_ROOT = "./grants-guide"
_BLOCK = re.compile(r"```(sh|python)\n(.*?)```", re.DOTALL)


def test_the_steps_of_the_page_run(tmp_path: Path) -> None:
    keys = re.search(r"^export LANCE_NAMESPACE_API_KEYS='(.*)'$", PAGE.read_text(), re.MULTILINE)
    assert keys is not None
    root = tmp_path / "catalog"
    environment: dict[str, str] = {}
    shown: dict[str, str] = {}
    program = ""
    with ServerProcess(root, log=tmp_path / "log", environment={"LANCE_NAMESPACE_API_KEYS": keys[1]}) as server:
        for language, text in _BLOCK.findall(PAGE.read_text()):
            written = text.replace(WRITTEN_URL, server.url).replace(WRITTEN_ROOT, str(root))
            if language == "python":
                program += written
                continue
            if program:  # the blocks of one program follow each other
                _run(program, tmp_path)
                program = ""
            for line in written.splitlines():
                words = shlex.split(line.split(" || ")[0])
                if words[0] == "export":
                    environment |= dict([words[1].split("=", 1)])
                elif words[1] != "serve":
                    asked = {} if "--root" in words else environment
                    done = invoke(*words[1:], **{k: v for k, v in asked.items() if k != "LANCE_NAMESPACE_API_KEYS"})
                    assert done.exit_code == int("||" in line), (line, done.stdout, done.stderr)
                    shown[" ".join(words[1:])] = done.stdout
    assert not program, "the steps of the page end with commands that come after its program"
    assert "role engineers" in shown["grants"]
    assert shown["can bob read --namespace shop"].startswith("yes: read granted to role analysts")
    assert shown["can bob read --table drafts.scores"].startswith("no: ")
    assert "eve" in shown["roles"]


def _run(program: str, directory: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LANCE_NAMESPACE_")}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=directory,
        env=kept | {"PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_page_knows_the_privileges() -> None:
    [table] = re.findall(r"\| privilege \|.*?\n\n", PAGE.read_text(), re.DOTALL)
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(Privilege)
    [settings] = [block for block in blocks(PAGE, "sh") if "API_KEYS" in block]
    assert len(json.loads(shlex.split(settings)[1].split("=", 1)[1])) == 3
