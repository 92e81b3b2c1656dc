"""The commands that check a root and examine a catalog."""

from __future__ import annotations

from typing import Annotated

import typer

from namespace_server.cli.command import ExitStatus, refusal
from namespace_server.cli.connection import RootArgument, opened_root, opened_store, table_paths, take_root
from namespace_server.cli.output import print_report
from namespace_server.cli.progress import ProgressLine


def doctor(
    context: typer.Context,
    arguments: RootArgument = None,
    table: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Only this table, such as shop.orders; may be repeated.", show_default=False),
    ] = None,
    sample: Annotated[int | None, typer.Option(min=1, help="Only so many tables, chosen at random.")] = None,
    heads: Annotated[bool, typer.Option("--heads", help="Read only the newest version of each branch.")] = False,
    mend: Annotated[
        bool, typer.Option("--repair", help="Repair what is provably repairable, as a server would.")
    ] = False,
    remove_lost: Annotated[
        bool,
        typer.Option(
            "--remove-lost",
            help="With --repair: remove the rows of earlier versions whose manifests are gone, for good: no backup can "
            "bring these versions back.",
        ),
    ] = False,
) -> None:
    """Examine a catalog from its storage: its versions, and each table against its rows.

    Without --repair nothing is written, and servers may go on. Each finding says what was expected, what was found and
    what to do. Exit status: 0 sound, or notes only; 1 warnings; 2 it cannot be examined; 3 damage.
    """
    from namespace_server.directory.doctor import Examination, Severity
    from namespace_server.directory.doctor.repairs import repair
    from namespace_server.directory.namespace import DirectoryNamespace

    if remove_lost and not mend:
        raise refusal("--remove-lost: expected --repair too")
    take_root(context, arguments, ())
    tables = table_paths(context, table)
    with opened_root(context) as catalog, ProgressLine() as progress:
        examination = Examination(catalog.store, tables, sample, heads, progress=progress)
        report = examination.examine()
        if mend:
            report = repair(DirectoryNamespace(catalog=catalog), examination, report, remove_lost=remove_lost)
    print_report(report, as_json=context.obj.as_json)
    if report.worst is not Severity.NOTE:
        raise typer.Exit(ExitStatus.DAMAGED if report.worst is Severity.DAMAGE else ExitStatus.FOUND)


def check(
    context: typer.Context,
    arguments: RootArgument = None,
) -> None:
    """Say within seconds whether a directory or bucket can be the root of a catalog, and what a batch will cost there.

    Permissions, conditional writes by 16 writers at one time, reads, listings, deletes, copies, the clock, the time of
    requests, and the catalog that is there, if any. Small objects are written in a new directory below `_staging/` and
    removed; nothing else is touched, and servers may go on. A directory that is not there is not made. Exit status: 0
    it can be used, perhaps with warnings; 1 it must not be used; 2 it was not checked; 5 the
    store does not answer.
    """
    from namespace_server.directory.root_check import RootCheck

    take_root(context, arguments, ())
    with opened_store(context) as store, ProgressLine() as progress:
        report = RootCheck(store, progress).check()
    print_report(report, as_json=context.obj.as_json)
    if not report.usable:
        not_checked = ExitStatus.UNAVAILABLE if report.unreachable else ExitStatus.REFUSED
        raise typer.Exit(not_checked if report.usable is None else ExitStatus.FOUND)
