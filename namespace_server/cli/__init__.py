"""The `lance-namespace` command."""

from __future__ import annotations

import platform
from importlib import metadata
from typing import Annotated

import typer

from namespace_server.cli import catalogs, check, collection, conformance, doctor, maintenance, tables

cli = typer.Typer(
    name="lance-namespace",
    help="A catalog server for Lance tables in a directory or a bucket.",
    no_args_is_help=True,
    add_completion=False,
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


for _command in (
    catalogs.serve,
    check.check,
    catalogs.adopt,
    catalogs.migrate,
    tables.inspect,
    tables.compact,
    tables.cleanup,
    catalogs.orphans,
    collection.gc,
    collection.dropped,
    collection.undrop,
    collection.pins,
    collection.pin,
    collection.unpin,
    maintenance.maintain,
    doctor.doctor,
    collection.intents,
    collection.intent,
    collection.end_intent,
    conformance.tck,
):
    cli.command()(_command)
