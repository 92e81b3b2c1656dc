"""Commands on what was dropped, on what is kept, and on what nothing needs."""

from __future__ import annotations

import json
import time
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from namespace_server.cli.command import refusal
from namespace_server.cli.options import Durability, StorageOptions, TableManifestStore, duration, opened_catalog
from namespace_server.cli.progress import ProgressLine

if TYPE_CHECKING:
    from namespace_server.answer import Answer
    from namespace_server.directory.catalog import StoredCatalog
    from namespace_server.directory.model.results import PinJson

_Root = Annotated[str, typer.Argument(metavar="ROOT", help="Directory or URI of a catalog.")]


def gc(
    root: _Root,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Remove nothing; say what would go.")] = False,
    table: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID",
            help="Look at the files of this table, such as 'a$t', only; may be repeated.",
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
    as_json: Annotated[bool, typer.Option("--json", help="The report as JSON.")] = False,
    durability: Durability = None,
    storage_option: StorageOptions = None,
    manifest_store: TableManifestStore = None,
) -> None:
    """Remove from a catalog what nothing needs any more.

    That is: earlier versions of the catalog, dropped tables whose time to come back is over, deleted versions of
    tables, and files of failed writes and rejected batches. Servers and writers may go on; a write that takes longer
    than gc.uncommitted.grace from its first file to its commit is refused, and has to be repeated. After a crash at any
    moment the catalog is whole, and the next run goes on. The first run shuts out releases of this server that cannot
    collect.
    """
    given = [item.partition("=") for item in setting or ()]
    if wrong := [name for name, equals, _ in given if not equals or not name]:
        raise refusal(f"--set {wrong[0]}: expected NAME=VALUE")
    until = None if max_time is None else time.monotonic() + duration("--max-time", max_time).total_seconds()
    settings = {name: value for name, _, value in given}
    with (
        opened_catalog(root, storage_option, manifest_store, durability) as catalog,
        ProgressLine() as progress,
    ):
        from namespace_server.directory.collection.run import Collector
        from namespace_server.directory.collection.sweep import Budget
        from namespace_server.directory.model.object_ids import parse_id

        collector = Collector(catalog, progress=progress)
        tables = [parse_id(name) for name in table or ()]
        if dry_run:
            report = collector.estimate(settings, everywhere=not changed, tables=tables)
        else:
            budget = Budget(max_removals, until)
            report = collector.collect(settings, budget, everywhere=not changed, tables=tables)
    for line in (json.dumps(report.as_json(), indent=2),) if as_json else report.lines():
        typer.echo(line)


def dropped(
    root: _Root,
    as_json: Annotated[bool, typer.Option("--json", help="Everything that is known of them, as JSON.")] = False,
    storage_option: StorageOptions = None,
    manifest_store: TableManifestStore = None,
) -> None:
    """List the dropped tables of a catalog that can come back, the last one first."""
    with opened_catalog(root, storage_option, manifest_store) as catalog:
        tables = _rows(catalog, "list_dropped_tables", "tables")
    if as_json:
        typer.echo(json.dumps(tables, indent=2))
        return
    for table in tables:
        version = f"version {table['version']}" if "version" in table else "declared"
        typer.echo(f"{'$'.join(table['id'])}  {version}  {_moment(table['timestamp_millis'])}  {table['tombstone_id']}")


def undrop(
    root: _Root,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The table, such as 'a$t'.")],
    new_name: Annotated[str | None, typer.Option("--as", metavar="ID", help="Another name for it.")] = None,
    tombstone: Annotated[
        str | None, typer.Option("--id", metavar="UUID", help="Which one, if several of this name were dropped.")
    ] = None,
    durability: Durability = None,
    storage_option: StorageOptions = None,
    manifest_store: TableManifestStore = None,
) -> None:
    """Bring back a dropped table, with its versions, branches, tags and indices.

    It is as it was before the batch that dropped it. Servers may go on.
    """
    with opened_catalog(root, storage_option, manifest_store, durability) as catalog:
        from namespace_server.directory.model.object_ids import parse_id
        from namespace_server.directory.namespace import DirectoryNamespace

        request: dict[str, object] = {"id": list(parse_id(table)), "tombstone_id": tombstone}
        if new_name is not None:
            request["new_id"] = list(parse_id(new_name))
        answer = DirectoryNamespace(catalog=catalog).write("undrop_table", request)
    typer.echo(f"{new_name or table}: back at {answer.body['location']}, catalog version {answer.catalog_version}")


def pins(
    root: _Root,
    as_json: Annotated[bool, typer.Option("--json", help="Everything that is known of them, as JSON.")] = False,
    storage_option: StorageOptions = None,
    manifest_store: TableManifestStore = None,
) -> None:
    """List the pins of a catalog: versions of it that are kept with all rows and files."""
    with opened_catalog(root, storage_option, manifest_store) as catalog:
        found = _rows(catalog, "list_catalog_pins", "pins")
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    for each in found:
        until = _moment(each["until_millis"]) if "until_millis" in each else "for ever"
        typer.echo(f"{each['name']}  catalog version {each['version']}  {until}  {each.get('reason', '')}".rstrip())


