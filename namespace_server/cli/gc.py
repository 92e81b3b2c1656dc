"""The command `gc`."""

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
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Remove nothing; list what would go, and what is not judged.")
    ] = False,
    table: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID",
            help="Look at the files of this table, such as shop.orders, only; may be repeated. With --dry-run also if "
            "its location is not the catalog's.",
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
    older_than: Annotated[
        str | None,
        typer.Option(
            metavar="AGE",
            help="With --dry-run: the age from which an unreferenced file counts, in place of "
            "gc.uncommitted.grace: 14d, 36h, 90m.",
            show_default=False,
        ),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A setting of the catalog, for this run and all later ones, such as gc.dropped.window=30d; with "
            "--dry-run for its list alone. May be repeated.",
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
    """Remove from a catalog what none of its kept versions needs.

    That is: earlier versions of the catalog, dropped tables whose time to come back is over, deleted versions of
    tables, and files of failed writes and rejected batches. Servers and writers may go on; a write that takes longer
    than gc.uncommitted.grace from its first file to its commit is refused, and has to be repeated. After a crash at any
    moment the catalog is whole, and the next run goes on. The first run shuts out releases of this server that cannot
    collect.

    With --dry-run each file of a table that would go is listed with size, date, kind and reason; nothing is removed and
    nothing is committed. Younger files are only counted: a writer may still commit them. Files of unknown names, tables
    whose manifests cannot be understood, and directories of no table are reported and not judged.
    """
    if older_than is not None and not dry_run:
        raise refusal("--older-than: expected --dry-run: what is removed, is by the setting gc.uncommitted.grace")
    for option, value in (("--max-removals", max_removals), ("--max-time", max_time)):
        if dry_run and value is not None:
            raise refusal(f"{option}: goes without --dry-run, which removes nothing")
    if changed and table:
        raise refusal("--changed: goes without --table: the files of tables that are named are looked at")
    least = None if older_than is None else duration("--older-than", older_than)
    settings = named_values("--set", setting)
    until = None if max_time is None else time.monotonic() + duration("--max-time", max_time).total_seconds()
    take_root(context, arguments, ())
    with opened_root(context) as catalog, ProgressLine() as progress:
        from namespace_server.directory.gc.delete import Budget
        from namespace_server.directory.gc.run import Collector

        collector = Collector(catalog, progress=progress)
        tables = table_paths(context, table)
        if dry_run:
            report = collector.estimate(settings, older_than=least, everywhere=not changed, tables=tables)
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
