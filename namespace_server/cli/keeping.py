"""Commands on dropped tables that can come back, pinned versions, and intents of jobs.

The first argument may be the root of the catalog, in place of `--root`.
"""

from __future__ import annotations

import uuid
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from namespace_server.cli.connection import RootArgument, connected, table_paths, take_root
from namespace_server.cli.options import duration
from namespace_server.cli.output import print_json, print_table, say, shown_moment

if TYPE_CHECKING:
    from namespace_client import DroppedTable
    from table_data.batch_operations import TableId, TableOfIntent


def dropped(context: typer.Context, arguments: RootArgument = None) -> None:
    """List the dropped tables of a catalog that can come back, the last one first."""
    take_root(context, arguments, ())
    with connected(context) as catalog:
        found = catalog.dropped_tables()
    if context.obj.as_json:
        print_json([_named(table) for table in found])
        return
    rows = [
        (_name(table.id), table.version, shown_moment(table.dropped_at), table.principal, table.tombstone)
        for table in found
    ]
    print_table(("table", "version", "dropped", "by", "id"), rows, numbers=("version",))


def undrop(
    context: typer.Context,
    arguments: Annotated[list[str], typer.Argument(metavar="[ROOT] TABLE", help="The table: shop.orders.")],
    new_name: Annotated[str | None, typer.Option("--as", metavar="NAME", help="Another name for it.")] = None,
    tombstone: Annotated[
        str | None, typer.Option("--id", metavar="UUID", help="Which one, if several of this name were dropped.")
    ] = None,
) -> None:
    """Bring back a dropped table, with its versions, branches, tags and indices.

    It is as it was before the batch that dropped it. Servers may go on.
    """
    [table] = take_root(context, arguments, ("TABLE",))
    with connected(context) as catalog:
        catalog.undrop(table, new_name, tombstone=tombstone)
    say(context, f"{new_name or table}: is back", name=new_name or table)


def pins(context: typer.Context, arguments: RootArgument = None) -> None:
    """List the pins of a catalog: versions of it that are kept with all rows and files."""
    take_root(context, arguments, ())
    with connected(context) as catalog:
        found = catalog.pins()
    if context.obj.as_json:
        print_json([asdict(pin) for pin in found])
        return
    rows = [
        (pin.name, pin.version, shown_moment(pin.until) if pin.until else "for ever", pin.principal, pin.reason)
        for pin in found
    ]
    print_table(("pin", "catalog version", "until", "by", "reason"), rows, numbers=("catalog version",))


def pin(
    context: typer.Context,
    arguments: Annotated[list[str], typer.Argument(metavar="[ROOT] NAME", help="What the pin is called.")],
    version: Annotated[int | None, typer.Option(help="Catalog version (the newest).")] = None,
    lasting: Annotated[
        str | None,
        typer.Option("--for", metavar="TIME", help="How long, at most 30d; else until it is removed."),
    ] = None,
    reason: Annotated[str | None, typer.Option(help="Text that is kept with it.")] = None,
) -> None:
    """Keep a version of a catalog, with all rows and files, whatever the settings of garbage collections.

    A pin of the same name is replaced.
    """
    [name] = take_root(context, arguments, ("NAME",))
    until = None if lasting is None else duration("--for", lasting)
    with connected(context) as catalog:
        pinned = catalog.pin(name, version, lasting=until, reason=reason)
    say(context, f"{name}: catalog version {pinned} is pinned", name=name, version=pinned)


def unpin(
    context: typer.Context,
    arguments: Annotated[list[str], typer.Argument(metavar="[ROOT] NAME", help="What the pin is called.")],
) -> None:
    """Remove a pin of a catalog."""
    [name] = take_root(context, arguments, ("NAME",))
    with connected(context) as catalog:
        catalog.unpin(name)
    say(context, f"{name}: is removed", name=name)


def intents(context: typer.Context, arguments: RootArgument = None) -> None:
    """List the intents of a catalog: jobs whose files and versions garbage collections keep."""
    take_root(context, arguments, ())
    with connected(context) as catalog:
        found = catalog.intents()
    if context.obj.as_json:
        print_json([asdict(job) | {"tables": [_named(table) for table in job.tables]} for job in found])
        return
    rows = []
    for job in found:
        tables = ", ".join(_name(table.id) or str(table.location) for table in job.tables)
        rows.append((job.id, shown_moment(job.until), tables, job.principal, job.reason))
    print_table(("intent", "until", "tables", "by", "reason"), rows)


def intent(
    context: typer.Context,
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="[ROOT] TABLE...",
            help="What the job writes or reads. The first is the root, unless --root or --url is given.",
        ),
    ],
    lasting: Annotated[str, typer.Option("--for", metavar="TIME", help="How long: 1h to 30d.")] = "1d",
    reason: Annotated[str | None, typer.Option(help="Text that is kept with it.")] = None,
    renewed: Annotated[
        str | None, typer.Option("--id", metavar="UUID", help="Renew this one, or register it under this id.")
    ] = None,
) -> None:
    """Register a job: what it writes to tables from now on, and their versions from the newest on, is kept for it.

    Prints the id of the intent. Clients of this package do so by themselves for jobs that take long.
    """
    tables = take_root(context, arguments, None)
    time = duration("--for", lasting)
    with connected(context) as catalog:
        from table_data.batch_operations import IntentRegistration, TableOfIntent

        paths = table_paths(context, tables)
        heads = [catalog.access.table(path) for path in paths]
        named = tuple(
            TableOfIntent(path, read_version=None if head is None else head.version)
            for path, head in zip(paths, heads, strict=True)
        )
        job = renewed or str(uuid.uuid4())
        registration = IntentRegistration(job, named, int(time.total_seconds()), reason)
        catalog.access.commit([registration], idempotency_key=str(uuid.uuid4()), message=None)
    say(context, job, id=job)


def end_intent(
    context: typer.Context,
    arguments: Annotated[list[str], typer.Argument(metavar="[ROOT] UUID", help="The id of the intent.")],
) -> None:
    """End an intent of a catalog. A commit of its job is refused from then on if it names files that are too old."""
    [job] = take_root(context, arguments, ("UUID",))
    with connected(context) as catalog:
        from table_data.batch_operations import IntentEnd

        is_there = any(each.id == job for each in catalog.intents())
        catalog.access.commit([IntentEnd(job)], idempotency_key=str(uuid.uuid4()), message=None)
    say(context, f"{job}: {'ended' if is_there else 'is not there'}", id=job, was_there=is_there)


def _name(table_id: TableId) -> str:
    from namespace_client import Name

    return str(Name(table_id))


def _named(table: DroppedTable | TableOfIntent) -> dict[str, Any]:
    """The fields of a table, with its name in place of its path."""
    return {"name": _name(table.id)} | {key: value for key, value in asdict(table).items() if key != "id"}
