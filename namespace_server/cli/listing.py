"""Commands that list and describe the objects of a catalog."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from namespace_server.cli.command import refusal
from namespace_server.cli.connection import connected
from namespace_server.cli.options import at_point
from namespace_server.cli.output import print_fields, print_json, print_names, print_table, shown_bytes, shown_moment
from namespace_server.cli.progress import ProgressLine

if TYPE_CHECKING:
    from namespace_client import Catalog, CatalogView, Name, TableDescription

At = Annotated[
    str | None,
    typer.Option("--at", metavar="POINT", help="Catalog version, time (ISO 8601) or pin, in place of now."),
]
BranchName = Annotated[str | None, typer.Option("--branch", metavar="NAME", help="Branch of the table (main).")]
TagName = Annotated[str | None, typer.Option("--tag", metavar="NAME", help="Tag of the table.")]
Version = Annotated[int | None, typer.Option("--version", help="Version of the table (the newest).")]

_READERS: Final = 8
_FIRST_ROWS: Final = 5


@dataclass(frozen=True, slots=True)
class ListedObject:
    """A namespace or a table in a listing. What was not looked up is None."""

    name: str
    kind: str
    version: int | None = None
    rows: int | None = None
    bytes: int | None = None
    fragments: int | None = None
    changed: datetime | None = None


def ls(
    context: typer.Context,
    namespace: Annotated[
        str | None, typer.Argument(metavar="[NAMESPACE]", help="A namespace (that of the profile, or the root).")
    ] = None,
    long: Annotated[bool, typer.Option("-l", "--long", help="Also versions, rows, bytes and times.")] = False,
    recursive: Annotated[bool, typer.Option("-R", "--recursive", help="Also contents of namespaces below.")] = False,
    at: At = None,
) -> None:
    """List namespaces and tables."""
    with connected(context) as catalog, ProgressLine() as progress:
        view = at_point(catalog, at)
        if long and at is None and (newest := catalog.access.state().version):
            view = catalog.at(newest)  # so that all lines are of one moment
        found = [ListedObject(str(each), "namespace") for each in view.namespaces(namespace, recursive=recursive)]
        tables = view.tables(namespace, recursive=recursive)
        found += _described(view, tables, progress) if long else [ListedObject(str(each), "table") for each in tables]
    found.sort(key=lambda each: (each.name, each.kind))
    if context.obj.as_json:
        names = _LONG if long else ("name", "kind")
        print_json([{name: getattr(each, name) for name in names} for each in found])
    elif long:
        rows = [
            (_shown(each), each.version, each.rows, shown_bytes(each.bytes), each.fragments, shown_moment(each.changed))
            for each in found
        ]
        print_table(("name", "version", "rows", "size", "fragments", "changed"), rows, numbers=_NUMBERS)
    else:
        print_names((_shown(each), each.kind == "namespace") for each in found)


_LONG: Final = tuple(field.name for field in fields(ListedObject))
_NUMBERS: Final = ("version", "rows", "size", "fragments")


def _shown(listed: ListedObject) -> str:
    return listed.name + ("/" if listed.kind == "namespace" else "")


def _described(view: Catalog | CatalogView, tables: Sequence[Name], progress: ProgressLine) -> Iterator[ListedObject]:
    """The tables with what the manifest of each says."""
    with ThreadPoolExecutor(_READERS) as pool:
        for number, each in enumerate(pool.map(view.describe, tables)):
            progress("describe", number, len(tables))
            size = each.rows, each.bytes, each.fragments
            yield ListedObject(str(each.name), "table", each.version, *size, each.committed_at)


def show(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="A table; the catalog itself.")] = None,
    rows: Annotated[int | None, typer.Option("--rows", min=0, help="So many first rows (5).")] = None,
    branch: BranchName = None,
    tag: TagName = None,
    version: Version = None,
    at: At = None,
) -> None:
    """Show a table: schema, version, branches, tags, indices, size and first rows. Without a name: the catalog."""
    from namespace_server.cli.row_output import json_rows, print_rows

    of_tables = {"--rows": rows, "--branch": branch, "--tag": tag, "--version": version}
    if name is None and (given := [option for option, value in of_tables.items() if value is not None]):
        raise refusal(f"{given[0]}: expected the name of a table with it")
    rows = _FIRST_ROWS if rows is None else rows
    with connected(context) as catalog:
        view = at_point(catalog, at)
        if name is None:
            _show_catalog(context, catalog, view)
            return
        found = view.describe(name, branch=branch, tag=tag, version=version)
        first = None
        if rows and found.version is not None:
            first = view.read(name, limit=rows, branch=branch, tag=tag, version=version)
    if context.obj.as_json:
        print_json(_table_json(found) | ({} if first is None else {"first_rows": json_rows(first)}))
        return
    _print_table_description(found)
    if first is not None:
        print_rows(first, title=f"first rows ({first.num_rows:,} of {found.rows:,})")


def _show_catalog(context: typer.Context, catalog: Catalog, view: Catalog | CatalogView) -> None:
    head = catalog.access.state()
    described = {
        "root": head.root,
        "version": getattr(view, "version", head.version),
        "namespaces": len(view.namespaces((), recursive=True)),
        "tables": len(view.tables((), recursive=True)),
        "dropped_tables": len(catalog.dropped_tables()),
        "pins": [pin.name for pin in catalog.pins()],
    }
    if context.obj.as_json:
        print_json(described)
    else:
        print_fields({name.replace("_", " "): value for name, value in described.items()})


def _table_json(found: TableDescription) -> dict[str, Any]:
    schema = [] if found.schema is None else _schema_rows(found)
    return {
        "name": str(found.name),
        "location": found.location,
        "version": found.version,
        "branch": found.branch,
        "committed_at": found.committed_at,
        "rows": found.rows,
        "bytes": found.bytes,
        "fragments": found.fragments,
        "schema": [{"name": name, "type": kind, "nullable": nullable} for name, kind, nullable in schema],
        "indices": [asdict(index) for index in found.indices],
        "tags": {name: asdict(tag) for name, tag in found.tags.items()},
        "branches": {name: asdict(branch) for name, branch in found.branches.items()},
        "properties": dict(found.properties),
    }


def _schema_rows(found: TableDescription) -> list[tuple[str, str, bool]]:
    assert found.schema is not None
    return [(field.name, str(field.type), field.nullable) for field in found.schema]


def _print_table_description(found: TableDescription) -> None:
    version = "declared, without a version" if found.version is None else found.version
    print_fields(
        {
            "table": str(found.name),
            "location": found.location,
            "version": version,
            "branch": found.branch,
            "committed": shown_moment(found.committed_at),
            "rows": found.rows,
            "size": shown_bytes(found.bytes),
            "fragments": found.fragments,
            **{f"property {name}": value for name, value in found.properties.items()},
        }
    )
    if found.schema is not None:
        print_table(("column", "type", "nullable"), _schema_rows(found), title="schema")
    if found.indices:
        rows = [
            (index.name, ", ".join(index.columns), index.kind, index.rows, shown_bytes(index.bytes))
            for index in found.indices
        ]
        print_table(("index", "columns", "kind", "rows", "size"), rows, numbers=_NUMBERS, title="indices")
    if found.tags:
        tags = [(name, tag.version, tag.branch or "main") for name, tag in sorted(found.tags.items())]
        print_table(("tag", "version", "branch"), tags, numbers=_NUMBERS, title="tags")
    if found.branches:
        begun = [(name, each.parent_version, each.parent_branch or "main") for name, each in found.branches.items()]
        print_table(("branch", "from version", "of"), sorted(begun), numbers=("from version",), title="branches")
