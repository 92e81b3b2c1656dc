"""The commands of the guide of the command line are typed, one after another."""

from __future__ import annotations

import logging
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.cli.commands import invoke
from tests.documentation.pages import REPOSITORY, commands

PAGE = REPOSITORY / "docs" / "guide" / "command-line.md"


def test_the_commands_of_the_guide_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of this project in this process, which saves starting it thirty times; all others in a shell."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # others left some that write to closed files
    environment: dict[str, str] = {}
    shown = ""
    for line in commands(PAGE):
        if line.startswith("export "):
            name, _, text = line.removeprefix("export ").partition("=")
            environment[name] = text
        elif line.startswith("lance-namespace "):
            done = invoke(*shlex.split(line)[1:], **environment)
            assert (done.exit_code, done.stderr) == (0, ""), line
            shown += done.stdout
        else:
            subprocess.run(["bash", "-c", line], check=True)

    for text in ("shop.orders", "first load", "catalog versions 2 and 3", "audited", "shop.goods: is back"):
        assert text in shown
    assert (tmp_path / "orders.parquet").stat().st_size > 0
