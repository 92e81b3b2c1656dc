"""The command that says whether a root can be used."""

from __future__ import annotations

import typer

from namespace_server.cli.command import ExitStatus
from namespace_server.cli.connection import RootArgument, opened_store, take_root
from namespace_server.cli.output import print_report
from namespace_server.cli.progress import ProgressLine


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
