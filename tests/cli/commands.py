"""Commands run in this process, without settings of the environment."""

from __future__ import annotations

import json
import os
from typing import Any

from click.testing import Result
from typer.testing import CliRunner

from namespace_server.cli import cli


def invoke(*arguments: str, **environment: str) -> Result:
    """A command. An exception that it does not expect is raised."""
    kept: dict[str, str | None] = {name: None for name in os.environ if name.startswith("LANCE_NAMESPACE_")}
    return CliRunner(env={**kept, **environment}).invoke(cli, arguments, catch_exceptions=False)  # type: ignore[return-value]


def printed(*arguments: str, **environment: str) -> str:
    """What a command prints that succeeds and has nothing to complain of."""
    result = invoke(*arguments, **environment)
    assert (result.exit_code, result.stderr) == (0, ""), result.stderr
    return result.stdout


def parsed(*arguments: str, **environment: str) -> Any:
    """The JSON that it prints."""
    return json.loads(printed(*arguments, "--json", **environment))


def refused(*arguments: str, status: int = 2, **environment: str) -> str:
    """The one line of a command that is refused."""
    result = invoke(*arguments, **environment)
    assert (result.exit_code, result.stdout) == (status, ""), result.stdout
    assert result.stderr.startswith("lance-namespace: ")
    assert result.stderr.count("\n") == 1, result.stderr
    return result.stderr.removeprefix("lance-namespace: ").strip()
