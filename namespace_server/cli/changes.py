"""Commands that change namespaces, tables, tags and branches: each one is one batch."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from namespace_server.cli.command import refusal
from namespace_server.cli.connection import catalog_command, connected, table_paths
from namespace_server.cli.listing import BranchName, Version
from namespace_server.cli.options import named_values
from namespace_server.cli.output import print_json, print_table, say

if TYPE_CHECKING:
    import pyarrow as pa

    from namespace_client import Catalog

Message = Annotated[str | None, typer.Option("-m", "--message", help="Text that is kept with the change, for `log`.")]
Table = Annotated[str, typer.Argument(metavar="TABLE", help="A table: shop.orders.")]

tag_commands = typer.Typer(help="Tags of a table: names for its versions.", no_args_is_help=True)
branch_commands = typer.Typer(help="Branches of a table.", no_args_is_help=True)


def create(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new namespace, or with --schema the new table.")],
    schema: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMNS",
            help="Make a table with these columns: 'id int64, name string', or a file: a JSON object such as "
            '{"id": "int64"}, or a Parquet or Arrow file, whose rows are not read.',
        ),
    ] = None,
    parents: Annotated[bool, typer.Option("-p", "--parents", help="Also the namespaces above it.")] = False,
    exist_ok: Annotated[
        bool,
        typer.Option(
            "--exist-ok", help="A namespace that is there, with these properties and maybe others, is no error."
        ),
    ] = False,
    properties: Annotated[
        list[str] | None, typer.Option("--property", metavar="NAME=VALUE", help="Kept with it; may be repeated.")
    ] = None,
    message: Message = None,
) -> None:
    """Create a namespace, or a table with the schema of a file. At a root without a catalog this makes the catalog."""
    given = named_values("--property", properties)
    if exist_ok and schema is not None:
        raise refusal("--exist-ok: goes without --schema")
    columns = None if schema is None else _schema(schema)
    with connected(context, new=True) as catalog:
        if parents and len(path := table_paths(context, [name])[0]) > 1:
            catalog.ensure_namespace(path[:-1])
        if columns is None:
            is_new = catalog.create_namespace(name, properties=given, exist_ok=exist_ok, message=message)
        else:
            is_new = True
            catalog.create(name, schema=columns, properties=given, message=message)
    say(context, f"{name}: {'created' if is_new else 'was there'}", name=name, was_there=not is_new)


def register(
    context: typer.Context,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The new name: shop.orders.")],
    location: Annotated[
        str,
        typer.Argument(
            metavar="LOCATION", help="Directory of a dataset below the catalog's root: relative to it, or its URI."
        ),
    ],
    message: Message = None,
) -> None:
    """Take a dataset that lies below the root of a catalog in as a table, with its versions, branches and tags.

    Nothing is copied or moved. A root that is no catalog yet is taken over as a whole by `adopt`.
    """
    with connected(context) as catalog:
        catalog.register(table, location, message=message)
    say(context, f"{table}: registered, {location}", name=table)


def drop(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A table, or with --namespace a namespace.")],
    namespace: Annotated[bool, typer.Option("--namespace", help="Drop the namespace of this name.")] = False,
    cascade: Annotated[bool, typer.Option("--cascade", help="With all that the namespace holds.")] = False,
    purge: Annotated[bool, typer.Option("--purge", help="It cannot come back; gc removes it.")] = False,
    missing_ok: Annotated[bool, typer.Option("--missing-ok", help="It is no error if there is none.")] = False,
    yes: Annotated[bool, typer.Option("-y", "--yes", help="Do not ask, with --cascade or --purge.")] = False,
    message: Message = None,
) -> None:
    """Drop a table, or a namespace. `undrop` brings a table back for as long as it is kept."""
    if cascade and not namespace:
        raise refusal("--cascade: expected with --namespace")
    if (cascade or purge) and not yes:
        lost = "all that is in it" if cascade else "its rows"
        if not sys.stdin.isatty():
            raise refusal(f"{name}: expected --yes, since {lost} {'cannot come back' if purge else 'goes with it'}")
        if not typer.confirm(f"Drop {name} and {lost}?", err=True):
            raise refusal(f"{name}: not dropped")
    with connected(context) as catalog:
        if namespace:
            was_there = catalog.drop_namespace(
                name, cascade=cascade, missing_ok=missing_ok, purge=purge, message=message
            )
        else:
            with _hinting(catalog, name):
                was_there = catalog.drop(name, missing_ok=missing_ok, purge=purge, message=message)
    say(context, f"{name}: {'dropped' if was_there else 'is not there'}", name=name, was_there=was_there)


@contextmanager
def _hinting(catalog: Catalog, name: str) -> Iterator[None]:
    """Within it a table is changed that may not be there, but a namespace of its name."""
    from namespace_client import NotFound

    try:
        yield
    except NotFound as error:
        with suppress(NotFound):
            catalog.namespaces(name)
            raise refusal(f"{name} is a namespace: drop it with --namespace") from error
        raise


def rename(
    context: typer.Context,
    table: Table,
    new_name: Annotated[str, typer.Argument(metavar="NEW_NAME", help="Its whole new name: sales.orders.")],
    message: Message = None,
) -> None:
    """Rename a table, or move it to another namespace, with its versions, branches and tags."""
    with connected(context) as catalog:
        catalog.rename(table, new_name, message=message)
    say(context, f"{table}: is {new_name}", name=new_name)


def clone(
    context: typer.Context,
    table: Table,
    new_name: Annotated[str, typer.Argument(metavar="NEW_NAME", help="The whole name of the clone: sales.orders.")],
    version: Version = None,
    tag: Annotated[str | None, typer.Option(help="A tag of the version of the table.")] = None,
    message: Message = None,
) -> None:
    """Make a table that begins with a version of another one and refers to its files: nothing is copied."""
    with connected(context) as catalog:
        first = catalog.clone(table, new_name, version=version, tag=tag, message=message)
    say(context, f"{new_name}: begins with version {first} of {table}", name=new_name, version=first)


@tag_commands.command("list")
@catalog_command
def list_tags(context: typer.Context, table: Table) -> None:
    """List the tags of a table."""
    with connected(context) as catalog:
        found = sorted(catalog.tags(table).items())
    if context.obj.as_json:
        print_json([{"name": name, **asdict(tag)} for name, tag in found])
        return
    rows = [(name, tag.version, tag.branch or "main") for name, tag in found]
    print_table(("tag", "version", "branch"), rows, numbers=("version",))


TagArgument = Annotated[str, typer.Argument(metavar="TAG", help="Name of the tag.")]


@tag_commands.command("create")
@catalog_command
def create_tag(
    context: typer.Context,
    table: Table,
    tag: TagArgument,
    version: Version = None,
    branch: BranchName = None,
    message: Message = None,
) -> None:
    """Give a version of a table a name, which keeps it."""
    with connected(context) as catalog:
        catalog.create_tag(table, tag, version=version, branch=branch, message=message)
    say(context, f"{table}: tag {tag} created", name=tag)


@tag_commands.command("move")
@catalog_command
def move_tag(
    context: typer.Context,
    table: Table,
    tag: TagArgument,
    version: Version = None,
    branch: BranchName = None,
    message: Message = None,
) -> None:
    """Have a tag name another version."""
    with connected(context) as catalog:
        catalog.move_tag(table, tag, version=version, branch=branch, message=message)
    say(context, f"{table}: tag {tag} moved", name=tag)


@tag_commands.command("delete")
@catalog_command
def delete_tag(context: typer.Context, table: Table, tag: TagArgument, message: Message = None) -> None:
    """Delete a tag. The version stays until it expires."""
    with connected(context) as catalog:
        catalog.delete_tag(table, tag, message=message)
    say(context, f"{table}: tag {tag} deleted", name=tag)


@branch_commands.command("list")
@catalog_command
def list_branches(context: typer.Context, table: Table) -> None:
    """List the branches of a table, without main."""
    with connected(context) as catalog:
        found = sorted(catalog.branches(table).items())
    if context.obj.as_json:
        print_json([{"name": name, **asdict(branch)} for name, branch in found])
        return
    rows = [(name, branch.parent_version, branch.parent_branch or "main") for name, branch in found]
    print_table(("branch", "from version", "of"), rows, numbers=("from version",))


BranchArgument = Annotated[str, typer.Argument(metavar="BRANCH", help="Name of the branch.")]


@branch_commands.command("create")
@catalog_command
def create_branch(
    context: typer.Context,
    table: Table,
    branch: BranchArgument,
    from_branch: Annotated[str | None, typer.Option("--from-branch", help="Where it begins (main).")] = None,
    from_version: Annotated[int | None, typer.Option("--from-version", help="Where it begins (the newest).")] = None,
    message: Message = None,
) -> None:
    """Begin a branch of a table."""
    with connected(context) as catalog:
        catalog.create_branch(table, branch, from_branch=from_branch, from_version=from_version, message=message)
    say(context, f"{table}: branch {branch} created", name=branch)


@branch_commands.command("delete")
@catalog_command
def delete_branch(context: typer.Context, table: Table, branch: BranchArgument, message: Message = None) -> None:
    """Delete a branch with its versions."""
    with connected(context) as catalog:
        catalog.delete_branch(table, branch, message=message)
    say(context, f"{table}: branch {branch} deleted", name=branch)


def _schema(given: str) -> pa.Schema:
    from namespace_server.cli.files.schemas import read_schema

    return read_schema(given)
