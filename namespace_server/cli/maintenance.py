"""The command that maintains the tables of a catalog."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from namespace_server.cli.command import ExitStatus, refusal, server_environment
from namespace_server.cli.connection import (
    RootArgument,
    connected,
    names_server,
    opened_root,
    table_paths,
    take_root,
)
from namespace_server.cli.options import named_values
from namespace_server.cli.output import print_json, print_report
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

    With `--url` or a profile of a server it is asked to maintain the tables that `--table` names, under its own
    settings and the caller's grants.

    Servers and writers may go on: a commit is rebased over those of others, or given up, and then its files are
    removed. Properties of tables and namespaces say what is done (maintenance.*). Exit status 0: done, or nothing to
    do; 1: the work on a table failed for another reason than a concurrent commit.
    """
    from namespace_server.directory.maintenance.policy import read_policy
    from namespace_server.directory.maintenance.run import TableSelection

    if dry_run and seconds is not None:
        raise refusal("--seconds: goes without --dry-run, which looks at all tables and does no work")
    take_root(context, arguments, ())
    if names_server(context):
        _ask_server(context, table, namespace or policy, seconds=seconds, forced=force, dry_run=dry_run)
        return
    defaults = _defaults(policy)
    read_policy(defaults)
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


def _ask_server(
    context: typer.Context,
    tables: list[str] | None,
    of_root: list[str] | None,
    *,
    seconds: float | None,
    forced: bool,
    dry_run: bool,
) -> None:
    """Have a server maintain tables, one after another."""
    if not tables or of_root:
        raise refusal("maintain: a server is asked by --table for each table; --namespace and --policy go with a root")
    with connected(context) as catalog:
        results = [catalog.maintain(each, dry_run=dry_run, forced=forced, seconds=seconds) for each in tables]
    if context.obj.as_json:
        print_json([{**asdict(result), "id": list(result.id)} for result in results])
    else:
        typer.echo("\n\n".join(map(repr, results)))
    if any(result.status == "failed" for result in results):
        raise typer.Exit(ExitStatus.FOUND)


def _defaults(given: list[str] | None) -> dict[str, str]:
    surroundings: dict[str, str] = server_environment().get("maintenance", {})
    return surroundings | named_values("--policy", given)
