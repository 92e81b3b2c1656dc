"""Write docs/reference/cli.md from the commands themselves; with --check fail if it is not current."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import click
from typer.main import get_command

from namespace_server.cli import cli
from namespace_server.cli.command import ExitStatus

TARGET = Path(__file__).resolve().parent.parent / "docs" / "reference" / "cli.md"
HEAD = """# Command line

<!-- Written by scripts/generate_cli_reference.py. -->

`lance-namespace COMMAND --help` prints the same. [The guide](../guide/command-line.md) shows commands at work,
and says what they print. Every command but `serve` and `adopt` takes `-v`, which logs to standard error: twice
for more. `lance-namespace --install-completion` has the shell complete commands and options.

| exit status | meaning |
|---|---|
"""


def render() -> str:
    """The page: one section per command, in the order of their definition."""
    statuses = "".join(f"| {status.value} | {status.meaning} |\n" for status in ExitStatus)
    return HEAD + statuses + "".join(_section(name, command) for name, command in commands())


def commands() -> Iterator[tuple[str, click.Command]]:
    """The commands by name; those of a group by both names."""
    for name, command in get_command(cli).commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", None)
        if inner is None:
            yield name, command
        else:
            yield from ((f"{name} {each}", found) for each, found in inner.items())


def _section(name: str, command: click.Command) -> str:
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option" and each.name != "verbose"]
    usage = " ".join(["lance-namespace", name, *(str(argument.metavar) for argument in arguments), "[OPTIONS]"])
    lines = ["", f"## {name}", "", *_paragraphs(command.help or ""), "", "```sh", usage, "```", ""]
    if arguments:
        lines += ["| argument | meaning |", "|---|---|"]
        lines += [f"| `{argument.metavar}` | {_cell(getattr(argument, 'help', ''))} |" for argument in arguments]
        lines += [""]
    lines += ["| option | default | meaning |", "|---|---|---|"]
    lines += [_row(option) for option in options]
    return "\n".join(lines) + "\n"


def _paragraphs(text: str) -> list[str]:
    """The text in lines of at most 100 columns."""
    wrapped = (textwrap.fill(" ".join(part.split()), 100, break_on_hyphens=False) for part in text.split("\n\n"))
    return "\n\n".join(wrapped).split("\n")


def _row(option: click.Parameter) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    is_flag = bool(getattr(option, "is_flag", False))
    value = "" if is_flag else f" `{option.make_metavar(click.Context(click.Command('x')))}`"
    default = option.default
    shown = "" if is_flag or default is None or callable(default) else f"`{default}`"
    meaning = _cell(getattr(option, "help", ""))
    if isinstance(option.envvar, str):
        meaning += f" Environment: `{option.envvar}`."
    required = "required" if option.required else shown
    return f"| {names}{value} | {required} | {meaning} |"


def _cell(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


def main() -> int:
    """Write the page, or check it; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the page is not current")
    check = parser.parse_args().check
    text = render()
    if not check:
        TARGET.write_text(text)
        return 0
    if TARGET.read_text() == text:
        return 0
    print(f"{TARGET}: not current, run make generate", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
