"""Commands on what was dropped, on what is kept, and on what nothing needs."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from namespace_server.cli.command import ExitStatus, refusal
from namespace_server.cli.connection import RootArgument, opened_root, table_paths, take_root
from namespace_server.cli.options import duration, named_values
from namespace_server.cli.output import print_report
from namespace_server.cli.progress import ProgressLine


def gc(
    context: typer.Context,
    arguments: RootArgument = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Remove nothing; say what would go.")] = False,
    table: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID",
            help="Look at the files of this table, such as shop.orders, only; may be repeated.",
            show_default=False,
        ),
    ] = None,
    changed: Annotated[
        bool,
        typer.Option(
            "--changed",
            help="Look at the tables that changed since the last run, and at those that none looked at for as long as "
            "gc.orphans.every. Else at all.",
        ),
    ] = False,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A setting of the catalog, for this run and all later ones, such as gc.dropped.window=30d; may be "
            "repeated.",
            show_default=False,
        ),
    ] = None,
    max_removals: Annotated[
        int | None, typer.Option(min=0, help="End after so many removals; the next run goes on with the rest.")
    ] = None,
    max_time: Annotated[
        str | None, typer.Option(metavar="TIME", help="Begin no removal after so long: 90m, 2h. The next run goes on.")
    ] = None,
) -> None:
    """Remove from a catalog what nothing needs any more.

    That is: earlier versions of the catalog, dropped tables whose time to come back is over, deleted versions of
    tables, and files of failed writes and rejected batches. Servers and writers may go on; a write that takes longer
    than gc.uncommitted.grace from its first file to its commit is refused, and has to be repeated. After a crash at any
    moment the catalog is whole, and the next run goes on. The first run shuts out releases of this server that cannot
    collect.
    """
    settings = named_values("--set", setting)
    until = None if max_time is None else time.monotonic() + duration("--max-time", max_time).total_seconds()
    take_root(context, arguments, ())
    with opened_root(context) as catalog, ProgressLine() as progress:
        from namespace_server.directory.gc.delete import Budget
        from namespace_server.directory.gc.run import Collector

        collector = Collector(catalog, progress=progress)
        tables = table_paths(context, table)
        if dry_run:
            report = collector.estimate(settings, everywhere=not changed, tables=tables)
        else:
            budget = Budget(max_removals, until)
            report = collector.collect(settings, budget, everywhere=not changed, tables=tables)
    print_report(report, as_json=context.obj.as_json)
    if report.refused:
        from lance_core.amounts import counted

        path, problem = next(iter(report.refused.items()))
        raise refusal(
            f"the store did not remove {counted(len(report.refused), 'object')}, the first is {path}: {problem}; "
            "all else was done",
            ExitStatus.FOUND,
        )
