"""What every command has in common: the exit status, the line of an error, the log, completion, output."""

from __future__ import annotations

import logging
import os
import pty
import subprocess
import sys
from pathlib import Path

import lance
import pyarrow as pa
import pytest
import typer
from lance_namespace.errors import ConcurrentModificationError, ServiceUnavailableError, TableNotFoundError

from lance_core.errors import CorruptFile, RetryableTransaction
from namespace_client import CatalogUnreachable, CommitUnknown, RetryableConflict
from namespace_server.cli.command import ExitStatus, refusing
from namespace_server.cli.output import print_table
from tests.cli.commands import invoke, refused
from tests.server.servers import ServerProcess


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (TableNotFoundError("x"), ExitStatus.REFUSED),
        (FileNotFoundError(2, "No such file or directory", "/x"), ExitStatus.REFUSED),
        (ConcurrentModificationError("x"), ExitStatus.CONFLICT),
        (RetryableConflict("x", code=14), ExitStatus.CONFLICT),
        (RetryableTransaction(3, "x"), ExitStatus.CONFLICT),
        (ServiceUnavailableError("x"), ExitStatus.UNAVAILABLE),
        (CatalogUnreachable("x"), ExitStatus.UNAVAILABLE),
        (CommitUnknown("x", batch=None, idempotency_key="k"), ExitStatus.UNKNOWN),
        (CorruptFile("x"), ExitStatus.DAMAGED),
    ],
)
def test_an_error_ends_a_command_with_the_status_of_its_kind(
    error: Exception, status: ExitStatus, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as ended, refusing():
        raise error
    assert ended.value.exit_code == status
    assert "x" in capsys.readouterr().err


def test_an_error_that_no_command_expects_is_raised() -> None:
    with pytest.raises(ZeroDivisionError), refusing():
        raise ZeroDivisionError


def test_an_error_of_many_lines_is_told_in_one(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit), refusing():
        raise ValueError("first\n  second")
    assert capsys.readouterr().err == "lance-namespace: first second\n"


def test_verbose_logs(tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"x": [1]}), tmp_path / "t")
    for arguments, level in (([], None), (["-v"], logging.INFO), (["-vv"], logging.DEBUG)):
        before = logging.getLogger().level
        assert invoke("inspect", str(tmp_path / "t"), *arguments).exit_code == 0
        assert logging.getLogger().level == (before if level is None else level)


def test_the_shell_completes_commands() -> None:
    done = subprocess.run(
        [str(Path(sys.executable).with_name("lance-namespace"))],
        env={
            **os.environ,
            "_LANCE_NAMESPACE_COMPLETE": "complete_bash",
            "COMP_WORDS": "lance-namespace config s",
            "COMP_CWORD": "2",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert "show" in done.stdout.split()


def test_a_table_without_a_terminal_is_plain_and_complete(capsys: pytest.CaptureFixture[str]) -> None:
    wide = "w" * 300
    print_table(("name", "rows"), [("a", 1_234), (wide, None), ("line\nbreak", True)], numbers=("rows",))
    assert capsys.readouterr().out.splitlines() == [
        f"{'name':<300}   rows",
        f"{'a':<300}  1,234",
        wide,
        f"{'line' + chr(92) + 'nbreak':<300}    yes",
    ]


ONE_COLUMN = "from namespace_server.cli.output import print_table; print_table(('name',), [('x' * 30,)])"


def seen_on_a_terminal(program: str = ONE_COLUMN, **environment: str) -> str:
    """What a terminal is sent for a table."""
    master, slave = pty.openpty()
    given = {name: text for name, text in os.environ.items() if name not in {"NO_COLOR", "COLUMNS", "FORCE_COLOR"}}
    subprocess.run(
        [sys.executable, "-c", program], stdout=slave, env=given | {"TERM": "xterm-256color"} | environment, check=True
    )
    os.close(slave)
    text = os.read(master, 65_536).decode()
    os.close(master)
    return text


def test_a_table_on_a_terminal_has_colours_unless_they_are_not_wanted() -> None:
    assert "\x1b[" in seen_on_a_terminal()
    plain = seen_on_a_terminal(NO_COLOR="1")
    assert "x" * 30 in plain
    assert "\x1b[3" not in plain


def test_a_table_on_a_narrow_terminal_is_folded_and_not_cut() -> None:
    shown = seen_on_a_terminal(NO_COLOR="1", COLUMNS="20")
    assert shown.count("x") == 30


def test_a_table_that_does_not_fit_a_narrow_terminal_is_printed_row_by_row_and_whole() -> None:
    program = (
        "from namespace_server.cli.output import print_table; print_table(('name', 'rows', 'size', 'changed'), "
        "[('shop.bigger', 1_234_567, '420.8 MiB', '2026-11-26 10:59:58Z')], numbers=('rows', 'size'))"
    )
    for width in (20, 40, 50, 70):
        shown = seen_on_a_terminal(program, NO_COLOR="1", COLUMNS=str(width))
        for whole in ("shop.bigger", "1,234,567", "420.8 MiB", "2026-11-26 10:59:58Z"):
            assert whole in shown, (width, shown)
    assert len(shown.splitlines()) == 3


def test_the_help_of_a_command_has_no_line_ends_of_the_source() -> None:
    told = invoke("ls", "--help", COLUMNS="300", TERMINAL_WIDTH="300").stdout
    assert "Usage: " in told
    serve = invoke("serve", "--help", COLUMNS="400", TERMINAL_WIDTH="400").stdout
    assert (
        "Ctrl-C or SIGTERM ends the server once the requests that it has accepted are answered. SIGHUP reads" in serve
    )


def test_every_command_refuses_a_misspelt_variable() -> None:
    told = refused("config", "show", "--root", "r", LANCE_NAMESPACE_STORRAGE__X="y")
    assert told == "LANCE_NAMESPACE_STORRAGE__…: no such setting, did you mean LANCE_NAMESPACE_STORAGE?"


def test_a_command_on_a_server_loads_no_server(shop_server: ServerProcess) -> None:
    """It would take seconds to start."""
    program = f"""
import sys
from namespace_server.cli import cli
try:
    cli(["ls", "--url", {shop_server.url!r}])
finally:
    print(sorted(set(sys.modules) & {{"fastapi", "lance", "lance_namespace", "namespace_server.settings", "pydantic"}}))
"""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("LANCE_NAMESPACE_")}
    kept["LANCE_NAMESPACE_URL"] = "http://127.0.0.1:1"
    ended = subprocess.run([sys.executable, "-c", program], env=kept, capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == "[]"
