"""The command that maintains the tables of a catalog."""

from __future__ import annotations

from typing import Annotated

import typer

from namespace_server.cli.command import ExitStatus, refusal, server_environment
from namespace_server.cli.connection import RootArgument, opened_root, table_paths, take_root
from namespace_server.cli.options import named_values
from namespace_server.cli.output import print_report
from namespace_server.cli.progress import ProgressLine


def maintain(
    context: typer.Context,
    arguments: RootArgument = None,
    table: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Only this table, such as shop.orders; may be repeated.", show_default=False),
    ] = None,
    namespace: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID",
            help="Only the tables below this namespace; may be repeated.",
            show_default=False,
        ),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Property of tables that do not have it themselves, such as maintenance.min_fragments=8, over "
            "LANCE_NAMESPACE_MAINTENANCE; may be repeated.",
            show_default=False,
        ),
    ] = None,
    seconds: Annotated[float | None, typer.Option(min=0, help="Begin no more work after so many seconds.")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Work on tables too that were changed within maintenance.quiet_seconds.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Write nothing; list what is worth work, and what would be left.")
    ] = False,
) -> None:
    """Compact the tables of a catalog that are worth it and extend their indices, in bounded commits of the catalog.

    Servers and writers may go on: a commit is rebased over those of others, or given up, and then its files are
    removed. Properties of tables and namespaces say what is done (maintenance.*). Exit status 0: done, or nothing to
    do; 1: the work on a table failed for another reason than a concurrent commit.
    """
    from namespace_server.directory.maintenance.policy import read_policy
    from namespace_server.directory.maintenance.run import TableSelection

    if dry_run and seconds is not None:
        raise refusal("--seconds: goes without --dry-run, which looks at all tables and does no work")
    defaults = _defaults(policy)
    read_policy(defaults)
    take_root(context, arguments, ())
    selection = TableSelection(table_paths(context, table), table_paths(context, namespace, "namespace"))
    with opened_root(context) as catalog, ProgressLine() as progress:
        from namespace_server.directory.maintenance.run import Maintenance
        from namespace_server.directory.namespace import DirectoryNamespace

        change = DirectoryNamespace(catalog=catalog).data.change
        maintenance = Maintenance(catalog.store, catalog.table, change, defaults, progress=progress)
        report = (
            maintenance.plan(selection, forced=force)
            if dry_run
            else maintenance.run(selection, seconds=seconds, forced=force)
        )
    print_report(report, as_json=context.obj.as_json)
    if report.failed:
        raise typer.Exit(ExitStatus.FOUND)


def _defaults(given: list[str] | None) -> dict[str, str]:
    surroundings: dict[str, str] = server_environment().get("maintenance", {})
    return surroundings | named_values("--policy", given)
