"""The command of the conformance kit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from namespace_server.cli.command import ExitStatus, refusal
from namespace_server.interruption import raise_interrupts


def tck(
    url: Annotated[str | None, typer.Option(help="Where the server is: http://host:port.", show_default=False)] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(help="Header of every request, such as 'x-api-key: ...'; may be repeated.", show_default=False),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN",
            help="Run only checks whose id, operation or promise matches, such as create_table, *.one_of_many_* "
            "or paging; may be repeated.",
            show_default=False,
        ),
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="Also write the results as JUnit XML.", dir_okay=False)] = None,
    dialect: Annotated[
        str,
        typer.Option(
            help="published: the namespace specification; lancedb: what lancedb's clients of `db://` ask for.",
        ),
    ] = "published",
    list_only: Annotated[bool, typer.Option("--list", help="List the checks and run none.")] = False,
) -> None:
    """Check a server against the published Lance namespace REST specification, or lancedb's protocol.

    The checks work in a namespace of their own with a random name, which is removed at the end, also after Ctrl-C. What
    the server does not serve is skipped by name. Exit status 0: nothing failed; 1: a check failed; 2: the server cannot
    be checked; 5: it does not answer; 130: interrupted.
    """
    from namespace_tck.command import KitDialect, list_checks, run
    from namespace_tck.session import SessionError, SessionUnreachable

    of_runs = {"--url": url, "--header": header, "--junit": junit}
    if list_only and (given := [option for option, value in of_runs.items() if value]):
        raise refusal(f"{given[0]}: goes without --list, which runs no check")
    if dialect not in [*KitDialect]:
        raise refusal(f"--dialect {dialect}: expected {' or '.join(KitDialect)}")
    spoken = KitDialect(dialect)
    try:
        if list_only:
            status = list_checks(only or (), typer.echo, spoken)
        elif url is None:
            raise refusal("--url: expected the address of a server")
        else:
            raise_interrupts()
            status = run(url, header or (), only or (), junit, typer.echo, spoken)
    except SessionUnreachable as error:
        raise refusal(str(error), ExitStatus.UNAVAILABLE) from error
    except (SessionError, ValueError, OSError) as error:
        raise refusal(str(error)) from error
    raise typer.Exit(status)
