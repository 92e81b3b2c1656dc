"""The `lance-namespace` command."""

from __future__ import annotations

import platform
from collections.abc import Callable
from importlib import metadata
from typing import Annotated

import typer

from namespace_server.cli import catalogs, check, collection, configuration, conformance, doctor, maintenance, tables
from namespace_server.cli.command import Command, VerboseCommand

cli = typer.Typer(
    name="lance-namespace",
    help="A catalog server for Lance tables in a directory or a bucket.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if not wanted:
        return
    for package in ("lance-namespace-server", "pylance"):
        try:
            found = metadata.version(package)
        except metadata.PackageNotFoundError:
            found = "not installed"
        typer.echo(f"{package} {found}")
    typer.echo(f"Python {platform.python_version()}")
    raise typer.Exit


@cli.callback()
def main(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the versions in use and exit."),
    ] = False,
) -> None:
    """A catalog server for Lance tables in a directory or a bucket."""
    del version  # handled by its callback


_SERVER = (catalogs.serve, check.check, catalogs.adopt, catalogs.migrate, conformance.tck)
_UPKEEP = (
    collection.gc,
    collection.dropped,
    collection.undrop,
    collection.pins,
    collection.pin,
    collection.unpin,
    collection.intents,
    collection.intent,
    collection.end_intent,
    maintenance.maintain,
    doctor.doctor,
    catalogs.orphans,
)
_FILES = (tables.inspect, tables.compact, tables.cleanup)
_PANELS: tuple[tuple[str, tuple[Callable[..., None], ...]], ...] = (
    ("A server", _SERVER),
    ("Care of a catalog", _UPKEEP),
    ("Tables by path", _FILES),
)
_LOG_AS_SERVERS = (catalogs.serve, catalogs.adopt)

for _panel, _commands in _PANELS:
    for _command in _commands:
        _kind = Command if _command in _LOG_AS_SERVERS else VerboseCommand
        cli.command(cls=_kind, rich_help_panel=_panel)(_command)
cli.add_typer(configuration.config_commands, name="config", rich_help_panel="A server")
