"""The `lance-namespace` command."""

from __future__ import annotations

import platform
from collections.abc import Callable
from importlib import metadata
from typing import Annotated

import typer

from namespace_server.cli import (
    agents,
    backup,
    blobs,
    catalogs,
    changed_rows,
    changes,
    configuration,
    conformance,
    delivering,
    doctor,
    following,
    gc,
    granting,
    history,
    keeping,
    keys,
    listing,
    logins,
    maintenance,
    rows,
    tables,
)
from namespace_server.cli.command import Run, command, verbose_command
from namespace_server.cli.connection import catalog_command

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


_CATALOG: tuple[Run, ...] = (
    listing.ls,
    listing.show,
    rows.read,
    blobs.blob,
    rows.query,
    rows.load,
    history.log,
    history.diff,
    changes.create,
    changes.register,
    changes.drop,
    changes.clone,
    changes.rename,
)
_KEPT: tuple[Run, ...] = (
    keeping.dropped,
    keeping.undrop,
    keeping.pins,
    keeping.pin,
    keeping.unpin,
    keeping.intents,
    keeping.intent,
    keeping.end_intent,
)


_GRANTED: tuple[Run, ...] = (
    granting.enable_grants,
    granting.grant,
    granting.revoke,
    granting.grants,
    granting.can,
    granting.grant_role,
    granting.revoke_role,
    granting.roles,
)
_FOLLOWED: tuple[Run, ...] = (
    following.events,
    changed_rows.changes,
    following.cursors,
    following.advance_cursor,
    following.delete_cursor,
    delivering.deliver,
)


def _add(panel: str, kind: Callable[[Run], Run], *functions: Run) -> None:
    for function in functions:
        cli.command(rich_help_panel=panel)(kind(function))


_TABLES, _SERVER = "Namespaces, tables and rows", "A server"
_add(_TABLES, catalog_command, *_CATALOG)
for _group, _name in ((changes.tag_commands, "tag"), (changes.branch_commands, "branch")):
    cli.add_typer(_group, name=_name, rich_help_panel=_TABLES)
_add("What is kept", catalog_command, *_KEPT)
_add("Who may do what", catalog_command, *_GRANTED)
_add("Events", catalog_command, *_FOLLOWED)
_add(_SERVER, command, catalogs.serve, catalogs.adopt)
_add(_SERVER, catalog_command, agents.mcp)
_add(_SERVER, catalog_command, doctor.check)
_add(_SERVER, verbose_command, catalogs.migrate, conformance.tck)
_add("A caller of a server", catalog_command, logins.login, logins.logout, logins.whoami)
cli.add_typer(configuration.config_commands, name="config", rich_help_panel=_SERVER)
cli.add_typer(keys.key_commands, name="keys", rich_help_panel=_SERVER)
_add("Care of a catalog", catalog_command, gc.gc, maintenance.maintain, doctor.doctor)
_add("Backup", catalog_command, backup.backup)
_add("Backup", verbose_command, backup.backups, backup.verify_backup, backup.restore)
_add("Tables by path", verbose_command, tables.inspect)
