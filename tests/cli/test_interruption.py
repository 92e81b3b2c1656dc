"""Ctrl-C ends a command with 130 and one line at most, wherever in its imports and its work it comes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from namespace_client import Catalog
from namespace_server import interruption
from namespace_server.cli.command import ExitStatus


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = str(tmp_path_factory.mktemp("interrupted") / "catalog")
    with Catalog.connect(place) as catalog:
        catalog.create("t", {"id": [1]})
    return place


def interrupted(command: list[str], module: str) -> tuple[int, str]:
    """The status of a command to which Ctrl-C comes once it has imported a module, and what it says of itself.

    Python tells each module when it has been imported, before those that import it.
    """
    arguments = [sys.executable, "-X", "importtime", "-m", "namespace_server", *command]
    named = {name: value for name, value in os.environ.items() if not name.startswith("LANCE_NAMESPACE_")}
    with subprocess.Popen(
        arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=named
    ) as process:
        assert process.stderr is not None
        lines = []
        for line in process.stderr:
            lines.append(line)
            if line.rpartition("|")[2].strip() == module:
                process.send_signal(signal.SIGINT)
                break
        else:
            pytest.fail(f"{module} was not imported")
        lines += process.stderr.readlines()
        return process.wait(60), "".join(line for line in lines if not line.startswith("import time:"))


@pytest.mark.parametrize(
    ("command", "module"),
    [
        ("ls", "typer.colors"),
        ("ls", "typer.main"),
        ("read", "namespace_client.http"),
        ("read", "pyarrow.lib"),
        ("read", "lance.lance"),
        ("load", "namespace_server.cli.files.sources"),
        ("load", "pyarrow.lib"),
        ("gc", "namespace_server.directory.gc.run"),
        ("serve", "fastapi.routing"),
    ],
)
def test_while_modules_are_imported(root: str, tmp_path: Path, command: str, module: str) -> None:
    (tmp_path / "rows.csv").write_text("id\n2\n")
    more = {"read": ["t"], "load": [f"t={tmp_path}/rows.csv"], "serve": ["--port", "0"]}.get(command, [])
    assert interrupted([command, *more, "--root", root], module) == (ExitStatus.INTERRUPTED, "")


@pytest.mark.parametrize(
    ("then", "status", "said"),
    [
        ("raise", 130, ""),
        ("raise ImportError('partially initialized module')", 130, ""),
        ("sys.exit(2)", 130, ""),
        ("print('went on')", 0, "went on\n"),
    ],
)
def test_what_an_interrupt_became_is_no_trace(then: str, status: int, said: str) -> None:
    """Libraries that are interrupted in the middle of their imports raise something else, or nothing."""
    program = f"""
import signal, sys
import namespace_server.cli
from namespace_server import interruption
from namespace_server.__main__ import main

def cli() -> None:
    interruption.raise_interrupts()
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        {then}

namespace_server.cli.cli = cli
main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (status, said, "")


def test_a_command_that_ignores_it_goes_on_doing_so() -> None:
    """Shells have the background jobs of scripts ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        interruption.end_at_interrupts()
        interruption.raise_interrupts()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
