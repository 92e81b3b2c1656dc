"""What the guide says of the tools is so."""

from __future__ import annotations

import json
import re
import shlex

from namespace_mcp.server import CHANGING, READING, THREADS, WAITING
from namespace_mcp.tools import values
from namespace_mcp.tools.changing import GOES_ALONE, Change
from namespace_mcp.tools.tool import MOST_NAMES
from tests.cli.commands import invoke
from tests.documentation.pages import REPOSITORY

PAGE = (REPOSITORY / "docs" / "guide" / "agents.md").read_text()
BLOCKS = dict(enumerate(re.findall(r"```(?:json|sh)\n(.*?)```", PAGE, re.DOTALL)))


def test_the_tools_are_those_of_its_table() -> None:
    table = PAGE.split("## Tools")[1].split("Every answer")[0]
    named = [name for line in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", line.partition(" | ")[0])]
    assert named == [each.name for each in (*READING, *CHANGING)]


def test_the_bounds_are_those_of_its_table() -> None:
    for said in (
        f"| rows (`limit`) | {values.DEFAULT_ROWS}, of a search 10 | {values.MOST_ROWS:,} |",
        f"| bytes of rows as JSON (`max_bytes`) | {values.DEFAULT_BYTES >> 10} KiB | {values.MOST_BYTES >> 20} MiB |",
        f"| characters of a value (`max_cell`) | {values.DEFAULT_CELL} | {values.MOST_CELL:,} |",
        f"| names, versions | 100 | {MOST_NAMES:,} |",
    ):
        assert said in PAGE
    assert (THREADS, WAITING) == (4, 64)


def test_the_examples_are_understood() -> None:
    [change] = [json.loads(block) for block in BLOCKS.values() if '"changes"' in block]
    assert len(Change.model_validate(change).changes) == 3
    servers = [json.loads(block)["mcpServers"]["catalog"] for block in BLOCKS.values() if "mcpServers" in block]
    assert [next(iter(each)) for each in servers] == ["command", "url"]
    alone = PAGE.split("only change of a call each:")[1].split("## ")[0].split("\n\n")[0]
    assert set(re.findall(r"`(\w+)`", alone)) == GOES_ALONE
    commands = [
        line for block in BLOCKS.values() for line in block.splitlines() if line.startswith("lance-namespace mcp")
    ]
    assert len(commands) == 4
    for line in commands:
        assert invoke(*shlex.split(line, comments=True)[1:], "--help").exit_code == 0
