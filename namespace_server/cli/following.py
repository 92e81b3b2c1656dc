"""Commands for those who follow a catalog: its events, and the cursors of their consumers.

The first argument may be the root of the catalog, in place of `--root`.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from namespace_server.cli.command import refusal
from namespace_server.cli.connection import RootArgument, connected, take_root
from namespace_server.cli.history import event_rows
from namespace_server.cli.output import print_json, print_lines, print_table, say, shown_moment

if TYPE_CHECKING:
    from namespace_client import CatalogEvent


def events(
    context: typer.Context,
    arguments: RootArgument = None,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Wait for those to come, until interrupted.")] = False,
    since: Annotated[
        int | None, typer.Option(min=0, help="Catalog version after which to begin; 0: at the first (the newest).")
    ] = None,
    cursor: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Begin where this cursor is, and move it behind what was printed."),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="Only events of this kind: committed, adopted, unmanaged, housekeeping, cursors, hidden; may be "
            "repeated.",
        ),
    ] = None,
) -> None:
    """Print the versions of a catalog as events, oldest first: each once, in order, none left out.

    With `--json` each is a line, a CloudEvent. It ends with the newest one, unless it is to follow.
    """
    take_root(context, arguments, ())
    with connected(context) as catalog:
        for event in catalog.events(since=since, cursor=cursor, follow=follow, kinds=kind):
            if context.obj.as_json:
                typer.echo(json.dumps(event.cloud_event, ensure_ascii=False, separators=(",", ":")))
            else:
                print_lines((line, "") for line in _lines(event))


def _lines(event: CatalogEvent) -> list[str]:
    """An event in words: a line for each batch."""
    from namespace_client import CatalogVersion

    place = f"{event.version:,}  {shown_moment(event.committed_at)}"
    is_unmanaged = event.kind == "unmanaged"
    version = CatalogVersion(event.version, event.committed_at, event.batches, event.adopted, is_unmanaged)
    return ["  ".join(filter(None, (place, *row))) for row in event_rows(version)]


def cursors(context: typer.Context, arguments: RootArgument = None) -> None:
    """List the cursors of a catalog: how far the consumers of its events have come."""
    take_root(context, arguments, ())
    with connected(context) as catalog:
        found = catalog.cursors()
    if context.obj.as_json:
        print_json([asdict(cursor) for cursor in found])
        return
    rows = []
    for each in found:
        state = "expired" if each.expired else ""
        rows.append((each.name, each.version, each.lag, shown_moment(each.moved_at), each.principal, state))
    headings = ("cursor", "catalog version", "behind", "moved", "by", "state")
    print_table(headings, rows, numbers=("catalog version", "behind"))


def advance_cursor(
    context: typer.Context,
    arguments: Annotated[
        list[str], typer.Argument(metavar="[ROOT] NAME VERSION", help="The cursor, and where to put it.")
    ],
    backwards: Annotated[bool, typer.Option("--backwards", help="Also back: events are told again then.")] = False,
) -> None:
    """Put a cursor at a catalog version, up to which its consumer is done. It is made if there is none of that name."""
    name, version = take_root(context, arguments, ("NAME", "VERSION"))
    if not (version.isascii() and version.isdigit()):
        raise refusal(f"VERSION: expected a catalog version, found {version}")
    with connected(context) as catalog:
        catalog.advance_cursor(name, int(version), backwards=backwards)
    say(context, f"{name}: is at catalog version {int(version):,}", name=name, version=int(version))


def delete_cursor(
    context: typer.Context,
    arguments: Annotated[list[str], typer.Argument(metavar="[ROOT] NAME", help="What the cursor is called.")],
) -> None:
    """Remove a cursor of a catalog: nothing is kept for its consumer any more."""
    [name] = take_root(context, arguments, ("NAME",))
    with connected(context) as catalog:
        catalog.delete_cursor(name)
    say(context, f"{name}: is removed", name=name)