def pin(
    root: _Root,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the pin is called.")],
    version: Annotated[int | None, typer.Option(help="Catalog version (the newest).")] = None,
    lasting: Annotated[
        str | None,
        typer.Option("--for", metavar="TIME", help="How long, at most 30d; else until it is removed."),
    ] = None,
    reason: Annotated[str | None, typer.Option(help="Text that is kept with it.")] = None,
    durability: Durability = None,
    storage_option: StorageOptions = None,
    manifest_store: TableManifestStore = None,
) -> None:
    """Keep a version of a catalog, with all rows and files, whatever the settings of collections.

    A pin of the same name is replaced.
    """
    seconds = None if lasting is None else int(duration("--for", lasting).total_seconds())
    with opened_catalog(root, storage_option, manifest_store, durability) as catalog:
        from namespace_server.directory.namespace import DirectoryNamespace

        request = {"name": name, "version": version, "seconds": seconds, "reason": reason}
        answer = DirectoryNamespace(catalog=catalog).write("pin_catalog_version", request)
    typer.echo(f"{name}: catalog version {_pinned(answer)} is pinned")


def unpin(
    root: _Root,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the pin is called.")],
    durability: Durability = None,
    storage_option: StorageOptions = None,
    manifest_store: TableManifestStore = None,
) -> None:
    """Remove a pin of a catalog."""
    with opened_catalog(root, storage_option, manifest_store, durability) as catalog:
        from namespace_server.directory.namespace import DirectoryNamespace

        answer = DirectoryNamespace(catalog=catalog).write("unpin_catalog_version", {"name": name})
    typer.echo(f"{name}: catalog version {_pinned(answer)} is not pinned by it any more")


def intents(
    root: _Root,
    as_json: Annotated[bool, typer.Option("--json", help="Everything that is known of them, as JSON.")] = False,
    storage_option: StorageOptions = None,
    manifest_store: TableManifestStore = None,
) -> None:
    """List the intents of a catalog: jobs whose files and versions collections keep."""
    with opened_catalog(root, storage_option, manifest_store) as catalog:
        found = _rows(catalog, "list_intents", "intents")
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    for each in found:
        tables = ", ".join("$".join(table.get("id", [])) or table["location"] for table in each["tables"])
        text = f"{each['intent_id']}  {_moment(each['until_millis'])}  {tables}  {each.get('reason', '')}"
        typer.echo(text.rstrip())


def intent(
    root: _Root,
    tables: Annotated[list[str], typer.Argument(metavar="TABLE...", help="What the job writes or reads: 'a$t'.")],
    lasting: Annotated[str, typer.Option("--for", metavar="TIME", help="How long: 1h to 30d.")] = "1d",
    reason: Annotated[str | None, typer.Option(help="Text that is kept with it.")] = None,
    renewed: Annotated[
        str | None, typer.Option("--id", metavar="UUID", help="Renew this one, or register it under this id.")
    ] = None,
    durability: Durability = None,
    storage_option: StorageOptions = None,
    manifest_store: TableManifestStore = None,
) -> None:
    """Register a job: what it writes to tables from now on, and their versions from the newest on, is kept for it.

    Prints the id of the intent. Clients of this package do so by themselves for jobs that take long.
    """
    seconds = int(duration("--for", lasting).total_seconds())
    with opened_catalog(root, storage_option, manifest_store, durability) as catalog:
        from namespace_server.directory.model.object_ids import parse_id
        from namespace_server.directory.namespace import DirectoryNamespace

        named = [parse_id(table) for table in tables]
        heads = [catalog.snapshot().top(table_id) for table_id in named]
        intent_id = renewed or str(uuid.uuid4())
        request = {
            "intent_id": intent_id,
            "tables": [
                {"id": list(table_id)} | ({} if head is None else {"read_version": head[0]})
                for table_id, head in zip(named, heads, strict=True)
            ],
            "seconds": seconds,
            "reason": reason,
        }
        DirectoryNamespace(catalog=catalog).write("register_intent", request)
    typer.echo(intent_id)


def end_intent(
    root: _Root,
    intent_id: Annotated[str, typer.Argument(metavar="UUID", help="The id of the intent.")],
    durability: Durability = None,
    storage_option: StorageOptions = None,
    manifest_store: TableManifestStore = None,
) -> None:
    """End an intent of a catalog. A commit of its job is refused from then on if it names files that are too old."""
    with opened_catalog(root, storage_option, manifest_store, durability) as catalog:
        from namespace_server.directory.namespace import DirectoryNamespace

        answer = DirectoryNamespace(catalog=catalog).write("end_intent", {"intent_id": intent_id})
    typer.echo(f"{intent_id}: {'ended' if 'intent' in answer.body else 'is not there'}")


def _rows(catalog: StoredCatalog, operation: str, field: str) -> list[dict[str, Any]]:
    """The rows of a list that has no pages, as JSON."""
    from namespace_server.directory.namespace import DirectoryNamespace

    return cast("list[dict[str, Any]]", DirectoryNamespace(catalog=catalog).read(operation, {"limit": -1}).body[field])


def _pinned(answer: Answer) -> int:
    """The catalog version of the pin in an answer."""
    return cast("PinJson", answer.body["pin"])["version"]


def _moment(millis: int) -> str:
    return f"{datetime.fromtimestamp(millis / 1_000, UTC):%Y-%m-%dT%H:%M:%SZ}"
